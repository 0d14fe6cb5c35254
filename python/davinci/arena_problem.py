"""The problem of planning that a network's arena is, without running anything."""

from __future__ import annotations

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
from davinci.planning import Buffer, Problem
from davinci.report import describe

STAGES = pipelines.STAGES[: pipelines.STAGES.index("ascend-to-cce")]
"""The stages after which the arena is planned."""


def arena_problem(
    model: Any, options: pipelines.Options, progress: Progress = lambda text: None
) -> tuple[Problem, tuple[int, ...]]:
    """Compiles a model until its arena is planned.

    Args:
        model: what `davinci.compile` takes.
        options: with which it is compiled.
        progress: called with the name of each stage.

    Returns:
        The values in the arena as buffers whose times are numbers of launches, and the offsets in
        bytes that the compiler gave them.

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
    values = describe(module).arena
    buffers = tuple(
        Buffer(value.size, value.first, value.last + 1, f"value {number}")
        for number, value in enumerate(values)
    )
    return Problem(buffers, machine.gm.line_bytes), tuple(value.offset for value in values)
