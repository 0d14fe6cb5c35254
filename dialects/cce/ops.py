"""The cce dialect: instruction-like operations on multi-dimensional arrays.

Operands are memrefs with static shapes and strides, sources first, destination last; nothing is
returned. Memory is an attribute of the type, `memref<16x16xf16, #cce.space<"L0A">>`; a memref
without it lies in GM. Which operation takes which shapes, types and spaces is written in
docs/architecture.md; the constraints C1, C2, ... of an operation are numbered in its docstring.
Alignment of addresses is the machine's matter: `convert-cce-to-hivm` checks it.
`davinci.dialects.short_form` has the form in which npu-opt prints them. Those of the cube are in
`cube_ops.py`, those of the vector unit in `vector_ops.py`.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from typing import Any

from davinci.dialects.base import FLAG, attribute, integer, one_of, verifier
from davinci.dialects.cce.buffers import buffer_of, type_name
from davinci.dialects.cce.checks import (
    EVENT,
    PIPES,
    check_copy,
    check_exit,
    check_flag,
    require_contiguous,
    require_fractals,
    require_space,
    require_type,
    require_types,
)
from davinci.dialects.cce.instructions import (
    CROSSING,
    FIXPIPE_TYPES,
    L0C_TYPES,
    SCALED,
    SCALED_TYPES,
)
from davinci.errors import require
from davinci.isa.stores import ATOMIC_TYPES
from davinci.mlir import ext, ir
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

Operand = ext.Operand


class Cce(ext.Dialect, name="cce"):
    """Instruction-like operations on arrays in the memories of one core."""


Cce.Operation.ATTRIBUTES = {}  # of operations that say nothing else


class SpaceAttr(Cce.Attribute, name="space"):
    """Memory space of a memref: `#cce.space<"L1">`, "L0A", "L0B", "L0C", "UB", "BT" or "FB"."""

    space: ir.StringAttr


class CopyOp(Cce.Operation, name="copy"):
    """Moves an array between memories.

    C1 source and destination have the same shape and element type.
    C2 the two memories are connected (`instructions.COPIES`); from UB to L1 see `copy_l1`. Into L0A
       and L0B go runs of whole fractals.
    C3 contiguous runs are multiples of 32 bytes, into BT of 64, into FB of 128, unless `round_up`
       or `exact` is set; then there is one run, which is moved in whole blocks or, between GM and
       UB of machines that can, to the byte.
    C4 strides on chip are multiples of 32 bytes; the destination has no stride 0.
    C5 with `adds` the elements are added to those in GM, each indivisibly: a copy from UB to GM,
       without `round_up` and `exact`, of a type that stores add in.
    """

    ATTRIBUTES = {"round_up": FLAG, "exact": FLAG, "adds": FLAG}  # noqa: RUF012 - an annotation would make an operand of it
    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        path = (src.space, dst.space)
        require(path != CROSSING, "a crossing to the cube", "UB to L1", "cce.copy_l1")
        inside = next((name for name in ("exact", "round_up") if attribute(self, name, False)), "")
        if inside == "exact":
            alone = not attribute(self, "round_up", False)
            require(alone, "'exact' beside 'round_up'", "both", "one of them")
            require({*path} == {"GM", "UB"}, "'exact' of a copy", " to ".join(path), "GM and UB")
        if attribute(self, "adds", False):
            require(path == ("UB", "GM"), "'adds' of a copy", " to ".join(path), "UB to GM")
            require_type("source of a copy with 'adds'", src.dtype, ATOMIC_TYPES[1:])
            require(not inside, f"'adds' beside '{inside}'", "both", "one of them")
        check_copy(src, dst, inside)


class CopyRowsOp(Cce.Operation, name="copy_rows"):
    """Moves rows between GM and UB to the byte; how many, how long and where, the program computes.

    C1 one side is an array of one dimension in GM, contiguous: its rows begin at element `offset`
       and lie `stride` elements apart. The other side is a tile [r, l] in UB: of its first `rows`
       rows the first `elements` elements are moved.
    C2 element types are the same.
    C3 rows of the tile are contiguous and whole blocks apart.
    """

    src: Operand[Any]
    dst: Operand[Any]
    offset: Operand[ir.IndexType]
    stride: Operand[ir.IndexType]
    rows: Operand[ir.IndexType]
    elements: Operand[ir.IndexType]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        path = (src.space, dst.space)
        require({*path} == {"GM", "UB"}, "rows copied", " to ".join(path), "GM and UB")
        require(src.dtype == dst.dtype, "element types differ", dst.dtype, src.dtype)
        array, tile = (src, dst) if src.space == "GM" else (dst, src)
        require(len(array.shape) == 1, "rank of the array in GM", len(array.shape), 1)
        require_contiguous("array in GM", array)
        require(len(tile.shape) == 2, "rank of the tile", len(tile.shape), 2)
        apart = tile.shape[0] == 1 or tile.strides[0] % tile.block == 0
        legal = apart and (tile.shape[1] == 1 or tile.strides[1] == 1)
        found = list(tile.strides)
        require(legal, "strides of the tile", found, f"multiples of {tile.block}, and 1")


class CopyL1Op(Cce.Operation, name="copy_l1"):
    """Moves a tile of the vector unit into L1, for the cube.

    With `copy_l0c` and `dequantize_l0c`, by which tiles of the cube leave L0C for the vector unit,
    all that crosses from one unit to the other; between cores of two kinds tiles cross in GM.

    C1 source in UB, destination in L1; of the same shape and element type.
    C2 contiguous runs are multiples of 32 bytes, and so are strides.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_space("source", src, CROSSING[0])
        require_space("destination", dst, CROSSING[1])
        check_copy(src, dst)


