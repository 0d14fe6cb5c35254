"""Kernels as compiled, in random interleavings of their pipes and cores: all must end with the same
bytes.

What a kernel finds in the memories of a core is random. In global memory it is what the launch
found there, if that was kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from davinci.isa.core import Pipe, Space
from davinci.units import BLOCK_BYTES, round_up
from fuzz.interleaving import SLACK_BYTES, Bytes, Run, Window
from fuzz.interleaving_fuzz import difference
from fuzz.recorded_kernels import Kernel
from fuzz.recorded_launches import RecordedLaunch
from fuzz.stream_steps import Step, decode

Memories = dict[Space, Window]


def wrong_interleavings(kernel: Kernel | RecordedLaunch, runs: int, seed: int) -> list[str]:
    """What differs from program order in `runs` interleavings of the first block of a kernel, or of
    all cores of a launch on a split machine: which interleaving, and where its first other byte
    is."""
    sync = kernel.device.machine.sync
    sequential = frozenset(Pipe[name] for name in sync.sequential_pipes)
    rng = np.random.default_rng(seed)
    if isinstance(kernel, RecordedLaunch):
        cores, places = list(map(str, kernel.streams)), [seat.place for seat in kernel.streams]
        programs = [decode(records, i) for i, records in enumerate(kernel.streams.values())]
        memories = contents(programs, rng, kernel.gm)
    else:
        cores, places = ["block 0"], []
        programs = [decode(kernel.streams[0])]
        memories = contents(programs, rng)

    def run(straight: bool) -> Run:
        return Run(programs, memories, sequential, sync.queue_depth, rng, straight, places)

    wanted = run(straight=True)
    if isinstance(wanted.outcome[0], str):
        return [f"{kernel.name}, in program order: {wanted.outcome[0]}"]
    found = []
    for number in range(runs):
        if text := _difference(wanted, run(straight=False), cores):
            found.append(f"{kernel.name}, interleaving {number}: {text}")
    return found


def _difference(wanted: Run, found: Run, cores: Sequence[str]) -> str:
    """How an interleaving ended otherwise than program order, "" if it did not."""
    if wanted.outcome == found.outcome:
        return ""
    if isinstance(found.outcome[0], str):
        return found.outcome[0]
    for name, core, other in zip(cores, wanted.cores, found.cores, strict=True):
        for space, window in core.memories.items():
            if where := difference(window.data, other.memories[space].data):
                owner = "" if space == Space.GM else f" of {name}"
                return f"other bytes in {space.name}{owner}, {window.origin:#x} + {where}"
        if core.seen != other.seen:
            return f"the scalar unit of {name} has read other bytes"
    return ""


def contents(
    programs: Sequence[Sequence[Step]], rng: np.random.Generator, gm: Bytes | None = None
) -> list[Memories]:
    """What each core finds in its memories and all of them in GM, as far as they touch it.

    Args:
        gm: bytes of global memory from address 0 on; None: numbers at random.
    """
    first, size = _span([step for steps in programs for step in steps])[Space.GM]
    if gm is None:
        # Sums of these do not depend on their order.
        numbers = rng.integers(-128, 129, size // 4).astype(np.float32) / 64
        data = numbers.view(np.uint8)
    else:
        data = gm[first : first + size]
    everywhere = _window(first, data, rng)
    found = []
    for steps in programs:
        own = {Space.GM: everywhere}
        for space, (low, count) in _span(steps).items():
            if space != Space.GM:
                own[space] = _window(low, rng.integers(0, 256, count, dtype=np.uint8), rng)
        found.append(own)
    return found


def _window(first: int, data: Bytes, rng: np.random.Generator) -> Window:
    return Window(first, np.concatenate([data, rng.integers(0, 256, SLACK_BYTES, dtype=np.uint8)]))


def _span(steps: Iterable[Step]) -> dict[Space, tuple[int, int]]:
    """The first byte that steps touch of each memory and the bytes from there to the last one, in
    whole blocks; of global memory in any case."""
    ends: dict[Space, list[int]] = defaultdict(list)
    for step in steps:
        for part in (*step.reads, *step.writes):
            ends[part.space] += [int(part.starts[0]), int(part.ends[-1])]
    ends.setdefault(Space.GM, [0, 0])
    found = {}
    for space, places in ends.items():
        first = min(places) // BLOCK_BYTES * BLOCK_BYTES
        found[space] = first, round_up(max(places) - first, BLOCK_BYTES)
    return found
