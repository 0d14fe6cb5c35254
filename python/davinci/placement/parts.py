"""Networks in parts, each on its device: compiled or opened once, and run with data."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnxruntime

from davinci.arrays import Arrays
from davinci.compiler import Progress
from davinci.errors import InputError
from davinci.placement.costs import executable_of, session_of
from davinci.placement.devices import PlacementDevice
from davinci.placement.layers import LayeredNetwork
from davinci.runtime.executable import Executable


class PlacedParts:
    """A network whose layers run in some order on several devices.

    Args:
        network: whose layers these are.
        parts: numbers of layers and the device that runs them, in an order in which each part
            reads only what earlier ones made.

    Raises:
        InputError: a device is a table, which says how long layers take and cannot run them.
        CompileError: a simulated device cannot run a part.
    """

    def __init__(
        self,
        network: LayeredNetwork,
        parts: Sequence[tuple[Sequence[int], PlacementDevice]],
        progress: Progress = lambda text: None,
    ) -> None:
        self.network = network
        self._runners: list[tuple[onnx.ModelProto, Executable | onnxruntime.InferenceSession]] = []
        for layers, device in parts:
            if not layers:
                continue
            if device.kind == "table":
                raise InputError(
                    "a table of latencies cannot run layers", where="--devices", found=device.name
                )
            progress(f"compiling {network.layers[layers[0]].name} for {device.name}")
            model = network.part(sorted(layers))
            host = device.kind == "host"
            runner = (
                session_of(model, device.threads)
                if host
                else executable_of(model, device, timing_only=False)
            )
            self._runners.append((model, runner))

    def run(self, inputs: Arrays) -> Arrays:
        """The network's outputs; values cross between parts as arrays."""
        known: Arrays = dict(inputs)
        for model, runner in self._runners:
            given = {value.name: known[value.name] for value in model.graph.input}
            if isinstance(runner, Executable):
                made = runner.run(given)
            else:
                names = [value.name for value in model.graph.output]
                made = dict(zip(names, runner.run(names, given), strict=True))
            known |= made
        results = self.network.results
        return {name: known.get(name, self.network.values[name]) for name in results}
