"""Stores that add to what global memory holds, or take a maximum or minimum, as one indivisible
operation.

An instruction of the scalar unit says in which element type the stores that are issued from then on
do so, or that they overwrite again. Several cores may add to the same element; in which order is
not known, so sums of floats may differ in their last bits from run to run.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.isa.core import (
    Array,
    Compute,
    Instruction,
    Pipe,
    Registers,
    Values,
    define,
    no_regions,
)
from davinci.isa.stores import ATOMIC_TYPES, element_of

SET_ATOMIC = {f"set_atomic_{kind or 'none'}": i for i, kind in enumerate(ATOMIC_TYPES)}
"""Instructions that set the register ATOMIC, with what they set it to."""


def set_atomic(number: int) -> Compute:
    """`compute` of the instruction that sets ATOMIC to a number."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        registers.atomic = number
        return ()

    return compute


for name, number in SET_ATOMIC.items():
    kind = ATOMIC_TYPES[number]
    largest = {"max": "larger", "min": "smaller"}.get(kind.partition("_")[0])
    if largest:
        what = f"leave the {largest} one of their {element_of(kind)} elements and those there"
    else:
        what = f"add {kind} elements to what is there"
    adds = (
        f"Stores to GM that are issued from here on {what}. The target is not cleared, and nothing "
        "else may come between reading and writing it."
    )
    define(
        Instruction(
            name=name,
            type="",
            pipe=Pipe.S,
            operands=(),
            fields=(),
            accesses=no_regions,
            compute=set_atomic(number),
            timing="scalar",
            doc=adds if kind else "Stores to GM that are issued from here on overwrite.",
            source="docs/hardware.md c (atomic adds)",
        )
    )
