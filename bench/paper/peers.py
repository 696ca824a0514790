#!/usr/bin/python3
"""Embeds the points of a run of cne by programs of others.

    peers.py tsne RUN OUT [--iterations N] [--early RHO] [--exaggeration RHO] [--start random]
    peers.py ncvis RUN OUT [--seed S]
    peers.py trimap RUN OUT [--variant default|neighbours|near|uniform]
    peers.py umap RUN OUT [--own-graph] [--epsilon E] [--constant] [--negatives M]

RUN is the folder of a run of cne train: its graph.npz is the graph, and its
cache.safetensors has the principal components. OUT is the folder to write
embedding.npy and embedding.csv to, which cne plot and cne evaluate take, and at
last program.json, which says what was run and how many seconds it took.

tsne is openTSNE with the affinities of the paper: every edge of the graph has the
same one, and they sum to 1. It starts at the first two components, the first at
standard deviation 1e-4, or at random; 250 iterations with early exaggeration 12, and
500 without, at learning rate n/12, at least 200. --early 1 leaves the early phase out, so that all
iterations are of the second phase; --exaggeration is that of the second. Every 50
iterations, partition function and KL divergence go to metrics.jsonl, which cne plot
--metrics takes.

ncvis is the NCVis of the paper's authors, with a = b = 1, 5 negatives and 750 epochs on
the edges of the graph, from its first two components. program.json has the Z it learnt,
which fits the last points best, since NCVis takes the edges in their order (optimize in
its ncvis.cpp). --by-label sorts the points by their labels, as the authors' loader does
with imbalanced MNIST.

trimap is TriMap on the components with its own settings. The variants are the paper's,
each a change to the one before: the exact 15 nearest neighbours (neighbours), no random
triplets (near), and the weight 1 for all triplets (uniform). It draws other triplets
every time, --seed or not.

umap is umap-learn with a = b = 1, 5 negatives (M) and 750 epochs, as in the paper: on
the graph of the run, from its first two components, which umap-learn scales to
[0, 10]. --own-graph takes its own graph instead, of 15 neighbours among the 50
components with weights. --epsilon is what the repulsion's denominator has added
to the squared distance instead of 0.001, and --constant keeps the learning rate
at 1: the two are changes to umap-learn.

bench/paper/programs builds the first three into runs/paper/programs; PYTHONPATH may
name another folder. Debian has umap-learn as python3-umap-learn; this was written for
0.5.3, of which it uses functions that other versions may not have.
"""

import argparse
import contextlib
import json
import os
import struct
import sys
import time
import zipfile
import zlib

try:
    import numpy as np
    import scipy.sparse
except ModuleNotFoundError as err:
    raise SystemExit(f"{sys.executable} has no module {err.name}; install Debian's python3-{err.name}, or set PYTHON to a Python that has it")

# Before installed packages, but after PYTHONPATH.
built = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../runs/paper/programs")
sys.path.insert(1 + (len(os.environ["PYTHONPATH"].split(os.pathsep)) if os.environ.get("PYTHONPATH") else 0), built)
EPSILON = 0.001  # umap-learn's
SMALL = 1e-4  # standard deviation of t-SNE's start


