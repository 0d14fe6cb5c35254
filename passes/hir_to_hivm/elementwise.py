"""Arithmetic, lane by lane: one way for static shapes, another where the program knows the size.

What has a static shape goes to lanes, repeats and loops as `vector_plan` decides. Of a size that
the program computes, full repeats are issued at most 255 at a time, and what is left with a mask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from davinci.dialects.base import attribute
from davinci.isa import DTYPES, Instruction, Pipe, Space
from davinci.isa.vector_plan import Issue, plan_vector, whole_blocks
from davinci.mlir import Op, ir
from davinci.passes import builder
from davinci.passes.analysis.vector_work import limits_of
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Address, Shift
from davinci.passes.cce_to_hivm.vector import emit_nest, raw_bits, stride_fields
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported, minimum, subtract
from davinci.passes.hir_to_hivm.views import MemrefView, dense, field
from davinci.units import BLOCK_BYTES, BYTE_BITS, MAX_REPEAT, REPEAT_BLOCKS, REPEAT_BYTES, ceil_div

BINARY = {name: name for name in ("vadd", "vsub", "vmul", "vdiv", "vmax", "vmin")}
WITH_SCALAR = {
    "vadd": "vadds",
    "vmul": "vmuls",
    "vmax": "vmaxs",
    "vmin": "vmins",
    "vshl": "vshl",
    "vshr": "vshr",
}
UNARY = ("vexp", "vln", "vsqrt", "vrsqrt", "vrec", "vabs", "vrelu")
BITWISE = ("vand", "vor", "vnot")
COMMUTATIVE = ("vadd", "vmul", "vmax", "vmin")


def issue(
    translator: Translator,
    record: Instruction,
    views: Sequence[MemrefView],
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Issues the instructions that do `record` for all elements.

    Args:
        views: of the record's operands, destination first, of equal sizes; a stride may be 0.
        extra: fields besides strides and repeats.

    Raises:
        Unsupported: elements that no instruction walks.
    """
    if any(view.space is not Space.UB for view in views):
        raise Unsupported(f"{record.name} outside UB")
    if all(view.static for view in views):
        _issue_static(translator, record, views, extra or {})
    else:
        _issue_dynamic(translator, record, views, extra or {})


def _issue_static(
    translator: Translator,
    record: Instruction,
    views: Sequence[MemrefView],
    extra: Mapping[str, Any],
) -> None:
    emitter = translator.emitter
    itemsizes = [view.itemsize for view in views]
    limits = limits_of(record, translator.machine.vector)
    nests = plan_vector(views[0].shape, [view.steps for view in views], itemsizes, limits)
    if not all(whole_blocks(axis, itemsizes) for nest in nests for axis in nest.loops):
        raise Unsupported(f"{record.name} of rows that begin no blocks")
    start = [view.address for view in views]
    every = slice(0, len(views))

    def emit(each: Issue, at: Sequence[Address]) -> None:
        fields = {**stride_fields(record, each, every), **extra}
        emitter.instruction(record, at, fields)

    for nest in nests:
        emit_nest(emitter, nest, itemsizes, start, emit)


def run_strides(record: Instruction) -> dict[str, int]:
    """The stride fields of an instruction that walks contiguous runs."""
    kinds = {o.name: o for o in record.operands}
    fields = {}
    for name in kinds:
        for which, value in (("blk", 1), ("rep", REPEAT_BLOCKS)):
            if record.field_named(f"{name}_{which}_stride") is not None:
                fields[f"{name}_{which}_stride"] = value
    return fields


