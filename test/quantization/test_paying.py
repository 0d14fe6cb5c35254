"""Layers that stay floats because integers take longer: how they are found, and that they do."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci
from davinci.errors import InputError
from davinci.quantization import paying
from davinci.quantization.layers import layers_of
from davinci.quantization.paying import Timed, chosen, gains_of
from davinci.quantization.records import QuantizationPlan, Scale
from davinci.quantization.weights import quantized_weight

RNG = np.random.default_rng(0)


def chain(*, named: bool = True) -> onnx.ModelProto:
    """Two products, the second of what a Relu makes of the first."""
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="first" if named else ""),
        helper.make_node("Relu", ["a"], ["r"], name="relu" if named else ""),
        helper.make_node("MatMul", ["r", "w1"], ["y"], name="second" if named else ""),
    ]
    tensors = [
        numpy_helper.from_array(RNG.standard_normal((32, 32), np.float32), name)
        for name in ("w0", "w1")
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 32]) for name in "xy"]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def plan_of(model: onnx.ModelProto) -> QuantizationPlan:
    layers = layers_of(model.graph)
    scales = {layer.activation: Scale(0.1, 0) for layer in layers}
    weight = quantized_weight(RNG.standard_normal((32, 32)).astype(np.float32), 1, False)
    return QuantizationPlan(layers, scales, {layer.name: weight for layer in layers}, {})


def times(*launches: tuple[float, str]) -> Timed:
    """Microseconds and nodes of each launch."""
    rows = tuple((us, frozenset(nodes.split())) for us, nodes in launches)
    return Timed(sum(us for us, _ in rows), rows)


def test_what_makes_bytes_counts_for_those_that_read_them() -> None:
    """x becomes bytes in a launch of its own; r in that of the Relu, which floats have too."""
    floats = times((10, "first"), (5, "relu"), (10, "second"))
    bytes_ = times((4, "x_quantized"), (8, "first"), (6, "relu r_quantized"), (7, "second"))
    layers = layers_of(chain().graph)
    assert gains_of(layers, floats, bytes_) == {"first": 10 - 8 - 4, "second": 10 + 5 - 7 - 6}


@pytest.mark.parametrize(
    ("whole", "part", "kept"),
    [(28.0, 20.0, ["second"]), (28.0, 26.0, []), (22.0, 23.0, ["first", "second"])],
    ids=["some", "none", "all"],
)
def test_the_fastest_of_what_was_timed_is_taken(
    whole: float, part: float, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first layer seems not to pay; what is said of layers decides only what is tried."""
    made = [
        times((10, "first"), (5, "relu"), (10, "second")),
        times((whole - 17, "x_quantized first"), (10, "relu r_quantized"), (4, "second")),
        times((part - 9, "first"), (5, "relu r_quantized"), (4, "second")),
    ]
    assert made[1].time_us == whole - 3
    made[1] = Timed(whole, made[1].launches)
    left = iter(made)
    monkeypatch.setattr(paying, "timed", lambda model, options: next(left))
    found = chosen(chain(), plan_of(chain()), {}, lambda text: None)
    assert [layer.name for layer in found.plan.layers] == kept
    assert found.floats_us == 25 and found.time_us == min(25, whole, part)


@pytest.mark.parametrize("named", [True, False])
def test_small_products_stay_floats(named: bool) -> None:
    samples: Any = [{"x": RNG.standard_normal((4, 32), np.float32)} for _ in range(2)]
    made = davinci.quantize(chain(named=named), samples, options={"machine": "ascend310"})
    report = made.report
    assert report.time_us is not None and report.floats_time_us is not None
    assert report.time_us <= report.floats_time_us
    assert all(layer.why == "time" for layer in report.kept) and report.kept
    executable = davinci.compile(made.model, machine="ascend310", timing_only=True)
    executable.run()
    assert executable.profile["time_us"] == report.time_us


def test_other_values_of_layers_are_refused() -> None:
    with pytest.raises(InputError, match=r"layers: bad value.*expected paying, all"):
        davinci.quantize(chain(), [{}], layers="some")
