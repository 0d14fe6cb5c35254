"""Verifiers of the ascend operators: legal operations, one error a constraint.

A case is `name(operand types) {attributes} -> result type`, the operands being arguments; of a type
with `:nz` behind it the layout is that.
"""

from __future__ import annotations

import re

import pytest

from davinci.mlir import MLIRError, ir, make_context
from davinci.operators import OPERATORS, Operator
from davinci.operators.constraints import floats_only, integers_only
from davinci.operators.tensors import fractal_shape
from legal_operations import ASCEND, CONV, POOL, typed


def module_text(case: str) -> str:
    """`add(4xf32, 4xf32) -> 4xf32` as a module."""
    head, result = (part.strip() for part in case.split("->"))
    name, rest = head.split("(", 1)
    inside, attributes = rest.split(")", 1)
    inputs = [t.strip() for t in inside.split(",") if t.strip()]
    operands, results = [typed("tensor", t) for t in inputs], typed("tensor", result)
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(operands))
    values = ", ".join(f"%{i}" for i in range(len(operands)))
    built = f'"ascend.{name}"({values}) {attributes} : ({", ".join(operands)}) -> {results}'
    return f"func.func @f({arguments}) {{\n %r = {built}\n return\n}}"


ODD = (
    "bitcast", "cast", "compare", "cube_scale", "double_from_single", "double_to_half",
    "double_to_single", "from_bfloat", "half_part", "quantize", "select", "to_bfloat",
)  # fmt: skip
"""Elementwise operators whose operands and results need not have one type."""


def blocks_text(
    types: str,
    axes: str = "0",
    starts: str = "0, 0",
    batch: str = "0, 0",
    wrap: str = "0",
    skip: str | None = None,
    by: str | None = None,
) -> str:
    """A case of an operator on blocks; `skip` is of updates, `by` of combinations."""
    lists = {"axes": axes, "starts": starts, "batch": batch, "wrap": wrap}
    given = [f"{name} = array<i64: {values}>" for name, values in lists.items()]
    given += [] if skip is None else [f"skip = {skip} : i64"]
    given += [] if by is None else [f'by = "{by}"']
    head, result = types.split(" -> ")
    return f"{head} {{{', '.join(given)}}} -> {result}"


