"""Transposes, gathers and the like by the scalar unit, element by element."""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.hir_to_hivm import elements, fallback
from davinci.passes.hir_to_hivm.control import word
from davinci.passes.hir_to_hivm.translator import Translator
from davinci.passes.hir_to_hivm.views import MemrefView


@fallback("vtranspose")
def transpose(translator: Translator, op: Op) -> None:
    """Dimension i of the result is `permutation[i]` of the source."""
    given, target, *_ = list(op.operands)
    src, dst = translator.view(op, given), translator.view(op, target)
    order = list(attribute(op, "permutation"))

    def element(at: list[IndexLike]) -> ir.Value:
        there: list[IndexLike] = [0] * len(at)
        for index, dim in zip(at, order, strict=True):
            there[dim] = index
        return elements.read_bits(translator, src, there)

    elements.compute(translator, dst, element)


@fallback("vinterleave")
def interleave(translator: Translator, op: Op) -> None:
    """dst[.., i * n + c] = src_c[.., i]."""
    sources, targets, *_ = translator.groups(op)
    dst = translator.view(op, targets[0])
    views = [translator.view(op, value) for value in sources]
    with elements.on_the_scalar_unit(translator):
        for channel, src in enumerate(views):

            def body(at: list[IndexLike], channel: int = channel, src: MemrefView = src) -> None:
                index = builder.add(builder.mul(at[-1], len(views)), channel)
                bits = elements.read_bits(translator, src, at)
                elements.write_bits(translator, dst, [*at[:-1], index], bits)

            elements.each(translator, src.sizes, body)


@fallback("vdeinterleave")
def deinterleave(translator: Translator, op: Op) -> None:
    """dst_c[.., i] = src[.., i * n + c], of all channels or of one.

    Elements of the source that lie apart are those of the first of n > 2 channels already: they
    are copied one to one.
    """
    given, *targets = list(op.operands)
    src = translator.view(op, given)
    step = 1 if is_copy(translator, op) else attribute(op, "channel_num", 2)
    mode = word(op, "index_mode", "ALL_CHANNELS")
    first = int(mode.removeprefix("CHANNEL_")) if mode != "ALL_CHANNELS" else 0
    for channel, target in enumerate(targets, first):
        dst = translator.view(op, target)

        def element(at: list[IndexLike], channel: int = channel) -> ir.Value:
            index = builder.add(builder.mul(at[-1], step), channel)
            return elements.read_bits(translator, src, [*at[:-1], index])

        elements.compute(translator, dst, element)


def is_copy(translator: Translator, op: Op) -> bool:
    """Says whether a `vdeinterleave` takes the first of more than two channels from a source whose
    strides pass over the others (AscendNPU-IR, lib/Template/lib/Vector/Deinterleave)."""
    src = translator.view(op, op.operands[0])
    chosen = word(op, "index_mode", "ALL_CHANNELS") == "CHANNEL_0"
    return chosen and attribute(op, "channel_num", 2) != 2 and src.strides[-1] != 1


@fallback("vflip")
def flip(translator: Translator, op: Op) -> None:
    given, target, *_ = list(op.operands)
    src, dst = translator.view(op, given), translator.view(op, target)
    axis = attribute(op, "flip_axis", -1) % len(dst.sizes)

    def element(at: list[IndexLike]) -> ir.Value:
        last = builder.add(dst.sizes[axis], -1)
        there = arith.SubIOp(builder.as_value(last), builder.as_value(at[axis])).result
        return elements.read_bits(translator, src, [*at[:axis], there, *at[axis + 1 :]])

    elements.compute(translator, dst, element)


@fallback("vgather")
def gather(translator: Translator, op: Op) -> None:
    """dst[.., i] = src[.., indices[.., i]], along the last axis or another one."""
    given, chosen, target, *_ = list(op.operands)
    src, indices, dst = (translator.view(op, value) for value in (given, chosen, target))
    axis = attribute(op, "gather_axis", -1)
    axis %= len(dst.sizes)

    def element(at: list[IndexLike]) -> ir.Value:
        found = elements.read_bits(translator, indices, at)
        index = arith.IndexCastOp(ir.IndexType.get(), found).result
        return elements.read_bits(translator, src, [*at[:axis], index, *at[axis + 1 :]])

    elements.compute(translator, dst, element)


@fallback("vconcat")
def concatenate(translator: Translator, op: Op) -> None:
    *sources, target = list(op.operands)
    dst, dim = translator.view(op, target), attribute(op, "dim")
    begin: IndexLike = 0
    with elements.on_the_scalar_unit(translator):
        for value in sources:
            src = translator.view(op, value)

            def body(at: list[IndexLike], begin: IndexLike = begin, src: MemrefView = src) -> None:
                there = [*at]
                there[dim] = builder.add(at[dim], begin)
                bits = elements.read_bits(translator, src, at)
                elements.write_bits(translator, dst, there, bits)

            elements.each(translator, src.sizes, body)
            begin = builder.add(begin, src.sizes[dim])
