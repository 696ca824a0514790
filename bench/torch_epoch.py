#!/usr/bin/env python3
"""Time a training step of an embedding table, or a network, in PyTorch on the CPU.

    torch_epoch.py [--network] [--edges 1500000] [--steps 60] [--threads 2]

The step is the one that cne times in BenchmarkEpoch of package train: a table
of 70 000 points in the plane, batches of 1024 and 32 768 edges, five negatives
per head drawn anew from the batch, the losses neg, nc, infonce and umap with
arguments of logarithms clamped to [1e-10, 1], gradients clipped to +-4, SGD
without momentum. With --network it is as in BenchmarkNetworkEpoch: the
network 784-100-100-100-2 on 70 000 points, through which every endpoint of an
edge goes as in the paper's own program, Adam, the loss neg, and batches of up
to 524 288 edges, which take 7 GB of memory. Prints a line "LOSS BATCH
MILLISECONDS" for each, the median step scaled to one epoch of all edges.

The edges join random points, so that slices of the edge list touch memory as a
shuffled list would. The shuffling itself and a data loader are left out, which
flatters PyTorch: cne's figure includes the shuffling.

bench/speed calls this file and says how to install PyTorch.
"""
import argparse
import statistics
import time

import torch
from torch import nn

POINTS = 70_000
WIDTH = 784
NEGATIVES = 5
BATCHES = (1024, 32_768)
NETWORK_BATCHES = (1024, 32_768, 524_288)
FLOOR = 1e-10


def log(x):
    """Logarithm of the clamped argument."""
    return x.clamp(FLOOR, 1).log()


# The losses take the squared distances d2 [b, 1+m], with the positive in column
# 0, and log Z, in the forms with the fewest operations.


def neg(d2, _):
    """Neg-t-SNE with c = 1."""
    p = 1 / (2 + d2)
    return -log(p[:, 0]).sum() - log(1 - p[:, 1:]).sum()


def nc(d2, log_z):
    """NC-t-SNE with the learnt log Z."""
    p = 1 / (1 + NEGATIVES * log_z.exp() * (1 + d2))
    return -log(p[:, 0]).sum() - log(1 - p[:, 1:]).sum()


def infonce(d2, _):
    """InfoNC-t-SNE with the positive in the denominator."""
    q = 1 / (1 + d2)
    return (log(q.sum(1)) - log(q[:, 0])).sum()


def umap(d2, _):
    """UMAP's loss."""
    q = 1 / (1 + d2)
    return -log(q[:, 0]).sum() - log(1 - q[:, 1:]).sum()


def a_table():
    """Return what places points as a table, and its optimiser."""
    table = nn.Embedding(POINTS, 2)
    return table, table, lambda parameters: torch.optim.SGD(parameters, lr=1e-3)


def a_network():
    """Return what places points through a network, the network, and its optimiser."""
    layers = []
    for wide, narrow in ((WIDTH, 100), (100, 100), (100, 100)):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(100, 2))
    points = torch.rand(POINTS, WIDTH)
    return (lambda ends: network(points[ends])), network, lambda parameters: torch.optim.Adam(parameters, lr=1e-3)


def median_step(model, loss, batch, edges, steps):
    """Return the median duration of a step, in seconds."""
    torch.manual_seed(0)
    place, module, method = model()
    log_z = nn.Parameter(torch.zeros(()))
    parameters = [*module.parameters(), log_z] if loss is nc else [*module.parameters()]
    optimiser = method(parameters)
    heads = torch.randint(POINTS, (edges,))
    tails = torch.randint(POINTS, (edges,))
    rows = torch.arange(batch)[:, None]
    positives = rows + batch

    def step(first):
        ends = torch.cat((heads[first:first + batch], tails[first:first + batch]))
        features = place(ends)
        # Any row of the batch but the head's own.
        others = torch.randint(1, 2 * batch, (batch, NEGATIVES))
        columns = torch.cat((positives, (rows + others) % (2 * batch)), 1)
        away = features[:batch, None] - features[columns]
        optimiser.zero_grad()
        loss(away.square().sum(2), log_z).backward()
        nn.utils.clip_grad_value_(parameters, 4)
        optimiser.step()

    times = []
    warm = min(steps, 3)
    for k in range(steps + warm):
        first = k * batch % (edges - batch)
        start = time.perf_counter()
        step(first)
        times.append(time.perf_counter() - start)
    return statistics.median(times[warm:])


def main():
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", action="store_true", help="time a network, not a table")
    parser.add_argument("--edges", type=int, default=1_500_000, help="edges of an epoch")
    parser.add_argument("--steps", type=int, default=60, help="steps of which to take the median; fewer for large batches through a network")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.edges <= max(NETWORK_BATCHES) or options.steps < 1 or options.threads < 1:
        parser.error(f"edges must exceed {max(NETWORK_BATCHES)}; steps and threads must be at least 1")
    torch.set_num_threads(options.threads)
    model, losses, batches = a_table, (neg, nc, infonce, umap), BATCHES
    if options.network:
        model, losses, batches = a_network, (neg,), NETWORK_BATCHES
    for loss in losses:
        for batch in batches:
            steps = options.steps
            if options.network:
                steps = max(1, min(steps, 100_000 // batch))
            seconds = median_step(model, loss, batch, options.edges, steps)
            # How many of the points' values are zero makes no difference here.
            names = (f"{loss.__name__}-sparse", f"{loss.__name__}-dense") if options.network else (loss.__name__,)
            for name in names:
                print(name, batch, f"{1e3 * seconds * options.edges / batch:.1f}", flush=True)


if __name__ == "__main__":
    main()
