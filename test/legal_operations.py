"""Legal operations of the cce and ascend dialects: what round trips, and what is then spoiled."""

from __future__ import annotations


def memref(shape: str, element: str, space: str = "", layout: str = "") -> str:
    parts = [f"{shape}x{element}"]
    parts += [f"strided<{layout}>"] if layout else []
    parts += [f'#cce.space<"{space}">'] if space else []
    return f"memref<{', '.join(parts)}>"


def ub(shape: str, element: str = "f32", layout: str = "") -> str:
    return memref(shape, element, "UB", layout)


def typed(kind: str, text: str) -> str:
    """`tensor<4xf32>` of `4xf32`; with a layout of `4x4xf32:nz`."""
    shape, _, layout = text.partition(":")
    return f'{kind}<{shape}, #ascend.layout<"{layout}">>' if layout else f"{kind}<{shape}>"


FLAG = 'src = "MTE2", dst = "V", event = 0 : i64'
NZ_A, NZ_B = memref("2x3x16x16", "f16", "L0A"), memref("3x4x16x16", "f16", "L0B")
NZ_C = memref("4x2x16x16", "f32", "L0C")
BIAS = memref("4x16", "f32", "BT")
IN_L1_A, IN_L1_B = memref("3x2x16x16", "f16", "L1"), memref("4x3x16x16", "f16", "L1")
L1, L0A = memref("2x3x16x16", "f16", "L1"), memref("2x3x16x16", "f16", "L0A")
L0C, UB4 = memref("4x2x16x16", "f32", "L0C"), ub("4x2x16x16")
DEQUANTIZED = [memref("4x2x16x16", "i32", "L0C"), ub("4x16", "f16"), ub("4x2x16x16", "f16")]
WORDS, SUMS = memref("4x16", "i64", "FB"), memref("4x2x16x16", "i32", "L0C")
BLOCKS = memref("3x5x16", "f16", "L1", "[256, 16, 1]")
IMAGE = memref("2x5x6x16", "f16", "L1")
WINDOWS = (
    "kernel = array<i64: 3, 2>, strides = array<i64: 1, 2>, dilations = array<i64: 1, 1>, "
    "pads = array<i64: 1, 0>, element = 4 : i64"
)

