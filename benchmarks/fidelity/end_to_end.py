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
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))

from timed import timed, timed_network

from davinci import machine as machines
from davinci.report.launching import with_all_cores_us

PAGE = Path(__file__).parents[2] / "docs" / "end-to-end.md"


@dataclass(frozen=True)
class Anchor:
    """A measured network.

    Attributes:
        machine, network: what is simulated.
        title: of its row.
        batch: images or sequences at once.
        measured: images or sequences a second of one chip, vendor's compiler, f16.
        rewrites: of this compiler, less what the vendor's does not do to the network.
        apart: kernels of the vendor's that this compiler has inside others, as StableHLO, and how
            many of each.
        host_us: of the host, in the measured time.
        scores_apart: whether it is shown, too, with scores of attention in global memory.
    """

    machine: str
    title: str
    network: str
    batch: int
    measured: float
    rewrites: str = "all"
    apart: tuple[tuple[str, int], ...] = ()
    host_us: float = 0.0
    scores_apart: bool = False


HOST_US = 240.0
"""The least that the other runtime's host call and copies take."""

LAYERS, HEADS, WIDTH = 12, 12, 768
"""Sizes of BERT-base: its encoder layers, heads of each, and elements of a hidden state."""


def pass_over(rows: int) -> str:
    """A kernel that reads and writes rows of the width of BERT-base, as a transposition of heads
    does in the vendor's layout, where the 64 columns of a head lie together."""
    shape = f"tensor<{rows}x{WIDTH}xf16>"
    return f"""
func.func @main(%x: {shape}) -> {shape} {{
  %y = stablehlo.negate %x : {shape}
  return %y : {shape}
}}"""


def scale_and_mask(rows: int) -> str:
    """A kernel that scales the scores of all heads and adds a mask."""
    shape = f"tensor<{HEADS}x{rows}x{rows}xf16>"
    return f"""
func.func @main(%x: {shape}, %m: tensor<{rows}xf16>) -> {shape} {{
  %c = stablehlo.constant dense<0.125> : {shape}
  %s = stablehlo.multiply %x, %c : {shape}
  %b = stablehlo.broadcast_in_dim %m, dims = [2] : (tensor<{rows}xf16>) -> {shape}
  %y = stablehlo.add %s, %b : {shape}
  return %y : {shape}
}}"""


def bert(length: int, measured: float) -> Anchor:
    """BERT-base at batch 1 on the 310P, where the vendor's compiler fuses no attention."""
    return Anchor(
        "ascend310p",
        f"BERT-base, length {length}",
        f"bert-base,seq={length}",
        1,
        measured,
        "all,-attention,-merge-products",
        ((pass_over(length), 4 * LAYERS), (scale_and_mask(length), LAYERS)),
    )


ANCHORS = [
    Anchor("ascend310", "ResNet-18", "resnet18", 1, 788),
    Anchor("ascend310", "VGG16", "vgg16", 1, 115),
    Anchor("ascend310", "MobileNetV1", "mobilenet-v1", 1, 1138),
    Anchor(
        "ascend310",
        "ResNet-50 (Paddle-Lite, host call in it)",
        "resnet50",
        1,
        1000 / 2.87,
        host_us=HOST_US,
    ),
    Anchor("ascend310", "MobileNetV2 (the same)", "mobilenet-v2", 1, 1000 / 1.74, host_us=HOST_US),
    Anchor("ascend310", "InceptionV3 (the same)", "inception-v3", 1, 1000 / 3.46, host_us=HOST_US),
    Anchor("ascend310p", "ResNet-18", "resnet18", 1, 2865),
    Anchor("ascend310p", "MobileNetV2", "mobilenet-v2,batch=4", 4, 7072),
    bert(128, 484),
    bert(512, 178),
    Anchor(
        "ascend310p",
        "BERT-base, length 128",
        "bert-base,seq=128,batch=16",
        16,
        1345,
        scores_apart=True,
    ),
    Anchor(
        "ascend310p",
        "BERT-base, length 512",
        "bert-base,seq=512,batch=4",
        4,
        223,
        scores_apart=True,
    ),
]

INTRODUCTION = """\
# Networks end to end

Made by `benchmarks/fidelity/end_to_end.py`; do not edit. Images or sequences a second of one chip:
measured on boards with the vendor's compiler (f16, graph on the device; where it says so the
latency of another runtime, whose host call and copies take 0.24 to 0.75 ms, of which 0.24 are in
the simulated time too), and simulated: this compiler's program with `--precision fp16`, each kernel
on all cores that it has work for (`--core-choice all`), without data, one queued graph. Compiler
and simulator are judged together: a row may be right because both are wrong. What the vendor's
compiler is known not to fuse is not fused here either, see below; `as compiled` is the time of the
program without that. What a queued launch on all cores
takes is not published for these chips: the last column has the simulated over the measured time
for each cost of the machine file's range. Errors are of times, whatever their sign.
"""

HEADER = """
| machine | network | batch | measured, 1/s | simulated, 1/s | ratio | kernels, us | launching, us \
| launches | as compiled, us | time ratio at each launch cost |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|
"""

