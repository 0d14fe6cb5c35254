"""Programs of symbolic arrays mean what NumPy says, at every shape and border."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci import gdp
from davinci.errors import InputError
from davinci.gdp.lowering import build
from davinci.gdp.models import named
from davinci.mlir import make_context
from davinci.reference.interpreter import evaluate, prepare

Array = npt.NDArray[Any]

PAD = {"constant": "constant", "replicate": "edge", "reflect": "reflect"}
"""NumPy's names of the border rules."""


def interpreted(function: Callable[..., Any], *arrays: Array) -> list[Array]:
    """Outputs of a program by StableHLO's reference interpreter."""
    inputs = [gdp.input(f"x{n}", x.shape, x.dtype) for n, x in enumerate(arrays)]
    outputs = named(function(*inputs), "test")
    specs = {x.name: (x.dtype, x.shape) for x in inputs}
    module = build(inputs, outputs, specs, make_context())
    prepare(module)
    given = {x.name: array for x, array in zip(inputs, arrays, strict=True)}
    return list(evaluate(module, given, list(outputs)).values())


def whole_numbers(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Small whole numbers, of which f32 computes exactly."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "negate": (lambda x: -x, lambda x: -x),
    "abs": (gdp.abs, np.abs),
    "floor half": (lambda x: gdp.floor(x * 0.5), lambda x: np.floor(x * 0.5)),
    "last": (lambda x: x[..., 1:], lambda x: x[..., 1:]),
    "sum": (lambda x: gdp.sum(x, -1, keepdims=True), lambda x: np.sum(x, -1, keepdims=True)),
    "max": (lambda x: gdp.max(x, 0, keepdims=True), lambda x: np.max(x, 0, keepdims=True)),
    "above": (lambda x: moved(x, -1, 0), lambda x: moved_by_numpy(x, -1, 0, "constant")),
    "beside": (lambda x: moved(x, 1, -1), lambda x: moved_by_numpy(x, 1, -1, "constant")),
}

BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "div": (lambda a, b: a / (abs(b) + 1), lambda a, b: a / (np.abs(b) + 1)),
    "min": (gdp.minimum, np.minimum),
    "where": (lambda a, b: gdp.where(a > b, a, 3.0), lambda a, b: np.where(a > b, a, 3.0)),
    "both": (
        lambda a, b: gdp.where((a >= b) & ~(a == 2), 1.0, b),
        lambda a, b: np.where((a >= b) & ~(a == 2), 1.0, b),
    ),
}


def moved(x: gdp.Array, down: int, right: int, rule: str = "constant") -> gdp.Array:
    i, j = gdp.indices()
    return gdp.border(x, rule)[i + down, j + right]


def moved_by_numpy(x: Array, down: int, right: int, rule: str) -> Array:
    """The neighbour of each pixel of the last two dimensions."""
    reach = max(abs(down), abs(right))
    around = [(0, 0)] * (x.ndim - 2) + [(reach, reach)] * 2
    padded = np.pad(x, around, mode=PAD[rule])  # type: ignore[call-overload]
    height, width = x.shape[-2:]
    top, left = reach + down, reach + right
    return np.asarray(padded[..., top : top + height, left : left + width])


