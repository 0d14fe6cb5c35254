"""`davinci.quantize`: an ONNX model of floats as a QDQ model of 8-bit products."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
from onnx import version_converter

from davinci.errors import InputError, did_you_mean
from davinci.frontends.onnx import read
from davinci.frontends.onnx.model import check
from davinci.quantization.calibration import Sample, observe, samples_of
from davinci.quantization.comparison import ErrorSums, model_sums, twin_sums, values_of
from davinci.quantization.layers import array_of, constants_of, layers_of
from davinci.quantization.paying import chosen
from davinci.quantization.ranges import METHODS, scale_of
from davinci.quantization.records import Layer, LayerError, QuantizationPlan, Report
from davinci.quantization.weights import quantized_weight
from davinci.quantization.write import written

OPSET = 13
"""The first whose DequantizeLinear has scales for channels."""

CENTRAL = 0.9
"""Share of the values that stay where outliers are removed: MindSpore Lite's."""


LAYERS = ("paying", "all")
"""Which layers become integers: those that make the model faster, or all."""

HARM_SAMPLES = 8
"""Samples for which each layer is quantized alone, to see what it does to the outputs."""


@dataclass(frozen=True)
class Quantized:
    """A quantized model and what quantization cost.

    Attributes:
        model: The model with QuantizeLinear and DequantizeLinear, for `davinci.compile` and for
            onnxruntime.
        report: The errors of each layer and of the outputs.
    """

    model: onnx.ModelProto
    report: Report


