"""Kernels as compiled, in random interleavings of their pipes: all must end with the same bytes.

What a kernel finds in the memories is random.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from davinci import machine as machines
from davinci.isa.core import Pipe, Space
from fuzz.interleaving import SLACK_BYTES, Run, Window
from fuzz.recorded_kernels import Kernel
from fuzz.stream_steps import Step, decode


def wrong_interleavings(
    kernel: Kernel, runs: int, seed: int, machine: str = "ascend910"
) -> list[str]:
    """What differs from program order in `runs` interleavings of the kernel's first block."""
    chip = machines.load(machine)
    sequential = frozenset(Pipe[name] for name in chip.sync.sequential_pipes)
    rng = np.random.default_rng(seed)
    steps = decode(kernel.streams[0])
    memories = contents(steps, rng)

    def run(straight: bool) -> Run:
        return Run([steps], [memories], sequential, chip.sync.queue_depth, rng, straight)

    wanted = run(straight=True).outcome
    if isinstance(wanted[0], str):
        return [f"{kernel.name}, in program order: {wanted[0]}"]
    found = []
    for _ in range(runs):
        outcome = run(straight=False).outcome
        if outcome != wanted:
            text = outcome[0] if isinstance(outcome[0], str) else "other bytes"
            found.append(f"{kernel.name}: {text}")
    return found


def contents(steps: Sequence[Step], rng: np.random.Generator) -> dict[Space, Window]:
    """What the kernel touches of each memory, at the start: numbers in GM, bytes elsewhere."""
    ends: dict[Space, list[int]] = defaultdict(list)
    for step in steps:
        for part in (*step.reads, *step.writes):
            ends[part.space] += [int(part.starts[0]), int(part.ends[-1])]
    found = {}
    for space, places in ends.items():
        first, size = min(places), max(places) - min(places)
        if space == Space.GM:
            # Sums of these do not depend on their order.
            numbers = rng.integers(-128, 129, size // 4 + 1).astype(np.float32) / 64
            data = numbers.view(np.uint8)[:size]
        else:
            data = rng.integers(0, 256, size, dtype=np.uint8)
        slack = rng.integers(0, 256, SLACK_BYTES, dtype=np.uint8)
        found[space] = Window(first, np.concatenate([data, slack]))
    return found