def read_components(path):
    """Return the principal components [points, components] in a cache of cne."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > os.path.getsize(path):
                raise ValueError("its header is cut off")
            entry = json.loads(file.read(length))["points"]
            begin, end = entry["data_offsets"]
            file.seek(begin, os.SEEK_CUR)
            return np.frombuffer(file.read(end - begin), dtype="<f4").reshape(entry["shape"])
    except (OSError, ValueError, KeyError, TypeError, struct.error) as err:
        raise SystemExit(f"{path} cannot be read as a cache of cne ({err!r}); give the folder of a run with graph.cache")


def read_graph(path):
    """Return the graph of a run, with the weight 1 for each edge."""
    try:
        graph = scipy.sparse.load_npz(path).tocsr()
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as err:
        raise SystemExit(f"{path} cannot be read as a graph ({err}); give the folder of a run of cne train")
    graph.data = np.ones(graph.nnz, dtype=np.float32)
    return graph


def changed(program, version, what):
    """Say that a program is of a version that this cannot use."""
    raise SystemExit(f"{program} {version} lacks the {what} of the version that this was written for (see --help); install that one")


def tsne(graph, components, args):
    """Return t-SNE's embedding, the seconds it took, and what it was."""
    import openTSNE

    if openTSNE.__version__ != "0.6.1":
        raise SystemExit(f"openTSNE is {openTSNE.__version__}, but must be 0.6.1, the paper's version; bench/paper/programs builds it")
    n = graph.shape[0]
    affinities = openTSNE.affinity.Affinities()
    affinities.P = (graph.astype(np.float64) / graph.sum()).tocsr()
    if args.start == "random":
        start = np.random.RandomState(args.seed).normal(size=(n, 2))
    else:
        start = components[:, :2].astype(np.float64)
    heads, tails = graph.nonzero()
    early = 250 if args.early != 1 else 0
    done, begun = 0, time.perf_counter()

    def record(_, kl, embedding):
        nonlocal done
        done += 50
        # KL = log Z - log |E| + the mean of log(1 + d^2) over the edges E.
        x = np.asarray(embedding)
        attraction = np.log1p(((x[heads] - x[tails]) ** 2).sum(axis=1)).mean()
        figures = {"epoch": done, "partition_function": np.exp(kl + np.log(len(heads)) - attraction), "kl": kl, "seconds": time.perf_counter() - begun}
        file.write(json.dumps(figures) + "\n")

    method = openTSNE.TSNE(early_exaggeration_iter=early, early_exaggeration=args.early, n_iter=args.iterations - early, exaggeration=args.exaggeration,
                           learning_rate=max(200, n / 12), n_jobs=-1, callbacks=record, callbacks_every_iters=50, verbose=True)
    with open(os.path.join(args.out, "metrics.jsonl"), "w", buffering=1, encoding="utf-8") as file:
        embedding = method.fit(affinities=affinities, initialization=start / start[:, 0].std() * SMALL)
    return embedding, time.perf_counter() - begun, {"program": "openTSNE", "version": openTSNE.__version__, "iterations": args.iterations, "early": args.early,
                                "exaggeration": args.exaggeration, "start": args.start, **({"seed": args.seed} if args.start == "random" else {})}


def ncvis(graph, components, args):
    """Return NCVis' embedding, the seconds it took, and what it was with the Z it learnt."""
    import ncvis

    n = graph.shape[0]
    method = ncvis.NCVis(n_epochs=args.epochs, random_seed=args.seed, n_noise=5, noise_in_ratio=5, alpha=1.0, alpha_Q=0.001, a=1.0, b=1.0)
    embedding = np.ascontiguousarray(components[:, :2] / components[:, 0].std(), dtype=np.float32)
    if not hasattr(method.model, "fit_transform_edges"):
        raise SystemExit("NCVis must be the fork of the paper's authors; bench/paper/programs builds it")
    method.model.precomp_init = True
    begun = time.perf_counter()
    log_z = method.model.fit_transform_edges(np.array(components), embedding, np.stack(graph.nonzero(), axis=1).astype(np.int64))["qs"]
    return embedding, time.perf_counter() - begun, {"program": "NCVis", "version": "1.5.9, sdamrich", "epochs": args.epochs, "seed": args.seed,
                                                    "by_label": args.by_label, "z": float(np.exp(log_z[-1])) * n * (n - 1)}


def trimap(graph, components, args):
    """Return TriMap's embedding, the seconds it took, and what it was."""
    import sklearn.neighbors
    import trimap

    points = np.array(components)
    begun = time.perf_counter()
    method = trimap.TRIMAP(verbose=True)
    if args.variant != "default":
        distances, neighbours = sklearn.neighbors.NearestNeighbors(n_neighbors=15, algorithm="brute").fit(points).kneighbors()
        method.set_params(knn_tuple=(neighbours, distances), n_inliers=15, n_random=3 if args.variant == "neighbours" else 0)
    if args.variant == "uniform":
        method.set_params(n_iters=0).fit(points)
        method.set_params(weights=np.ones_like(method.weights), n_iters=400)
    embedding = method.fit_transform(points)
    return embedding, time.perf_counter() - begun, {"program": "TriMap", "version": trimap.__version__, "variant": args.variant}