@given(data=st.data())
def test_random_expressions(data: st.DataObject) -> None:
    """Chains of up to six operations on two images, with scalars broadcast between them."""
    shape = (data.draw(st.integers(2, 5)), data.draw(st.integers(2, 5)))
    arrays = [whole_numbers(shape, seed) for seed in range(2)]
    steps = data.draw(
        st.lists(
            st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 9), st.integers(0, 9)),
            min_size=1,
            max_size=6,
        )
    )

    def program(side: int, *inputs: Any) -> Any:
        values = list(inputs)
        for name, first, second in steps:
            a, b = values[first % len(values)], values[second % len(values)]
            if name in BINARY:
                fits = all(m == n or 1 in (m, n) for m, n in zip(a.shape, b.shape, strict=True))
                made = BINARY[name][side](a, b) if fits else a
            else:
                made = UNARY[name][side](a) if min(a.shape) > 1 else a
            values.append(made)
        return values[-1]

    (found,) = interpreted(lambda *x: program(0, *x), *arrays)
    expected = program(1, *arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rule", gdp.RULES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 3), (2, 5, 11), (3, 128)], ids=str)
def test_borders(rule: str, shape: tuple[int, ...]) -> None:
    """Neighbours up to two pixels away, as far as a reflected border goes; rows of 128 pixels have
    margins of whole blocks."""
    image = whole_numbers(shape)
    for down, right in ((-1, 0), (0, 1), (1, -1), (-2, 2)):
        wide = max(abs(down), abs(right))
        if rule == "reflect" and wide >= min(shape[-2:]):
            continue
        (found,) = interpreted(lambda x, d=down, r=right: moved(x, d, r, rule), image)
        np.testing.assert_array_equal(found, moved_by_numpy(image, down, right, rule))


@pytest.mark.parametrize("rule", gdp.RULES)
@pytest.mark.parametrize("width", [7, 144])
def test_filters(rule: str, width: int) -> None:
    """Planes of an image, each by itself, with a kernel of two unlike sides."""
    image, kernel = whole_numbers((3, 5, width)), whole_numbers((3, 5), 1)
    (found,) = interpreted(lambda x: gdp.filter2d(x, kernel, rule), image)
    expected = np.zeros_like(image)
    for down, right in np.ndindex(3, 5):
        expected += kernel[down, right] * moved_by_numpy(image, down - 1, right - 2, rule)
    np.testing.assert_array_equal(found, expected)


def test_neighbours_of_one_array_are_padded_once() -> None:
    def program(x: gdp.Array) -> gdp.Array:
        return moved(x, -1, 0) + moved(x, 2, 1) + moved(x, 0, -1)

    model = gdp.compile(program)
    text = model.stablehlo({"x": (np.dtype(np.float32), (5, 6))})
    assert text.count("stablehlo.pad") == 1
    assert text.count("stablehlo.slice") == 3


def test_reductions_and_places() -> None:
    image = whole_numbers((3, 4, 5))
    mean, deviation, first, last = interpreted(
        lambda x: [gdp.mean(x, (1, 2)), gdp.std(x), gdp.argmin(x), gdp.argmax(x, 1)], image
    )
    np.testing.assert_allclose(mean, image.mean((1, 2)), rtol=1e-6)
    np.testing.assert_allclose(deviation, image.std(), rtol=1e-6)
    assert first == image.argmin()
    np.testing.assert_array_equal(last, image.argmax(1))


def test_long_chains_need_no_recursion() -> None:
    def program(x: gdp.Array) -> gdp.Array:
        for _ in range(1500):
            x = x + 1
        return x

    (found,) = interpreted(program, np.zeros((1,), np.float32))
    assert found == 1500


IMAGE = gdp.input("img", (4, 6), np.float32)
BYTES = gdp.input("bytes", (4, 6), np.uint8)
ROW, COLUMN = gdp.indices()

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "shapes": (lambda: IMAGE + gdp.input("y", (4, 5), np.float32), "do not broadcast"),
    "types": (lambda: IMAGE + BYTES, "element types differ"),
    "fraction": (lambda: BYTES * 0.5, "0.5 is no value of type uint8"),
    "quotient": (lambda: BYTES / 2, "a quotient of uint8"),
    "function of floats": (lambda: gdp.sqrt(BYTES), "a function of floats on uint8"),
    "truth": (lambda: 1 if IMAGE > 0 else 0, "the truth of a symbolic array"),
    "text": (lambda: IMAGE + "1", "not an operand"),
    "condition": (lambda: gdp.where(IMAGE, 1.0, 0.0), "no array of booleans"),
    "index": (lambda: IMAGE[4], "index 4 lies outside of dimension 0"),
    "too many": (lambda: IMAGE[0, 0, 0], "no such index"),
    "backwards": (lambda: IMAGE[::-1], "a slice goes forward"),
    "half a pixel": (lambda: IMAGE[ROW, COLUMN + 0.5], "indices move by whole pixels"),
    "one index": (lambda: IMAGE[ROW], "pixels are named by all indices in order"),
    "exchanged": (lambda: IMAGE[COLUMN, ROW], "pixels are named by all indices in order"),
    "flat": (lambda: gdp.input("v", (5,))[ROW, COLUMN], "more indices than dimensions"),
    "rule": (lambda: gdp.border(IMAGE, "reflct"), "did you mean 'reflect'"),
    "value": (lambda: gdp.border(IMAGE, "reflect", 1), "reflect takes no value"),
    "narrow": (lambda: gdp.border(IMAGE, "reflect")[ROW - 4, COLUMN], "narrower than the image"),
    "kernel": (lambda: gdp.filter2d(IMAGE, np.ones((2, 3))), "no kernel of a filter"),
    "filter": (lambda: gdp.filter2d(BYTES, np.ones((3, 3))), "no image to filter"),
    "axis": (lambda: gdp.sum(IMAGE, 2), "axis 2 is not one of"),
    "reshape": (lambda: IMAGE.reshape(5, 5), "cannot take the shape"),
    "product": (lambda: gdp.matmul(IMAGE, IMAGE), "do not fit"),
    "convolution": (
        lambda: gdp.convolve(gdp.input("n", (1, 3, 8, 8)), np.ones((4, 2, 3, 3), np.float16)),
        "do not fit",
    ),
    "type": (lambda: gdp.input("z", (2,), np.complex64), "no element type"),
    "shape": (lambda: gdp.input("z", (-1,)), "not a shape"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_told_with_their_line(case: str) -> None:
    """One message, with the line of this file where there is one."""
    wrong, text = WRONG[case]
    with pytest.raises(InputError) as caught:
        wrong()
    assert text in str(caught.value)
    assert "test_tracing.py:" in str(caught.value) or case == "shape"
