"""Changes of a run that may shorten it, those that often help first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Settings = Mapping[str, Any]
"""Arguments of npu-run by name, with underscores: `{"core_choice": "all", "tune": True}`."""

PRECISIONS = ("mixed", "fp16")
"""Those that are tried: the ways in which the cube computes fastest."""

WINOGRAD = ("none", "2x2", "4x4")

BATCH = 4
"""Samples at once that are tried."""

CONVOLUTION = "conv"


@dataclass(frozen=True)
class Candidate:
    """A change of the arguments of a run.

    Attributes:
        settings: that it sets.
        samples: that one run computes with it, where the run as it was asked for computes one.
        exact: whether results are the same numbers.
    """

    settings: Settings
    samples: int = 1
    exact: bool = True


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run that was asked for.

    Attributes:
        cores: that it may use.
        settings: its arguments.
        operators: `op` of its kernels.
        rewrites: that were applied to it.
        more_rewrites: that are not done by default.
        quantizable: whether the model is ONNX of floats, and not quantized yet.
        batchable: whether the model may be given a batch; not with inputs from a file.
    """

    cores: int
    settings: Settings
    operators: frozenset[str] = frozenset()
    rewrites: Sequence[str] = ()
    more_rewrites: Sequence[str] = ()
    quantizable: bool = False
    batchable: bool = False


def candidates(facts: RunFacts) -> Iterator[Candidate]:
    """All changes that are tried, one argument each."""
    given = facts.settings
    if given.get("launches", "auto") == "many" and facts.cores > 1:
        yield Candidate({"launches": "auto"}, exact=False)
    if facts.quantizable:
        yield Candidate({"quantize": "random"}, exact=False)
    if facts.batchable:
        yield Candidate({"batch": BATCH}, samples=BATCH)
    for precision in PRECISIONS:
        if precision != given.get("precision", "mixed"):
            yield Candidate({"precision": precision}, exact=False)
    for part in (2, 4):
        if facts.cores // part:
            yield Candidate({"cores": facts.cores // part})
    if given.get("core_choice", "cost") == "cost" and facts.cores > 1:
        yield Candidate({"core_choice": "all"})
    if any(CONVOLUTION in name for name in facts.operators):
        for way in WINOGRAD:
            if way != given.get("winograd", "cost"):
                yield Candidate({"winograd": way}, exact=False)
    if not ({"tune", "schedules"} & given.keys()):
        yield Candidate({"tune": True})
    if "rewrites" not in given:
        if facts.more_rewrites:
            yield Candidate({"rewrites": ",".join(["all", *facts.more_rewrites])}, exact=False)
        for name in facts.rewrites:
            yield Candidate({"rewrites": f"all,-{name}"}, exact=False)
    if given.get("fusion", "all") == "all":
        yield Candidate({"fusion": "none"}, exact=False)


def arguments(settings: Settings) -> list[str]:
    """As words of a command line.

    >>> arguments({"core_choice": "all", "tune": True})
    ['--core-choice', 'all', '--tune']
    """
    words: list[str] = []
    for name, value in settings.items():
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(str(value))
    return words
