"""The cce dialect: every operation goes through text; every constraint has an invalid case."""

from __future__ import annotations

import inspect

import pytest

from davinci.dialects.base import python_value
from davinci.dialects.cce import build, instructions
from davinci.dialects.cce.effects import MEETINGS, effects_of
from davinci.dialects.cce.instructions import (
    CONVERSIONS,
    COPIES,
    FIXPIPE_TYPES,
    L0C_TYPES,
    MAD_TYPES,
    SCALED_TYPES,
    pipe_of,
    types_of,
)
from davinci.dialects.cce.ops import Cce
from davinci.isa import BY_NAME
from davinci.mlir import MLIRError, ext, ir, make_context
from legal_operations import (
    BIAS,
    BLOCKS,
    CCE,
    DEQUANTIZED,
    IMAGE,
    IN_L1_A,
    IN_L1_B,
    L0A,
    L0C,
    L1,
    NZ_A,
    NZ_B,
    NZ_C,
    SUMS,
    UB4,
    WINDOWS,
    WORDS,
    memref,
    ub,
)
from meeting_operations import MEETINGS_THAT_ARE_NONE
from product_operations import EXITS_THAT_ARE_NONE, PRODUCTS_THAT_ARE_NONE

INDICES = ["index", "index"]
NAMES = {"f16": "f16", "f32": "f32", "s8": "i8", "u8": "ui8", "s16": "i16", "s32": "i32"}


def parse(name: str, types: list[str], attributes: str = "", results: str = "()") -> str:
    """Parses a function of that one operation; returns its text."""
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    operands = ", ".join(f"%a{i}" for i in range(len(types)))
    text = f"""func.func @f({arguments}) {{
      %r = "cce.{name}"({operands}) {{{attributes}}} : ({", ".join(types)}) -> {results}
      return
    }}"""
    if results == "()":
        text = text.replace("%r = ", "")
    with make_context(), ir.Location.unknown():
        return str(ir.Module.parse(text))


@pytest.mark.parametrize(("name", "types", "attributes"), CCE)
def test_round_trip(name: str, types: list[str], attributes: str) -> None:
    text = parse(name, types, attributes)
    with make_context(), ir.Location.unknown():
        assert str(ir.Module.parse(text)) == text


REGISTERS = ("get_block_idx", "get_block_num", "get_sub_block_idx")


@pytest.mark.parametrize("name", REGISTERS)
def test_block_number(name: str) -> None:
    assert f'"cce.{name}"() : () -> index' in parse(name, [], results="index")


def test_read_counter() -> None:
    lines = [memref("4x8", "i32"), ub("5x8", "i32")]
    assert '"cce.read_counter"' in parse("read_counter", lines, results="i32")
    with pytest.raises(MLIRError, match="those seen and the block"):
        parse("read_counter", [lines[0], ub("4x8", "i32")], results="i32")


def test_every_operation_is_tested() -> None:
    tested = {name for name, *_ in CCE} | {*REGISTERS, "read_counter"}
    assert tested == {op._op_name for op in Cce.operations}


@pytest.mark.parametrize("op", Cce.operations, ids=lambda op: op._op_name)
def test_builder(op: type) -> None:
    """It takes the operation's operands, then its attributes by name, and builds a legal one."""
    function = getattr(build, op._op_name)
    operands = [f.name for f in op._fields if isinstance(f, ext.OperandDef)]
    parameters = inspect.signature(function).parameters.values()
    assert [p.name for p in parameters if p.kind != p.KEYWORD_ONLY] == operands
    named = {p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY}
    assert set(named) == set(op.ATTRIBUTES)
    required = {name for name, kind in op.ATTRIBUTES.items() if kind.required}
    assert {
        name for name, default in named.items() if default is inspect.Parameter.empty
    } == required


@pytest.mark.parametrize(("name", "types", "attributes"), CCE)
def test_builder_builds_what_the_text_says(name: str, types: list[str], attributes: str) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(parse(name, types, attributes))
        block = module.body.operations[0].regions[0].blocks[0]
        first, end = block.operations
        given = {key: python_value(first.attributes[key]) for key in first.attributes}
        with ir.InsertionPoint(end):
            getattr(build, name)(*first.operands, **given)
        assert str(block.operations[1]) == str(first)


