"""Costs of layers on devices: simulated, measured on this machine's processor, or looked up."""

from __future__ import annotations

import csv
import hashlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from davinci.arrays import Arrays
from davinci.compiler import Progress, compile
from davinci.errors import CompileError, DeviceFault, InputError, did_you_mean
from davinci.placement.devices import DeviceFile, PlacementDevice
from davinci.placement.layers import LayeredNetwork
from davinci.placement.problem import NEVER
from davinci.runtime.executable import Executable

INTERVAL_SECONDS = 0.05
"""How long a layer is repeated at least on the host: the interval of the sampler in the source,
whose protocol repeats layers that are shorter."""

WARM_UP, LEAST_RUNS = 2, 3

COLUMNS = ("layer", "device", "seconds")
"""Columns that a table of latencies has to have; `joules` is optional."""


@dataclass(frozen=True)
class LayerCost:
    """Time and energy of a layer on a device.

    Attributes:
        seconds: `NEVER` where it cannot run.
        joules: above what the device takes while it waits; None where that is not known.
        how: "simulated", "measured" or "table".
        reason: why it cannot run.
    """

    seconds: float
    joules: float | None
    how: str
    reason: str = ""


Table = dict[tuple[str, str], tuple[float, float | None]]
"""Seconds and joules by names of layer and device."""