class CopyL0cOp(Cce.Operation, name="copy_l0c"):
    """Moves the cube's results to UB, converting f32 to f16 if the destination is f16; with `relu`
    negative ones become 0.

    C1 source in L0C, destination in UB, both [n1, m1, 16, 16].
    C2 types f32 to f32 or f16, f16 to f16, i32 to i32.
    C3 fractals are contiguous in both; the source's outer strides are whole fractals.
    """

    ATTRIBUTES = {"relu": FLAG}  # noqa: RUF012 - see CopyOp
    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_space("source", src, "L0C")
        require_space("destination", dst, "UB")
        require(src.shape == dst.shape, "shapes differ", list(src.shape), list(dst.shape))
        require_fractals("source", src, SIDE)
        require_types(src, dst, L0C_TYPES)
        found = list(dst.strides)
        require(found[2:] == [SIDE, 1], "destination fractals are not contiguous", found)


class DequantizeL0cOp(Cce.Operation, name="dequantize_l0c"):
    """Moves sums of bytes to UB as f16, each column times a scale.

    C1 source in L0C, destination in UB, both [n1, m1, 16, 16], i32 and f16.
    C2 scales in UB, f16 [n1, 16], rows contiguous and whole blocks apart.
    C3 fractals are contiguous in both; the source's outer strides are whole fractals.
    """

    src: Operand[Any]
    scales: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, scales, dst = map(buffer_of, (self.src, self.scales, self.dst))
        require_space("source", src, "L0C")
        require_space("scales", scales, "UB")
        require_space("destination", dst, "UB")
        require(src.shape == dst.shape, "shapes differ", list(src.shape), list(dst.shape))
        require_fractals("source", src, SIDE)
        found, (sums, half) = (src.dtype, dst.dtype), SCALED
        require(found == SCALED, "types", " to ".join(found), f"{sums} to {half}")
        require_type("scales", scales.dtype, (half,))
        expected = (src.shape[0], SIDE)
        require(scales.shape == expected, "scales", list(scales.shape), list(expected))
        legal = scales.strides[1] == 1 and scales.strides[0] % SIDE == 0
        require(legal, "strides of scales", list(scales.strides), f"multiples of {SIDE}, and 1")
        made = list(dst.strides)
        require(made[2:] == [SIDE, 1], "destination fractals are not contiguous", made)


class FixpipeOp(Cce.Operation, name="fixpipe"):
    """Moves the cube's results to global memory, rounding f32 to f16 if the destination is f16;
    with `relu` negative ones become 0.

    C1 source in L0C, [n1, m1, 16, 16], columns of fractals contiguous; destination in GM.
    C2 the destination is [m, n], rows contiguous and no more than the fractals hold, or
       [n1, m1, 16, 16], columns of fractals contiguous and whole blocks apart, or [n1, m, 16], the
       first rows of columns of fractals.
    C3 types f32 to f32 or f16, i32 to i32.
    """

    ATTRIBUTES = {"relu": FLAG}  # noqa: RUF012 - see CopyOp
    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_types(src, dst, FIXPIPE_TYPES)
        check_exit(src, dst)


class FixpipeScaledOp(Cce.Operation, name="fixpipe_scaled"):
    """Moves the cube's results to global memory, times a scale: to f16, or to bytes, rounded halves
    away from zero, plus an offset; with `relu` negative ones become 0 before that. A word of 64
    bits has a scale, an offset and a sign (`isa.quantize.word`).

    C1 source and destination as those of `fixpipe`, where bytes have fractals of 32 columns:
       [n1 / 2, m1, 16, 32] or [n1 / 2, m, 32].
    C2 types i32 to f16, i32 to i8 or ui8, f32 to i8 or ui8.
    C3 words are an i64 for all columns, or one for each: i64 [n1, 16] in FB, contiguous.
    """

    ATTRIBUTES = {"relu": FLAG}  # noqa: RUF012 - see CopyOp
    src: Operand[Any]
    words: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_types(src, dst, SCALED_TYPES)
        check_exit(src, dst)
        if not isinstance(self.words.type, ir.MemRefType):
            require(type_name(self.words.type) == "s64", "type of the word", self.words.type, "i64")
            return
        words = buffer_of(self.words)
        require_space("words", words, "FB")
        require_type("words", words.dtype, ("s64",))
        require_contiguous("words", words)
        expected = [src.shape[0], SIDE]
        require(list(words.shape) == expected, "words", list(words.shape), expected)


