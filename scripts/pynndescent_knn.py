"""Times pynndescent's nearest neighbours; docs/results.md compares them with cne's.

usage: pynndescent_knn.py POINTS.npy [K [THREADS]]

POINTS.npy has float32 values [points, width]. Compiling is not timed. Recall is the
share of the K nearest neighbours of 1000 points that were found.
"""

import sys
import time

import numpy as np
from pynndescent import NNDescent


def main():
    points = np.load(sys.argv[1])
    k = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 2

    def search(x):  # a point is the first of its own neighbours
        return NNDescent(x, n_neighbors=k + 1, n_jobs=threads, random_state=1).neighbor_graph[0]

    search(points[:5000].copy())
    begun = time.time()
    found = search(points)
    seconds = time.time() - begun

    hits = 0
    rows = np.random.default_rng(1).choice(len(points), 1000, replace=False)
    for i in rows:
        distances = ((points - points[i]) ** 2).sum(axis=1)
        distances[i] = np.inf
        nearest = np.argpartition(distances, k)[:k]
        hits += len(set(nearest) & set(found[i][found[i] != i][:k]))
    print(f"{len(points)} points, k = {k}: {seconds:.1f} s, recall {hits / (k * len(rows)):.4f}")


main()
