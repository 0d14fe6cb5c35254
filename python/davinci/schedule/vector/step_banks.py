"""What a step in UB takes with the waits for banks, where it is known how its buffers lie."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from davinci.isa import INSTRUCTIONS
from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import InstructionLimits, Nest, plan_vector
from davinci.machine import Machine
from davinci.machine.vector_banks import BankLayout, OperandBlocks, repeats_cycles
from davinci.schedule.vector.steps import COSTS_KEPT, BufferStep
from davinci.units import BLOCK_BYTES, REPEAT_BYTES

REPEAT_BLOCKS = REPEAT_BYTES // BLOCK_BYTES


@lru_cache(COSTS_KEPT)
def cycles_with_banks(step: BufferStep, dtype: str, machine: Machine) -> int:
    """Cycles of an elementwise step whose buffers all begin at the first group of banks, each in
    banks of its own: what its sources meet in is counted, what reads and writes meet in is not.
    Masked lanes use their banks, too."""
    unit, item = machine.vector, DTYPES[dtype].itemsize
    whole, each = unit.price(step.name, dtype)
    fixed = whole - min(unit.overlap_cycles, whole)  # the head passes while another one ends
    layout, depth = BankLayout.of(unit), max(whole - unit.head_cycles, 1)
    limits = InstructionLimits.of(
        INSTRUCTIONS[f"{step.name}.{dtype}"], fixed, unit.bank_groups, each
    )
    *sources, result = step.operands
    views, lanes = (result, *sources), BLOCK_BYTES // item
    strides = [view.strides for view in views]
    found = 0
    for nest in plan_vector(result.shape, strides, (item,) * len(views), limits):
        issue, own = nest.issue, [view.offset for view in views]
        for begin, count in Counter(_begins(nest, own, lanes, layout.groups)).items():
            written, *read = (
                OperandBlocks(number * layout.row_blocks + at, REPEAT_BLOCKS, stride, repeat)
                for number, (at, stride, repeat) in enumerate(
                    zip(begin, issue.blk_stride, issue.rep_stride, strict=True)
                )
            )
            taken = repeats_cycles(tuple(read), (written,), issue.repeat, each, depth, layout)
            found += count * (fixed + taken)
    return found


def _begins(nest: Nest, offsets: list[int], lanes: int, groups: int) -> Iterator[tuple[int, ...]]:
    """The group of banks in which each operand of each instruction of a nest begins.

    Args:
        offsets: elements at which the operands begin.
        lanes: elements of a block.
    """
    for at in itertools.product(*(range(loop.size) for loop in nest.loops)):
        yield tuple(
            (own + first + sum(i * d.strides[n] for i, d in zip(at, nest.loops, strict=True)))
            // lanes
            % groups
            for n, (own, first) in enumerate(zip(offsets, nest.issue.offsets, strict=True))
        )
