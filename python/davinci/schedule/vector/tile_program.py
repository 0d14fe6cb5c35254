"""What the vector unit does for one tile of a group, whatever the sizes of the tile.

Every value of the program has a **form**: the axes of the space that it has. A step's result has
the axes of all its sources; a source without some of them is read as if it were repeated. A value
without the innermost axis is a **statistic** of rows: in UB one block a row, all lanes equal.

    %m = reduce max %x     x: (i0, i1)   m: (i0)        reduce
    %b = broadcast %m      the value m itself           place
    %s = sub %x, %b        s: (i0, i1)                  vsub x, m

In GM the elements of a statistic follow each other. Loaded like that it is **packed**; elementwise
steps on packed statistics alone leave it so, and so does what takes or gives lanes of 8 or 64 bits.
Other steps take it unpacked; what is stored is packed before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from davinci.operators import OPERATORS
from davinci.operators.core import FLOATS
from davinci.operators.vector_program import (
    DTYPE_OF,
    JOIN,
    PART,
    Operand,
    TileStep,
    Value,
    VectorProgram,
)
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.space import IterationSpace, NoSpace
from davinci.schedule.vector.steps import copying

Form = tuple[int, ...] | None
"""Axes of a value in the order of the space; None of a constant, the same number everywhere."""

REDUCE, PLACE, EXPAND = "reduce", "place", "expand"
PACK, UNPACK, VIEW = "pack", "unpack", "view"
TO_LANES, TO_ROWS = "to_lanes", "to_rows"
"""Steps that are no cce operation: the reduction of axes; a statistic brought to where rows are
combined with it; a value repeated along axes it lacks; a statistic packed, and a packed one spread
to a block a row; the bits of a value seen as another type, in the same buffer; short rows turned so
that they are lanes, and back (`turned_rows`)."""

MEET, RESCALE = "meet", "rescale"
"""Steps of cores that share a tile, behind a meeting: the first source of all of these cores,
combined (the others are told with it); the sum of their first sources, each times the exponential
of the core's second one minus the third, which all know."""

MEETING = frozenset({MEET, RESCALE})

MOVED = frozenset({PLACE, PACK, UNPACK, PART, JOIN, TO_LANES, TO_ROWS})
"""Steps that bring a statistic to other places, elements to their halves and back, or rows to lanes
and back."""

MOVABLE = frozenset({"f16", "f32", "s32", "s16"})
"""Types that the vector unit copies and fills lane by lane."""

DECISIONS = frozenset({"round", "floor", "ceil", "sign", "compare", "quantize"})
"""Operators whose result jumps: the last bit of an operand can decide."""

WIDENED = frozenset({"add", "mul"})
"""Reductions that accumulate f16 in f32."""


