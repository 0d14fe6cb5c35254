"""Kernels of ours as text of AscendNPU-IR: its own verifier takes them, and read back they give the
same bytes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import numpy as np
import pytest

pytest.importorskip("ascendnpuir", reason="needs pip install '.[triton]'")

from written_kernels import checked

import davinci
import davinci.hivm_out
from davinci.errors import CompileError
from davinci.frontends.hivm import Given, launch
from davinci.hivm_out import WrittenKernel, as_hivm
from davinci.passes.cce_to_hir import join_loads_and_products
from davinci.runtime.executable import Executable
from davinci.triton.toolchain import verify

ARRAYS = {"f16": np.float16, "f32": np.float32, "i32": np.int32, "i16": np.int16, "i8": np.int8}
RANDOM = np.random.default_rng(1)

MODELS = {
    "silu": ("3000xf32", "%0 = stablehlo.logistic %a : T\n%r = stablehlo.multiply %0, %b : T"),
    "a sum on several cores": ("100000xf16", "%r = stablehlo.add %a, %b : T"),
    "a sum that the memory bounds": ("600000xf32", "%r = stablehlo.add %a, %b : T"),
    "17 products": ("17xf32", "%r = stablehlo.multiply %a, %b : T"),
    "quotients": ("64x100xf32", "%r = stablehlo.divide %a, %b : T"),
    "maxima of halves": ("64x100xf16", "%r = stablehlo.maximum %a, %b : T"),
    "exponentials": ("5x7x11xf32", "%r = stablehlo.exponential %a : T"),
    "roots": ("1000xf32", "%0 = stablehlo.abs %a : T\n%r = stablehlo.sqrt %0 : T"),
    "logarithms": ("1000xf32", "%0 = stablehlo.abs %a : T\n%r = stablehlo.log %0 : T"),
    "inverse roots of halves": (
        "333x33xf16",
        "%0 = stablehlo.abs %a : T\n%r = stablehlo.rsqrt %0 : T",
    ),
    "integers": ("1000xi32", "%0 = stablehlo.add %a, %b : T\n%r = stablehlo.minimum %0, %a : T"),
    "a row added to all rows": (
        "64x96xf32",
        "%0 = stablehlo.slice %b [0:1, 0:96] : (T) -> tensor<1x96xf32>\n"
        "%1 = stablehlo.reshape %0 : (tensor<1x96xf32>) -> tensor<96xf32>\n"
        "%q = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<96xf32>) -> T\n"
        "%r = stablehlo.add %a, %q : T",
    ),
    "the larger of two, chosen by bits": (
        "1000xf32",
        "%c = stablehlo.compare GE, %a, %b : (T, T) -> C\n%r = stablehlo.select %c, %a, %b : C, T",
    ),
    "bits of rows that repeat": ("1000xf32", "%r = stablehlo.sign %a : T"),
    "bits of integers": ("333xi32", "%r = stablehlo.shift_left %a, %b : T"),
    "bits of what is seen as another type": ("333xf32", "%r = stablehlo.remainder %a, %b : T"),
    "a choice by a comparison": ("333x3xf32", "%r = stablehlo.tanh %a : T"),
    "a choice of integers": (
        "37x9xi32",
        "%c = stablehlo.compare LE, %a, %b : (T, T) -> C\n%r = stablehlo.select %c, %a, %b : C, T",
    ),
    "a product and a sum with it": (
        "1000xf32",
        "%0 = stablehlo.multiply %a, %b : T\n%1 = stablehlo.exponential %a : T\n"
        "%r = stablehlo.add %0, %1 : T",
    ),
    "a product and a sum in its place": (
        "37x45xf32",
        "%0 = stablehlo.negate %a : T\n%1 = stablehlo.exponential %b : T\n"
        "%2 = stablehlo.multiply %0, %1 : T\n%r = stablehlo.add %2, %b : T",
    ),
    "a scaled sum": (
        "37x45xf16",
        "%c = stablehlo.constant dense<0.3> : T\n%0 = stablehlo.multiply %a, %c : T\n"
        "%1 = stablehlo.exponential %b : T\n%r = stablehlo.add %0, %1 : T",
    ),
    "gelu": (
        "40x777xf32",
        "%c = stablehlo.constant dense<1.702> : T\n%0 = stablehlo.multiply %a, %c : T\n"
        "%1 = stablehlo.logistic %0 : T\n%r = stablehlo.multiply %a, %1 : T",
    ),
}


def model(kind: str, body: str) -> str:
    arguments = "%a: T, %b: T" if "%b" in body else "%a: T"
    text = f"func.func @main({arguments}) -> T {{\n{body}\nreturn %r : T }}"
    booleans = f"tensor<{kind.rpartition('x')[0]}xi1>"
    return re.sub(r"\bC\b", booleans, re.sub(r"\bT\b", f"tensor<{kind}>", text))


def slower(text: str) -> float:
    """Cycles of the only kernel of a model read back, over those of ours, which leaves the same
    bytes; their verifier takes it."""
    found = as_hivm(text)
    assert found.refused == {}
    (kernel,) = found.kernels
    verify(kernel.text)
    ours = davinci.compile(text, machine="ascend910b")
    inputs = {
        spec.name: (3 * RANDOM.standard_normal(spec.shape)).astype(spec.dtype)
        for spec in ours.inputs
    }
    ((out, expected),) = ours.run(inputs).items()
    theirs, made = launched(kernel, {**inputs, out: np.zeros_like(expected)})
    assert made[out].tobytes() == expected.tobytes()
    return theirs.launches[0].cycles / ours.launches[0].cycles


def launched(
    kernel: WrittenKernel, known: Mapping[str, np.ndarray]
) -> tuple[Executable, dict[str, np.ndarray]]:
    """A kernel read back, and what it leaves of these arrays and of those between kernels, which
    are "between0" and so on where they are not among them."""
    between = (f"between{i}" for i in itertools.count())
    names = [name or next(between) for name in kernel.arguments]
    arrays, given = {}, []
    for name, kind in zip(names, kernel.types, strict=True):
        *sizes, element = re.findall(r"\w+", kind.removeprefix("memref"))[0].split("x")
        given.append(Given(name, tuple(map(int, sizes)), element))
        arrays[name] = known.get(name, np.zeros([*map(int, sizes)], ARRAYS[element]))
    theirs = davinci.compile(launch(kernel.text, [kernel.blocks], given), machine="ascend910b")
    return theirs, theirs.run(arrays)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bytes(name: str) -> None:
    assert slower(model(*MODELS[name])) == pytest.approx(1, abs=0.15)


PRODUCTS = {
    "steps of k": ("[1] x [0]", "512x1024", "1024x256", "512x256", "f16", 1.1),
    "sizes that are no fractals": ("[1] x [0]", "33x77", "77x50", "33x50", "f16", 1.1),
    "tails on several cores": ("[1] x [0]", "200x300", "300x100", "200x100", "f32", 1.1),
    "a last row of k alone": ("[1] x [0]", "257x257", "257x400", "257x400", "f16", 1.1),
    "one row": ("[1] x [0]", "1x512", "512x300", "1x300", "f16", 1.1),
    "columns of B": ("[1] x [1]", "64x96", "128x96", "64x128", "f16", 1.1),
    "rows of A": ("[0] x [0]", "96x64", "96x130", "64x130", "f32", 1.1),
    "parts of k, which vector cores add": (
        "[1] x [0]",
        "96x2100",
        "2100x500",
        "96x500",
        "f16",
        1.1,
    ),
    "B that vector cores lay out": ("[1] x [0]", "96x700", "700x1000", "96x1000", "f16", 1.1),
    "parts of k of a narrow product": ("[1] x [0]", "1000x1000", "1000x24", "1000x24", "f32", 1.1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_same_bytes_of_products(name: str) -> None:
    """What ours keeps in L0A or L0B for several products is loaded again for each."""
    dims, a, b, c, result, most = PRODUCTS[name]
    types = f"tensor<{a}xf16>, tensor<{b}xf16>", f"tensor<{c}x{result}>"
    text = f"""func.func @main(%a: tensor<{a}xf16>, %b: tensor<{b}xf16>) -> {types[1]} {{
      %r = stablehlo.dot_general %a, %b, contracting_dims = {dims} : ({types[0]}) -> {types[1]}
      return %r : {types[1]} }}"""
    assert slower(text) < most


@pytest.mark.parametrize("rows", [64, 33])
def test_a_bias_is_added_behind_the_product(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours begin with it, which the text has no operation for. Whole numbers are added up exactly
    in any order."""
    a, b, c = f"tensor<{rows}x96xf16>", "tensor<96x80xf16>", f"tensor<{rows}x80xf32>"
    text = f"""func.func @main(%a: {a}, %b: {b}, %v: tensor<80xf32>) -> {c} {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}
      %1 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<80xf32>) -> {c}
      %r = stablehlo.add %0, %1 : {c}
      return %r : {c} }}"""
    found = as_hivm(text)
    assert found.refused == {}
    (kernel,) = found.kernels
    verify(kernel.text)
    monkeypatch.setattr(davinci.hivm_out, "NO_COUNTERPART", ())
    (reason,) = as_hivm(text).refused.values()
    assert "cce.mad_bias" in reason
    ours = davinci.compile(text, machine="ascend910b")
    inputs = {
        spec.name: RANDOM.integers(-4, 5, spec.shape).astype(spec.dtype) for spec in ours.inputs
    }
    ((out, expected),) = ours.run(inputs).items()
    _, made = launched(kernel, {**inputs, out: np.zeros_like(expected)})
    assert made[out].tobytes() == expected.tobytes()


