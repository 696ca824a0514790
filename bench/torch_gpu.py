#!/usr/bin/env python3
"""The same work as cne's benchmarks, in PyTorch on the same GPU.

    torch_gpu.py [--device cuda] [--seconds 60] [--small] [WHAT ...]

WHAT is any of ceilings, table, knn, allpairs, simclr (default: all, in this order). Prints
lines

    NAME <tab> VALUE <tab> UNIT <tab> NOTE

and stops to begin anything new after the given seconds. Inputs are random; each figure is
the median of several rounds between two synchronisations, after a warm-up.

    ceilings  a copy within the GPU's memory (bytes read and written), and products of
              8192 x 8192 matrices in float32, TF32 and bfloat16
    table     an epoch of 1.5 million edges of an embedding table [70000, 2], Neg-t-SNE,
              five negatives per head out of the batch, clipped gradients, SGD: operation
              by operation, and as a CUDA graph of one step
    knn       the 15 nearest of 70 000 and of 10^6 points of 50 values by products and
              topk, in blocks of queries; 10^6 by a few blocks, scaled
    allpairs  the repulsion between all pairs of 70 000 points in the plane: in blocks, and
              by a Triton kernel, which shows what a kernel of cne's own could reach
    simclr    a step of ResNet18 on 2048 views of 32 x 32 pixels, channels last, TF32 and
              bfloat16 (autocast); the network is bench/torch_resnet.py's
"""
import argparse
import importlib.util
import math
import os
import statistics
import sys
import time

START = time.perf_counter()

import torch  # noqa: E402
from torch import nn  # noqa: E402

EDGES, POINTS, NEGATIVES = 1_500_000, 70_000, 5


def say(name, value, unit, note=""):
    print(name, f"{value:.4g}", unit, note, sep="\t", flush=True)


class Clock:
    def __init__(self, device, seconds, small):
        self.device, self.seconds, self.small = device, seconds, small

    def over(self):
        return time.perf_counter() - START > self.seconds

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def time(self, f, rounds=5, per=1, warm=2):
        """Median seconds of one call of f, over rounds of `per` calls."""
        if self.small:
            rounds, per, warm = 1, 1, 1
        for _ in range(warm):
            f()
        self.wait()
        times = []
        for _ in range(rounds):
            begun = time.perf_counter()
            for _ in range(per):
                f()
            self.wait()
            times.append((time.perf_counter() - begun) / per)
        return statistics.median(times)


