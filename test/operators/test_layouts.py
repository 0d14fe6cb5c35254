"""What is a view of its operand: held against where NumPy puts the elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from davinci.operators.layouts import is_reshape_view, is_view, is_whole, slice_offset
from davinci.operators.tensors import ND, NZ, Tensor
from davinci.passes.ascend.tensor_ops import stored_array

Array = npt.NDArray[Any]


def tensor(shape: tuple[int, ...], layout: str = NZ, element: str = "f16") -> Tensor:
    return Tensor(shape, element, layout)


def numbers(found: Tensor) -> Array:
    """A different one for each element, none of them the zero of padding."""
    return np.arange(1, found.count + 1, dtype=np.int64).reshape(found.shape)


def flat(array: Array, as_tensor: Tensor) -> Array:
    return stored_array(array, as_tensor).ravel()


def stays(operand: Tensor, result: Tensor, shape: list[int], permutation: list[int]) -> bool:
    """Whether the arrays of operand and result have the same bytes."""
    values = numbers(operand)
    moved = values.reshape(shape).transpose(permutation).reshape(result.shape)
    before, after = flat(values, operand), flat(moved, result)
    return before.shape == after.shape and bool((before == after).all())


VIEWS = [
    ((512, 768), [512, 12, 64], [1, 0, 2], (12, 512, 64)),
    ((1, 100, 768), [100, 12, 64], [1, 0, 2], (12, 100, 64)),
    ((12, 100, 64), [12, 100, 64], [1, 0, 2], (100, 768)),
    ((3, 32, 16), [3, 32, 16], [0, 1, 2], (96, 16)),
    ((17, 5), [17, 5], [0, 1], (1, 17, 5)),
    ((2, 3, 17, 5), [6, 17, 5], [0, 1, 2], (6, 17, 5)),
    ((32, 48), [32, 3, 16], [1, 0, 2], (96, 16)),
]
NO_VIEWS = [
    ((512, 768), [512, 16, 48], [0, 2, 1], (512, 768)),
    ((512, 96), [512, 12, 8], [1, 0, 2], (12, 512, 8)),
    ((2, 128, 768), [2, 128, 768], [0, 1, 2], (256, 768)),
    ((2, 17, 16), [2, 17, 16], [0, 1, 2], (34, 16)),
    ((17, 33), [17, 33], [0, 1], (33, 17)),
    ((64, 64), [64, 64], [1, 0], (64, 64)),
    ((0, 64), [0, 64], [0, 1], (1, 0, 64)),
]


@pytest.mark.parametrize(("operand", "shape", "permutation", "result"), VIEWS, ids=str)
def test_views(
    operand: tuple[int, ...], shape: list[int], permutation: list[int], result: tuple[int, ...]
) -> None:
    assert is_view(tensor(operand), tensor(result), shape, permutation)
    assert stays(tensor(operand), tensor(result), shape, permutation)


@pytest.mark.parametrize(("operand", "shape", "permutation", "result"), NO_VIEWS, ids=str)
def test_no_views(
    operand: tuple[int, ...], shape: list[int], permutation: list[int], result: tuple[int, ...]
) -> None:
    assert not is_view(tensor(operand), tensor(result), shape, permutation)


def test_layouts_that_are_the_same_bytes() -> None:
    """A single column of whole fractals is its rows; one with a padded row or lane is not."""
    for m, n, element, same in ((32, 16, "f32", True), (17, 16, "f16", False)):
        for pair in ((ND, NZ), (NZ, ND)):
            operand, result = (tensor((m, n), layout, element) for layout in pair)
            assert is_reshape_view(operand, result) == same
    assert is_reshape_view(tensor((16, 32), ND, "i8"), tensor((16, 32), NZ, "i8"))
    assert not is_reshape_view(tensor((16, 15), ND), tensor((16, 15), NZ))
    assert not is_reshape_view(tensor((16, 32), ND), tensor((16, 32), NZ))


SIZES = st.sampled_from([1, 2, 3, 5, 15, 16, 17, 32, 48])
LAYOUTS = st.sampled_from([ND, NZ])


@st.composite
def chains(draw: Any) -> tuple[Tensor, Tensor, list[int], list[int]]:
    """Reshape, transpose, reshape, of few enough elements."""
    shape = draw(st.lists(SIZES, min_size=2, max_size=4))
    assume(math.prod(shape) <= 20000)
    permutation = draw(st.permutations(range(len(shape))))
    moved = [shape[i] for i in permutation]
    sides = []
    for whole in (shape, moved):
        first = draw(st.integers(0, len(whole) - 1))
        last = draw(st.integers(first, len(whole)))
        joined = [*whole[:first], math.prod(whole[first:last]), *whole[last:]]
        sides.append(tuple([1, *joined] if len(joined) < 2 else joined))
    element = draw(st.sampled_from(["f16", "f32", "i8"]))
    operand, result = (tensor(side, draw(LAYOUTS), element) for side in sides)
    return operand, result, shape, list(permutation)


@settings(max_examples=400, deadline=None)
@given(chains())
def test_a_view_has_the_bytes_of_its_operand(
    chain: tuple[Tensor, Tensor, list[int], list[int]],
) -> None:
    operand, result, shape, permutation = chain
    assert is_view(operand, result, shape, permutation) == stays(
        operand, result, shape, permutation
    )


@st.composite
def slices(draw: Any) -> tuple[Tensor, list[int], list[int], list[int]]:
    shape = draw(st.lists(SIZES, min_size=2, max_size=3))
    starts = [draw(st.sampled_from([0, 0, 1, 16, 32])) % size for size in shape]
    limits = [
        draw(st.sampled_from([size, size, *range(start, size, 16), start + 1]))
        for start, size in zip(starts, shape, strict=True)
    ]
    strides = [draw(st.sampled_from([1, 1, 1, 1, 2])) for _ in shape]
    return tensor(tuple(shape), draw(LAYOUTS)), starts, limits, strides


@settings(max_examples=400, deadline=None)
@given(slices())
def test_slices_lie_where_they_say(case: tuple[Tensor, list[int], list[int], list[int]]) -> None:
    operand, starts, limits, strides = case
    values = numbers(operand)
    part = values[tuple(map(slice, starts, limits, strides))]
    result = tensor(part.shape, operand.layout)
    wanted, whole = flat(part, result), flat(values, operand)
    offset = slice_offset(operand, result, starts, strides)
    if offset is not None:
        np.testing.assert_array_equal(whole[offset : offset + len(wanted)], wanted)
    elif part.size and part.size == wanted.size:  # what pads a result may lie there by chance
        begin = int(np.flatnonzero(whole == wanted[0])[0])
        assert not np.array_equal(whole[begin : begin + len(wanted)], wanted)


def test_slices_of_whole_fractals() -> None:
    merged = tensor((100, 2304))
    for start in (0, 768, 1536):
        offset = slice_offset(merged, tensor((100, 768)), [0, start], [1, 1])
        assert offset == start // 16 * 7 * 256
    assert slice_offset(tensor((12, 17, 5)), tensor((1, 17, 5)), [3, 0, 0], [1, 1, 1]) == 3 * 512
    assert slice_offset(tensor((64, 5)), tensor((32, 5)), [32, 0], [1, 1]) == 512
    assert slice_offset(merged, tensor((100, 8)), [0, 16], [1, 1]) is None, "padding is not zero"
    assert slice_offset(merged, tensor((64, 2304)), [0, 0], [1, 1]) is None, "no one piece"
    assert is_whole(merged, [16, 32], [100, 48], [1, 1])
    assert not is_whole(merged, [16, 32], [99, 48], [1, 1])