@pytest.mark.parametrize("rows", [64, 33, 200])
def test_a_product_that_leaves_fractals_for_the_next(rows: int) -> None:
    """Rows behind the last one fill up its fractals."""
    text = f"""func.func @main(%a: tensor<{rows}x96xf16>, %b: tensor<96x128xf16>,
                               %c: tensor<128x80xf16>) -> tensor<{rows}x80xf16> {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<{rows}x96xf16>, tensor<96x128xf16>) -> tensor<{rows}x128xf16>
      %1 = stablehlo.dot_general %0, %c, contracting_dims = [1] x [0]
        : (tensor<{rows}x128xf16>, tensor<128x80xf16>) -> tensor<{rows}x80xf16>
      return %1 : tensor<{rows}x80xf16> }}"""
    found = as_hivm(text)
    assert found.refused == {}
    first, second = (kernel for kernel in found.kernels if kernel.name.startswith("matmul"))
    for kernel in first, second:
        verify(kernel.text)
    assert "dma_mode<normal>" in first.text
    ours = davinci.compile(text, machine="ascend910b")
    arrays = {
        spec.name: RANDOM.standard_normal(spec.shape).astype(spec.dtype) for spec in ours.inputs
    }
    ((out, expected),) = ours.run(arrays).items()
    arrays[out] = np.zeros_like(expected)
    for kernel in first, second:
        arrays |= launched(kernel, arrays)[1]
    assert arrays[out].tobytes() == expected.tobytes()


