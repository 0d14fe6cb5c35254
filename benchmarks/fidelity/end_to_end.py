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
are judged together: a row may be right because both are wrong. What a queued launch on all cores
takes is not published for these chips: the last column has the simulated over the measured time
for each cost of the machine file's range. Errors are of times, whatever their sign.
"""

HEADER = """
| machine | network | batch | measured, 1/s | simulated, 1/s | ratio | kernels, us | launching, us \
| launches | time ratio at each launch cost |
|---|---|---:|---:|---:|---:|---:|---:|---:|---|
"""

REASONS = """
## What makes the difference

* Launches: for the 310 and 310P no figure is public (`docs/hardware.md` b3). The 310P's grow with
  the number of cores as the 910B's do, 2.75 us on all 8; the 310's take 8.55, since dense networks
  there want 8 us and more. The table says how much of the time they are, and what other costs give.
* Precision: boards compute in f16; `mixed` sums in f32 and keeps some values between kernels in it.
* The 310's 680 MHz follow from its peak; what its memory gives, 91 % of the peak where it is read
  and 69 % where it is written, from two kernels that were measured on it. The 310P is taken to give
  the same parts of its own. It has 7 vector cores beside its 8 AI cores, which are left out.
* MobileNetV2 on the 310P, 47 % too long: its kernels alone take longer here than all of it on the
  board, so neither launches nor memory are the reason but what this compiler makes of depthwise
  convolutions on 8 cores; the vendor's kernels for them are not public.
* BERT-base at length 128 on the 310P would be right with launches of 9 us, ResNet-18 with 4.4: a
  head differs from kernel to kernel (2.5 to 13 us on the 910B), and by what is not published.
* InceptionV3 has 114 kernels here, a quarter of its time is launching them. How many the vendor's
  compiler makes of a network is not published.
* BERT-base at length 512 is faster here than on the board: attention is one kernel here, which
  keeps its scores on the chip. How the board computed it is not published.
"""


@dataclass(frozen=True)
class Found:
    """An anchor beside what was simulated for it.

    Attributes:
        anchor: what was measured.
        kernels_us, launching_us: of the simulated time.
        launches: how many.
        range_us: the simulated time for each launch cost of the machine file's range, by that.
    """

    anchor: Anchor
    kernels_us: float
    launching_us: float
    launches: int
    range_us: dict[float, float]

    @property
    def measured_us(self) -> float:
        return self.anchor.batch * 1e6 / self.anchor.measured

    @property
    def simulated_us(self) -> float:
        return self.kernels_us + self.launching_us

    @property
    def error(self) -> float:
        """Simulated by measured time, less 1."""
        return self.simulated_us / self.measured_us - 1


def found_for(anchor: Anchor) -> Found:
    """Simulates an anchor's network."""
    record = timed_network(anchor.network, machine=anchor.machine, core_choice="all").profile
    launching = record["launch_overhead_us"]
    times = {row["all_cores_us"]: row["time_us"] for row in record["launch_range"]}
    return Found(anchor, record["time_us"] - launching, launching, record["ops"]["total"], times)


def row_of(found: Found) -> str:
    """The row of the table."""
    anchor = found.anchor
    rate = anchor.batch * 1e6 / found.simulated_us
    range_ = ", ".join(
        f"{cost:g} us: {time / found.measured_us:.2f}" for cost, time in found.range_us.items()
    )
    cells = (
        anchor.machine,
        anchor.title,
        f"{anchor.batch}",
        f"{anchor.measured:,.0f}",
        f"{rate:,.0f}",
        f"{rate / anchor.measured:.2f}",
        f"{found.kernels_us:,.0f}",
        f"{found.launching_us:,.0f}",
        f"{found.launches}",
        range_,
    )
    return f"| {' | '.join(cells)} |"


def sizes(found: list[Found]) -> Iterator[str]:
    """Lines of Markdown: how large errors of times are, by chip, and at each launch cost."""
    yield "\n| chip | networks | median error | worst | median error at each launch cost |"
    yield "|---|---:|---:|---:|---|"
    for machine in dict.fromkeys(one.anchor.machine for one in found):
        own = [one for one in found if one.anchor.machine == machine]
        errors = [abs(one.error) for one in own]
        by_cost = {
            cost: median(abs(one.range_us[cost] / one.measured_us - 1) for one in own)
            for cost in own[0].range_us
        }
        each = ", ".join(f"{cost:g} us: {error:.1%}" for cost, error in by_cost.items())
        yield f"| {machine} | {len(own)} | {median(errors):.1%} | {max(errors):.1%} | {each} |"
    errors = [abs(one.error) for one in found]
    yield f"| all | {len(found)} | {median(errors):.1%} | {max(errors):.1%} | |"


def main() -> int:
    argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0]).parse_args()
    found = []
    for anchor in ANCHORS:
        found.append(found_for(anchor))
        print(row_of(found[-1]), flush=True)
    table = "\n".join(map(row_of, found))
    text = INTRODUCTION + "\n".join(sizes(found)) + "\n" + HEADER + table + "\n" + REASONS
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
