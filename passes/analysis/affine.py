"""Index values as affine forms of loop variables, and what is known of loops' trip counts."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from davinci.mlir import Op, ir


@dataclass(frozen=True)
class AffineForm:
    """constant + sum of coefficient * value; values are SSA values of type index."""

    constant: int
    terms: tuple[tuple[ir.Value, int], ...] = ()

    def plus(self, other: AffineForm) -> AffineForm:
        merged = dict(self.terms)
        for value, coefficient in other.terms:
            merged[value] = merged.get(value, 0) + coefficient
        terms = tuple((v, c) for v, c in merged.items() if c)
        return AffineForm(self.constant + other.constant, terms)

    def times(self, factor: int) -> AffineForm:
        if factor == 0:
            return AffineForm(0)
        return AffineForm(self.constant * factor, tuple((v, c * factor) for v, c in self.terms))


@dataclass(frozen=True)
class LoopBounds:
    """What is known of an `scf.for`.

    Attributes:
        trips: number of iterations, None if not static.
        step: distance of two values of the variable, 1 if not static (it is at least that).
        low, high: smallest and largest value of the variable, None if unknown.
    """

    trips: int | None
    step: int
    low: int | None
    high: int | None


@dataclass(frozen=True)
class IndexPart:
    """Quotient (or remainder) of `scale` times a nonnegative index `whole` by a constant."""

    whole: ir.Value
    scale: int
    divisor: int
    is_quotient: bool


class Forms:
    """Affine forms of index values of one kernel, remembered."""

    def __init__(self) -> None:
        self._forms: dict[ir.Value, AffineForm] = {}
        self._values: dict[IndexPart, ir.Value] = {}
        self.parts: dict[ir.Value, IndexPart] = {}
        """What is known of values that are quotients or remainders."""
        self.loops: dict[ir.Value, LoopBounds] = {}
        """Bounds of the loop of each induction variable seen so far."""

    def of(self, value: ir.Value) -> AffineForm:
        if value not in self._forms:
            self._forms[value] = self._compute(value)
        return self._forms[value]

    def _compute(self, value: ir.Value) -> AffineForm:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return AffineForm(0, ((value, 1),))
        if owner.name == "arith.constant":
            return AffineForm(int(ir.IntegerAttr(owner.attributes["value"]).value))
        if owner.name in ("arith.addi", "arith.subi"):
            left, right = (self.of(operand) for operand in owner.operands)
            return left.plus(right.times(1 if owner.name == "arith.addi" else -1))
        if owner.name == "arith.muli":
            left, right = (self.of(operand) for operand in owner.operands)
            if not right.terms:
                return left.times(right.constant)
            if not left.terms:
                return right.times(left.constant)
        if owner.name == "arith.index_cast":
            return self.of(owner.operands[0])
        if owner.name in ("arith.divui", "arith.remui"):
            return self._part(value, owner)
        return AffineForm(0, ((value, 1),))

    def _part(self, value: ir.Value, op: Op) -> AffineForm:
        """The form of a quotient or remainder; equal ones get the same value.

        Of s x + c by d, where c % d < gcd(s, d), it is that of s x by d, and a constant:

            (4 x + 3) / 8 = 4 x / 8            (4 x + 3) % 8 = 4 x % 8 + 3
        """
        opaque, quotient = AffineForm(0, ((value, 1),)), op.name == "arith.divui"
        whole, divisor = (self.of(operand) for operand in op.operands)
        if divisor.terms or divisor.constant <= 0 or len(whole.terms) != 1 or whole.constant < 0:
            return opaque
        ((variable, scale),) = whole.terms
        times, rest = divmod(whole.constant, divisor.constant)
        if scale < 0 or rest >= math.gcd(scale, divisor.constant):
            return opaque
        part = IndexPart(variable, scale, divisor.constant, quotient)
        if whole.constant:
            known = self._values.get(part)
            if known is None or not self._is_natural(variable):
                return opaque
            return AffineForm(times if quotient else rest, ((known, 1),))
        value = self._values.setdefault(part, value)
        self.parts[value] = part
        return AffineForm(0, ((value, 1),))

    def _is_natural(self, value: ir.Value) -> bool:
        low, _ = self._value_range(value)
        return low is not None and low >= 0

    def origin(self, value: ir.Value) -> ir.Value:
        """The value that `value` is a part (of a part ...) of."""
        while value in self.parts:
            value = self.parts[value].whole
        return value

    def determine(self, values: Collection[ir.Value], whole: ir.Value) -> bool:
        """Whether `values`, parts of `whole` among them, tell the value of `whole`."""
        return whole in values or any(
            part.whole == whole
            and part.is_quotient
            and self.determine(values, quotient)
            and self._remainder(part) in values
            for part, quotient in self._values.items()
        )

    def _remainder(self, quotient: IndexPart) -> ir.Value | None:
        part = replace(quotient, is_quotient=False)
        return self._values.get(part)

    def enter_loop(self, loop: Op) -> LoopBounds:
        """Notes the induction variable of an `scf.for` and returns what is known of the loop."""
        start, stop, step = (self.of(operand) for operand in list(loop.operands)[:3])
        stride = step.constant if not step.terms else 1
        trips = None
        length = stop.plus(start.times(-1))
        if not length.terms and not step.terms:
            trips = max(0, -(-length.constant // stride))
        low, _ = self.range_of(start)
        _, high = self.range_of(stop)
        if trips and not start.terms:
            high = start.constant + (trips - 1) * stride
        elif high is not None:
            high -= 1
        bounds = LoopBounds(trips, stride, low, high)
        self.loops[loop.regions[0].blocks[0].arguments[0]] = bounds
        return bounds

    def range_of(self, form: AffineForm) -> tuple[int | None, int | None]:
        """Smallest and largest value of a form, None where unknown."""
        low: int | None = form.constant
        high: int | None = form.constant
        for value, coefficient in form.terms:
            ends = self._value_range(value)
            if coefficient < 0:
                ends = (ends[1], ends[0])
            low = None if low is None or ends[0] is None else low + coefficient * ends[0]
            high = None if high is None or ends[1] is None else high + coefficient * ends[1]
        return low, high

    def _value_range(self, value: ir.Value) -> tuple[int | None, int | None]:
        if value in self.loops:
            bounds = self.loops[value]
            return bounds.low, bounds.high
        if value in self.parts:
            part = self.parts[value]
            if not part.is_quotient:
                return 0, part.divisor - 1
            low, high = self._value_range(part.whole)
            if low is None or low < 0 or high is None:
                return 0, None
            return 0, part.scale * high // part.divisor
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.name.startswith("cce.get_block_"):
            return 0, None
        return None, None
