"""stablehlo-narrow-integers: integers of 64 bits that 32 hold are computed with 32.

before:
    %0 = stablehlo.convert %mask : (tensor<8xi1>) -> tensor<8xi64>
    %1 = stablehlo.add %0, %0 : tensor<8xi64>
    %2 = "stablehlo.gather"(%table, %1) .. : (tensor<9x64xf32>, tensor<8xi64>) -> tensor<8x64xf32>
after:
    %0 = stablehlo.convert %mask : (tensor<8xi1>) -> tensor<8xi32>
    %1 = stablehlo.add %0, %0 : tensor<8xi32>
    %2 = "stablehlo.gather"(%table, %1) .. : (tensor<9x64xf32>, tensor<8xi32>) -> tensor<8x64xf32>

PyTorch's and ONNX's indices, positions and counts have 64 bits, which the vector unit computes as
pairs of words, and divides by the scalar unit where there are few. `integer_ranges` proves what
nothing is lost of: an operation becomes one of 32 bits where all that it reads and its result lie
within them, and one operand at least has a form of 32 bits that is no constant. What else reads the
result reads it converted back. Arguments of 64 bits may be any number.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.elements import to_array
from davinci.mlir import Op, ir
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.integer_ranges import (
    BINARY,
    ELEMENTS_OF,
    ELEMENTS_OF_FIRST,
    REDUCTIONS,
    UNARY,
    IntegerRanges,
    has_no_sign,
    inside,
    is_integer,
    range_of_type,
)
from davinci.passes.stablehlo_to_ascend.stablehlo_sign_integers import index_places

SAME_TYPE = (
    frozenset({*BINARY, *UNARY, *ELEMENTS_OF, *ELEMENTS_OF_FIRST, "stablehlo.clamp"}) | REDUCTIONS
)
"""Operations whose operands and results of 64 bits become ones of 32 together."""

CHOOSING = REDUCTIONS | {"stablehlo.sort"}
"""Operations of several operands whose results are chosen among the elements of these."""

INNER = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case"})
"""Operations whose regions are looked into."""


@register_pass
@dataclass(frozen=True)
class StablehloNarrowIntegersPass(Pass):
    """Compute with 32 bits what of 64 lies within them."""

    NAME = "stablehlo-narrow-integers"

    def run(self, op: Op) -> None:
        for view in list(op.regions[0].blocks[0].operations):
            function = view.operation
            if function.name == "func.func":
                narrowing = IntegerNarrowing(function)
                for block in function.regions[0].blocks:
                    narrowing.block(block)


class IntegerNarrowing:
    """Rewrites the operations of a function.

    Attributes:
        ranges: of its integers.
        forms: values of 64 bits as ones of 32.
    """

    def __init__(self, function: Op) -> None:
        self.ranges = IntegerRanges()
        self.forms: dict[ir.Value, ir.Value] = {}
        with function.context:
            self.word = ir.IntegerType.get_signless(32)

    def block(self, block: ir.Block) -> None:
        for view in list(block.operations):
            op = view.operation
            self.ranges.note(op)
            inner = [block for region in op.regions for block in region.blocks]
            looked_into = op.name in INNER
            with op.location, ir.InsertionPoint(op):
                self._rewrite(op)
            for each in inner if looked_into else ():
                self.block(each)

    def _rewrite(self, op: Op) -> None:
        if op.name == "stablehlo.convert":
            self._convert(op)
        elif op.name == "stablehlo.iota":
            if is_wide(result := op.results[0]) and self._fits(result):
                dim = op.attributes["iota_dimension"]
                form = t.op("iota", [], self._kind(result), iota_dimension=dim)
                self.forms[result] = form
        elif op.name == "stablehlo.compare":
            if self._all_fit(list(op.operands)):
                for place, value in enumerate(op.operands):
                    op.operands[place] = self._narrow(value)
        else:
            self._indices(op)
            if op.name in SAME_TYPE and is_simple(op) and is_wide(op.results[0]):
                self._same_type(op)
            elif op.name in CHOOSING:
                self._chosen(op)

    def _convert(self, op: Op) -> None:
        source, result = op.operands[0], op.results[0]
        if is_wide(result) and is_integer(source.type) and self._fits(result):
            if not is_wide(source):
                kind = self._kind(result)
                form = source if source.type == kind else t.op("convert", [source], kind)
                self.forms[result] = form
        elif is_wide(source) and source in self.forms and not has_no_sign(result.type):
            form = self.forms[source]
            if form.type == result.type:
                result.replace_all_uses_with(form)
                self.ranges.keep(form, self.ranges.of(source))
            else:
                op.operands[0] = form

    def _indices(self, op: Op) -> None:
        """Indices of which all fit are read as they are computed."""
        places = index_places(op)
        if places and self._all_fit([op.operands[place] for place in places]):
            for place in places:
                op.operands[place] = self._narrow(op.operands[place])

    def _chosen(self, op: Op) -> None:
        """Results that are elements of operands with a form have one behind the operation, which
        stays as it is."""
        with ir.InsertionPoint.after(op):
            for result, source in zip(op.results, op.operands, strict=False):
                if is_wide(result) and source in self.forms and self._fits(result):
                    self.forms[result] = t.op("convert", [result], self._kind(result))

    def _same_type(self, op: Op) -> None:
        places = [n for n, v in enumerate(op.operands) if is_wide(v) and n not in index_places(op)]
        fit = self._fits(op.results[0]) and self._all_fit([op.operands[n] for n in places])
        if fit and _amounts_fit(op, self.ranges):
            self._retyped(op, places)

    def _retyped(self, op: Op, places: list[int]) -> None:
        """Puts an operation on words in front of one, and its result converted in place of it.

        Args:
            places: of the operands that become words.
        """
        words = [self._narrow(op.operands[place]) for place in places]
        narrow = op.operation.clone(ir.InsertionPoint(op))
        for place, word in zip(places, words, strict=True):
            narrow.operands[place] = word
        values = [*narrow.results]
        for region in narrow.regions:
            for block in region.blocks:
                values += [*block.arguments]
                values += [value for inner in block.operations for value in inner.results]
        for value in values:
            if is_wide(value):
                value.set_type(self._kind(value))
        old = op.results[0]
        back = t.op("convert", [narrow.results[0]], old.type)
        found = self.ranges.of(old)
        for value in (back, narrow.results[0]):
            self.ranges.keep(value, found)
        self.forms[back] = narrow.results[0]
        old.replace_all_uses_with(back)
        self.ranges.forget(old)
        op.operation.erase()

    def _all_fit(self, values: list[ir.Value]) -> bool:
        """Whether values of 64 bits lie within 32, and one of them has a form that is computed."""
        wide = all(is_wide(value) for value in values)
        return wide and any(v in self.forms for v in values) and all(map(self._fits, values))

    def _fits(self, value: ir.Value) -> bool:
        return inside(self.ranges.of(value), range_of_type(self._kind(value)))

    def _narrow(self, value: ir.Value) -> ir.Value:
        """The form of a value that fits."""
        if value in self.forms:
            return self.forms[value]
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.name == "stablehlo.constant":
            return t.constant(to_array(owner.attributes["value"]).astype("i4"), self.word)
        return t.op("convert", [value], self._kind(value))

    def _kind(self, value: ir.Value) -> ir.RankedTensorType:
        return ir.RankedTensorType.get(value.type.shape, self.word)


def is_simple(op: Op) -> bool:
    """Whether an operation has one result, and in its region, if it has one, one operation."""
    bodies = [block.operations for region in op.regions for block in region.blocks]
    return len(op.results) == 1 and all(len(body) == 2 for body in bodies)


def is_wide(value: ir.Value) -> bool:
    """Whether a value is a tensor of signed integers of 64 bits."""
    kind = value.type
    return is_integer(kind) and kind.element_type.width == 64 and not has_no_sign(kind)


def _amounts_fit(op: Op, ranges: IntegerRanges) -> bool:
    """Whether a shift is one by fewer than 32 bits, if it is one."""
    return not op.name.startswith("stablehlo.shift_") or ranges.of(op.operands[1])[1] < 32