def _issue_dynamic(
    translator: Translator,
    record: Instruction,
    views: Sequence[MemrefView],
    extra: Mapping[str, Any],
) -> None:
    """Outer dimensions become loops, the innermost one runs of whole repeats and a masked rest."""
    sizes, strides = merged(views)
    inner = [stride[-1] for stride in strides] if sizes else []
    if any(step not in (0, 1) for step in inner) or not all(inner):
        raise Unsupported(f"{record.name} of elements apart whose number the program computes")
    widest = max(view.itemsize for view in views)
    lanes = REPEAT_BYTES // widest
    fields = run_strides(record) | dict(extra)
    for view, operand in zip(views, record.operands, strict=True):
        key = f"{operand.name}_rep_stride"
        if key in fields:
            fields[key] = lanes * view.itemsize // BLOCK_BYTES

    def rows(level: int, at: Sequence[MemrefView]) -> None:
        if level < len(sizes) - 1:
            with builder.for_loop(0, sizes[level]) as index, translator.emitter.block():
                steps = [v.step(index, s[level]) for v, s in zip(at, strides, strict=True)]
                rows(level + 1, [v.at(s) for v, s in zip(at, steps, strict=True)])
            translator.emitter.forget()
            return
        run(at, sizes[-1])

    def run(at: Sequence[MemrefView], count: IndexLike) -> None:
        whole = builder.divided(count, lanes)
        translator.emitter.forget()
        translator.set_mask(lanes)
        chunks = builder.divided(builder.add(whole, MAX_REPEAT - 1), MAX_REPEAT)
        with builder.for_loop(0, chunks) as chunk, translator.emitter.block():
            first = builder.mul(chunk, MAX_REPEAT)
            repeats = minimum(subtract(whole, first), MAX_REPEAT)
            steps = [v.step(first, lanes) for v in at]
            moved = [v.at(s).address for v, s in zip(at, steps, strict=True)]
            translator.instruction(record, moved, repeat=field(repeats), **fields)
        rest = builder.remainder(count, lanes)
        translator.set_mask(rest)
        done = builder.mul(whole, lanes)
        moved = [v.at(v.step(done, 1)).address for v in at]
        some = field(minimum(rest, 1))
        translator.instruction(record, moved, repeat=some, **fields)
        translator.emitter.forget()

    rows(0, views)


def merged(views: Sequence[MemrefView]) -> tuple[list[IndexLike], list[list[IndexLike]]]:
    """Sizes and each view's strides without dimensions of size 1; inner dimensions whose size is
    known and that all views walk without a gap are one with the next outer one."""
    sizes: list[IndexLike] = []
    strides: list[list[IndexLike]] = [[] for _ in views]
    given = views[0].sizes
    for i, size in enumerate(given):
        if size == 1:
            continue
        joins = (
            sizes
            and isinstance(size, int)
            and all(
                s[-1] == size * step
                for v, s in zip(views, strides, strict=True)
                if isinstance(step := v.strides[i], int)
            )
            and all(isinstance(v.strides[i], int) for v in views)
        )
        if joins:
            sizes[-1] = builder.mul(sizes[-1], size)
            for v, s in zip(views, strides, strict=True):
                s[-1] = v.strides[i]
        else:
            sizes.append(size)
            for v, s in zip(views, strides, strict=True):
                s.append(v.strides[i])
    if not sizes:
        sizes, strides = [1], [[1] for _ in views]
    return sizes, strides


def fill(translator: Translator, view: MemrefView, bits: IndexLike) -> None:
    """Every element becomes the scalar whose bits are given, an int or an i64 value."""
    if view.itemsize not in (2, 4):
        raise Unsupported(f"fills of {8 * view.itemsize} bits")
    record = translator.record("vector_dup", {2: "s16", 4: "s32"}[view.itemsize])
    as_bits = MemrefView(view.root, view.shift, view.sizes, view.strides, record.type)
    issue(translator, record, [as_bits], {"value": bits})


def block_of(translator: Translator, scratch: MemrefView, kind: str, bits: IndexLike) -> MemrefView:
    """A block in `scratch` with the scalar in each lane, as a view of one block."""
    lanes = BLOCK_BYTES // DTYPES[kind].itemsize
    block = MemrefView(scratch.root, scratch.shift, (lanes,), (1,), kind)
    fill(translator, block, bits)
    translator.barrier()
    return block


def split_blocks(sizes: Sequence[IndexLike], lanes: int) -> tuple[int, int]:
    """Whole blocks of the innermost dimension, and the lanes that are left."""
    inner = sizes[-1]
    if not isinstance(inner, int):
        raise Unsupported("a broadcast along a dimension whose size the program computes")
    return divmod(inner, lanes)


