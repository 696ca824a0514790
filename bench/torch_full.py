#!/usr/bin/env python3
"""Time loss and gradient of a batch against all of itself in PyTorch on the CPU.

    torch_full.py [--batch 1024] [--rounds 15] [--threads 2] [--forms]

A batch of b edges has 2b rows of features: row i is the head and row b + i the
tail of edge i. The negatives of head i are all rows but these two (m = 2b - 2,
loss.negatives: full in cne). Timed is what model/op's Contrastive and its
gradient do: from the features to the loss, summed over the batch, and back to
the gradient of all features by autograd. Takes 2.5 GB of memory.

    neg, nc, infonce, umap   q = 1 / (1 + d2) in the plane, arguments of
                             logarithms clamped to [1e-10, 1], c = 1 for neg;
                             infonce and umap in other dimensions, too
    infonce, cosine          q = exp(cos / 0.5) of unit rows of width 128

A user of PyTorch may write each in several forms: squared distances through the
differences of all pairs [b, 2b, d], coordinate by coordinate, by torch.cdist, or
by |a|2 + |b|2 - 2ab; the softmax by logsumexp or by cross_entropy. All leave head
and tail out by a constant matrix that is added, which costs nothing on the way
back. A form whose loss or gradient differs from the first one's is not timed:
|a|2 + |b|2 - 2ab is too coarse for umap, whose gradient grows as 1 / d2. The
forms take turns in each round. Prints a heading and, for each loss, the form with the
least median over the rounds, as comma-separated values

    loss,metric,width,batch,form,milliseconds

or all forms with --forms. cne's figures come from BenchmarkFullBatch of
package model/op; bench/speed has both take turns. How to install PyTorch and run it at its best:
bench/speed -h, and

    LD_LIBRARY_PATH=$(dirname $(dpkg -L libopenblas0-openmp | grep libopenblas.so.0$)) \\
    LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 \\
    /usr/bin/python3 bench/torch_full.py
"""
import argparse
import statistics
import sys
import time

import torch
from torch.nn import functional

FLOOR = 1e-10
FAR = 1e30  # squared distance of what is no negative; finite, for NC's gradient
TEMPERATURE = 0.5
SPREAD = 20  # standard deviation of an embedding's coordinates
WIDTH = 128


def log(x):
    """Logarithm of the clamped argument."""
    return x.clamp(FLOOR, 1).log()


# Forms of the squared distances [b, 2b] of heads and rows.


def differences(f, b):
    """All pairs and coordinates at once."""
    return (f[:b, None] - f).square().sum(2)


def planes(f, b):
    """Coordinate by coordinate."""
    first, *others = f.t().contiguous()
    away = (first[:b, None] - first).square()
    for x in others:
        away += (x[:b, None] - x).square()
    return away


def cdist(f, b):
    """PyTorch's own distances, without a root of what may be 0 or less."""
    return torch.cdist(f[:b], f, compute_mode="donot_use_mm_for_euclid_dist").square()


def products(f, b):
    """One matrix product; rounding may make small distances negative."""
    norms = f.square().sum(1)
    return torch.addmm(norms[:b, None] + norms, f[:b], f.t(), alpha=-2).clamp(min=0)


# The losses take the squared distances of the negatives [b, 2b] and of the positives [b],
# and log Z.


def neg(away, near, _):
    """Neg-t-SNE with c = 1."""
    return -log(1 / (2 + near)).sum() - log(1 - 1 / (2 + away)).sum()


def nc(away, near, log_z):
    """NC-t-SNE with the learnt log Z."""
    c = (away.shape[1] - 2) * log_z.exp()
    return -log(1 / (1 + c * (1 + near))).sum() - log(1 - 1 / (1 + c * (1 + away))).sum()


def infonce(away, near, _):
    """InfoNC-t-SNE with the positive in the denominator."""
    q = 1 / (1 + near)
    return (((1 / (1 + away)).sum(1) + q).log() - log(q)).sum()