GATHERED = "gather_blocks(9x4xf32, 5x1xi64) -> 5x2x4xf32"
UPDATED = "update_blocks(9x4xf32, 5x1x4xf32, 5x1xi64) -> 9x4xf32"
COMBINED = "combine_blocks(9x4xf32, 5x1x4xf32, 5x1xi64) -> 9x4xf32"
BLOCKS = [
    (COMBINED.replace("5x1xi64", "5xi64"), {"by": "add"}, "C1: rank of the indices"),
    (COMBINED, {"by": "add", "wrap": "2"}, "C2: 'wrap'; found .2.; expected 1 numbers, 0 or 1"),
    (COMBINED, {"by": "add", "batch": "0"}, "C3: number of 'batch'"),
    (COMBINED.replace("5x1x4x", "5x1x5x"), {"by": "add"}, "C4: length of a block along 1"),
    (COMBINED.replace("5x1x4x", "5x2x4x"), {"by": "add"}, "C5: length of the blocks along 0"),
    (COMBINED.replace("5x1x4x", "4x1x4x"), {"by": "add"}, "C6: number of updates; found .4,."),
    (COMBINED, {"by": "xor"}, "C7: attribute 'by'; found xor; expected one of add, max, min, mul"),
    (COMBINED, {}, "C7: attribute 'by'; found none"),
    (COMBINED.replace("f32", "f16"), {"by": "add"}, "C7: element type of the array; found f16"),
    (COMBINED.replace("9x4xf32,", "9x4xf32:nz,"), {"by": "add"}, "C8: layout of operand 0"),
    ("gather_elements(9xf32, 9x5xi32) -> 9x5xf32", {}, "C1: rank of the table"),
    ("gather_elements(9x4xf32, 9xi32) -> 9xf32", {}, "C1: rank of the places"),
    ("gather_elements(9x4xf32, 8x5xi32) -> 8x5xf32", {}, "C1: rows; found 9; expected 8"),
    ("gather_elements(9x0xf32, 9x5xi32) -> 9x5xf32", {}, "C1: elements of a row of the table"),
    ("gather_elements(9x4xf32, 9x5xi64) -> 9x5xf32", {}, "C2: element type of the places"),
    ("gather_elements(9x4xf32, 9x5xi32) -> 9x4xf32", {}, "C3: shape of the result"),
    ("gather_elements(9x4xf32:nz, 9x5xi32) -> 9x5xf32", {}, "layout of operand 0; found nz"),
    ("gather_blocks(9x4xf32, 5xi64) -> 5x2x4xf32", {}, "rank of the indices"),
    ("gather_blocks(9x4xf32, 5x1xi8) -> 5x2x4xf32", {}, "element type of the indices"),
    (GATHERED, {"axes": "2"}, "'axes'; found .2.; expected distinct dimensions below 2"),
    (GATHERED, {"axes": "0, 1"}, "number of 'axes'; found 2; expected 1, one a column"),
    (GATHERED, {"wrap": "2"}, "'wrap'; found .2.; expected 1 numbers, 0 or 1"),
    (GATHERED, {"starts": "0"}, "number of 'starts'"),
    (GATHERED, {"starts": "1, 0"}, "'starts' of dimension 0; found 1; expected 0 to 0"),
    (GATHERED, {"batch": "0, -1"}, "'batch' of dimension 1; found -1"),
    ("gather_blocks(9x4xf32, 5x1xi64) -> 5x10x4xf32", {}, "length of a block along 0; found 10"),
    ("gather_blocks(9x4xf32, 5x1xi64) -> 5x4xf32", {}, "rank of a block; found 1; expected 2"),
    ("gather_blocks(9x4xf32, 5x1xi64) -> 6x2x4xf32", {}, "shape of the result"),
    ("gather_blocks(9x4xf32:nz, 5x1xi64) -> 5x2x4xf32", {}, "layout of operand 0; found nz"),
    (UPDATED.replace("5x1xi64", "5xi64"), {"skip": "0"}, "C1: rank of the indices"),
    (UPDATED, {"skip": "0", "batch": "0"}, "C3: number of 'batch'"),
    (UPDATED.replace("5x1x4x", "5x1x5x"), {"skip": "0"}, "C4: length of a block along 1"),
    (UPDATED.replace("9x4xf32,", "9x4xf32:nz,"), {"skip": "0"}, "C7: layout of operand 0"),
    (UPDATED, {}, "attribute 'skip'; found none"),
    (UPDATED, {"skip": "2"}, "'skip'; found 2; expected 0 or 1"),
    (
        "update_blocks(9x4xf32, 5x2x4xf32, 5x1xi64) -> 9x4xf32",
        {"skip": "0"},
        "C5: length of the blocks along 0; found 2; expected 1",
    ),
    (
        "update_blocks(9x4xf32, 1x2x4xf32, 1x1xi64) -> 9x4xf32",
        {"skip": "1"},
        "C5: length of the blocks along 0; found 2; expected 1",
    ),
    (
        "update_blocks(9x4xf32, 4x1x4xf32, 5x1xi64) -> 9x4xf32",
        {"skip": "0"},
        "number of updates; found .4,.; expected 5",
    ),
    (
        "update_blocks(9x4xf32, 5x1x4xf16, 5x1xi64) -> 9x4xf32",
        {"skip": "0"},
        "element type of the updates; found f16",
    ),
    (
        "update_blocks(9x4xf32, 5x1x4xf32, 5x1xi64) -> 9x5xf32",
        {"skip": "0"},
        "shape of the result",
    ),
]

