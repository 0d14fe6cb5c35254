"""Random programs against random interleavings of their pipes: see `interleaving_fuzz`.

`benchmarks/proofs/fuzz_interleavings.py` runs thousands of programs, and
`benchmarks/proofs/split_interleavings.py` kernels of each kind on cube and vector cores.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from davinci.isa import Pipe
from davinci.isa.core import INSTRUCTIONS, OPCODE_MASK
from davinci.simulator.checks import races
from davinci.simulator.checks.core_races import CoreRaces
from davinci.simulator.checks.races import Races
from davinci.simulator.core.events import ALL, PIPES
from davinci.simulator.split.cross_core import Knowledge
from fuzz.group_interleavings import wrong_interleavings
from fuzz.group_kernels import group_models
from fuzz.interleaving_fuzz import CoresFuzzer, Fuzzer
from fuzz.recorded_kernels import record
from fuzz.recorded_launches import RecordedLaunch, record_launches
from fuzz.split_kernels import made
from fuzz.stream_steps import AWAIT, SIGNAL, decode

TRIES = 20
"""Instructions of a kind that are drawn for programs: to draw those of the proof takes longer than
the programs here."""


SEED = 3
"""One with which few programs, of one block and of two, have races on all machines."""


def run(machine: str, kind: str, programs: int) -> Fuzzer:
    fuzzer = Fuzzer(machine, kind, SEED, clean_runs=15, race_runs=60, tries=TRIES)
    for _ in range(programs):
        fuzzer.one_block()
        fuzzer.two_blocks()
    return fuzzer


@pytest.mark.parametrize(
    ("machine", "kind"), [("ascend910", "AICORE"), ("ascend910b", "AIC"), ("ascend910b", "AIV")]
)
def test_no_escape_and_no_false_alarm(machine: str, kind: str) -> None:
    fuzzer = run(machine, kind, 30)
    for tally in (fuzzer.single, fuzzer.blocks):
        assert tally.escapes == []
        assert tally.false_alarms == []
        assert tally.unexplained == []
        assert tally.counts["no fault reported: the same bytes in every interleaving"] >= 15
        assert tally.counts["race: other bytes in some interleaving"] > 0


def test_several_cores_without_escape_and_false_alarm() -> None:
    fuzzer = CoresFuzzer(seed=4, clean_runs=10, race_runs=60, tries=TRIES)
    for _ in range(40):
        fuzzer.launch()
    tally = fuzzer.tally
    assert tally.escapes == []
    assert tally.false_alarms == []
    assert tally.unexplained == []
    assert tally.counts["no fault reported: the same bytes in every interleaving"] >= 15
    assert tally.counts["race: other bytes in some interleaving"] > 0


def barrier_of_all(self: Races, pipe: int) -> None:
    REAL["barrier"](self, ALL)


def set_again(self: Races, event: Any, index: int) -> None:
    self._waited.clear()
    REAL["set_flag"](self, event, index)


def learn_all(self: Races, pipe: int, clock: list[int]) -> None:
    for each in range(PIPES):
        REAL["_learn"](self, each, clock)


def all_sequential(self: Races, sequential: Any, *others: Any) -> None:
    REAL["__init__"](self, [pipe for pipe in Pipe if pipe != Pipe.ALL], *others)


def reads_unnoted(self: Races, party: Any, words: list[int]) -> None:
    REAL["access"](self, party, words)
    for logs in self._reads:
        logs.clear()


REAL: dict[str, Callable[..., Any]] = {
    name: getattr(Races, name) for name in ("barrier", "set_flag", "_learn", "__init__", "access")
}


@pytest.mark.parametrize(
    ("name", "weaker", "seed"),
    [
        ("barrier", barrier_of_all, 3),
        ("set_flag", set_again, 28),
        ("_learn", learn_all, 3),
        ("__init__", all_sequential, 2),
        ("access", reads_unnoted, 1),
    ],
)
def test_a_weaker_check_is_caught(
    name: str,
    weaker: Callable[..., Any],
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fuzzer itself: it finds programs that a race check with a hole lets through. The seeds
    are those that find one soon."""
    monkeypatch.setattr(races.Races, name, weaker)
    fuzzer = Fuzzer("ascend910", "AICORE", seed, clean_runs=15, race_runs=0, tries=TRIES)
    for _ in range(400):
        fuzzer.one_block()
        if fuzzer.single.escapes:
            return
    pytest.fail("no escape found")


