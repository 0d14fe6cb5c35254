"""Products: rows into fractals in L1, products of what is in L1, and results out of L0C.

`mmadL1` cuts k into parts that fit half of L0A and L0B, loads the parts in turn into both halves,
and orders loads and products by flags, as AscendNPU-IR's library does. As there, a part of A, and
of B where that is transposed on its way, is one load3dv2 of an image of height 1, and a part of B
that is not transposed one load2d; bytes of A are a load2d a row of fractals. What it passes over is
strides: fractals of a factor follow each other, and its sizes say how far apart the columns are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.dialects.hivm import ops as hivm
from davinci.isa import Pipe, Space
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Address, Shift, constant_i64
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.control import word
from davinci.passes.hir_to_hivm.translator import (
    TEMPLATE_EVENT,
    Translator,
    Unsupported,
    minimum,
    subtract,
)
from davinci.passes.hir_to_hivm.views import MemrefView, as_i64, field, folded
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

PRODUCTS = {"f16": "f162f32", "bf16": "bf162f32", "f32": "f322f32", "s8": "s82s32"}
WORDS = {1: "b8", 2: "b16", 4: "b32"}
NO_EVENT = -1
FRACTAL_RANK = 4
FEW_FRACTALS = 10
"""Below so many fractals of the result a product waits for the one before it."""

QUANTIZED = {"": "", "NO_QUANT": "", "F322F16": "f16", "F322BF16": "bf16"}
RELU = {"": 0, "NO_RELU": 0, "NORMAL_RELU": 1}


@lowering("nd2nz")
def lower_rows_to_fractals(translator: Translator, op: Op) -> None:
    """From rows in global memory to fractals in L1."""
    (source,), (target,), *_ = translator.groups(op)
    src, dst = translator.view(op, source), translator.view(op, target)
    if attribute(op, "init_out_buffer", False):
        raise Unsupported("nd2nz that fills its buffer")
    if src.space is not Space.GM or dst.space is not Space.L1 or len(src.sizes) != 2:
        raise Unsupported(f"nd2nz from {src.space.name} to {dst.space.name}")
    step = dst.strides[0]
    if src.strides[1] != 1 or not isinstance(step, int):
        raise Unsupported("nd2nz of elements that lie apart")
    record = translator.record("copy_gm_to_cbuf_multi_nd2nz", WORDS[src.itemsize])
    lanes = BLOCK_BYTES // src.itemsize
    fields = {
        "nd_num": 1,
        "n_value": field(src.sizes[0]),
        "d_value": field(src.sizes[1]),
        "src_nd_matrix_stride": 0,
        # How far apart rows are means nothing for one of them, and may be more than fits.
        "src_d_value": field(src.strides[0] if src.sizes[0] != 1 else src.sizes[1]),
        "dst_nz_c0_stride": step // lanes,
        "dst_nz_n_stride": 1,
        "dst_nz_matrix_stride": 0,
    }
    translator.instruction(record, [dst.address, src.address], **fields)


def fill_fractals(translator: Translator, dst: MemrefView, bits: IndexLike) -> None:
    """Every element of a buffer in L1 becomes the number whose bits are given."""
    count = dense_elements(dst)
    if dst.itemsize not in (2, 4) or count * dst.itemsize % BLOCK_BYTES:
        raise Unsupported(f"vbrc in L1 of {count} elements of {dst.kind}")
    record = translator.record("create_cbuf_matrix", WORDS[dst.itemsize])
    blocks = count * dst.itemsize // BLOCK_BYTES
    fields = {"n_burst": 1, "len_burst": blocks, "dst_gap": 0, "value": bits}
    translator.instruction(record, [dst.address], **fields)


def dense_elements(view: MemrefView) -> int:
    """How many elements a buffer without gaps has."""
    total = 1
    for size, step in zip(reversed(view.sizes), reversed(view.strides), strict=True):
        if not isinstance(size, int) or (size != 1 and step != total):
            raise Unsupported("a buffer in L1 with gaps")
        total *= size
    return total


@lowering("fixpipe")
def lower_fixpipe(translator: Translator, op: Op) -> None:
    """From L0C to rows or to columns of fractals in global memory, converted on the way."""
    (source,), (target,), *rest = translator.groups(op)
    src, dst = translator.view(op, source), translator.view(op, target)
    mode = word(op, "dma_mode", "normal")
    fractals = mode == "normal" and len(dst.sizes) == FRACTAL_RANK
    if any(rest) or not (fractals or (mode == "nz2nd" and len(dst.sizes) == 2)):
        raise Unsupported(f"fixpipe {mode} to {len(dst.sizes)} dimensions")
    quantized, relu = word(op, "pre_quant"), word(op, "pre_relu")
    if quantized not in QUANTIZED or relu not in RELU:
        raise Unsupported(f"fixpipe {quantized} {relu}")
    if src.kind not in ("f32", "s32") or dst.space is not Space.GM:
        raise Unsupported(f"fixpipe from {src.kind} to {dst.space.name}")
    result = QUANTIZED[quantized]
    record = translator.record("fixpipe", f"{src.kind}2{result}" if result else src.kind)
    fields = columns_of_fractals(dst) if fractals else rows_of_elements(dst)
    fields["src_stride"] = field(builder.divided(src.strides[0], SIDE))
    fields["relu"] = RELU[relu]
    translator.instruction(record, [dst.address, src.address], **fields)


def rows_of_elements(dst: MemrefView) -> dict[str, IndexLike]:
    """Fields of a fixpipe that stores its result as rows of elements (NZ2ND)."""
    return {
        "n_size": field(dst.sizes[1]),
        "m_size": field(dst.sizes[0]),
        "dst_stride": field(dst.strides[0]),
        "nz2nd": 1,
    }


def columns_of_fractals(dst: MemrefView) -> dict[str, IndexLike]:
    """How a fixpipe writes columns of fractals, without gaps in each of them.

    Raises:
        Unsupported: they have some, or sizes that the program computes.
    """
    dense = (*dst.sizes[2:], *dst.strides[1:]) == (SIDE, SIDE, SIDE * SIDE, SIDE, 1)
    if not (dst.static and dense):
        raise Unsupported("fixpipe to fractals with gaps")
    (columns, rows, *_), step = dst.shape, dst.steps[0]
    return {
        "n_size": columns * SIDE,
        "m_size": rows * SIDE,
        "dst_stride": step * dst.itemsize // BLOCK_BYTES,
        "nz2nd": 0,
    }


@dataclass(frozen=True)
class FactorInL1:
    """A factor in L1 as fractals of 16 rows of 32 bytes without gaps, and where its parts go.

    Attributes:
        view: the fractals, by blocks of the outer and of the inner dimension.
        turned: whether fractals are transposed.
        k_first: whether the blocks of k are the outer dimension in L1, whose elements are columns
            of fractals.
    """

    view: MemrefView
    turned: bool
    k_first: bool

    @staticmethod
    def of(view: MemrefView, turned: bool, k_first: bool) -> FactorInL1:
        """The factor that a view is.

        Raises:
            Unsupported: its sizes are not known, or its fractals lie apart, which AscendNPU-IR's
                library does not see.
        """
        if not view.static:
            raise Unsupported("mmadL1 of a size that the program computes")
        (outer, inner), steps = view.shape[:2], view.steps[:2]
        fractal = math.prod(view.shape[2:])
        if (outer > 1 and steps[0] != inner * fractal) or (inner > 1 and steps[1] != fractal):
            raise Unsupported(f"mmadL1 of fractals {steps} elements apart")
        return FactorInL1(view, turned, k_first)

    @property
    def lanes(self) -> int:
        """Columns of a fractal."""
        return BLOCK_BYTES // self.view.itemsize

    @property
    def k_unit(self) -> int:
        """Elements of k in a block."""
        return self.lanes if self.k_first else SIDE

    @property
    def other_unit(self) -> int:
        """Elements of the other dimension in a block."""
        return SIDE if self.k_first else self.lanes

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks of k and of the other dimension."""
        outer, inner = self.view.shape[:2]
        return (outer, inner) if self.k_first else (inner, outer)

    @property
    def elements(self) -> tuple[int, int]:
        """Elements of k and of the other dimension, padding among them."""
        of_k, of_other = self.blocks
        return of_k * self.k_unit, of_other * self.other_unit

    def fractal(self, k: IndexLike, other: IndexLike) -> Shift:
        """Bytes from the first fractal to the one of these blocks."""
        steps = [self.stride(along_k) for along_k in (True, False)]
        number = builder.add(builder.mul(k, steps[0]), builder.mul(other, steps[1]))
        return self.view.step(number, SIDE * self.lanes)

    def stride(self, along_k: bool) -> int:
        """Fractals from one block to the next."""
        return self.view.shape[1] if along_k == self.k_first else 1


