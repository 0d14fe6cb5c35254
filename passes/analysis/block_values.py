"""Numbers of a kernel as one of its blocks has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.analysis.affine import AffineForm

_WORD = (1 << 64) - 1

_COMPARE: Mapping[int, Callable[[int, int], bool]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
    6: lambda a, b: a & _WORD < b & _WORD,
    7: lambda a, b: a & _WORD <= b & _WORD,
    8: lambda a, b: a & _WORD > b & _WORD,
    9: lambda a, b: a & _WORD >= b & _WORD,
}
"""Comparisons by the number of the predicate of `arith.cmpi`."""

_FOLD: Mapping[str, Callable[..., int]] = {
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: (a & _WORD) // (b & _WORD),
    "arith.remui": lambda a, b: (a & _WORD) % (b & _WORD),
    "arith.ceildivui": lambda a, b: -(-(a & _WORD) // (b & _WORD)),
    "arith.minui": lambda a, b: min(a & _WORD, b & _WORD),
    "arith.maxui": lambda a, b: max(a & _WORD, b & _WORD),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b,
    "arith.shrui": lambda a, b: (a & _WORD) >> b,
    "arith.select": lambda condition, a, b: a if condition else b,
}
"""What operations on known numbers give."""

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.trunci", "arith.extsi", "arith.extui")


class NeedsIterations(Exception):
    """Something is not affine in the variable of a loop."""

    def __init__(self, variable: ir.Value) -> None:
        super().__init__()
        self.variable = variable


class DependsOnData(Exception):
    """A number is not known before the kernel runs."""


@dataclass
class BlockValues:
    """Numbers of a block as affine forms of those loop variables that are not known."""

    block: int
    blocks: int
    known: dict[ir.Value, AffineForm]
    sub_block: int = 0
    _found: dict[ir.Value, AffineForm] = field(default_factory=dict)

    def with_variable(self, variable: ir.Value, form: AffineForm) -> BlockValues:
        """The numbers of the block inside a loop whose variable is `form`."""
        known = {**self.known, variable: form}
        return BlockValues(self.block, self.blocks, known, self.sub_block)

    def of(self, value: ir.Value) -> AffineForm:
        """Raises `NeedsIterations` or `DependsOnData`."""
        if value in self.known:
            return self.known[value]
        if value not in self._found:
            self._found[value] = self._compute(value)
        return self._found[value]

    def form(self, form: AffineForm) -> AffineForm:
        """A form of SSA values, with these known."""
        found = AffineForm(form.constant)
        for value, coefficient in form.terms:
            found = found.plus(self.of(value).times(coefficient))
        return found

    def number(self, value: ir.Value) -> int:
        """A number that must be the same in all iterations of loops that are not unrolled."""
        return constant_of(self.of(value))

    def iterations(self, loop: Op) -> range:
        """The numbers of an `scf.for`'s variable."""
        return range(*(self.number(bound) for bound in list(loop.operands)[:3]))

    def _compute(self, value: ir.Value) -> AffineForm:
        if isinstance(value.owner, ir.Block):
            raise DependsOnData
        op = value.owner
        if op.name == "cce.get_block_idx":
            return AffineForm(self.block)
        if op.name == "cce.get_sub_block_idx":
            return AffineForm(self.sub_block)
        if op.name == "cce.get_block_num":
            return AffineForm(self.blocks)
        if op.name == "arith.constant":
            return AffineForm(int(ir.IntegerAttr(op.attributes["value"]).value))
        if op.name == "cce.read_counter":
            return AffineForm(0, ((value, 1),))
        if op.name in _CASTS:
            return self.of(op.operands[0])
        if op.name in ("arith.addi", "arith.subi"):
            left, right = (self.of(operand) for operand in op.operands)
            return left.plus(right.times(1 if op.name == "arith.addi" else -1))
        if op.name == "arith.muli":
            left, right = (self.of(operand) for operand in op.operands)
            if not right.terms:
                return left.times(right.constant)
            return right.times(constant_of(left))
        if op.name == "arith.cmpi":
            numbers = [self.number(operand) for operand in op.operands]
            return AffineForm(int(_COMPARE[attribute(op, "predicate")](*numbers)))
        if op.name not in _FOLD:
            raise DependsOnData
        return AffineForm(_FOLD[op.name](*(self.number(operand) for operand in op.operands)))


def constant_of(form: AffineForm) -> int:
    for variable, _ in form.terms:
        if isinstance(variable.owner, ir.Block):
            raise NeedsIterations(variable)
        raise DependsOnData
    return form.constant