def issue_with_blocks(
    translator: Translator,
    record: Instruction,
    views: Sequence[MemrefView],
    blocks: Mapping[int, Sequence[IndexLike]],
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Like `issue`, where some operands have one block for each row, read again and again.

    Args:
        views: of the operands; those of blocks have what is said here in place of strides.
        blocks: by operand, the strides of its blocks along the outer dimensions, in elements.
    """
    lanes = BLOCK_BYTES // views[0].itemsize
    whole, rest = split_blocks(views[0].sizes, lanes)
    outer = views[0].sizes[:-1]
    parts = [(0, [*outer, whole, lanes])] if whole else []
    parts += [(whole * lanes, [*outer, 1, rest])] if rest else []
    for first, sizes in parts:
        made = []
        for number, view in enumerate(views):
            if number in blocks:
                strides = [*blocks[number], 0, 1]
                made.append(view.with_dims(sizes, strides))
            else:
                *others, step = view.strides
                if step != 1:
                    raise Unsupported(f"{record.name} with a broadcast of elements apart")
                known = [n * view.itemsize for n in others if isinstance(n, int)]
                if any(n % BLOCK_BYTES for n in known):
                    raise Unsupported(
                        f"{record.name} with a broadcast to rows that begin no blocks"
                    )
                at = view.at(Shift(first * view.itemsize))
                made.append(at.with_dims(sizes, [*others, lanes, 1]))
        issue(translator, record, made, extra)


def broadcast_rows(
    translator: Translator, source: MemrefView, scratch: MemrefView
) -> tuple[MemrefView, list[IndexLike]]:
    """Puts each element of `source`, whose innermost size is 1, into a block of `scratch`.

    Returns:
        The blocks, and their strides along the outer dimensions of `source`.
    """
    kind = source.kind
    lanes = BLOCK_BYTES // source.itemsize
    sizes, strides = merged([source])
    if len(sizes) != 1 or not isinstance(sizes[0], int):
        raise Unsupported("a broadcast of elements that lie apart")
    count, step = sizes[0], strides[0][0]
    if step == lanes:  # each element begins a block already
        raise Unsupported("a broadcast of elements that begin blocks")
    if step != 1 and count > 1:
        raise Unsupported("a broadcast of elements that lie apart")
    record = translator.record("vbrcb", "b16" if source.itemsize == 2 else "b32")
    at, target = source.address, scratch.address
    done = 0
    while count - done >= 8:
        groups = min((count - done) // 8, MAX_REPEAT)
        fields = {"dst_blk_stride": 1, "dst_rep_stride": REPEAT_BLOCKS, "repeat": groups}
        shifts = (Shift(done * BLOCK_BYTES), Shift(done * source.itemsize))
        moved = [target.plus(shifts[0]), at.plus(shifts[1])]
        translator.instruction(record, moved, **fields)
        done += groups * 8
    if done < count:
        # The instruction takes eight at a time, and behind these nobody may have written.
        translator.hand_over(Pipe.V, Pipe.S)
        width = ir.IntegerType.get_signless(8 * source.itemsize)
        rest = [
            translator.load(source, Shift(i * source.itemsize), width) for i in range(done, count)
        ]
        translator.hand_over(Pipe.S, Pipe.V)
        for i, value in enumerate(rest, done):
            block = scratch.at(Shift(i * BLOCK_BYTES))
            fill(
                translator,
                MemrefView(block.root, block.shift, (lanes,), (1,), kind),
                bits_of(value),
            )
    translator.barrier()
    outer = source.sizes[:-1]
    of_blocks = [builder.mul(n, lanes) for n in dense([*outer])]
    return MemrefView(
        scratch.root, scratch.shift, (*outer, lanes), (*of_blocks, 1), kind
    ), of_blocks


def along(view: MemrefView, sizes: Sequence[IndexLike]) -> MemrefView:
    """The view with stride 0 where its size is 1 and that of the result is not."""
    strides: list[IndexLike] = [
        0 if have == 1 and want != 1 else step
        for have, want, step in zip(view.sizes, sizes, view.strides, strict=True)
    ]
    return view.with_dims(sizes, strides)


def operate(
    translator: Translator,
    record: Instruction,
    dst: MemrefView,
    sources: Sequence[MemrefView],
    scratch: MemrefView | None,
) -> None:
    """An instruction on arrays, of which some are broadcast along the innermost dimension."""
    blocks: dict[int, Sequence[IndexLike]] = {}
    views = [dst]
    for number, source in enumerate(sources, 1):
        if source.sizes and source.sizes[-1] == 1 and dst.sizes[-1] != 1:
            if scratch is None:
                raise Unsupported("a broadcast without a buffer for it")
            lifted = along(source, [*dst.sizes[:-1], 1])
            if any(n == 0 for n in lifted.strides[:-1]):
                raise Unsupported("a broadcast along several dimensions")
            made, steps = broadcast_rows(translator, source, scratch)
            views.append(made)
            blocks[number] = steps
        else:
            views.append(along(source, dst.sizes))
    if blocks:
        issue_with_blocks(translator, record, views, blocks)
    else:
        issue(translator, record, views)


def bits_of(value: ir.Value) -> IndexLike:
    """The bits of a scalar operand, an int where it is a constant."""
    return raw_bits(value)


@lowering(*BINARY, "vshl", "vshr")
def lower_binary(translator: Translator, op: Op) -> None:
    """Two arrays, or an array and a scalar."""
    sources, targets, *more = translator.groups(op)
    scratch = translator.view(op, more[0][0]) if more and more[0] else None
    if attribute(op, "transpose"):
        raise Unsupported(f"{op.name.removeprefix('hir.')} that transposes")
    name = op.name.removeprefix("hir.")
    dst = translator.view(op, targets[0])
    arrays = [value for value in sources if translator.is_array(value)]
    views = [translator.view(op, value) for value in arrays]
    if len(views) == 2:
        if name not in BINARY:
            raise Unsupported(f"{name} by an array")
        operate(translator, translator.record(name, dst.kind), dst, views, scratch)
        return
    scalar = next(value for value in sources if value not in arrays)
    first = sources[0] is arrays[0]
    if name in WITH_SCALAR and (first or name in COMMUTATIVE):
        record = translator.record(WITH_SCALAR[name], dst.kind)
        issue(translator, record, [dst, along(views[0], dst.sizes)], {"value": bits_of(scalar)})
        return
    if scratch is None:
        raise Unsupported(f"{name} by a scalar without a buffer for it")
    record = translator.record(name, dst.kind)
    block = block_of(translator, scratch, dst.kind, bits_of(scalar))
    order = [views[0], block] if first else [block, views[0]]
    outer: list[IndexLike] = [0] * (len(dst.sizes) - 1)
    issue_with_blocks(translator, record, [dst, *order], {2 if first else 1: outer})


@lowering(*UNARY)
def lower_unary(translator: Translator, op: Op) -> None:
    sources, targets, *_ = translator.groups(op)
    if attribute(op, "transpose"):
        raise Unsupported(f"{op.name.removeprefix('hir.')} that transposes")
    dst, src = translator.view(op, targets[0]), translator.view(op, sources[0])
    record = translator.record(op.name.removeprefix("hir."), dst.kind)
    issue(translator, record, [dst, along(src, dst.sizes)])


WORD_BYTES = 2


def as_words(view: MemrefView) -> MemrefView:
    """An array as 16-bit words, whose bits instructions combine: elements of whole words that lie
    one behind the other along the last dimension, or booleans and bytes without a gap.

    Raises:
        Unsupported: they lie apart, or the program computes how many there are.
    """
    if not view.static:
        raise Unsupported("bits of an array whose size the program computes")
    if view.kind != "i1" and view.itemsize % WORD_BYTES == 0:
        return words_of_rows(view)
    total = 1
    for size, step in zip(reversed(view.shape), reversed(view.steps), strict=True):
        if size != 1 and step != total:
            raise Unsupported("bits of elements that lie apart")
        total *= size
    if view.kind != "i1" and total % WORD_BYTES:
        raise Unsupported("bits of an odd number of bytes")
    words = ceil_div(total, WORD_BYTES * BYTE_BITS) if view.kind == "i1" else total // WORD_BYTES
    return MemrefView(view.root, view.shift, (words,), (1,), "s16")


def words_of_rows(view: MemrefView) -> MemrefView:
    """An array of elements that are whole words as one of words, of as many dimensions."""
    each = view.itemsize // WORD_BYTES
    (*sizes, size), (*steps, step) = view.shape or (1,), view.steps or (1,)
    if size != 1 and step != 1 and each > 1:
        raise Unsupported("bits of elements that lie apart")
    step = step if each == 1 else 1
    strides = (*(n * each for n in steps), step)
    return MemrefView(view.root, view.shift, (*sizes, size * each), strides, "s16")


@lowering(*BITWISE)
def lower_bitwise(translator: Translator, op: Op) -> None:
    sources, targets, *_ = translator.groups(op)
    values = [*targets, *sources]
    if not all(translator.is_array(value) for value in values):
        raise Unsupported(f"{op.name.removeprefix('hir.')} by a scalar")
    dst, *given = [translator.view(op, value) for value in values]
    # Each row of the result reads the words of a broadcast row again.
    views = [as_words(view) for view in (dst, *(along(view, dst.sizes) for view in given))]
    issue(translator, translator.record(op.name.removeprefix("hir."), "s16"), views)