PAIRS = (
    'sort_pairs(4x9xf32, 2x9xi32) {order = "total", descending = 0 : i64, below = 9 : i64} '
    "-> 2x4x9xi32"
)
SORTS = [
    ('sort(9xf32) {order = "total", descending = 0 : i64} -> 9xf32', "C1: rank of the keys"),
    ('sort(0x9xf32) {order = "total", descending = 0 : i64} -> 0x9xf32', "C1: shape of the keys"),
    ('sort(2x9xf32) {order = "signed", descending = 0 : i64} -> 2x9xf32', "C2: order of f32"),
    ('sort(2x9xf32) {order = "total", descending = 2 : i64} -> 2x9xf32', "C2: 'descending'"),
    ('sort(2x9xf32) {order = "best", descending = 0 : i64} -> 2x9xf32', "C2: attribute 'order'"),
    ('sort(2x9xf32) {order = "total", descending = 0 : i64} -> 2x10xf32', "C3: keys that are kept"),
    (
        'sort(2x9xf32:nz) {order = "total", descending = 0 : i64} -> 2x9xf32:nz',
        "C4: layout of operand 0",
    ),
    (PAIRS.replace("4x9xf32", "9xf32"), "C1: rank of the keys"),
    (PAIRS.replace("total", "signed"), "C2: order of f32"),
    (PAIRS.replace("4x9xf32", "4x9xf32:nz"), "C5: layout of operand 0"),
    (PAIRS.replace("2x9xi32", "2x9xf32"), "C3: element type of the numbers"),
    (PAIRS.replace("2x9xi32", "3x9xi32"), "C3: shape of the numbers"),
    (PAIRS.replace("below = 9", "below = 0"), "C3: 'below'; found 0"),
    (PAIRS.replace("2x4x9xi32", "4x9xi32"), "C4: keys that are kept"),
    (PAIRS.replace("2x4x9xi32", "2x3x9xi32"), "C4: shape of the result"),
]

BAND = "runs = array<i64: 3, 0, 0, 1, 1>, fill = 0.0 : f64"

