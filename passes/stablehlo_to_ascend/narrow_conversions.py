"""Conversions to and from narrow element types, as arithmetic on bits.

Each is a private function around one `stablehlo.map`, whose body becomes the body of one loop:

    func.func private @convert_f32_to_bf16_0(%x: tensor<8xf32>) -> tensor<8xi16> {
      %0 = "stablehlo.map"(%x) ({ ^bb0(%e: tensor<f32>): .. shifts, adds, selects .. })
      return %0 : tensor<8xi16>
    }

To a narrow float, rounding is to the nearest, ties to even, at once: from f64, and from integers
that f32 does not hold, on the bits of an f64. A conversion from one is exact.
"""

from __future__ import annotations

from collections.abc import Callable

from davinci.mlir import Op, func, ir, symbols
from davinci.narrow import NarrowFloat, NarrowInteger
from davinci.passes import builder

SOURCES = {"f32": (23, 127, 32), "f64": (52, 1023, 64)}
"""Bits of the mantissa, bias, and width of the floats whose bits are rounded."""


Body = Callable[["Elements"], "Elements"]
"""What a conversion does with each element."""


class Conversions:
    """The functions made so far in a module; equal conversions of equal shapes share one."""

    def __init__(self, module: Op) -> None:
        self._module = module
        self._functions: dict[tuple[str, ir.RankedTensorType, ir.RankedTensorType], str] = {}
        self._names = {name for name, _ in symbols(module)}

    def apply(self, name: str, value: ir.Value, element: ir.Type, body: Body) -> ir.Value:
        """`body` of every element of `value`, as a tensor of `element`.

        In a function, a call; in a region of an operation, the operations of `body` themselves.
        """
        if ir.InsertionPoint.current.block.owner.operation.name != "func.func":
            return body(Elements(value)).to(element).value
        result = ir.RankedTensorType.get(value.type.shape, element)
        key = (name, value.type, result)
        if key not in self._functions:
            self._functions[key] = self._build(name, value.type, result, body)
        callee = ir.FlatSymbolRefAttr.get(self._functions[key])
        return builder.op("func.call", [value], [result], callee=callee).result

    def _build(self, base: str, operand: ir.ShapedType, result: ir.ShapedType, body: Body) -> str:
        number = 0
        while (name := f"{base}_{number}") in self._names:
            number += 1
        self._names.add(name)
        with ir.InsertionPoint(self._module.regions[0].blocks[0]):
            function = func.FuncOp(name, ([operand], [result]), visibility="private")
        block = function.add_entry_block()
        scalar = ir.RankedTensorType.get([], operand.element_type)
        with ir.InsertionPoint(block):
            dims = ir.DenseI64ArrayAttr.get(list(range(len(operand.shape))))
            mapped = ir.Operation.create(
                "stablehlo.map", [result], [block.arguments[0]], {"dimensions": dims}, regions=1
            )
            inner = mapped.regions[0].blocks.append(scalar, arg_locs=[ir.Location.current])
            with ir.InsertionPoint(inner):
                found = body(Elements(inner.arguments[0])).to(result.element_type)
                builder.op("stablehlo.return", [found.value])
            func.ReturnOp([mapped.result])
        return name


