"""matmul and batch_matmul on the simulator: numbers, elements read from GM, synchronisation."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci.errors import CompileError, DeviceFault
from kernel_support import KernelRun, fractals, lowered_text, matrix_of, run_cce_text, run_kernel

Array = npt.NDArray[Any]
FLAG = re.compile(r'"cce\.(set_flag|wait_flag)"\(\) (\{[^}]*\})')


def product_text(
    m: int, n: int, k: int, result: str = "f32", batch: int = 0, turned: str = ""
) -> str:
    """A kernel with one product; sizes as in the source: A is m x n, B n x k, C m x k.

    Args:
        turned: the operands given transposed, of "ab".
    """
    m, n, k = (-(-size // 16) for size in (m, n, k))
    lead = f"{batch}x" if batch else ""
    a = f"memref<{lead}{m}x{n}x16x16xf16>" if "a" in turned else f"memref<{lead}{n}x{m}x16x16xf16>"
    b = f"memref<{lead}{n}x{k}x16x16xf16>" if "b" in turned else f"memref<{lead}{k}x{n}x16x16xf16>"
    flags = ", ".join(f"transpose_{side}" for side in turned)
    c = f"memref<{lead}{k}x{m}x16x16x{result}>"
    name = "batch_matmul" if batch else "matmul"
    return f"""
    func.func @product(%a: {a}, %b: {b}, %c: {c})
        attributes {{ascend.kernel, ascend.op = "{name}", ascend.unit = "cube"}} {{
      "ascend.{name}"(%a, %b, %c) {{{flags}}} : ({a}, {b}, {c}) -> ()
      return
    }}"""


def operands(m: int, n: int, k: int, batch: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(m + 1000 * n + 1000000 * k)
    lead = (batch,) if batch else ()
    a = random.standard_normal((*lead, m, n)).astype(np.float16)
    return a, random.standard_normal((*lead, n, k)).astype(np.float16)


Shape = tuple[int, int, int]


def check(
    shape: Shape, result: str = "f32", batch: int = 0, turned: str = "", **options: object
) -> KernelRun:
    """Runs a product and compares with NumPy.

    Products of f16 are exact in f32, so the difference is that of the order of summation, at most
    n roundings of the largest partial sum (about sqrt(n)), and for f16 the rounding of the result.
    """
    m, n, k = shape
    a, b = operands(m, n, k, batch)
    given = [
        fractals(x.swapaxes(-1, -2) if side in turned else x) for side, x in (("a", a), ("b", b))
    ]
    run = run_kernel(product_text(m, n, k, result, batch, turned), given, **options)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    found = matrix_of(run.outputs[0], m, k)
    rounding = 2.0**-11 if result == "f16" else 0.0
    limit = n * 2.0**-24 * (4 + np.abs(expected).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=limit)
    return run


def test_the_sum_does_not_depend_on_how_the_product_is_cut() -> None:
    """On any number of cores and with any tile the bits are the same."""
    a, b = operands(129, 257, 129)
    inputs = [fractals(a), fractals(b)]
    ways: list[dict[str, object]] = [
        {"cores": 32},
        {"cores": 3, "n": 16},
        {"cores": 1, "n": 112},
        {"cores": 2, "matmul_strategy": "is"},
        {"cores": 2, "matmul_strategy": "ws"},
    ]
    first = run_kernel(product_text(129, 257, 129), inputs, cores=1).outputs[0]
    for way in ways:
        found = run_kernel(product_text(129, 257, 129), inputs, **way).outputs[0]
        np.testing.assert_array_equal(found, first, err_msg=str(way))


SHAPES = [
    (1, 1, 1),
    (15, 16, 17),
    (17, 15, 1),
    (1, 768, 33),
    (97, 101, 103),
    (128, 64, 128),
    (64, 1024, 48),
    (4096, 16, 16),
    (16, 48, 4096),
    (16, 4096, 16),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cores", [1, 32])
def test_output_stationary(shape: Shape, cores: int) -> None:
    check(shape, cores=cores)


@pytest.mark.parametrize("result", ["f32", "f16"])
@pytest.mark.parametrize("strategy", ["os", "is", "ws"])
@pytest.mark.parametrize("cores", [1, 5])
def test_tiles_that_do_not_divide(strategy: str, result: str, cores: int) -> None:
    """7 x 5 x 9 fractals in tiles of 3 x 2 x 4 (all of n where the strategy needs it)."""
    n = 32 if strategy == "os" else 80
    check((112, 80, 144), result, cores=cores, matmul_strategy=strategy, m=48, n=n, k=64)


@pytest.mark.parametrize(("strategy", "tile"), [("is", (48, 32, 144)), ("ws", (112, 32, 48))])
def test_stationary_operand_that_spans_the_result(strategy: str, tile: Shape) -> None:
    """k = K for input stationary, m = M for weight stationary: C is summed up in L0C."""
    m, n, k = tile
    run = check((112, 80, 144), cores=1, matmul_strategy=strategy, m=m, n=n, k=k)
    passes = (3, 1) if strategy == "is" else (1, 3)
    a, b = 112 * 80, 80 * 144
    assert run.profile.gm_read_bytes // 2 == passes[1] * a + passes[0] * b


@pytest.mark.parametrize("strategy", ["os", "is", "ws"])
def test_batches(strategy: str) -> None:
    run = check((40, 64, 24), batch=5, cores=4, matmul_strategy=strategy)
    assert run.profile.blocks == 4


@pytest.mark.parametrize("turned", ["a", "b", "ab"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (15, 16, 17), (97, 101, 103)], ids=str)
def test_transposed_operands(shape: Shape, turned: str) -> None:
    check(shape, cores=2, turned=turned)
    check(shape, "f16", batch=2, cores=2, turned=turned)


@pytest.mark.parametrize("strategy", ["is", "ws"])
def test_transposed_operands_that_are_stationary(strategy: str) -> None:
    check((112, 80, 144), cores=2, turned="ab", matmul_strategy=strategy, m=48, n=80, k=64)


@pytest.mark.parametrize("shape", [(0, 16, 16), (16, 0, 16), (16, 16, 0)], ids=str)
def test_empty(shape: Shape) -> None:
    """Without anything to sum up the result is zero."""
    check(shape)


def test_result_larger_than_half_of_ub() -> None:
    """A tile of 256 KiB leaves in two slices, one whose column is too large in pieces."""
    check((256, 32, 256), cores=1, m=256, n=32, k=256)
    check((4096, 16, 16), cores=1, m=2048, n=16, k=16)


def test_machine_with_less_of_everything() -> None:
    check((100, 300, 200), machine="ascend310", cores=2)


@pytest.mark.parametrize(
    ("strategy", "m", "n", "k"),
    [
        ("os", 256, 128, 256),
        ("os", 128, 256, 128),
        ("os", 64, 256, 96),
        ("is", 32, 768, 32),
        ("is", 16, 16, 768),
        ("ws", 32, 768, 32),
        ("ws", 512, 16, 64),
    ],
)
def test_elements_read_equal_the_formulas(strategy: str, m: int, n: int, k: int) -> None:
    """Counted by the simulator, for the source's (M, N, K) = (512, 768, 768)."""
    big_m, big_n, big_k = 512, 768, 768
    run = check((big_m, big_n, big_k), cores=1, matmul_strategy=strategy, m=m, n=n, k=k)
    all_three = big_m * big_n * big_k
    formula = {
        "os": all_three * (m + k) // (m * k),
        "is": big_m * big_n + all_three // m,
        "ws": big_k * big_n + all_three // k,
    }[strategy]
    assert run.profile.gm_read_bytes == 2 * formula
    assert run.profile.gm_write_bytes == 4 * big_m * big_k
    assert run.profile.macs == all_three