def test_pieces_of_a_scaled_sum() -> None:
    """Two tiles leave no room in UB for all products of one."""
    text = model("20000xf16", MODELS["a scaled sum"][1])
    assert slower(text) < 1.3


def test_reductions_of_blocks() -> None:
    """Rows of 64, by maxima and sums of blocks, and blocks filled with them."""
    text = """func.func @main(%a: tensor<4096x64xf32>) -> tensor<4096x64xf32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %m = stablehlo.reduce(%a init: %i) applies stablehlo.maximum across dimensions = [1]
        : (tensor<4096x64xf32>, tensor<f32>) -> tensor<4096xf32>
      %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4096xf32>) -> tensor<4096x64xf32>
      %d = stablehlo.subtract %a, %mb : tensor<4096x64xf32>
      %x = stablehlo.exponential %d : tensor<4096x64xf32>
      %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<4096x64xf32>, tensor<f32>) -> tensor<4096xf32>
      %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4096xf32>) -> tensor<4096x64xf32>
      %r = stablehlo.divide %x, %sb : tensor<4096x64xf32>
      return %r : tensor<4096x64xf32> }"""
    assert slower(text) == pytest.approx(1, abs=0.15)


TRANSPOSES = {
    "a matrix": """func.func @main(%a: tensor<64x96xf16>) -> tensor<96x64xf16> {
      %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<64x96xf16>) -> tensor<96x64xf16>
      return %r : tensor<96x64xf16> }""",
    "sums of rows": """func.func @main(%a: tensor<64x300xf16>) -> tensor<64xf16> {
      %z = stablehlo.constant dense<0.0> : tensor<f16>
      %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<64x300xf16>, tensor<f16>) -> tensor<64xf16>
      return %r : tensor<64xf16> }""",
    "columns beside each other": """func.func @main(%a: tensor<64x96xf16>, %b: tensor<64x32xf16>)
        -> tensor<64x128xf16> {
      %r = stablehlo.concatenate %a, %b, dim = 1
        : (tensor<64x96xf16>, tensor<64x32xf16>) -> tensor<64x128xf16>
      return %r : tensor<64x128xf16> }""",
}


