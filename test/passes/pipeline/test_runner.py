"""The verifier runs after each pass, or behind the last one."""

from __future__ import annotations

from typing import Any

import pytest

from davinci.errors import CompileError
from davinci.mlir import MLIRError, ir, make_context
from davinci.passes.ascend.ascend_fold_constants import AscendFoldConstantsPass
from davinci.passes.ascend.ascend_sink_rearrangements import AscendSinkRearrangementsPass
from davinci.passes.pipeline import runner

PIPELINE = "builtin.module(ascend-fold-constants,ascend-sink-rearrangements)"


@pytest.mark.parametrize(
    ("watch", "behind"), [(runner.Instrumentation(), []), (runner.AT_THE_END, ["sink"])]
)
def test_what_a_pass_breaks_is_found(
    watch: runner.Instrumentation, behind: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def breaks(self: Any, op: Any) -> None:
        with ir.InsertionPoint(op.regions[0].blocks[0]):
            ir.Operation.create("ascend.neg")  # without an operand

    monkeypatch.setattr(AscendFoldConstantsPass, "run", breaks)
    monkeypatch.setattr(AscendSinkRearrangementsPass, "run", lambda self, op: ran.append("sink"))
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with pytest.raises((CompileError, MLIRError)):
            runner.run(module.operation, PIPELINE, watch)
    assert ran == behind
