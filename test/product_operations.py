"""Products of the cce dialect that break a constraint, and words of the error."""

from __future__ import annotations

from legal_operations import (
    BIAS,
    IN_L1_A,
    IN_L1_B,
    NZ_A,
    NZ_B,
    NZ_C,
    SUMS,
    UB4,
    WORDS,
    memref,
)

PRODUCTS_THAT_ARE_NONE = [
    ("mad", [NZ_B, NZ_B, NZ_C, "i1"], "", "A is in the wrong memory"),
    ("mad", [NZ_A, NZ_B, memref("2x4x16x16", "f32", "L0C"), "i1"], "", "shape of C"),
    (
        "mad",
        [NZ_A, memref("2x4x16x16", "f16", "L0B"), NZ_C, "i1"],
        "",
        "inner sizes differ; found 2; expected 3",
    ),
    ("mad", [NZ_A, NZ_B, memref("4x2x16x16", "i32", "L0C"), "i1"], "", "f16 x f16 to s32"),
    ("mad", [NZ_A, NZ_B, NZ_C, "i8"], "", "type of init; found i8; expected i1"),
    (
        "mad_bias",
        [NZ_A, NZ_B, memref("4x16", "f32", "L1"), NZ_C],
        "",
        "bias is in the wrong memory",
    ),
    ("mad_bias", [NZ_A, NZ_B, memref("4x16", "f16", "BT"), NZ_C], "", "type of bias; found f16"),
    (
        "mad_bias",
        [NZ_A, NZ_B, memref("2x16", "f32", "BT"), NZ_C],
        "",
        "shape of bias; found [2, 16]",
    ),
    (
        "mad_bias",
        [NZ_A, NZ_B, memref("4x16", "f32", "BT", "[32, 1]"), NZ_C],
        "",
        "bias is not contiguous",
    ),
    ("mad_bias", [NZ_B, NZ_B, BIAS, NZ_C], "", "A is in the wrong memory"),
    ("mad_bias", [NZ_A, NZ_B, BIAS, memref("4x2x16x16", "f16", "L0C")], "", "f16 x f16 to f16"),
    ("mad_l1", [NZ_A, IN_L1_B, NZ_C, "i1"], "", "A is in the wrong memory"),
    ("mad_l1", [IN_L1_A, IN_L1_A, NZ_C, "i1"], "", "inner sizes differ; found 2; expected 3"),
    ("mad_l1", [IN_L1_A, IN_L1_B, NZ_C, "i1"], "a_transpose", "inner sizes differ; found 3"),
    ("mad_l1", [IN_L1_A, IN_L1_B, NZ_C, "i1"], "b_transpose", "inner sizes differ; found 4"),
    ("mad_l1", [IN_L1_A, IN_L1_B, memref("2x4x16x16", "f32", "L0C"), "i1"], "", "shape of C"),
    ("mad_l1", [IN_L1_A, IN_L1_B, memref("4x2x16x16", "f16", "L0C"), "i1"], "", "f16 x f16 to f16"),
    (
        "mad_l1",
        [
            memref("2x3x16x32", "i8", "L1"),
            memref("4x2x16x32", "i8", "L1"),
            memref("4x3x16x16", "i32", "L0C"),
            "i1",
        ],
        "",
        "bytes transposed; found (False, False); expected B alone",
    ),
    ("mad_l1", [IN_L1_A, IN_L1_B, NZ_C, "i8"], "", "type of init; found i8; expected i1"),
]

EXITS_THAT_ARE_NONE = [
    ("fixpipe_scaled", [UB4, WORDS, memref("8x8", "f16")], "", "types; found f32 to f16"),
    ("fixpipe_scaled", [SUMS, WORDS, memref("8x8", "i32")], "", "types; found s32 to s32"),
    ("fixpipe_scaled", [SUMS, WORDS, memref("33x8", "i8")], "", "rows; found [33, 8]"),
    ("fixpipe_scaled", [SUMS, WORDS, memref("4x2x16x16", "i8")], "", "expected [2, 2, 16, 32]"),
    ("fixpipe_scaled", [SUMS, WORDS, memref("4x9x16", "i8")], "", "found 4; expected 2"),
    ("fixpipe_scaled", [SUMS, WORDS, memref("2x9x16", "i8")], "", "expected [32, 32, 1]"),
    (
        "fixpipe_scaled",
        [memref("3x2x16x16", "i32", "L0C"), "i64", memref("1x2x16x32", "i8")],
        "",
        "columns for fractals of 32; found 48",
    ),
    ("fixpipe_scaled", [SUMS, "i32", memref("8x8", "f16")], "", "type of the word; found i32"),
    (
        "fixpipe_scaled",
        [SUMS, memref("4x16", "i64", "L1"), memref("8x8", "f16")],
        "",
        "words is in the wrong memory; found L1; expected FB",
    ),
    (
        "fixpipe_scaled",
        [SUMS, memref("4x16", "i32", "FB"), memref("8x8", "f16")],
        "",
        "words has the wrong element type; found s32",
    ),
    (
        "fixpipe_scaled",
        [SUMS, memref("4x16", "i64", "FB", "[32, 1]"), memref("8x8", "f16")],
        "",
        "words is not contiguous",
    ),
    (
        "fixpipe_scaled",
        [SUMS, memref("2x16", "i64", "FB"), memref("8x8", "f16")],
        "",
        "words; found [2, 16]; expected [4, 16]",
    ),
    ("copy", [memref("8", "i64", "L1"), memref("8", "i64", "FB")], "", "a multiple of 128 bytes"),
]
"""Operands that `fixpipe_scaled` and copies to FB refuse, with a part of the message."""
