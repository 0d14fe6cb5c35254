"""Which layers are worth making of bytes: those with which the model takes less time.

Bytes are multiplied in half the time of f16 and take half of the memory's, but what brings a layer
its bytes and makes floats of its sums may cost more than that. It depends on what each has beside
it, so nothing is said of layers alone: the model of floats and the one of bytes are compiled and
timed without data, and layers that read the same bytes are compared, with what makes these. What is
left is timed again; of all that was timed the fastest is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx

from davinci import compiler
from davinci.frontends.onnx.errors import name_of
from davinci.quantization.records import Layer, QuantizationPlan
from davinci.quantization.write import written

ROUNDS = 3
"""How often layers are left out before what was timed has to do."""


@dataclass(frozen=True)
class Timed:
    """A model that was timed.

    Attributes:
        time_us: of all launches, with what it takes to launch them.
        launches: microseconds of each, to the beginning of the next one, and the nodes it computes.
    """

    time_us: float
    launches: tuple[tuple[float, frozenset[str]], ...]

    def with_any(self, nodes: frozenset[str]) -> list[tuple[float, frozenset[str]]]:
        """The launches that compute any of these nodes."""
        return [launch for launch in self.launches if launch[1] & nodes]


@dataclass(frozen=True)
class PayingLayers:
    """Layers that are worth it.

    Attributes:
        plan: with these layers.
        gains_us: by name of a layer, microseconds that it and those that read the same bytes take
            less than as floats.
        floats_us: time of the model of floats.
        time_us: time of the model with the layers of the plan.
    """

    plan: QuantizationPlan
    gains_us: Mapping[str, float]
    floats_us: float
    time_us: float


def timed(model: onnx.ModelProto, options: Mapping[str, Any]) -> Timed:
    """Compiles and times a model without data; `options` are those of `davinci.compile`.

    Schedules that are among them are for another model, and left out.
    """
    others = {name: value for name, value in options.items() if name != "schedules"}
    executable = compiler.compile(model, **{**others, "timing_only": True})
    executable.run()
    record = executable.profile
    rows, end = record["launches_list"], record["time_us"]
    starts = [row["start_us"] for row in rows]
    lengths = (b - a for a, b in zip([0.0, *starts[1:]], [*starts[1:], end], strict=True))
    names = (frozenset(row["operators"]) for row in rows)
    return Timed(end, tuple(zip(lengths, names, strict=True)))


def chosen(
    model: onnx.ModelProto,
    plan: QuantizationPlan,
    options: Mapping[str, Any],
    progress: Callable[[str], None],
) -> PayingLayers:
    """The plan without layers that do not pay.

    Raises:
        CompileError: the model cannot be compiled.
    """
    model = with_names(model)
    progress("timing the model of floats")
    floats = timed(model, options)
    gains: dict[str, float] = {}
    tried = [PayingLayers(replace(plan, layers=()), gains, floats.time_us, floats.time_us)]
    for _ in range(ROUNDS):
        if not plan.layers:
            break
        progress("timing the model of bytes")
        bytes_ = timed(written(model, plan), options)
        tried.append(PayingLayers(plan, gains, floats.time_us, bytes_.time_us))
        found = gains_of(plan.layers, floats, bytes_)
        gains |= found
        kept = tuple(layer for layer in plan.layers if found[layer.name] > 0)
        if len(kept) == len(plan.layers):
            break
        plan = replace(plan, layers=kept)
    return min(tried, key=lambda choice: (choice.time_us, -len(choice.plan.layers)))


def with_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model whose nodes all have names: those that messages give them, which else change where
    nodes are put between them."""
    if all(node.name for node in model.graph.node):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for place, node in enumerate(copy.graph.node):
        node.name = name_of(node, place)
    return copy


def gains_of(layers: Sequence[Layer], floats: Timed, bytes_: Timed) -> dict[str, float]:
    """Microseconds that layers take less as bytes, by name; those that read the same are one.

    Launches of layers count for these; others, in which a value becomes bytes, for its readers,
    less what the launches take in which the same nodes are computed of floats.
    """
    products = frozenset(layer.name for layer in layers)
    found: dict[str, float] = {}
    for value in dict.fromkeys(layer.activation for layer in layers):
        readers = frozenset(layer.name for layer in layers if layer.activation == value)
        made = bytes_.with_any(frozenset([f"{value}_quantized", f"{value}_dequantized"]))
        apart = [launch for launch in made if not launch[1] & products]
        beside = frozenset[str]().union(*(nodes for _, nodes in apart))
        before = [x for x in floats.with_any(beside) if not x[1] & products]
        gain = sum(us for us, _ in (*floats.with_any(readers), *before))
        gain -= sum(us for us, _ in (*bytes_.with_any(readers), *apart))
        found |= dict.fromkeys(readers, gain)
    return found