@pytest.mark.parametrize("text", TRANSPOSES.values(), ids=TRANSPOSES)
def test_transposes_of_squares(text: str) -> None:
    """Squares in any order are an operation each."""
    assert slower(text) < 1.25


def sums(kind: str, rows: str, element: str) -> str:
    return f"""func.func @main(%a: tensor<{kind}x{element}>) -> tensor<{rows}x{element}> {{
      %z = stablehlo.constant dense<0.0> : tensor<{element}>
      %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<{kind}x{element}>, tensor<{element}>) -> tensor<{rows}x{element}>
      return %r : tensor<{rows}x{element}> }}"""


SCATTERED = {
    "sums of rows of f32": sums("64x300", "64", "f32"),
    "rows that overlap": sums("4000x24", "4000", "f32"),
    "a column beside all columns": """func.func @main(%a: tensor<64x300xf32>, %b: tensor<64xf32>)
        -> tensor<64x300xf32> {
      %q = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<64xf32>) -> tensor<64x300xf32>
      %r = stablehlo.add %a, %q : tensor<64x300xf32>
      return %r : tensor<64x300xf32> }""",
    "three dimensions": """func.func @main(%a: tensor<5x37x11xf32>) -> tensor<11x5x37xf32> {
      %r = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<5x37x11xf32>) -> tensor<11x5x37xf32>
      return %r : tensor<11x5x37xf32> }""",
    "integers of 16 bits in words of 32": model("333xi16", "%r = stablehlo.add %a, %b : T"),
}


@pytest.mark.parametrize("kind", ["128x768xf32", "37x100xf16", "40x8xf32"])
def test_layer_norms(kind: str) -> None:
    """Sums of the lanes of repeats, whole ones or not."""
    rows, columns, element = kind.split("x")
    each = f"tensor<{rows}x{element}>"
    body = f"""%z = stablehlo.constant dense<0.0> : tensor<{element}>
      %n = stablehlo.constant dense<{columns}.0> : {each}
      %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
        : (T, tensor<{element}>) -> {each}
      %m = stablehlo.divide %s, %n : {each}
      %u = stablehlo.broadcast_in_dim %m, dims = [0] : ({each}) -> T
      %d = stablehlo.subtract %a, %u : T
      %q = stablehlo.multiply %d, %d : T
      %t = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [1]
        : (T, tensor<{element}>) -> {each}
      %v = stablehlo.divide %t, %n : {each}
      %e = stablehlo.constant dense<1.0e-3> : {each}
      %x = stablehlo.add %v, %e : {each}
      %y = stablehlo.rsqrt %x : {each}
      %w = stablehlo.broadcast_in_dim %y, dims = [0] : ({each}) -> T
      %r = stablehlo.multiply %d, %w : T"""
    assert slower(model(kind, body)) < 4


