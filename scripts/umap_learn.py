#!/usr/bin/env python3
"""Embeds the rows of a .npy file with umap-learn and says how long each part took.

Prints seconds as JSON on one line and writes the embedding, so that cne's own
measures can judge it:

    scripts/umap_learn.py points.npy umap.npy
    cne evaluate --set data.path=points.npy --set data.labels=[labels.npy] umap.npy

All is umap-learn's default but for what the flags say. Its functions are compiled by
a first run on a few rows, which is not counted. Debian has it as python3-umap-learn.
"""

import argparse
import json
import os
import time

import numpy as np
import umap
import umap.umap_ as inner

# What is timed on its own, and what it is called in the output. The rest is what
# remains of the whole.
PARTS = {
    "nearest_neighbors": "neighbours",
    "fuzzy_simplicial_set": "weights",
    "spectral_layout": "start",
    "optimize_layout_euclidean": "optimisation",
}


def watch(seconds):
    """Has the functions of PARTS add the time they take to seconds."""
    for name, part in PARTS.items():
        if not hasattr(inner, name):
            raise SystemExit(f"umap-learn {umap.__version__} has no function {name} to time; this was written for 0.5.3")

        def timed(*args, original=getattr(inner, name), part=part, **more):
            begun = time.perf_counter()
            try:
                return original(*args, **more)
            finally:
                seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - begun

        setattr(inner, name, timed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("points", help="a .npy file of numbers, a row per point")
    parser.add_argument("out", help="the .npy file to write the embedding to")
    parser.add_argument("--init", default="spectral", choices=["spectral", "random"], help="the start (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=None, help="epochs (default 200 from 10 000 points on, else 500)")
    parser.add_argument("--jobs", type=int, default=-1, help="threads of the search for neighbours (default: all)")
    args = parser.parse_args()
    if not args.out.endswith(".npy"):
        parser.error(f"the file to write must end in .npy, not {args.out}")
    try:
        points = np.load(args.points)
    except (OSError, ValueError) as err:
        raise SystemExit(f"{args.points} cannot be read as a .npy file: {err}")
    if points.ndim != 2 or len(points) < 5000:
        raise SystemExit(f"{args.points} must have at least 5000 rows of numbers, but its shape is {points.shape}")

    def embed(x):
        return umap.UMAP(init=args.init, n_epochs=args.epochs, n_jobs=args.jobs).fit_transform(x)

    embed(points[:5000])
    seconds = {}
    watch(seconds)
    begun = time.perf_counter()
    embedding = embed(points)
    seconds["whole"] = time.perf_counter() - begun
    with open(args.out + ".part", "wb") as file:
        np.save(file, embedding.astype(np.float32))
    os.replace(args.out + ".part", args.out)
    shown = {"umap-learn": umap.__version__, "points": len(points), "init": args.init}
    print(json.dumps({**shown, **{part: round(s, 1) for part, s in seconds.items()}}))


if __name__ == "__main__":
    main()
