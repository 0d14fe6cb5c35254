"""Layers of a decode step of language models, against what the memory needs for them.

    python benchmarks/speed/decode_steps.py [MODEL ...] [--machine NAME] [--layers N]

One layer, N of them, or with `--layers 0` all that the model has. The bound is what the memory
takes for the weights of the layers and the keys and values before the token, in f16. The cache is a
state in f16 with room for the new token, which is written in place; with `--copied` it is an input
and an output in f32, as networks without states have it, which are joined with the new token by a
copy, and the bound leaves that out. Nothing is computed: times only. The product with the
vocabulary is no part of the layers.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import davinci
from davinci import zoo
from davinci.machine import Machine, load
from davinci.report.names import plural

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


def line(model: Model, machine: str, layers: int, kept: bool) -> str:
    """The figures of some layers."""
    network = zoo.find(model.network(layers, kept))
    executable = davinci.compile(network, machine=machine, timing_only=True)
    executable.run()
    record = executable.profile
    bound = bound_us(record, model, layers, load(machine))
    found = record["time_us"]
    kernels = record["total_cycles"] / record["clock_mhz"]
    wanted = model.wanted * layers if model.wanted is not None else SHARE * bound
    return (
        f"{model.name:14} {plural(layers, 'layer', 'layers')} {found:8.1f} us in "
        f"{plural(record['launches'], 'launch', 'launches')}, kernels {kernels:.1f} us, bound "
        f"{bound:.1f} us ({found / bound:.2f}, kernels {kernels / bound:.2f}), wanted "
        f"{wanted:.0f} us"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("models", nargs="*", help=", ".join(model.name for model in MODELS))
    parser.add_argument("--machine", default="ascend910b")
    parser.add_argument("--layers", type=int, default=1, help="how many; 0: all of the model")
    parser.add_argument("--copied", action="store_true", help="copy the cache, in f32")
    options = parser.parse_args()
    unknown = set(options.models) - {model.name for model in MODELS}
    if unknown:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}")
    for model in MODELS:
        if not options.models or model.name in options.models:
            layers = options.layers or model.layers
            print(line(model, options.machine, layers, not options.copied), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