def quantize(
    model: Any,
    calibration_data: Any,
    *,
    method: str = "max_min",
    central: float = CENTRAL,
    weight_correction: bool = True,
    bias_correction: bool = True,
    accuracy: float | None = None,
    layers: str = LAYERS[0],
    options: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Quantized:
    """Quantizes the products of a model that have constant weights to int8.

    Activations have one scale and zero point for a tensor, weights one scale for each output
    channel. onnxruntime runs the model on the data.

    Args:
        model: path of an `.onnx` file, or an `onnx.ModelProto`, of float32.
        calibration_data: samples that are like what the model will see, 100 are usual: an iterable
            of dicts of arrays by name, or the path of an `.npz` file of stacked arrays by name.
        method: of ranges of activations: "max_min" from the least to the largest value, "outliers"
            without the outer values, "kl" the range of least divergence.
        central: share of the values that "outliers" leaves, above 0 and at most 1.
        weight_correction: give channels of weights their mean and variance back.
        bias_correction: take the mean error of each channel off the bias.
        accuracy: least cosine of each output to that of the model of floats; as few layers as that
            takes stay in floats, those that harm outputs most. None to quantize all.
        layers: "paying" leaves those in floats without which the model takes less time, as it is
            compiled and timed without data; "all" asks nothing of times.
        options: arguments of `davinci.compile` with which it is timed: machine, cores, precision.
        progress: called with the name of each stage.

    Raises:
        InputError: not a model that can be quantized, data that do not fit, or a wrong option.
        CompileError: the model cannot be compiled, and so not be timed.
    """
    check_options(method, central, accuracy, layers)
    progress("reading the model")
    proto, where = opened(model)
    found_layers = layers_of(proto.graph)
    if not found_layers:
        raise InputError(
            "nothing to quantize",
            where=where,
            expected="Conv, Gemm or MatMul of float32 with constant weights",
            hint="a model with QuantizeLinear and DequantizeLinear compiles as it is",
        )
    samples = samples_of(calibration_data, proto)
    progress("calibrating")
    names = list(dict.fromkeys(layer.activation for layer in found_layers))
    seen = observe(proto, names, samples, counts=method != "max_min")
    constants = constants_of(proto.graph)
    plan = QuantizationPlan(
        layers=found_layers,
        scales={name: scale_of(seen[name], method, central) for name in names},
        weights={
            layer.name: quantized_weight(
                array_of(constants[layer.weight]), layer.axis, weight_correction
            )
            for layer in found_layers
        },
        shifts={},
    )
    progress("comparing layers")
    sums = twin_sums(proto, plan, samples)
    if bias_correction:
        plan = replace(plan, shifts={name: found.shifts for name, found in sums.items()})
    own = {layer: sums[layer.name].decibels(bias_correction) for layer in found_layers}
    if accuracy is not None:
        progress("choosing layers")
        plan = bounded(proto, plan, samples, accuracy)
    accurate, choice = frozenset(plan.layers), None
    if layers == LAYERS[0]:
        choice = chosen(proto, plan, options or {}, progress)
        plan = choice.plan
    progress("comparing models")
    result = written(proto, plan)
    outputs = [value.name for value in proto.graph.output]
    names = [*outputs, *(layer.output for layer in found_layers)]
    found = model_sums(values_of(proto, names, samples), result, names, samples)
    gains = {} if choice is None else choice.gains_us

    def error_of(layer: Layer) -> LayerError:
        kept, total = layer not in plan.layers, found[layer.output]
        return LayerError(
            layer=layer.name,
            operator=layer.operator,
            kept=kept,
            why="" if not kept else "time" if layer in accurate else "accuracy",
            gain_us=gains.get(layer.name),
            own_db=own[layer],
            total_db=total.decibels(),
            cosine=total.cosine,
        )

    report = Report(
        method=method,
        weight_correction=weight_correction,
        bias_correction=bias_correction,
        samples=len(samples),
        accuracy=accuracy,
        cosine=min(found[name].cosine for name in outputs),
        output_db=min(found[name].decibels() for name in outputs),
        layers=tuple(map(error_of, found_layers)),
        floats_time_us=None if choice is None else choice.floats_us,
        time_us=None if choice is None else choice.time_us,
    )
    return Quantized(result, report)


def check_options(method: str, central: float, accuracy: float | None, layers: str) -> None:
    for where, found, known in (("method", method, METHODS), ("layers", layers, LAYERS)):
        if found not in known:
            raise InputError(
                "no such method" if where == "method" else "bad value",
                where=where,
                found=repr(found),
                expected=", ".join(known),
                hint=did_you_mean(str(found), known),
            )
    for name, value in (("central", central), ("accuracy", accuracy)):
        if value is not None and not 0 < value <= 1:
            raise InputError(
                "bad value", where=name, found=repr(value), expected="above 0 and at most 1"
            )


def opened(model: Any) -> tuple[onnx.ModelProto, str]:
    """The model, of an operator set that has scales for channels, and what messages call it."""
    if isinstance(model, (str, os.PathLike)) and os.fspath(model).endswith(".onnx"):
        where = os.fspath(model)
        if not Path(where).is_file():
            raise InputError("no such file", where=where)
        proto = read(Path(where))
    elif isinstance(model, onnx.ModelProto):
        proto, where = model, model.graph.name or "<ModelProto>"
    else:
        found = os.fspath(model) if isinstance(model, (str, os.PathLike)) else type(model).__name__
        raise InputError(
            "only ONNX models are quantized",
            found=found,
            expected="the path of an .onnx file, or an onnx.ModelProto",
            hint="torch.onnx.export writes one",
        )
    check(proto, where)
    version = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), OPSET)
    if version >= OPSET:
        return proto, where
    try:
        return version_converter.convert_version(proto, OPSET), where
    except Exception as error:  # the converter's own have no common base
        raise InputError(
            f"the model cannot be brought to operator set {OPSET}: {error}",
            where=where,
            found=f"operator set {version}",
            hint="export it with a later one",
        ) from None


def bounded(
    model: onnx.ModelProto, plan: QuantizationPlan, samples: Sequence[Sample], accuracy: float
) -> QuantizationPlan:
    """The plan without the layers that harm outputs most: as few as a bisection finds."""
    outputs = [value.name for value in model.graph.output]
    wanted = list(values_of(model, outputs, samples))

    def errors(layers: Sequence[Layer], count: int) -> list[ErrorSums]:
        """Errors of each output over the first `count` samples, with these layers as integers."""
        quantized = written(model, replace(plan, layers=tuple(layers)))
        found = model_sums(wanted[:count], quantized, outputs, samples[:count])
        return list(found.values())

    def holds(layers: Sequence[Layer]) -> bool:
        return min(sums.cosine for sums in errors(layers, len(samples))) >= accuracy

    if holds(plan.layers):
        return plan
    # Errors of layers are independent and add up: each is tried alone.
    harm = {
        layer: min(sums.decibels() for sums in errors([layer], HARM_SAMPLES))
        for layer in plan.layers
    }
    worst = sorted(plan.layers, key=harm.__getitem__)

    def without(count: int) -> tuple[Layer, ...]:
        left = set(worst[:count])
        return tuple(layer for layer in plan.layers if layer not in left)

    few, enough = 0, len(worst)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if holds(without(middle)) else (middle, enough)
    return replace(plan, layers=without(enough))