WORDS = (2, 4)
"""Bytes of the elements that go to L1 in blocks."""


class Nd2nzOp(Cce.Operation, name="nd2nz"):
    """Moves rows from global memory to L1, where they are columns of blocks; behind the last column
    the last block is filled with zeros.

    C1 source in GM, [rows, columns], rows contiguous; elements of 16 or 32 bits.
    C2 destination in L1, [blocks, rows, elements of 32 bytes], of the source's type, blocks for all
       columns.
    C3 rows of a block are contiguous, its other strides positive multiples of 32 bytes.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_space("source", src, "GM")
        require_space("destination", dst, "L1")
        require(src.itemsize in WORDS, "bytes of elements", src.itemsize, "2 or 4")
        require(src.dtype == dst.dtype, "element types differ", dst.dtype, src.dtype)
        require(len(src.shape) == 2, "rank of source", len(src.shape), 2)
        rows, columns = src.shape
        contiguous = columns == 1 or src.strides[1] == 1
        require(contiguous, "rows are not contiguous", src.strides[1], 1)
        expected = [ceil_div(columns, src.block), rows, src.block]
        require(list(dst.shape) == expected, "shape of destination", list(dst.shape), expected)
        *others, last = dst.strides
        whole = all(
            size == 1 or (stride > 0 and stride % src.block == 0)
            for size, stride in zip(dst.shape, others, strict=False)
        )
        legal = last == 1 and whole
        require(
            legal, "strides of destination", list(dst.strides), f"multiples of {src.block}, and 1"
        )


class ClearL1Op(Cce.Operation, name="clear_l1"):
    """Fills runs in L1 with zeros, or elements of 16 bits with `bits`.

    C1 destination in L1, [runs, elements] of 16 or 32 bits.
    C2 runs are contiguous and whole blocks, and begin whole blocks apart.
    """

    ATTRIBUTES = {"bits": integer(0, (1 << 16) - 1, required=False)}  # noqa: RUF012 - see CopyOp
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        dst = buffer_of(self.dst)
        require_space("destination", dst, "L1")
        words = WORDS[:1] if attribute(self, "bits") else WORDS
        expected = " or ".join(map(str, words))
        require(dst.itemsize in words, "bytes of elements", dst.itemsize, expected)
        require(len(dst.shape) == 2, "rank of destination", len(dst.shape), 2)
        (runs, size), (stride, step) = dst.shape, dst.strides
        whole = step == 1 and size % dst.block == 0
        whole = whole and (runs == 1 or (stride >= size and stride % dst.block == 0))
        found = f"{list(dst.shape)} by {list(dst.strides)}"
        require(whole, "runs", found, f"multiples of {dst.block}, and contiguous")


class Flag(Cce.Operation):
    """Event `event` from pipe `src` to `dst`.

    C1 `src` and `dst` are pipes, `event` is an event id. C2 the pipes differ.
    """

    ATTRIBUTES = EVENT

    @verifier
    def verify_invariants(self) -> None:
        check_flag(self)


class SetFlagOp(Flag, name="set_flag"):
    """Fires event `event` from pipe `src` to `dst` when all earlier work of `src` is complete."""


class WaitFlagOp(Flag, name="wait_flag"):
    """Holds pipe `dst` until event `event` from `src` has fired, and clears it."""


class PipeBarrierOp(Cce.Operation, name="pipe_barrier"):
    """Holds later instructions of `pipe` until its earlier ones are complete; "ALL": all pipes."""

    ATTRIBUTES = {"pipe": one_of(*(p for p in PIPES if p != "S"), "ALL")}  # noqa: RUF012

    @verifier
    def verify_invariants(self) -> None:
        pass


class BlockNumber(Cce.Operation, traits=[ext.Pure]):
    """A special register of the scalar unit."""

    result: ext.Result[ir.IndexType]

    @verifier
    def verify_invariants(self) -> None:
        pass


class GetBlockIdxOp(BlockNumber, name="get_block_idx"):
    """Number of this block, from 0."""


class GetBlockNumOp(BlockNumber, name="get_block_num"):
    """Number of blocks of the launch."""


class SubBlockNumberOp(BlockNumber, name="get_sub_block_idx"):
    """Number of this vector core among those of its block, from 0."""