ILLEGAL = [
    *SORTS,
    ("copy(4xf32) -> 4xf16", "element type of the result"),
    ("copy(*xf32) -> *xf32", "expected a ranked tensor"),
    ("add(4xf32, 5xf32) -> 4xf32", "type of operand 1; found 5xf32; expected 4xf32"),
    ("add(4xf32, 4xf32) -> 5xf32", r"shape of the result; found \[5\]; expected \[4\]"),
    ("add(4xf32, 4xf32) -> 4xf16", "element type of the result; found f16; expected f32"),
    ("add(?xf32, ?xf32) -> ?xf32", "expected static sizes"),
    ("exp(4xi32) -> 4xi32", "element type; found i32; expected float elements"),
    ("and(4xf32, 4xf32) -> 4xf32", "element type; found f32; expected integer elements"),
    ("cast(4xf32) -> 5xf16", "shape of the result"),
    ("quantize(4xf32) {zero = 1 : i64} -> 5xi8", "shape of the result"),
    ("quantize(4xf32) {zero = 1 : i64} -> 4xi16", "element type of the result; found i16"),
    ("quantize(4xf32) {zero = -1 : i64} -> 4xui8", "zero; found -1; expected 0..255"),
    ("quantize(4x4xf32) {zero = 1 : i64} -> 4x4xi8:nz", "layout of the result"),
    ("dequantize(5x4xf32, 4xf16, 4x32xi8) -> 5x4xf16", "element type of sums; found f32"),
    ("dequantize(5x4xi32, 5xf16, 4x32xi8) -> 5x4xf16", "C1: scales; found"),
    ("dequantize(5x4xi32, 4xf16, 4x33xi8) -> 5x4xf16", "digits; found"),
    ("dequantize(5x4xi32, 4xf16, 4x32xi8) -> 5x4xf32", "element type of the result"),
    ("dequantize(5x4xi32:nz, 4xf16, 4x32xi8) -> 5x4xf16", "layout of the result"),
    ("scale_sums(5x4xf32, 4x2xi32) -> 5x4xi8", "C1: element type of sums; found f32"),
    ("scale_sums(5x4xi32, 4x1xi32) -> 5x4xi8", "C1: words; found"),
    ("scale_sums(5x4xi32, 4x2xi32) -> 5x4xf32", "C1: element type of the result; found f32"),
    ("scale_sums(5x4xi32, 4x2xi32) -> 4x4xi8", "shape of the result"),
    ("scale_sums(5x4xi32:nz, 4x2xi32) -> 5x4xi8", "layout of the result"),
    (f"band(3x4xf32) {{{BAND}}} -> 3x5xf32", "C1: shape of the result"),
    (f"band(3x4xi32) {{{BAND}}} -> 3x4xi32", "C2: element type; found i32"),
    (f"band(4xf32) {{{BAND}}} -> 4xf32", "C3: rank of the operand; found 1"),
    ("band(3x4xf32) {runs = array<i64: 3, 0>, fill = 0.0 : f64} -> 3x4xf32", "C4: length of"),
    (f"band(4x4xf32) {{{BAND}}} -> 4x4xf32", "C4: rows of all runs; found 3"),
    (f"band(3x4xf32) {{{BAND}, each = 0 : i64}} -> 3x4xf32", "C5: 'each'; found 0"),
    ("band(3x4xf32) {runs = array<i64: 3, 0, 0, 1, 1>} -> 3x4xf32", "C6: 'fill'"),
    (f"band(3x4xf32:nz) {{{BAND}}} -> 3x4xf32", "C7: layout of"),
    ("cube_scale(4xf16) -> 4xf16", "element type of the operand; found f16; expected f32"),
    ("cube_scale(4xf32) -> 5xf32", "shape of the result"),
    ("from_bfloat(4xf32) -> 4xf32", "element type of the operand; found f32; expected i16"),
    ("from_bfloat(4xi16) -> 4xf16", "element type of the result|found 4xf16"),
    ("to_bfloat(4xf16) -> 4xi16", "element type of the operand; found f16; expected f32"),
    ("double_from_single(4xi64) -> 4xi64", "element type of the operand; found i64; expected f32"),
    ("double_from_single(4xf32) -> 4xf32", "element type of the result|found 4xf32"),
    ("double_from_single(4x4xf32:nz) -> 4x4xi64", "layout of the result"),
    ("double_to_half(4xf16) -> 4xf16", "element type of the operand; found f16; expected i64"),
    ("double_to_half(4xi64) -> 4xi64", "element type of the result|found 4xi64"),
    ("double_to_half(4x4xi64) -> 4x4xf16:nz", "layout of the result"),
    ("double_to_single(4x4xi64) -> 4x4xf32:nz", "layout of the result"),
    ("double_to_single(4xf32) -> 4xf32", "element type of the operand; found f32; expected i64"),
    ("double_to_single(4xi64) -> 4xi64", "element type of the result|found 4xi64"),
    ("bitcast(4xf32) -> 4xi16", "element type of the result; found 4xi16"),
    ("bitcast(4x4xf32:nz) -> 4x4xi32", "layout of the result"),
    ("reinterpret(4xf64) -> 2x2xi64", "shape of the result"),
    ("reinterpret(4x4xf32:nz) -> 4x4xi32", "C2: layout of operand 0"),
    ("reinterpret(4xf64) -> 4xi32", "bytes of an element of the result; found 4"),
    ("from_bfloat(4x4xi16:nz) -> 4x4xf32", "layout of the result"),
    ("to_bfloat(4x4xf32:nz) -> 4x4xi16", "layout of the result"),
    ("half_part(4xf32) {part = 3 : i64} -> 4xf16", "attribute 'part'; found 3; expected 0, 1 or 2"),
    ("half_part(4xf32) -> 4xf16", "attribute 'part'; found none"),
    ("half_part(4xf16) {part = 1 : i64} -> 4xf16", "element type of the operand; found f16"),
    ("half_part(4xf32) {part = 1 : i64} -> 4xf32", "element type of the result; found f32"),
    ("compare(4xf32, 4xf32) -> 4xi1", "attribute 'predicate'; found none; expected one of EQ"),
    ('compare(4xf32, 4xf32) {predicate = "lt"} -> 4xi1', "attribute 'predicate'; found lt"),
    ('compare(4xf32, 4xf16) {predicate = "LT"} -> 4xi1', "type of operand 1"),
    ('compare(4xf32, 4xf32) {predicate = "LT"} -> 4xi8', "element type of the result; found i8"),
    ("select(4xi8, 4xf32, 4xf32) -> 4xf32", "element type of the condition; found i8"),
    ("select(5xi1, 4xf32, 4xf32) -> 4xf32", "shape of the condition"),
    ("select(4xi1, 4xf32, 4xf16) -> 4xf32", "type of operand 2"),
    ("full() {value = 1.0 : f32} -> 4xf16", "element type of value; found f32; expected f16"),
    ('full() {value = "x"} -> 4xf16', "attribute 'value'"),
    ("constant() {value = dense<1.0> : tensor<4xf32>} -> 5xf32", "shape of 'value'"),
    (
        "constant() {value = dense<1.0> : tensor<17x33xf16>} -> 17x33xf16:nz",
        r"shape of 'value'; found \[17, 33\]; expected \[3, 2, 16, 16\]",
    ),
    ("constant() {value = dense<1.0> : tensor<4xf32>} -> 4xf16", "element type of 'value'"),
    ("constant() {value = 1.0 : f32} -> 5xf32", "expected an elements attribute"),
    ("iota() {dim = 2 : i64} -> 3x4xi32", "'dim'; found 2; expected a dimension below 2"),
    ("iota() -> 3x4xi32", "attribute 'dim'; found none"),
    ("broadcast(3x4xf32) {dims = array<i64: 0>} -> 3x4xf32", "number of 'dims'; found 1"),
    ("broadcast(3x4xf32) {dims = array<i64: 0, 0>} -> 3x4xf32", "distinct dimensions below 2"),
    ("broadcast(3x4xf32) {dims = array<i64: 0, 1>} -> 3x5xf32", "size of dimension 1"),
    ("broadcast(3xf32) {dims = array<i64: 0>} -> 3xf16", "element type of the result"),
    ("reshape(3x4xf32) -> 2x5xf32", "number of elements; found 10; expected 12"),
    ("reshape(3x4xf32) -> 2x6xf16", "element type of the result"),
    ("transpose(3x4xf32) {permutation = array<i64: 0>} -> 3x4xf32", "number of 'permutation'"),
    ("transpose(3x4xf32) {permutation = array<i64: 1, 0>} -> 3x4xf32", "shape of the result"),
    ('reduce(3x4xf32) {kind = "mean", dims = array<i64: 0>} -> 4xf32', "attribute 'kind'"),
    ('reduce(3x4xf32) {kind = "add", dims = array<i64: 2>} -> 4xf32', "'dims'"),
    ('reduce(3x4xf32) {kind = "add", dims = array<i64: 0>} -> 3xf32', "shape of the result"),
    (
        "slice(4xf32) {starts = array<i64: 1>, limits = array<i64: 5>, strides = array<i64: 1>}"
        " -> 4xf32",
        "range of dimension 0; found 1:5:1",
    ),
    (
        "slice(4xf32) {starts = array<i64>, limits = array<i64: 4>, strides = array<i64: 1>}"
        " -> 4xf32",
        "number of 'starts'",
    ),
    (
        "slice(4xf32) {starts = array<i64: 1>, limits = array<i64: 4>, strides = array<i64: 1>}"
        " -> 4xf32",
        "shape of the result",
    ),
    ("concat(3x4xf32, 3x1xf32) {dim = 2 : i64} -> 3x5xf32", "'dim'; found 2"),
    ("concat(3x4xf32, 2x1xf32) {dim = 1 : i64} -> 3x5xf32", "shape of operand 1"),
    ("concat(3x4xf32, 3x1xf32) {dim = 1 : i64} -> 3x6xf32", "shape of the result"),
    (
        "pad(3xf32, f32) {low = array<i64>, high = array<i64: 2>, interior = array<i64: 1>}"
        " -> 6xf32",
        "number of 'low'",
    ),
    (
        "pad(3xf32, 1xf32) {low = array<i64: 0>, high = array<i64: 0>, interior = array<i64: 0>}"
        " -> 3xf32",
        "rank of the padding value",
    ),
    (
        "pad(3xf32, f32) {low = array<i64: 0>, high = array<i64: 0>, interior = array<i64: -1>}"
        " -> 3xf32",
        "'interior'",
    ),
    (
        "pad(3xf32, f32) {low = array<i64: 0>, high = array<i64: 0>, interior = array<i64: 0>}"
        " -> 4xf32",
        "shape of the result",
    ),
    ("gather(f32, 5xi64) -> 5xf32", "rank of the table"),
    ("gather(9x4xf32, 5x1xi64) -> 5x4xf32", "rank of the indices"),
    ("gather(9x4xf32, 5xi8) -> 5x4xf32", "element type of the indices"),
    ("gather(0x4xf32, 5xi32) -> 5x4xf32", "rows of the table"),
    ("gather(9x4xf32, 5xi64) -> 5x5xf32", "shape of the result"),
    ("gather(9x4xf32, 5xi64) {wrap = 2 : i64} -> 5x4xf32", "'wrap'; found 2; expected 0 or 1"),
    *((blocks_text(types, **given), message) for types, given, message in BLOCKS),
    (
        "view(4x4xf32) {shape = array<i64: 4, 3>, permutation = array<i64: 0, 1>} -> 4x4xf32",
        "shape'",
    ),
    (
        "view(4x4xf32) {shape = array<i64: 16>, permutation = array<i64: 0>} -> 4x3xf32",
        "number of el",
    ),
    ("view(4x4xf32) {shape = array<i64: 16>, permutation = array<i64: 1>} -> 4x4xf32", "'permutat"),
    ("view(4x4xf32) {shape = array<i64: 16>, permutation = array<i64>} -> 4x4xf32", "number of 'p"),
    (
        "view(4xf32) {shape = array<i64: 4>, permutation = array<i64: 0>} -> 4xf16",
        "element type of",
    ),
    (
        "view(2x3xf32) {shape = array<i64: 2, 3>, permutation = array<i64: 1, 0>} -> 3x2xf32",
        "not a view; found 3x2xf32; expected the operand's bytes",
    ),
    ("relayout(17x33xf16) -> 17x34xf16:nz", "shape of the result"),
    ("relayout(17x33xf64) -> 17x33xf64", "expected 8, 16 or 32 bits"),
    ("matmul(3x2x16x16xf16, 4x3x16x16xf16) -> 4x2x16x16xf32", "rank of A; found 4; expected 2"),
    (
        f"conv(2x30x17xf16, 1x288x5xf16) {CONV.replace('2, 3>', '64, 3>')} -> 2x4x5xf32",
        r"attribute 'strides'; found .64, 3.; expected 2 numbers 1..63",
    ),
    (
        f"conv(2x30x17xf16, 1x288x5xf16) {CONV.replace('1, 1>', '9, 1>')} -> 2x4x5xf32",
        "windows; found .-6, 2.; expected at least one",
    ),
    (f"conv(2x31x17xf16, 1x288x5xf16) {CONV} -> 2x4x5xf32", "shape of X; found .2, 31, 17."),
    (f"conv(2x30x17xf16, 1x287x5xf16) {CONV} -> 2x4x5xf32", "rows of W; found 287; expected 288"),
    (f"conv(2x30x16xf16, 2x144x5xf16) {CONV} -> 2x4x10xf32", "whole blocks of 16 each"),
    (f"conv(2x30x17xf16, 288x5xf16) {CONV} -> 2x4x5xf32", "shape of W; found .288, 5."),
    (f"conv(2x30x17xf16, 1x288x5xf16) {CONV} -> 2x7x5xf32", "shape of the result; found .2, 7, 5."),
    (f"conv(2x30x17xf16, 1x288x5xf32) {CONV} -> 2x4x5xf32", "element type of W; found f32"),
    (f"conv(2x30x17xf32, 1x288x5xf32) {CONV} -> 2x4x5xf16", "element type of the result"),
    (f"conv(2x30x17xi16, 1x288x5xi16) {CONV} -> 2x4x5xf32", "element type of X; found i16"),
    (f"conv(2x30x17xi8, 1x288x5xi8) {CONV} -> 2x4x5xi32", "transpose_b; found False"),
    (
        f"conv(2x30x17xf16, 1x288x5xf16) {CONV[:-1]}, padding = 3 : i64}} -> 2x4x5xf32",
        "padding; found 3; expected a byte, or 0 of floats",
    ),
    (
        f"pool(2x30x17xf16) {POOL.replace('2, 3>', '64, 3>')} -> 2x4x17xf16",
        r"attribute 'strides'; found .64, 3.; expected 2 numbers 1..63",
    ),
    (f"pool(2x31x17xf16) {POOL} -> 2x4x17xf16", "shape of X; found .2, 31, 17."),
    (f"pool(2x30x17xf16) {POOL.replace('max', 'mul')} -> 2x4x17xf16", "attribute 'kind'"),
    (
        f"pool(2x30x17xf16) {POOL.replace('0, 1, 1, 0', '3, 1, 1, 0')} -> 2x8x17xf16",
        "a window; found in padding only",
    ),
    (f"pool(2x30x17xf16) {POOL} -> 2x7x17xf16", "shape of the result; found .2, 7, 17."),
    (f"pool(2x30x17xi8) {POOL} -> 2x4x17xi8", "element type of X; found i8"),
    (f"pool(2x30x17xf16) {POOL} -> 2x4x17xf32", "element type of the result"),
    (f"pool(2x30x17xf16:nz) {POOL} -> 2x4x17xf16", "layout"),
    ("matmul(17x33xf32, 32x5xf32) -> 17x5xf32", "rows of B; found 32; expected 33"),
    ("matmul(17x33xf32, 33x5xf32) {transpose_a} -> 17x5xf32", "rows of B; found 33; expected 17"),
    ("matmul(17x33xf32, 33x5xf32) {transpose_b} -> 17x5xf32", "rows of B; found 5; expected 33"),
    ("matmul(17x33xf16, 33x5xf16) -> 1x2x16x16xf32", "shape of the result"),
    ("add(4xf32) -> 4xf32", "expected"),
    ("transpose(3x4xf32) {permutation = array<i64: 1, 1>} -> 4x3xf32", "distinct dimensions below"),
    ("transpose(3x4xf32) {permutation = 1 : i64} -> 4x3xf32", "attribute 'permutation'; found 1"),
    ("matmul(17x33xf32, 33x5xf16) -> 17x5xf32", "element type of B; found f16; expected f32"),
    ("matmul(17x33xf32, 33xf32) -> 17x5xf32", "rank of B; found 1; expected 2"),
    ("matmul(17x33xf32, 33x5xf32) -> 17x6xf32", "shape of the result"),
    ("batch_matmul(7x17x33xf32, 6x33x5xf32) -> 7x17x5xf32", "batch of B"),
    ("batch_matmul(7x17x33xf32, 33x5xf32) -> 7x17x5xf32", "rank of B; found 2; expected 3"),
    ("batch_matmul(7x17x33xf32, 7x33x5xf16) -> 7x17x5xf32", "element type of B"),
    ("batch_matmul(7x17x33xf32, 7x32x5xf32) -> 7x17x5xf32", "rows of B"),
    ("batch_matmul(7x17x33xf32, 7x33x5xf32) -> 7x17x6xf32", "shape of the result"),
    (
        "exp(4x4xf32:zz) -> 4x4xf32:zz",
        "unknown layout; found .*zz.*; expected .*nz",
    ),
    ("exp(4xf32:nz) -> 4xf32:nz", "rank of a tensor in nz; found 1; expected at least 2"),
    ("neg(4x4xf64:nz) -> 4x4xf64:nz", "elements of a tensor in nz; found f64"),
    ("exp(4x4xf32:nz) -> 4x4xf32", "layout of the result; found rows; expected nz"),
    ('compare(4x4xf32, 4x4xf32) {predicate = "LT"} -> 4x4xi1:nz', "layout of the result"),
    ("cube_scale(4x4xf32) -> 4x4xf32:nz", "layout of the result; found nz; expected rows"),
    ("half_part(4x4xf32:nz) {part = 1 : i64} -> 4x4xf16", "layout of the result"),
    ("copy(4x4xf32:nz) -> 4x4xf32", "layout of the result; found rows; expected nz"),
    ("gather(9x4xf32:nz, 5xi64) -> 5x4xf32", "layout of operand 0; found nz; expected rows"),
    ("concat(3x4xf32, 3x1xf32) {dim = 1 : i64} -> 3x5xf32:nz", "layout of the result"),
    (
        "pad(3x3xf32:nz, f32) {low = array<i64: 0, 0>, high = array<i64: 0, 0>, "
        "interior = array<i64: 0, 0>} -> 3x3xf32",
        "layout of operand 0",
    ),
    (
        "slice(4x4xf32:nz) {starts = array<i64: 0, 0>, limits = array<i64: 4, 4>, "
        "strides = array<i64: 1, 1>} -> 4x4xf32",
        "layout of the result",
    ),
    ("add(4x4xf32:nz, 4x4xf32) -> 4x4xf32:nz", "type of operand 1; found 4x4xf32; expected .* nz"),
    ("select(4x4xi1, 4x4xf32:nz, 4x4xf32:nz) -> 4x4xf32:nz", "layout of operand 1"),
    ("cast(4x4xf32:nz) -> 4x4xi8", "layout of the result"),
    ("transpose(4x4xf32:nz) {permutation = array<i64: 1, 0>} -> 4x4xf32", "layout of operand 0"),
    ("iota() {dim = 1 : i64} -> 3x4xi32:nz", "layout of the result; found nz; expected rows"),
    ("broadcast(1x4xf32:nz) {dims = array<i64: 0, 1>} -> 3x4xf32", "layout of operand 0"),
    ("reshape(2x17x3xf32:nz) -> 34x3xf32:nz", "not a view"),
    (
        'reduce(3x17x33xf32:nz) {kind = "add", dims = array<i64: 1>} -> 3x33xf32:nz',
        "layout of the result; found nz; expected rows",
    ),
]


