"""What launches read past the L2, on machines where transfers can leave it out.

before:
    call @add(%x, %y, %z)    // each of 128 MB, of which the L2 holds 192
after:
    call @add(%x, %y, %z) {ascend.past_l2 = [0, 1]}

An array that is not in the L2 when a launch reads it, and will not be any more when the next one
does, only drives out what is: results that others read soon, or that need not go to the memory at
all if the next launch overwrites them. That is told from the list of launches, which runs again and
again, and from the bytes of their arrays: those that were not used for longest leave the L2 first.
Kernels that read an array once, whatever their tiles, are those of elementwise operators.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

from davinci.dialects.ascend_types import tensor_of
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.passes.analysis.group_graph import operators_of
from davinci.passes.analysis.kernels import known_kernels
from davinci.passes.ascend.host_function import Launch, Place, range_of
from davinci.passes.ascend.known_numbers import BROADCAST
from davinci.passes.ascend.tensor_ops import is_elementwise


def reading_past_l2(launches: Sequence[Launch], root: Op, machine: Machine) -> list[Launch]:
    """The launches, with what each of them reads past the L2.

    Args:
        root: the module of their kernels.
    """
    if machine.l2.bypass_offset_bytes is None:
        return list(launches)
    times = _Times(launches)
    if times.total_bytes <= machine.l2.bytes:
        return list(launches)
    found, kernels = [], known_kernels(root)
    for number, launch in enumerate(launches):
        inputs = len(launch.buffers) - launch.outputs
        known = kernels.get(launch.kernel)
        once = () if known is None else sorted(arguments_read_once(known))
        past = tuple(
            place
            for place in once
            if place < inputs and times.is_far(number, place, machine.l2.bytes)
        )
        found.append(replace(launch, past_l2=past))
    return found


def arguments_read_once(kernel: Op) -> frozenset[int]:
    """Numbers of a kernel's arguments of which each element is read once: those of the shape of the
    results of elementwise operators, if it has no others."""
    operators = operators_of(kernel)
    if not all(is_elementwise(op) or op.name == BROADCAST for op in operators):
        return frozenset()
    counts = {tensor_of(result.type).count for op in operators for result in op.results}
    arguments = kernel.regions[0].blocks[0].arguments
    whole = (i for i, x in enumerate(arguments) if math.prod(ir.MemRefType(x.type).shape) in counts)
    return frozenset(whole) if len(counts) == 1 else frozenset()


class _Times:
    """When launches touch which bytes, run after run.

    Attributes:
        total_bytes: that all of them touch.
    """

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._touched: list[tuple[int, Hashable]] = []
        self._sizes: dict[Hashable, int] = {}
        self._first: list[int] = []
        for launch in launches:
            self._first.append(len(self._touched))
            for number, (place, kind) in enumerate(launch.buffers):
                key = _key(place, kind)
                self._sizes[key] = key[-1] - key[-2]
                self._touched.append((number, key))
        self.total_bytes = sum(self._sizes.values())

    def is_far(self, launch: int, number: int, most: int) -> bool:
        """Whether an L2 of so many bytes has not what a launch reads, as its operand `number`, nor
        will have it when it is touched again."""
        at = self._first[launch] + number
        return all(self._is_far(at, step, most) for step in (-1, 1))

    def _is_far(self, at: int, step: int, most: int) -> bool:
        """Whether more bytes than these are touched until the same are touched next, or were
        before, with these."""
        _, key = self._touched[at]
        seen, taken = {key}, self._sizes[key]
        for distance in range(1, len(self._touched)):
            _, other = self._touched[(at + step * distance) % len(self._touched)]
            if other == key or taken > most:
                break
            if other not in seen:
                seen.add(other)
                taken += self._sizes[other]
        return taken > most


def _key(place: Place, kind: ir.MemRefType) -> tuple[Hashable, int, int]:
    """Where bytes lie: a storage, or the arena, and their range in it."""
    storage = place.storage
    begin, end = range_of(place, kind)
    if storage.kind == "arena":
        return "arena", storage.offset + begin, storage.offset + end
    return id(storage), begin, end
