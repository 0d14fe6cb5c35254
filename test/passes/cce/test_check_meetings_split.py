"""What `check-meetings` says of kernels with programs for cube and vector cores, which have flags
for each other, against what the simulator says of them; and of compiled networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import davinci
from davinci import frontends, zoo
from davinci import machine as machines
from davinci.compiler import lower
from davinci.mlir import ir, make_context, symbols
from davinci.passes.cce.check_meetings import checked_launches
from davinci.passes.pipeline.pipelines import STAGES, Options
from fuzz.core_flags import Kernel, Row, exchange, judge, mutants, ring, step
from fuzz.talking_mutation import Tally, judge_compiled_before_running


def test_mutants() -> None:
    """Of one block: `launch_mutations.py --before-running` judges those of several."""
    rng = np.random.default_rng(2)
    sound = [replace(made(rng), blocks=1) for made in (ring, exchange)]
    changed = [mutant for each in sound for _, mutant in list(mutants(each, rng))[::8]]
    verdicts = list(judge([*sound, *changed]))
    assert [each for each in verdicts if bool(each.said or each.open) != bool(each.found)] == []
    refused = sum(bool(each.said) for each in verdicts)
    assert not any((each.said, each.open) != ("", "") for each in verdicts[:2])
    assert 4 <= refused <= len(verdicts) - 4


def test_mutants_of_a_compiled_kernel() -> None:
    """A product that shares k: cube cores tell vector cores, which meet."""
    tally = Tally()
    judge_compiled_before_running("product-split-k", tally, every=12)
    assert tally.wrong == []
    assert any(outcome == "unsafe, refused" for _, outcome in tally.counts)


def test_kernels_with_certain_faults() -> None:
    """Each is named by both."""
    taken, made = step("set", "MTE2", 2, False), step("set", "FIX", 1, False)
    store, load = step("store", Row(0, 1)), step("load", Row(0, 1))
    kernels = {
        "a deadlock": ((step("wait", 2), store, made), (step("wait", 1), load, taken)),
        "sets of flag 1 that may come in": ((store, made, step("set", "MTE2", 1, False)), (load,)),
        "flags between cores that are left": ((store, made, made), (step("wait", 1), load)),
        "flag 1 of vector core 0 of group 0 that may count": (
            (made,) * 16,
            (step("wait", 1),) * 16,
        ),
        "a race": ((store,), (load,)),
    }
    parts = [
        Kernel(1, 1, (("AIC", ((), cube, ())), ("AIV", ((), vector, ()))))
        for cube, vector in kernels.values()
    ]
    for said, judged in zip(kernels, judge(parts), strict=True):
        assert judged.said.startswith(said)
        assert judged.found


def test_a_launch_of_two_kinds_of_cores_is_proven() -> None:
    made = davinci.compile(
        zoo.build("mlp"),
        machine="ascend910b",
        launches="joined",
        check_launches=True,
        timing_only=True,
    )
    (line,) = made.details["checked_launches"]
    assert line.startswith("launch 1 at @cast_f16_16x256: 4 phases, 12 cores, 6 waits")
    assert line.endswith(": proven")


def test_phases_without_one_of_their_meetings_race() -> None:
    """A meeting in which nobody waits, in the place of each: the simulator, whose phases run one
    after the other, does not see it."""
    module = frontends.load(zoo.build("mlp"), make_context(), None, False, [])
    lower(module, Options(machine="ascend910b", launches="joined"), stages=STAGES[:3])
    text, name = str(module), "meeting_of_4"
    start = f"  func.func private @{name}()"
    empty = start.replace(name, "empty") + " attributes {ascend.launch = @kernels::@empty}\n"
    kernel = "    func.func @empty() attributes {ascend.kernel} {\n      return\n    }\n"
    start_of_kernels = f"    func.func @{name}_aic"
    text = text.replace(start, empty + start).replace(start_of_kernels, kernel + start_of_kernels)
    before, *calls = text.split(f"call @{name}(")
    assert len(calls) == 3
    for number in range(len(calls)):
        parts = [f"call @{'empty' if i == number else name}({c}" for i, c in enumerate(calls)]
        with make_context(), ir.Location.unknown():
            changed = ir.Module.parse(before + "".join(parts))
            main = dict(symbols(changed.operation))["main"]
            (launch,) = checked_launches(changed.operation, main, machines.load("ascend910b"))
            assert launch.verdict.faults[0].startswith("a race: ")
