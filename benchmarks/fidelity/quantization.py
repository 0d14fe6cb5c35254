"""What quantization costs networks of the zoo, for each method of ranges and each correction.

    python benchmarks/fidelity/quantization.py

Writes the tables of docs/quantization.md, in a few minutes. Weights are random, so there is no
accuracy of a task: errors are those of outputs against the model of floats, on data that were not
used for calibration.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import davinci
from davinci import zoo
from davinci.quantization.comparison import model_sums, values_of

PAGE = Path(__file__).parents[2] / "docs" / "quantization.md"
MARK = "<!-- benchmarks/fidelity/quantization.py writes what follows -->\n"

CALIBRATED, HELD_OUT = 32, 16
"""Samples that ranges and corrections come from, and samples that errors are measured on."""

METHODS = (("max_min", 0.9), ("outliers", 0.9), ("outliers", 0.9999), ("kl", 0.9))
CORRECTIONS = {
    "none": (False, False),
    "weights": (True, False),
    "biases": (False, True),
    "both": (True, True),
}
BOUNDS = (0.9995, 0.9999, 0.99999)

SPIKE_SHARE, SPIKE = 2e-5, 30.0
"""In the data with outliers: share of the pixels that are wrong, and what they are."""


@dataclass(frozen=True)
class Case:
    """A network and what it is calibrated with."""

    title: str
    network: str
    spikes: bool = False


CASES = (
    Case("ResNet-18, 224 x 224, pixels N(0, 1)", "resnet18"),
    Case("ResNet-50, 224 x 224, pixels N(0, 1)", "resnet50"),
    Case("BERT, 2 layers of 768, 128 tokens", "bert,layers=2,hidden=768,heads=12,seq=128"),
    Case(
        f"ResNet-18, as above, but {SPIKE_SHARE:.3%} of the pixels of the calibration data are "
        f"{SPIKE:g} or -{SPIKE:g}",
        "resnet18",
        spikes=True,
    ),
)


def samples_of(model: Any, first: int, count: int, spikes: bool) -> list[dict[str, Any]]:
    samples = [model.inputs(seed) for seed in range(first, first + count)]
    rng = np.random.default_rng(first)
    for sample in samples if spikes else ():
        wrong = rng.random(sample["x"].shape) < SPIKE_SHARE
        sample["x"] = np.where(wrong, np.sign(sample["x"]) * np.float32(SPIKE), sample["x"])
    return samples


def cases_page() -> Iterator[str]:
    for case in CASES:
        model = zoo.build(case.network)
        data = samples_of(model, 1, CALIBRATED, case.spikes)
        others = samples_of(model, 1001, HELD_OUT, False)
        names = [value.name for value in model.proto.graph.output]
        wanted = list(values_of(model.proto, names, others))
        yield f"\n### {case.title}\n\n"
        yield "| ranges | " + " | ".join(CORRECTIONS) + " |\n|---|" + "---:|" * len(CORRECTIONS)
        for method, central in METHODS:
            cells = []
            for weights, biases in CORRECTIONS.values():
                made = davinci.quantize(
                    model.proto,
                    data,
                    method=method,
                    central=central,
                    weight_correction=weights,
                    bias_correction=biases,
                    layers="all",
                )
                sums = model_sums(wanted, made.model, names, others).values()
                worst = min(sums, key=lambda found: found.decibels())
                cells.append(f"{worst.relative:.2%} ({worst.decibels():.1f} dB)")
            share = f", the central {central:.2%}" if method == "outliers" else ""
            yield f"\n| {method}{share} | {' | '.join(cells)} |"
            print(case.network, method, central, *cells, flush=True)
        yield "\n"
        if not case.spikes:
            yield from bounds_table(model, data)


def bounds_table(model: Any, data: list[dict[str, Any]]) -> Iterator[str]:
    yield "\n| least cosine | layers in int8 | left in fp16 | cosine |\n|---:|---:|---:|---:|\n"
    for bound in BOUNDS:
        report = davinci.quantize(model.proto, data, accuracy=bound, layers="all").report
        kept = len(report.kept)
        yield f"| {bound} | {len(report.layers) - kept} | {kept} | {report.cosine:.6f} |\n"
        print(model.spec, bound, kept, report.cosine, flush=True)


def main() -> int:
    argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0]).parse_args()
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(head + mark + "".join(cases_page()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
