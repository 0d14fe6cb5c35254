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

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from davinci.machine import Machine
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import ND, NZ
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.graph import Graph, Node, Scalar, Window
from davinci.schedule.loops.short_forms import with_short_forms
from davinci.schedule.loops.step_form import StepForm, step_form
from davinci.schedule.vector.regions import regions_of
from davinci.schedule.vector.space import IterationSpace, NoSpace, space_of
from davinci.schedule.vector.tile_program import TileProgram, program_of
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import row_major

PRODUCT = "matmul"
APART = 16
"""Elements by which rows of a product's result are said to lie apart: rows and columns of what it
is combined with stay two axes."""

Kind = Literal["state", "fixed", "slice", "product", "last", "handed"]

HANDED = -1
"""Stands for the row handed on by another loop where a product's left factor is asked for."""

MOVED_ON = frozenset({"copy", "cast", "reshape"})
"""Operators between a value and the left factor that it is."""


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
class LoopProduct:
    """C[rows, n] = A[rows, k] B[k, n], by the numbers of A and B in the graph of the step.

    Attributes:
        turned: whether B is there as [n, k].
        handed: whether A is a row that is handed on.
        first: of a product that is added to another one's result, the B of that one, whose A is the
            row that is handed on.
    """

    a: int
    b: int
    result: int
    turned: bool
    members: tuple[int, ...] = ()
    handed: bool = False
    first: int | None = None