def modified(inner, epsilon, constant):
    """Return umap-learn's optimisation with another epsilon, and perhaps without annealing."""
    import numba
    import umap

    name = "_optimize_layout_euclidean_single_epoch"
    original = getattr(inner, name, None)
    if original is None or original.__code__.co_consts.count(EPSILON) != 1:
        changed("umap-learn", umap.__version__, f"{name} with the one number {EPSILON}")
    code = original.__code__
    constants = tuple(epsilon if value == EPSILON else value for value in code.co_consts)
    epoch = numba.njit(type(original)(code.replace(co_consts=constants), original.__globals__), fastmath=True)
    no_densities = np.zeros(1, dtype=np.float32)

    def optimize(positions, others, head, tail, epochs, n, per_sample, a, b, state, gamma, rate, negatives, move_other, **_):
        per_negative = per_sample / negatives
        next_negative, next_sample = per_negative.copy(), per_sample.copy()
        alpha = rate
        for i in range(epochs):
            epoch(positions, others, head, tail, n, per_sample, a, b, state, gamma, positions.shape[1], move_other, alpha,
                  per_negative, next_negative, next_sample, i, False, no_densities, no_densities, 0, 0, 0, 0, no_densities, no_densities, 0)
            if not constant:
                alpha = rate * (1 - i / epochs)
        return positions

    return optimize


def umap(graph, components, args):
    """Return UMAP's embedding, the seconds it took, and what it was."""
    import umap
    import umap.layouts
    import umap.umap_ as inner

    for name in ("simplicial_set_embedding", "optimize_layout_euclidean"):
        if not hasattr(inner, name):
            changed("umap-learn", umap.__version__, f"function {name}")
    if args.epsilon != EPSILON or args.constant:
        inner.optimize_layout_euclidean = modified(umap.layouts, args.epsilon, args.constant)
    start = components[:, :2] / components[:, 0].std()
    begun = time.perf_counter()
    if args.own_graph:
        method = umap.UMAP(n_neighbors=15, a=1, b=1, negative_sample_rate=args.negatives, n_epochs=args.epochs, init=start, random_state=args.seed, verbose=True)
        embedding = method.fit_transform(components)
    else:
        embedding, _ = inner.simplicial_set_embedding(
            components, graph, 2, 1.0, 1.0, 1.0, 1.0, args.negatives, args.epochs, start, np.random.RandomState(args.seed), "euclidean", {},
            densmap=False, densmap_kwds={}, output_dens=False, verbose=True)
    seconds = time.perf_counter() - begun
    return embedding, seconds, {"program": "umap-learn", "version": umap.__version__, "graph": "its own" if args.own_graph else "the run's",
                                "epochs": args.epochs, "negatives": args.negatives, "seed": args.seed, "epsilon": args.epsilon, "annealed": not args.constant}