CCE = [
    ("copy", [memref("8x16", "f32"), ub("8x16")], ""),
    ("copy", [memref("300", "f32"), ub("300")], "round_up"),
    ("copy", [ub("3x8"), memref("3x8", "f32")], "adds"),
    ("copy", [memref("4x8", "f32", layout="[0, 1]"), memref("4x8", "f32", "L1")], ""),
    ("copy_rows", [memref("300", "f32"), ub("4x64"), *["index"] * 4], ""),
    ("copy_rows", [ub("5x1", layout="[8, 1]"), memref("300", "f32"), *["index"] * 4], ""),
    ("copy_l1", [ub("4x8", layout="[0, 1]"), memref("4x8", "f32", "L1")], ""),
    ("copy_l0c", [L0C, UB4], ""),
    ("copy_l0c", [L0C, UB4], "relu"),
    ("dequantize_l0c", DEQUANTIZED, ""),
    ("fixpipe", [L0C, memref("30x50", "f16", layout="[70, 1]")], "relu"),
    ("fixpipe", [L0C, memref("4x2x16x16", "f32", layout="[1024, 256, 16, 1]")], ""),
    ("fixpipe_scaled", [SUMS, WORDS, memref("30x50", "f16", layout="[70, 1]")], "relu"),
    ("fixpipe_scaled", [SUMS, WORDS, memref("2x2x16x32", "i8")], ""),
    ("fixpipe_scaled", [SUMS, "i64", memref("2x30x32", "ui8", layout="[1024, 32, 1]")], ""),
    ("fixpipe_scaled", [L0C, "i64", memref("30x50", "i8")], ""),
    ("copy", [memref("4x16", "i64", "L1"), WORDS], ""),
    ("nd2nz", [memref("5x33", "f16", layout="[40, 1]"), BLOCKS], ""),
    ("nd2nz", [memref("1x13", "f32"), memref("2x1x8", "f32", "L1")], ""),
    ("clear_l1", [memref("3x48", "f16", "L1", "[256, 1]")], ""),
    ("clear_l1", [memref("1x8", "f32", "L1")], ""),
    ("load2d", [L1, L0A], "transpose"),
    ("load3d", [IMAGE, "index", "index", L0A], WINDOWS),
    ("load3d", [IMAGE, "index", "index", memref("2x3x16x16", "f16", "L0B")], WINDOWS),
    ("mad", [NZ_A, NZ_B, NZ_C, "i1"], ""),
    ("mad_bias", [NZ_A, NZ_B, BIAS, NZ_C], ""),
    ("copy", [memref("4x16", "f32", "L1"), BIAS], ""),
    ("mad_l1", [IN_L1_A, IN_L1_B, NZ_C, "i1"], ""),
    (
        "mad_l1",
        [memref("2x3x16x16", "f16", "L1"), memref("3x4x16x16", "f16", "L1"), NZ_C, "i1"],
        "a_transpose, b_transpose",
    ),
    *((name, [ub("8x16")] * 3, "") for name in ("vadd", "vsub", "vmul", "vdiv", "vmax", "vmin")),
    *((name, [ub("64", "i16")] * 3, "") for name in ("vand", "vor")),
    *((name, [ub("5")] * 2, "") for name in ("vexp", "vln", "vsqrt", "vrsqrt", "vrec", "vabs")),
    ("vrelu", [ub("5")] * 2, ""),
    ("vnot", [ub("5", "i16")] * 2, ""),
    ("vadd", [ub("4x8", layout="[0, 1]"), ub("4x8"), ub("4x8")], ""),
    ("vadds", [ub("5"), "f32", ub("5")], ""),
    ("vmuls", [ub("5", "f16"), "f16", ub("5", "f16")], ""),
    ("vaxpy", [ub("5", "f16"), "f16", ub("5", "f16")], ""),
    ("vmla", [ub("5", "f16"), ub("5", "f16"), ub("5", "f16")], ""),
    ("vmadd", [ub("5"), ub("5"), ub("5")], ""),
    ("vector_dup", ["i32", ub("5", "i32")], ""),
    ("vector_dup", ["f32", ub("5x64")], "first_lane = 3 : i64, lanes = 7 : i64"),
    ("vconv", [ub("70"), ub("70", "f16")], ""),
    ("vconv", [ub("70", "f16"), ub("70", "i8")], 'round = "floor"'),
    ("vcmpsel", [ub("9")] * 5, 'predicate = "lt"'),
    ("vcadd", [ub("3x64"), ub("3")], "first_lane = 2 : i64, lanes = 5 : i64"),
    *((name, [ub("3x128", "f16"), ub("3x2", "f16")], "") for name in ("vcmax", "vcmin")),
    *(
        (name, [ub("3x8x16", "f16"), ub("3x8", "f16")], "")
        for name in ("vcgadd", "vcgmax", "vcgmin")
    ),
    ("vcadd", [ub("3x64"), ub("3", layout="[8]")], ""),
    ("vgather", [ub("70", "i32"), ub("33"), ub("70")], ""),
    ("vbrcb", [ub("3x8", "f16"), ub("3x8x16", "f16", "[256, 32, 1]")], ""),
    ("vnchwconv", [ub("16x3x16", "f16"), ub("16x3x16", "f16", "[16, 256, 1]")], ""),
    ("vnchwconv", [ub("8x2x3x8", layout="[0, 8, 16, 1]"), ub("16x3x8", "f32")], ""),
    ("sync_cores", [memref("4x8", "i32"), "i32", ub("5x8", "i32")], ""),
    (
        "sync_cores",
        [memref("9x8", "i32"), "i32", ub("5x8", "i32")],
        "early = array<i64: 2, 1>, own = 4 : i64, seen = array<i64: 2, 3>",
    ),
    ("sync_cores", [memref("6x8", "i32"), "i32", ub("4x8", "i32")], "group = 3 : i64"),
    (
        "sync_and_copy",
        [
            memref("4x8", "i32"),
            "i32",
            ub("5x8", "i32"),
            memref("8x16", "f16"),
            memref("8x16", "f16", "L1"),
        ],
        "",
    ),
    ("set_core_flag", [], 'flag = 3 : i64, pipe = "MTE3"'),
    ("set_core_flag", [], 'of_all, flag = 3 : i64, pipe = "FIX"'),
    ("wait_core_flag", [], "flag = 2 : i64"),
    ("clear_l1", [memref("2x32", "f16", "L1")], "bits = 15360 : i64"),
    ("set_flag", [], FLAG),
    ("wait_flag", [], FLAG),
    ("pipe_barrier", [], 'pipe = "ALL"'),
]
"""Name, types of the operands, attributes."""

