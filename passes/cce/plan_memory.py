"""plan-memory: gives every on-chip buffer of a kernel its address.

before:
    %a = memref.alloc() : memref<64x64xf16, #cce.space<"UB">>
    %b = memref.alloc() : memref<64x64xf16, #cce.space<"UB">>
after:
    %a = memref.alloc() {cce.address = 0 : i64} : memref<64x64xf16, #cce.space<"UB">>
    %b = memref.alloc() {cce.address = 8192 : i64} : memref<64x64xf16, #cce.space<"UB">>

Each memory is planned by itself, with its capacity and alignment from the machine file. Buffers
that have an address keep it.

Buffers share bytes only if they must: where one has to wait until another is free, pipes stand
still. Which share is decided by who works on them. What a single pipe writes and reads follows in
its queue, so such buffers share first; then what a pipe of the core writes and another one reads;
what a transfer fills last, because a transfer that waits for its buffer comes late. Two share only
if one holds nothing that is needed while the other does (`davinci.passes.analysis.lifetimes`), so
buffers that a loop reuses in every iteration share, too. As many buffers as fit have a place of
their own, at least among those of the same loops and branches; if they all do, among those of other
ones too.

`spare-bytes` at the end of UB stay free where all buffers fit in front of them.

In UB, places are chosen so that the operands of a vector instruction do not meet in a bank
(`davinci.passes.analysis.bank_conflicts`): sources begin in different halves of the bank groups, a
result goes to another row of banks than what is read with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from davinci import machine as machines
from davinci.dialects.cce.buffers import space_name
from davinci.errors import CompileError
from davinci.machine import Machine, OnChipMemory, Vector
from davinci.mlir import Op, ir, location_text, operations, symbol_name
from davinci.passes import builder
from davinci.passes.analysis.bank_conflicts import BankConflicts
from davinci.passes.analysis.kernels import kernels, seen_by
from davinci.passes.analysis.lifetimes import AllocatedBuffer, alloc_bytes, lifetimes
from davinci.passes.cce.placement import Cost, Free, GapSteps, PlacedPiece, place
from davinci.passes.pipeline.base import Pass, fail, option, register_pass
from davinci.units import BLOCK_BYTES, REPEAT_BYTES, round_up

TRANSFERS = frozenset(["MTE1", "MTE2", "MTE3"])
"""Pipes that fill buffers ahead of the work on them."""

ALWAYS = -1
"""The lifetime, as bits, of a buffer that shares its place with none."""


@register_pass
@dataclass(frozen=True)
class PlanMemoryPass(Pass):
    """Give every on-chip buffer an address (cce.address)."""

    NAME = "plan-memory"

    machine: str = option("ascend910", "machine file that gives capacities, alignments and banks")
    spare_bytes: int = option(0, "bytes at the end of UB that stay free where buffers fit without")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        for kernel in kernels(op):
            for space, buffers in _by_space(kernel).items():
                spare = self.spare_bytes if space == "UB" else 0
                _plan(kernel, buffers, seen_by(kernel, machine), space, spare)


def needed_bytes(kernel: Op, machine: Machine) -> dict[str, int]:
    """Bytes that a kernel's buffers need at least, of each memory that cannot hold all of them side
    by side."""
    total: dict[str, int] = {}
    for alloc in operations(kernel, "memref.alloc"):
        space = space_name(alloc.result.type)
        if space != "GM":
            align = machine.buffer(space).align_bytes
            total[space] = total.get(space, 0) + round_up(alloc_bytes(alloc), align)
    tight = {space for space, size in total.items() if size > machine.buffer(space).bytes}
    if not tight:
        return {}
    return {
        space: _Planner(kernel, buffers, machine, space).least_bytes()
        for space, buffers in _by_space(kernel).items()
        if space in tight
    }


def _by_space(kernel: Op) -> dict[str, list[AllocatedBuffer]]:
    found: dict[str, list[AllocatedBuffer]] = {}
    for buffer in lifetimes(kernel):
        found.setdefault(buffer.space, []).append(buffer)
    return found


def _plan(
    kernel: Op, buffers: list[AllocatedBuffer], machine: Machine, space: str, spare: int
) -> None:
    """Sets the addresses of all buffers of one memory.

    Args:
        spare: bytes at its end that stay free if all buffers fit in front of them.
    """
    memory = machine.buffers.of(space)
    if memory is None:
        fail(buffers[0].alloc, f"is in a memory that {machine.name} has not", found=space)
    planner = _Planner(kernel, buffers, machine, space)
    found = (planner.best(spare) if spare else None) or planner.best()
    if found is None:
        _overflow(kernel, buffers, memory, planner.least_bytes())
    for buffer, address in zip(buffers, found, strict=True):
        buffer.alloc.attributes["cce.address"] = builder.as_attribute(address)


class _Planner:
    """Tries places for the buffers of one memory, with ever fewer wishes."""

    def __init__(
        self, kernel: Op, buffers: Sequence[AllocatedBuffer], machine: Machine, space: str
    ) -> None:
        self._buffers, self._memory = buffers, machine.buffer(space)
        self._kernel, self._space, self._unit = kernel, space, machine.vector
        self._scopes = [buffer.scope for buffer in buffers]
        self._stretches = [buffer.stretches for buffer in buffers]
        self._by_need = sorted(range(len(buffers)), key=lambda number: _need(buffers[number]))

    @cached_property
    def _conflicts(self) -> BankConflicts | None:
        """Where the vector unit may meet itself."""
        return BankConflicts(self._kernel, self._unit) if self._space == "UB" else None

    def best(self, spare: int = 0) -> list[int] | None:
        """Addresses, None if the buffers do not fit in front of the last `spare` bytes, however
        they share."""
        transferred = sum(_need(buffer)[0] < 2 for buffer in self._buffers)
        best: tuple[int, list[int]] | None = None
        for steps in self._steps():
            found = self._most_apart(steps, self._memory.bytes - spare)
            if found and (best is None or found[0] > best[0]):
                best = found
            if best and best[0] >= transferred:
                break
        return best[1] if best else None

    def least_bytes(self) -> int:
        """What all buffers take in a memory that is large enough, sharing what they can."""
        found = self._place(0, GapSteps(self._memory.align_bytes), 1 << 62)
        assert found is not None, "a memory of 2**62 bytes holds all buffers"
        ends = (a + b.size_bytes for a, b in zip(found, self._buffers, strict=True))
        return max(ends, default=0)

    def _steps(self) -> list[GapSteps]:
        """Distances between buffers that are tried: those first which keep operands of the vector
        unit in other banks."""
        align, unit = self._memory.align_bytes, self._unit
        if self._conflicts is None:
            return [GapSteps(align)]
        groups = unit.bank_groups * BLOCK_BYTES
        halves = groups // REPEAT_BYTES
        rows = unit.bank_groups * unit.bank_bytes
        return [
            GapSteps(align, REPEAT_BYTES, halves, rows, BLOCK_BYTES),
            GapSteps(align, REPEAT_BYTES, halves, 0, BLOCK_BYTES),
            GapSteps(align),
        ]

    def _most_apart(self, steps: GapSteps, capacity: int) -> tuple[int, list[int]] | None:
        """The largest number of buffers that have a place of their own, and all addresses."""
        low, high = 0, len(self._buffers)
        for scopes in ([ALWAYS] * high, self._scopes, self._stretches):
            best = self._place(high, steps, capacity, scopes)
            if best:
                return high, best
        while low < high:
            middle = (low + high) // 2
            found = self._place(middle, steps, capacity)
            if found:
                best, low = found, middle + 1
            else:
                high = middle
        return (low - 1, best) if best else None

    def _place(
        self, apart: int, steps: GapSteps, capacity: int, scopes: Sequence[int] | None = None
    ) -> list[int] | None:
        """Addresses with the first `apart` buffers by need in places of their own, at the times of
        their `scopes`, by default of their stretches."""
        lives = [buffer.live for buffer in self._buffers]
        for number in self._by_need[:apart]:
            lives[number] = (scopes or self._stretches)[number]
        pieces = [
            PlacedPiece(_rounded(buffer, self._memory), live, _given(buffer))
            for buffer, live in zip(self._buffers, lives, strict=True)
        ]
        cost: Cost = Free()
        if steps.units and self._conflicts:
            cost = _BankCost(self._conflicts, self._buffers, self._unit)
        return place(pieces, capacity, steps, cost)


class _BankCost(Cost):
    """Cycles lost in the banks of UB."""

    def __init__(
        self, conflicts: BankConflicts, buffers: Sequence[AllocatedBuffer], unit: Vector
    ) -> None:
        self._conflicts, self._buffers = conflicts, buffers
        self._groups = unit.bank_groups * BLOCK_BYTES
        self._row = unit.bank_groups * unit.bank_bytes
        self._bank = unit.bank_bytes
        self._places: dict[ir.Value | str, int] = {}
        self._known: dict[tuple[int, ...], float] = {}
        self._losses: dict[int, Callable[[int], float]] = {}

    def of(self, number: int, address: int) -> float:
        """Places that look the same to the banks cost the same."""
        buffer = self._buffers[number]
        first, last = address // self._row, (address + buffer.size_bytes - 1) // self._row
        where = first if first == last else address // self._bank
        key = (number, address % self._groups, first, last, where)
        if key not in self._known:
            if number not in self._losses:
                self._losses[number] = self._conflicts.losses(buffer.alloc.result, self._places)
            self._known[key] = self._losses[number](address)
        return self._known[key]

    def settle(self, number: int, address: int) -> None:
        self._losses.clear()
        self._places[self._buffers[number].alloc.result] = address


def _need(buffer: AllocatedBuffer) -> tuple[int, int]:
    """How much a buffer needs a place of its own, least first; small ones cost little."""
    if buffer.filled_by & TRANSFERS:
        return 0, buffer.size_bytes
    return 1 if len(buffer.pipes) > 1 else 2, buffer.size_bytes


def _rounded(buffer: AllocatedBuffer, memory: OnChipMemory) -> int:
    return round_up(buffer.size_bytes, memory.align_bytes)


def _given(buffer: AllocatedBuffer) -> int:
    attributes = buffer.alloc.attributes
    return int(attributes["cce.address"].value) if "cce.address" in attributes else -1


def _overflow(
    kernel: Op, buffers: list[AllocatedBuffer], memory: OnChipMemory, least_bytes: int
) -> NoReturn:
    """Raises the error that lists the buffers that hold something when most bytes are in use."""

    def at(time: int) -> list[AllocatedBuffer]:
        return [buffer for buffer in buffers if buffer.live >> time & 1]

    def live_bytes(time: int) -> int:
        return sum(_rounded(buffer, memory) for buffer in at(time))

    begins = [(buffer.live & -buffer.live).bit_length() - 1 for buffer in buffers if buffer.live]
    peak = max(begins, key=live_bytes)
    rows = [f"{'bytes':>10}  buffer"]
    for buffer in sorted(at(peak), key=lambda buffer: -buffer.size_bytes):
        place_of = location_text(buffer.alloc.location)
        size = _rounded(buffer, memory)
        rows.append(f"{size:>10}  {buffer.alloc.result.type} at {place_of}")
    total = live_bytes(peak)
    rows.append(f"{total:>10}  in all, of {memory.bytes}")
    raise CompileError(
        f"the buffers of kernel @{symbol_name(kernel)} do not fit {buffers[0].space}",
        where=location_text(kernel.location),
        found=f"{total} bytes alive at once, {least_bytes} with gaps between buffers",
        expected=f"at most {memory.bytes} bytes",
        hint=f"use tiles of {100 * memory.bytes // least_bytes} % of the size; "
        "alive at the peak:\n" + "\n".join(rows),
    )
