"""The problem of planning that a network's arena is, without running anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci import frontends
from davinci.compiler import (
    Progress,
    check_options,
    lower,
    model_name,
    require_kernels,
    require_main,
)
from davinci.mlir import make_context
from davinci.passes.pipeline import pipelines
from davinci.planning import Buffer, Plan, Problem
from davinci.report import describe
from davinci.report.program import PlanPoint

STAGES = pipelines.STAGES[: pipelines.STAGES.index("ascend-to-cce")]
"""The stages after which the arena is planned."""


@dataclass(frozen=True)
class PlannedArena:
    """An arena as it is planned when a network is compiled.

    Attributes:
        problem: the values in it as buffers whose times are numbers of launches.
        offsets: that the compiler gave them, in bytes.
        plans: of which kernels share a launch that it compared, the taken one last.
    """

    problem: Problem
    offsets: tuple[int, ...]
    plans: tuple[PlanPoint, ...]

    @property
    def height(self) -> int:
        """Bytes of the arena."""
        return Plan(self.problem, self.offsets, "").height


def arena_problem(
    model: Any, options: pipelines.Options, progress: Progress = lambda text: None
) -> PlannedArena:
    """Compiles a model until its arena is planned.

    Args:
        model: what `davinci.compile` takes.
        options: with which it is compiled.
        progress: called with the name of each stage.

    Raises:
        InputError: the model cannot be read, or an option is wrong.
        CompileError: the model cannot be compiled.
    """
    machine = check_options(options)
    progress("reading the model")
    module = frontends.load(model, make_context(), None, False)
    require_main(module, model_name(model))
    require_kernels(module, machine, model_name(model))
    lower(module, options, progress, STAGES)
    facts = describe(module)
    values = facts.arena
    buffers = tuple(
        Buffer(value.size, value.first, value.last + 1, f"value {number}")
        for number, value in enumerate(values)
    )
    offsets = tuple(value.offset for value in values)
    return PlannedArena(Problem(buffers, machine.gm.line_bytes), offsets, facts.plans)