INCCE = [
    ("copy", [memref("8", "f32"), ub("16")], "", "shapes differ; found [8]; expected [16]"),
    ("copy", [memref("8", "f32"), ub("8", "i32")], "", "element types differ"),
    ("copy", [memref("8", "f32", "L1"), memref("8", "f32", "BT")], "", "a multiple of 64 bytes"),
    ("copy", [memref("8", "f32"), memref("8", "f32", "L0C")], "", "no copy between these memories"),
    ("copy", [memref("256", "f32"), memref("256", "f32", "L0A")], "", "source has the wrong elem"),
    ("copy", [memref("128", "f16"), memref("128", "f16", "L0B")], "", "no run of whole fractals"),
    ("copy", [memref("9", "f32"), ub("9")], "", "not whole blocks; found 36 bytes"),
    (
        "copy",
        [memref("2x9", "f32", layout="[16, 1]"), ub("2x9", layout="[16, 1]")],
        "round_up",
        "round_up with more than one run",
    ),
    ("copy", [memref("2x8", "f32"), ub("2x8", layout="[9, 1]")], "", "found 36 bytes"),
    ("copy", [memref("2x8", "f32"), ub("2x8", layout="[0, 1]")], "", "destination overlaps itself"),
    ("copy", [memref("8", "f64"), ub("8", "f64")], "", "unknown element type; found f64"),
    ("copy", [memref("8", "f32", "DRAM"), ub("8")], "", "unknown memory space"),
    ("copy", [memref("?", "f32"), ub("8")], "", "dynamic shape"),
    ("copy", ["f32", ub("8")], "", "not a memref"),
    ("copy", [memref("8", "f32"), ub("8")], "adds", "'adds' of a copy; found GM to UB"),
    (
        "copy",
        [ub("4", "i64"), memref("4", "i64")],
        "adds",
        "source of a copy with 'adds' has the wrong element type; found s64",
    ),
    ("copy", [ub("8"), memref("8", "f32")], "adds, round_up", "'adds' beside 'round_up'"),
    ("copy", [ub("9"), memref("9", "f32")], "exact, round_up", "'exact' beside 'round_up'"),
    ("copy", [ub("9"), ub("9")], "exact", "'exact' of a copy; found UB to UB"),
    ("copy", [memref("2x9", "f32"), ub("2x9", layout="[16, 1]")], "exact", "exact with more than"),
    ("copy", [ub("8"), memref("8", "f32", "L1")], "", "a crossing to the cube; found UB to L1"),
    ("copy_l1", [memref("8", "f32"), memref("8", "f32", "L1")], "", "source is in the wrong"),
    ("copy_l1", [ub("8"), ub("8")], "", "destination is in the wrong memory; found UB"),
    ("copy_l1", [ub("8"), memref("16", "f32", "L1")], "", "shapes differ; found [8]"),
    ("copy_l1", [ub("8"), memref("8", "i32", "L1")], "", "element types differ"),
    ("copy_l1", [ub("9"), memref("9", "f32", "L1")], "", "not whole blocks; found 36 bytes"),
    ("copy_l1", [ub("2x8"), memref("2x8", "f32", "L1", "[9, 1]")], "", "found 36 bytes"),
    ("copy_l0c", [UB4, UB4], "", "source is in the wrong memory; found UB; expected L0C"),
    ("copy_l0c", [L0C, ub("4x2x16x16", "i32")], "", "types; found f32 to s32"),
    ("copy_l0c", [memref("4x32x16", "f32", "L0C"), ub("4x32x16")], "", "shape of source"),
    ("dequantize_l0c", [UB4, *DEQUANTIZED[1:]], "", "source is in the wrong memory; found UB"),
    ("dequantize_l0c", [L0C, *DEQUANTIZED[1:]], "", "types; found f32 to f16"),
    ("dequantize_l0c", [*DEQUANTIZED[:2], UB4], "", "types; found s32 to f32"),
    (
        "dequantize_l0c",
        [DEQUANTIZED[0], ub("4x32", "f16"), DEQUANTIZED[2]],
        "",
        "scales; found [4, 32]; expected [4, 16]",
    ),
    (
        "dequantize_l0c",
        [DEQUANTIZED[0], ub("4x16", "f16", layout="[24, 1]"), DEQUANTIZED[2]],
        "",
        "strides of scales; found [24, 1]",
    ),
    ("fixpipe", [UB4, memref("8x8", "f32")], "", "source is in the wrong memory; found UB"),
    ("fixpipe", [L0C, UB4], "", "destination is in the wrong memory; found UB; expected GM"),
    (
        "fixpipe",
        [memref("4x2x16x16", "f32", "L0C", "[2048, 512, 16, 1]"), memref("8x8", "f32")],
        "",
        "columns of fractals of the source; found 512; expected 256",
    ),
    ("fixpipe", [L0C, memref("33x8", "f32")], "", "rows; found [33, 8]; expected at most [32, 64]"),
    ("fixpipe", [L0C, memref("8x8", "f32", layout="[1, 8]")], "", "rows are not contiguous"),
    (
        "fixpipe",
        [L0C, memref("4x2x16x16", "f32", layout="[2048, 512, 16, 1]")],
        "",
        "columns of fractals of the destination; found 512; expected 256",
    ),
    ("fixpipe", [L0C, memref("2x4x16x16", "f32")], "", "shapes differ"),
    ("fixpipe", [L0C, memref("3x9x16", "f32")], "", "columns of fractals; found 3; expected 4"),
    ("fixpipe", [L0C, memref("4x33x16", "f32")], "", "rows; found 33; expected at most 32"),
    ("fixpipe", [L0C, memref("4x9x8", "f32")], "", "rows of fractals; found [8, 8, 1]"),
    ("fixpipe", [L0C, memref("8x8", "i32")], "", "types; found f32 to s32"),
    ("nd2nz", [ub("5x33", "f16"), BLOCKS], "", "source is in the wrong memory; found UB"),
    ("nd2nz", [memref("5x33", "f16"), ub("3x5x16", "f16")], "", "destination is in the wrong"),
    ("nd2nz", [memref("5x33", "i8"), BLOCKS], "", "bytes of elements; found 1; expected 2 or 4"),
    ("nd2nz", [memref("5x33", "f32"), BLOCKS], "", "element types differ; found f16; expected f32"),
    ("nd2nz", [memref("5x33", "i16"), BLOCKS], "", "element types differ"),
    ("nd2nz", [memref("33", "f16"), BLOCKS], "", "rank of source; found 1; expected 2"),
    ("nd2nz", [memref("5x33", "f16", layout="[1, 5]"), BLOCKS], "", "rows are not contiguous"),
    ("nd2nz", [memref("5x32", "f16"), BLOCKS], "", "shape of destination; found [3, 5, 16]"),
    (
        "nd2nz",
        [memref("5x33", "f16"), memref("3x5x16", "f16", "L1", "[256, 8, 1]")],
        "",
        "strides of destination; found [256, 8, 1]",
    ),
    ("clear_l1", [ub("3x48", "f16")], "", "destination is in the wrong memory; found UB"),
    ("clear_l1", [memref("3x64", "i8", "L1")], "", "bytes of elements; found 1; expected 2 or 4"),
    ("clear_l1", [memref("3x48", "f32", "L1")], "bits = 1 : i64", "found 4; expected 2"),
    ("clear_l1", [memref("48", "f16", "L1")], "", "rank of destination; found 1; expected 2"),
    ("clear_l1", [memref("3x40", "f16", "L1")], "", "runs; found [3, 40] by [40, 1]"),
    ("load2d", [L1, memref("2x3x16x16", "f16", "L0C")], "", "expected L0A or L0B"),
    (
        "load2d",
        [L1, memref("2x3x16x16", "f16", "L0A", "[256, 512, 16, 1]")],
        "",
        "destination is not contiguous",
    ),
    (
        "load2d",
        [memref("1x1x16x32", "i8", "L1"), memref("1x1x16x32", "i8", "L0A")],
        "transpose",
        "transpose needs a 16-bit type",
    ),
    ("load3d", [L0A, *INDICES, L0A], WINDOWS, "source is in the wrong memory; found L0A"),
    ("load3d", [IMAGE, *INDICES, L1], WINDOWS, "expected L0A or L0B"),
    (
        "load3d",
        [memref("2x5x6x8", "f32", "L1"), *INDICES, memref("2x3x16x8", "f32", "L0A")],
        WINDOWS,
        "source has the wrong element type; found f32",
    ),
    (
        "load3d",
        [memref("2x5x6x8", "f16", "L1"), *INDICES, L0A],
        WINDOWS,
        "shape of source; found [2, 5, 6, 8]; expected [c1, h, w, 16]",
    ),
    (
        "load3d",
        [memref("2x5x6x16", "f16", "L1", "[600, 96, 16, 1]"), *INDICES, L0A],
        WINDOWS,
        "source is not contiguous",
    ),
    (
        "load3d",
        [IMAGE, *INDICES, memref("2x3x8x16", "f16", "L0A")],
        WINDOWS,
        "shape of destination",
    ),
    (
        "load3d",
        [IMAGE, *INDICES, L0A],
        WINDOWS.replace("3, 2", "3, 256"),
        "attribute kernel; found [3, 256]; expected array of 2 integers 1..255",
    ),
    (
        "load3d",
        [IMAGE, *INDICES, L0A],
        WINDOWS.replace("3, 2", "3, 8"),
        "window wider than the image; found 8; expected at most 7",
    ),
    (
        "load3d",
        [IMAGE, *INDICES, L0A],
        WINDOWS.replace("= 4", "= 10"),
        "kernel elements beyond the source; found 13; expected at most 12",
    ),
    ("load3d", [IMAGE, "i64", "index", L0A], WINDOWS, "type of first; found i64; expected index"),
    ("vadd", [ub("8"), ub("8"), ub("16")], "", "shape of source 0; found [8]; expected [16]"),
    ("vadd", [ub("8"), ub("8"), memref("8", "f32")], "", "destination is in the wrong memory"),
    ("vadd", [ub("8"), ub("8", "f16"), ub("8")], "", "element type of source 1"),
    ("vdiv", [ub("8", "i32")] * 3, "", "destination has the wrong element type; found s32"),
    ("vexp", [ub("8", layout="[2]"), ub("8")], "", "source 0 has a stride"),
    ("vexp", [ub("4x8"), ub("4x8", layout="[0, 1]")], "", "destination overlaps itself"),
    ("vadds", [ub("5"), "f16", ub("5")], "", "type of the scalar; found f16; expected f32"),
    ("vector_dup", ["f16", ub("5")], "", "type of the scalar"),
    ("vector_dup", ["f32", ub("5x64")], "first_lane = 1 : i64", "first_lane without lanes"),
    ("vector_dup", ["f32", ub("5x8")], "lanes = 9 : i64", "lanes outside the row"),
    ("vector_dup", ["f32", ub("5x128")], "lanes = 9 : i64", "row is longer than a repeat"),
    ("vconv", [ub("5"), ub("5", "i8")], "", "no such conversion; found f32 to s8"),
    (
        "vconv",
        [ub("9x3x16", "f16", "[128, 32, 1]"), ub("9x3x16", "i8", "[64, 16, 1]")],
        "",
        "a stride that vector instructions",
    ),
    ("vconv", [ub("5"), ub("5", "f16")], 'round = "up"', "attribute round; found 'up'"),
    ("vcmpsel", [ub("9")] * 5, 'predicate = "less"', "attribute predicate; found 'less'"),
    ("vcmpsel", [ub("9")] * 3 + [ub("9", "f16")] * 2, 'predicate = "lt"', "x, y and the"),
    ("vcmpsel", [ub("9")] * 2 + [ub("9", "f16")] * 3, 'predicate = "lt"', "width of the selected"),
    ("vcadd", [ub("3x65"), ub("3")], "", "row is longer than a repeat"),
    ("vcadd", [ub("3x8"), ub("3")], "lanes = 9 : i64", "lanes outside the row"),
    ("vcadd", [ub("3x9"), ub("3")], "", "stride of rows; found 36 bytes"),
    ("vcadd", [ub("3x8"), ub("4")], "", "rows of the destination"),
    ("vcadd", [ub("3x8"), ub("3", layout="[0]")], "", "destination overlaps itself"),
    ("vcmax", [ub("3x16", "f16"), ub("3x2", "f16", "[4, 1]")], "", "destination is not contiguous"),
    ("vcmax", [ub("3x8", "i32"), ub("3x2", "i32")], "", "source has the wrong element type"),
    ("vcmax", [ub("3x16", "f16"), ub("3x1", "f16")], "", "shape of the destination"),
    ("vcgadd", [ub("3x4x16", "f16"), ub("3x4", "f16")], "", "expected [r, 8, 16]"),
    ("vbrcb", [ub("3x4"), ub("3x4x8")], "", "expected [r, 8]"),
    ("vbrcb", [ub("3x8"), ub("3x8x16", "f16")], "", "destination"),
    ("vbrcb", [ub("3x8"), ub("3x8x4", layout="[64, 8, 1]")], "", "shape of the destination"),
    ("vbrcb", [ub("3x8", "f32", "[16, 1]"), ub("3x8x8")], "", "not contiguous"),
    ("vbrcb", [ub("3x8"), ub("3x8x8", layout="[96, 12, 1]")], "", "blocks of the destination"),
    ("vbrcb", [ub("3x8", "i8"), ub("3x8x32", "i8")], "", "bytes of elements"),
    ("vnchwconv", [ub("16x3x32", "i8")] * 2, "", "found s8; expected 16 bits or more"),
    (
        "vnchwconv",
        [ub("16x3x16")] * 2,
        "",
        "shape of source; found [16, 3, 16]; expected [16, r, 8]",
    ),
    ("vnchwconv", [ub("8x3x16", "f16")] * 2, "", "expected [16, r, 16]"),
    (
        "vnchwconv",
        [ub("16x3x16", "f16", "[8, 256, 1]"), ub("16x3x16", "f16")],
        "",
        "source has strides vnchwconv cannot take",
    ),
    ("copy", [memref("8", "f32", layout="[?]"), ub("8")], "", "operand has dynamic strides"),
    (
        "copy",
        ["memref<4x4xf32, affine_map<(i, j) -> ((i + j) mod 4, j)>>", ub("4x4")],
        "",
        "operand's layout has no strides",
    ),
    ("copy_l0c", [L0C, L0C], "", "destination is in the wrong memory; found L0C; expected UB"),
    ("copy_l0c", [L0C, ub("4x2x16x8")], "", "shapes differ"),
    (
        "copy_l0c",
        [L0C, ub("4x2x16x16", layout="[1024, 512, 32, 1]")],
        "",
        "destination fractals are not contiguous; found [1024, 512, 32, 1]",
    ),
    (
        "copy_l0c",
        [memref("4x2x16x16", "f32", "L0C", "[1024, 512, 32, 1]"), UB4],
        "",
        "source is not made of contiguous fractals",
    ),
    ("load2d", [L0A, L0A], "", "source is in the wrong memory; found L0A; expected L1"),
    (
        "load2d",
        [memref("2x3x16x8", "i32", "L1"), memref("2x3x16x8", "i32", "L0A")],
        "",
        "source has the wrong element type; found s32",
    ),
    ("load2d", [L1, memref("2x3x16x16", "i16", "L0A")], "", "element types differ"),
    ("load2d", [L1, memref("3x2x16x16", "f16", "L0A")], "", "shapes differ"),
    (
        "load2d",
        [memref("2x3x8x16", "f16", "L1"), memref("2x3x8x16", "f16", "L0A")],
        "",
        "shape of source; found [2, 3, 8, 16]; expected [a, b, 16, 16]",
    ),
    (
        "mad",
        [memref("2x3x16x16", "f16", "L0A", "[1024, 256, 16, 1]"), NZ_B, NZ_C, "i1"],
        "",
        "A is not contiguous",
    ),
    ("mad", [memref("2x3x8x16", "f16", "L0A"), NZ_B, NZ_C, "i1"], "", "shape of A"),
    ("mad", [NZ_A, memref("3x4x8x16", "f16", "L0B"), NZ_C, "i1"], "", "shape of B"),
    ("vmuls", [memref("5", "f32"), "f32", ub("5")], "", "source 0 is in the wrong memory"),
    ("vector_dup", ["i8", ub("5", "i8")], "", "destination has the wrong element type; found s8"),
    ("vconv", [ub("5"), memref("5", "f16")], "", "destination is in the wrong memory"),
    ("vcmpsel", [ub("9"), ub("9", "f16"), *[ub("9")] * 3], 'predicate = "lt"', "type of b"),
    ("vcmpsel", [*[ub("9", "i32")] * 2, *[ub("9")] * 3], 'predicate = "lt"', "a has the wrong"),
    ("vcmpsel", [*[ub("9")] * 4, memref("9", "f32")], 'predicate = "lt"', "wrong memory"),
    ("vcadd", [ub("3x8", "i32"), ub("3", "i32")], "", "source has the wrong element type"),
    ("vcadd", [memref("3x8", "f32"), ub("3")], "", "source is in the wrong memory"),
    ("vcadd", [ub("3x8"), memref("3", "f32")], "", "destination is in the wrong memory"),
    ("vcadd", [ub("3x16", "f16"), ub("3")], "", "element types differ; found f32; expected f16"),
    ("vcadd", [ub("3x8x1"), ub("3")], "", "rank of the source; found 3; expected 2"),
    ("vcadd", [ub("3x8", layout="[16, 2]"), ub("3")], "", "rows are not contiguous; found 2"),
    ("vcmin", [ub("3x16", "f16"), ub("4x2", "f16")], "", "rows of the destination"),
    (
        "vcmin",
        [ub("3x16", "f16"), ub("3x2", "f16")],
        "first_lane = 16 : i64",
        "lanes outside the row",
    ),
    ("vcgmax", [ub("3x8x16", "i16"), ub("3x8", "f16")], "", "source has the wrong element type"),
    ("vcgmax", [ub("3x8x16", "f16"), ub("3x8")], "", "destination has the wrong element type"),
    ("vcgmin", [memref("3x8x16", "f16"), ub("3x8", "f16")], "", "source is in the wrong memory"),
    ("vcgmin", [ub("3x8x16", "f16"), memref("3x8", "f16")], "", "destination is in the wrong"),
    ("vcgadd", [ub("3x8x16", "f16"), ub("3x7", "f16")], "", "shape of the destination"),
    (
        "vcgadd",
        [ub("3x8x16", "f16", "[144, 18, 1]"), ub("3x8", "f16")],
        "",
        "blocks of the source; found strides [144, 18, 1]; expected [multiples of 16, .., 1]",
    ),
    ("vcgadd", [ub("3x8x16", "f16"), ub("3x8", "f16", "[16, 1]")], "", "not contiguous"),
    ("vnchwconv", [ub("16x3x16", "f16"), ub("16x2x16", "f16")], "", "repeats differ; found 2"),
    ("vnchwconv", [ub("16x3x16", "f16"), memref("16x3x16", "f16")], "", "in the wrong memory"),
    ("set_flag", [], 'src = "MTE2", dst = "X", event = 0 : i64', "attribute dst; found 'X'"),
    ("set_flag", [], 'src = "V", dst = "V", event = 0 : i64', "two pipes; use pipe_barrier"),
    ("wait_flag", [], 'src = "V", dst = "M", event = 16 : i64', "attribute event; found 16"),
    ("pipe_barrier", [], 'pipe = "S"', "attribute pipe; found 'S'"),
    ("set_core_flag", [], 'pipe = "S", flag = 1 : i64', "attribute pipe; found 'S'"),
    ("set_core_flag", [], 'pipe = "FIX", flag = 16 : i64', "attribute flag; found 16"),
    ("wait_core_flag", [], "flag = -1 : i64", "attribute flag; found -1"),
]
INCCE += [*MEETINGS_THAT_ARE_NONE, *PRODUCTS_THAT_ARE_NONE, *EXITS_THAT_ARE_NONE]