class LayerCosts:
    """Costs of a network's layers on devices, each found once.

    Layers that are equal but for names and weights' values take the same time on a device, and are
    simulated or measured once.

    Args:
        network: whose layers are priced.
        devices: on which.
        progress: called with what is about to be done.
        clock: seconds by which the host's layers are timed; `time.process_time` counts this process
            alone, where a device has one thread and others keep the processor busy.
    """

    def __init__(
        self,
        network: LayeredNetwork,
        devices: DeviceFile,
        progress: Progress = lambda text: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.network, self.devices = network, devices
        self.progress, self.clock = progress, clock
        self._found: dict[tuple[str, str], LayerCost] = {}
        self._tables: dict[str, Table] = {}
        for device in devices.devices:
            if device.kind == "table":
                self._tables[device.name] = read_table(device.table)
                self._check_table(device)

    def _check_table(self, device: PlacementDevice) -> None:
        table = self._tables[device.name]
        others = sorted({of for _, of in table})
        if device.name not in others:
            raise InputError(
                f"no rows of a device {device.name!r}",
                where=device.table,
                found=f"devices {', '.join(others)}" if others else "an empty table",
                hint=f"name one of them: {others[0]}={device.table}" if others else "",
            )
        for layer in self.network.layers:
            if (layer.name, device.name) not in table:
                names = sorted({name for name, of in table if of == device.name})
                raise InputError(
                    f"no row for layer {layer.name!r} on {device.name}",
                    where=device.table,
                    hint=did_you_mean(layer.name, names)
                    or "add it, with seconds = inf where the device cannot run it",
                )

    def cost(self, layer: int, device: PlacementDevice) -> LayerCost:
        """Returns time and energy of a layer on a device."""
        name = self.network.layers[layer].name
        if device.kind == "table":
            seconds, joules = self._tables[device.name][name, device.name]
            if joules is None and device.power is not None and seconds != NEVER:
                joules = device.power.watts * seconds
            return LayerCost(
                seconds, joules, "table", "" if seconds != NEVER else "the table says so"
            )
        self.progress(f"{name} on {device.name}")
        part = self.network.part([layer])
        unit = device.model_copy(update={"name": "", "power": None})
        key = (likeness(part), unit.model_dump_json())
        if key not in self._found:
            self._found[key] = (
                measured(part, self._inputs(part), device.threads, self.clock)
                if device.kind == "host"
                else simulated(part, device)
            )
        return self._with_energy(device, self._found[key])

    def _inputs(self, part: onnx.ModelProto) -> Arrays:
        return {value.name: self.network.values[value.name] for value in part.graph.input}

    @staticmethod
    def _with_energy(device: PlacementDevice, cost: LayerCost) -> LayerCost:
        if device.power is None or cost.seconds == NEVER:
            return cost
        return replace(cost, joules=device.power.watts * cost.seconds)

    def all(self) -> list[list[LayerCost]]:
        """Costs as [layers][devices]."""
        return [
            [self.cost(i, device) for device in self.devices.devices]
            for i in range(len(self.network.layers))
        ]


def simulated(part: onnx.ModelProto, device: PlacementDevice) -> LayerCost:
    """A layer compiled for a device and simulated once, launches included."""
    try:
        executable = executable_of(part, device, timing_only=True)
        executable.run()
    except (CompileError, DeviceFault) as error:
        return LayerCost(NEVER, None, "simulated", error.message)
    return LayerCost(float(executable.profile["time_us"]) * 1e-6, None, "simulated")


def executable_of(part: onnx.ModelProto, device: PlacementDevice, timing_only: bool) -> Executable:
    """A part of a network compiled for a simulated device."""
    return compile(
        part,
        machine=device.machine,
        cores=device.cores,
        precision=device.precision,
        timing_only=timing_only,
    )


def session_of(part: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    """A part of a network as onnxruntime runs it on this machine's processor."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        part.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def measured(
    part: onnx.ModelProto,
    inputs: Arrays,
    threads: int,
    clock: Callable[[], float] = time.perf_counter,
) -> LayerCost:
    """A layer on this machine's processor: warmed up, then repeated until the interval is full; the
    median of all runs."""
    try:
        session = session_of(part, threads)
        for _ in range(WARM_UP):
            session.run(None, inputs)
    except Exception as error:  # onnxruntime's errors have no common class of their own
        return LayerCost(NEVER, None, "measured", " ".join(str(error).split())[:200])
    times: list[float] = []
    while sum(times) < INTERVAL_SECONDS or len(times) < LEAST_RUNS:
        began = clock()
        session.run(None, inputs)
        times.append(clock() - began)
    return LayerCost(statistics.median(times), None, "measured")


def likeness(part: onnx.ModelProto) -> str:
    """A digest of what a part computes, but for names and the values of large weights."""
    copy = onnx.ModelProto()
    copy.CopyFrom(part)
    numbers: dict[str, str] = {"": ""}

    def number(name: str) -> str:
        return numbers.setdefault(name, f"v{len(numbers)}")

    for value in (*copy.graph.input, *copy.graph.output):
        value.name = number(value.name)
    if any(a.HasField("g") for node in copy.graph.node for a in node.attribute):
        return hashlib.sha256(part.SerializeToString()).hexdigest()
    for node in copy.graph.node:
        node.input[:] = [number(name) for name in node.input]
        node.output[:] = [number(name) for name in node.output]
        node.name = ""
    for tensor in copy.graph.initializer:
        tensor.name = number(tensor.name)
        if int(np.prod(tensor.dims)) > SMALL:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    return hashlib.sha256(copy.SerializeToString(deterministic=True)).hexdigest()


SMALL = 64
"""Elements up to which a weight may be a shape or a number that decides what is computed."""


def read_table(path: str) -> Table:
    """Latencies of layers that were measured elsewhere.

    Args:
        path: of a CSV file with the columns layer, device, seconds and, if known, joules; `inf`
            seconds where a device cannot run a layer.

    Raises:
        InputError: the file cannot be read, a column is missing, or a number is none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text in UTF-8"
        raise InputError(f"cannot read the table: {reason}", where=path) from None
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise InputError(
            f"there is no column {missing[0]}",
            where=f"{path}:1",
            found=",".join(rows.fieldnames or ()) or "an empty file",
            expected=",".join(COLUMNS),
        )
    table: Table = {}
    for row in rows:
        where = f"{path}:{rows.line_num}"
        seconds = _number(row["seconds"], where)
        joules = _number(row["joules"], where) if row.get("joules") else None
        table[(row["layer"] or "").strip(), (row["device"] or "").strip()] = (seconds, joules)
    return table


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise InputError(
            "not a time or energy", where=where, found=repr(text or ""), expected="0 or more"
        )
    return value
