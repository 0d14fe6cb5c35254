"""Straight-line programs for the vector unit: recorded as data, without MLIR.

An expression such as tanh is recorded once as a list of steps on numbered values, each an array of
one tile; a schedule gives the values buffers, and then the steps are built for each tile.

    p = VectorProgram(); x = p.input("f32"); p.output(p.mul(p.unary("vexp", x), 0.5))
    p.steps          # vexp, vmuls
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from davinci.isa.multiply_add import ACCUMULATING

ELEMENTS = {
    "f16": "f16",
    "f32": "f32",
    "s32": "i32",
    "s16": "i16",
    "s8": "i8",
    "u8": "ui8",
    "s64": "i64",
}
"""The element type of buffers of each type of the vector unit, and of 64 bits, which only `PART`
and `JOIN` take."""

DTYPE_OF = {element: dtype for dtype, element in ELEMENTS.items()} | {"i1": "s8"}
"""The other way; booleans are bytes."""


PART, JOIN = "part", "join"
"""Steps that are no cce operation: the low or high halves of elements of 64 or 32 bits, and the way
back; see `davinci.schedule.moves.word_halves`."""

HALF_OF = {"s64": "s32", "s32": "s16", "f32": "s16"}
"""The type of the halves of elements."""


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the program, equal to itself only: an array of one tile."""

    number: int
    dtype: str


