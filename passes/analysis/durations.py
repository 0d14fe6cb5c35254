"""How long the machine takes for a cce operation, estimated from its shapes and the machine file.

What depends on addresses (banks, lines) is left out; reads are taken to come from memory, writes to
stay in the L2. An estimate serves to choose an order, nothing else. All figures are cycles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.cce.columns import ColumnsOfFractals
from davinci.dialects.cce.windows import LoadedWindows
from davinci.isa.core import Pipe
from davinci.isa.strides import merge_dims, split_run
from davinci.machine import Machine, Vector, prices
from davinci.machine.views import loads_rectangles
from davinci.mlir import Op, ir
from davinci.passes.analysis.vector_work import ELEMENTWISE, nests_of, parts_of, rows_together
from davinci.passes.pipeline.base import fail
from davinci.units import FRACTAL_SIDE, ceil_div, round_up

BY_ROWS = ("vector_dup", "vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vbrcb")
"""Operations, without their dialect, of which a repeat does a row."""

ON_CHIP: dict[tuple[str, str], Callable[[Machine, float, float], float]] = {
    ("L1", "UB"): prices.l1_to_ub,
    ("UB", "L1"): prices.ub_to_l1,
    ("L1", "BT"): prices.l1_to_bt,
    ("L1", "FB"): prices.l1_to_fb,
}
"""Prices of copies on the chip."""


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


def transposes(load: Op) -> bool:
    """Whether a `cce.load2d` transposes each fractal."""
    return bool(attribute(load, "transpose", False))


class Durations:
    """Durations of the operations of a kernel, remembered by name and types.

    Args:
        machine: the rates.
        blocks: cores that share global memory.
    """

    def __init__(self, machine: Machine, blocks: int) -> None:
        self._machine = machine
        self._share = prices.share_of(machine, blocks)
        self._known: dict[Hashable, Duration] = {}

    def of(self, op: Op, pipe: Pipe) -> Duration:
        """The duration of an operation that works on `pipe`."""
        key: tuple[Hashable, ...] = (op.name, *(value.type for value in op.operands))
        if op.name == "cce.load3d":
            key = (*key, LoadedWindows.of(op))
        if op.name == "cce.load2d":
            key = (*key, transposes(op))
        if key not in self._known:
            self._known[key] = self._find(op, pipe)
        return self._known[key]

    def _find(self, op: Op, pipe: Pipe) -> Duration:
        if op.name in ("memref.load", "memref.store"):
            return self._scalar(op)
        rules: dict[str, Callable[[Op], Duration]] = {
            "cce.copy": self._copy,
            "cce.copy_l1": self._copy,
            "cce.copy_rows": self._copy_rows,
            "cce.copy_l0c": self._copy_l0c,
            "cce.dequantize_l0c": self._copy_l0c,
            "cce.fixpipe": self._fixpipe,
            "cce.fixpipe_scaled": self._fixpipe,
            "cce.nd2nz": self._nd2nz,
            "cce.clear_l1": self._clear_l1,
            "cce.load2d": self._load2d,
            "cce.load3d": self._load3d,
            "cce.mad": self._mad,
            "cce.mad_bias": self._mad,
            "cce.mad_l1": self._mad_l1,
        }
        return rules.get(op.name, self._vector)(op)

    def _vector(self, op: Op) -> Duration:
        unit = self._machine.vector
        busy, instructions = 0, 0
        for name, kind, count, repeats in _repeats(op, unit):
            busy += math.ceil(prices.vector(self._machine, name, kind, count * repeats, count))
            instructions += count
        return Duration(busy, busy + prices.until_visible(self._machine), self._issue(instructions))

    def _issue(self, instructions: int) -> int:
        return instructions * self._machine.scalar.issue_cycles

    def _copy(self, op: Op) -> Duration:
        src, dst = (buffer_of(value) for value in op.operands)
        runs, instructions, run_bytes = _bursts(src, dst)
        path, machine = (src.space, dst.space), self._machine
        issue = self._issue(instructions)
        if dst.space == "BT" and machine.mte1.bias is None:
            fail(op, f"is illegal: {machine.name} has no bias table")
        if dst.space == "FB" and machine.buffers.FB is None:
            fail(op, f"is illegal: {machine.name} has no buffer for words of fixpipe")
        if "GM" not in path:
            size = runs * run_bytes
            if path == ("UB", "UB"):
                bursts = max(1, runs // instructions)
                busy = math.ceil(prices.ub_to_ub(machine, size, instructions, bursts))
            else:
                busy = math.ceil(ON_CHIP[path](machine, size, instructions))
            return Duration(busy, busy, issue)
        return self._transfer(path, runs, instructions, run_bytes)

    def _copy_rows(self, op: Op) -> Duration:
        """As long as all rows of the tile take; the program says how many there are."""
        src, dst = (buffer_of(value) for value in list(op.operands)[:2])
        rows, elements = (dst if src.space == "GM" else src).shape
        return self._transfer((src.space, dst.space), rows, 1, elements * src.itemsize)

    def _transfer(
        self, path: tuple[str, str], runs: int, instructions: int, run_bytes: int
    ) -> Duration:
        """Runs between global memory and the chip, source and destination being of `path`."""
        machine, issue = self._machine, self._issue(instructions)
        size = runs * (run_bytes if runs == 1 else round_up(run_bytes, machine.gm.line_bytes))
        if path[0] == "GM":
            port, l2 = prices.reading(machine, path[1] != "UB"), self._share.l2_read
            of_memory = ceil_div(size, self._share.read)
        else:
            port, l2, of_memory = prices.writing(machine), self._share.l2_write, 0
        bursts = runs if runs > 1 else 0
        moved = max(port.result(size, bursts), port.start_cycles + size / l2)
        busy = math.ceil(max(port.busy(size, instructions, bursts), size / l2))
        return Duration(busy, max(busy, math.ceil(moved)), issue, of_memory)

    def _copy_l0c(self, op: Op) -> Duration:
        src, *scales, dst = (buffer_of(value) for value in op.operands)
        instructions = src.shape[0] if scales else _bursts(src, dst)[1]
        size = src.size * src.itemsize
        busy = math.ceil(prices.l0c_to_ub(self._machine, size, instructions))
        return Duration(busy, busy, self._issue(instructions))

    def _fixpipe(self, op: Op) -> Duration:
        if self._machine.fixpipe is None:
            fail(op, f"is illegal: {self._machine.name} has no pipe from L0C to global memory")
        dst = buffer_of(op.operands[-1])
        runs, _, run_bytes = _bursts(dst, dst)
        size = round_up(run_bytes, self._machine.gm.line_bytes) * runs
        share = self._share.l2_write
        busy, result = map(math.ceil, prices.fixpipe(self._machine, dst.size, size, share))
        return Duration(busy, result, self._issue(1))

    def _nd2nz(self, op: Op) -> Duration:
        if "copy_gm_to_cbuf_multi_nd2nz" not in self._machine.intrinsics:
            fail(op, f"is illegal: {self._machine.name} makes no fractals of rows on their way")
        src = buffer_of(op.operands[0])
        size, share = src.size * src.itemsize, self._share.l2_read
        busy = math.ceil(prices.nd2nz(self._machine, src.shape[0], size, share=share))
        return Duration(busy, busy, self._issue(1), ceil_div(size, self._share.read))

    def _clear_l1(self, op: Op) -> Duration:
        dst, port = buffer_of(op.operands[0]), prices.reading(self._machine, to_l1=True)
        busy = port.issue_cycles + ceil_div(dst.size * dst.itemsize, port.bytes_per_cycle)
        return Duration(busy, busy, self._issue(1))

    def _load2d(self, op: Op) -> Duration:
        src, dst = (buffer_of(value) for value in op.operands)
        outer = merge_dims(src.shape[:2], [src.strides[:2], dst.strides[:2]])[:-1]
        instructions = math.prod(dim.size for dim in outer)
        image = ColumnsOfFractals.of(src, dst, transposes(op))
        if image is not None and loads_rectangles(self._machine, image.space, image.dtype):
            instructions = 1
        size = dst.size * dst.itemsize
        busy = math.ceil(prices.load2d(self._machine, dst.space, size, instructions))
        return Duration(busy, busy, self._issue(instructions))

    def _load3d(self, op: Op) -> Duration:
        windows, space = LoadedWindows.of(op), buffer_of(op.operands[-1]).space
        fractals, count = windows.windows * windows.elements, windows.instructions
        place = self._machine, space, windows.strides[1], windows.of_row
        busy = round(prices.load3d_on_average(*place, fractals, count))
        return Duration(busy, busy, self._issue(count))

    def _mad(self, op: Op) -> Duration:
        a, b = (buffer_of(value) for value in list(op.operands)[:2])
        unit = self._machine.cube
        m, n = a.shape[0] * a.shape[2], b.shape[1] * FRACTAL_SIDE
        fractals = ceil_div(m, unit.m) * ceil_div(n, unit.n) * a.shape[1]
        busy = math.ceil(prices.mad(self._machine, fractals, a.itemsize))
        return Duration(busy, busy + prices.mad_drain(self._machine), self._issue(1))

    def _mad_l1(self, op: Op) -> Duration:
        a, b, c = (buffer_of(value) for value in list(op.operands)[:3])
        unit, itemsize = self._machine.cube, a.itemsize
        n, m = c.shape[0] * FRACTAL_SIDE, c.shape[1] * FRACTAL_SIDE
        steps = a.size // (m * FRACTAL_SIDE)
        fractals = ceil_div(m, unit.m) * ceil_div(n, unit.n) * steps
        loads = prices.load2d(self._machine, "L0A", a.size * itemsize)
        loads += prices.load2d(self._machine, "L0B", b.size * itemsize)
        busy = math.ceil(loads + prices.mad(self._machine, fractals, itemsize))
        return Duration(busy, busy + prices.mad_drain(self._machine), self._issue(3))

    def _scalar(self, op: Op) -> Duration:
        buffer = buffer_of(op.operands[0 if op.name == "memref.load" else 1])
        cycles = math.ceil(prices.scalar_accesses(self._machine, 1, buffer.space))
        return Duration(cycles, cycles, cycles)


def _bursts(src: BufferView, dst: BufferView) -> tuple[int, int, int]:
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
        together = rows_together(buffers[0]) if name == "vector_dup" else 1
        yield name, buffers[-1].dtype, 1, ceil_div(buffers[0].shape[0], together)
        return
    most = max(buffer.size * buffer.itemsize for buffer in buffers)
    yield name, buffers[-1].dtype, 1, ceil_div(most, unit.repeat_bytes)
