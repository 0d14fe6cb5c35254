"""Products of cube cores that begin with a row from the bias table, on simulated machine code with
all checks, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

import davinci
from davinci.reference import check
from onnx_support import Arrays, model_of

MACHINE = "ascend910b"

Sizes = tuple[int, ...]


def array(*shape: int, seed: int = 0) -> npt.NDArray[Any]:
    random = np.random.default_rng(seed + sum(shape))
    return random.standard_normal(shape).astype(np.float32)


def product(
    sizes: Sizes, row: Sizes, behind: tuple[str, ...], constant: bool = True
) -> tuple[onnx.ModelProto, Arrays]:
    """A product of some sizes, batch in front, a row that is added to it, and what follows."""
    *batch, m, k, n = sizes
    arrays = {"a": array(*batch, m, k)}
    known = {"b": array(*batch, k, n) / np.float32(np.sqrt(k)), "row": array(*row, seed=1)}
    nodes = [helper.make_node("MatMul", ["a", "b"], ["c"])]
    nodes.append(helper.make_node("Add", ["row", "c"], ["d"]))
    last = "d"
    for name in behind:
        nodes.append(helper.make_node(name, [last], [f"{last}d"]))
        last += "d"
    nodes[-1].output[0] = "y"
    if not constant:
        arrays, known = arrays | known, {}
    return model_of(nodes, arrays, ("y",), known), arrays


def images(
    image: Sizes, layers: tuple[tuple[int, int, int, int], ...]
) -> tuple[onnx.ModelProto, Arrays]:
    """Convolutions with biases, each rectified; (channels, kernel, stride, groups) of each."""
    nodes, known, last, channels = [], {}, "x", image[1]
    for number, (out, kernel, stride, groups) in enumerate(layers):
        w, b, c, y = (f"{name}{number}" for name in "wbcy")
        each = channels // groups
        known[w] = array(out, each, kernel, kernel) / np.float32(np.sqrt(each) * kernel)
        known[b], channels = array(out, seed=number), out
        sides = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": groups}
        nodes.append(helper.make_node("Conv", [last, w, b], [c], **sides))
        nodes.append(helper.make_node("Relu", [c], [y]))
        last = y
    arrays = {"x": array(*image)}
    return model_of(nodes, arrays, (last,), known), arrays


def kernels_that_add(executable: davinci.Executable) -> list[str]:
    """Kernels that add a row alone, and do not multiply."""
    names = [str(kernel["name"]) for kernel in executable.profile["kernels"]]
    return [name for name in names if name.startswith("add")]


def require_right(model: onnx.ModelProto, arrays: Arrays, **options: Any) -> davinci.Executable:
    """Runs a model twice, as no flag may be left, and compares."""
    executable: davinci.Executable = davinci.compile(model, machine=MACHINE, **options)
    executable.run(arrays)
    executable.poison = True
    errors = check.compare(executable.run(arrays), check.reference_onnx(model, arrays))
    check.require(errors, "mixed")
    return executable


@pytest.mark.parametrize(
    ("sizes", "row", "behind", "constant"),
    [
        ((64, 128, 96), (96,), (), True),
        ((50, 72, 40), (40,), ("Relu",), True),
        ((17, 300, 33), (33,), ("Relu",), False),
        ((300, 64, 1000), (1000,), (), False),
        ((33, 48, 1), (1,), (), False),
        ((3, 40, 64, 48), (48,), ("Relu",), True),
        ((3, 40, 64, 48), (3, 1, 48), ("Relu",), True),
        ((256, 512, 1024), (1024,), ("Gelu",), False),
        ((64, 2048, 64), (64,), (), True),
    ],
)
def test_product(sizes: Sizes, row: Sizes, behind: tuple[str, ...], constant: bool) -> None:
    """Rows that end within a block or a fractal, that come at run time, one for all matrices or for
    each; what follows is done by fixpipe, or by vector cores."""
    executable = require_right(*product(sizes, row, behind, constant))
    assert not kernels_that_add(executable)


@pytest.mark.parametrize(
    ("image", "layers"),
    [
        ((1, 32, 14, 14), ((48, 3, 1, 1),)),
        ((1, 32, 7, 7), ((24, 3, 1, 1), (40, 1, 1, 1))),
        ((2, 48, 14, 14), ((56, 1, 1, 1), (32, 3, 2, 1))),
        ((2, 64, 7, 7), ((64, 3, 1, 2), (320, 1, 1, 1))),
    ],
)
def test_convolutions(image: Sizes, layers: tuple[tuple[int, int, int, int], ...]) -> None:
    """Pixels and channels that are no multiples of 16, whose padding stays zero; several images,
    groups of channels with a row each, and more columns than the bias table holds."""
    executable = require_right(*images(image, layers))
    assert not kernels_that_add(executable)


def test_policy_fp16() -> None:
    """Sums of products and rows are f32 until they are rounded, so mads begin with the rows."""
    executable = require_right(
        *images((2, 48, 14, 14), ((56, 1, 1, 1), (32, 3, 2, 1))), precision="fp16"
    )
    assert not kernels_that_add(executable)


@pytest.mark.parametrize("tile", [(64, 16, 32), (16, 128, 64), (32, 256, 16)])
def test_tiles(tile: tuple[int, int, int]) -> None:
    """Tiles whose rows take turns in the bias table, or have all of it, with their mads split."""
    model, arrays = product((100, 96, 600), (600,), ("Relu",))
    require_right(model, arrays, tile=tile, cores=2)


def test_a_tile_wider_than_the_table() -> None:
    model, _ = product((32, 32, 512), (512,), ())
    with pytest.raises(davinci.CompileError, match="n <= 256, for which the tables of biases"):
        davinci.compile(model, machine=MACHINE, tile=(16, 512, 16))


def test_sums_that_are_needed_without_the_row() -> None:
    """They leave as they are."""
    model, arrays = product((48, 32, 64), (64,), ())
    model.graph.output.append(helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, (48, 64)))
    require_right(model, arrays)
