"""Copies between global memory and UB, inside UB, and of whole blocks to L1.

Rows that lie without a gap become one burst, others a burst each; elements that lie apart are moved
by the scalar unit, one by one, as AscendNPU-IR's library does. Where a stride is an argument of the
kernel, the program asks whether it is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product

from davinci.dialects.base import attribute
from davinci.dialects.hivm import ops as hivm
from davinci.isa import Pipe, Space
from davinci.isa.stores import ELEMENTS
from davinci.mlir import NumberType, Op, arith, ir, scf
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Shift
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.control import word
from davinci.passes.hir_to_hivm.elements_moves import is_copy
from davinci.passes.hir_to_hivm.elementwise import issue, merged
from davinci.passes.hir_to_hivm.translator import (
    Translator,
    Unsupported,
    minimum,
    subtract,
)
from davinci.passes.hir_to_hivm.views import MemrefView, field, folded
from davinci.units import BLOCK_BYTES

WORDS = {1: "b8", 2: "b16", 4: "b32", 8: "b32"}
"""Types of copies by bytes of an element; 64 bits are two words."""

COMBINING = {"add": "", "max": "max_", "min": "min_"}
"""Kinds of atomic stores, and how the names of instructions for them begin."""

NONE = ("", "none")


@lowering("load")
def lower_load(translator: Translator, op: Op) -> None:
    """From global memory to UB, where what the buffer holds behind short rows was put there before,
    or in whole blocks to L1."""
    src, dst, _, left, right, _ = padded(translator.groups(op), 6)
    for group, name in ((left, "left"), (right, "right")):
        if group and folded(group[0]) != 0:
            raise Unsupported(f"load with {name} padding")
    if attribute(op, "init_out_buffer", False):
        raise Unsupported("load that fills its buffer")
    source, target = translator.view(op, src[0]), translator.view(op, dst[0])
    if (source.space, target.space) == (Space.GM, Space.L1):
        load_blocks(translator, source, target)
        return
    if (source.space, target.space) != (Space.GM, Space.UB):
        raise Unsupported(f"load from {source.space.name} to {target.space.name}")
    transfer(translator, source, target, "copy_gm_to_ubuf_align", Pipe.MTE2)


def load_blocks(translator: Translator, src: MemrefView, dst: MemrefView) -> None:
    """Rows of whole blocks go to L1, those of the last dimension but one by one instruction.

    Raises:
        Unsupported: rows are not whole blocks, or the program computes how many or how long.
    """
    sizes, strides = merged([src, dst])
    *counts, elements = map(folded_number, sizes)
    counts, length = counts or [1], elements * src.itemsize
    steps = [[folded_number(n) * src.itemsize for n in each[:-1]] or [length] for each in strides]
    whole = all(n % BLOCK_BYTES == 0 for n in (length, *steps[0], *steps[1]))
    if not whole or any(each[-1] != 1 for each in strides):
        raise Unsupported("load to L1 of other rows than whole blocks")
    record = translator.record("copy_gm_to_cbuf")
    gaps = [(each[-1] - length) // BLOCK_BYTES for each in steps]
    fields = {"len_burst": length // BLOCK_BYTES, "src_gap": gaps[0], "dst_gap": gaps[1]}
    for place in product(*map(range, counts[:-1])):
        at = [
            view.at(Shift(sum(i * n for i, n in zip(place, each[:-1], strict=True)))).address
            for view, each in ((dst, steps[1]), (src, steps[0]))
        ]
        translator.instruction(record, at, n_burst=counts[-1], **fields)


def folded_number(value: IndexLike) -> int:
    """A number that is known.

    Raises:
        Unsupported: the program computes it.
    """
    if not isinstance(value, int):
        raise Unsupported("load to L1 of a size that the program computes")
    return value


@lowering("store")
def lower_store(translator: Translator, op: Op) -> None:
    """From UB to global memory, or added to what is there."""
    source, target = (translator.view(op, value) for value in op.operands)
    if (source.space, target.space) != (Space.UB, Space.GM):
        raise Unsupported(f"store from {source.space.name} to {target.space.name}")
    kind = word(op, "atomic_kind")
    with adding(translator, kind, source.kind):
        transfer(translator, source, target, "copy_ubuf_to_gm_align", Pipe.MTE3)


@contextmanager
def adding(translator: Translator, atomic: str, kind: str) -> Iterator[None]:
    """Stores inside add to memory, or leave a maximum there, if that is the kind of atomic store.

    Raises:
        Unsupported: another kind, or an element type that stores cannot add.
    """
    if atomic in NONE:
        yield
        return
    if atomic not in COMBINING or kind not in ELEMENTS:
        raise Unsupported(f"atomic {atomic} of {kind}")
    translator.barrier(Pipe.MTE3)
    hivm.build(translator.record(f"set_atomic_{COMBINING[atomic]}{kind}").name, "", [], {})
    yield
    hivm.build("set_atomic_none", "", [], {})
    translator.barrier(Pipe.MTE3)


def padded(groups: list[list[ir.Value]], count: int) -> list[list[ir.Value]]:
    return groups + [[]] * (count - len(groups))


def transfer(
    translator: Translator, src: MemrefView, dst: MemrefView, name: str, pipe: Pipe
) -> None:
    """Copies `src` to `dst`, one in global memory, one in UB, of equal sizes."""
    if src.kind == "i1":
        raise Unsupported("copies of booleans")
    sizes, strides = merged([src, dst])
    unknown = next((s[-1] for s in strides if not isinstance(s[-1], int)), None)

    def dense() -> None:
        ones = [[*s[:-1], 1 if s[-1] is unknown else s[-1]] for s in strides]
        rows(translator, src.with_dims(sizes, ones[0]), dst.with_dims(sizes, ones[1]), name, pipe)

    first, second = src.with_dims(sizes, strides[0]), dst.with_dims(sizes, strides[1])
    if unknown is None:
        rows(translator, first, second, name, pipe)
        return
    one = arith.CmpIOp(arith.CmpIPredicate.eq, unknown, builder.constant_index(1)).result
    branches(translator, one, dense, lambda: by_scalars(translator, first, second, pipe))


def branches(
    translator: Translator, condition: ir.Value, true: Callable[[], None], false: Callable[[], None]
) -> None:
    """Builds both sides of a branch of the scalar program."""
    made = scf.IfOp(condition, has_else=True)
    for block, build in ((made.then_block, true), (made.else_block, false)):
        with ir.InsertionPoint(block), translator.emitter.block():
            build()
            scf.YieldOp([])
    translator.emitter.forget()


def rows(translator: Translator, src: MemrefView, dst: MemrefView, name: str, pipe: Pipe) -> None:
    """Copies rows whose elements lie without a gap, at distances that bursts can have."""
    local = dst if dst.space is Space.UB else src
    size = src.itemsize
    inner = (src.strides[-1], dst.strides[-1])
    steps = local.strides[:-1]
    aligned = all(isinstance(n, int) and n * size % BLOCK_BYTES == 0 for n in steps)
    if inner != (1, 1) and len(src.sizes) >= 1:
        spread = local.strides[-1]
        if isinstance(spread, int) and spread * size % BLOCK_BYTES == 0 and spread:
            # Each element is a row of its own, in a block of its own.
            one, other = (
                view.with_dims((*view.sizes, 1), (*view.strides, 1)) for view in (src, dst)
            )
            rows(translator, one, other, name, pipe)
            return
        by_scalars(translator, src, dst, pipe)
        return
    if not aligned:
        by_scalars(translator, src, dst, pipe)
        return
    record = translator.record(name, WORDS[size])
    length = builder.mul(src.sizes[-1], size)
    outer = len(src.sizes) - 1

    def bursts(
        first: MemrefView, second: MemrefView, count: IndexLike, steps: Sequence[IndexLike]
    ) -> None:
        most = record.field_named("n_burst")
        assert most is not None, "bursts have a number"
        here, there = (1, 0) if local is dst else (0, 1)
        gap_here = gap_of(steps[here], length, size)
        gap_there = subtract(builder.mul(steps[there], size), length)
        gaps = (gap_there, gap_here) if local is dst else (gap_here, gap_there)

        def some(at: Sequence[MemrefView], number: IndexLike) -> None:
            fields = {
                "n_burst": field(number),
                "len_burst": field(length),
                "src_gap": field(gaps[0]),
                "dst_gap": field(gaps[1]),
            }
            translator.instruction(record, [at[1].address, at[0].address], **fields)

        pieces(translator, (first, second), count, steps, most.limit, some)

    def walk(level: int, first: MemrefView, second: MemrefView) -> None:
        if level >= outer - 1:
            if not outer:
                bursts(first, second, 1, (src.sizes[-1], src.sizes[-1]))
            else:
                steps = (src.strides[level], dst.strides[level])
                if any(overlap(step, length, size) for step in steps):
                    with builder.for_loop(0, src.sizes[level]) as i, translator.emitter.block():
                        moved = [
                            v.at(v.step(i, s)) for v, s in zip((first, second), steps, strict=True)
                        ]
                        bursts(moved[0], moved[1], 1, (src.sizes[-1], src.sizes[-1]))
                    translator.emitter.forget()
                else:
                    bursts(first, second, src.sizes[level], steps)
            return
        with builder.for_loop(0, src.sizes[level]) as index, translator.emitter.block():
            walk(
                level + 1,
                first.at(first.step(index, src.strides[level])),
                second.at(second.step(index, dst.strides[level])),
            )
        translator.emitter.forget()

    walk(0, src, dst)


def overlap(step: IndexLike, length: IndexLike, size: int) -> bool:
    """Whether rows of `length` bytes begin inside the ones before, where gaps would be negative."""
    if not isinstance(step, int):
        return False
    return step == 0 or (isinstance(length, int) and step * size < length)


def gap_of(step: IndexLike, length: IndexLike, size: int) -> IndexLike:
    """Blocks of UB between a burst of `length` bytes and the next, `step` elements later."""
    taken = builder.divided(builder.add(length, BLOCK_BYTES - 1), BLOCK_BYTES)
    whole = builder.divided(builder.mul(step, size), BLOCK_BYTES)
    if isinstance(step, int) and isinstance(length, int):
        return max(0, step * size // BLOCK_BYTES - -(-length // BLOCK_BYTES))
    found = subtract(whole, taken)
    zero = builder.constant_index(0)
    return arith.MaxSIOp(builder.as_value(found), zero).result


def pieces(
    translator: Translator,
    views: tuple[MemrefView, MemrefView],
    count: IndexLike,
    steps: Sequence[IndexLike],
    most: int,
    build: Callable[[Sequence[MemrefView], IndexLike], None],
) -> None:
    """Calls `build` for at most `most` of `count` rows at a time."""
    if isinstance(count, int) and count <= most:
        build(views, count)
        return
    chunks = builder.divided(builder.add(count, most - 1), most)
    with builder.for_loop(0, chunks) as chunk, translator.emitter.block():
        first = builder.mul(chunk, most)
        moved = [v.at(v.step(first, s)) for v, s in zip(views, steps, strict=True)]
        build(moved, minimum(subtract(count, first), most))
    translator.emitter.forget()


def by_scalars(translator: Translator, src: MemrefView, dst: MemrefView, pipe: Pipe) -> None:
    """The scalar unit moves the elements, between what the pipe did before and does next."""
    kind = ir.IntegerType.get_signless(16) if src.kind == "bf16" else element_type(src.kind)
    translator.hand_over(pipe, Pipe.S)

    def walk(level: int, first: MemrefView, second: MemrefView) -> None:
        if level == len(src.sizes):
            translator.store(second, Shift(), translator.load(first, Shift(), kind))
            return
        with builder.for_loop(0, src.sizes[level]) as index, translator.emitter.block():
            walk(
                level + 1,
                first.at(first.step(index, src.strides[level])),
                second.at(second.step(index, dst.strides[level])),
            )

    walk(0, src, dst)
    translator.emitter.forget()
    translator.hand_over(Pipe.S, pipe)


def element_type(kind: str) -> NumberType:
    """The MLIR type of elements that instructions call `kind`."""
    if kind == "f16":
        return ir.F16Type.get()
    if kind == "f32":
        return ir.F32Type.get()
    return ir.IntegerType.get_signless(int(kind[1:]))


@lowering("copy")
def lower_copy(translator: Translator, op: Op) -> None:
    """Inside UB: blocks where rows are whole ones, else the lanes of the vector unit."""
    src, dst = (translator.view(op, value) for value in list(op.operands)[:2])
    if (src.space, dst.space) != (Space.UB, Space.UB):
        raise Unsupported(f"copy from {src.space.name} to {dst.space.name}")
    move(translator, src, dst)


@lowering("vdeinterleave")
def lower_deinterleave(translator: Translator, op: Op) -> None:
    """One channel whose elements begin blocks on both sides is copied by the vector unit.

    Raises:
        Unsupported: any other form.
    """
    if not is_copy(translator, op):
        raise Unsupported("deinterleaving by the vector unit")
    move(translator, *(translator.view(op, value) for value in op.operands))


def move(translator: Translator, src: MemrefView, dst: MemrefView) -> None:
    """Copies inside UB, on the vector unit's pipe."""
    if src.kind == "i1":
        src, dst = (bytes_of_bits(view) for view in (src, dst))
    sizes, strides = merged([src, dst])
    size = src.itemsize
    whole = len(sizes) == 1 and isinstance(sizes[0], int) and sizes[0] * size % BLOCK_BYTES == 0
    if whole and strides[0][-1] == strides[1][-1] == 1:
        assert isinstance(sizes[0], int), "whole blocks are counted"
        record = translator.record("copy_ubuf_to_ubuf")
        fields = {"n_burst": 1, "len_burst": sizes[0] * size // BLOCK_BYTES}
        addresses = [dst.address, src.address]
        translator.instruction(record, addresses, **fields, src_gap=0, dst_gap=0)
        return
    issue(translator, translator.record("vcopy", words_of(src)), [dst, src])


def words_of(view: MemrefView) -> str:
    """The type of a move of elements by the vector unit."""
    if view.itemsize not in (2, 4):
        raise Unsupported(f"vector moves of {8 * view.itemsize} bits")
    return WORDS[view.itemsize]


def bytes_of_bits(view: MemrefView) -> MemrefView:
    """Booleans without gaps, in words of 32 bits as buffers hold them."""
    if not view.static or len(view.shape) != 1 or view.steps[0] != 1:
        raise Unsupported("copies of booleans that lie apart")
    words = (view.shape[0] + 31) // 32
    return MemrefView(view.root, view.shift, (words,), (1,), "s32")
