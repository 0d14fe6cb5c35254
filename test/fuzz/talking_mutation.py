"""Mutants of launches whose cores wait for each other, judged without running and by running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, islice
from textwrap import wrap
from typing import Any

import numpy as np

from davinci import zoo
from fuzz import core_flags, flag_meetings
from fuzz.compiled_flags import CompiledFlags, of_cores
from fuzz.flag_meetings import FlagMeetings
from fuzz.group_kernels import GroupModel
from fuzz.talking_kernels import TalkingKernel, talking
from fuzz.talking_launches import fault, judge, mutants, random_launch
from talking_support import Talking

OUTCOMES = ("unsafe, refused", "safe, accepted", "unsafe, accepted", "safe, refused")
"""What became of a mutant: what it is by the simulator, and by the graph alone."""


@dataclass
class Tally:
    """What came of the mutants that were judged.

    Attributes:
        launches: that were mutated, all of them safe.
        kernels: the same of compiled ones.
        counts: (kind, one of `OUTCOMES`) -> number.
        messages: first words of the simulator -> number.
        wrong: a line for each on which both disagree.
    """

    launches: int = 0
    kernels: int = 0
    blocks: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def judged(count: int, rng: np.random.Generator, new_asm: Callable[[], Any]) -> Tally:
    """Judges so many mutants, all of some random launches that are safe."""
    tally, rig = Tally(), Talking(new_asm)
    while sum(tally.counts.values()) < count:
        launch = random_launch(rng)
        said, found = judge(rig, launch, new_asm), fault(rig, launch)
        if not _agreed(said, found, "unchanged", launch, tally):
            continue
        tally.launches += 1
        tally.blocks += len(launch)
        for mutant in mutants(launch, rng):
            said, found = judge(rig, mutant.launch, new_asm), fault(rig, mutant.launch)
            _agreed(said, found, mutant.kind, mutant.launch, tally)
    return tally


def judged_by_flags(
    count: int, rng: np.random.Generator, new_asm: Callable[[], Any], every: int = 1
) -> Tally:
    """The same of launches on a split machine whose cores meet by flags, all of their mutants or
    each `every`th of them."""
    tally, rig = Tally(), FlagMeetings(new_asm)
    while sum(tally.counts.values()) < count:
        launch = flag_meetings.random_launch(rng)
        if not _agreed(rig.judge(launch), rig.fault(launch), "unchanged", launch, tally):
            continue
        tally.launches += 1
        tally.blocks += len(launch)
        for kind, mutant in islice(flag_meetings.mutants(launch, rng), 0, None, every):
            _agreed(rig.judge(mutant), rig.fault(mutant), kind, mutant, tally)
    return tally


BATCH = 100
"""Kernels that become one module."""


def judged_before_running(count: int, rng: np.random.Generator, every: int = 1) -> Tally:
    """Judges so many mutants, or each `every`th of them, of kernels whose cube and vector cores
    have flags for each other, by `check-meetings` in place of the graph."""
    tally = Tally()
    while sum(tally.counts.values()) < count:
        sound = []
        drawn = [core_flags.random_kernel(rng) for _ in range(10)]
        for kernel, judged in zip(drawn, core_flags.judge(drawn), strict=True):
            if _agreed(judged.said or judged.open, judged.found, "unchanged", kernel, tally):
                sound.append(kernel)
        tally.launches += len(sound)
        tally.blocks += sum(kernel.cores for kernel in sound)
        changed = chain.from_iterable(core_flags.mutants(kernel, rng) for kernel in sound)
        left = islice(changed, 0, None, every)
        while batch := list(islice(left, min(BATCH, count - sum(tally.counts.values())))):
            verdicts = core_flags.judge([kernel for _, kernel in batch])
            for (kind, kernel), judged in zip(batch, verdicts, strict=True):
                _agreed(judged.said or judged.open, judged.found, kind, kernel, tally)
    return tally


COMPILED = (
    "product-split-k",
    "product-laid-out",
    "product-stream-k",
    "product-followed",
    "attention",
    "attention-few-rows",
    "norm_in_phases",
    "softmax_in_phases",
)
"""Names of `split_kernels` whose cores wait for each other, but for one whose loops depend on data,
which is not proven."""


def judge_compiled_before_running(name: str, tally: Tally, every: int = 1) -> None:
    """Judges a compiled kernel of a split machine as it is, then each `every`th of its mutants, by
    `check-meetings`. Those of which the simulator says something else are left out."""
    kernel = CompiledFlags(name)
    tally.kernels += 1
    mutants = islice(kernel.mutants(), 0, None, every)
    for kind, text in chain([("unchanged", kernel.text)], mutants):
        judged = kernel.judge(text)
        if of_cores(judged):
            _agreed(judged.said or judged.open, judged.found, kind, name, tally)


def _agreed(said: str, found: str, kind: str, launch: object, tally: Tally) -> bool:
    """Notes what the graph and the simulator say of a launch; whether it is safe by both."""
    if _note(not said, found, kind, tally):
        tally.wrong.append(f"{kind}: the graph says {said!r}, the simulator {found!r}: {launch}")
    return not said and not found


def _note(sound: bool, found: str, kind: str, tally: Tally) -> bool:
    """Counts what both say, and the first words of it; returns whether they disagree."""
    outcome = ("unsafe, " if found else "safe, ") + ("accepted" if sound else "refused")
    tally.counts[kind, outcome] += 1
    tally.messages.update([found.partition(":")[0]] if found else [])
    return sound == bool(found)


PRODUCT = """
func.func @main(%a: tensor<16x8192xf32>, %b: tensor<8192x64xf32>) -> tensor<16x64xf32> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<16x8192xf32>, tensor<8192x64xf32>) -> tensor<16x64xf32>
  return %c : tensor<16x64xf32> }"""


def compiled() -> list[TalkingKernel]:
    """An LSTM whose cores share lanes, on so few that its state goes through L1 and on so many that
    it is a vector to the cube; one of two layers whose cores meet those of the other layer; and a
    product whose cores share k."""
    random = np.random.default_rng(1)
    shapes = {"arg0": (16, 8192), "arg1": (8192, 64)}
    inputs = {n: random.standard_normal(shape, dtype=np.float32) for n, shape in shapes.items()}
    lstm = zoo.build("lstm,steps=3,features=16,hidden=256")
    layers = zoo.build("lstm,steps=3,features=16,hidden=128,layers=2")
    product = GroupModel(PRODUCT, 8, inputs)
    lstms = [*talking(lstm, 4), *talking(lstm, 16)]
    return [*lstms, *talking(layers, 8), *talking(product, 8)]


def judge_compiled(kernel: TalkingKernel, tally: Tally, every: int = 1) -> None:
    """Judges a kernel as it is, then its mutants, or each `every`th of them."""
    tally.kernels += 1
    chosen = [("unchanged", set()), *islice(kernel.mutants(), 0, None, every)]
    for kind, left_out in chosen:
        if _note(kernel.sound(left_out), kernel.fault(left_out), kind, tally):
            tally.wrong.append(f"{kind}: {kernel.name} without {sorted(left_out)}")


def table(tally: Tally) -> list[str]:
    """Lines of the figures."""
    lines = [
        f"{tally.launches} random launches of {tally.blocks} programs, {tally.kernels} compiled"
    ]
    kinds = list(dict.fromkeys(kind for kind, _ in tally.counts))
    lines.append(f"{'':<10}" + "".join(f"{name:>18}" for name in ("mutants", *OUTCOMES)))
    for kind in (*kinds, "together"):
        own = [
            sum(n for (k, o), n in tally.counts.items() if o == name and kind in (k, "together"))
            for name in OUTCOMES
        ]
        lines.append(f"{kind:<10}" + "".join(f"{n:>18}" for n in (sum(own), *own)))
    said = ", ".join(f"{text} {count}" for text, count in tally.messages.most_common())
    return [*lines, *wrap(f"reported as: {said}", 120)]
