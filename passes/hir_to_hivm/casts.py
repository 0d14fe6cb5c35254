"""Conversions between element types."""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.isa import INSTRUCTIONS
from davinci.mlir import Op
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.compares import select_numbers
from davinci.passes.hir_to_hivm.control import word
from davinci.passes.hir_to_hivm.elementwise import along, issue
from davinci.passes.hir_to_hivm.transfers import move
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported

SUFFIXES = {
    "rint": ("r", ""),
    "round": ("a",),
    "floor": ("f",),
    "ceil": ("c",),
    "trunc": ("z",),
}
"""Suffixes of conversion instructions for each rounding; the first that exists is meant. Those
without a suffix do not round, or to the nearest."""


@lowering("vcast")
def lower_cast(translator: Translator, op: Op) -> None:
    """One instruction where the machine has that conversion; booleans become 1 and 0."""
    sources, targets, *more = translator.groups(op)
    if attribute(op, "transpose"):
        raise Unsupported("vcast that transposes")
    src, dst = translator.view(op, sources[0]), translator.view(op, targets[0])
    mode = word(op, "round_mode", "rint")
    if src.kind == "i1":
        scratch = translator.view(op, more[0][0]) if more and more[0] else None
        select_numbers(translator, src, dst, scratch)
        return
    if src.kind == dst.kind and dst.kind != "f32":
        move(translator, src, dst)
        return
    if mode == "truncwithoverflow" and src.kind[0] == dst.kind[0] == "s":
        raise Unsupported(f"vcast from {src.kind} to {dst.kind}, {mode}")  # instructions saturate
    unsigned = word(op, "cast") == "cast_unsigned"
    start, end = (f"u{k[1:]}" if unsigned and k[0] == "s" else k for k in (src.kind, dst.kind))
    stem = f"vconv_{start}2{end}"
    for suffix in (*SUFFIXES.get(mode, ()), ""):
        if stem + suffix in INSTRUCTIONS:
            record = translator.record(stem + suffix)
            issue(translator, record, [dst, along(src, dst.sizes)])
            return
    raise Unsupported(f"vcast from {start} to {end}, {mode}")
