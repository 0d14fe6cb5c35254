"""A loop on a core: what a step reads, computes and writes, as plain data.

    for t in 0 .. steps - 1:
      x = gates[t]; s = h R                 a *slice* of what lies in GM; a product with a state
      h = tanh(x + s)                       the states stay on the core
      y[t] = h

The products of a step cut its graph: their results are inputs of what the vector unit computes,
their left factors outputs of it. Right factors lie in GM when the loop begins, and in L1 from then
on, as fractals of [n, k]: [k / 16][n / 16][16][16] is the order in which L0B takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from davinci.machine import Machine, for_vector
from davinci.operators.tensors import ND, NZ
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.graph import Graph, Node, Window
from davinci.schedule.loops.cut import cut_step, left_factors
from davinci.schedule.loops.short_forms import with_short_forms
from davinci.schedule.loops.step_form import StepForm, step_form
from davinci.schedule.vector.space import IterationSpace, NoSpace, space_of
from davinci.schedule.vector.tile_program import TileProgram, program_of
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import row_major

APART = 16
"""Elements by which rows of a product's result are said to lie apart: rows and columns of what it
is combined with stay two axes."""

Kind = Literal["state", "fixed", "slice", "product", "last", "handed"]

HANDED = -1
"""Stands for the row handed on by another loop where a product's left factor is asked for, or for
that of an array which is nothing but a left factor (`LoopGroup.rows`)."""


@dataclass(frozen=True)
class Role:
    """What an input or output of a step is; `last` is a state that no step reads, `handed` an input
    that the same step of another loop of the kernel computes.

    Attributes:
        place: of its buffer among the arguments of the kernel, of a row that is handed on that of
            the array of all rows; of a product, its number.
        backwards: of a slice, whether the first step has the last.
        state: the number of a state.
    """

    kind: Kind
    place: int
    backwards: bool = False
    state: int = 0


@dataclass(frozen=True)
class StepProduct:
    """A product of a step in its graph: numbers of the output A and of the input C.

    Attributes:
        a: `HANDED` for the row that is handed on.
        b: place of B among the arguments of the kernel.
        members: the product, by its number in the kernel.
        first: what is summed up before it, of the row that is handed on: place of that B, and its
            k; None if nothing is.
        kept: columns of fractals of B, the last ones, that stay in L0B, see `LoopSchedule`.
    """

    a: int
    b: int
    c: int
    k: int
    n: int
    members: tuple[int, ...] = ()
    first: tuple[int, int] | None = None
    kept: int = 0

    @property
    def fractals(self) -> int:
        """How many fractals B has."""
        return -(-self.k // SIDE) * -(-self.n // SIDE)

    @property
    def terms(self) -> tuple[StepProduct, ...]:
        """The products whose sum C is, in the order in which they are added."""
        own = replace(self, first=None)
        if self.first is None:
            return (own,)
        b, k = self.first
        return (replace(own, a=HANDED, b=b, k=k), own)


@dataclass(frozen=True)
class RowArray:
    """An array in GM [steps, rows, k] of which each step multiplies its rows.

    Attributes:
        role: of the slice, with the array's place among the arguments of the kernel.
        element: type of its elements.
        columns: k; right factors may have a fractal of rows more, for ones behind the rows.
    """

    role: Role
    element: str
    columns: int


@dataclass(frozen=True)
class LoopGroup:
    """A loop on a core.

    Attributes:
        graph: what the vector unit computes in a step.
        roles: of its inputs and outputs, by number.
        source: place of the array of rows that another loop hands on to this one, if one does.
        rows: the array of rows that are nothing but left factors, if there is one; a core brings
            each to L1 while the step before is computed.
        program: the steps of the graph, each product's result and left factor by itself.
        forms: in which the program has been computed, see `form`.
    """

    graph: Graph
    steps: int
    roles: dict[int, Role]
    products: tuple[StepProduct, ...]
    source: int | None = None
    rows: RowArray | None = None
    space: IterationSpace = field(init=False)
    program: TileProgram = field(init=False)
    forms: dict[tuple[str, bool], StepForm] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        windows = {**self.graph.windows, **self._apart()}
        spaced = replace(self.graph, nodes=[*self.graph.nodes, *self._alike()], windows=windows)
        space = space_of(spaced)
        if len(space.axes) > 1 and not any(len(space.axes) - 1 in v for v in space.order.values()):
            space = replace(space, axes=space.axes[:-1])  # rows in UB begin at blocks
        object.__setattr__(self, "space", replace(space, windows={}))
        object.__setattr__(self, "program", program_of(self.graph, space))
        self._copy_states()
        object.__setattr__(self, "products", self._in_order())

    def _copy_states(self) -> None:
        """Copies outputs that are states before the step, as its first steps, since these may be
        written over; and states after it that are inputs, as its last ones."""
        program, first = self.program, list[TileStep]()
        old = {program.loads[n] for n in self.inputs("state")}
        for number in self.graph.outputs:
            value, kind = program.stores[number], self.roles[number].kind
            if value in program.loads.values() and kind == "state":
                program.stores[number] = program.copy(value)
            elif value in old and kind != "product":
                program.stores[number] = program.copy(value)
                first.append(program.steps.pop())
        program.steps[:0] = first

    def _in_order(self) -> tuple[StepProduct, ...]:
        """The products, of those with one left factor first that which most steps wait for one
        after the other; and the steps of the program in the order in which the products allow them,
        so that the vector unit works on the first while the cube computes the next."""
        program = self.program
        behind: dict[Value, int] = {}
        for step in reversed(program.steps):
            for source in step.sources:
                behind[source] = max(behind.get(source, 0), 1 + behind.get(step.result, 0))
        first = {p.a: i for i, p in reversed(list(enumerate(self.products)))}
        products = sorted(
            self.products,
            key=lambda p: (first[p.a], -behind.get(program.loads[p.c], 0)),
        )
        level = {program.loads[p.c]: i + 1 for i, p in enumerate(products)}
        for step in program.steps:
            level[step.result] = max((level.get(v, 0) for v in step.sources), default=0)
        program.steps.sort(key=lambda step: level[step.result])
        return tuple(products)

    def _alike(self) -> list[Node]:
        """States before and after a step, factors and results, and all states, of one shape, as if
        the one were a copy of the other: the axes are the same."""
        states = {self.roles[n].state: n for n in self.inputs("state")}
        pairs = [(n, states[self.roles[n].state]) for n in self.outputs("state")]
        pairs += [(p.a, p.c) for p in self.products if p.a != HANDED]
        pairs += pairwise(states.values())
        shapes = [array.shape for array in self.graph.arrays]
        return [Node("copy", (a,), b) for a, b in pairs if shapes[a] == shapes[b]]

    def _apart(self) -> dict[int, Window]:
        """Windows of products' factors and results, so that their rows stay rows."""
        found = {}
        for product in self.products:
            for number in (product.a, product.c):
                if number == HANDED:
                    continue
                shape = list(self.graph.arrays[number].shape)
                shape[-1] += APART
                found[number] = Window(0, 0, row_major(shape))
        return found

    def key(self) -> tuple[object, ...]:
        """Everything that the schedule of a loop depends on."""
        roles = tuple((n, role.kind, role.state) for n, role in sorted(self.roles.items()))
        terms = tuple((t.a, t.c, t.k, t.n) for p in self.products for t in p.terms)
        return self.graph.key(), self.steps, roles, terms, self.rows

    def form(self, machine: Machine, joined: bool) -> StepForm:
        """The step as the vector cores of a machine compute it, made once (`step_form`).

        Args:
            joined: whether results of products that are used alike lie beside each other.
        """
        key = (machine.name, joined)
        if key not in self.forms:
            self.forms[key] = step_form(self, for_vector(machine), joined)
        return self.forms[key]

    @property
    def lefts(self) -> set[int]:
        """Numbers of the outputs that are left factors."""
        return {term.a for product in self.products for term in product.terms} - {HANDED}

    @property
    def following(self) -> dict[Value, Value]:
        """For the value of each state in a step, the value that it has in the next one."""
        new = {self.roles[n].state: self.program.stores[n] for n in self.outputs("state")}
        return {self.program.loads[n]: new[self.roles[n].state] for n in self.inputs("state")}

    def inputs(self, kind: Kind) -> list[int]:
        return [n for n in self.graph.inputs if self.roles[n].kind == kind]

    def outputs(self, kind: Kind) -> list[int]:
        return [n for n in self.graph.outputs if self.roles[n].kind == kind]


