"""fractalize and defractalize on the simulator, bit for bit, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from davinci.errors import InputError
from davinci.machine import load as load_machine
from kernel_support import DTYPES, KernelRun, fractals, lowered_text, run_kernel

Array = npt.NDArray[Any]


def layout_text(shape: tuple[int, ...], element: str, back: bool) -> str:
    """A kernel that fractalizes a matrix of `shape`, or defractalizes into it."""
    *lead, m, n = shape
    c = 32 if element == "i8" else 16
    plain = "x".join(map(str, shape))
    nz = "x".join(map(str, [*lead, -(-n // c), -(-m // 16), 16, c]))
    rows = f"tensor<{plain}x{element}>"
    logical = f'tensor<{plain}x{element}, #ascend.layout<"nz">>'
    sides = [(f"{plain}x{element}", rows), (f"{nz}x{element}", logical)]
    (source, x), (result, y) = reversed(sides) if back else sides
    cast = "builtin.unrealized_conversion_cast"
    return f"""
    func.func @layout(%a: memref<{source}>, %b: memref<{result}>) attributes {{ascend.kernel}} {{
      %held = bufferization.to_tensor %a restrict : memref<{source}> to tensor<{source}>
      %x = {cast} %held : tensor<{source}> to {x}
      %y = "ascend.relayout"(%x) : ({x}) -> {y}
      %made = {cast} %y : {y} to tensor<{result}>
      bufferization.materialize_in_destination %made in restrict writable %b
        : (tensor<{result}>, memref<{result}>) -> ()
      return
    }}"""


def values(shape: tuple[int, ...], element: str) -> Array:
    """Random bits: numbers, NaNs, infinities and negative zeros."""
    dtype = np.dtype(DTYPES[element])
    random = np.random.default_rng(sum(shape))
    raw = random.integers(0, 256, (int(np.prod(shape)) * dtype.itemsize,), dtype=np.uint8)
    return raw.view(dtype).reshape(shape)


def check(
    shape: tuple[int, ...], element: str = "f16", back: bool = False, **options: object
) -> KernelRun:
    matrix = values(shape, element)
    if element in ("f16", "f32"):  # arithmetic may quieten a signalling NaN
        matrix = np.where(np.isnan(matrix), matrix.dtype.type(np.nan), matrix)
    source, expected = (fractals(matrix), matrix) if back else (matrix, fractals(matrix))
    run = run_kernel(layout_text(shape, element, back), [source], **options)
    np.testing.assert_array_equal(run.outputs[0].view(np.uint8), expected.view(np.uint8))
    return run


@pytest.mark.parametrize("algorithm", ["naive", "improved"])
def test_agrees_with_the_scalar_loop_of_the_source(algorithm: str) -> None:
    m, n = 37, 45
    matrix = values((m, n), "i16")
    expected = np.zeros((3, 3, 16, 16), np.int16)
    for i in range(3):
        for j in range(3):
            for k in range(16):
                for l in range(16):  # noqa: E741  the source's names
                    if j * 16 + k < m and i * 16 + l < n:
                        expected[i][j][k][l] = matrix[j * 16 + k][i * 16 + l]
    run = run_kernel(layout_text((m, n), "i16", False), [matrix], fractalize=algorithm)
    np.testing.assert_array_equal(run.outputs[0], expected)


SHAPES = [(1, 1), (15, 15), (16, 16), (17, 17), (1, 33), (37, 13), (50, 1), (101, 97), (640, 48)]


@pytest.mark.parametrize("back", [False, True], ids=["fractalize", "defractalize"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes_that_hurt(shape: tuple[int, int], back: bool) -> None:
    for algorithm in ("naive", "improved"):
        check(shape, "f16", back, fractalize=algorithm)
    check(shape, ("f32", "i32")[SHAPES.index(shape) % 2], back, cores=2)


@pytest.mark.parametrize("back", [False, True], ids=["fractalize", "defractalize"])
@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("shape", [(3, 4097), (20, 9001), (2000, 80)], ids=str)
def test_larger_than_ub(shape: tuple[int, int], element: str, back: bool) -> None:
    check(shape, element, back, cores=1)
    check(shape, element, back, cores=32)


@pytest.mark.parametrize("back", [False, True], ids=["fractalize", "defractalize"])
@pytest.mark.parametrize("shape", [(3, 17, 19), (2, 3, 32, 16), (12, 128, 64)], ids=str)
def test_batches(shape: tuple[int, ...], back: bool) -> None:
    check(shape, "f16", back)
    check(shape, "f32", back, cores=3)


@pytest.mark.parametrize("back", [False, True], ids=["fractalize", "defractalize"])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 3, 3)], ids=str)
def test_empty(shape: tuple[int, ...], back: bool) -> None:
    check(shape, "f16", back)


BACK = pytest.mark.parametrize("back", [False, True], ids=["fractalize", "defractalize"])


@BACK
def test_8_bit_without_padding(back: bool) -> None:
    check((48, 96), "i8", back)


@BACK
@pytest.mark.parametrize("shape", [(48, 95), (17, 33), (1, 1)], ids=str)
def test_8_bit_with_padding(shape: tuple[int, int], back: bool) -> None:
    check(shape, "i8", back)


@BACK
@pytest.mark.parametrize("element", ["f16", "i16", "f32"])
@pytest.mark.parametrize("shape", [(300, 36), (3, 130, 12), (2, 67, 20)], ids=str)
def test_ragged_rows_cross_as_runs(shape: tuple[int, ...], element: str, back: bool) -> None:
    copies = check(shape, element, back, cores=2).profile.instructions
    assert copies["copy_gm_to_ubuf"] + copies["copy_ubuf_to_gm"] < 20


def test_unknown_algorithm() -> None:
    with pytest.raises(InputError, match="found 'fast'; expected one of improved, naive"):
        text = layout_text((16, 16), "f16", False)
        lowered_text(text, "convert-ascend-to-cce{fractalize=fast}")


@pytest.mark.parametrize("back", [False, True], ids=["fractalize", "defractalize"])
@pytest.mark.parametrize("cores", [1, 2, 8, 32])
def test_improved_is_faster_than_naive(cores: int, back: bool) -> None:
    naive = check((512, 768), back=back, cores=cores, fractalize="naive").profile
    improved = check((512, 768), back=back, cores=cores, fractalize="improved").profile
    machine = load_machine("ascend910")
    with_launch = [p.cycles + machine.queued_cycles(p.blocks) for p in (improved, naive)]
    assert with_launch[0] < with_launch[1]
    for profile in (naive, improved):
        assert profile.gm_read_bytes == profile.gm_write_bytes == 512 * 768 * 2
        assert profile.scalar_accesses == 0


def test_instructions_of_the_source() -> None:
    """16 pieces of 32 rows, of which two are in UB: a gather each, and a scatter a strip."""
    profile = check((512, 768), cores=1).profile
    assert profile.instructions["scatter_vnchwconv.b16"] == 16 + 32
    assert profile.instructions["copy_gm_to_ubuf"] == profile.instructions["copy_ubuf_to_gm"] == 16
    naive = check((512, 768), cores=1, fractalize="naive").profile
    assert naive.instructions["scatter_vnchwconv.b16"] == 2 * 32
    assert naive.vector_repeats == profile.vector_repeats == 2 * 32 * 48


@pytest.mark.parametrize(
    ("shape", "element", "back"), [((512, 512), "f16", False), ((256, 512), "f32", True)]
)
def test_a_piece_is_loaded_while_the_one_before_is_stored(
    shape: tuple[int, int], element: str, back: bool
) -> None:
    """On one core the pipes that load and store are busy at the same time for most of it."""
    profile = check(shape, element, back, cores=1).profile
    busy = profile.pipes["PIPE_MTE2"] + profile.pipes["PIPE_MTE3"]
    assert profile.cycles < 0.85 * busy


@settings(max_examples=8)
@given(
    st.integers(1, 3),
    st.integers(1, 70),
    st.integers(1, 70),
    st.sampled_from(["f16", "f32", "i32", "i16"]),
    st.booleans(),
    st.sampled_from([1, 3, 32]),
)
def test_any_shape(batch: int, m: int, n: int, element: str, back: bool, cores: int) -> None:
    check((batch, m, n), element, back, cores=cores)