class Elements:
    """A tensor, in the body of a map of rank 0, with Python's operators on its elements."""

    def __init__(self, value: ir.Value) -> None:
        self.value = value
        self.element = value.type.element_type

    def _constant(self, number: float) -> ir.Value:
        if isinstance(self.element, ir.FloatType):
            attr: ir.Attribute = ir.FloatAttr.get(self.element, number)
        else:
            width = self.element.width
            attr = ir.IntegerAttr.get(self.element, number - (1 << width) * (number >> width - 1))
        splat = ir.DenseElementsAttr.get_splat(self.value.type, attr)
        return builder.op("stablehlo.constant", [], [self.value.type], value=splat).result

    def _binary(self, name: str, other: Elements | float) -> Elements:
        right = other.value if isinstance(other, Elements) else self._constant(other)
        return Elements(
            builder.op(f"stablehlo.{name}", [self.value, right], [self.value.type]).result
        )

    def __add__(self, other: Elements | float) -> Elements:
        return self._binary("add", other)

    def __sub__(self, other: Elements | float) -> Elements:
        return self._binary("subtract", other)

    def __mul__(self, other: Elements | float) -> Elements:
        return self._binary("multiply", other)

    def __and__(self, other: Elements | int) -> Elements:
        return self._binary("and", other)

    def __or__(self, other: Elements | int) -> Elements:
        return self._binary("or", other)

    def __xor__(self, other: Elements | int) -> Elements:
        return self._binary("xor", other)

    def __lshift__(self, count: int) -> Elements:
        return self._binary("shift_left", count) if count else self

    def __rshift__(self, count: int) -> Elements:
        """Zeros come in from the left."""
        return self._binary("shift_right_logical", count) if count else self

    def shift_arithmetic(self, count: int) -> Elements:
        return self._binary("shift_right_arithmetic", count)

    def least(self, other: float) -> Elements:
        return self._binary("minimum", other)

    def most(self, other: float) -> Elements:
        return self._binary("maximum", other)

    def is_(self, predicate: str, other: float) -> Elements:
        """`predicate` is EQ, NE, LT, LE, GT or GE."""
        direction = ir.Attribute.parse(f"#stablehlo<comparison_direction {predicate}>")
        kind = ir.RankedTensorType.get(self.value.type.shape, integer(1))
        operands = [self.value, self._constant(other)]
        return Elements(
            builder.op("stablehlo.compare", operands, [kind], comparison_direction=direction).result
        )

    def where(self, yes: Elements | int, no: Elements) -> Elements:
        """`yes` where this boolean is true, else `no`."""
        chosen = yes.value if isinstance(yes, Elements) else no._constant(yes)
        operands = [self.value, chosen, no.value]
        return Elements(builder.op("stablehlo.select", operands, [no.value.type]).result)

    def to(self, element: ir.Type) -> Elements:
        return self._as("stablehlo.convert", element)

    def bits_as(self, element: ir.Type) -> Elements:
        return self._as("stablehlo.bitcast_convert", element)

    def _as(self, name: str, element: ir.Type) -> Elements:
        if element == self.element:
            return self
        kind = ir.RankedTensorType.get(self.value.type.shape, element)
        return Elements(builder.op(name, [self.value], [kind]).result)


