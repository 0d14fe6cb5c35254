"""Compares, whose booleans are bits in UB, and selects by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from davinci.dialects.base import attribute
from davinci.isa import Instruction, Pipe
from davinci.mlir import Op
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Address, Shift
from davinci.passes.cce_to_hivm.vector import float_bits
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.control import word
from davinci.passes.hir_to_hivm.elementwise import bits_of, block_of, merged
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import MemrefView, as_integer
from davinci.units import BLOCK_BYTES, BYTE_BITS, MAX_REPEAT, REPEAT_BLOCKS, REPEAT_BYTES

FLOATS = {2: "f16", 4: "f32"}
"""Types by whose bits selects choose."""


def run_length(views: Sequence[MemrefView]) -> int:
    """Elements of arrays that lie without a gap.

    Raises:
        Unsupported: there are gaps, or the program computes how many there are.
    """
    sizes, strides = merged(views)
    if len(sizes) != 1 or not isinstance(sizes[0], int):
        raise Unsupported("booleans of arrays with gaps, or of sizes that the program computes")
    if sizes[0] > 1 and any(s[0] != 1 for s in strides):
        raise Unsupported("booleans of arrays with gaps")
    return sizes[0]


def issue_with_bits(
    translator: Translator,
    record: Instruction,
    operands: Sequence[tuple[Address, int]],
    count: int,
    fields: dict[str, Any],
) -> None:
    """Whole repeats, at most 255 at a time, and a masked rest.

    Args:
        operands: addresses in the order of the record, and bytes that each is further on a repeat.
        count: of elements.
        fields: besides the number of repeats.
    """
    itemsize = 2 if record.type == "f16" else 4
    lanes = REPEAT_BYTES // itemsize
    whole, rest = divmod(count, lanes)
    parts = [
        (begin, min(MAX_REPEAT, whole - begin), lanes) for begin in range(0, whole, MAX_REPEAT)
    ]
    parts += [(whole, 1, rest)] if rest else []
    for begin, repeat, active in parts:
        translator.set_mask(active)
        moved = [address.plus(Shift(begin * step)) for address, step in operands]
        translator.instruction(record, moved, **fields, repeat=repeat)


@lowering("vcmp")
def lower_compare(translator: Translator, op: Op) -> None:
    """Of two arrays, or of an array and a scalar."""
    (left, right), (target,), *_ = translator.groups(op)
    mode = word(op, "compare_mode", "eq")
    dst, first = translator.view(op, target), translator.view(op, left)
    scalar = not translator.is_array(right)
    record = translator.record(f"vcmpvs_{mode}" if scalar else f"vcmpv_{mode}", first.kind)
    views = [first] if scalar else [first, translator.view(op, right)]
    if dst.kind != "i1":
        raise Unsupported(f"vcmp to {dst.kind}")
    count = run_length(views)
    lanes = REPEAT_BYTES // first.itemsize
    operands = [(dst.address, lanes // BYTE_BITS)]
    operands += [(view.address, REPEAT_BYTES) for view in views]
    fields: dict[str, Any] = {"value": bits_of(right)} if scalar else {}
    for name in ("src",) if scalar else ("src0", "src1"):
        fields |= {f"{name}_blk_stride": 1, f"{name}_rep_stride": REPEAT_BLOCKS}
    issue_with_bits(translator, record, operands, count, fields)


@lowering("vsel")
def lower_select(translator: Translator, op: Op) -> None:
    """Elements of one source where a boolean holds, of the other elsewhere."""
    (condition, left, right), (target,), *more = translator.groups(op)
    if attribute(op, "transpose"):
        raise Unsupported("vsel that transposes")
    scratch = translator.view(op, more[0][0]) if more and more[0] else None
    bits, dst = translator.view(op, condition), translator.view(op, target)
    if bits.kind != "i1":
        raise Unsupported(f"vsel by {bits.kind}")
    sources: list[MemrefView | IndexLike] = [
        translator.view(op, v) if translator.is_array(v) else bits_of(v) for v in (left, right)
    ]
    select(translator, bits, sources, dst, scratch)


def select_numbers(
    translator: Translator, bits: MemrefView, dst: MemrefView, scratch: MemrefView | None
) -> None:
    """1 where a boolean holds, 0 elsewhere."""
    if dst.kind in ("f16", "f32"):
        one: int = float_bits(1.0, dst.kind)
    elif dst.kind in ("s16", "s32"):
        one = 1
    else:
        raise Unsupported(f"vcast from i1 to {dst.kind}")
    select(translator, bits, [one, 0], dst, scratch)


def select(
    translator: Translator,
    bits: MemrefView,
    sources: Sequence[MemrefView | IndexLike],
    dst: MemrefView,
    scratch: MemrefView | None,
) -> None:
    """dst = bit ? sources[0] : sources[1], each an array, or the bits of a scalar.

    The machine finds the booleans by an address in memory: the scalar unit writes it into the
    first block of `scratch`. Scalars take the blocks behind it.
    """
    if scratch is None:
        raise Unsupported("vsel without a buffer for the address of its booleans")
    if dst.itemsize not in FLOATS:
        raise Unsupported(f"vsel of {8 * dst.itemsize} bits")
    kind = FLOATS[dst.itemsize]
    arrays = [source for source in sources if isinstance(source, MemrefView)]
    count = run_length([dst, *arrays])
    record = translator.record("vsel_bits", kind)
    lanes = REPEAT_BYTES // dst.itemsize
    operands = [(dst.address, REPEAT_BYTES)]
    fields: dict[str, Any] = {"dst_blk_stride": 1, "dst_rep_stride": REPEAT_BLOCKS}
    taken = 1
    for number, source in enumerate(sources):
        name = f"src{number}"
        if isinstance(source, MemrefView):
            operands.append((source.address, REPEAT_BYTES))
            fields |= {f"{name}_blk_stride": 1, f"{name}_rep_stride": REPEAT_BLOCKS}
            continue
        block = block_of(translator, scratch.at(Shift(taken * BLOCK_BYTES)), kind, source)
        operands.append((block.address, 0))
        fields |= {f"{name}_blk_stride": 0, f"{name}_rep_stride": 0}
        taken += 1
    translator.hand_over(Pipe.V, Pipe.S)
    translator.store(scratch, Shift(), as_integer(bits))
    translator.hand_over(Pipe.S, Pipe.V)
    operands.append((bits.address, lanes // BYTE_BITS))
    issue_with_bits(translator, record, operands, count, fields)