def write(path, save):
    """Have save write a file, whole or not at all."""
    with open(path + ".part", "wb") as file:
        save(file)
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    methods = parser.add_subparsers(dest="method", required=True, metavar="tsne|ncvis|trimap|umap")
    of = {}
    for name, help in {"tsne": "openTSNE", "ncvis": "NCVis", "trimap": "TriMap", "umap": "umap-learn"}.items():
        of[name] = methods.add_parser(name, help=help)
        of[name].add_argument("run", metavar="RUN", help="folder of a run of cne train")
        of[name].add_argument("out", metavar="OUT", help="folder to write to")
        of[name].add_argument("--seed", type=int, default=0, help="of what is drawn (default %(default)s)")
    of["tsne"].add_argument("--iterations", type=int, default=750, help="at least 251 (default %(default)s)")
    of["tsne"].add_argument("--early", type=float, default=12, help="exaggeration in the first 250 iterations (default %(default)s)")
    of["tsne"].add_argument("--exaggeration", type=float, default=1, help="exaggeration in those after them (default %(default)s)")
    of["tsne"].add_argument("--start", choices=["components", "random"], default="components", help="(default %(default)s)")
    of["trimap"].add_argument("--variant", choices=["default", "neighbours", "near", "uniform"], default="default", help="(default %(default)s)")
    of["ncvis"].add_argument("--epochs", type=int, default=750, help="(default %(default)s)")
    of["ncvis"].add_argument("--by-label", action="store_true", help="in the order of the labels, and at random for each")
    of["umap"].add_argument("--epochs", type=int, default=750, help="(default %(default)s)")
    of["umap"].add_argument("--own-graph", action="store_true", help="its own graph of 15 neighbours, with weights")
    of["umap"].add_argument("--epsilon", type=float, default=EPSILON, help="added to squared distances in the repulsion (default %(default)s)")
    of["umap"].add_argument("--negatives", type=int, default=5, help="(default %(default)s)")
    of["umap"].add_argument("--constant", action="store_true", help="no annealing")
    args = parser.parse_args()
    if not 0 <= args.seed < 2**32:
        of[args.method].error("--seed must be at least 0 and less than 2**32")
    if args.method == "tsne" and args.iterations < 251:
        of["tsne"].error("--iterations must be at least 251, since the first 250 have the exaggeration")
    if args.method == "tsne" and not (0 < args.early < np.inf and 0 < args.exaggeration < np.inf):
        of["tsne"].error("--early and --exaggeration must be above 0")
    if args.method == "ncvis" and args.epochs < 1:
        of["ncvis"].error("--epochs must be at least 1")
    if args.method == "umap" and (args.epochs < 2 or args.negatives < 1 or not 0 <= args.epsilon < np.inf):
        of["umap"].error("--epochs must be at least 2, --negatives at least 1, and --epsilon at least 0")
    graph = read_graph(os.path.join(args.run, "graph.npz"))
    components = read_components(os.path.join(args.run, "cache.safetensors"))
    if graph.shape[0] != len(components):
        raise SystemExit(f"the graph of {args.run} has {graph.shape[0]} points, but its cache {len(components)}; do the run again")
    try:
        with open(os.path.join(args.run, "embedding.csv"), encoding="utf-8") as file:
            heading, *labels = [line.rstrip("\n").split(",", 2)[2] for line in file]
        if np.load(os.path.join(args.run, "embedding.npy"), mmap_mode="r").shape[1:] != (2,):
            raise ValueError("its run is not in the plane")
    except (OSError, ValueError, IndexError, EOFError) as err:
        raise SystemExit(f"{args.run}/embedding.csv has no column with labels ({err}); give a run in the plane of points with labels")
    if len(labels) != len(components):
        raise SystemExit(f"{args.run}/embedding.csv has {len(labels)} points, but the graph {len(components)}; do the run again")
    os.makedirs(args.out, exist_ok=True)  # before what takes long
    order = np.arange(len(labels))
    if args.method == "ncvis" and args.by_label:
        order = np.lexsort((np.random.RandomState(args.seed).permutation(len(labels)), labels))
        graph, components = graph[order][:, order].tocsr(), components[order]
    with contextlib.redirect_stdout(sys.stderr):
        embedding, seconds, what = {"tsne": tsne, "ncvis": ncvis, "trimap": trimap, "umap": umap}[args.method](graph, components, args)
    if not np.isfinite(embedding).all():
        raise SystemExit(f"{what['program']} has given positions that are not finite; nothing was written")

    embedding = np.ascontiguousarray(embedding[np.argsort(order)], dtype=np.float32)
    write(os.path.join(args.out, "embedding.npy"), lambda file: np.save(file, embedding))
    lines = [f"x,y,{heading}"] + [f"{x},{y},{label}" for (x, y), label in zip(embedding, labels)]
    write(os.path.join(args.out, "embedding.csv"), lambda file: file.write(("\n".join(lines) + "\n").encode()))
    what = {**what, "points": len(embedding), "edges": int(graph.nnz), "seconds": round(seconds, 1)}
    write(os.path.join(args.out, "program.json"), lambda file: file.write((json.dumps(what) + "\n").encode()))
    print(json.dumps(what))


if __name__ == "__main__":
    try:
        main()
    except ModuleNotFoundError as err:
        raise SystemExit(f"{sys.executable} has no module {err.name}; run bench/paper/programs for openTSNE, ncvis and trimap, install Debian's python3-umap-learn for umap, or set PYTHON to a Python that has it")
    except OSError as err:
        raise SystemExit(f"the embedding cannot be written: {err}")
    except KeyboardInterrupt:
        raise SystemExit(130)
