"""The ONNX frontend: names, weights, locations, and one clear message for each bad model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from davinci import elements, frontends
from davinci.errors import CompileError, DavinciError, InputError
from davinci.mlir import ir

WEIGHT = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)


def model_of(
    nodes: list[Any],
    shape: list[Any],
    result: list[Any],
    weights: dict[str, np.ndarray[Any, Any]] | None = None,
    kind: int = TensorProto.FLOAT,
    opset: int = 18,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", kind, result)],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def linear() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("Erf", ["h"], ["y"], name="second"),
    ]
    return model_of(nodes, [4, 32], [4, 16], {"w": WEIGHT})


def main_of(module: Any) -> Any:
    """The entry function; it does not keep the module alive."""
    return next(op for op in module.body.operations if "sym_visibility" not in op.attributes)


def names(main: Any, key: str) -> list[str]:
    return [ir.StringAttr(ir.DictAttr(d)["ascend.name"]).value for d in main.attributes[key]]


def test_names_and_signature() -> None:
    module = frontends.load(linear())
    main = main_of(module)
    assert ir.StringAttr(main.attributes["sym_name"]).value == "main"
    assert names(main, "arg_attrs") == ["x"]
    assert names(main, "res_attrs") == ["y"]
    assert "(tensor<4x32xf32>) -> tensor<4x16xf32>" in str(main.attributes["function_type"])


def test_weights_are_resources_with_the_bytes_of_the_model() -> None:
    module = frontends.load(linear())
    constants = [
        op
        for op in main_of(module).regions[0].blocks[0].operations
        if op.operation.name == "stablehlo.constant"
    ]
    assert len(constants) == 1
    value = constants[0].attributes["value"]
    assert str(value).startswith("dense_resource<w>")
    np.testing.assert_array_equal(elements.to_array(value), WEIGHT)


def test_erf_stays_one_operator_and_nodes_are_locations() -> None:
    text = frontends.load(linear()).operation.get_asm(enable_debug_info=True)
    assert 'stablehlo.composite "chlo.erf"' in text
    assert 'loc("first")' in text
    assert 'loc("second")' in text


def test_initializers_given_as_inputs_are_not_arguments() -> None:
    model = linear()
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [32, 16]))
    module = frontends.load(model)
    assert names(main_of(module), "arg_attrs") == ["x"]


def test_the_model_is_left_as_it_was() -> None:
    model = linear()
    before = model.SerializeToString()
    frontends.load(model)
    assert model.SerializeToString() == before


def test_operator_with_only_a_definition() -> None:
    node = helper.make_node("Celu", ["x"], ["y"], alpha=1.5)
    module = frontends.load(model_of([node], [4], [4]))
    assert "stablehlo" in str(module)


def test_path(tmp_path: Path) -> None:
    onnx.save(linear(), tmp_path / "m.onnx")
    module = frontends.load(tmp_path / "m.onnx")
    assert names(main_of(module), "arg_attrs") == ["x"]


def bad_files(folder: Path) -> dict[str, Path]:
    data = linear().SerializeToString()
    (folder / "truncated.onnx").write_bytes(data[: len(data) // 2])
    (folder / "text.onnx").write_text("no model at all")
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "model.txt").write_bytes(data)
    external = linear()
    onnx.save(
        external,
        folder / "external.onnx",
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    (folder / "w.bin").unlink()
    names = ["missing.onnx", "truncated.onnx", "text.onnx", "empty.onnx", "model.txt"]
    return {name: folder / name for name in [*names, "external.onnx"]}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.onnx", "no such file"),
        ("truncated.onnx", "truncated"),
        ("text.onnx", "not an ONNX file"),
        ("empty.onnx", "not an ONNX file"),
        ("model.txt", "ends in .onnx or .mlir"),
        ("external.onnx", "w.bin"),
    ],
)
def test_bad_file(name: str, message: str, tmp_path: Path) -> None:
    path = bad_files(tmp_path)[name]
    with pytest.raises(InputError, match=message) as caught:
        frontends.load(path)
    assert str(path) in str(caught.value)


def test_dynamic_input() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(CompileError, match=r"input 'x' has a dynamic dimension.*'batch'"):
        frontends.load(model_of([node], ["batch", 4], ["batch", 4]))


def test_shape_that_depends_on_data() -> None:
    node = helper.make_node("NonZero", ["x"], ["y"], name="where")
    model = model_of([node], [4], [1, "n"], kind=TensorProto.INT64)
    with pytest.raises(CompileError, match="operator NonZero of node 'where'"):
        frontends.load(model)


def test_unsupported_operator_is_named() -> None:
    node = helper.make_node("StringNormalizer", ["x"], ["y"], name="words")
    model = model_of([node], [4], [4], kind=TensorProto.STRING)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    with pytest.raises(DavinciError) as caught:
        frontends.load(model)
    assert caught.value.exit_code == 3
    assert "StringNormalizer" in str(caught.value)


def test_an_operator_that_nobody_defines_is_named() -> None:
    node = helper.make_node("Mystery", ["x"], ["y"], name="riddle", domain="my.own", depth=3)
    model = model_of([node], [4], [4])
    model.opset_import.append(helper.make_opsetid("my.own", 1))
    with pytest.raises(
        CompileError, match=r"unsupported.*operator Mystery of node 'riddle'.*depth=3"
    ):
        frontends.load(model)


def test_an_attribute_that_nobody_asked_for_is_refused() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="relu", domain="", slope=0.5)
    with pytest.raises(DavinciError, match="slope"):
        frontends.load(model_of([node], [4], [4]))


def test_invalid_model() -> None:
    node = helper.make_node("Relu", ["nothing"], ["y"])
    with pytest.raises(InputError, match="not a valid ONNX model"):
        frontends.load(model_of([node], [4], [4]))


def test_not_a_model() -> None:
    with pytest.raises(InputError, match="an object of type int"):
        frontends.load(3)


def test_an_operator_by_its_definition() -> None:
    """RotaryEmbedding is many operators, with small constants of their own."""
    inputs = {"x": (1, 2, 3, 8), "c": (5, 4), "s": (5, 4)}
    values = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in inputs.items()]
    values.append(helper.make_tensor_value_info("p", TensorProto.INT64, [1, 3]))
    node = helper.make_node("RotaryEmbedding", ["x", "c", "s", "p"], ["y"])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 3, 8])
    graph = helper.make_graph([node], "graph", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    text = str(frontends.load(model))
    assert "tensor<1x2x3x8xf32>" in text and "stablehlo.gather" in text
