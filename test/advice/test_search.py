"""Changes are measured one by one, and those that help are put together."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from davinci.advice import Candidate, Measured, RunFacts, advise, candidates, search
from davinci.advice.candidates import arguments
from davinci.errors import CheckFailed, CompileError


def measured(settings: Any) -> float:
    """fp16 takes a fifth off, sixteen cores a tenth, a batch of 4 takes half as long again; all
    cores take longer."""
    time = 100.0
    time *= 0.8 if settings.get("precision") == "fp16" else 1
    time *= {16: 0.9, 8: 0.95}.get(settings.get("cores", 32), 1)
    time *= 1.5 if settings.get("batch") == 4 else 1
    return time * (1.5 if settings.get("core_choice") == "all" else 1)


def test_ranked_and_together() -> None:
    tried = candidates(RunFacts(cores=32, settings={}))
    found = advise(measured, tried, Measured(100.0), command=["npu-run", "zoo:mlp"])
    assert [gain.arguments for gain in found.gains] == [
        "--precision fp16",
        "--cores 16",
        "--cores 8",
    ]
    assert found.together is not None
    assert found.together.candidate.settings == {"precision": "fp16", "cores": 16}
    assert found.together.run.time_us == measured(found.together.candidate.settings)
    assert "-28.0%" in found.text()
    assert "npu-run zoo:mlp --precision fp16 --cores 16" in found.text()
    assert found.record()["together"]["command"] == ("npu-run zoo:mlp --precision fp16 --cores 16")


def test_what_saves_nothing_more_is_left_out() -> None:
    """Half as many cores help alone, and change nothing beside fp16."""
    tried = candidates(RunFacts(cores=32, settings={}))

    def measure(settings: Any) -> float:
        if settings.get("precision") == "fp16":
            return 80.0
        return 90.0 if settings.get("cores") == 16 else 100.0

    found = advise(measure, tried, Measured(100.0))
    assert [gain.arguments for gain in found.gains] == ["--precision fp16", "--cores 16"]
    assert found.together is None


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_are_broken_at_spaces(width: int) -> None:
    command = ["npu-run", "a long model.onnx", "--machine", "ascend910", "--seed", "3"]
    tried = candidates(RunFacts(cores=32, settings={}, rewrites=["fold-constants", "gelu"]))
    found = advise(measured, tried, Measured(100.0), command=command)
    text = found.text(width)
    assert max(map(len, text.splitlines())) <= width
    assert text.replace(" \\\n", " ").split() == found.text().split()
    best = text.partition("to see the best: ")[2].partition("\nno gain")[0]
    assert shlex.split(best.replace("\\\n", "")) == [
        *command,
        "--precision",
        "fp16",
        "--cores",
        "16",
    ]


def test_a_batch_counts_by_the_sample() -> None:
    tried = candidates(RunFacts(cores=1, settings={}, batchable=True))
    found = advise(measured, tried, Measured(100.0))
    first = found.gains[0]
    assert first.arguments == "--batch 4"
    assert first.run.time_us == 150.0 and first.saved_ratio == pytest.approx(1 - 37.5 / 100)
    assert "a sample, 4 in 150.0 us" in found.text()
    assert found.together is not None and found.together.run.samples == 4


def test_given_arguments_stay_and_are_replaced() -> None:
    """Those of a gain take the place of those that the run was asked for with."""
    given = {"cores": 16, "precision": "fp16"}
    found = advise(
        lambda settings: {16: 100.0, 8: 90.0}[settings["cores"]],
        [Candidate({"cores": 8})],
        Measured(100.0),
        command=["npu-run", "m.onnx"],
        settings=given,
    )
    assert found.command_of(None) == "npu-run m.onnx --cores 16 --precision fp16"
    assert found.command_of(found.gains[0]) == "npu-run m.onnx --cores 8 --precision fp16"


def test_errors_stand_beside_what_changes_numbers() -> None:
    asked = []

    def errors(settings: Any) -> dict[str, float]:
        asked.append(settings)
        if settings.get("winograd"):
            raise CheckFailed("values are not finite")
        return {"max_rel_err": 0.0123, "cosine": 0.9998}

    tried = [
        Candidate({"cores": 16}),
        Candidate({"precision": "fp16"}, exact=False),
        Candidate({"winograd": "4x4", "cores": 8}, exact=False),
    ]
    found = advise(measured, tried, Measured(100.0), find_errors=errors)
    assert asked[:2] == [{"precision": "fp16"}, {"winograd": "4x4", "cores": 8}]
    assert {gain.arguments: gain.errors is None for gain in found.gains} == {
        "--precision fp16": False,
        "--cores 16": True,
    }
    assert "error 1.2e-02, cosine 0.999800" in found.text()
    assert found.failed == (("--winograd 4x4 --cores 8", "values are not finite"),)


def test_nothing_helps() -> None:
    def measure(settings: Any) -> float:
        raise CompileError("no schedule")

    found = advise(measure, [Candidate({"tune": True})], Measured(10.0))
    assert found.gains == () and found.together is None
    assert "nothing that was tried" in found.text()
    assert "not possible: --tune: no schedule" in found.text()


def test_what_there_is_no_time_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by 10 s whenever it is asked: of 100 s, 60 are for single changes."""

    def clock() -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += 10.0

    ticks = clock()
    monkeypatch.setattr(search.time, "monotonic", lambda: next(ticks))
    tried = [Candidate({"cores": n}) for n in range(16, 0, -1)]
    found = advise(measured, tried, Measured(100.0), seconds=100.0)
    assert len(found.untried) == 11 and found.untried[0] == "--cores 11"
    assert "no time to try: --cores 11" in found.text()


def test_candidates_are_what_the_run_may_change() -> None:
    full = RunFacts(
        cores=2,
        settings={"precision": "fp16", "fusion": "none", "launches": "many"},
        operators=frozenset({"conv_add_relu"}),
        rewrites=("gelu",),
        more_rewrites=("slice-product",),
        quantizable=True,
        batchable=True,
    )
    words = [" ".join(arguments(each.settings)) for each in candidates(full)]
    assert words == [
        "--launches auto",
        "--quantize random",
        "--batch 4",
        "--precision mixed",
        "--cores 1",
        "--core-choice all",
        "--winograd none",
        "--winograd 2x2",
        "--winograd 4x4",
        "--tune",
        "--rewrites all,slice-product",
        "--rewrites all,-gelu",
    ]
    few = RunFacts(cores=1, settings={"tune": True, "rewrites": "none", "fusion": "none"})
    assert [each.settings for each in candidates(few)] == [{"precision": "fp16"}]