@dataclass
class TileProgram(VectorProgram):
    """Records steps with the forms of their results; equal steps are one.

    Attributes:
        forms: of every value.
        loads: the program's value of each input of the group.
        stores: the program's value of each output.
        together: of results of steps that can be one, all of these (`row_siblings`).
        lane: the innermost axis.
        placed: of statistics, the value that rows are combined with.
        packed: statistics that are packed.
        inside: axes inside the lanes in GM.
        turned: values with such axes that lie in UB as they do in GM.
        exact: whether quotients are rounded once: what is recorded now decides something.
        assignments: which values lie in which buffers, by what that follows from (`tile_buffers`).
    """

    lane: int = 0
    placed: dict[Value, Value] = field(default_factory=dict)
    packed: set[Value] = field(default_factory=set)
    inside: frozenset[int] = frozenset()
    turned: set[Value] = field(default_factory=set)
    forms: dict[Value, Form] = field(default_factory=dict)
    loads: dict[int, Value] = field(default_factory=dict)
    stores: dict[int, Value] = field(default_factory=dict)
    together: dict[Value, tuple[Value, ...]] = field(default_factory=dict)
    exact: bool = False
    assignments: dict[Any, Any] = field(default_factory=dict)
    _known: dict[Any, Value] = field(default_factory=dict)

    def step(
        self,
        name: str,
        sources: Sequence[Value],
        dtype: str = "",
        scalar: float | None = None,
        **attributes: str,
    ) -> Value:
        """Records a step, or finds the equal one that is there already.

        Operands are brought to one form first: statistics are spread beside rows, packed ones
        unpacked for others that are not. A quotient by a statistic becomes a product with its
        inverse, unless quotients are exact.
        """
        form = self._joined(sources)
        if name == "vdiv" and not self.exact and self.forms[sources[1]] not in (form, None):
            # The quotient of a statistic costs less than that of every element.
            return self.mul(sources[0], self._inverse(sources[1]))
        rows = form is not None and self.lane in form
        arrays = [source for source in sources if self.forms[source] is not None]
        halves = name in (PART, JOIN)
        packed = not rows and bool(arrays) and (halves or self._is_packed(dtype, arrays, form))
        if rows and any(self.lane not in (self.forms[value] or ()) for value in arrays):
            sources = [self._beside_statistics(v, form) for v in self._of_one_form(sources)]
        elif not rows:
            sources = [self._pack(v) if packed else self._unpacked(v) for v in sources]
        number = None if scalar is None else Scalar(scalar)  # zeros differ by their signs
        key = (name, tuple(sources), dtype, number, tuple(sorted(attributes.items())))
        if key not in self._known:
            result = super().step(name, sources, dtype, scalar, **attributes)
            self.forms[result] = form
            self._known[key] = result
            if packed:
                self.packed.add(result)
        else:
            self.serve_too(self._known[key])
        return self._known[key]

    def _inverse(self, value: Value) -> Value:
        """One over a value, which of a root is one step, not two."""
        for step in self.steps:
            if step.result == value and step.name == "vsqrt":
                return self.unary("vrsqrt", step.sources[0])
        return self.unary("vrec", value)

    def _is_packed(self, dtype: str, arrays: Sequence[Value], form: Form) -> bool:
        """Whether the result of a step on statistics is packed; always where lanes do not move."""
        if not MOVABLE.issuperset([dtype or arrays[0].dtype, *(v.dtype for v in arrays)]):
            return True
        return all(value in self.packed and self.forms[value] == form for value in arrays)

    def _of_one_form(self, sources: Sequence[Value]) -> list[Value]:
        """The sources of a step, statistics repeated along axes that only others of them have:
        rows are combined with statistics of one form."""
        forms = {v: f for v in sources if (f := self.forms[v]) is not None and self.lane not in f}
        if len(set(forms.values())) < 2:
            return list(sources)
        joined = self._joined(list(forms))
        assert joined is not None, "two of the forms differ"
        return [self.expand(v, joined) if v in forms else v for v in sources]

    def _beside_statistics(self, value: Value, form: Form) -> Value:
        """A source of rows of `form` that a statistic is combined with: a statistic at its places;
        rows with all axes, since what lacks some has no strides beside the places."""
        own = self.forms[value]
        if own is None or form is None or own in ((self.lane,), form):
            return value
        return self.expand(value, form) if self.lane in own else self._placed(value)

    def _placed(self, value: Value) -> Value:
        """A statistic as rows are combined with it; any other value itself."""
        form = self.forms[value]
        if form is None or self.lane in form:
            return value
        if value not in self.placed:
            self.placed[value] = self._moved(PLACE, self._unpacked(value), form)
        return self.placed[value]

    def _unpacked(self, value: Value) -> Value:
        """A statistic a block a row; any other value itself."""
        return self._moved(UNPACK, value, self.forms[value]) if value in self.packed else value

    def _pack(self, value: Value) -> Value:
        """A statistic as it lies in GM; any other value itself."""
        form = self.forms[value]
        if form is None or self.lane in form or value in self.packed:
            return value
        result = self._moved(PACK, value, form)
        self.packed.add(result)
        return result

    def _moved(self, name: str, value: Value, form: Form) -> Value:
        """The result of a step that only changes the form of a value, made once."""
        key = (name, value)
        if key not in self._known:
            self._known[key] = super().step(name, [value])
            self.forms[self._known[key]] = form
        else:
            self.serve_too(self._known[key])
        return self._known[key]

    def constant(self, dtype: str, number: float) -> Value:
        value = super().constant(dtype, number)
        self.forms[value] = None
        return value

    def _joined(self, sources: Sequence[Value]) -> Form:
        forms = [form for v in sources if (form := self.forms[v]) is not None]
        return tuple(sorted({axis for form in forms for axis in form})) if forms else None

    def by_masks(self, *operands: Operand) -> bool:
        """Whether a comparison of these operands is kept as masks: one of rows, never of the few
        numbers of statistics."""
        form = self._joined([x for x in operands if isinstance(x, Value)])
        return self.masks and form is not None and self.lane in form

    def reduce(self, kind: str, source: Value, axes: Collection[int]) -> Value:
        """`source` without `axes`."""
        form = self.forms[source]
        assert form is not None, "constants are not reduced"
        result = super().step(REDUCE, [self._unpacked(source)], kind=kind)
        self.forms[result] = tuple(axis for axis in form if axis not in axes)
        return result

    def expand(self, source: Value, form: tuple[int, ...]) -> Value:
        """`source` repeated along the axes of `form` that it lacks."""
        if self.forms[source] == form:
            return source
        if source.dtype == "s64":
            low, high = (self.expand(half, form) for half in self.halves(source))
            return self.join(low, high)
        if source.dtype not in MOVABLE:
            wide = self.expand(self.convert(source, "f16"), form)
            return self.convert(wide, source.dtype)
        source = self._placed(source) if self.lane in form else self._unpacked(source)
        result = super().step(EXPAND, [source])
        self.forms[result] = form
        return result

    def load(self, dtype: str, form: tuple[int, ...]) -> Value:
        """An input as it lies in GM."""
        value = self.input(dtype)
        self.forms[value] = form
        if self.lane not in form:
            self.packed.add(value)
        elif self._is_turned(dtype, form):
            self.turned.add(value)
        return value

    def lanes_of(self, value: Value) -> Value:
        """What is loaded as it is computed with: short rows as lanes."""
        return self._moved(TO_LANES, value, self.forms[value]) if value in self.turned else value

    def store(self, value: Value, form: tuple[int, ...]) -> Value:
        """A value as it is stored, with all axes of `form`."""
        result = self._pack(self.expand(value, form))
        if self._is_turned(value.dtype, form):
            result = self._moved(TO_ROWS, result, form)
            self.turned.add(result)
        self.output(result)
        return result

    def _is_turned(self, dtype: str, form: tuple[int, ...]) -> bool:
        """Whether a value of a form is turned on its way between GM and UB.

        Raises:
            NoSpace: it is, and its elements are not of one or two words of 16 bits.
        """
        if self.lane not in form or self.inside.isdisjoint(form):
            return False
        if dtype not in MOVABLE:
            raise NoSpace(f"short rows of {dtype} as lanes")
        return True

    def copy(self, value: Value) -> Value:
        """A step whose result is a value as it is.

        Raises:
            NoSpace: the vector unit does not copy its type.
        """
        if value.dtype not in MOVABLE:
            raise NoSpace(f"a copy of {value.dtype}")
        name, scalar = copying(value.dtype)
        sources = [value] if scalar is not None else [value, value]
        result = super().step(name, sources, scalar=scalar)
        self.forms[result] = self.forms[value]
        if value in self.packed:
            self.packed.add(result)
        return result

    def made(self, dtype: str, form: Form) -> Value:
        """A value of a form that a step which is yet to be recorded makes."""
        value = self._value(dtype)
        self.forms[value] = form
        return value

    def filled(self, dtype: str, number: float) -> Value:
        """A row of its own that holds a number in all lanes; made by the first step."""
        value = self.made(dtype, (self.lane,))
        self.steps.insert(0, TileStep(EXPAND, (self.constant(dtype, number),), None, value, {}))
        return value

    def copied(self) -> TileProgram:
        """A program of the same values and steps; steps that are added to it are not added to this
        one."""
        return replace(
            self,
            steps=list(self.steps),
            constants=dict(self.constants),
            forms=dict(self.forms),
            stores=dict(self.stores),
            assignments={},
            _known={},
        )

    @cached_property
    def kinds(self) -> dict[Value, int]:
        """The number of the kind of each value, of a program that is no longer changed: values of
        one kind have arrays of one shape in every tile, unless they lie beside others there or are
        tables."""
        placed = set(self.placed.values())
        numbers: dict[object, int] = {}
        found = {}
        for value, form in self.forms.items():
            held = value in placed, value in self.packed, value in self.turned
            key = value.dtype, form, held
            found[value] = numbers.setdefault(key, len(numbers))
        return found

    @property
    def row_block(self) -> int:
        """Lanes of which rows in UB are a multiple: whole blocks of all rows that are moved, and of
        the halves of what is parted or joined."""
        values = {*self.loads.values(), *self.stores.values()}
        for step in self.steps:
            if step.name in (PART, JOIN):
                values |= {step.result, *step.sources}
        return max((block_lanes(v.dtype) for v in values if v not in self.packed), default=1)

    @property
    def lane_block(self) -> int:
        """Lanes that are whole blocks of every value of rows."""
        found = (v.dtype for v, form in self.forms.items() if form and self.lane in form)
        return max(map(block_lanes, found), default=1)

    def in_first_lanes(self) -> frozenset[Value]:
        """Statistics that are in the first lanes of their blocks only: results of conversions to
        types of which a block has more lanes, and what follows from them."""
        found: set[Value] = set()
        for step in self.steps:
            form = self.forms[step.result]
            if step.name in MOVED | MEETING or form is None or self.lane in form:
                continue
            lanes = block_lanes(step.result.dtype)
            arrays = [v for v in step.sources if self.forms[v] is not None]
            if any(self.lane in (self.forms[v] or ()) for v in arrays):
                continue  # a reduction of lanes, whose result is in all of them
            if any(v in found or block_lanes(v.dtype) < lanes for v in arrays):
                found.add(step.result)
        return frozenset(found - self.packed)

    def last_uses(self) -> dict[Value, int]:
        """The number of the last step that reads each value; outputs outlive all steps."""
        last = {source: i for i, step in enumerate(self.steps) for source in step.sources}
        return last | dict.fromkeys(self.stores.values(), len(self.steps))