def read_loop(
    graph: Graph, steps: int, inputs: Sequence[Role], outputs: Sequence[Role]
) -> LoopGroup:
    """A step as it is computed on a core.

    Args:
        graph: of a step, whose products take a matrix in rows and one in fractals.
        inputs, outputs: roles of the graph's.

    Raises:
        NoSpace: it cannot be.
    """
    if graph.windows:
        raise NoSpace("a step on parts of arrays")
    handed = {v for v, role in zip(graph.inputs, inputs, strict=True) if role.kind == "handed"}
    sources = {role.place for role in inputs if role.kind == "handed"}
    if len(handed) > 1:
        raise NoSpace("rows handed on by several loops")
    rows = None
    if not handed:
        found = left_factors(graph)
        for value, role in zip(graph.inputs, inputs, strict=True):
            if role.kind == "slice" and value in found and rows is None:
                array = graph.arrays[value]
                handed, rows = {value}, RowArray(role, array.element, array.shape[-1])
    cut = cut_step(graph, handed)
    made = with_short_forms(cut.graph) if cut.products else cut.graph
    read, results = _roles(made, made.inputs, cut.inputs, inputs)
    written, factors = _roles(made, made.outputs, cut.outputs, outputs)
    carried = {role.state for role in read.values() if role.kind == "state"}
    for number, role in written.items():
        if role.kind == "state" and role.state not in carried:
            written[number] = replace(role, kind="last")
    roles = {**read, **written}
    left = list(dict.fromkeys(product.a for product in cut.products if not product.handed))
    places = dict(zip(graph.inputs, (role.place for role in inputs), strict=True))
    products = []
    for index, product in enumerate(cut.products):
        if index not in results:
            continue  # nobody needs it
        a, b = graph.arrays[product.a], graph.arrays[product.b]
        given = (a.element, b.element, a.layout, b.layout, product.turned)
        if given != ("f16", "f16", ND, NZ, True):
            raise NoSpace(f"a product of {a} and {b} in a loop")
        n, k = b.shape
        number = HANDED if product.handed else factors[left.index(product.a)]
        first = None
        if product.first is not None:
            first = places[product.first], graph.arrays[product.first].shape[1]
        place, result = places[product.b], results[index]
        products.append(StepProduct(number, place, result, k, n, product.members, first))
    return LoopGroup(made, steps, roles, tuple(products), next(iter(sources), None), rows)


def _roles(
    graph: Graph, numbers: Sequence[int], places: Sequence[int], given: Sequence[Role]
) -> tuple[dict[int, Role], dict[int, int]]:
    """The roles of a cut step's values, and which of them belong to products, by product.

    Args:
        numbers: of its inputs, or of its outputs.
        places: of each number, among `given` and then the products.

    Raises:
        NoSpace: what belongs to a product is put together, or a part.
    """
    roles: dict[int, Role] = {}
    of_products: dict[int, int] = {}
    for number, place in zip(numbers, places, strict=True):
        if place < len(given):
            roles[number] = given[place]
            continue
        if number in graph.windows:
            raise NoSpace("a part of a product, or of what it takes")
        index = place - len(given)
        roles[number] = Role("product", index)
        of_products[index] = number
    return roles, of_products
