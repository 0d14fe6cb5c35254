"""Reductions inside a repeat: over all lanes, over each block of 32 bytes, over pairs of lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Compute,
    Instruction,
    Pipe,
    Registers,
    Space,
    Values,
    define,
)
from davinci.isa.vector_regions import FLOATS, check_repeats, ub, unary_fields
from davinci.units import BLOCK_BYTES, REPEAT_BYTES
from davinci.units import REPEAT_BLOCKS as BLOCKS

SOURCE = "docs/hardware.md a1 (types), b2 (time), c (strides, repeat, mask)"


class ReducedRegions:
    """Regions of a reduction: a source of repeats, `results` elements of the destination each.

    Args:
        dtype: element type of source and destination.
        results: elements written for a repeat.
        unit: elements that a destination repeat stride of 1 stands for.
    """

    def __init__(self, dtype: str, results: int, unit: int) -> None:
        self.dtype = DTYPES[dtype]
        self.results, self.unit = results, unit
        self.lanes = REPEAT_BYTES // self.dtype.itemsize

    def regions(self, values: Values, registers: Registers) -> Accesses:
        """The source as [repeat, lanes] or [repeat, blocks, lanes]; dst as [repeat, results]."""
        repeat = values["repeat"]
        active, mask = registers.lanes(self.lanes)
        if active == 0:
            repeat = 0
        row = (repeat, values["src_rep_stride"] * BLOCK_BYTES)
        if values["src_blk_stride"] == 1:
            read = Access(Space.UB, values["src"], (row,), active, self.dtype, mask)
        else:
            if mask is None and active != self.lanes:
                mask = np.arange(self.lanes) < active
            if mask is not None:
                mask = mask.reshape(BLOCKS, -1)
            dims = (row, (BLOCKS, values["src_blk_stride"] * BLOCK_BYTES))
            read = Access(Space.UB, values["src"], dims, self.lanes // BLOCKS, self.dtype, mask)
        step = values["dst_rep_stride"] * self.unit * self.dtype.itemsize
        write = Access(Space.UB, values["dst"], ((repeat, step),), self.results, self.dtype)
        return [read], [write]

    def source(self, array: Array, registers: Registers, neutral: float) -> Array:
        """The lanes read as [repeat, lanes], those that take no part replaced by `neutral`."""
        if array.size == 0:
            return np.empty((0, self.lanes), dtype=self.dtype)
        rows = array.reshape(array.shape[0], -1)
        active, mask = registers.lanes(self.lanes)
        if mask is None and active == self.lanes:
            return rows
        result = np.full((rows.shape[0], self.lanes), neutral, dtype=self.dtype)
        if mask is None:
            result[:, :active] = rows[:, :active]
        else:
            np.copyto(result, rows, where=mask)
        return result


def repeat_sum(rows: ReducedRegions) -> Compute:
    """vcadd: the sum of a repeat, accumulated in single precision."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        lanes = rows.source(arrays[0], registers, 0)
        return [lanes.sum(axis=1, dtype=np.float32, keepdims=True).astype(rows.dtype)]

    return compute


def repeat_extreme(rows: ReducedRegions, pick: Callable[..., Any], neutral: float) -> Compute:
    """vcmax and vcmin: value and lane number of the first extreme lane of a repeat."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        lanes = rows.source(arrays[0], registers, neutral)
        index = pick(lanes, axis=1).astype(f"u{rows.dtype.itemsize}")
        found = np.take_along_axis(lanes, index[:, None].astype(np.intp), axis=1)
        return [np.concatenate([found, index[:, None].view(rows.dtype)], axis=1)]

    return compute


def block_reduce(rows: ReducedRegions, function: Callable[..., Any], neutral: float) -> Compute:
    """vcgadd, vcgmax, vcgmin: one result a block; sums are accumulated in single precision."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        lanes = rows.source(arrays[0], registers, neutral).astype(np.float32)
        blocks = lanes.reshape(-1, BLOCKS, rows.lanes // BLOCKS)
        return [function(blocks, axis=2).astype(rows.dtype)]

    return compute


def pair_sum(rows: ReducedRegions) -> Compute:
    """vcpadd: lane 2i + lane 2i + 1."""

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        lanes = rows.source(arrays[0], registers, 0)
        return [lanes[:, 0::2] + lanes[:, 1::2]]

    return compute


def reduction(
    name: str, dtype: str, rows: ReducedRegions, compute: Compute, doc: str, unit: str
) -> None:
    """Defines one reduction; `unit` is the unit of the destination's repeat stride."""
    align = rows.results * rows.dtype.itemsize
    define(
        Instruction(
            name=name,
            type=dtype,
            pipe=Pipe.V,
            operands=(ub("dst", align_bytes=min(align, BLOCK_BYTES)), ub("src")),
            fields=unary_fields(
                "dst",
                "src",
                dst_rep_doc=f"{unit} from the results of one repeat to those of the next",
                blocks=False,
            ),
            accesses=rows.regions,
            compute=compute,
            timing="vector",
            doc=doc,
            source=SOURCE,
            check=check_repeats,
        )
    )


for dtype in FLOATS:
    single = ReducedRegions(dtype, 1, 1)
    reduction(
        "vcadd",
        dtype,
        single,
        repeat_sum(single),
        "dst[r] = sum of the active lanes of repeat r, in single precision, rounded at the end.",
        "elements",
    )

EXTREME: list[tuple[str, Callable[..., Any], float, str]] = [
    ("vcmax", np.argmax, -np.inf, "largest"),
    ("vcmin", np.argmin, np.inf, "smallest"),
]

GROUPED: list[tuple[str, Callable[..., Any], float, str]] = [
    ("vcgadd", np.sum, 0.0, "sum"),
    ("vcgmax", np.max, -np.inf, "maximum"),
    ("vcgmin", np.min, np.inf, "minimum"),
]

for dtype in FLOATS:
    pairs, groups = ReducedRegions(dtype, 2, 2), ReducedRegions(dtype, BLOCKS, BLOCKS)
    half = pairs.lanes // 2
    halves = ReducedRegions(dtype, half, half)
    for name, pick, neutral, doc in EXTREME:
        reduction(
            name,
            dtype,
            pairs,
            repeat_extreme(pairs, pick, neutral),
            f"dst[r] = ({doc} active lane of repeat r, its lane number as a "
            f"{8 * pairs.dtype.itemsize}-bit integer); the first of equal lanes.",
            "pairs of elements",
        )
    for name, function, neutral, doc in GROUPED:
        reduction(
            name,
            dtype,
            groups,
            block_reduce(groups, function, neutral),
            f"dst[r, b] = {doc} of the active lanes of block b of repeat r, 8 results a repeat; "
            f"{neutral} for a block without active lanes.",
            "groups of 8 elements",
        )
    reduction(
        "vcpadd",
        dtype,
        halves,
        pair_sum(halves),
        f"dst[r, i] = lane 2i + lane 2i + 1 of repeat r, {half} results a repeat; masked lanes "
        "count as 0.",
        f"groups of {half} elements",
    )
