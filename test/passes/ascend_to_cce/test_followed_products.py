"""Products of cube cores and what follows them on the vector cores beside them, part by part."""

from __future__ import annotations

import pytest

import davinci
from davinci import machine as machines
from davinci.passes.ascend import product_grouping
from davinci.reference import check
from followed_support import Sizes, followed
from pairs import in_turn

CHIP = machines.load("ascend910b")


@pytest.mark.parametrize(
    ("sizes", "name", "cores"),
    [
        ((33, 64, 48), "gelu", 0),
        ((257, 40, 208), "silu", 0),
        ((2, 100, 16), "residual", 2),
        ((300, 128, 272), "residual", 1),
        ((129, 64, 144), "both", 5),
        ((3, 17, 80, 160), "gelu", 2),
        ((5, 20, 48, 32), "both", 1),
    ],
)
def test_values(sizes: Sizes, name: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With odd rows, of which one vector core has one more, shares that end behind another place of
    the ring than others, and several shares a core; twice, as no flag may be left."""
    monkeypatch.setattr(product_grouping, "pays", lambda *_: True)
    model, arrays = followed(sizes, name)
    executable = davinci.compile(model, machine=CHIP.name, cores=cores, core_choice="all")
    (kernel,) = executable.profile["kernels"] if executable.run(arrays) else ()
    assert "matmul" in kernel["name"]
    executable.poison = True
    errors = check.compare(executable.run(arrays), check.reference_onnx(model, arrays))
    check.require(errors, "mixed")


REDUCED = ["softmax", "layer norm", "norm of a residual", "maxima"]
ROWS = [((33, 64, 48), 0), ((257, 40, 100), 2), ((111, 80, 33), 1), ((100, 32, 528), 0)]


@pytest.mark.parametrize(
    ("name", "rows"), [*in_turn(REDUCED, ROWS), *in_turn(REDUCED, [*ROWS[1:], ROWS[0]])]
)
def test_reduced_rows(name: str, rows: tuple[Sizes, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of parts are reduced where they are whole, and what pads them has no part in it: of 100
    and 33 columns the last block of each ends inside a fractal."""
    sizes, cores = rows
    monkeypatch.setattr(product_grouping, "pays", lambda *_: True)
    model, arrays = followed(sizes, name)
    executable = davinci.compile(model, machine=CHIP.name, cores=cores, core_choice="all")
    executable.poison = True
    found = executable.run(arrays)
    (kernel,) = executable.profile["kernels"]
    assert "matmul" in kernel["name"], "what follows is no kernel of its own"
    check.require(check.compare(found, check.reference_onnx(model, arrays)), "mixed")


@pytest.mark.parametrize(
    ("sizes", "kernels"), [((32, 64, 48), 2), ((512, 512, 1024), 2), ((512, 768, 3072), 1)]
)
def test_only_where_it_pays(sizes: Sizes, kernels: int) -> None:
    """A few tiles are on a few cores; what follows them is on all of them if it comes after."""
    model, arrays = followed(sizes, "gelu")
    executable = davinci.compile(model, machine=CHIP.name, core_choice="all", timing_only=True)
    executable.run(arrays)
    assert len(executable.profile["kernels"]) == kernels


@pytest.mark.parametrize(
    ("sizes", "name", "kernels"),
    [
        ((8192, 256, 256), "probabilities", 1),
        ((8192, 256, 256), "softmax", 2),
        ((64, 64, 128), "probabilities", 2),
    ],
)
def test_reductions_only_where_it_pays(sizes: Sizes, name: str, kernels: int) -> None:
    """Not where a large argument comes from the memory for one kernel as for two, and not where a
    few rows have few parts, so that vector cores wait for the cube."""
    model, arrays = followed(sizes, name)
    executable = davinci.compile(model, machine=CHIP.name, core_choice="all", timing_only=True)
    executable.run(arrays)
    assert len(executable.profile["kernels"]) == kernels
