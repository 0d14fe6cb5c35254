"""The kernels of a model that can be tuned: each as a module of its own, with its candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.mlir import Op, callee_of, function_type, ir, symbol_name
from davinci.passes.analysis.kernels import CORES, kernels
from davinci.passes.ascend_to_cce.groups import STORE, group_of, is_group
from davinci.schedule.choices import Choices, key_of
from davinci.schedule.kernel_cores import cores_of
from davinci.schedule.ranking import ways_of
from davinci.schedule.vector.space import NoSpace
from davinci.tuning.gains import least_cycles


@dataclass(frozen=True)
class TunedKernel:
    """A kernel that can be computed in several ways.

    Attributes:
        text: a module that launches it once, up to the level of `ascend` on buffers.
        candidates: by the cost model's estimate, the fewest cycles first.
        launches: of it in a run.
        least: cycles that a launch takes at least, however it is computed.
    """

    name: str
    key: str
    text: str
    candidates: Sequence[Choices]
    launches: int
    least: int


def tunable(module: ir.Module, machine: Machine, cores: int) -> Iterator[TunedKernel]:
    """The kernels of a module whose groups can be computed in several ways.

    Args:
        module: kernels outlined, not lowered yet.
    """
    launches = _launches(module)
    for function in kernels(module.operation):
        if not is_group(function):
            continue
        graph = group_of(function, machine).graph
        try:
            own = attribute(function, CORES, 0)
            candidates = ways_of(graph, machine, own or cores_of(graph, machine, cores).cores)
        except (NoSpace, CompileError):
            continue  # it has a schedule of another kind
        if len(candidates) > 1:
            key, name = key_of(graph, machine, own or cores), symbol_name(function)
            most = max(sum(part.cores for part in way) for way in candidates)
            least = least_cycles(attribute(function, "ascend.work", {}), machine, most)
            text = alone(function)
            yield TunedKernel(name, key, text, candidates, max(1, launches[name]), least)


def _launches(module: ir.Module) -> Counter[str]:
    """How often a run launches each kernel."""
    found: Counter[str] = Counter()

    def visit(op: Op) -> Any:
        if op.name == "func.call":
            found[callee_of(op)] += 1
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


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
