"""Stores to global memory: they overwrite, or add to what is there.

Which of both they do, and in which element type they add, the register ATOMIC says, which the
instructions of `davinci.isa.atomic` set.
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

ATOMIC_TYPES = ("", "f32", "f16", "s16", "s32", "s8", "bf16")
"""Element types in which a store may add, by the number that ATOMIC holds; 0: it overwrites."""


def added_in(registers: Registers) -> str:
    """The element type in which a store adds now, "" if it overwrites."""
    return ATOMIC_TYPES[registers.atomic]


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
        element = DTYPES[kind]
        (source,), (target,) = reads, writes
        target = as_elements(target, element)
        return [as_elements(source, element), target], [target]

    return accesses


def stored(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of a copy to global memory: its source, or that added to what is there."""
    if len(arrays) == 1:
        return arrays
    source, target = arrays
    return [added(source, target, added_in(registers))]


def added(source: Array, target: Array, kind: str) -> Array:
    """The sums of a store that adds; integers wrap around, halves are rounded once (assumed).

    Args:
        source, target: arrays of one shape and of the type `kind`.
    """
    return of_type(np.add, kind)(source, target)
