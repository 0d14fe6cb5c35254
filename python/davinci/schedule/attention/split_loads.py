"""Cycles in which K and V of a step come to a cube core: the memory, MTE2 and MTE1.

All blocks that have units of a matrix read its K and V, at about the same time: a line of the L2
serves one of them after the other, so that each of their requests takes longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci import machine as machines
from davinci.machine import Machine, prices
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.split import LANES, SplitAttentionSchedule, long_rows
from davinci.schedule.attention.turn import MatrixTurn
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE


@dataclass(frozen=True)
class LoadCycles:
    """Cycles of MTE2, or of the memory, for a step that is alone.

    Attributes:
        first: until Q and the first part of K are in L1.
        part_of_k, part_of_v: of each other part of K, and of each part of V.
        to_l0a: of MTE1 for a part of K.
        all_of_it: until V is in L1 as well.
    """

    first: float
    part_of_k: float
    part_of_v: float
    to_l0a: float
    all_of_it: float


@dataclass(frozen=True)
class SplitAttentionLoads:
    """What K and V of a step of a schedule take on blocks of so many cube cores."""

    attention: Attention
    schedule: SplitAttentionSchedule
    machine: Machine
    cores: int

    @property
    def cube(self) -> Machine:
        return machines.for_cube(self.machine)

    @property
    def joined(self) -> bool:
        return long_rows(self.attention, self.schedule.part)

    @property
    def read_ahead(self) -> bool:
        """Whether a vector core without rows has brought K and V to the L2 when they are loaded."""
        return self.schedule.lanes < LANES and not self.joined

    @property
    def fresh(self) -> float:
        """Part of the steps whose K and V the memory has to give: the first unit of a matrix finds
        none of them in the L2."""
        return 1 / self.schedule.blocks_of_rows(self.attention)

    @property
    def working(self) -> int:
        """Blocks that have units."""
        return min(self.cores, self.schedule.units(self.attention))

    @property
    def missing(self) -> float:
        """Part of the rows of K and V that the L2 has not."""
        return 0.0 if self.read_ahead else self.fresh

    @property
    def p_bytes(self) -> int:
        """Bytes of P of a part of the keys and half of the rows."""
        return self.schedule.lanes * self.schedule.rows * self.schedule.part * FRACTAL_BYTES

    def readers(self, turn: MatrixTurn) -> float:
        """Blocks that read a matrix of K or V at about the same time, on average."""
        alike = turn.each if turn.count > 1 else self.attention.batch
        of_matrix = self.schedule.blocks_of_rows(self.attention) * alike
        units = self.schedule.units(self.attention)
        at_work = units / ceil_div(units, self.cores)
        return min(at_work, of_matrix)

    def of_k(self, missing: float) -> float:
        """Cycles of MTE2 for a part of K; `missing`: part of its rows that the L2 has not."""
        plain, turn = self.schedule.windows or self.attention.k.nz, self.attention.of_k
        return self._part(self.attention.fractals.depth, plain, turn, missing)

    def of_v(self, missing: float) -> float:
        """Cycles of MTE2 for a part of V; `missing`: as of `of_k`."""
        width, turn = self.attention.fractals.columns, self.attention.of_v
        return self._part(width, self.attention.v.nz, turn, missing)

    def _part(self, width: int, plain: bool, turn: MatrixTurn, missing: float) -> float:
        """Cycles of MTE2 for a part of the keys.

        Args:
            width: of the factor, in fractals.
            plain: whether it comes to L1 as it is; else rows become fractals on their way.
        """
        gm, part, readers = self.machine.gm, self.schedule.part, self.readers(turn)
        size = part * width * FRACTAL_BYTES
        longer = 1 + (readers - 1) * gm.same_line_percent / 100
        if plain:
            requests = ceil_div(size, gm.line_bytes)
            alone = prices.reading(self.cube, to_l1=True).busy(size) * longer
        else:
            joined = part if self.joined else 1
            rows = part * SIDE // joined
            requests = rows * ceil_div(joined * width * BLOCK_BYTES, gm.line_bytes)
            at_once = prices.nd2nz(self.cube, rows, size)
            late = prices.nd2nz(self.cube, rows, size, missing=missing) - at_once
            alone = at_once * longer + late
        return max(alone, requests * readers * gm.same_line_request_cycles)

    def of_memory(self) -> float:
        """Cycles of the memory for a step."""
        sizes = self.attention.fractals
        size = self.schedule.tile * (sizes.depth + sizes.columns) * FRACTAL_BYTES
        return size * self.fresh / prices.share_of(self.machine, self.working).read

    def of_mte2(self) -> float:
        """Cycles of MTE2 for K, V and P of a step."""
        of_p = self.schedule.subs * prices.reading(self.cube, to_l1=True).busy(self.p_bytes)
        return self.schedule.parts * (self.of_k(self.missing) + self.of_v(self.missing) + of_p)

    def k_to_l0a(self) -> float:
        """Cycles of MTE1 for a part of K."""
        part, depth = self.schedule.part, self.attention.fractals.depth
        if self.joined:
            return prices.load2d(self.cube, "L0A", part * depth * FRACTAL_BYTES)
        pixels = depth if self.schedule.windows else 1
        return prices.load3d(self.cube, "L0A", pixels, [1] * (part * depth))

    def of_mte1(self) -> float:
        """Cycles of MTE1 for a step."""
        sizes, part = self.attention.fractals, self.schedule.part
        of_q = prices.load2d(self.cube, "L0B", self.schedule.rows * sizes.depth * FRACTAL_BYTES)
        of_v = prices.load2d(self.cube, "L0B", part * sizes.columns * FRACTAL_BYTES, part)
        of_p = prices.load2d(self.cube, "L0A", self.p_bytes)
        each = self.k_to_l0a() + self.schedule.quarters * of_q
        each += self.schedule.subs * (of_v + of_p)
        return self.schedule.parts * each

    def alone(self) -> LoadCycles:
        """Cycles until the factors of a step that is alone are in L1."""
        part, port = self.of_k(self.missing), prices.reading(self.cube, to_l1=True)
        size = self.schedule.rows * self.attention.fractals.depth * FRACTAL_BYTES
        of_q = port.busy(size)
        if not self.attention.q.nz:
            of_q = prices.nd2nz(self.cube, self.schedule.rows * SIDE, size)
        start = port.result(0) + self.schedule.lanes * of_q
        all_of_it = max(self.of_memory(), self.of_mte2())
        of_v, to_l0a = self.of_v(self.missing), self.k_to_l0a()
        return LoadCycles(start + part, part, of_v, to_l0a, start + all_of_it)
