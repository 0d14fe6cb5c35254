"""A function of `ascend` operators as plain data (`analysis.value_graph`)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import python_value
from davinci.element_types import DTYPES
from davinci.mlir import Op, ir, location_text
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.passes.analysis.value_graph import (
    ARGUMENT,
    OTHER,
    KnownElements,
    OperandSums,
    ValueGraph,
    ValueNode,
)
from davinci.passes.ascend.ascend_fold_constants import mark_foldable, value_of
from davinci.passes.ascend.split_products import kept_dimensions
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    CONVOLUTION,
    KEEPS_NUMBERS,
    ON_CUBE,
    constant_array,
    full_value,
)
from davinci.passes.pipeline.base import fail

PREFIX = "ascend."

RANGE = "ascend.range"
"""The attribute of an argument with the least and the largest of its elements."""


class PlainGraph:
    """The graph of a block, and which value each node is.

    Attributes:
        graph: the nodes in the order of the block.
        numbers: the node of each value.
        operations: the operation of each node; None of arguments.
    """

    def __init__(self, function: Op) -> None:
        block = function.regions[0].blocks[0]
        self.numbers: dict[ir.Value, int] = {}
        self.operations: list[Op | None] = []
        self._nodes: list[ValueNode] = []
        self._foldable = mark_foldable(block)
        ranges = {}
        for number, (argument, found) in enumerate(
            zip(block.arguments, _ranges(function), strict=True)
        ):
            self._add(
                argument, None, ValueNode(ARGUMENT, place=f"argument {number}", **_type(argument))
            )
            if found is not None:
                ranges[number] = found
        results: tuple[int, ...] = ()
        for operation in block.operations:
            op = operation.operation
            for value in op.results:
                self._add(value, op, self._node(op, value))
            if not len(op.results):
                results = tuple(self.numbers[v] for v in op.operands)
        self.graph = ValueGraph(self._nodes, results, ranges)

    def _add(self, value: ir.Value, op: Op | None, node: ValueNode) -> None:
        self.numbers[value] = len(self._nodes)
        self.operations.append(op)
        self._nodes.append(node)

    def _node(self, op: Op, value: ir.Value) -> ValueNode:
        name = op.name.removeprefix(PREFIX)
        place = location_text(op.location)
        if name == op.name or len(op.results) != 1:
            return ValueNode(OTHER, place=place, **_type(value))
        operands = tuple(self.numbers[v] for v in op.operands)
        attributes = {key: python_value(op.attributes[key]) for key in op.attributes}
        fixed = value in self._foldable or op.name in CONSTANTS
        node = ValueNode(
            name, operands, fixed=fixed, place=place, **_type(value), attributes=attributes
        )
        if op.name in CONSTANTS:
            return replace(node, attributes={}, known=self._known(op))
        if op.name in ON_CUBE:
            return self._product(op, node)
        if name in ("reduce", "pool"):
            return replace(node, terms=_terms(op, node))
        if fixed and name in KEEPS_NUMBERS and len(operands) == 1:
            return replace(node, known=self._nodes[operands[0]].known)
        return node

    @staticmethod
    def _known(op: Op) -> KnownElements | None:
        if tensor_of(op.results[0].type).element not in DTYPES:
            return None
        number = full_value(op.results[0])
        return KnownElements.of(constant_array(op) if number is None else number)

    def _product(self, op: Op, node: ValueNode) -> ValueNode:
        """A product, with the sums of an operand that is known."""
        shape, turned = tensor_of(op.operands[0].type).shape, TRANSPOSE_A in op.attributes
        terms = shape[-2] if turned else shape[-1]
        if op.name == CONVOLUTION:
            terms = tensor_of(op.operands[1].type).shape[1]
        node = replace(node, terms=terms)
        if node.element not in ("f32", "f16"):
            return node
        for side, kept in reversed(list(enumerate(kept_dimensions(op)))):
            value = op.operands[side]
            if value not in self._foldable and self._nodes[self.numbers[value]].known is None:
                continue
            dims = list(kept.dims)
            if (TRANSPOSE_A, TRANSPOSE_B)[side] in op.attributes:
                dims[-1] = 2 * tensor_of(value.type).rank - 3 - dims[-1]
            array = np.asarray(value_of(value), np.float64)
            if not np.isfinite(array).all():
                continue
            summed = tuple(i for i in range(array.ndim) if i not in dims)
            above = np.maximum(array, 0).sum(axis=summed).ravel()
            below = np.minimum(array, 0).sum(axis=summed).ravel()
            return replace(node, sums=OperandSums(side, above, below, terms))
        return node


def _terms(op: Op, node: ValueNode) -> int:
    """How many elements one of the result of a sum is combined from, at most."""
    if node.name == "pool":
        return int(np.prod(node.attributes["kernel"]))
    shape = tensor_of(op.operands[0].type).shape
    return int(np.prod([shape[dim] for dim in node.attributes["dims"]], dtype=np.int64))


def _type(value: ir.Value) -> dict[str, Any]:
    if not isinstance(value.type, ir.RankedTensorType):
        return {"shape": (), "element": str(value.type)}
    found = tensor_of(value.type)
    return {"shape": found.shape, "element": found.element}


def _ranges(function: Op) -> list[tuple[float, float] | None]:
    """The range that each argument is declared to have."""
    count = len(function.regions[0].blocks[0].arguments)
    if "arg_attrs" not in function.attributes:
        return [None] * count
    found = []
    for attributes in function.attributes["arg_attrs"]:
        named = {x.name: x.attr for x in attributes}
        given = python_value(named[RANGE]) if RANGE in named else None
        found.append(None if given is None else _checked(function, given))
    return found


def _checked(function: Op, given: list[float | int]) -> tuple[float, float]:
    """A range as the text of a program has it."""
    floats = isinstance(given, list) and all(isinstance(x, float) for x in given)
    if not floats or len(given) != 2 or not -math.inf < given[0] <= given[1] < math.inf:
        expected = "[lowest, highest], two finite floats"
        fail(function, "has a bad range", found=str(given), expected=expected)
    return given[0], given[1]
