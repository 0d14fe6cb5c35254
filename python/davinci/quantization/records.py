"""What is known of a model that is quantized: plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """A product with a constant operand: a node of the graph.

    Attributes:
        node: its place in the graph.
        name: of the node, or operator and place.
        operator: `Conv`, `Gemm` or `MatMul`.
        activation, weight: names of its operands.
        axis: of the weight, the one of output channels.
        product: name of its result.
        channels: the axis of the result that `axis` becomes, from the end.
        bias: name of the constant of one number for each channel that is added, or "".
        adder: place of the node that adds it: the product itself or the `Add` behind it.
        output: name of the result with the bias.
    """

    node: int
    name: str
    operator: str
    activation: str
    weight: str
    axis: int
    product: str
    channels: int
    bias: str
    adder: int
    output: str


@dataclass(frozen=True)
class Observed:
    """Values that a tensor took for the calibration data.

    Attributes:
        low, high: the least and the largest; 0 is between them or one of them.
        counts: of values other than 0, in equal parts of low..high; empty if they were not counted.
        zeros: values that are 0.
    """

    low: float
    high: float
    counts: Array
    zeros: int = 0


@dataclass(frozen=True)
class Scale:
    """Floats as int8: (integer - zero) * scale."""

    scale: float
    zero: int


@dataclass(frozen=True)
class QuantizedWeight:
    """A weight as int8, symmetric: integers * scales along the axis of output channels."""

    integers: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]


@dataclass(frozen=True)
class QuantizationPlan:
    """How a model is quantized.

    Attributes:
        layers: the products that become 8-bit ones.
        scales: of activations, by name; more of them than the layers need do no harm.
        weights: by name of the layer.
        shifts: what the result of a layer is too large by, on average, for each channel; by name of
            the layer, none where biases are not corrected.
    """

    layers: tuple[Layer, ...]
    scales: Mapping[str, Scale]
    weights: Mapping[str, QuantizedWeight]
    shifts: Mapping[str, Array]


@dataclass(frozen=True)
class LayerError:
    """What quantization does to the result of a layer, its bias included.

    Attributes:
        layer: The name of its node.
        operator: The kind of its node: `Conv`, `Gemm` or `MatMul`.
        kept: Whether it stays in floats.
        why: The reason that it does: the "accuracy" that was asked for, or the "time" of the model;
            "" if it does not.
        gain_us: The microseconds that it and what reads the same bytes take less than as floats;
            None if they were not compared.
        own_db: The ratio of signal to noise, in decibels, of the layer alone in integers, on
            operands that the model of floats computed.
        total_db: The same in the quantized model, where its operands have errors too.
        cosine: The cosine of the angle between its results in the two models.
    """

    layer: str
    operator: str
    kept: bool
    why: str
    gain_us: float | None
    own_db: float
    total_db: float
    cosine: float


@dataclass(frozen=True)
class Report:
    """What was done, and what it costs, over the calibration data.

    Attributes:
        method: How ranges of activations were chosen.
        weight_correction: Whether weights were corrected.
        bias_correction: Whether biases were corrected.
        samples: The number of samples of the calibration data.
        accuracy: The least cosine that was asked for, or None.
        cosine: The least cosine of a float output to that of the model of floats.
        output_db: The least ratio of signal to noise of a float output, in decibels.
        layers: The errors of each layer, in the order of the graph.
        floats_time_us: The time of the model of floats, without data; None if it was not timed.
        time_us: That of the quantized model.
    """

    method: str
    weight_correction: bool
    bias_correction: bool
    samples: int
    accuracy: float | None
    cosine: float
    output_db: float
    layers: tuple[LayerError, ...]
    floats_time_us: float | None = None
    time_us: float | None = None

    @property
    def kept(self) -> tuple[LayerError, ...]:
        """Layers left in floats, which the machine computes in fp16."""
        return tuple(layer for layer in self.layers if layer.kept)

    def record(self) -> dict[str, Any]:
        """For the record of a run, in JSON's types."""
        return dataclasses.asdict(self)
