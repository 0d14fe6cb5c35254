"""Products whose rows are reduced in front of memory, on cores with a cube and a vector unit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import davinci
from davinci.errors import InputError
from davinci.passes.ascend import product_grouping
from davinci.reference import check
from followed_support import Sizes, followed

REDUCED = ["softmax", "layer norm", "norm of a residual", "maxima", "probabilities"]


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize(
    ("machine", "sizes", "cores"),
    [
        ("ascend910", (33, 64, 48), 0),
        ("ascend310", (257, 40, 100), 2),
        ("ascend310p", (111, 80, 33), 1),
        ("ascend310", (100, 32, 528), 0),
        ("ascend910", (3, 20, 48, 40), 2),
        ("ascend310p", (64, 64, 24), 0),
    ],
)
def test_values(
    name: str, machine: str, sizes: Sizes, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that end inside a fractal, a block, and with it; several parts a core, of several pieces
    that take turns on buffers or have one each; one part; the last one with one row."""
    _check(name, machine, sizes, cores, monkeypatch)


def test_a_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """C has fewer rows than a fractal, so that a part has more rows than C."""
    _check("softmax", "ascend910", (4, 48, 32), 0, monkeypatch)


def _check(
    name: str, machine: str, sizes: Sizes, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requires that one kernel computes what the reference does."""
    monkeypatch.setattr(product_grouping, "rows_pay", lambda *_: True)
    model, arrays = followed(sizes, name)
    executable = davinci.compile(model, machine=machine, cores=cores, core_choice="all")
    executable.poison = True
    found = executable.run(arrays)
    (kernel,) = executable.profile["kernels"]
    assert "matmul" in kernel["name"], "what follows is no kernel of its own"
    check.require(check.compare(found, check.reference_onnx(model, arrays)), "mixed")


@pytest.mark.parametrize(
    ("sizes", "name", "kernels"),
    [
        ((2048, 64, 64), "maxima", 1),
        ((1000, 100, 100), "softmax", 1),
        ((512, 768, 1000), "probabilities", 2),
        ((3136, 96, 96), "norm of a residual", 2),
    ],
)
def test_only_where_it_pays(sizes: Sizes, name: str, kernels: int) -> None:
    """Not where each core reads a large B whole for a few rows, and not where a few cores have a
    part of rows more than others, of which much is computed."""
    model, arrays = followed(sizes, name)
    executable = davinci.compile(model, machine="ascend910", core_choice="all", timing_only=True)
    executable.run(arrays)
    assert len(executable.profile["kernels"]) == kernels


def test_given_again(tmp_path: Path) -> None:
    """The schedule that is saved makes the same kernel; one whose parts have no whole rows is
    refused."""
    model, arrays = followed((2048, 64, 64), "maxima")
    options = {"machine": "ascend910", "timing_only": True}
    first, file = davinci.compile(model, **options), tmp_path / "schedules.json"
    first.run(arrays)
    file.write_text(first.schedules())
    again = davinci.compile(model, schedules=str(file), **options)
    again.run(arrays)
    assert len(again.profile["kernels"]) == 1
    assert again.profile["total_cycles"] == first.profile["total_cycles"]
    data = json.loads(file.read_text())
    data["kernels"][0]["choices"][0]["choice"]["schedule"]["part"][0] = 2
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match="columns go by 4 fractals"):
        davinci.compile(model, schedules=str(file), **options)