class L1Product:
    """One `mmadL1`."""

    def __init__(self, translator: Translator, op: Op) -> None:
        groups = translator.groups(op)
        (a,), (b,), (init,), (m,), (k,), (n,), (c,), events, unit, *more = groups
        if unit or any(more) or "unit_flag_mode" in op.attributes:
            raise Unsupported("mmadL1 with a bias or unit flags")
        self.translator, self.init = translator, init
        self.c = translator.view(op, c)
        rows = self.c.sizes[1]
        if not isinstance(rows, int):
            raise Unsupported("mmadL1 into a result whose size the program computes")
        self.rows = rows
        left, right = translator.view(op, a), translator.view(op, b)
        kind = left.kind
        if kind not in PRODUCTS:
            raise Unsupported(f"mmadL1 of {kind}")
        if "enable_HF32" in op.attributes:
            raise Unsupported("mmadL1 that rounds f32 to HF32")
        self.record = translator.record("mad", PRODUCTS[kind])
        a_turned, b_turned = "a_transpose" in op.attributes, "b_transpose" in op.attributes
        self.a = FactorInL1.of(left, a_turned, k_first=not a_turned)
        # L0B has fractals of [n, k], L1 those of [k, n] unless B is transposed.
        self.b = FactorInL1.of(right, not b_turned, k_first=b_turned)
        if kind == "s8" and (self.a.turned or self.b.turned):
            raise Unsupported("mmadL1 that transposes bytes")
        self.bits = kind if kind in ("f32", "s8") else "f16"
        self.m, self.k, self.n = (folded(value) for value in (m, k, n))
        given = [folded(value) for value in events] + [NO_EVENT] * (7 - len(events))
        self.wait_a, self.wait_b, self.free_a, self.free_b, self.turn, *self.back = given
        self.itemsize = left.itemsize

    def build(self) -> None:
        """The instructions of all parts."""
        for event, given in enumerate(self.back):
            if given == NO_EVENT:
                self.flag("set_flag", Pipe.M, Pipe.MTE1, event)
        half = self.translator.machine.buffers.L0A.bytes // 2
        widest = ceil_div(max(self.a.elements[1], self.b.elements[1]), SIDE) * SIDE
        unit = max(SIDE, self.a.k_unit, self.b.k_unit)
        most = half // self.itemsize // widest // unit * unit
        if not most:
            raise Unsupported("mmadL1 whose factors do not fit half of L0A or L0B")
        total = self.k if isinstance(self.k, int) else self.a.elements[0]
        parts = ceil_div(total, most)
        for number in range(parts):
            self.part(number, parts, most, half)
        for event, given in enumerate(self.back):
            if given == NO_EVENT:
                self.flag("wait_flag", Pipe.M, Pipe.MTE1, event)

    def flag(self, name: str, source: Pipe, target: Pipe, event: IndexLike) -> None:
        fields = {"src_pipe": int(source), "dst_pipe": int(target), "event": event}
        hivm.build(name, "", [], fields)

    def part(self, number: int, parts: int, most: int, half: int) -> None:
        """Loads a part of k into the half whose turn it is, and multiplies it."""
        first, last = number == 0, number == parts - 1
        size: IndexLike = minimum(subtract(self.k, number * most), most)
        if not isinstance(self.k, int):
            size = self.translator_max(size)
        side, event = self.whose_turn(number, parts)
        self.flag("wait_flag", Pipe.M, Pipe.MTE1, event)
        for waits, frees, factor, space in (
            (self.wait_a, self.free_a, self.a, Space.L0A),
            (self.wait_b, self.free_b, self.b, Space.L0B),
        ):
            if first and waits != NO_EVENT:
                self.flag("wait_flag", Pipe.MTE2, Pipe.MTE1, waits)
            at = Address(space, None, self.half(side, half))
            blocks = builder.divided(builder.add(size, factor.k_unit - 1), factor.k_unit)
            begin = number * most // factor.k_unit
            if factor.turned or (factor is self.a and self.bits != "s8"):
                self.load_image(factor, at, begin, blocks)
            elif factor is self.a:
                self.load_left(factor, at, begin, blocks)
            else:
                self.load_right(factor, at, begin, blocks)
            if last and frees != NO_EVENT:
                self.flag("set_flag", Pipe.MTE1, Pipe.MTE2, frees)
        self.flag("set_flag", Pipe.MTE1, Pipe.M, TEMPLATE_EVENT)
        self.flag("wait_flag", Pipe.MTE1, Pipe.M, TEMPLATE_EVENT)
        self.multiply(size, first, side, half)
        self.flag("set_flag", Pipe.M, Pipe.MTE1, event)

    @staticmethod
    def translator_max(size: IndexLike) -> IndexLike:
        """A number of elements of which there may be fewer than none."""
        zero = builder.constant_index(0)
        return arith.MaxSIOp(builder.as_value(size), zero).result

    def whose_turn(self, number: int, parts: int) -> tuple[IndexLike, IndexLike]:
        """Which half of L0A and L0B a part takes, and the flag that says it is free."""
        if self.turn == NO_EVENT:
            side: IndexLike = number % 2
        else:
            turn = self.turn
            if isinstance(turn, int):
                side = (turn * parts + number) % 2
            else:
                moved = arith.MulIOp(turn, constant_i64(parts)).result
                moved = arith.AddIOp(moved, constant_i64(number)).result
                side = arith.AndIOp(moved, constant_i64(1)).result
        names = [event if given == NO_EVENT else given for event, given in enumerate(self.back)]
        if isinstance(side, int):
            return side, names[side]
        if names == [0, 1]:
            return side, side
        zero = arith.CmpIOp(arith.CmpIPredicate.eq, side, constant_i64(0)).result
        values = [n if not isinstance(n, int) else constant_i64(n) for n in names]
        return side, arith.SelectOp(zero, *values).result

    @staticmethod
    def half(side: IndexLike, size: int) -> Shift:
        """Where a half of L0A or L0B begins."""
        if isinstance(side, int):
            return Shift(side * size)
        return Shift(0, arith.MulIOp(side, constant_i64(size)).result)

    def load_image(self, side: FactorInL1, at: Address, begin: int, blocks: IndexLike) -> None:
        """A factor as an image of height 1: a pixel is a row of fractals, its channels are their
        columns. Where fractals are turned, pixels are k and channels become rows of L0A or L0B."""
        if side is self.a:
            of_other = self.rows * SIDE
        else:
            known = self.n if isinstance(self.n, int) else side.elements[1]
            of_other = ceil_div(known, side.other_unit) * side.other_unit
        extents: list[IndexLike] = [builder.mul(blocks, side.k_unit), of_other]
        pixels, channels = extents if side.turned else reversed(extents)
        pads = dict.fromkeys(("pad_left", "pad_right", "pad_top", "pad_bottom"), 0)
        width = SIDE * side.view.shape[1]
        fmatrix = self.translator.record("set_fmatrix")
        self.translator.instruction(fmatrix, [], l1_w=width, l1_h=1, **pads)
        place = "ca" if at.space is Space.L0A else "cb"
        record = self.translator.record(f"img2colv2_cbuf_to_{place}", self.bits)
        fields: dict[str, IndexLike] = {f.name: f.minimum for f in record.fields}
        fields |= {"k_extension": field(channels), "m_extension": field(pixels)}
        if at.space is Space.L0A:
            fields["transpose"] = int(side.turned)
        source = side.view.at(side.fractal(begin, 0)).address
        self.translator.instruction(record, [at, source], **fields)

    def load_left(self, side: FactorInL1, at: Address, begin: int, blocks: IndexLike) -> None:
        """Bytes of A as rows of fractals: one instruction for each 16 rows."""
        record = self.translator.record("load_cbuf_to_ca", self.bits)
        fields = {"start_index": 0, "src_stride": side.stride(along_k=True), "transpose": 0}
        for row in range(side.blocks[1]):
            target = at.plus(fractals(builder.mul(blocks, row)))
            source = side.view.at(side.fractal(begin, row)).address
            self.translator.instruction(record, [target, source], repeat=field(blocks), **fields)

    def load_right(self, side: FactorInL1, at: Address, begin: int, blocks: IndexLike) -> None:
        """B as rows of fractals of [n, k]: one instruction, or one for each block of k where fewer
        columns are multiplied than lie in L1."""
        wide = ceil_div(self.n, SIDE) if isinstance(self.n, int) else side.blocks[1]
        wide = min(wide, side.blocks[1])
        record = self.translator.record("load_cbuf_to_cb", self.bits)
        fields = {"start_index": 0, "src_stride": 1, "transpose": 0}

        def load(k: IndexLike, repeat: IndexLike) -> None:
            target = at.plus(fractals(builder.mul(k, wide)))
            source = side.view.at(side.fractal(builder.add(k, begin), 0)).address
            self.translator.instruction(record, [target, source], repeat=field(repeat), **fields)

        if wide == side.blocks[1]:
            load(0, builder.mul(blocks, wide))
        elif isinstance(blocks, int):
            for number in range(blocks):
                load(number, wide)
        else:
            with builder.for_loop(0, blocks) as k, self.translator.emitter.block():
                load(k, wide)

    def multiply(self, size: IndexLike, first: bool, side: IndexLike, half: int) -> None:
        """C += A B of a part, or C = A B."""
        wide = self.n if isinstance(self.n, int) else self.b.elements[1]
        init: IndexLike = 0
        if first:
            known = folded(self.init) if constant(self.init) else None
            i64 = ir.IntegerType.get_signless(64)
            init = int(bool(known)) if known is not None else arith.ExtUIOp(i64, self.init).result
        at = [
            self.c.address,
            Address(Space.L0A, None, self.half(side, half)),
            Address(Space.L0B, None, self.half(side, half)),
        ]
        fields = {"m": self.rows * SIDE, "k": field(size), "n": wide, "init": init}
        if self.record.field_named("k_align"):
            fields["k_align"] = int(self.a.turned)
        self.translator.instruction(self.record, at, **fields)
        if self.rows * ceil_div(wide, SIDE) < FEW_FRACTALS:
            self.translator.barrier(Pipe.M)


def constant(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.name == "arith.constant"


def fractals(number: IndexLike) -> Shift:
    """So many fractals in bytes."""
    if isinstance(number, int):
        return Shift(number * FRACTAL_BYTES)
    return Shift(0, as_i64(builder.mul(number, FRACTAL_BYTES)))


@lowering("mmadL1")
def lower_product(translator: Translator, op: Op) -> None:
    """C = A B, or C += A B, of matrices in L1."""
    L1Product(translator, op).build()