def all_pipes_are_done(self: Races, pipe: int, seat: int) -> tuple[Knowledge, int]:
    knowledge, number = REAL_SEND(self, pipe, seat)
    return {**knowledge, seat: self._numbers.copy()}, number


def nothing_is_compared(self: CoreRaces) -> None:
    """Another block, or another core of the block, may do as it likes."""


REAL_SEND = Races.send


@pytest.mark.parametrize(
    ("owner", "name", "weaker", "seed"),
    [
        (Races, "send", all_pipes_are_done, 9),
        (CoreRaces, "check_blocks", nothing_is_compared, 1),
        (CoreRaces, "check_all", nothing_is_compared, 1),
    ],
)
def test_a_weaker_check_between_cores_is_caught(
    owner: type, name: str, weaker: Callable[..., Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, weaker)
    fuzzer = CoresFuzzer(seed=seed, clean_runs=15, race_runs=0, tries=TRIES)
    for _ in range(200):
        fuzzer.launch()
        if fuzzer.tally.escapes:
            return
    pytest.fail("no escape found")


def test_kernels_of_groups_end_with_the_same_bytes() -> None:
    """As compiled; without the barriers of the vector pipe they do not."""
    (kernel,) = record(group_models()["softmax"], cores=1)
    assert wrong_interleavings(kernel, runs=5, seed=1) == []
    barrier = [i for i, step in enumerate(decode(kernel.streams[0])) if step.name == "pipe_barrier"]
    kernel.streams[0] = np.delete(kernel.streams[0], barrier, axis=0)
    assert wrong_interleavings(kernel, runs=5, seed=1)


@pytest.mark.parametrize(
    "name", ["product-split-k", "product_with_epilogue", "products_of_bytes", "norm_in_phases"]
)
def test_kernels_of_cube_and_vector_cores_end_with_the_same_bytes(name: str) -> None:
    """Kernels run as they were compiled, through all phases of a launch, on all cores."""
    executable, inputs = made(name)
    launches = record_launches(name, lambda: executable.run(inputs))
    assert max(len(launch.streams) for launch in launches) >= 4
    for launch in launches:
        assert wrong_interleavings(launch, runs=3, seed=1) == []


def test_a_flag_between_cores_that_is_missing_is_seen() -> None:
    """Without it vector cores add up what cube cores have not stored; without its sets alone they
    wait for ever, and without its waits alone it stays set."""
    executable, inputs = made("product-split-k")
    (launch,) = record_launches("split k", lambda: executable.run(inputs))
    (text, *_) = wrong_interleavings(without(launch, SIGNAL, AWAIT), runs=20, seed=1)
    assert re.search(r"^split k \S+, interleaving \d+: other bytes in GM, 0x", text)
    (text,) = wrong_interleavings(without(launch, SIGNAL), runs=2, seed=1)
    assert text.endswith("in program order: deadlock")
    (text,) = wrong_interleavings(without(launch, AWAIT), runs=2, seed=1)
    assert text.endswith("in program order: flags left set")


def without(launch: RecordedLaunch, *names: str) -> RecordedLaunch:
    """The launch with none of these instructions."""
    opcodes = [INSTRUCTIONS[name].opcode for name in names]
    streams = {
        seat: records[~np.isin(records[:, 0] & OPCODE_MASK, opcodes)]
        for seat, records in launch.streams.items()
    }
    return replace(launch, streams=streams)