def ceilings(c):
    n = 1 << (12 if c.small else 28)
    a, b = torch.rand(n, device=c.device), torch.empty(n, device=c.device)
    say("copy", 2 * 4 * n / c.time(lambda: b.copy_(a), 7, 5) * 1e-9, "GB/s", f"{4 * n >> 20} MiB")
    n = 64 if c.small else 8192
    for name, dtype, tf32 in (("float32", torch.float32, False), ("tf32", torch.float32, True), ("bf16", torch.bfloat16, True)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        x, y = (torch.randn(n, n, device=c.device, dtype=dtype) for _ in range(2))
        z = torch.empty_like(x)
        say(f"product-{name}", 2 * n**3 / c.time(lambda: torch.mm(x, y, out=z), 5, 3) * 1e-12, "TFLOP/s", f"n={n}")


def table(c):
    heads, tails = (torch.randint(POINTS, (EDGES,), device=c.device) for _ in range(2))
    for batch in (64,) if c.small else (1024, 1 << 15, 1 << 19):
        weight = nn.Parameter(torch.randn(POINTS, 2, device=c.device))
        rows = torch.arange(batch, device=c.device)[:, None]
        edge = torch.stack((heads[:batch], tails[:batch])).flatten()

        def step():
            features = weight[edge]
            others = torch.randint(1, 2 * batch, (batch, NEGATIVES), device=c.device)
            columns = torch.cat((rows + batch, (rows + others) % (2 * batch)), 1)
            d2 = (features[:batch, None] - features[columns]).square().sum(2)
            p = 1 / (2 + d2)
            loss = -p[:, 0].clamp(1e-10, 1).log().sum() - (1 - p[:, 1:]).clamp(1e-10, 1).log().sum()
            (gradient,) = torch.autograd.grad(loss, weight)
            with torch.no_grad():
                weight.sub_(gradient.clamp_(-4, 4), alpha=1e-3)

        seconds = c.time(step, 5, 20)
        say(f"table-b{batch}", 1e3 * seconds * EDGES / batch, "ms/epoch", f"eager, {1e6 * seconds:.1f} us/step")
        if c.device.type == "cuda":
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    step()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            seconds = c.time(graph.replay, 5, 50)
            say(f"table-b{batch}-graph", 1e3 * seconds * EDGES / batch, "ms/epoch", f"CUDA graph, {1e6 * seconds:.1f} us/step")
        if c.over():
            return


def knn(c):
    torch.backends.cuda.matmul.allow_tf32 = True
    for n, take in ((700, None),) if c.small else ((POINTS, None), (1_000_000, 6)):
        x = torch.randn(n, 50, device=c.device)
        half = x.square().sum(1) / 2
        block = min(n, (1 << 28) // n)

        def some(first):
            q = x[first:first + block]
            s = torch.addmm(half.expand(len(q), n), q, x.t(), alpha=-1)
            return s.topk(16, 1, largest=False).indices

        starts = list(range(0, n, block))
        part = starts if take is None else starts[:take]
        seconds = c.time(lambda: [some(s) for s in part], 3, 1, 1) * len(starts) / len(part)
        say(f"knn-n{n}", seconds, "s", "TF32 products, topk, not exact" + ("" if take is None else f"; {take} of {len(starts)} blocks, scaled"))
        if c.over():
            return


def repulsion_blocks(x, block):
    """Forces [n, 2] and the sum of similarities over ordered pairs, in float32."""
    forces, total = torch.empty_like(x), torch.zeros((), device=x.device, dtype=torch.float64)
    for first in range(0, len(x), block):
        d = x[first:first + block, None] - x[None]
        q = 1 / (1 + d.square().sum(2))
        total += q.sum(dtype=torch.float64)
        forces[first:first + block] = (q.square()[..., None] * d).sum(1)
    return forces, total - len(x)


def triton_repulsion():
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, y, fx, fy, z, n, I: tl.constexpr, J: tl.constexpr):
        i = tl.program_id(0) * I + tl.arange(0, I)
        xi = tl.load(x + i, mask=i < n, other=0.0)[:, None]
        yi = tl.load(y + i, mask=i < n, other=0.0)[:, None]
        ax = tl.zeros([I], tl.float32)
        ay = tl.zeros([I], tl.float32)
        az = tl.zeros([I], tl.float32)
        for first in range(0, n, J):
            j = first + tl.arange(0, J)
            # Beyond the last point the similarity is 0.
            dx = xi - tl.load(x + j, mask=j < n, other=1e15)[None, :]
            dy = yi - tl.load(y + j, mask=j < n, other=0.0)[None, :]
            q = 1.0 / (1.0 + dx * dx + dy * dy)
            az += tl.sum(q, 1)
            q = q * q
            ax += tl.sum(q * dx, 1)
            ay += tl.sum(q * dy, 1)
        tl.store(fx + i, ax, mask=i < n)
        tl.store(fy + i, ay, mask=i < n)
        tl.store(z + i, az, mask=i < n)

    return kernel


def allpairs(c):
    n = 700 if c.small else POINTS
    x = 20 * torch.randn(n, 2, device=c.device)
    block = min(n, 512)
    seconds = c.time(lambda: repulsion_blocks(x, block), 3, 1, 1)
    say(f"allpairs-n{n}-blocks", 1e3 * seconds, "ms/step", "PyTorch, blocks of rows")
    if c.device.type != "cuda":
        return
    kernel = triton_repulsion()
    xs, ys = x[:, 0].contiguous(), x[:, 1].contiguous()
    fx, fy, z = (torch.full((n,), math.nan, device=c.device) for _ in range(3))
    best = None
    for rows, columns, warps in ((32, 128, 4), (64, 64, 4), (64, 128, 4), (128, 64, 4), (128, 64, 8), (32, 256, 4)):
        def step():
            kernel[((n + rows - 1) // rows,)](xs, ys, fx, fy, z, n, I=rows, J=columns, num_warps=warps)

        seconds = c.time(step, 3, 3, 1)
        best = min(best or (seconds, None), (seconds, (rows, columns, warps)))
    some = torch.randint(n, (256,), device=c.device)
    d = x[some].double()[:, None] - x.double()[None]
    q = 1 / (1 + d.square().sum(2))
    want = (q.square()[..., None] * d).sum(1)
    got = torch.stack((fx[some], fy[some]), 1).double()
    off = ((got - want).norm() / want.norm()).item()
    say(f"allpairs-n{n}-triton", 1e3 * best[0], "ms/step", f"blocks, warps {best[1]}; {n * n / best[0] * 1e-9:.0f} Gpairs/s; forces off by {off:.1e}; at 10^6 points {1e3 * best[0] * (1e6 / n) ** 2:.0f} ms/step, computed")


def simclr(c):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_resnet.py")
    spec = importlib.util.spec_from_file_location("torch_resnet", path)
    resnet = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(resnet)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    count = 8 if c.small else 2048
    for name in ("tf32", "bf16"):
        torch.manual_seed(1)
        net = resnet.network().to(c.device, memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=5e-4)
        views = torch.rand(count, 3, 32, 32, device=c.device).to(memory_format=torch.channels_last)

        def step():
            with torch.autocast(c.device.type, torch.bfloat16, enabled=name == "bf16"):
                resnet.step(net, optimizer, views)

        seconds = c.time(step, 3, 10, 4)
        say(f"simclr-{name}", 1e3 * seconds, "ms/step", f"{count} views, {count / seconds:.4g} views/s, channels last")
        if c.over():
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", choices=["ceilings", "table", "knn", "allpairs", "simclr", []], default=[])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the script")
    args = parser.parse_args()
    c = Clock(torch.device(args.device), args.seconds, args.small)
    name = torch.cuda.get_device_name() if c.device.type == "cuda" else "cpu"
    print(f"# PyTorch {torch.__version__} on {name}; imported after {time.perf_counter() - START:.1f} s", flush=True)
    for what in args.what or ["ceilings", "table", "knn", "allpairs", "simclr"]:
        if c.over():
            print(f"# out of time before {what}", flush=True)
            break
        try:
            globals()[what](c)
        except Exception as e:  # the others still count
            print(f"# {what} failed: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}", flush=True)


if __name__ == "__main__":
    main()