@dataclass(frozen=True)
class CutStep:
    """A step without its products.

    Attributes:
        graph: in regions; its inputs and outputs are windows of those of the step.
        inputs, outputs: of each, the place among those of the step; behind them follow the results
            of products, and the left factors.
        products: in order.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    products: tuple[LoopProduct, ...]


def cut_step(graph: Graph, handed: Set[int] = frozenset()) -> CutStep:
    """Cuts a step at its products.

    Args:
        handed: inputs that are nothing but left factors, which are there without the vector unit.

    Raises:
        NoSpace: a product of something else than a value of the step with an input, or a row that
            is handed on and something else than a left factor.
    """
    products = [node for node in graph.nodes if node.name == PRODUCT]
    used = {v for node in graph.nodes if node.name != PRODUCT for v in node.values}
    for node in products:
        a, b = node.operands
        if isinstance(a, Scalar) or isinstance(b, Scalar) or b not in graph.inputs:
            raise NoSpace("a product whose right factor is computed in the loop")
        if b in used:
            raise NoSpace("a right factor that is combined with others")
        if node.attributes.get(TRANSPOSE_A):
            raise NoSpace("a left factor that is turned")
    if any(node.name == "batch_matmul" for node in graph.nodes):
        raise NoSpace("several products at once")
    passed = _passed_on(graph, handed)
    right = {node.values[1] for node in products}
    nodes = [node for node in graph.nodes if node.result not in passed]
    first: dict[int, Node] = {}
    for node in products:
        if node.values[0] in passed:
            own = [n for n in products if n.values[0] not in passed and n.result not in first]
            joined = joined_sum(graph, nodes, node.result, [n.result for n in own])
            if joined is not None:
                first[joined[0]], nodes = node, joined[1]
    added = {node.result for node in first.values()}
    products = [node for node in nodes if node.name == PRODUCT and node.result not in added]
    factors = list(dict.fromkeys(v for node in products for v in node.values[:1]))
    factors = [value for value in factors if value not in passed]
    sums = [node.result for node in products]
    rest = replace(
        graph,
        arrays=list(graph.arrays),
        nodes=[node for node in nodes if node.name != PRODUCT],
        inputs=[*(v for v in graph.inputs if v not in right | passed), *sums],
        outputs=[],
    )
    views = {n.result: n.values[0] for n in rest.nodes if n.name == "reshape"}
    for value in (*graph.outputs, *factors):
        origin = value
        while origin in views:
            origin = views[origin]
        if value in rest.outputs or origin in rest.inputs:
            made = rest.add(rest.arrays[value])
            # As soon as the value is there: other products may depend on this one.
            results = [node.result for node in rest.nodes]
            place = results.index(value) + 1 if value in results else 0
            members = next((n.members for n in rest.nodes if n.result == value), ())
            rest.nodes.insert(place, Node("copy", (value,), made, members=members))
            value = made
        rest.outputs.append(value)
    kept = [i for i, value in enumerate(graph.inputs) if value not in right | passed]
    count = len(graph.inputs)
    places = [*kept, *range(count, count + len(sums))]
    regions = regions_of(_used(rest))
    inputs = tuple(places[place] for place in regions.inputs)
    found = []
    for node in products:
        (a, b), before = node.values, first.get(node.result)
        turned = bool(node.attributes.get(TRANSPOSE_B))
        product = LoopProduct(a, b, node.result, turned, node.members, a in passed)
        if before is not None:
            members = (*before.members, *node.members)
            product = replace(product, members=members, first=before.values[1])
        found.append(product)
    return CutStep(regions.graph, inputs, regions.outputs, tuple(found))


def _passed_on(graph: Graph, handed: Set[int]) -> set[int]:
    """The rows that are handed on, as inputs and as left factors.

    Raises:
        NoSpace: one is something else than a left factor.
    """
    passed = set(handed)
    for node in graph.nodes:
        if node.name in MOVED_ON and passed.issuperset(node.values) and node.values:
            passed.add(node.result)
    for node in graph.nodes:
        if node.name != PRODUCT and node.result not in passed and passed & set(node.values):
            raise NoSpace("a row handed on that is more than a left factor")
    if passed.intersection(graph.outputs):
        raise NoSpace("a row handed on that is an output")
    return passed


def joined_sum(
    graph: Graph, nodes: Sequence[Node], value: int, others: Sequence[int]
) -> tuple[int, list[Node]] | None:
    """The one of other values that a value is added to, be it behind other summands, and the
    operators without this addition, as if that other value were the sum; None if there is none.

        s = x + c, z = s + d    ->    z = c + d'        d' = x + d
    """
    sums = _sums_of(graph, nodes, value)
    for other in others:
        if graph.arrays[other] != graph.arrays[value] or not sums:
            continue
        if not sums & _sums_of(graph, nodes, other):
            continue
        (node,) = [node for node in nodes if value in node.values]
        if node.result in graph.outputs:
            continue
        (kept,) = [operand for operand in node.operands if operand != value]
        assert not isinstance(kept, Scalar), "sums are of arrays"
        made = []
        for each in nodes:
            if each is not node:
                operands = tuple(kept if x == node.result else x for x in each.operands)
                made.append(replace(each, operands=operands))
        return other, made
    return None


def _sums_of(graph: Graph, nodes: Sequence[Node], value: int) -> set[int]:
    """The sums that a value, and nothing but sums of it, is part of."""
    found: set[int] = set()
    while True:
        readers = [node for node in nodes if value in node.operands]
        if len(readers) != 1 or value in graph.outputs:
            return found
        (node,) = readers
        whole = len(set(node.values)) == 2 and graph.arrays[node.result] == graph.arrays[value]
        if node.name != "add" or not whole:
            return found
        value = node.result
        found.add(value)


def _used(graph: Graph) -> Graph:
    """The same without the values that nothing of it has to do with."""
    values = {v for node in graph.nodes for v in (*node.values, node.result)}
    values |= {*graph.inputs, *graph.outputs}
    made, number = Graph(), dict[int, int]()
    for value in sorted(values):
        number[value] = made.add(graph.arrays[value])
    for node in graph.nodes:
        operands = tuple(x if isinstance(x, Scalar) else number[x] for x in node.operands)
        made.nodes.append(replace(node, operands=operands, result=number[node.result]))
    made.inputs = [number[v] for v in graph.inputs]
    made.outputs = [number[v] for v in graph.outputs]
    return made


@dataclass(frozen=True)
class StepProduct:
    """A product of a step in its graph: numbers of the output A and of the input C.

    Attributes:
        a: `HANDED` for the row that is handed on.
        b: place of B among the arguments of the kernel.
        members: the product, by its number in the kernel.
        first: what is summed up before it, of the row that is handed on: place of that B, and its
            k; None if nothing is.
    """

    a: int
    b: int
    c: int
    k: int
    n: int
    members: tuple[int, ...] = ()
    first: tuple[int, int] | None = None

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
class LoopGroup:
    """A loop on a core.

    Attributes:
        graph: what the vector unit computes in a step.
        roles: of its inputs and outputs, by number.
        source: place of the array of rows that another loop hands on to this one, if one does.
        program: the steps of the graph, each product's result and left factor by itself.
        forms: in which the program has been computed, see `form`.
    """

    graph: Graph
    steps: int
    roles: dict[int, Role]
    products: tuple[StepProduct, ...]
    source: int | None = None
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
        return self.graph.key(), self.steps, roles, terms

    def form(self, machine: Machine, joined: bool) -> StepForm:
        """The step as it is computed, see `step_form`."""
        key = (machine.name, joined)
        if key not in self.forms:
            self.forms[key] = step_form(self, machine, joined)
        return self.forms[key]

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
    return LoopGroup(made, steps, roles, tuple(products), next(iter(sources), None))


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
