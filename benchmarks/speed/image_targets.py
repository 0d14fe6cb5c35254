"""Networks of images and their layers beside what is wanted of them, in one table.

    python benchmarks/speed/image_targets.py [PART ...] [--without-seconds]

Simulated without data, in mixed precision unless it says so; a PART of a row's name chooses rows.
Of the 310 is wanted what its boards took with the vendor's compiler, which computes in f16, of the
910 shares of its peak. Figures are those of the kernels, launches apart:

    ms, images/s    at the machine's clock
    x fp16          cycles in f16 by those of the network quantized with two random samples (int8)
    cube            multiply-accumulates that the network means, of those that all cores could do
    x bound         cycles of a layer's kernel by its bound (convolution.py)
    seconds         of the host, of a process with all that it loads; `compiling` of its compiler
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from convolution import Layer
from timed import timed, timed_network

import davinci
from davinci import zoo

Record = dict[str, Any]

LEAST = ("images/s", "cube", "x fp16")
"""Figures that should be large."""

INT8 = "int8"

SECONDS = ("seconds", "compiling")
"""Figures of the host."""


@dataclass(frozen=True)
class Row:
    """A figure that is wanted.

    Attributes:
        name: of a network of the zoo, of a layer, or arguments of npu-run.
        figure: one of those above, `launches` or `cycles`.
        wanted: at most, or at least if the figure should be large.
    """

    name: str
    machine: str
    cores: int
    figure: str
    wanted: float
    precision: str = "mixed"

    def good(self, found: float) -> bool:
        return found >= self.wanted if self.figure in LEAST else found <= self.wanted

    def found(self) -> float:
        """The figure."""
        if self.figure in SECONDS:
            return seconds(self.name)[self.figure]
        if self.figure == "x bound":
            cycles, bound = Layer.of(self.name, False).measured(self.machine, self.cores)
            return cycles / bound
        record = record_of(self.name, self.machine, self.cores, self.precision)
        if self.figure == "x fp16":
            halves = record_of(self.name, self.machine, self.cores, "fp16")
            return float(halves["total_cycles"] / record["total_cycles"])
        return of_record(record, self.figure, batch_of(self.name))

    @property
    def chosen_by(self) -> str:
        return f"{self.name} {self.machine} {self.figure} {self.precision}"


@cache
def record_of(network: str, machine: str, cores: int, precision: str) -> Record:
    """The record of a network of the zoo, run without data."""
    options: dict[str, Any] = {"machine": machine, "cores": cores}
    if precision == INT8:
        built = timed(quantized(network), "auto", **options)
    else:
        built = timed_network(network, precision=precision, **options)
    record: Record = built.profile
    return record


@cache
def quantized(network: str) -> Any:
    """A network of the zoo of bytes."""
    model = zoo.build(network)
    samples = [model.inputs(seed) for seed in range(2)]
    return davinci.quantize(model.proto, samples, layers="all").model


def of_record(record: Record, figure: str, batch: int) -> float:
    """A figure of a network that computes `batch` images."""
    cycles, hertz = float(record["total_cycles"]), record["clock_mhz"] * 1e6
    if figure == "launches":
        return float(record["ops"]["total"])
    if figure == "cycles":
        return cycles
    if figure == "ms":
        return cycles / hertz * 1e3
    if figure == "images/s":
        return batch / (cycles / hertz)
    assert figure == "cube", figure
    macs = sum(row["work"].get("macs", 0) * row["launches"] for row in record["kernels"])
    return float(macs / record["limits"]["macs_f16"] / cycles)


def batch_of(network: str) -> int:
    """Images that a network of the zoo computes at once."""
    options = dict(part.split("=") for part in network.split(",")[1:])
    return int(options.get("batch", 1))


@cache
def seconds(arguments: str) -> dict[str, float]:
    """Of a process of npu-run with these arguments, and of its compiler."""
    program = Path(sys.executable).parent / "npu-run"
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        command = [str(program), *arguments.split(), "--no-cache", "--json", str(record)]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken = time.monotonic() - began
        compiling = json.loads(record.read_text(encoding="utf-8"))["compile_seconds"]
    return {"seconds": taken, "compiling": compiling}


ROWS = (
    Row("resnet18", "ascend310", 2, "ms", 1.27),
    Row("resnet50", "ascend310", 2, "ms", 2.87),
    Row("resnet50", "ascend310", 2, "launches", 60),
    Row("vgg16", "ascend310", 2, "ms", 8.68),
    Row("vgg16", "ascend310", 2, "launches", 30),
    Row("mobilenet-v1", "ascend310", 2, "ms", 0.88),
    Row("mobilenet-v2", "ascend310", 2, "ms", 1.74),
    Row("inception-v3", "ascend310", 2, "ms", 3.46),
    Row("resnet18,batch=16", "ascend310", 2, "images/s", 1510),
    Row("vgg16,batch=16", "ascend310", 2, "images/s", 260),
    Row("resnet18,batch=16", "ascend310", 2, "images/s", 1510, "fp16"),
    Row("resnet50", "ascend910", 32, "cycles", 450_000),
    Row("resnet50", "ascend910", 32, "launches", 60),
    Row("resnet50,batch=16", "ascend910", 32, "cube", 0.45),
    Row("resnet50,batch=16", "ascend910", 32, "cube", 0.45, "fp16"),
    Row("resnet50", "ascend910", 1, "cube", 0.60),
    Row("resnet50", "ascend910", 1, "cube", 0.60, "fp16"),
    Row("resnet50,batch=16", "ascend910", 32, "x fp16", 1.6, INT8),
    Row("resnet50,batch=16", "ascend310", 2, "x fp16", 1.6, INT8),
    Row("64x56x56:256x1", "ascend910", 1, "x bound", 1.5),
    Row("64x56x56:64x3", "ascend910", 1, "x bound", 1.4),
    Row("3x224x224:64x7/2", "ascend910", 1, "x bound", 3.0),
    Row("zoo:resnet50 --check", "ascend910", 32, "seconds", 60),
    Row("zoo:resnet50 --timing-only", "ascend910", 32, "seconds", 20),
    Row("zoo:resnet50 --timing-only", "ascend910", 32, "compiling", 15),
    Row("zoo:resnet50 --timing-only --machine ascend310", "ascend310", 2, "compiling", 15),
)


def shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="of names of rows to measure")
    parser.add_argument("--without-seconds", action="store_true")
    options = parser.parse_args()
    print(f"{'':<50}{'machine':>10}{'cores':>6}  {'':<6}{'figure':<10}{'wanted':>12}{'found':>12}")
    missed = 0
    for row in ROWS:
        if options.without_seconds and row.figure in SECONDS:
            continue
        if options.parts and not any(part in row.chosen_by for part in options.parts):
            continue
        found = row.found()
        text = f"{row.name:<50}{row.machine:>10}{row.cores:>6}  {row.precision:<6}{row.figure:<10}"
        text += f"{shown(row.wanted):>12}{shown(found):>12}{'' if row.good(found) else '  missed'}"
        print(text, flush=True)
        missed += not row.good(found)
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
