"""The kernels of a model that can be tuned: each as a module of its own, with its candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from davinci.machine import Machine
from davinci.mlir import function_type, ir, symbol_name
from davinci.passes.analysis.kernels import kernels
from davinci.passes.ascend_to_cce.groups import STORE, group_of, is_group
from davinci.schedule.choices import Choices, key_of
from davinci.schedule.ranking import ways_of
from davinci.schedule.vector.space import NoSpace


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be computed in several ways.

    Attributes:
        text: a module that launches it once, up to the level of `ascend` on buffers.
        candidates: by the cost model's estimate, the fewest cycles first.
    """

    name: str
    key: str
    text: str
    candidates: Sequence[Choices]


def tunable(module: ir.Module, machine: Machine, cores: int) -> Iterator[Kernel]:
    """The kernels of a module whose groups can be computed in several ways.

    Args:
        module: kernels outlined, not lowered yet.
    """
    for function in kernels(module.operation):
        if not is_group(function):
            continue
        graph = group_of(function).graph
        try:
            candidates = ways_of(graph, machine, cores)
        except NoSpace:
            continue  # it has a schedule of another kind
        if len(candidates) > 1:
            key = key_of(graph, machine, cores)
            yield Kernel(symbol_name(function), key, alone(function), candidates)


def alone(kernel: Any) -> str:
    """A module that launches a kernel once."""
    name, inputs = symbol_name(kernel), function_type(kernel).inputs
    block = kernel.regions[0].blocks[0]
    outputs = sum(op.operation.name == STORE for op in block.operations)
    arguments = []
    for number, kind in enumerate(inputs):
        mark = ", ascend.output" if number >= len(inputs) - outputs else ""
        arguments.append(f'%a{number}: {kind} {{ascend.name = "a{number}"{mark}}}')
    types = ", ".join(map(str, inputs))
    values = ", ".join(f"%a{number}" for number in range(len(inputs)))
    return f"""
module {{
  func.func @main({", ".join(arguments)}) attributes {{ascend.entry}} {{
    call @{name}({values}) {{ascend.blocks = 1 : i64}} : ({types}) -> ()
    return
  }}
  func.func private @{name}({types}) attributes {{ascend.launch = @kernels::@{name}}}
  module @kernels {{
    {kernel.get_asm(print_generic_op_form=True)}
  }}
}}
"""