@pytest.mark.parametrize("text", SCATTERED.values(), ids=SCATTERED)
def test_squares_whose_rows_lie_anywhere(text: str) -> None:
    """They go by way of a buffer, which takes longer."""
    assert slower(text) < 3


def convolution(channels: int, pad: int) -> str:
    """A convolution of bytes with known weights, images of 9 x 9."""
    shape = (16, channels, 3, 3)
    weights = RANDOM.integers(-100, 100, shape).astype(np.int8).tobytes().hex()
    image, kernel, side = f"1x{channels}x9x9", "x".join(map(str, shape)), 7 + 2 * pad
    return f"""func.func @main(%a: tensor<{image}xi8>) -> tensor<1x16x{side}x{side}xi32> {{
      %k = stablehlo.constant dense<"0x{weights}"> : tensor<{kernel}xi8>
      %r = stablehlo.convolution(%a, %k)
        dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
        window = {{pad = [[{pad}, {pad}], [{pad}, {pad}]]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<{image}xi8>, tensor<{kernel}xi8>) -> tensor<1x16x{side}x{side}xi32>
      return %r : tensor<1x16x{side}x{side}xi32> }}"""


@pytest.mark.parametrize("pad", [0, 1])
def test_convolutions_of_bytes(pad: int) -> None:
    """Each kernel leaves the bytes of ours, sums of products among them."""
    found = checked(convolution(64, pad), RANDOM)
    assert found.kernels == found.same > 1


def test_what_has_no_counterpart_is_named() -> None:
    found = as_hivm(model(*MODELS["17 products"]), machine="ascend910")
    (reason,) = found.refused.values()
    assert "a program of one kind of cores (1x)" in reason


ROWS_AGAIN = {
    "loaded for each place": ("48xf16", "5x169x48xf16", "2"),
    "between others": ("3x64xf32", "3x50x64xf32", "0, 2"),
    "of an odd size": ("7xf32", "100x7xf32", "1"),
}


@pytest.mark.parametrize("name", ROWS_AGAIN)
def test_rows_that_repeat(name: str) -> None:
    row, whole, dims = ROWS_AGAIN[name]
    text = f"""func.func @main(%a: tensor<{row}>) -> tensor<{whole}> {{
      %r = stablehlo.broadcast_in_dim %a, dims = [{dims}] : (tensor<{row}>) -> tensor<{whole}>
      return %r : tensor<{whole}> }}"""
    assert slower(text) < 6


def test_rows_that_begin_inside_others() -> None:
    """Two pixels beside each other are loaded as one row, which the next row begins inside of."""
    kind, part, whole = (f"tensor<20x{n}" for n in ("20x32xf32>", "18x32xf32>", "18x64xf16>"))
    text = f"""func.func @main(%a: {kind}) -> {whole} {{
      %0 = stablehlo.slice %a [0:20, 0:18, 0:32] : ({kind}) -> {part}
      %1 = stablehlo.slice %a [0:20, 1:19, 0:32] : ({kind}) -> {part}
      %2 = stablehlo.concatenate %0, %1, dim = 2 : ({part}, {part}) -> tensor<20x18x64xf32>
      %r = stablehlo.convert %2 : (tensor<20x18x64xf32>) -> {whole}
      return %r : {whole} }}"""
    assert slower(text) < 6


def sort(shape: str, element: str) -> str:
    kind = f"tensor<{shape}x{element}>"
    return f"""func.func @main(%a: {kind}) -> {kind} {{
      %r = "stablehlo.sort"(%a) ({{
      ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
        %c = stablehlo.compare LT, %x, %y : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}) {{dimension = 1 : i64}} : ({kind}) -> {kind}
      return %r : {kind} }}"""


@pytest.mark.parametrize("kind", ["3x64xf32", "7x100xf32", "20x33xi32"])
def test_sorts(kind: str) -> None:
    """Rows whose ends are no blocks are filled up from inside of one, and moved by whole ones."""
    assert slower(sort(*kind.rsplit("x", 1))) < 1.7


