"""Loops of scalar programs that end: each turn is counted, and behind the last one it is left.

    ^body:                                   ^body:
      ...                                      ...
      llvm.cond_br %more, ^head(%i), ^end      llvm.cond_br %more, ^turn(%i), ^end
                                             ^turn(%j):
                                               %over = llvm.call @davinci.turn(%tag) : (i64) -> i1
                                               llvm.cond_br %over, ^out, ^head(%j)
                                             ^out:
                                               llvm.return

A program whose loop never ends would otherwise keep the process, whether it issues instructions or
not. One that is left has a fault, so nothing that it did afterwards counts; every loop that it
comes to later is left in its first turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from davinci.isa.core import LOCATION_SHIFT
from davinci.mlir import Op, ir, llvm, location_text
from davinci.runtime.intrinsics import TURN

Edge = tuple[Any, int]
"""A block, and the number of one of its successors."""


def guard_loops(functions: Mapping[str, Any], locations: list[str]) -> bool:
    """Counts the turns of all loops at the llvm level; appends to `locations`.

    Returns:
        Whether there are any.
    """
    guarded = False
    for function in functions.values():
        if not function.regions[0].blocks:
            continue
        out = None
        for block, number in backward_edges(function):
            out = out or _way_out(function)
            _guard(function, block, number, out, locations)
            guarded = True
    return guarded


def backward_edges(function: Op) -> list[Edge]:
    """The edges that close a circle, found from the first block."""
    entry = function.regions[0].blocks[0]
    found: list[Edge] = []
    state = {entry: "open"}
    path = [(entry, enumerate(_successors(entry)))]
    while path:
        block, edges = path[-1]
        edge = next(edges, None)
        if edge is None:
            state[block] = "closed"
            path.pop()
            continue
        number, successor = edge
        if successor not in state:
            state[successor] = "open"
            path.append((successor, enumerate(_successors(successor))))
        elif state[successor] == "open":
            found.append((block, number))
    return found


def _successors(block: Any) -> list[Any]:
    return list(_last(block).successors)


def _last(block: Any) -> Any:
    return block.operations[len(block.operations) - 1].operation


def _way_out(function: Op) -> Any:
    """A block that returns; what it returns is never looked at."""
    block = function.regions[0].blocks.append()
    kind = ir.TypeAttr(function.attributes["function_type"]).value
    with ir.InsertionPoint(block), function.location:
        result = llvm.FunctionType(kind).return_type
        values = []
        if str(result) != "!llvm.void":
            values = [ir.Operation.create("llvm.mlir.zero", [result]).result]
        ir.Operation.create("llvm.return", [], values)
    return block


def _guard(function: Op, block: Any, number: int, out: Any, locations: list[str]) -> None:
    """Puts a block that counts on the way from a block to one of its successors."""
    last = _last(block)
    successors = list(last.successors)
    head = successors[number]
    kinds = [argument.type for argument in head.arguments]
    places = [last.location] * len(kinds)
    turn = function.regions[0].blocks.append(*kinds, arg_locs=places)
    i1, i64 = (ir.IntegerType.get_signless(bits) for bits in (1, 64))
    tag = ir.IntegerAttr.get(i64, len(locations) << LOCATION_SHIFT)
    locations.append(location_text(last.location))
    with ir.InsertionPoint(turn), last.location:
        value = ir.Operation.create("llvm.mlir.constant", [i64], [], {"value": tag}).result
        over = llvm.CallOp(i1, [value], [], [], callee=TURN).operation.results[0]
        sizes = ir.DenseI32ArrayAttr.get([1, 0, len(kinds)])
        ir.Operation.create(
            "llvm.cond_br",
            [],
            [over, *turn.arguments],
            {"operandSegmentSizes": sizes},
            successors=[out, head],
        )
    successors[number] = turn
    with ir.InsertionPoint(last), last.location:
        attributes = {name: last.attributes[name] for name in last.attributes}
        ir.Operation.create(last.name, [], list(last.operands), attributes, successors=successors)
    last.erase()
