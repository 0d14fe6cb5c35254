"""Cuts the graph of a loop's step at its products: the vector unit computes what is left.

p = h R, s = x + p, n = tanh(s)    ->    outputs h, n = tanh(x + p) of inputs x, p
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.vector.regions import regions_of
from davinci.schedule.vector.space import NoSpace

PRODUCT = "matmul"

MOVED_ON = frozenset({"copy", "cast", "reshape"})
"""Operators between a value and the left factor that it is."""


def origin_of(value: int, made: Mapping[int, Node]) -> int:
    """The value that another one is but for operators that move it on.

    Args:
        made: the operator that computes each value.
    """
    while value in made and made[value].name in MOVED_ON:
        (value,) = made[value].values
    return value


@dataclass(frozen=True)
class LoopProduct:
    """C[rows, n] = A[rows, k] B[k, n], by the numbers of A and B in the graph of the step.

    Attributes:
        turned: whether B is there as [n, k].
        handed: whether A is a row that is there without the vector unit.
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
    _require_products_of_inputs(graph)
    products = [node for node in graph.nodes if node.name == PRODUCT]
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
    _add_outputs(rest, (*graph.outputs, *factors))
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
        moved = node.name in MOVED_ON or _with_ones(node)
        if moved and passed.issuperset(node.values) and node.values:
            passed.add(node.result)
    for node in graph.nodes:
        if node.name != PRODUCT and node.result not in passed and passed & set(node.values):
            raise NoSpace("a row handed on that is more than a left factor")
    if passed.intersection(graph.outputs):
        raise NoSpace("a row handed on that is an output")
    return passed


def _require_products_of_inputs(graph: Graph) -> None:
    """Fails unless each product of a step is one of a value with an input that nothing else reads.

    Raises:
        NoSpace: one is not.
    """
    used = {v for node in graph.nodes if node.name != PRODUCT for v in node.values}
    for node in graph.nodes:
        if node.name == "batch_matmul":
            raise NoSpace("several products at once")
        if node.name != PRODUCT:
            continue
        a, b = node.operands
        if isinstance(a, Scalar) or isinstance(b, Scalar) or b not in graph.inputs:
            raise NoSpace("a product whose right factor is computed in the loop")
        if b in used:
            raise NoSpace("a right factor that is combined with others")
        if node.attributes.get(TRANSPOSE_A):
            raise NoSpace("a left factor that is turned")


def _add_outputs(graph: Graph, values: Iterable[int]) -> None:
    """Makes values the outputs of a graph, each a value of its own that is computed there: what is
    an input, or an output already, is copied."""
    views = {n.result: n.values[0] for n in graph.nodes if n.name == "reshape"}
    for value in values:
        origin = value
        while origin in views:
            origin = views[origin]
        if value in graph.outputs or origin in graph.inputs:
            made = graph.add(graph.arrays[value])
            # As soon as the value is there: other products may depend on this one.
            results = [node.result for node in graph.nodes]
            place = results.index(value) + 1 if value in results else 0
            members = next((n.members for n in graph.nodes if n.result == value), ())
            graph.nodes.insert(place, Node("copy", (value,), made, members=members))
            value = made
        graph.outputs.append(value)


def _with_ones(node: Node) -> bool:
    """Whether an operator pads the columns of a matrix with ones, as products with a bias take it
    (`loop_gates`)."""
    if node.name != "pad" or node.operands[1] != Scalar(1.0):
        return False
    low, high, interior = (node.attributes[key] for key in ("low", "high", "interior"))
    return not any((*low, *high[:-1], *interior))


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
    """The graph without the arrays that no operator, input or output of it names."""
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


def left_factors(graph: Graph) -> set[int]:
    """The inputs that are matrices and nothing but left factors."""
    found = set[int]()
    for value in graph.inputs:
        try:
            passed = _passed_on(graph, {value})
        except NoSpace:
            continue
        users = [node for node in graph.nodes if passed & set(node.values)]
        products = [node for node in users if node.name == PRODUCT]
        right = any(node.values[1] in passed for node in products)
        if products and not right:
            found.add(value)
    return found
