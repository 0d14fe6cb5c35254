"""Stores to global memory: they overwrite, add to what is there, or leave the larger or the smaller
of both there.

Which of these they do, and in which element type, the register ATOMIC says, which the instructions
of `davinci.isa.atomic` set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Regions,
    Registers,
    Values,
)
from davinci.isa.halves import of_type

ELEMENTS = ("f32", "f16", "s16", "s32", "s8", "bf16")
"""Element types in which a store may add, or take a maximum or minimum."""

ATOMIC_TYPES = (
    "",
    *ELEMENTS,
    *(f"max_{element}" for element in ELEMENTS),
    *(f"min_{element}" for element in ELEMENTS),
)
"""What a store does by the number that ATOMIC holds: "" to overwrite, "f32" to add in that type,
"max_f32" to leave the larger one."""


def added_in(registers: Registers) -> str:
    """What a store does with what is there, see `ATOMIC_TYPES`; "" if it overwrites."""
    return ATOMIC_TYPES[registers.atomic]


def element_of(kind: str) -> str:
    """The element type of an entry of `ATOMIC_TYPES`."""
    return kind.rpartition("_")[2]


def as_elements(access: Access, element: np.dtype[np.generic]) -> Access:
    """The same bytes as elements of another type.

    Raises:
        ValueError: a run holds no whole number of them.
    """
    size = access.run * access.dtype.itemsize
    if size % element.itemsize:
        raise ValueError(
            f"a store that adds {element.name}: found runs of {size} bytes, expected a multiple of "
            f"{element.itemsize}"
        )
    return replace(access, run=size // element.itemsize, dtype=element)


def store(overwriting: Regions) -> Regions:
    """Regions of a copy of bytes to global memory: where it adds, it reads what it writes, too.

    Args:
        overwriting: its regions where it overwrites, one read and one written.
    """

    def accesses(values: Values, registers: Registers) -> Accesses:
        reads, writes = overwriting(values, registers)
        kind = added_in(registers)
        if not kind:
            return reads, writes
        element = DTYPES[element_of(kind)]
        (source,), (target,) = reads, writes
        target = as_elements(target, element)
        return [as_elements(source, element), target], [target]

    return accesses


def stored(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a copy to global memory: its source, or that and what is there in one."""
    if len(arrays) == 1:
        return arrays
    source, target = arrays
    return [added(source, target, added_in(registers))]


def added(source: Array, target: Array, kind: str) -> Array:
    """What a store leaves that adds, or takes a maximum or minimum; integers wrap around, halves
    are rounded once, and a NaN wins, as in the vector unit (assumed).

    Args:
        source, target: arrays of one shape and of the element type of `kind`.
    """
    if kind.startswith("max_"):
        return of_type(np.maximum, element_of(kind))(source, target)
    if kind.startswith("min_"):
        return of_type(np.minimum, element_of(kind))(source, target)
    return of_type(np.add, kind)(source, target)
