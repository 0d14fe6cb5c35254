"""ascend-dequantize-sums: sums of bytes that become bytes again are scaled on their way out of L0C.

before:
    %0 = "ascend.conv"(%x, %w) {..} : (..) -> tensor<1x64x32xi32>
    %1 = "ascend.cast"(%0) : (tensor<1x64x32xi32>) -> tensor<1x64x32xf32>
    %2 = "ascend.mul"(%1, %scales) : ..
    %3 = "ascend.add"(%2, %bias) : ..
    %4 = "ascend.div"(%3, %step) : ..                   a number
    %5 = "ascend.quantize"(%4) {zero = 3} : (tensor<1x64x32xf32>) -> tensor<1x64x32xi8>
after:
    %0 = "ascend.conv"(%x, %w) {..} : (..) -> tensor<1x64x32xi32>
    %1 = "ascend.dequantize"(%0, %s, %d) : (..) -> tensor<1x64x32xf16>   s = scales / step
    %2 = "ascend.quantize"(%1) {zero = 0} : (tensor<1x64x32xf16>) -> tensor<1x64x32xi8>

What a QuantizeLinear divides by its step is computed in f16, counted in steps, if sums of products
of bytes are in it: also additions of bytes and of other sums, a `relu`, maxima of windows, and sums
of rows, which are f32. Zero points, bias and all other terms that are the same for all rows are
added to the integers, exact.
Where a product of bytes has become one of f16, or is a convolution of floats, its weights are
scaled and what it gives is rounded. Floats that were bytes are integers in f16 there, and what
these count is a factor of the weights (`integer_images`).

Where fixpipe scales, mads begin with the integers, and sums leave L0C as bytes if at most a `relu`
is between (`scale_sums`), else as f16, in rows where residuals are added; so do those that are
scaled, perhaps limited, and rounded to f16:

    %2 = "ascend.add"(%0, %row) : ..                    tensor<1x64x32xi32>
    %3 = "ascend.scale_sums"(%2, %words) : (..) -> tensor<1x64x32xi8>

An f16 holds a byte's steps to an eighth or better, so a result may be the neighbour of what f32
would give. What ONNX defines to the last bit stays as it is: the results of QLinearConv and
QLinearMatMul, which are not divided, and all that is no sum of products. `precision=fp32` changes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.element_types import dtype_of
from davinci.isa.quantize import OFFSET_BITS, OFFSET_SHIFT
from davinci.mlir import Op, ir
from davinci.operators.products import TRANSPOSE_B
from davinci.operators.quantize import weights_of_digits
from davinci.operators.tensors import ND, NZ, Tensor
from davinci.passes.ascend.dequantized_parts import (
    LARGEST,
    AtMost,
    Bytes,
    Number,
    QuantizedPart,
    Relu,
    Sum,
    Total,
    Unfit,
    WindowMaxima,
    constant,
    full,
    plus,
    spread,
)
from davinci.passes.ascend.dequantized_sums import OfBytes, OfFixpipe, OfFloats, OfHalves
from davinci.passes.ascend.integer_images import IntegerImage
from davinci.passes.ascend.tensor_ops import (
    CONSTANT,
    CONVOLUTION,
    DEQUANTIZE,
    ON_CUBE,
    POOL,
    RELAYOUT,
    SCALED_ON_LEAVING,
    TensorOps,
    constant_array,
    defining_op,
    definition,
    erase_unused,
    full_value,
    read_once,
    tensor_functions,
    users_of,
)
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS
from davinci.schedule.followers import BYTES

SCALES = "s322f16v"
"""The type of instructions that scale."""

EXITS: dict[str, type[OfBytes]] = {"copy_matrix_cc_to_ubuf": OfBytes, "fixpipe": OfFixpipe}
"""Ways out of L0C, and the parts that are made of sums of bytes where they scale."""

OFFSET_RIGHT = 32 - OFFSET_BITS
OFFSET_LEFT = OFFSET_RIGHT - (OFFSET_SHIFT - 32)
"""Bits by which the upper half of a word goes left and then right, to be its offset."""

OFFSETS = range(-(1 << OFFSET_BITS - 1), 1 << OFFSET_BITS - 1)
"""The numbers that words of fixpipe can add to bytes."""


@register_pass
@dataclass(frozen=True)
class AscendDequantizeSumsPass(Pass):
    """Scale sums of bytes that become bytes again on their way out of L0C."""

    NAME = "ascend-dequantize-sums"

    machine: str = option("ascend910", "machine file that says whether copies scale")
    precision: str = option("mixed", "fp32 leaves all as it is", PRECISIONS)

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        kind = next(
            (kind for name, kind in EXITS.items() if SCALES in machine.intrinsics.get(name, ())),
            None,
        )
        if self.precision == "fp32" or kind is None:
            return
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            for each in [o.operation for o in block.operations]:
                if each.name == "ascend.quantize":
                    narrow(each, kind)
                elif each.name == "ascend.cast" and kind is OfFixpipe:
                    round_early(each)
            erase_unused(block)


def narrow(quantize: Op, kind: type[OfBytes]) -> None:
    """Has what `quantize` takes computed in f16, if it is made of sums of bytes, which are parts of
    a kind; or has these leave L0C as bytes, if that is all."""
    x, zero = quantize.operands[0], attribute(quantize, "zero")
    source, made = defining_op(x), tensor_of(quantize.results[0].type)
    limits = np.iinfo(dtype_of(made.element))
    low, high = int(limits.min), int(limits.max)
    divides = source is not None and source.name == "ascend.div"
    if not divides or tensor_of(x.type).element != "f32":
        return
    try:
        part, number = Reader(zero == low, kind, float(high - zero)).read(x, 1.0)
        if not part.has_sums:
            return
        number = number + zero
        left = 0.0 if part.take(number) else number
        part.settle(False)
    except Unfit:
        return
    with quantize.location, ir.InsertionPoint(quantize):
        ops = TensorOps()
        new = leaving(part, left, made.element, ops)
        if new is None:
            steps = plus(part.emit(ops), left, ops)
            layout = tensor_of(steps.type).layout
            new = ops.emit("quantize", [steps], replace(made, layout=layout), zero=0)
        for user in users_of(quantize):
            if user.name == RELAYOUT and user.results[0].type == new.type:
                user.results[0].replace_all_uses_with(new)
        found = ops.relayout(new, made.layout)
    quantize.results[0].replace_all_uses_with(found)
    quantize.erase()


def round_early(cast: Op) -> None:
    """Has sums of bytes that are scaled, perhaps limited, and rounded to f16 leave L0C as f16."""
    (x,), (result,) = cast.operands, cast.results
    made = tensor_of(result.type)
    if (tensor_of(x.type).element, made.element) != ("f32", "f16"):
        return
    try:
        part, number = Reader(False, OfFixpipe).read(x, 1.0)
        if not part.by_fixpipe:
            return
        left = 0.0 if part.take(number) else number
        if made.layout == ND:
            part.go_to_rows()
        part.settle(True)
    except Unfit:
        return
    with cast.location, ir.InsertionPoint(cast):
        ops = TensorOps()
        new = ops.relayout(plus(part.emit(ops), left, ops), made.layout)
    result.replace_all_uses_with(new)
    cast.erase()


def leaving(part: QuantizedPart, left: Number, element: str, ops: TensorOps) -> ir.Value | None:
    """A part as bytes that fixpipe makes on the way out of L0C, a number added; None if it is more
    than sums and a relu, the number is no offset of a word, or the bytes have no sign."""
    if element != BYTES or np.ndim(left) or left not in OFFSETS:
        return None
    return part.leave(ops, element, offset=int(left))


@dataclass(frozen=True)
class Reader:
    """Reads what a value is made of, in steps.

    Attributes:
        drops_relu: whether what is quantized is 0 where it is negative.
        kind: of the parts that stand for sums of products of bytes.
        most: steps of the largest byte; of what does not become bytes infinite.
    """

    drops_relu: bool
    kind: type[OfBytes]
    most: float = math.inf

    def read(self, value: ir.Value, factor: Number) -> tuple[QuantizedPart, Number]:
        """`value` times `factor`, and the number that is missing.

        Raises:
            Unfit: it is made of something else.
        """
        op = defining_op(value)
        if op is None or not (read_once(value) or is_bytes(op)):
            raise Unfit
        rule = RULES.get(op.name)
        if rule is None:
            raise Unfit
        return rule(self, op, factor)

    def scaled(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        """By a number, or by one for each column."""
        first, second = op.operands
        number = known(second)
        if number is None and op.name == "ascend.mul":
            first, number = second, known(first)
        if number is None:
            raise Unfit
        power = -1 if op.name == "ascend.div" else 1
        with np.errstate(divide="ignore"):
            return self.read(first, factor * np.power(number, power))

    def added(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        first, second = op.operands
        sign = -1 if op.name == "ascend.sub" else 1
        inner = replace(self, drops_relu=False, most=math.inf)
        if (number := known(second)) is not None:
            part, rest = inner.read(first, factor)
            return part, rest + sign * number * factor
        if sign < 0:
            raise Unfit
        if (number := known(first)) is not None:
            part, rest = inner.read(second, factor)
            return part, rest + number * factor
        parts, numbers = zip(*(inner.read(v, factor) for v in (first, second)), strict=True)
        # What takes numbers comes first.
        ordered = sorted(parts, key=lambda part: not part.has_sums)
        return Sum(op.results[0], ordered), sum(numbers)

    def rectified(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        if np.any(np.asarray(factor) <= 0):
            raise Unfit
        part, number = self.read(op.operands[0], factor)
        if self.drops_relu:
            return part, number
        left = 0.0 if part.take(number) else number
        return Relu(op.results[0], [part], left), 0.0

    def convolved(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        """The part of a product or convolution whose operands are floats of f16."""
        of = tensor_of(op.operands[0].type).element, tensor_of(op.results[0].type).element
        if of != ("f16", "f32") or attribute(op, TRANSPOSE_B, False):
            raise Unfit
        image = IntegerImage.of(op.operands[0])
        return OfFloats(op.results[0], product=op, scales=factor, image=image), 0.0

    def moved(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        """To rows: all of it is computed in fractals, as products give it."""
        if tensor_of(op.operands[0].type).layout != NZ:
            raise Unfit
        return self.read(op.operands[0], factor)

    def limited(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        """Not more than a number, which does nothing if bytes are limited to less."""
        most = known(op.operands[1])
        if most is None or np.ndim(most) or np.ndim(factor) or factor <= 0:
            raise Unfit
        part, number = self.read(op.operands[0], factor)
        if most * factor >= self.most:
            return part, number
        left = 0.0 if part.take(number) else number
        return AtMost(op.results[0], [part], left, float(most * factor)), 0.0

    def pooled(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        if attribute(op, "kind") != "max" or np.any(np.asarray(factor) <= 0):
            raise Unfit
        part, number = self.read(op.operands[0], factor)
        return WindowMaxima(op.results[0], [part]), number

    def totalled(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        """Sums of rows, which are scaled up before as far as f16 has room for the largest."""
        whole, made = (tensor_of(value.type) for value in (op.operands[0], op.results[0]))
        if attribute(op, "kind") != "add" or whole.rank - 1 in attribute(op, "dims"):
            raise Unfit
        count = whole.count // max(made.count, 1)
        for power in range(count.bit_length() - 1, -1, -2):
            part, number = replace(self, drops_relu=False, most=math.inf).read(
                op.operands[0], factor * 2.0**power
            )
            try:
                part.settle(True)
            except Unfit:
                continue
            return Total(op.results[0], [part], power), count * number * 2.0**-power
        raise Unfit

    def widened(self, op: Op, factor: Number) -> tuple[QuantizedPart, Number]:
        """f32 of integers."""
        source = op.operands[0]
        kind = tensor_of(source.type).element
        if kind == "i8":
            if np.ndim(factor):
                raise Unfit
            source = in_fractals(source)
            return Bytes(source, factor=float(factor)), 0.0
        if kind != "i32":
            raise Unfit
        numbers: Number = 0.0
        source = in_fractals(source)
        owner = defining_op(source)
        while owner is not None and owner.name in ("ascend.sub", "ascend.add"):
            number = known(owner.operands[1])
            if number is None or not read_once(source):
                raise Unfit
            numbers = numbers + (number if owner.name == "ascend.add" else -number)
            source = in_fractals(owner.operands[0])
            owner = defining_op(source)
        if owner is not None and issubclass(self.kind, OfFixpipe) and is_renamed(owner):
            if not read_once(source):
                raise Unfit
            source = in_fractals(owner.operands[0])
            owner = defining_op(source)
        if owner is None or not read_once(source):
            raise Unfit
        given = {"numbers": numbers, "scales": factor}
        if owner.name in ON_CUBE:
            return self.kind(op.results[0], product=owner, **given), 0.0
        product = defining_op(owner.operands[0]) if owner.name == "ascend.cast" else None
        if product is None or product.name != CONVOLUTION or not read_once(product.results[0]):
            raise Unfit
        return OfHalves(op.results[0], product=product, **given), 0.0


Rule = Callable[[Reader, Op, Number], tuple[QuantizedPart, Number]]

RULES: dict[str, Rule] = {
    "ascend.mul": Reader.scaled,
    "ascend.div": Reader.scaled,
    "ascend.add": Reader.added,
    "ascend.sub": Reader.added,
    "ascend.relu": Reader.rectified,
    "ascend.min": Reader.limited,
    "ascend.cast": Reader.widened,
    POOL: Reader.pooled,
    CONVOLUTION: Reader.convolved,
    RELAYOUT: Reader.moved,
    "ascend.reduce": Reader.totalled,
}
"""How operators are read."""


def in_fractals(value: ir.Value) -> ir.Value:
    """What a value was before it was brought to rows, if it was."""
    op = defining_op(value)
    if op is None or op.name != RELAYOUT or tensor_of(value.type).layout != ND:
        return value
    return op.operands[0]


def is_renamed(op: Op) -> bool:
    """Whether an operator gives an array the same shape but for dimensions of 1 in front."""
    if op.name not in ("ascend.reshape", "ascend.view"):
        return False
    shapes = [list(tensor_of(value.type).shape) for value in (op.operands[0], op.results[0])]
    short, long = sorted(shapes, key=len)
    return long == [1] * (len(long) - len(short)) + short


def is_bytes(op: Op) -> bool:
    """Whether an operator, or what it shifts and scales, makes numbers of bytes, as often as they
    are needed."""
    found: Op | None = op
    while found is not None and found.name in ("ascend.mul", "ascend.sub", "ascend.cast"):
        if tensor_of(found.operands[0].type).element == "i8":
            return True
        found = defining_op(found.operands[0])
    return False


def known(value: ir.Value) -> Number | None:
    """The number, or the one for each column, that a value is; None if that is not known."""
    number = full_value(value)
    if number is not None:
        return float(number)
    op = defining_op(value)
    shape = tensor_of(value.type).shape
    if op is not None and op.name == CONSTANT:
        # Small rows were broadcast when constants were folded.
        rows = constant_array(op).reshape(-1, shape[-1])
        return rows[0].astype(np.float64) if (rows == rows[0]).all() else None
    if op is None or op.name != "ascend.broadcast":
        return None
    owner, dims = definition(op.operands[0]), list(attribute(op, "dims"))
    *others, columns = tensor_of(op.operands[0].type).shape or (1,)
    if owner is None or dims[-1:] != [len(shape) - 1] or others != [1] * len(others):
        return None
    return constant_array(owner).astype(np.float64).reshape(columns)


def expand(block: ir.Block) -> None:
    """Has the vector unit do what is done on the way out of L0C for products: `dequantize` and
    `scale_sums` in no kernel of one."""
    for op in [o.operation for o in block.operations if o.operation.name in SCALED_ON_LEAVING]:
        with op.location, ir.InsertionPoint(op):
            new = (dequantized if op.name == DEQUANTIZE else scaled)(op, TensorOps())
        op.results[0].replace_all_uses_with(new)
        op.erase()
    erase_unused(block)


def dequantized(op: Op, ops: TensorOps) -> ir.Value:
    """dequantize(s, f, d)   ->   cast(cast(s + broadcast(reduce(d w)), f32) broadcast(f), f16)"""
    sums, scales, digits = op.operands
    kind = tensor_of(sums.type)
    rows = ops.cast(ops.relayout(digits, ND), "f32")
    shape = tensor_of(rows.type).shape
    weights = constant(weights_of_digits(shape[1]), "f32", ND, ops)
    counted = ops.binary("mul", rows, ops.broadcast(weights, shape, [1]))
    numbers = ops.cast(ops.reduce(counted, "add", [1]), "i32")
    total = ops.binary("add", sums, spread(numbers, kind))
    wide = ops.cast(total, "f32")
    factors = spread(ops.cast(scales, "f32"), tensor_of(wide.type))
    return ops.cast(ops.binary("mul", wide, factors), "f16")


def scaled(op: Op, ops: TensorOps) -> ir.Value:
    """scale_sums(s, w)   ->   cast(cast(s, f32) broadcast(scales of w), f16), limited; of bytes
    round_away(.. + broadcast(offsets of w))"""
    sums, words = op.operands
    made, found = (tensor_of(value.type) for value in (op.results[0], sums))
    if attribute(op, "relu", False):
        sums = ops.binary("max", sums, full(found, 0, ops))
    columns, row = ops.transpose(words, [1, 0]), (found.shape[-1],)
    low, high = (ops.reshape(ops.cut(columns, [i, 0], [i + 1, *row]), row) for i in (0, 1))
    scales = ops.emit("bitcast", [low], Tensor(row, "f32"))
    wide = ops.cast(sums, "f32")
    tensor = tensor_of(wide.type)
    wide = ops.binary("mul", wide, spread(scales, tensor))
    if made.element == "f16":
        limited = ops.binary("max", wide, full(tensor, -LARGEST, ops))
        return ops.cast(ops.binary("min", limited, full(tensor, LARGEST, ops)), "f16")
    offsets = high
    for name, distance in (("shift_left", OFFSET_LEFT), ("shift_right", OFFSET_RIGHT)):
        offsets = ops.binary(name, offsets, ops.full(row, "i32", distance))
    shifted = ops.binary("add", wide, spread(ops.cast(offsets, "f32"), tensor))
    return ops.emit("quantize", [ops.unary("round_away", shifted)], made, zero=0)