def program_of(graph: Graph, space: IterationSpace, masks: bool = False) -> TileProgram:
    """The program of a group.

    Args:
        masks: whether choices are made by masks of bits.

    Raises:
        NoSpace: an operator has no tile rule for its types.
    """
    _require_types(graph)
    program = TileProgram(lane=len(space.axes) - 1, masks=masks, inside=space.inside)
    known: dict[int, Operand] = {}
    for number in graph.inputs:
        value = program.load(DTYPE_OF[graph.arrays[number].element], space.of(number))
        program.loads[number] = value
        known[number] = program.lanes_of(value)
    deciding = _deciding(graph)
    for node in graph.nodes:
        program.exact, program.serving = node.result in deciding, node.members
        known[node.result] = _record(program, node, graph, space, known)
    for number in graph.outputs:
        found, array = known[number], graph.arrays[number]
        if not isinstance(found, Value):
            found = program.constant(DTYPE_OF[array.element], float(found))
        program.serving = program.makers(found)
        program.stores[number] = program.store(found, space.of(number))
    program.drop_unused()
    _require_halves(program)
    return program


def _deciding(graph: Graph) -> set[int]:
    """Values that are rounded to whole numbers, or compared, later on: the last bit of 127.5 or of
    127.49999 decides between two results. What does that in another kernel has marked them."""
    found = {node.result for node in graph.nodes if node.attributes.get("exact")}
    for node in reversed(graph.nodes):
        if node.result in found or decides(node.name, graph.arrays[node.result].element):
            found.update(node.values)
    return found


