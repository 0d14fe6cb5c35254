"""Products of cube cores and what follows them on the vector cores beside them, part by part."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

import davinci
from davinci import machine as machines
from davinci.passes.ascend import product_grouping
from davinci.reference import check
from onnx_support import Arrays, model_of
from pairs import in_turn

CHIP = machines.load("ascend910b")

EPILOGUES = {
    "gelu": ("Add c bias d", "Gelu d y"),
    "silu": ("Sigmoid c d", "Mul c d y"),
    "residual": ("Add c bias d", "Relu d e", "Add e r y"),
    "both": ("Neg c d", "Tanh d y"),
    "softmax": ("Add c r d", "Softmax d y"),
    "probabilities": ("Softmax c y",),
    "layer norm": ("Add c bias d", "Add d r e", "LayerNormalization e scale shift y"),
    "norm of a residual": ("Add c r d", "LayerNormalization d scale shift y"),
    "maxima": ("Add c r d", "ReduceMax d last y"),
}
"""Nodes behind a product."""

OTHERS = {"both": "c", "norm of a residual": "d"}
"""What of these leaves beside the result of the last."""

Sizes = tuple[int, ...]


def followed(sizes: Sizes, name: str) -> tuple[onnx.ModelProto, Arrays]:
    """A product of some sizes, batch in front, with what follows it."""
    *batch, m, k, n = sizes
    random = np.random.default_rng(sum(sizes))

    def array(*shape: int) -> npt.NDArray[Any]:
        return random.standard_normal(shape).astype(np.float16)

    given = {"a": array(*batch, m, k), "r": array(*batch, m, n)}
    kept = {"b": (array(k, n) / np.sqrt(k)).astype(np.float16), "bias": array(n)}
    kept |= {"scale": array(n), "shift": array(n), "last": np.array([-1])}
    nodes = [helper.make_node("MatMul", ["a", "b"], ["c"])]
    for text in EPILOGUES[name]:
        kind, *operands, result = text.split()
        nodes.append(helper.make_node(kind, operands, [result]))
    used = {value for node in nodes for value in node.input}
    arrays = {key: value for key, value in given.items() if key in used}
    outputs = ("y", *OTHERS.get(name, ""))
    constants = {key: value for key, value in kept.items() if key in used}
    return model_of(nodes, arrays, outputs, constants), arrays


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