CONV = (
    "{image = array<i64: 5, 6>, kernel = array<i64: 3, 3>, strides = array<i64: 2, 3>, "
    "dilations = array<i64: 1, 1>, pads = array<i64: 0, 1, 1, 0>}"
)

POOL = (
    "{image = array<i64: 5, 6>, kernel = array<i64: 3, 3>, strides = array<i64: 2, 3>, "
    'dilations = array<i64: 1, 1>, pads = array<i64: 0, 1, 1, 0>, kind = "max"}'
)

ASCEND = [
    "add(3x4xf32, 3x4xf32) -> 3x4xf32",
    "add(0xf32, 0xf32) -> 0xf32",
    "and(4xi1, 4xi1) -> 4xi1",
    "exp(f32) -> f32",
    "quantize(4xf32) {zero = -3 : i64} -> 4xi8",
    "dequantize(5x4xi32, 4xf16, 4x64xi8) -> 5x4xf16",
    "scale_sums(5x4xi32, 4x2xi32) -> 5x4xf16",
    "scale_sums(5x4xi32, 4x2xi32) {relu = true} -> 5x4xi8",
    "cast(4xf32) -> 4xi1",
    "from_bfloat(4xi16) -> 4xf32",
    "to_bfloat(4xf32) -> 4xi16",
    "double_add(4xi64, 4xi64) -> 4xi64",
    "double_from_single(4xf32) -> 4xi64",
    "double_to_half(4xi64) -> 4xf16",
    "double_to_single(4xi64) -> 4xf32",
    "bitcast(4xf32) -> 4xi32",
    "reinterpret(4xf64) -> 4xi64",
    "cube_scale(4xf32) -> 4xf32",
    "half_part(4xf32) {part = 2 : i64} -> 4xf16",
    'compare(4xf32, 4xf32) {predicate = "LT"} -> 4xi1',
    "select(4xi1, 4xf32, 4xf32) -> 4xf32",
    "clamp(4xf32, 4xf32, 4xf32) -> 4xf32",
    "full() {value = 1.0 : f32} -> 4xf32",
    "full() {value = true} -> 4xi1",
    "constant() {value = dense<1.0> : tensor<4xf32>} -> 4xf32",
    "iota() {dim = 1 : i64} -> 3x4xi32",
    "broadcast(1x4xf32) {dims = array<i64: 2, 0>} -> 4x3x5xf32",
    "broadcast(f32) {dims = array<i64>} -> 4x3xf32",
    "reshape(3x4xf32) -> 2x6xf32",
    "transpose(3x4xf32) {permutation = array<i64: 1, 0>} -> 4x3xf32",
    'reduce(3x4xf32) {kind = "add", dims = array<i64: 0>} -> 4xf32',
    "slice(9x4xf32) {starts = array<i64: 1, 0>, limits = array<i64: 9, 4>, "
    "strides = array<i64: 3, 1>} -> 3x4xf32",
    "concat(3x4xf32, 3x1xf32) {dim = 1 : i64} -> 3x5xf32",
    "pad(3xf32, f32) {low = array<i64: -1>, high = array<i64: 2>, interior = array<i64: 1>}"
    " -> 6xf32",
    "band(2x3x4xf32) {runs = array<i64: 3, 0, 0, 1, 1>, fill = -1.0 : f64} -> 2x3x4xf32",
    "gather(9x4xf32, 5xi64) -> 5x4xf32",
    "gather_elements(9x4xf32, 9x5xi32) -> 9x5xf32",
    "gather_blocks(9x4xf32, 5x1xi64) {axes = array<i64: 0>, starts = array<i64: 0, 1>, "
    "batch = array<i64: 0, 0>, wrap = array<i64: 1>} -> 5x2x3xf32",
    "update_blocks(9x4xf32, 5x1x3xf32, 5x1xi64) {axes = array<i64: 0>, "
    "starts = array<i64: 0, 1>, batch = array<i64: 0, 0>, wrap = array<i64: 0>, skip = 1 : i64} "
    "-> 9x4xf32",
    'sort(3x9xf32) {order = "total", descending = 1 : i64} -> 3x4xf32',
    'sort_pairs(4x9xi32, 2x9xi32) {order = "signed", descending = 0 : i64, below = 99 : i64}'
    " -> 2x4x9xi32",
    "combine_blocks(9x4xf32, 5x1x3xf32, 5x1xi64) {axes = array<i64: 0>, "
    "starts = array<i64: 0, 1>, batch = array<i64: 0, 0>, wrap = array<i64: 0>, "
    'by = "add"} -> 9x4xf32',
    f"conv(2x30x17xf16, 1x288x5xf16:nz) {CONV} -> 2x4x5xf32:nz",
    f"conv(2x30x32xf32, 2x144x16xf32) {CONV} -> 2x4x32xf32",
    f"pool(2x30x17xf16) {POOL} -> 2x4x17xf16",
    f"pool(2x30x17xf16:nz) {POOL.replace('max', 'add')} -> 2x4x17xf32:nz",
    "view(1x100x768xf16:nz) {shape = array<i64: 100, 12, 64>, permutation = array<i64: 1, 0, 2>}"
    " -> 12x100x64xf16:nz",
    "view(32x16xf16) {shape = array<i64: 32, 16>, permutation = array<i64: 0, 1>} -> 32x16xf16:nz",
    "relayout(17x33xf16) -> 17x33xf16:nz",
    "relayout(2x17x33xi8:nz) -> 2x17x33xi8",
    "matmul(17x33xf32, 33x5xf32) -> 17x5xf32",
    "copy(4xf32) -> 4xf32",
    "matmul(17x33xf16:nz, 33x5xf16) -> 17x5xf32:nz",
    "matmul(33x17xf16, 5x33xf16:nz) {transpose_a, transpose_b} -> 17x5xf32",
    "batch_matmul(7x17x33xf32, 7x33x5xf32) -> 7x17x5xf32",
    "add(17x33xf32:nz, 17x33xf32:nz) -> 17x33xf32:nz",
    "cast(17x33xf32:nz) -> 17x33xf16:nz",
    'compare(17x33xf32:nz, 17x33xf32:nz) {predicate = "LT"} -> 17x33xi1:nz',
    "broadcast(33xf32) {dims = array<i64: 1>} -> 17x33xf32:nz",
    'reduce(3x17x33xf32:nz) {kind = "add", dims = array<i64: 2>} -> 3x17xf32',
    'reduce(3x17x33xf32:nz) {kind = "add", dims = array<i64: 0>} -> 17x33xf32:nz',
    "reshape(6x17x33xf32:nz) -> 2x3x17x33xf32:nz",
    "reshape(2x16x3xf32:nz) -> 32x3xf32:nz",
    "constant() {value = dense<1.0> : tensor<3x2x16x16xf16>} -> 17x33xf16:nz",
    "full() {value = 1.0 : f32} -> 17x33xf32:nz",
]
"""`name(operand types) {attributes} -> result type`; `:nz`: in that layout."""