def decides(operator: str, element: str) -> bool:
    """Whether a result of type `element` depends on the last bit of what an operator reads."""
    return operator in DECISIONS or (operator == "cast" and element not in FLOATS)


def _require_halves(program: TileProgram) -> None:
    """Fails where integers of 64 bits are computed with."""
    if any(value.dtype == "s64" for value in program.constants):
        raise NoSpace("a number of 64 bits")
    for step in program.steps:
        long = any(value.dtype == "s64" for value in (step.result, *step.sources))
        if long and step.name not in (PART, JOIN):
            raise NoSpace(f"{step.name} of 64 bits")


def _require_types(graph: Graph) -> None:
    """Fails unless tiles can hold all values, and operators have instructions for their types.

    Raises:
        NoSpace: of the first one.
    """
    for node in graph.nodes:
        types = OPERATORS[node.name].types or DTYPE_OF.keys()
        for value in (*node.values, node.result):
            element = graph.arrays[value].element
            if element not in types or element not in DTYPE_OF:
                raise NoSpace(f"{node.name} of {element}")


def _record(
    program: TileProgram, node: Node, graph: Graph, space: IterationSpace, known: dict[int, Operand]
) -> Operand:
    """Writes the steps of a node into the program, and returns the value or number that it makes.

    Args:
        known: values and numbers of what was computed so far, by their numbers in the graph.
    """
    operands = [x.value if isinstance(x, Scalar) else known[x] for x in node.operands]
    if node.name in ("broadcast", "copy", "reshape", "transpose"):
        return operands[0]
    result = graph.arrays[node.result]
    if node.name == "reduce":
        return _reduced(program, node, space, operands[0])
    if not any(isinstance(x, Value) for x in operands):
        kind = graph.arrays[node.values[0]].element if node.values else result.element
        operands[0] = program.constant(DTYPE_OF[kind], float(operands[0]))  # type: ignore[arg-type]
    record = OPERATORS[node.name]
    return record.tile(program, operands, node.attributes, result.element)


def _reduced(program: TileProgram, node: Node, space: IterationSpace, operand: Operand) -> Value:
    """The value of a reduction, in f32 in between where sums of f16 need that; the operand itself
    where no axis is gone."""
    source, kind = node.values[0], node.attributes["kind"]
    if not isinstance(operand, Value):
        raise NoSpace("a reduction of a constant")
    value = program.expand(operand, space.of(source))
    axes = set(space.order[source]) - set(space.order[node.result])
    if not axes:
        return value
    if value.dtype == "f16" and kind in WIDENED:
        return program.convert(program.reduce(kind, program.convert(value, "f32"), axes), "f16")
    return program.reduce(kind, value, axes)
