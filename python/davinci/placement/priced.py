"""A network whose layers are priced on several devices: profiles, cuts and plans begin with it."""

from __future__ import annotations

import csv
import functools
import io
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from davinci.arrays import Arrays
from davinci.errors import InputError
from davinci.files import check_distinct, check_writable
from davinci.job import open_source
from davinci.placement import devices as device_files
from davinci.placement.costs import COLUMNS, LayerCost, LayerCosts
from davinci.placement.devices import DeviceFile, PlacementDevice
from davinci.placement.layers import LayeredNetwork, NetworkLayer, random_inputs_of
from davinci.placement.parts import PlacedParts
from davinci.placement.problem import NEVER, MovedTensor, Placement, PlacementProblem, PlacementTask
from davinci.reference import check

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PricedNetwork:
    """A network, devices, and what each layer takes on each of them.

    Attributes:
        name: of the model, as the caller gave it.
        network: its layers.
        devices: the devices, and the links between them.
        costs: of each layer on each device, as [layers][devices].
    """

    name: str
    network: LayeredNetwork
    devices: DeviceFile
    costs: list[list[LayerCost]]

    def of_device(self, number: int) -> list[LayerCost]:
        """The costs of all layers on one device."""
        return [row[number] for row in self.costs]

    @functools.cached_property
    def problem(self) -> PlacementProblem:
        """The layers as tasks to be placed, the values between them as tensors to be moved.

        Raises:
            InputError: see `PlacementProblem`; two devices are not linked.
        """
        network, devices = self.network, self.devices.devices
        tasks = tuple(
            PlacementTask(layer.name, tuple(cost.seconds for cost in row))
            for layer, row in zip(network.layers, self.costs, strict=True)
        )
        tensors = []
        for name, producer in network.makers.items():
            readers = tuple(i for i in network.readers.get(name, ()) if i != producer)
            if readers:
                count = network.values[name].nbytes
                moves = tuple(
                    tuple(self._move(a.name, b.name, count) for b in devices) for a in devices
                )
                tensors.append(MovedTensor(producer, readers, moves))
        return PlacementProblem(tuple(device.name for device in devices), tasks, tuple(tensors))

    def _move(self, source: str, target: str, count: int) -> float:
        if source == target:
            return 0.0
        link = self.devices.link(source, target)
        if link is None:
            raise InputError(
                "two devices are not linked",
                where="--devices",
                found=f"{source} and {target}",
                expected="a [[links]] entry with between = both",
            )
        return link.seconds(count)

    def require_energy(self) -> None:
        """Raises an `InputError` unless the energy of each layer is known on each device."""
        if any(c.joules is None and not c.reason for row in self.costs for c in row):
            raise InputError(
                "the power of a device is not known",
                where="--objective energy",
                hint="give idle_watts and active_watts in a .toml file, or joules in a table",
            )

    def layer_record(self, number: int) -> dict[str, Any]:
        """A layer, and what it takes on each device, as data."""
        layer: NetworkLayer = self.network.layers[number]
        return {
            "name": layer.name,
            "operators": list(layer.operators),
            "gflop": layer.flops * 1e-9,
            "read_bytes": layer.read_bytes,
            "write_bytes": layer.write_bytes,
            "devices": {
                device.name: {
                    "milliseconds": milliseconds(cost.seconds),
                    "joules": cost.joules,
                    "how": cost.how,
                    "reason": cost.reason,
                }
                for device, cost in zip(self.devices.devices, self.costs[number], strict=True)
            },
        }

    def record(self) -> dict[str, Any]:
        """The profile as data."""
        return {
            "schema_version": 1,
            "model": self.name,
            "devices": [device.model_dump() for device in self.devices.devices],
            "layers": [self.layer_record(i) for i in range(len(self.costs))],
        }

    def csv(self) -> str:
        """The profile as a table that `--devices NAME=F.csv` reads."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow((*COLUMNS, "joules"))
        for layer, row in zip(self.network.layers, self.costs, strict=True):
            for device, cost in zip(self.devices.devices, row, strict=True):
                joules = "" if cost.joules is None else repr(cost.joules)
                writer.writerow((layer.name, device.name, repr(cost.seconds), joules))
        return text.getvalue()

    def run(
        self,
        parts: Sequence[tuple[Sequence[int], PlacementDevice]],
        progress: Progress = lambda text: None,
    ) -> Arrays:
        """The network's outputs, each part computed on its device with data; see `PlacedParts`."""
        inputs = {name: self.network.values[name] for name in self.network.inputs}
        return PlacedParts(self.network, parts, progress).run(inputs)

    def run_plan(self, plan: Placement, progress: Progress = lambda text: None) -> Arrays:
        """The network's outputs, each layer computed where a plan puts it, in the order of their
        starts."""
        rank = {task: i for i, task in enumerate(plan.problem.order)}
        order = sorted(range(len(plan.devices)), key=lambda i: (plan.starts[i], rank[i]))
        devices = self.devices.devices
        return self.run([((layer,), devices[plan.devices[layer]]) for layer in order], progress)

    def compared(self, outputs: Arrays) -> dict[str, float]:
        """Errors of outputs against those that onnxruntime computes of the whole network."""
        wanted = {name: self.network.values[name] for name in self.network.results}
        return check.compare(outputs, wanted)

    def require_close(self, errors: dict[str, float]) -> None:
        """Raises a `CheckFailed` if errors are larger than the devices' precision allows."""
        precisions = {d.precision for d in self.devices.devices if d.kind == "simulated"}
        loosest = next((name for name in ("fp16", "mixed") if name in precisions), "fp32")
        check.require(errors, loosest)


