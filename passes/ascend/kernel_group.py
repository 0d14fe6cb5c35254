"""What an outlined kernel computes, as a graph."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.mlir import Op, ir
from davinci.passes.analysis.group_graph import behind_conversions, graph_of, operators_of
from davinci.passes.analysis.loop_graph import loops_of
from davinci.passes.ascend.tensor_ops import fold_numbers
from davinci.schedule.graph import Graph

STORE = "bufferization.materialize_in_destination"


@dataclass(frozen=True)
class KernelGroup:
    """What a kernel computes.

    Attributes:
        inputs: the number of the kernel's argument that each input of the graph is.
        outputs: the same of its outputs.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def group_of_kernel(kernel: Op) -> KernelGroup | None:
    """The group of a kernel; None of loops and of what the scalar unit does."""
    if loops_of(kernel):
        return None
    with ir.InsertionPoint(kernel):
        folded = kernel.clone().operation
    try:
        block = folded.regions[0].blocks[0]
        fold_numbers(block)
        stores = [op.operation for op in block.operations if op.operation.name == STORE]
        if not stores:
            return None
        operators = operators_of(folded)
        outputs = [behind_conversions(op.operands[0], operators) for op in stores]
        graph, inputs = graph_of(operators, outputs)
        made = tuple(argument_number(op.operands[1]) for op in stores)
        return KernelGroup(graph, tuple(map(argument_number, inputs)), made)
    finally:
        folded.erase()


def argument_number(value: ir.Value) -> int:
    """The number of the argument of its kernel that a buffer is, or a tensor is read from."""
    while not isinstance(value.owner, ir.Block):
        value = value.owner.operands[0]
    return int(ir.BlockArgument(value).arg_number)
