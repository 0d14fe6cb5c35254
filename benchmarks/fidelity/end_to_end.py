"""Networks of the zoo on simulated chips beside those that others have measured on boards.

    python benchmarks/fidelity/end_to_end.py

Writes docs/end-to-end.md. Compiler and simulator are judged together. Takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))

from timed import timed_network

PAGE = Path(__file__).parents[2] / "docs" / "end-to-end.md"


@dataclass(frozen=True)
class Anchor:
    """A measured network: images or sequences a second of one chip, vendor's compiler, f16."""

    machine: str
    title: str
    network: str
    batch: int
    measured: float


ANCHORS = [
    Anchor("ascend310", "ResNet-18", "resnet18", 1, 788),
    Anchor("ascend310", "VGG16", "vgg16", 1, 115),
    Anchor("ascend310", "MobileNetV1", "mobilenet-v1", 1, 1138),
    Anchor("ascend310", "ResNet-50 (Paddle-Lite, host call in it)", "resnet50", 1, 1000 / 2.87),
    Anchor("ascend310", "MobileNetV2 (the same)", "mobilenet-v2", 1, 1000 / 1.74),
    Anchor("ascend310", "InceptionV3 (the same)", "inception-v3", 1, 1000 / 3.46),
    Anchor("ascend310p", "ResNet-18", "resnet18", 1, 2865),
    Anchor("ascend310p", "MobileNetV2", "mobilenet-v2,batch=4", 4, 7072),
    Anchor("ascend310p", "BERT-base, length 128", "bert-base,seq=128", 1, 484),
    Anchor("ascend310p", "BERT-base, length 512", "bert-base,seq=512", 1, 178),
]

INTRODUCTION = """\
# Networks end to end

Made by `benchmarks/fidelity/end_to_end.py`; do not edit. Images or sequences a second of one chip:
measured on boards with the vendor's compiler (f16, graph on the device; where it says so the
latency of another runtime, with a host call and copies of 0.24 to 0.75 ms), and simulated: this
compiler's program with `--precision mixed`, each kernel on all cores that it has work for
(`--core-choice all`), without data, one queued graph. Compiler and simulator
are judged together: a row may be right because both are wrong.
"""

HEADER = """
| machine | network | batch | measured, 1/s | simulated, 1/s | ratio | kernels, us | launching, us \
| launches |
|---|---|---:|---:|---:|---:|---:|---:|---:|
"""

REASONS = """
## What makes the difference

* Launches: what a queued task costs is the 910B's (`docs/hardware.md` b3); for the 310 and 310P no
  figure is public. The table says how much of the time it is: with 8 cores, where kernels are
  short, up to 45 %.
* Precision: boards compute in f16; `mixed` sums in f32 and keeps some values between kernels in it.
* The 310's 680 MHz follow from its peak, and 51.2 GB/s are what its memory has, not what it gives.
  The 310P has 7 vector cores beside its 8 AI cores, which are left out.
* InceptionV3 has 114 kernels here, a quarter of its time is launching them. How many the vendor's
  compiler makes of a network is not published.
* BERT-base at length 512 is faster here than on the board: attention is one kernel here, which
  keeps its scores on the chip. How the board computed it is not published.
"""


def row_of(anchor: Anchor) -> tuple[str, float]:
    """The row of the table, and simulated by measured."""
    record = timed_network(anchor.network, machine=anchor.machine, core_choice="all").profile
    launching = record["launch_overhead_us"]
    rate = anchor.batch * 1e6 / record["time_us"]
    cells = (
        anchor.machine,
        anchor.title,
        f"{anchor.batch}",
        f"{anchor.measured:,.0f}",
        f"{rate:,.0f}",
        f"{rate / anchor.measured:.2f}",
        f"{record['time_us'] - launching:,.0f}",
        f"{launching:,.0f}",
        f"{record['ops']['total']}",
    )
    return f"| {' | '.join(cells)} |", rate / anchor.measured


def lines() -> Iterator[str]:
    """Rows of the table, and what they come to."""
    found = []
    for anchor in ANCHORS:
        row, ratio = row_of(anchor)
        found.append(ratio)
        print(row, flush=True)
        yield row
    yield f"\nMedian {median(found):.2f}, from {min(found):.2f} to {max(found):.2f}."


def main() -> int:
    argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0]).parse_args()
    text = INTRODUCTION + HEADER + "\n".join(lines()) + "\n" + REASONS
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
