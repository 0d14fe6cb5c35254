"""Layers of a decode step of language models, against what the memory needs for them.

    python benchmarks/speed/decode_steps.py [MODEL ...] [--machine NAME] [--layers N] [--write]

One layer, N of them, or with `--layers 0` all that the model has. The bound is what the memory
takes for the weights of the layers and the keys and values before the token, in f16. The cache is a
state in f16 with room for the new token, which is written in place; with `--copied` it is an input
and an output in f32, as networks without states have it, which are joined with the new token by a
copy, and the bound leaves that out. Nothing is computed: times only. The product with the
vocabulary is no part of the layers. --write puts a table of all models, a layer with a copied cache
and one with a cache in place of each and all layers of the smallest, into docs/souffle.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from page_section import put_section

import davinci
from davinci import zoo
from davinci.machine import Machine, load
from davinci.report.names import plural

PAGE = Path(__file__).resolve().parents[2] / "docs" / "souffle.md"
HALF_BYTES = 2


@dataclass(frozen=True)
class Model:
    """A model, by the sizes of a layer.

    Attributes:
        wanted: microseconds that a layer may take; None for 1.28 times the bound.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    past: int
    batch: int = 1
    wanted: float | None = None

    def network(self, layers: int, kept: bool) -> str:
        """Layers in the zoo, with caches that are written in place or ones that are copied."""
        sizes = ("hidden", "heads", "kv_heads", "intermediate", "past", "batch")
        given = (f"{x}={getattr(self, x)}" for x in sizes)
        return ",".join(["llama", f"layers={layers}", "seq=1", *given, f"kept={int(kept)}"])

    @property
    def cache_bytes(self) -> int:
        """Keys and values of a layer in f16."""
        head = self.hidden // self.heads
        return 2 * self.batch * self.kv_heads * self.past * head * HALF_BYTES


MODELS = (
    Model("llama-3.2-1b", 16, 2048, 32, 8, 8192, 2047),
    Model("llama-2-7b", 32, 4096, 32, 32, 11008, 2047),
    Model("qwen3-14b", 40, 5120, 40, 8, 17408, 3349, batch=16, wanted=640.0),
)
SHARE = 1.28
"""Times the memory's bound that a layer may take at batch 1."""


def bound_us(record: dict[str, Any], model: Model, layers: int, machine: Machine) -> float:
    """Microseconds in which the memory gives the weights and the caches to all cores."""
    size = record["memory"]["weights_bytes"] + layers * model.cache_bytes
    return float(size / (machine.cores * machine.gm.read_bytes_per_cycle) / machine.clock_mhz)


@dataclass(frozen=True)
class Measured:
    """Some layers of a model as they ran; times in microseconds.

    Attributes:
        kept: whether the cache is written in place.
        kernels: time of the kernels, without launches.
        wanted: the most that they may take.
    """

    name: str
    layers: int
    kept: bool
    launches: int
    time: float
    kernels: float
    bound: float
    wanted: float

    def __str__(self) -> str:
        return (
            f"{self.name:14} {plural(self.layers, 'layer', 'layers')} {self.time:8.1f} us in "
            f"{plural(self.launches, 'launch', 'launches')}, kernels {self.kernels:.1f} us, bound "
            f"{self.bound:.1f} us ({self.time / self.bound:.2f}, kernels "
            f"{self.kernels / self.bound:.2f}), wanted {self.wanted:.0f} us"
        )

    @property
    def row(self) -> str:
        """The row of the page's table for these layers."""
        cache = "in place" if self.kept else "copied"
        return (
            f"| {self.name} | {self.layers} | {cache} | {self.launches} | {self.time:,.1f} "
            f"| {self.kernels:,.1f} | {self.bound:,.1f} | {self.time / self.bound:.2f} "
            f"| {self.wanted:,.0f} |"
        )


HEAD = (
    "| model | layers | cache | launches | us | kernels, us | bound, us | times the bound "
    "| wanted, us |\n|---|---:|---|---:|---:|---:|---:|---:|---:|"
)


def measured(model: Model, machine: str, layers: int, kept: bool) -> Measured:
    """Runs some layers of a model."""
    network = zoo.find(model.network(layers, kept))
    executable = davinci.compile(network, machine=machine, timing_only=True)
    executable.run()
    record = executable.profile
    bound = bound_us(record, model, layers, load(machine))
    return Measured(
        model.name,
        layers,
        kept,
        record["launches"],
        record["time_us"],
        record["total_cycles"] / record["clock_mhz"],
        bound,
        model.wanted * layers if model.wanted is not None else SHARE * bound,
    )


def all_rows(machine: str) -> Iterator[str]:
    """The rows of the page."""
    smallest = min(MODELS, key=lambda model: model.layers * model.hidden)
    for model in MODELS:
        counts = [(1, False), (1, True), *([(model.layers, True)] if model is smallest else [])]
        for layers, kept in counts:
            found = measured(model, machine, layers, kept)
            print(found, flush=True)
            yield found.row


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("models", nargs="*", help=", ".join(model.name for model in MODELS))
    parser.add_argument("--machine", default="ascend910b")
    parser.add_argument("--layers", type=int, default=1, help="how many; 0: all of the model")
    parser.add_argument("--copied", action="store_true", help="copy the cache, in f32")
    parser.add_argument("--write", action="store_true", help="write the section of the page")
    options = parser.parse_args()
    if options.write:
        put_section(PAGE, "decode steps", "\n".join([HEAD, *all_rows(options.machine)]))
        return 0
    unknown = set(options.models) - {model.name for model in MODELS}
    if unknown:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}")
    for model in MODELS:
        if not options.models or model.name in options.models:
            layers = options.layers or model.layers
            print(measured(model, options.machine, layers, not options.copied), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