def parse(case: str) -> str:
    with make_context(), ir.Location.unknown():
        return str(ir.Module.parse(module_text(case)))


@pytest.mark.parametrize("case", ASCEND)
def test_legal_and_round_trip(case: str) -> None:
    text = parse(case)
    with make_context():
        assert str(ir.Module.parse(text)) == text


@pytest.mark.parametrize(("case", "message"), ILLEGAL, ids=[case for case, _ in ILLEGAL])
def test_illegal(case: str, message: str) -> None:
    with pytest.raises(MLIRError, match=message):
        parse(case)


ELEMENTWISE = [r for r in OPERATORS.values() if r.elementwise and r.name not in ODD]


@pytest.mark.parametrize("record", ELEMENTWISE, ids=lambda record: record.name)
def test_operators_of_one_type(record: Operator) -> None:
    """Each constraint: shapes, element types of operands and result, floats."""
    integers = integers_only in record.constraints
    kind, other = ("i32", "f32") if integers else ("f32", "i32")
    given = [f"4x{kind}"] * len(record.operands)

    def case(operands: list[str], result: str) -> str:
        return f"{record.name}({', '.join(operands)}) -> {result}"

    text = parse(case(given, f"4x{kind}"))
    with make_context():
        assert str(ir.Module.parse(text)) == text
    wrong = [
        ("C1", case(given, f"5x{kind}")),
        ("C1", case(given, f"4x{other}")),
        ("number of operands|expected", case([*given, *given], "4xf32")),
    ]
    if len(given) > 1:
        wrong.append(("C1", case([f"5x{kind}", *given[1:]], f"4x{kind}")))
        wrong.append(("C1", case([*given[:-1], f"4x{other}"], f"4x{kind}")))
    if integers or floats_only in record.constraints:
        wrong.append(("C2", case([f"4x{other}"] * len(given), f"4x{other}")))
    for message, text in wrong:
        with pytest.raises(MLIRError, match=f"'ascend.{record.name}' op.*({message})"):
            parse(text)


def test_every_operator_is_tested() -> None:
    tested = {case.split("(")[0] for case in ASCEND} | {record.name for record in ELEMENTWISE}
    assert set(OPERATORS) <= tested


@pytest.mark.parametrize("record", OPERATORS.values(), ids=lambda record: record.name)
def test_every_constraint_has_an_illegal_case(record: Operator) -> None:
    if record in ELEMENTWISE:  # those of `test_operators_of_one_type`
        return
    found = set()
    for case, _ in ILLEGAL:
        if case.split("(")[0] == record.name:
            with pytest.raises(MLIRError) as error:
                parse(case)
            found |= set(re.findall(r"op (C\d+):", str(error.value)))
    assert found >= {f"C{i}" for i in range(1, len(record.constraints) + 1)}


def test_fractal_shape_counts_blocks() -> None:
    assert fractal_shape((512, 768), "f16") == (48, 32, 16, 16)
    assert fractal_shape((1, 33), "i8") == (2, 1, 16, 32)
