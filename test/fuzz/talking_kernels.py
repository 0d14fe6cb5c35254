"""Compiled kernels whose cores meet in the middle, without some of their synchronisation.

The streams of all blocks, as they ran once, are one graph. A mutant lacks a flag or half of one, a
barrier, a post, a wait for counters, or all that a block does from its first post on; it runs again
from its records, all blocks together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from davinci.errors import DeviceFault
from davinci.isa.core import Records, Space
from davinci.isa.counters import LINE_BYTES
from fuzz.happens_before import Order
from fuzz.recorded_kernels import Kernel, Recordable, record
from fuzz.stream_steps import END_POLL, POLL, POST, SCALAR, SYNC, Conflicts, Step, decode, matched
from fuzz.sync_mutation import sequential_pipes
from fuzz.talking_launches import said

Place = tuple[int, int]
"""A block, and the number of a step of it."""


def talking(model: Recordable, cores: int) -> list[TalkingKernel]:
    """The kernels of a network whose blocks wait for each other."""
    found = [TalkingKernel(kernel) for kernel in record(model, cores)]
    return [kernel for kernel in found if kernel.posts]


class TalkingKernel:
    """A kernel as it ran.

    Attributes:
        posts: of all blocks.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.name, self._kernel = kernel.name, kernel
        self._steps = [decode(records, block) for block, records in enumerate(kernel.streams)]
        self._places = [(b, i) for b, steps in enumerate(self._steps) for i in range(len(steps))]
        self._number = {place: number for number, place in enumerate(self._places)}
        self.posts = [(b, i) for b, i in self._places if self._steps[b][i].name == POST]
        self._flat = [step for steps in self._steps for step in steps]
        self._conflicts: Conflicts | None = None

    def sound(self, left_out: Collection[Place]) -> bool:
        """Whether all is ordered without some steps; nothing runs."""
        if self._conflicts is None:
            self._conflicts = Conflicts(self._flat, self._lines())
        without = {self._number[place] for place in left_out}
        return Order(self._flat, sequential_pipes(), without).sound(self._conflicts)

    def _lines(self) -> set[int]:
        found: set[int] = set()
        for step in self._flat:
            if step.name == POST:
                found.add(step.values["line"])
            elif step.name == POLL:
                first, count = step.values["lines"], step.values["count"]
                found.update(range(first, first + count * LINE_BYTES, LINE_BYTES))
        return found

    def fault(self, left_out: Collection[Place]) -> str:
        """Runs all blocks without some steps; the first words of the fault, or ""."""
        kernel = self._kernel
        absent = set(left_out)

        def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            self._run(core, block, [i for b, i in absent if b == block])

        try:
            kernel.device.launch("again", program, [], len(kernel.streams), talks=True)
        except DeviceFault as error:
            return said(error)
        return ""

    def _run(self, core: Any, block: int, absent: Collection[int]) -> None:
        """Hands over the records of a block; counters that the scalar unit stored are put back."""
        records, steps = self._kernel.streams[block], self._steps[block]
        kept = np.ones(len(records), np.bool_)
        kept[list(absent)] = False
        begun = 0
        for i, low, value in _counted(steps):
            core.consume(_some(records, kept, begun, i))
            begun = i
            memory = core.memory(Space.UB)
            memory.data[low : low + 4] = np.array([value], np.int32).view(np.uint8)
            memory.written[low : low + 4] = 1
        core.consume(_some(records, kept, begun, len(records)))

    def mutants(self) -> Iterator[tuple[str, set[Place]]]:
        """Yields the kind of each mutant, and the places of the instructions that it lacks."""
        for block, records in enumerate(self._kernel.streams):
            steps = self._steps[block]
            for pair in matched(records.tolist()):
                yield "flag", {(block, i) for i in pair}
            for i, step in enumerate(steps):
                if step.name in (*SYNC, POST):
                    yield "count" if step.name == POST else "flag", {(block, i)}
            for i, end in _waits(steps):
                yield "count", {(block, i), (block, end)}
            first = min(i for b, i in self.posts if b == block)
            yield "core set", {(block, i) for i in range(first, len(steps))}
            yield "core set", {(block, i) for i in range(len(steps))}


def _some(records: Records, kept: Any, first: int, end: int) -> Records:
    """The records from `first` to `end` that `kept` marks."""
    return records[first:end][kept[first:end]]


def _counted(steps: Sequence[Step]) -> Iterator[tuple[int, int, int]]:
    """Where the scalar unit stores counters, the address of each, and the number: that of the next
    post for the first one, of the post behind it for the second."""
    stored: list[tuple[int, int]] = []
    for i, step in enumerate(steps):
        if step.name == SCALAR and step.values["stores"] and step.values["space"] == Space.UB:
            count, low = step.values["stores"], step.values["store_low"]
            stored += [(i, low + n * LINE_BYTES) for n in range(count)]
        elif step.name == POST and stored:
            place, low = stored.pop(0)
            yield place, low, step.values["value"]


def _waits(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """Each poll with its end."""
    begun = 0
    for i, step in enumerate(steps):
        if step.name == POLL:
            begun = i
        elif step.name == END_POLL:
            yield begun, i
