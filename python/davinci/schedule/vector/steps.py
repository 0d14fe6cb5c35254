"""Operations of the vector unit on buffers as plain data, and what they take.

A rule of a tile writes its work down as `BufferSteps` before any IR is made: a schedule asks for
their scratch buffers and their estimated time; the driver builds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from davinci.isa import INSTRUCTIONS
from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import InstructionLimits, plan_vector
from davinci.isa.vector_plan import cost_of as cycles_of
from davinci.machine import Machine
from davinci.operators.reduce import REDUCTIONS
from davinci.units import BLOCK_BYTES, MAX_REPEAT

TRANSPOSITION, TRANSPOSITION_RECORD = "vnchwconv", "scatter_vnchwconv"
ROW_SUM = "vcadd"
SPREAD = "vbrcb"
"""Elements to all lanes of a block each; of machines that have it."""

OF_BLOCKS = {kind: each.of_block for kind, each in REDUCTIONS.items() if each.of_block}
"""Reductions of the lanes of a block to one, by kind."""

BY_ROWS = {TRANSPOSITION: -2, ROW_SUM: 0, SPREAD: 0, **dict.fromkeys(OF_BLOCKS.values(), 0)}
"""Steps of which a dimension of the result counts the repeats, and that dimension."""
SOURCE, RESULT = "source", "result"
"""Names of the caller's buffers."""

COSTS_KEPT, STEPS_KEPT = 4096, 4096
"""Costs of steps, and steps of each rule, that schedules ask for again and again."""


@dataclass(frozen=True)
class View:
    """An array in a buffer: sizes, strides and the place of its first element, in elements."""

    buffer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True)
class BufferStep:
    """One cce operation: its name, sources and then the destination, and the scalar before that."""

    name: str
    operands: tuple[View, ...]
    scalar: float | None = None


def copy_of(source: View, result: View, dtype: str) -> BufferStep:
    """result = source by the vector unit, bit by bit; numbers only."""
    name, scalar = copying(dtype)
    return BufferStep(
        name, (source, result) if scalar is not None else (source, source, result), scalar
    )


def copying(dtype: str) -> tuple[str, float | None]:
    """The operation that copies, and its scalar; without one it takes the source twice."""
    if dtype in ("f16", "f32"):
        return "vmuls", 1.0
    return ("vor" if dtype == "s16" else "vmax"), None


@dataclass(frozen=True)
class Estimate:
    """What steps take.

    Attributes:
        instructions: of the vector unit.
        cycles: that they keep it busy; what operands in one bank group cost is left out, because
            it depends on addresses.
        links: steps of the longest chain in which each reads what the one before has written.
    """

    instructions: int
    cycles: int
    links: int


@dataclass(frozen=True)
class BufferSteps:
    """Operations on buffers of one element type.

    Attributes:
        dtype: the element type, as instructions name it.
        steps: in order.
        scratch: elements of the buffers besides those of the caller, by name. A buffer is written
            before it is read.
    """

    dtype: str
    steps: tuple[BufferStep, ...]
    scratch: dict[str, int]
    _estimates: dict[Machine, Estimate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def scratch_bytes(self) -> int:
        """Bytes of all scratch buffers, each of whole blocks."""
        size = DTYPES[self.dtype].itemsize
        return sum(math.ceil(n * size / BLOCK_BYTES) * BLOCK_BYTES for n in self.scratch.values())

    def estimate(self, machine: Machine) -> Estimate:
        """The instructions and cycles that the steps take on a machine, estimated once for it."""
        if machine not in self._estimates:
            self._estimates[machine] = self._estimated(machine)
        return self._estimates[machine]

    def _estimated(self, machine: Machine) -> Estimate:
        """Instructions and cycles of all steps, and how often one waits for the one before."""
        instructions = cycles = 0
        for step in self.steps:
            count, time = cost_of(step, self.dtype, machine)
            instructions, cycles = instructions + count, cycles + time
        return Estimate(instructions, cycles, links(self.steps))


def links(steps: Sequence[BufferStep]) -> int:
    """Length of the longest chain of steps of which each reads what the one before has written."""
    written: dict[str, int] = {}
    for step in steps:
        *sources, result = step.operands
        link = 1 + max((written.get(view.buffer, 0) for view in sources), default=0)
        written[result.buffer] = max(link, written.get(result.buffer, 0))
    return max(written.values(), default=0)


@lru_cache(COSTS_KEPT)
def cost_of(step: BufferStep, dtype: str, machine: Machine) -> tuple[int, int]:
    """Instructions and cycles of a step."""
    unit = machine.vector
    name, kind = (TRANSPOSITION_RECORD, "b16") if step.name == TRANSPOSITION else (step.name, dtype)
    fixed, each = unit.price(name, kind)
    result = step.operands[-1]
    if step.name in BY_ROWS:
        repeats = result.shape[BY_ROWS[step.name]]
        count = math.ceil(repeats / MAX_REPEAT)
        return count, count * fixed + repeats * each
    limits = InstructionLimits.of(INSTRUCTIONS[f"{name}.{kind}"], fixed, unit.bank_groups, each)
    views = (result, *step.operands[:-1])
    sizes = (DTYPES[dtype].itemsize,) * len(views)
    nests = plan_vector(result.shape, [view.strides for view in views], sizes, limits)
    return sum(nest.count for nest in nests), cycles_of(nests, sizes, limits)
