"""Bits that are only read as another type are not copied: both values lie in one buffer.

    b = vor a, a       as s32, of f32 `a`      ->   b = view a         no instruction

A tile rule says by `vor a, a` that it goes on with the bits of a value (`VectorProgram.step`).
"""

from __future__ import annotations

from dataclasses import replace

from davinci.isa.core import DTYPES
from davinci.operators.vector_program import TileStep, Value, joined
from davinci.schedule.vector.tile_program import MOVED, REDUCE, VIEW, TileProgram


def view_bits(program: TileProgram) -> None:
    """Makes copies of bits views, in a program whose steps are all elementwise on rows.

    What is stored keeps its copy, as transfers have buffers of their own. Readers of a view serve
    the members that it serves, as there is no instruction for it.
    """
    apart = any(step.name == REDUCE or step.name in MOVED for step in program.steps)
    if apart or program.together:
        return
    serving: dict[Value, tuple[int, ...]] = {}
    for place, step in enumerate(program.steps):
        members = joined(step.members, *(serving.get(v, ()) for v in step.sources))
        if _copies_bits(step, program):
            step = replace(step, name=VIEW, sources=step.sources[:1])
            serving[step.result] = members
        program.steps[place] = replace(step, members=members)


def _copies_bits(step: TileStep, program: TileProgram) -> bool:
    """Whether a step only copies elements of a row as another type of the same size."""
    if step.name != "vor" or step.sources[0] is not step.sources[1]:
        return False
    (source, _), result = step.sources, step.result
    if source.dtype == result.dtype or result in program.outputs:
        return False
    if DTYPES[source.dtype].itemsize != DTYPES[result.dtype].itemsize:
        return False
    form = program.forms[source]
    return form is not None and program.lane in form
