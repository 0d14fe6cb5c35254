"""Random problems of memory planning that are known to fit, and how long the search takes for them.

    python benchmarks/proofs/packings.py --first 1 --count 20 [--slack 0.02] [--buffers 300]

A rectangle of the memory's size by some hundred times is cut into buffers: by lines from one side
to the other, at random places, and now and then into five that turn around the one in the middle,
which no such lines can cut. So a plan without any free byte exists. With a slack, that part of the
buffers is left out, and sizes of others are smaller by up to that part.

Prints height in units of the capacity, and seconds of the processor, one thread; exits with 1 where
a problem was not solved within --seconds, or a plan is wrong.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np

from davinci.planning import Budget, Buffer, Problem, faults, solve

CAPACITY = 1 << 20

Rectangle = tuple[int, int, int, int]
"""First time, last time, lowest byte and highest byte, the last ones outside."""


def cut(
    random: np.random.Generator, count: int, times: int, turned: float, unit: int
) -> list[Rectangle]:
    """A memory of CAPACITY bytes by `times`, cut into about `count` rectangles.

    Args:
        random: where cuts are.
        count: of rectangles.
        times: length of the longest possible lifetime.
        turned: share of cuts that make five rectangles.
        unit: bytes that all sizes are multiples of.
    """
    found: list[Rectangle] = [(0, times, 0, CAPACITY // unit)]
    tries = 0
    while len(found) < count and tries < 100 * count:
        tries += 1
        # Large rectangles are cut sooner, so that sizes are of some orders of magnitude.
        areas = np.array([float((b - a) * (d - c)) ** 0.7 for a, b, c, d in found])
        first, last, low, high = found[
            number := int(random.choice(len(found), p=areas / areas.sum()))
        ]
        if random.random() < turned and min(last - first, high - low) >= 3:
            x, y = (np.sort(random.choice(np.arange(a + 1, b), 2, replace=False)) for a, b in
                    ((first, last), (low, high)))  # fmt: skip
            (p, q), (r, s) = map(int, x), map(int, y)
            parts = [(first, q, low, r), (q, last, low, s), (p, last, s, high),
                     (first, p, r, high), (p, q, r, s)]  # fmt: skip
        elif random.random() < 0.5:
            if last - first < 2:
                continue
            at = int(random.integers(first + 1, last))
            parts = [(first, at, low, high), (at, last, low, high)]
        else:
            if high - low < 2:
                continue
            at = int(random.integers(low + 1, high))
            parts = [(first, last, low, at), (first, last, at, high)]
        found[number : number + 1] = parts
    return [(a, b, c * unit, d * unit) for a, b, c, d in found]


def packing(seed: int, count: int, slack: float, turned: float) -> Problem:
    """The buffers of one packing, in random order."""
    random = np.random.default_rng(seed)
    times = int(random.choice([50, 200, 1000]))
    unit = int(random.choice([1, 64, 4096]))
    rectangles = cut(random, count, times, turned, unit)
    random.shuffle(rectangles)
    buffers = []
    for first, last, low, high in rectangles:
        size = high - low
        if slack and random.random() < slack:
            continue
        if slack and random.random() < 0.5:
            size -= int(random.uniform(0, slack) * size) // unit * unit
        buffers.append(Buffer(size, first, last))
    return Problem(tuple(buffers))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--first", type=int, default=1, help="seed of the first packing")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--buffers", type=int, default=300)
    parser.add_argument("--slack", type=float, default=0.0)
    parser.add_argument("--turned", type=float, default=0.0, help="share of cuts into five")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    bad, taken = 0, []
    for seed in range(options.first, options.first + options.count):
        problem = packing(seed, options.buffers, options.slack, options.turned)
        began = time.process_time()
        plan = solve(problem, Budget(1 << 60, options.seconds), CAPACITY)
        seconds = time.process_time() - began
        wrong = faults(problem, plan.offsets)
        bad += bool(wrong) or plan.height > CAPACITY
        taken.append(seconds)
        print(
            f"{seed:6} {len(problem.buffers):5} buffers  {plan.height / CAPACITY:.4f} "
            f"{seconds:7.2f} s  {plan.algorithm} {wrong[:1] or ''}",
            flush=True,
        )
    print(f"{bad} of {options.count} not solved, median {statistics.median(taken):.2f} s")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
