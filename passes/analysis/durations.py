"""How long the machine takes for a cce operation, estimated from its shapes and the machine file.

What depends on addresses (banks, lines) is left out; reads are taken to come from memory, writes to
stay in the L2. An estimate serves to choose an order, nothing else. All figures are cycles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from davinci.dialects.cce.buffers import Buffer, buffer_of
from davinci.dialects.cce.windows import Windows
from davinci.isa.core import Pipe
from davinci.isa.strides import merge_dims, split_run
from davinci.machine import Machine, Vector
from davinci.mlir import Op, ir
from davinci.passes.analysis.vector_work import ELEMENTWISE, nests_of, parts_of
from davinci.units import FRACTAL_SIDE, ceil_div, round_up

BY_ROWS = ("vector_dup", "vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin")
"""Operations, without their dialect, of which a repeat does a row."""


@dataclass(frozen=True)
class Duration:
    """When an operation that its pipe starts at cycle 0 has done what.

    Attributes:
        busy: when the pipe can start the next one.
        result: when what it writes is there.
        issue: how long the scalar unit issues its instructions.
        of_memory: of the memory's time that is this core's; both other times are longer while
            transfers before it take that.
    """

    busy: int
    result: int
    issue: int
    of_memory: int = 0


class Durations:
    """Durations of the operations of a kernel, remembered by name and types.

    Args:
        machine: the rates.
        blocks: cores that share global memory.
    """

    def __init__(self, machine: Machine, blocks: int) -> None:
        self._machine = machine
        share = machine.cores / max(1, min(blocks, machine.cores))
        self._memory_rate = machine.gm.read_bytes_per_cycle * share
        self._read_rate = machine.l2.read_bytes_per_cycle * share
        self._write_rate = machine.l2.write_bytes_per_cycle * share
        self._known: dict[Any, Duration] = {}

    def of(self, op: Op, pipe: Pipe) -> Duration:
        """The duration of an operation that works on `pipe`."""
        key: Any = (op.name, *(value.type for value in op.operands))
        if op.name == "cce.load3d":
            key = (*key, Windows.of(op))
        if key not in self._known:
            self._known[key] = self._find(op, pipe)
        return self._known[key]

    def _find(self, op: Op, pipe: Pipe) -> Duration:
        if op.name in ("memref.load", "memref.store"):
            return self._scalar(op)
        rules: dict[str, Callable[[Any], Duration]] = {
            "cce.copy": self._copy,
            "cce.copy_l0c": self._copy_l0c,
            "cce.dequantize_l0c": self._copy_l0c,
            "cce.fixpipe": self._fixpipe,
            "cce.nd2nz": self._nd2nz,
            "cce.clear_l1": self._clear_l1,
            "cce.load2d": self._load2d,
            "cce.load3d": self._load3d,
            "cce.mad": self._mad,
        }
        return rules.get(op.name, self._vector)(op)

    def _vector(self, op: Op) -> Duration:
        unit = self._machine.vector
        busy, instructions = 0, 0
        for name, kind, count, repeats in _repeats(op, unit):
            fixed, each = unit.price(name, kind)
            busy += count * (fixed + each * repeats)
            instructions += count
        issue = instructions * self._machine.scalar.issue_cycles
        return Duration(busy, busy + unit.completion_cycles, issue)

    def _copy(self, op: Op) -> Duration:
        src, dst = (buffer_of(value) for value in op.operands)
        runs, instructions, run_bytes = _bursts(src, dst)
        path, machine = (src.space, dst.space), self._machine
        issue = instructions * machine.scalar.issue_cycles
        if "GM" in path:
            line = machine.gm.line_bytes
            size = runs * (run_bytes if runs == 1 else round_up(run_bytes, line))
            reads = src.space == "GM"
            unit = machine.mte2 if reads else machine.mte3
            share = self._read_rate if reads else self._write_rate
            to_l1 = dst.space == "L1"
            port = machine.mte2.l1_port_bytes_per_cycle if to_l1 else unit.port_bytes_per_cycle
            moved = ceil_div(size, min(port, share))
            busy = max(instructions * unit.issue_cycles, moved)
            of_memory = ceil_div(size, self._memory_rate) if reads else 0
            return Duration(busy, max(busy, moved + unit.start_cycles), issue, of_memory)
        fixed, wide = self._on_chip(path)
        busy = instructions * fixed + ceil_div(runs * run_bytes, wide)
        return Duration(busy, busy, issue)

    def _on_chip(self, path: tuple[str, str]) -> tuple[int, int]:
        """Cycles of an instruction, and bytes a cycle, between two memories of the core."""
        machine = self._machine
        mte1, mte3, vector = machine.mte1, machine.mte3, machine.vector
        found = {
            ("L1", "UB"): (mte1.fixed_cycles, mte1.l1_to_ub_bytes_per_cycle),
            ("UB", "L1"): (mte3.on_chip_start_cycles, mte3.ub_to_l1_bytes_per_cycle),
            ("UB", "UB"): (vector.fixed_cycles, vector.repeat_bytes),
        }
        fixed, rate = found[path]
        assert fixed is not None and rate is not None, f"{machine.name} has no path {path}"
        return fixed, rate

    def _copy_l0c(self, op: Op) -> Duration:
        src, *scales, dst = (buffer_of(value) for value in op.operands)
        machine = self._machine
        assert machine.l0c is not None, f"{machine.name} has no path from L0C to UB"
        instructions = src.shape[0] if scales else _bursts(src, dst)[1]
        size = ceil_div(src.size * src.itemsize, machine.l0c.to_ub_bytes_per_cycle)
        busy = instructions * machine.vector.fixed_cycles + size
        return Duration(busy, busy, instructions * machine.scalar.issue_cycles)

    def _fixpipe(self, op: Op) -> Duration:
        dst, unit = buffer_of(op.operands[-1]), self._machine.fixpipe
        assert unit is not None, f"{self._machine.name} has no path from L0C to GM"
        elements = ceil_div(dst.size, unit.elements_per_cycle)
        runs, _, run_bytes = _bursts(dst, dst)
        size = round_up(run_bytes, self._machine.gm.line_bytes) * runs
        moved = ceil_div(size, min(unit.port_bytes_per_cycle, self._write_rate))
        busy = unit.fixed_cycles + max(elements, moved)
        return Duration(busy, busy + unit.start_cycles, self._machine.scalar.issue_cycles)

    def _nd2nz(self, op: Op) -> Duration:
        src, unit = buffer_of(op.operands[0]), self._machine.mte2
        fixed, each, rate = (
            unit.nd2nz_fixed_cycles,
            unit.nd2nz_row_cycles,
            unit.nd2nz_bytes_per_cycle,
        )
        assert fixed is not None and each is not None and rate is not None, "no path of rows to L1"
        size = src.size * src.itemsize
        busy = ceil_div(fixed + src.shape[0] * each + size / min(rate, self._read_rate), 1)
        issue = self._machine.scalar.issue_cycles
        return Duration(busy, busy, issue, ceil_div(size, self._memory_rate))

    def _clear_l1(self, op: Op) -> Duration:
        dst, unit = buffer_of(op.operands[0]), self._machine.mte2
        size = dst.size * dst.itemsize
        busy = unit.issue_cycles + ceil_div(size, unit.l1_port_bytes_per_cycle)
        return Duration(busy, busy, self._machine.scalar.issue_cycles)

    def _load2d(self, op: Op) -> Duration:
        src, dst = (buffer_of(value) for value in op.operands)
        unit = self._machine.mte1
        rate = unit.l0a_bytes_per_cycle if dst.space == "L0A" else unit.l0b_bytes_per_cycle
        outer = merge_dims(src.shape[:2], [src.strides[:2], dst.strides[:2]])[:-1]
        instructions = math.prod(dim.size for dim in outer)
        busy = instructions * unit.fixed_cycles + ceil_div(dst.size * dst.itemsize, rate)
        return Duration(busy, busy, instructions * self._machine.scalar.issue_cycles)

    def _load3d(self, op: Op) -> Duration:
        windows, unit = Windows.of(op), self._machine.mte1.load3d
        assert unit is not None, f"{self._machine.name} has no load3d"
        each = unit.on_average(windows.strides[1], windows.of_row)
        if buffer_of(op.operands[-1]).space == "L0B":
            each += unit.l0b_cycles
        busy = windows.instructions * unit.fixed_cycles
        busy += round(windows.windows * windows.elements * each)
        return Duration(busy, busy, windows.instructions * self._machine.scalar.issue_cycles)

    def _mad(self, op: Op) -> Duration:
        a, b = (buffer_of(value) for value in list(op.operands)[:2])
        unit = self._machine.cube
        m, n = a.shape[0] * FRACTAL_SIDE, b.shape[1] * FRACTAL_SIDE
        work = ceil_div(m, unit.m) * ceil_div(n, unit.n) * a.shape[1]
        work *= unit.fractal_cycles(a.itemsize)
        issue = self._machine.scalar.issue_cycles
        return Duration(work + unit.occupancy_cycles, work + unit.latency_cycles, issue)

    def _scalar(self, op: Op) -> Duration:
        unit = self._machine.scalar
        buffer = buffer_of(op.operands[0 if op.name == "memref.load" else 1])
        cycles = unit.gm_access_cycles if buffer.space == "GM" else unit.ub_access_cycles
        return Duration(cycles, cycles, cycles)


def _bursts(src: Buffer, dst: Buffer) -> tuple[int, int, int]:
    """Runs of a copy, instructions (one dimension of runs in each), bytes of a run."""
    outer, run = split_run(merge_dims(src.shape, [src.strides, dst.strides]))
    runs = math.prod(dim.size for dim in outer)
    most = max((dim.size for dim in outer), default=1)
    return runs, max(1, runs // max(1, most)), run * src.itemsize


def _repeats(op: Op, unit: Vector) -> Iterator[tuple[str, str, int, int]]:
    """Name, type, number and repeats of the vector instructions of an operation.

    Others than elementwise ones are taken to be one instruction: with a repeat for each row that
    they reduce or fill, or for each repeat's worth of bytes of the largest operand.
    """
    name = op.name.removeprefix("cce.")
    if name in ELEMENTWISE and "lanes" not in op.attributes:
        parts = parts_of(op)
        for nest in nests_of(op, parts, unit):
            for part in parts:
                yield part.record.name, part.record.type, nest.count, nest.issue.repeat
        return
    buffers = [buffer_of(value) for value in op.operands if isinstance(value.type, ir.MemRefType)]
    if name in BY_ROWS:
        yield name, buffers[-1].dtype, 1, buffers[0].shape[0]
        return
    most = max(buffer.size * buffer.itemsize for buffer in buffers)
    yield name, buffers[-1].dtype, 1, ceil_div(most, unit.repeat_bytes)