def price(
    model: str,
    devices: DeviceFile,
    seed: int = 0,
    progress: Progress = lambda text: None,
    clock: Callable[[], float] = time.perf_counter,
) -> PricedNetwork:
    """Finds what each layer of a model takes on each device.

    Args:
        model: path of an ONNX file, or `zoo:NAME`.
        devices: on which the layers are simulated, measured or looked up.
        seed: of the random inputs.
        progress: called with what is about to be done.
        clock: see `LayerCosts`.

    Raises:
        InputError: the model has no layers, a table lacks one, or a device can run none of them.
    """
    network = open_network(model, seed)
    costs = LayerCosts(network, devices, progress, clock).all()
    priced = PricedNetwork(model, network, devices, costs)
    for number, device in enumerate(devices.devices):
        column = priced.of_device(number)
        if all(cost.seconds == NEVER for cost in column):
            raise InputError(
                f"device {device.name} can run no layer of the network",
                where="--devices",
                found=column[0].reason,
                hint="leave it out",
            )
    return priced


def open_network(model: str, seed: int) -> LayeredNetwork:
    """The layers of a model that is ONNX, with random inputs.

    Raises:
        InputError: it is not ONNX, or onnxruntime cannot run it.
    """
    source = open_source(model)
    proto = source.proto()
    if proto is None:
        raise InputError(
            "only ONNX models have layers to place", where=model, expected="an .onnx file or zoo:"
        )
    example = (
        random_inputs_of(proto, seed, model) if source.example is None else source.example(seed)
    )
    return LayeredNetwork(proto, example, model)


def devices_of(text: str, model: str, results: Iterable[str | None]) -> DeviceFile:
    """The devices that a command names, after its result files were found to be writable.

    Args:
        text: see `davinci.placement.devices.parse`.
        model: which no result may replace.
        results: paths of files that will be written; None for those that were not asked for.

    Raises:
        InputError: a file cannot be written, or see `parse`.
    """
    paths = [path for path in results if path is not None]
    for path in paths:
        check_writable(path)
    check_distinct(paths, [model])
    return device_files.parse(text)


def require_runnable(devices: DeviceFile, where: str, hint: str) -> None:
    """Raises an `InputError` if a device only says how long layers take."""
    for device in devices.devices:
        if device.kind == "table":
            raise InputError(
                "a table of latencies cannot run layers",
                where=where,
                found=device.name,
                hint=hint,
            )


def milliseconds(seconds: float) -> float | None:
    """Times of records; None where a device cannot run a layer."""
    return None if seconds == NEVER else seconds * 1e3
