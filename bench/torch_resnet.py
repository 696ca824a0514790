#!/usr/bin/env python3
"""Time training steps of SimCLR's network in PyTorch.

    torch_resnet.py [--views 64 256] [--rounds 5] [--threads 2]
    torch_resnet.py --device cuda --tf32 --channels-last --views 2048 --rounds 30

The network is as in the paper's runs on CIFAR-10: a ResNet18 whose first
convolution is 3x3 with stride 1, without pooling after it, and the head
512-1024-128. A step takes random images of 32x32 pixels through it, has InfoNCE
on the cosine compare the two halves with 16 negatives for each head, clips the
gradients, and lets SGD with momentum and weight decay move the weights. Making
views is not timed. Prints, for each number of views, the median over the
rounds, or on a GPU, which is given them all at once, the mean:

    views views-per-second

On a GPU a line with PyTorch's version comes first: to import it a second time, to
ask for that, would take long.

cne's figures come from BenchmarkPretraining of package simclr; bench/speed
has both take turns, and says how to run PyTorch at its best (-h).
"""
import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

NEGATIVES = 16
TEMPERATURE = 0.5


def conv_norm(inputs, outputs, size, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = conv_norm(inputs, outputs, 3, stride)
        self.second = conv_norm(outputs, outputs, 3, 1)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else conv_norm(inputs, outputs, 1, stride)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


def network():
    layers, width = [conv_norm(3, 64, 3, 1), nn.ReLU()], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(width, outputs, stride), Block(outputs, outputs, 1)]
        width = outputs
    head = [nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, 128)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *head)


def step(net, optimizer, views):
    b, device = len(views) // 2, views.device
    rows = functional.normalize(net(views), dim=1)
    heads = torch.arange(b, device=device)[:, None]
    others = (torch.randint(0, 2 * b - 1, (b, NEGATIVES), device=device) + heads + 1) % (2 * b)
    tails = rows[torch.hstack([heads + b, others])]
    logits = (rows[:b, None] * tails).sum(2) / TEMPERATURE
    loss = TEMPERATURE * functional.cross_entropy(logits, torch.zeros(b, dtype=torch.long, device=device))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 4)
    optimizer.step()


def timed(steps, net, optimizer, views):
    start = time.perf_counter()
    for _ in range(steps):
        step(net, optimizer, views)
    if views.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--views", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tf32", action="store_true", help="round the factors of products to 10 bits")
    parser.add_argument("--channels-last", action="store_true", help="have the channels of a pixel lie side by side")
    args = parser.parse_args()
    if args.device != "cpu":
        if not torch.cuda.is_available():
            raise SystemExit("PyTorch " + torch.__version__ + " sees no GPU")
        print("PyTorch", torch.__version__, flush=True)
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
    torch.backends.cudnn.benchmark = True
    order = torch.channels_last if args.channels_last else torch.contiguous_format
    for count in args.views:
        torch.manual_seed(1)
        net = network().to(args.device, memory_format=order)
        optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=5e-4)
        views = torch.rand(count, 3, 32, 32).to(args.device, memory_format=order)
        if args.device == "cpu":
            seconds = statistics.median([timed(1, net, optimizer, views) for _ in range(args.rounds + 1)][1:])
        else:
            # In the first steps, memory is allocated and algorithms are chosen; from
            # then on the GPU must not wait between steps.
            timed(10, net, optimizer, views)
            seconds = timed(args.rounds, net, optimizer, views) / args.rounds
        print(count, f"{count / seconds:.4g}", flush=True)


if __name__ == "__main__":
    main()