@dataclass(frozen=True)
class TileStep:
    """One cce operation: its name, sources, an optional scalar, result and attributes.

    Attributes:
        members: numbers of the operators of the group that it serves; see `Node.members`.
    """

    name: str
    sources: tuple[Value, ...]
    scalar: float | None
    result: Value
    attributes: Mapping[str, str]
    members: tuple[int, ...] = ()

    @property
    def accumulates(self) -> bool:
        """Whether the result is made in the place of the first source."""
        return self.name in ACCUMULATING

    @property
    def instruction(self) -> tuple[str, str]:
        """The name and the type by which a machine file prices it; a conversion's name has both of
        its types."""
        kind = self.result.dtype
        if self.name == "vconv":
            return f"vconv_{self.sources[0].dtype}2{kind}", ""
        return self.name, kind

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands of the cce operation but for its scalar: sources, then the result."""
        return (*self.sources[self.accumulates :], self.result)


def joined(*members: Iterable[int]) -> tuple[int, ...]:
    """Numbers of members from several places, each once, in order."""
    return tuple(sorted({number for some in members for number in some}))


Operand = Value | float
"""A value, or a number that stands for an array filled with it."""


@dataclass
class VectorProgram:
    """Records steps; a number as an operand becomes a scalar operand or a filled buffer.

    Attributes:
        constants: buffers that are filled once, and with what; zeros of two signs have two.
        wide: of values that a conversion lost nothing of, what they were converted from.
        rounded: of values of f32, the same in f16 by cheaper steps than a conversion at the end.
        parts: of integers of 64 bits, the halves that are known.
        serving: members of the group that what is recorded now serves.
        taken: members whose steps became a part of how the first input comes.
        masks: whether choices are made by masks of bits (`davinci.operators.masks`), not by a
            comparison and a selection for each repeat.
    """

    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    steps: list[TileStep] = field(default_factory=list)
    constants: dict[Value, float] = field(default_factory=dict)
    wide: dict[Value, Value] = field(default_factory=dict)
    rounded: dict[Value, Value] = field(default_factory=dict)
    parts: dict[Value, tuple[Value, Value]] = field(default_factory=dict)
    serving: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()
    masks: bool = False
    _count: int = 0

    def _value(self, dtype: str) -> Value:
        self._count += 1
        return Value(self._count - 1, dtype)

    def input(self, dtype: str) -> Value:
        self.inputs.append(self._value(dtype))
        return self.inputs[-1]

    def output(self, value: Value) -> None:
        self.outputs.append(value)

    def constant(self, dtype: str, number: float) -> Value:
        """An array filled with `number` once, before the loop over tiles."""
        sign = math.copysign(1.0, number)  # zeros differ by it
        for value, held in self.constants.items():
            if value.dtype == dtype and held == number and math.copysign(1.0, held) == sign:
                return value
        value = self._value(dtype)
        self.constants[value] = number
        return value

    def step(
        self,
        name: str,
        sources: Sequence[Value],
        dtype: str = "",
        scalar: float | None = None,
        **attributes: str,
    ) -> Value:
        """Records `name`; the result has the type of the first source unless `dtype` is given."""
        result = self._value(dtype or sources[0].dtype)
        self.steps.append(TileStep(name, tuple(sources), scalar, result, attributes, self.serving))
        return result

    def serve_too(self, result: Value) -> None:
        """Has the step that made a value serve the current members as well."""
        for place, step in enumerate(self.steps):
            if step.result is result and not set(self.serving) <= set(step.members):
                self.steps[place] = replace(step, members=joined(step.members, self.serving))

    def readers(self, value: Value) -> tuple[int, ...]:
        """The members that a value is brought for: those of the steps that read it."""
        return joined(*(step.members for step in self.steps if value in step.sources))

    def makers(self, value: Value) -> tuple[int, ...]:
        """The members that make a value; none of an input."""
        return joined(*(step.members for step in self.steps if step.result == value))

    def binary(self, name: str, a: Operand, b: Operand, dtype: str = "") -> Value:
        """`name` (vadd, ...); additions and multiplications by a float use the scalar form."""
        kind = a.dtype if isinstance(a, Value) else b.dtype if isinstance(b, Value) else dtype
        if kind in ("f16", "f32") and name in ("vadd", "vsub", "vmul"):
            if isinstance(a, Value) and not isinstance(b, Value):
                scalar = -b if name == "vsub" else b
                return self.step("vmuls" if name == "vmul" else "vadds", [a], scalar=scalar)
            if isinstance(b, Value) and not isinstance(a, Value) and name != "vsub":
                return self.binary(name, b, a)
        return self.step(name, [self.array(a, kind), self.array(b, kind)])

    def unary(self, name: str, a: Value) -> Value:
        return self.step(name, [a])

    def add(self, a: Operand, b: Operand) -> Value:
        return self.binary("vadd", a, b)

    def sub(self, a: Operand, b: Operand) -> Value:
        return self.binary("vsub", a, b)

    def mul(self, a: Operand, b: Operand) -> Value:
        """a b; -1 times a scaled value is that value by the negated scale, which is the same."""
        if isinstance(a, Value) and b == -1.0:
            made = next((step for step in self.steps if step.result is a), None)
            if made is not None and made.name == "vmuls" and made.scalar is not None:
                self.serve_too(a)
                return self.step("vmuls", made.sources, scalar=-made.scalar)
        return self.binary("vmul", a, b)

    def div(self, a: Operand, b: Operand) -> Value:
        return self.binary("vdiv", a, b)

    def max(self, a: Operand, b: Operand) -> Value:
        return self.binary("vmax", a, b)

    def min(self, a: Operand, b: Operand) -> Value:
        return self.binary("vmin", a, b)

    def convert(
        self, a: Value, dtype: str, rounding: str = "none", *, exact: bool = False
    ) -> Value:
        """One vconv; nothing if `a`, what it was made from without loss, or what is known of it
        rounded, has the type already.

        Args:
            exact: whether the result loses nothing whatever `a` holds: flags, say.
        """
        found = a
        while found.dtype != dtype and found in self.wide:
            found = self.wide[found]
        if found.dtype == dtype:
            return found
        if dtype == "f16" and a in self.rounded:
            return self.rounded[a]
        if dtype == "f16" and rounding == "none" and (product := self._product_of_f16(a)):
            return product
        result = self.step("vconv", [a], dtype, round=rounding)
        if exact:
            self.wide[result] = a
        return result

    def _product_of_f16(self, a: Value) -> Value | None:
        """The product in f16 that a product in f32 is once it is rounded: one of two values that
        were f16, which f32 holds to all its digits. None if `a` is another value."""
        made = {step.result: step for step in self.steps}
        product = made.get(a)
        if product is None or product.name != "vmul" or a.dtype != "f32":
            return None
        sources = [made.get(source) for source in product.sources]
        narrow = [s.sources[0] for s in sources if s is not None and s.name == "vconv"]
        if [value.dtype for value in narrow] != ["f16", "f16"]:
            return None
        return self.step("vmul", narrow)

    def drop_unused(self) -> None:
        """Removes steps and constants that no output depends on."""
        used = set(self.outputs)
        kept = []
        for step in reversed(self.steps):
            if step.result in used:
                kept.append(step)
                used.update(step.sources)
        self.steps = kept[::-1]
        self.constants = {
            value: number for value, number in self.constants.items() if value in used
        }

    def halves(self, a: Value) -> tuple[Value, Value]:
        """The low and high halves of elements of 64 or 32 bits; the low ones as if they were
        signed."""
        if a not in self.parts:
            low, high = (self.step(PART, [a], HALF_OF[a.dtype], half=h) for h in ("low", "high"))
            self.parts[a] = (low, high)
        return self.parts[a]

    def join(self, low: Operand, high: Operand, dtype: str = "s64") -> Value:
        """Elements of their halves, one of which may be a number: filled buffers hold only as many
        lanes as an instruction takes, transpositions read all."""
        if not isinstance(low, Value):
            low = self._filled_like(high, low)
        if not isinstance(high, Value):
            high = self._filled_like(low, high)
        result = self.step(JOIN, [low, high], dtype)
        self.parts[result] = (low, high)
        return result

    def _filled_like(self, a: Operand, number: float) -> Value:
        """An integer in every lane of a value of the same type."""
        assert isinstance(a, Value), "one of the halves is a value"
        if a.dtype == "s16":
            nothing = self.binary("vand", a, 0)
            return self.binary("vor", nothing, number) if number else nothing
        return self.add(self.sub(a, a), number)

    def choose(self, predicate: str, a: Operand, b: Operand, x: Operand, y: Operand) -> Value:
        """predicate(a, b) ? x : y, with at least one of a, b a value; all of one type."""
        from davinci.operators import masks  # which is written in terms of this class

        kind = next(v.dtype for v in (a, b) if isinstance(v, Value))
        if self.by_masks(a, b, x, y) and masks.is_number(a) and masks.is_number(b):
            return masks.chosen(self, predicate, a, b, x, y, kind)
        sources = [self.array(v, kind) for v in (a, b, x, y)]
        return self.step("vcmpsel", sources, kind, predicate=predicate)

    def select(self, flag: Value, x: Operand, y: Operand) -> Value:
        """x where a flag of their type is 1.0, y where it is 0.0."""
        from davinci.operators import masks

        if self.by_masks(flag, x, y):
            return masks.selected(self, flag, x, y, flag.dtype)
        return self.choose("ne", flag, 0.0, x, y)

    def by_masks(self, *operands: Operand) -> bool:
        """Whether a choice among such operands is made by masks of bits."""
        return self.masks

    def array(self, a: Operand, dtype: str) -> Value:
        """A value as it is, a number as an array filled with it."""
        return a if isinstance(a, Value) else self.constant(dtype, a)
