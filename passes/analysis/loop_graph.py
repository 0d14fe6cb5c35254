"""Reads the kernel of a loop as a graph of one step, and what its inputs and outputs are.

%r:2 = scf.for %t = 0 to 100 iter_args(%h = %h0, %ys = %y0) {
  %x = tensor.extract_slice %xs[%t, 0, 0]       a slice; backwards at 99 - %t
  ..                                            operators of ascend
  %n = tensor.insert_slice %h' into %ys[%t, 0, 0]
  scf.yield %h', %n }

A loop behind it may take a slice of %r#1: what it reads is handed on, step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.mlir import Op, ir, owner_of
from davinci.passes.analysis.group_graph import CONVERSION, graph_of, operators_of
from davinci.passes.analysis.kernels import LOOP
from davinci.schedule.graph import Graph
from davinci.schedule.loops.group import LoopGroup, Role, read_loop

LOAD, STORE = "bufferization.to_tensor", "bufferization.materialize_in_destination"
EXTRACT, INSERT = "tensor.extract_slice", "tensor.insert_slice"


@dataclass(frozen=True)
class LoopGraph:
    """A step of a loop, see `read_loop`."""

    graph: Graph
    steps: int
    inputs: tuple[Role, ...]
    outputs: tuple[Role, ...]

    def group(self) -> LoopGroup:
        """The step as it is computed on a core; `NoSpace` if it cannot be."""
        return read_loop(self.graph, self.steps, self.inputs, self.outputs)


def loops_of(kernel: Op) -> list[Op]:
    """The loops of a kernel on tensors."""
    block = kernel.regions[0].blocks[0]
    found = (view.operation for view in block.operations)
    return [op for op in found if op.name == LOOP and op.results]


def loop_graph_of(kernel: Op, loop: Op, first: int = 0) -> LoopGraph:
    """The loop of a kernel as data; places are those of the kernel's arguments.

    Args:
        first: number of its first operator in the kernel.
    """
    block = loop.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    time, *carried = block.arguments
    starts = list(loop.operands)[3:]
    destination = {
        store.operation.operands[0]: place_of(store.operation.operands[1])
        for store in kernel.regions[0].blocks[0].operations
        if store.operation.name == STORE
    }
    places = [destination[seen_as_stored(result)] for result in loop.results]
    handed_on = {result for other in loops_of(kernel) for result in other.results}
    yielded, outputs = [], []
    for number, (value, place) in enumerate(zip(end.operands, places, strict=True)):
        insert = made_by(value, INSERT)
        if insert is None:
            yielded.append(value)
            outputs.append(Role("state", place, state=number))
        else:
            yielded.append(insert.operands[0])
            outputs.append(Role("slice", place, backwards=insert.operands[2] != time))
    graph, inputs = graph_of(operators_of(loop), yielded, first)

    def role(value: ir.Value) -> Role:
        if value in carried:
            number = carried.index(value)
            return Role("state", place_of(starts[number]), state=number)
        extract = made_by(value, EXTRACT)
        if extract is None:
            return Role("fixed", place_of(value))
        whole = extract.operands[0]
        if whole in handed_on:
            return Role("handed", destination[seen_as_stored(whole)])
        return Role("slice", place_of(extract.operands[0]), backwards=extract.operands[1] != time)

    steps = int(ir.IntegerAttr(loop.operands[1].owner.attributes["value"]).value)
    return LoopGraph(graph, steps, tuple(role(v) for v in inputs), tuple(outputs))


def made_by(value: ir.Value, name: str) -> ir.OpView | None:
    """The operation `name` that a value is the result of, or None."""
    if isinstance(value.owner, ir.Block) or value.owner.name != name:
        return None
    return owner_of(value)


def seen_as_stored(value: ir.Value) -> ir.Value:
    """A tensor as the array that is stored: booleans are bytes."""
    for use in value.uses:
        if use.owner.operation.name == CONVERSION:
            return use.owner.operation.results[0]
    return value


def place_of(value: ir.Value) -> int:
    """The number of the kernel's argument that a tensor was made from, or a buffer is."""
    while not isinstance(value.owner, ir.Block):
        assert value.owner.name in (LOAD, CONVERSION), value.owner.name
        value = value.owner.operands[0]
    return int(ir.BlockArgument(value).arg_number)