def integer(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


def widened(stored: Elements, kind: NarrowFloat) -> Elements:
    """The f32 of the bits of a narrow float."""
    m, f32 = kind.mantissa_bits, ir.F32Type.get()
    word = stored.to(integer(32))
    if (kind.exponent_bits, kind.signed) == (8, True):  # the upper half of an f32
        return (word << 23 - m).bits_as(f32)
    word = word & (1 << kind.bits) - 1
    if not kind.signed:  # exponents only; the least is below the normal numbers of f32
        power = word.is_("EQ", 0).where(1 << 22, word << 23)
        return word.is_("EQ", kind.nan).where(0x7FC00000, power).bits_as(f32)
    magnitude = word & (1 << kind.bits - 1) - 1
    small = magnitude.to(f32) * 2.0 ** (1 - kind.bias - m)
    normal = (magnitude << 23 - m) + (127 - kind.bias << 23)
    bits = magnitude.is_("LT", 1 << m).where(small.bits_as(integer(32)), normal)
    if kind.overflow != kind.largest and kind.negative_zero:
        bits = magnitude.is_("GT", kind.largest).where(0x7FC00000, bits)
    if kind.overflow != kind.nan and kind.overflow != kind.largest:
        bits = magnitude.is_("EQ", kind.overflow).where(0x7F800000, bits)
    bits = bits | ((word >> kind.bits - 1) << 31)
    if not kind.negative_zero:
        bits = word.is_("EQ", kind.nan).where(0x7FC00000, bits)
    return bits.bits_as(f32)


def rounded(number: Elements, kind: NarrowFloat) -> Elements:
    """The bits of the narrow float nearest to an f32 or f64."""
    mantissa, bias, width = SOURCES[str(number.element)]
    m, word = kind.mantissa_bits, number.bits_as(integer(width))
    infinity = (2 * bias + 1) << mantissa
    magnitude = word & (1 << width - 1) - 1
    if not kind.signed:
        return _rounded_power(word, kind, mantissa, bias)
    cut = mantissa - m
    odd = (magnitude >> cut) & 1
    code = ((magnitude + ((1 << cut - 1) - 1) + odd) >> cut) - (bias - kind.bias << m)
    if kind.bias != bias:
        # Added to this, whose last bit is worth the least number, a small one is rounded to it.
        least = 2.0 ** (1 - kind.bias - m + mantissa)
        exact = magnitude.bits_as(number.element)
        small = (exact + least).bits_as(integer(width)) - _bits(least, mantissa, bias)
        code = magnitude.is_("LT", (bias - kind.bias + 1) << mantissa).where(small, code)
    code = code.is_("GT", kind.largest).where(kind.overflow, code)
    # A magnitude beyond all that is finite would wrap around in what was subtracted.
    code = magnitude.is_("GE", infinity).where(kind.overflow, code)
    code = magnitude.is_("GT", infinity).where(kind.nan, code)
    sign = (word >> width - 1) << kind.bits - 1
    if kind.negative_zero:
        return code ^ sign
    return code.is_("EQ", 0).where(0, code | sign)


def _bits(power: float, mantissa: int, bias: int) -> int:
    """The bits of a power of two as a float."""
    exponent = int(power).bit_length() - 1 if power >= 1 else -(int(1 / power).bit_length() - 1)
    return (exponent + bias) << mantissa


def _rounded_power(word: Elements, kind: NarrowFloat, mantissa: int, bias: int) -> Elements:
    """The exponent of the power of two nearest to the float with the bits `word`; ties go up."""
    code = ((word + (1 << mantissa - 1)) >> mantissa) - (bias - kind.bias)
    # The least one is half of the first normal number of f32, and nothing positive becomes NaN.
    tie = ((bias - kind.bias) << mantissa) + (3 << mantissa - 2)
    if bias != kind.bias:
        tie = ((bias - kind.bias) << mantissa) + (1 << mantissa - 1)
    code = word.is_("LT", tie).where(0, code)
    code = code.is_("GT", kind.largest).where(kind.nan, code)
    return word.is_("LE", 0).where(kind.nan, code)


def doubled(number: Elements) -> Elements:
    """An integer of 64 bits as an f64 that rounds to any narrower float as the integer does."""
    if not number.element.is_unsigned:
        return _doubled(number)
    signed = number.to(integer(64))
    half = _doubled((signed >> 1) | (signed & 1))
    return signed.is_("LT", 0).where(half + half, _doubled(signed))


def _doubled(number: Elements) -> Elements:
    """Where f64 does not hold it, the lowest eleven bits become one: whether any was set."""
    sticky = (number & 0x7FF).is_("NE", 0).where(1 << 11, number & 0)
    odd = ((number >> 11) << 11) | sticky
    exact = ((number + (1 << 53)) >> 54).is_("EQ", 0)
    return exact.where(number, odd).to(ir.F64Type.get())


def wrapped(number: Elements, kind: NarrowInteger) -> Elements:
    """The lowest bits of a byte, with the sign that they have."""
    return signs_in_front(number, kind) if kind.signed else zeros_in_front(number, kind)


def signs_in_front(number: Elements, kind: NarrowInteger) -> Elements:
    return (number << 8 - kind.bits).shift_arithmetic(8 - kind.bits)


def zeros_in_front(number: Elements, kind: NarrowInteger | NarrowFloat) -> Elements:
    return number & (1 << kind.bits) - 1


def lowest_bits(number: Elements, kind: NarrowFloat | NarrowInteger) -> Elements:
    """The bits of another type of as many bits, in a byte, as one of this type."""
    return (
        wrapped(number, kind) if isinstance(kind, NarrowInteger) else zeros_in_front(number, kind)
    )


def saturated(number: Elements, kind: NarrowInteger) -> Elements:
    """A float as the nearest integer towards zero that the type has; 0 of NaN."""
    whole = number.most(float(kind.least)).least(float(kind.most))
    return whole.to(integer(8))
