"""ascend-scale-values: rounds values to f16, times powers of two that keep them in its range.

before, %x in [0, 255]:
    %0 = "ascend.mul"(%x, %a) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>     %a = 2.5
    %1 = "ascend.add"(%0, %b) : ..                                                     %b = 0.5
    %2 = "ascend.mul"(%x, %1) : ..                                                     up to 162,690
    return %2 : tensor<64xf32>
after:
    %h = "ascend.cast"(%x) : (tensor<64xf32>) -> tensor<64xf16>
    %0 = "ascend.mul"(%h, %a8) : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>    %a8 = 2.5 / 8
    %1 = "ascend.add"(%0, %b8) : ..                                                    %b8 = 0.5 / 8
    %2 = "ascend.mul"(%h, %1) : ..                                                     up to 20,337
    %3 = "ascend.cast"(%2) : (tensor<64xf16>) -> tensor<64xf32>
    %4 = "ascend.mul"(%3, %c) : ..                                                     %c = 8
    return %4 : tensor<64xf32>

`analysis.half_scales` says which values and scales these are, from the ranges of arguments (their
attribute `ascend.range`, or their type): no f16 overflows while arguments are in them. Powers of
two change no digits, so results are off by roundings to f16 only, and the last multiplication is
exact. How far that is at most stands in `ascend.scaling`, with what had no bound and stays as
`ascend-legalize-precision` leaves it with `mixed`. Policies but `scaled-fp16` change nothing.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, owner_of
from davinci.operators.arithmetic import is_power_of_two
from davinci.operators.tensors import Tensor
from davinci.passes import builder
from davinci.passes.analysis.half_scales import Scales, plan_scales
from davinci.passes.analysis.value_analysis import is_sum
from davinci.passes.analysis.value_graph import PRODUCTS
from davinci.passes.ascend.plain_graph import PlainGraph
from davinci.passes.ascend.split_products import kept_dimensions, scaled_at_run_time
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    HALF,
    MOVES,
    TensorOps,
    erase_unused,
    full_value,
    is_f32,
    merge_equal,
    read_once,
    tensor_functions,
    users_of,
)
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS, SCALED

SCALING = "ascend.scaling"
"""The attribute of a module with what was scaled, as JSON."""

SAFE_EXPONENT = 14
"""Powers of two up to this, and their inverses, are normal numbers of f16."""

KEPT = (*MOVES, "ascend.broadcast")


@register_pass
@dataclass(frozen=True)
class AscendScaleValuesPass(Pass):
    """Round values to f16, times powers of two that keep them in its range."""

    NAME = "ascend-scale-values"

    precision: str = option("mixed", "others than scaled-fp16 leave all as it is", PRECISIONS)

    def run(self, op: Op) -> None:
        if self.precision != SCALED or SCALING in op.attributes:
            return
        for function in tensor_functions(op):
            plain = PlainGraph(function)
            scales = plan_scales(plain.graph)
            block = function.regions[0].blocks[0]
            ScaleEmitter(plain, scales).run(block)
            merge_equal(block)
            with op.context:
                text = json.dumps(summary(plain, scales))
                op.attributes[SCALING] = ir.StringAttr.get(text)


class ScaleEmitter:
    """Builds what a plan says, operator by operator."""

    def __init__(self, plain: PlainGraph, scales: Scales) -> None:
        self._graph, self._plan = plain.graph, scales.plan
        self._plain = plain
        self._stored: dict[int, ir.Value] = {}
        self._halves: dict[tuple[ir.Value, int], ir.Value] = {}
        self._singles: dict[int, ir.Value] = {}

    def run(self, block: ir.Block) -> None:
        numbers = self._plain.numbers
        for operation in list(block.operations):
            op = operation.operation
            if len(op.results) == 1 and op.results[0] in numbers:
                self._visit(numbers[op.results[0]], op)
            else:
                with op.location, ir.InsertionPoint(op):
                    self._widen(op, TensorOps())
        join_factors(block)
        erase_unused(block)

    def _visit(self, number: int, op: Op) -> None:
        """Replaces an operator by one of f16, or gives it operands of f32."""
        node = self._graph.nodes[number]
        if node.fixed or node.known is not None:
            return
        with op.location, ir.InsertionPoint(op):
            ops = TensorOps()
            exponent = self._plan.exponents.get(number)
            reads = {p for p in range(len(op.operands)) if self._plan.reads_half((number, p))}
            operands = [
                self._half(v, self._plan.reads[number, p], ops)
                if (number, p) in self._plan.reads
                else v
                for p, v in enumerate(op.operands)
            ]
            if node.name in PRODUCTS and len(reads) == 1:
                self._mixed_product(number, op, operands, ops)
            elif node.name in PRODUCTS and reads:
                self._product(number, op, operands, ops)
            elif is_sum(node) and reads:
                self._sum(number, op, operands, ops)
            elif exponent is None and reads:  # its result is no float
                self._copied(op, operands, tensor_of(op.results[0].type).element, ops, True)
            elif exponent is None:
                self._widen(op, ops)
            elif reads:
                self._stored[number] = self._copied(op, operands, HALF, ops, False)
            else:
                self._stored[number] = self._converted(op, exponent, ops)

    def _copied(
        self, op: Op, operands: list[ir.Value], element: str, ops: TensorOps, replaces: bool
    ) -> ir.Value:
        """The same operator of other operands."""
        attributes = {key: op.attributes[key] for key in op.attributes}
        result = replace(tensor_of(op.results[0].type), element=element)
        made = builder.op(op.name, operands, [tensor_type(result)], **attributes).result
        if replaces:
            op.results[0].replace_all_uses_with(made)
            if op.results[0] in self._plain.numbers:
                self._plain.numbers[made] = self._plain.numbers[op.results[0]]
        return made

    def _widen(self, op: Op, ops: TensorOps) -> None:
        """Gives an operation f32 values in the place of those that have become f16."""
        for place, value in enumerate(op.operands):
            op.operands[place] = self._single(value, ops)

    def _converted(self, op: Op, exponent: int, ops: TensorOps) -> ir.Value:
        """The result of an operator of f32, scaled and rounded."""
        source = op.operands[0] if op.name == "ascend.cast" else None
        if source is not None and exponent == 0:
            return ops.cast(source, HALF)
        self._widen(op, ops)
        with ir.InsertionPoint.after(op):
            return ops.cast(_times(op.results[0], exponent, ops), HALF)

    def _product(self, number: int, op: Op, operands: list[ir.Value], ops: TensorOps) -> None:
        """A product of f16: its result is f16 where it has the scale that it comes with, else f32
        times what is missing."""
        natural = sum(self._plan.reads.get((number, place), 0) for place in (0, 1))
        exponent = self._plan.exponents.get(number)
        measured = [place for place in (0, 1) if (number, place) in self._plan.measured]
        if exponent == natural and not measured:
            self._stored[number] = self._copied(op, operands, HALF, ops, False)
            return
        backs = []
        for place in measured:
            kept = kept_dimensions(op)[place]
            wide = self._single(op.operands[place], ops)
            scaled, back = scaled_at_run_time(wide, kept.dims, ops)
            operands[place] = ops.cast(scaled, HALF)
            backs.append(kept.spread(back, tensor_of(op.results[0].type), ops))
        total = self._copied(op, operands, "f32", ops, False)
        for back in backs:
            total = ops.binary("mul", ops.binary("mul", total, back), back)
        if exponent is None:
            self._singles[number] = _times(total, -natural, ops)
        else:
            self._stored[number] = ops.cast(_times(total, exponent - natural, ops), HALF)

    def _mixed_product(self, number: int, op: Op, operands: list[ir.Value], ops: TensorOps) -> None:
        """A product with one operand that has a scale, and one that `ascend-legalize-precision`
        rounds as it is."""
        wide = [
            ops.cast(new, "f32") if new != old else self._single(old, ops)
            for new, old in zip(operands, op.operands, strict=True)
        ]
        exponent = sum(self._plan.reads.get((number, place), 0) for place in (0, 1))
        total = self._copied(op, wide, "f32", ops, False)
        self._singles[number] = _times(total, -exponent, ops)

    def _sum(self, number: int, op: Op, operands: list[ir.Value], ops: TensorOps) -> None:
        """A sum of f16 values in f32: few values are scaled back instead of many."""
        wide = ops.cast(operands[0], "f32")
        total = self._copied(op, [wide, *operands[1:]], "f32", ops, False)
        self._singles[number] = _times(total, -self._plan.reads[number, 0], ops)

    def _half(self, value: ir.Value, exponent: int, ops: TensorOps) -> ir.Value:
        """2^exponent times a value, as f16."""
        key = (value, exponent)
        if key not in self._halves:
            self._halves[key] = self._made_half(value, exponent, ops)
        return self._halves[key]

    def _made_half(self, value: ir.Value, exponent: int, ops: TensorOps) -> ir.Value:
        number = self._plain.numbers[value]
        node = self._graph.nodes[number]
        if number in self._stored:
            delta = exponent - self._plan.exponents[number]
            stored = self._stored[number]
            if abs(delta) <= SAFE_EXPONENT:
                return _times(stored, delta, ops)
            return ops.cast(_times(ops.cast(stored, "f32"), delta, ops), HALF)
        if node.fixed:
            return self._fixed_half(value, exponent, ops)
        return ops.cast(_times(self._single(value, ops), exponent, ops), HALF)

    def _fixed_half(self, value: ir.Value, exponent: int, ops: TensorOps) -> ir.Value:
        """A value that is known at compile time: what repeats it does so behind the conversion,
        which is left to ascend-fold-constants, since that counts what is lost."""
        owner, found = owner_of(value), tensor_of(value.type)
        narrow = Tensor(found.shape, HALF)
        if owner.name in KEPT and len(owner.operands) == 1:
            source = self._fixed_half(owner.operands[0], exponent, ops)
            attributes = {key: owner.attributes[key] for key in owner.attributes}
            return builder.op(owner.name, [source], [tensor_type(narrow)], **attributes).result
        number = full_value(value)
        if number is not None:
            value = ops.full(found.shape, "f32", math.ldexp(float(number), exponent))
        elif owner.name in CONSTANTS or exponent:
            value = _times(value, exponent, ops)
        return builder.op("ascend.cast", [value], [tensor_type(narrow)]).result

    def _single(self, value: ir.Value, ops: TensorOps) -> ir.Value:
        """A value as f32, without its scale."""
        number = self._plain.numbers.get(value)
        if number is None or not is_f32(value):
            return value
        if number in self._singles:
            return self._singles[number]
        if number not in self._stored:
            return value
        wide = ops.cast(self._stored[number], "f32")
        self._singles[number] = _times(wide, -self._plan.exponents[number], ops)
        return self._singles[number]


def _times(value: ir.Value, exponent: int, ops: TensorOps) -> ir.Value:
    """A value times a power of two."""
    if not exponent:
        return value
    found = tensor_of(value.type)
    factor = ops.full(found.shape, found.element, math.ldexp(1.0, exponent))
    return ops.binary("mul", value, factor)


def join_factors(block: ir.Block) -> None:
    """Multiplies powers of two by the number that their product is multiplied or divided by next:
    (x * 16) / 8 -> x / 0.5, which is exact."""
    for operation in list(block.operations):
        op = operation.operation
        if op.name != "ascend.mul" or not is_f32(op.result):
            continue
        value, known = op.operands[0], full_value(op.operands[1])
        if known is None or not is_power_of_two(float(known)) or not read_once(op.result):
            continue
        last: Op = op
        while len(users := users_of(last)) == 1 and users[0].name in KEPT:
            last = users[0]
        if len(users) == 1 and joined(users[0], last.results[0], float(known)):
            op.result.replace_all_uses_with(value)


def joined(op: Op, scaled: ir.Value, factor: float) -> bool:
    """Gives the number that a value is multiplied or divided by a factor of the value; whether
    there is such a number."""
    if op.name not in ("ascend.mul", "ascend.div") or not is_f32(op.results[0]):
        return False
    place = 1 if op.operands[0] == scaled else 0
    known = full_value(op.operands[place])
    if known is None:
        return False
    divided = op.name == "ascend.div" and place == 1
    number = float(known) / factor if divided else float(known) * factor
    if not LEAST_FACTOR <= abs(number) <= 1 / LEAST_FACTOR:
        return False
    with ir.InsertionPoint(op), op.location:
        found = tensor_of(op.results[0].type)
        op.operands[place] = TensorOps().full(found.shape, found.element, number)
    return True


LEAST_FACTOR = 2.0**-100
"""Factors from this to its inverse are joined: f32 has all their digits."""


def scaling_of(module: Op) -> dict[str, Any]:
    """What was scaled in a module, at any level."""
    found = attribute(module, SCALING)
    return {} if found is None else dict(json.loads(found))


def summary(plain: PlainGraph, scales: Scales) -> dict[str, Any]:
    """What the record of a run says: bounds of outputs, scales, and what stays f32."""
    graph, plan = plain.graph, scales.plan
    floats = [n for n, node in enumerate(graph.nodes) if node.element == "f32" and not node.fixed]
    return {
        "halves": len(plan.exponents),
        "scaled": sum(e != 0 for e in plan.exponents.values()),
        "singles": sum(n not in plan.exponents and n not in scales.left for n in floats),
        "outputs": [_output(scales, n) for n in graph.results],
        "left": [
            {"operator": graph.nodes[n].name, "place": graph.nodes[n].place, "reason": reason}
            for n, reason in sorted(scales.left.items())
        ],
    }


def _output(scales: Scales, number: int) -> dict[str, Any]:
    """The range and the largest errors of an output; None where there is no bound. Computed and
    exact values are no further apart than their ranges."""
    bound, exact = scales.bounds[number], scales.exact[number]
    apart = max(bound.most - exact.least, exact.most - bound.least)

    def finite(x: float) -> float | None:
        return x if math.isfinite(x) else None

    return {
        "low": finite(bound.least),
        "high": finite(bound.most),
        "max_abs_err": finite(min(bound.most_error, apart)),
        "max_rel_err": finite(bound.relative_error),
    }