def umap(away, near, _):
    """UMAP's loss."""
    return -log(1 / (1 + near)).sum() - log(1 - 1 / (1 + away)).sum()


# Forms of InfoNCE on cosines; none is -FAR where a row meets itself, else 0.


def logsumexp(f, b, none):
    """The denominator as it is defined."""
    heads = f[:b] / TEMPERATURE
    return (torch.addmm(none, heads, f.t()).logsumexp(1) - (heads * f[b:]).sum(1)).sum()


def cross_entropy(f, b, none):
    """A classifier that is to find the tail."""
    logits = torch.addmm(none, f[:b] / TEMPERATURE, f.t())
    return functional.cross_entropy(logits, torch.arange(b, 2 * b), reduction="sum")


def euclidean_steps(loss, width, b):
    """Return the steps of a Euclidean loss, by the names of their forms."""
    torch.manual_seed(0)
    f = (SPREAD * torch.randn(2 * b, width)).requires_grad_()
    log_z = torch.tensor(-2.0, requires_grad=loss is nc)
    rows = torch.arange(b)
    far = torch.zeros(b, 2 * b)
    far[rows, rows] = far[rows, b + rows] = FAR

    def step(form):
        f.grad = log_z.grad = None
        near = (f[:b] - f[b:]).square().sum(1)
        value = loss(form(f, b) + far, near, log_z)
        value.backward()
        return value, f.grad

    return {form.__name__: lambda form=form: step(form) for form in (differences, planes, cdist, products)}


def cosine_steps(b):
    """Return the steps of InfoNCE on cosines."""
    torch.manual_seed(0)
    f = functional.normalize(torch.randn(2 * b, WIDTH)).requires_grad_()
    none = torch.zeros(b, 2 * b)
    none.fill_diagonal_(-FAR)

    def step(form):
        f.grad = None
        value = form(f, b, none)
        value.backward()
        return value, f.grad

    return {form.__name__: lambda form=form: step(form) for form in (logsumexp, cross_entropy)}


def exact(name, steps):
    """Return the steps with the same loss and gradient as the first."""
    same, first = {}, None
    for form, step in steps.items():
        value, grad = step()
        first = first or (value, grad)
        if torch.allclose(value, first[0], rtol=1e-4) and (grad - first[1]).norm() <= 1e-3 * first[1].norm():
            same[form] = step
        else:
            print(f"torch_full.py: {name} by {form} is not exact, and left out", file=sys.stderr)
    return same


def main():
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024, help="edges")
    parser.add_argument("--rounds", type=int, default=15, help="of which the median is taken; each form runs once in each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--forms", action="store_true", help="print all forms, not only the fastest")
    options = parser.parse_args()
    if options.batch < 2 or options.rounds < 1 or options.threads < 1:
        parser.error("a batch has at least 2 edges; rounds and threads must be at least 1")
    torch.set_num_threads(options.threads)
    b = options.batch
    euclidean = [(loss, 2) for loss in (neg, nc, infonce, umap)]
    euclidean += [(infonce, width) for width in (1, 3, 10, 50)] + [(umap, 3)]
    cases = [(loss.__name__, "euclidean", width, euclidean_steps(loss, width, b)) for loss, width in euclidean]
    cases.append(("infonce", "cosine", WIDTH, cosine_steps(b)))
    print("loss,metric,width,batch,form,milliseconds")
    for loss, metric, width, steps in cases:
        steps = exact(f"{loss}, {metric}, width {width}", steps)
        times = {form: [] for form in steps}
        for _ in range(options.rounds):
            for form, step in steps.items():
                start = time.perf_counter()
                step()
                times[form].append(1e3 * (time.perf_counter() - start))
        medians = {form: statistics.median(t) for form, t in times.items()}
        for form in medians if options.forms else [min(medians, key=medians.get)]:
            print(f"{loss},{metric},{width},{b},{form},{medians[form]:.2f}", flush=True)


if __name__ == "__main__":
    main()