def test_elements_read_with_the_default_tile() -> None:
    """On one core the smallest S of the source; the number of cores does not change S."""
    assert check((512, 768, 768), cores=1).profile.gm_read_bytes == 2 * 2_359_296
    tile = {"m": 256, "n": 128, "k": 256}
    assert check((512, 768, 768), cores=4, **tile).profile.gm_read_bytes == 2 * 2_359_296


def test_blocks() -> None:
    assert check((128, 768, 768)).profile.blocks == 8
    assert check((128, 64, 128), batch=40).profile.blocks == 32


def test_strategy_without_a_legal_tile() -> None:
    """Neither k = K nor n = N fits for such a product."""
    with pytest.raises(CompileError, match="no tile") as error:
        a, b = operands(16, 4096, 4096)
        text = product_text(16, 4096, 4096)
        run_kernel(text, [fractals(a), fractals(b)], matmul_strategy="is")
    assert "matmul-strategy=os" in str(error.value)


def test_8_bit_operands_are_refused() -> None:
    text = """
    func.func @product(%a: memref<1x1x16x32xi8>, %b: memref<1x2x16x32xi8>,
                       %c: memref<2x1x16x16xi32>)
        attributes {ascend.kernel, ascend.op = "matmul", ascend.unit = "cube"} {
      "ascend.matmul"(%a, %b, %c)
        : (memref<1x1x16x32xi8>, memref<1x2x16x32xi8>, memref<2x1x16x16xi32>) -> ()
      return
    }"""
    with pytest.raises(CompileError, match="load2d transposes 16-bit fractals only"):
        lowered_text(text, "convert-ascend-to-cce")


def test_without_any_one_pair_of_flags() -> None:
    """Removing one set_flag and one wait_flag of the same event, any of them, is a fault."""
    a, b = operands(96, 64, 64)
    inputs = [fractals(a), fractals(b)]
    text = lowered_text(product_text(96, 64, 64), "ascend-to-cce{cores=1 m=32 n=32 k=64}")
    lines = text.splitlines()
    flags: dict[str, dict[str, list[int]]] = {}
    for number, line in enumerate(lines):
        if found := FLAG.search(line):
            event = flags.setdefault(found[2], {"set_flag": [], "wait_flag": []})
            event[found[1]].append(number)
    pairs = [(s, w) for e in flags.values() for s in e["set_flag"] for w in e["wait_flag"]]
    assert len(pairs) > 10
    run_cce_text(text, inputs)
    for pair in pairs:
        broken = "\n".join(line for number, line in enumerate(lines) if number not in pair)
        with pytest.raises(DeviceFault):
            run_cce_text(broken, inputs)
            pytest.fail(f"nothing is found without lines {pair}:\n{text}")