@pytest.mark.parametrize(("name", "types", "attributes", "message"), INCCE)
def test_invalid(name: str, types: list[str], attributes: str, message: str) -> None:
    with pytest.raises(MLIRError) as error:
        parse(name, types, attributes)
    assert f"'cce.{name}' op" in str(error.value)
    assert message in str(error.value)


def test_facts_of_the_instructions() -> None:
    """What the dialect reads from the records, said once more."""
    assert types_of("vadd") == ("f16", "f32", "s32", "s16")
    assert types_of("vnot") == ("s16",)
    assert ("f16", "s8") in CONVERSIONS and ("s32", "f32") in CONVERSIONS
    assert ("s32", "f16") not in CONVERSIONS
    floats = {("f16", "f16", "f32"), ("f16", "f16", "f16")}
    floats |= {("bf16", "bf16", "f32"), ("f32", "f32", "f32")}
    assert floats | {("s8", "s8", "s32"), ("u8", "s8", "s32")} == MAD_TYPES
    assert {("f32", "f32"), ("f32", "f16"), ("f16", "f16"), ("s32", "s32")} == L0C_TYPES
    assert {("f32", "f32"), ("f32", "f16"), ("s32", "s32")} == FIXPIPE_TYPES
    assert SCALED_TYPES == {
        ("s32", "f16"): "s322f16",
        ("s32", "s8"): "s322b8",
        ("s32", "u8"): "s322b8",
        ("f32", "s8"): "f322b8",
        ("f32", "u8"): "f322b8",
    }
    assert {memories: record.pipe.name for memories, record in COPIES.items()} == {
        **{("GM", space): "MTE2" for space in ("UB", "L1", "L0A", "L0B")},
        ("UB", "GM"): "MTE3",
        ("UB", "L1"): "MTE3",
        ("L1", "UB"): "MTE1",
        ("L1", "BT"): "MTE1",
        ("L1", "FB"): "FIX",
        ("UB", "UB"): "V",
    }