REASONS = """
## What makes the difference

* What is fused: BERT-base at batch 1 on the 310P took 27 % (length 128) and 50 % (length 512) less
  than on the board while its attention was one kernel here. The vendor's passes of graph fusion,
  whose source is public, have conditions that it does not meet: `ZAttentionScoreFusionPass` makes
  one kernel of products, scale, mask and softmax on the 310P if batch times heads is a multiple of
  8, and it is 12; `AttentionLnQKVONNXFusionPass` makes one product of queries, keys and values if
  batch times length is a multiple of 1,536 or 2,048. So there are two products, a multiplication
  with addition (`FusedMulAdd`), a softmax and four transpositions of heads (`ConfusionTransposeD`)
  in each layer, and three products before them. Here: `--rewrites all,-attention,-merge-products`,
  and a kernel of its own for each transposition and for scale and mask, simulated alone and counted
  as often as there are layers. No number was set with these rows in view. Batches of 16 and 4 meet
  both conditions, so there attention is one kernel on both sides; the vendor's (`AttentionScore`)
  is not public. See below for where it may keep its scores.
* Launches: for the 310 and 310P no figure is public (`docs/hardware.md` b3). The 310P's grow with
  the number of cores as the 910B's do, 2.75 us on all 8; the 310's take 8.55, since dense networks
  there want 8 us and more. The table says how much of the time they are, and what other costs give.
* The 310's 680 MHz follow from its peak; what its memory gives, 91 % of the peak where it is read
  and 69 % where it is written, from two kernels that were measured on it. The 310P is taken to give
  the same parts of its own. It has 7 vector cores beside its 8 AI cores, which are left out.
* MobileNetV2 on the 310P: the vector unit is the limit of its pointwise convolutions here (94 % of
  the time of the first), which adds the bias and clamps in UB, and L1 that of its depthwise ones;
  the vendor's kernels for them are not public.
* How many kernels the vendor's compiler makes of a network is not published; InceptionV3 has 114
  here, a quarter of its time is launching them.
"""

SCORES_APART = """
## Scores of attention in global memory

Ours keeps the scores of a few rows in UB. Simulated with attention as three kernels in each layer
(`--rewrites all,-attention`: product, softmax, product), scores and probabilities cross global
memory; at length 512 they are 25 MB a layer, more than the L2 of the 310P holds, at 128 a quarter
of that. What a further layer takes so, less what it takes with one kernel, is added once for each
layer. Both rows are nearer to the board with it, which speaks for a kernel of the vendor's that
moves them, too; its source, which would tell, is not public. The table above is without it.

| network | batch | measured, us | one kernel, us | error | three kernels, us | error |
|---|---:|---:|---:|---:|---:|---:|
"""


@dataclass(frozen=True)
class Found:
    """An anchor beside what was simulated for it.

    Attributes:
        anchor: what was measured.
        kernels_us, launching_us: of the simulated time.
        launches: how many.
        range_us: the simulated time for each launch cost of the machine file's range, by that.
        compiled_us: of the program as this compiler makes it.
    """

    anchor: Anchor
    kernels_us: float
    launching_us: float
    launches: int
    range_us: dict[float, float]
    compiled_us: float

    @property
    def measured_us(self) -> float:
        return self.anchor.batch * 1e6 / self.anchor.measured

    @property
    def simulated_us(self) -> float:
        return self.kernels_us + self.launching_us + self.anchor.host_us

    @property
    def error(self) -> float:
        """Simulated by measured time, less 1."""
        return self.simulated_us / self.measured_us - 1


def found_for(anchor: Anchor) -> Found:
    """Simulates an anchor's network."""
    chip = machines.load(anchor.machine)
    options = options_for(anchor.machine)
    record = timed_network(anchor.network, rewrites=anchor.rewrites, **options).profile
    compiled_us = record["time_us"]
    if anchor.rewrites != "all":
        compiled_us = timed_network(anchor.network, **options).profile["time_us"]
    launching, launches = record["launch_overhead_us"], record["ops"]["total"]
    kernels = record["time_us"] - launching
    times = {row["all_cores_us"]: row["time_us"] for row in record["launch_range"]}
    for text, count in anchor.apart:
        alone = timed(text, **options).profile
        kernel_us = count * alone["total_cycles"] / chip.clock_mhz
        share = alone["kernels"][0]["blocks"] / chip.cores
        kernels, launches = kernels + kernel_us, launches + count
        launching += count * chip.launch.us(share, by_host=False)
        for cost in times:
            queued = with_all_cores_us(chip.launch, cost)
            times[cost] += kernel_us + count * queued.us(share, by_host=False)
    times = {cost: time + anchor.host_us for cost, time in times.items()}
    return Found(anchor, kernels, launching, launches, times, compiled_us)


def options_for(machine: str) -> dict[str, Any]:
    """Options of the compiler for the networks of a machine."""
    return {
        "machine": machine,
        "core_choice": "all",
        "precision": "fp16",
        "launches": "many",  # as the vendor's runtime starts a kernel for each operator
    }


def layer_us(anchor: Anchor, rewrites: str) -> float:
    """Microseconds by which a network of two layers takes longer than one of one layer, launches
    included."""
    options = options_for(anchor.machine)
    one, two = (
        timed_network(f"{anchor.network},layers={layers}", rewrites=rewrites, **options)
        for layers in (1, 2)
    )
    return float(two.profile["time_us"] - one.profile["time_us"])


def scores_apart(found: Found) -> str:
    """The row of a network whose scores are in global memory."""
    anchor = found.anchor
    further = layer_us(anchor, "all,-attention") - layer_us(anchor, "all")
    apart = found.simulated_us + LAYERS * further
    return (
        f"| {anchor.title} | {anchor.batch} | {found.measured_us:,.0f} | "
        f"{found.simulated_us:,.0f} | {found.error:+.1%} | {apart:,.0f} | "
        f"{apart / found.measured_us - 1:+.1%} |"
    )


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
        f"{found.compiled_us:,.0f}",
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
    apart = [scores_apart(one) for one in found if one.anchor.scores_apart]
    text += SCORES_APART + "\n".join(apart) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