def attention(heads: int, length: int, size: int, bias: str = "") -> str:
    """Softmax(Q K^T / 8) V of f16; a bias of this name is added to the scores."""
    kind, scores = f"tensor<{heads}x{length}x{size}xf16>", f"tensor<{heads}x{length}x{length}xf16>"
    rows = f"tensor<{heads}x{length}xf16>"
    given, scaled, added = "", "%t", ""
    if bias:
        given, scaled = f", {bias}: {scores}", "%u"
        added = f"%t = stablehlo.add {scaled}, {bias} : {scores}"
    return f"""func.func @main(%q: {kind}, %k: {kind}, %v: {kind}{given}) -> {kind} {{
      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : ({kind}, {kind}) -> {scores}
      %c = stablehlo.constant dense<0.125> : {scores}
      {scaled} = stablehlo.multiply %s, %c : {scores}
      {added}
      %i = stablehlo.constant dense<0xFC00> : tensor<f16>
      %m = stablehlo.reduce(%t init: %i) applies stablehlo.maximum across dimensions = [2]
        : ({scores}, tensor<f16>) -> {rows}
      %n = stablehlo.broadcast_in_dim %m, dims = [0, 1] : ({rows}) -> {scores}
      %d = stablehlo.subtract %t, %n : {scores}
      %e = stablehlo.exponential %d : {scores}
      %z = stablehlo.constant dense<0.0> : tensor<f16>
      %l = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2]
        : ({scores}, tensor<f16>) -> {rows}
      %w = stablehlo.broadcast_in_dim %l, dims = [0, 1] : ({rows}) -> {scores}
      %p = stablehlo.divide %e, %w : {scores}
      %r = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : ({scores}, {kind}) -> {kind}
      return %r : {kind} }}"""


@pytest.mark.parametrize("sizes", [(1, 300, 64), (1, 200, 32), (3, 77, 80)])
def test_attention(sizes: tuple[int, int, int]) -> None:
    """Each product loads its factors again: keys, which stay in L0A of ours, and weights for both
    halves of their rows. The next keys, which ours loads while products run, come behind them.
    Fractals of long rows, which ours has in L1 in rows, are in columns."""
    assert slower(attention(*sizes)) < 1.9


@pytest.mark.parametrize("sizes", [(1, 4, 32), (12, 16, 32), (24, 7, 64)])
def test_attention_whose_keys_are_rows(
    sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few keys come to L1 of ours as rows, of which windows make fractals. There they are brought
    as fractals: alone, in a loop, and with room for more keys, which is filled first."""
    text = attention(*sizes, bias="%b")
    found = checked(text, RANDOM)
    assert found.kernels == found.same > 1
    monkeypatch.setattr(join_loads_and_products, "bring_as_fractals", lambda kernel: None)
    (reason,) = as_hivm(text).refused.values()
    assert "cce.load3d" in reason


def test_convolutions_are_products_of_unfolded_windows() -> None:
    kinds = "(tensor<2x3x9x9xf16>, tensor<4x3x3x3xf16>) -> tensor<2x4x5x5xf16>"
    found = as_hivm(
        f"""func.func @main(%a: tensor<2x3x9x9xf16>, %k: tensor<4x3x3x3xf16>)
          -> tensor<2x4x5x5xf16> {{
      %r = stablehlo.convolution(%a, %k)
        dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
        window = {{stride = [2, 2], pad = [[1, 1], [1, 1]]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : {kinds}
      return %r : tensor<2x4x5x5xf16> }}"""
    )
    assert found.refused == {}
    for kernel in found.kernels:
        verify(kernel.text)
    assert any("mmadL1" in kernel.text for kernel in found.kernels)


def test_text_that_their_verifier_refuses() -> None:
    (kernel,) = as_hivm(model(*MODELS["17 products"])).kernels
    wrong = kernel.text.replace("array<i32: 2, 1, 0>", "array<i32: 1, 1, 0>", 1)
    with pytest.raises(CompileError, match="bishengir-opt refuses"):
        verify(wrong)