def test_every_operation_has_an_instruction() -> None:
    """One that is in the records, apart from registers of the scalar unit, and with its pipe."""
    names = {op._op_name for op in Cce.operations} - {*REGISTERS, "copy"}
    names -= {name.removeprefix("cce.") for name in MEETINGS}
    assert {instructions.NAMES.get(name, name) for name in names} <= set(BY_NAME)
    pipes = {name: pipe_of(name) for name in names}
    assert {name for name, pipe in pipes.items() if pipe == "M"} == {"mad", "mad_bias", "mad_l1"}
    assert {name for name, pipe in pipes.items() if pipe == "MTE1"} == {"load2d", "load3d"}


@pytest.mark.parametrize(
    ("name", "types", "pipe", "reads", "writes"),
    [
        ("copy", [memref("8", "f32"), ub("8")], "MTE2", 1, 1),
        ("copy_l1", [ub("8"), memref("8", "f32", "L1")], "MTE3", 1, 1),
        ("copy", [ub("8"), ub("8")], "V", 1, 1),
        ("load2d", [L1, L0A], "MTE1", 1, 1),
        ("load3d", [IMAGE, *INDICES, L0A], "MTE1", 1, 1),
        ("mad", [NZ_A, NZ_B, NZ_C, "i1"], "M", 3, 1),
        ("mad_bias", [NZ_A, NZ_B, BIAS, NZ_C], "M", 3, 1),
        ("copy", [memref("4x16", "f32", "L1"), BIAS], "MTE1", 1, 1),
        ("mad_l1", [IN_L1_A, IN_L1_B, NZ_C, "i1"], "M", 3, 1),
        ("copy_l0c", [L0C, UB4], "V", 1, 1),
        ("dequantize_l0c", DEQUANTIZED, "V", 2, 1),
        ("fixpipe", [L0C, memref("8x8", "f32")], "FIX", 1, 1),
        ("fixpipe_scaled", [SUMS, WORDS, memref("8x8", "f16")], "FIX", 2, 1),
        ("copy", [memref("4x16", "i64", "L1"), WORDS], "FIX", 1, 1),
        ("nd2nz", [memref("5x33", "f16"), BLOCKS], "MTE2", 1, 1),
        ("clear_l1", [memref("3x48", "f16", "L1")], "MTE2", 0, 1),
        ("vadds", [ub("5"), "f32", ub("5")], "V", 1, 1),
        ("vaxpy", [ub("5"), "f32", ub("5")], "V", 2, 1),
        ("vmadd", [ub("5"), ub("5"), ub("5")], "V", 3, 1),
        ("vector_dup", ["f32", ub("5")], "V", 0, 1),
    ],
)
def test_effects(name: str, types: list[str], pipe: str, reads: int, writes: int) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(parse(name, types, {"load3d": WINDOWS}.get(name, "")))
        block = module.body.operations[0].regions[0].blocks[0]
        effects = effects_of(block.operations[0].operation)
        assert effects is not None
        assert (effects.pipe, len(effects.reads), len(effects.writes)) == (pipe, reads, writes)
        assert effects_of(block.operations[1].operation) is None
