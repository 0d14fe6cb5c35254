"""Sorting: 32 scores with their numbers at a time, and merging of lists that are sorted.

A sorted element is a structure of 8 bytes: the score in the lower ones (of f16 two, and two that
are not used), its number in the upper four. Scores are in descending order; of equal ones the one
that was first is first. Scores are compared by sign and magnitude of their bits, so NaN is beyond
infinity on the side of its sign, and -0 behind 0 (assumed: kernels put -NaN where nothing is).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Compute,
    Field,
    Instruction,
    Operand,
    Pipe,
    Regions,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.vector_regions import REPEAT, ub

SOURCE = "docs/hardware.md b2 (time), c (other instructions); encoding assumed"
SORTED = 32
"""Elements that a repeat of vbitsort sorts."""

STRUCTURE_BYTES = 8
LISTS = 4
WORD = DTYPES["b32"]


def rank(scores: Array) -> Array:
    """Integers in the order of scores, f16 or f32; the highest score has the highest."""
    bits = scores.view(f"i{scores.dtype.itemsize}").astype(np.int64)
    least = -(1 << (8 * scores.dtype.itemsize - 1))
    return np.where(bits < 0, least - bits - 1, bits)


def sort_regions(dtype: str) -> Regions:
    """Regions of vbitsort: scores and numbers as [repeat, 32], dst as [repeat, 32, 2 words]."""
    element = DTYPES[dtype]

    def regions(values: Values, registers: Registers) -> Accesses:
        repeat = values["repeat"]
        reads = [
            Access(Space.UB, values[name], ((repeat, SORTED * each.itemsize),), SORTED, each)
            for name, each in (("src", element), ("index", WORD))
        ]
        dims = ((repeat, SORTED * STRUCTURE_BYTES), (SORTED, STRUCTURE_BYTES))
        return reads, [Access(Space.UB, values["dst"], dims, 2, WORD)]

    return regions


def sort(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    scores, numbers = (np.ascontiguousarray(array) for array in arrays)
    order = np.argsort(-rank(scores), axis=1, kind="stable")
    result = np.zeros((*scores.shape, 2), dtype=WORD)
    result[..., 0] = np.take_along_axis(scores.view(f"u{scores.dtype.itemsize}"), order, axis=1)
    result[..., 1] = np.take_along_axis(numbers, order, axis=1)
    return [result]


def lengths(values: Values) -> list[int]:
    """Elements of the lists that take part, from the first on."""
    return [values[f"n{i}"] for i in range(LISTS) if values["lists"] >> i & 1]


def merge_regions(values: Values, registers: Registers) -> Accesses:
    """Regions of vmrgsort4: each list, and dst, as [repeat, words]."""
    repeat, counts = values["repeat"], lengths(values)
    total = sum(counts)
    dims = ((repeat, total * STRUCTURE_BYTES),)
    reads = [
        Access(Space.UB, values[f"src{i}"], dims, 2 * count, WORD) for i, count in enumerate(counts)
    ]
    return reads, [Access(Space.UB, values["dst"], dims, 2 * total, WORD)]


def merging(dtype: str) -> Compute:
    """`compute` of vmrgsort4: of the first elements of all lists the highest, again and again.

    What lies behind a lower one in its list comes right behind that: a list counts as sorted by
    the least of its scores up to each.
    """
    kind = DTYPES[dtype]

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        lists = [array.reshape(len(array), array.shape[1] // 2, 2) for array in arrays]
        heads = [
            np.minimum.accumulate(rank(each[..., 0].astype(f"u{kind.itemsize}").view(kind)), axis=1)
            for each in lists
        ]
        order = np.argsort(-np.concatenate(heads, axis=1), axis=1, kind="stable")
        merged = np.take_along_axis(np.concatenate(lists, axis=1), order[..., None], axis=1)
        return [merged.reshape(len(merged), 2 * merged.shape[1])]

    return compute


def in_a_row(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Access]:
    """`finds`: nothing more, but lists of several repeats follow each other."""
    for i in range(1, LISTS if values["repeat"] > 1 else 1):
        place = values["src0"] + i * values["n0"] * STRUCTURE_BYTES
        if values[f"src{i}"] != place:
            raise ValueError(
                f"lists of several repeats follow each other: found src{i} at "
                f"{values[f'src{i}']:#x}, expected {place:#x}"
            )
    return ()


def check_lists(values: Values) -> str:
    """Two to four lists, from the first on; several repeats only of four that are equally long."""
    if values["lists"] not in (0b0011, 0b0111, 0b1111):
        return f"field lists: found {values['lists']:#06b}, expected 0b0011, 0b0111 or 0b1111"
    counts = lengths(values)
    if values["repeat"] > 1 and (len(counts) < LISTS or len(set(counts)) > 1):
        return f"{values['repeat']} repeats need four lists that are equally long: found {counts}"
    return ""


def number_fields() -> tuple[Field, ...]:
    """Lengths of the four lists."""
    doc = "elements of list {}"
    return tuple(
        Field(f"n{i}", 16 * i, 16 * i + 15, word=1, maximum=4095, doc=doc.format(i))
        for i in range(LISTS)
    )


for dtype in ("f16", "f32"):
    define(
        Instruction(
            name="vbitsort",
            type=dtype,
            pipe=Pipe.V,
            operands=(ub("dst"), ub("src", "scores"), ub("index", "their numbers, u32")),
            fields=(REPEAT,),
            accesses=sort_regions(dtype),
            compute=sort,
            timing="sort",
            doc=f"dst[r] = the structures of 32 scores, {dtype}, and their numbers, sorted. Bytes "
            "of a structure that neither has are 0 (assumed). The vector mask has no effect.",
            source=SOURCE,
        )
    )

for dtype in ("f16", "f32"):
    define(
        Instruction(
            name="vmrgsort4",
            type=dtype,
            pipe=Pipe.V,
            operands=(
                ub("dst"),
                *(
                    Operand(f"src{i}", Space.UB, False, f"list {i}", STRUCTURE_BYTES)
                    for i in range(LISTS)
                ),
            ),
            fields=(
                Field("lists", 8, 11, minimum=3, doc="bit i: list i takes part; the first 2 to 4"),
                REPEAT,
                *number_fields(),
            ),
            accesses=merge_regions,
            compute=merging(dtype),
            finds=in_a_row,
            timing="sort",
            doc=f"dst = the structures of all lists, scores {dtype}, merged. With several repeats "
            "the lists follow each other in UB, and each repeat goes on behind the one before. "
            "Stopping where a list is exhausted does not exist.",
            source=SOURCE,
            check=check_lists,
        )
    )
