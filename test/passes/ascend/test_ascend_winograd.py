"""Convolutions by tiles: their matrices, the bound of their error, and which are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from convolution_support import Conv
from davinci import machine
from davinci.errors import InputError
from davinci.operators.conv import Geometry
from davinci.passes.ascend.ascend_winograd import FormChooser
from davinci.passes.ascend.winograd_forms import FORMS, WinogradForm
from davinci.passes.ascend.winograd_tiles import Tiled, WindowsConvolution
from davinci.schedule.graph import Graph
from random_winograd import WAYS, Layer
from winograd_bounds import bound_of_direct, bound_of_tiles

PADDED = ((1, 1), (1, 1))
CASES = (
    Conv(1, 16, (8, 8), 16, (3, 3), pads=PADDED),
    Conv(1, 3, (3, 3), 5, (3, 3)),
    Conv(2, 17, (5, 4), 16, (3, 3), pads=((2, 0), (0, 1))),
)
"""More are drawn by benchmarks/proofs/winograd.py."""

both = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


@both
def test_a_tile_is_a_convolution(form: WinogradForm) -> None:
    random = np.random.default_rng(1)
    d, g = random.standard_normal((form.reach,) * 2), random.standard_normal((3, 3))
    made = form.a @ ((form.g @ g @ form.g.T) * (form.b @ d @ form.b.T)) @ form.a.T
    windows = np.lib.stride_tricks.sliding_window_view(d, (3, 3))
    np.testing.assert_allclose(made, np.einsum("abkl,kl->ab", windows, g), rtol=0, atol=1e-13)


@both
def test_f16_holds_the_transforms(form: WinogradForm) -> None:
    for matrix in (form.b, np.kron(form.a, form.a)):
        np.testing.assert_array_equal(matrix.astype(np.float16), matrix)


def test_growth_is_what_is_stated() -> None:
    assert [round(form.growth) for form in FORMS] == [18, 209]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_error_is_within_its_bound(number: int) -> None:
    Layer.of(CASES[number % len(CASES)], number).check(**WAYS[number])


@both
def test_bound_is_not_above_what_is_stated(form: WinogradForm) -> None:
    """Of pixels and weights that are only known to be at most 1."""
    case = Conv(1, 64, (8, 8), 1, (3, 3))
    ones = [np.ones(shape) for shape in case.shapes]
    bound, direct = bound_of_tiles(form, case, *ones), bound_of_direct(case, *ones)
    assert bound.max() <= 1.1 * form.growth * direct.max()


def test_error_of_random_numbers() -> None:
    """About what is stated, beside that of the direct one."""
    layer = Layer.of(Conv(1, 32, (8, 16), 16, (3, 3), pads=PADDED), 5)
    errors = []
    for way in ("none", "2x2", "4x4"):
        found, _ = layer.run(winograd=way)
        errors.append(np.sqrt(np.mean((found - layer.wanted) ** 2)))
    assert 2 < errors[1] / errors[0] < 3
    assert 5 < errors[2] / errors[0] < 9


class Best(FormChooser):
    """Takes kernels to need what they need at least."""

    def _estimated(self, graph: Graph) -> float:
        return self.least(graph)


@pytest.mark.parametrize(
    ("images", "channels", "side", "cores", "wanted"),
    [
        (16, 64, 56, 1, None),  # of few channels transforms take more than products save
        (1, 512, 14, 32, None),  # launches take more
        (1, 1024, 32, 1, "4x4"),
        (16, 512, 28, 32, None),  # what tiles pass through memory takes more
        (1, 2048, 32, 1, "4x4"),
    ],
)
def test_choice_by_cost(
    images: int, channels: int, side: int, cores: int, wanted: str | None
) -> None:
    lies = Geometry((side, side), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    direct = WindowsConvolution(
        images, channels, channels, lies.image, lies.kernel, pads=lies.pads
    ).graph()
    ways = [Tiled.fitted(form, lies, images, channels, channels) for form in FORMS]
    found = Best(machine.load("ascend910"), cores).least_of(direct, ways)
    assert (found and found.form.name) == wanted


def test_unknown_form() -> None:
    with pytest.raises(InputError, match=r"option winograd.*3x3.*cost, none, 2x2, 4x4"):
        Layer.of(CASES[0], 0).run(winograd="3x3")
