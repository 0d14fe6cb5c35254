"""Gates of a loop's step in the form in which the cube computes most of them.

    s = x W + b + h R,  f = logistic s    ->    z = x W' + h R',  f = 1 / (1 + exp z)      W' = -W
    s = x W + b + h R,  g = tanh s        ->    z = x W' + h R',  g = 2 / (1 + exp z) - 1  W' = -2 W

Right factors that are known are multiplied by powers of two, which loses no bit. What is known and
added to a product of rows that are nothing but left factors becomes two more rows of its right
factor, of halves that add up to it, by which ones behind the rows are multiplied. So the result of
the cube is what the exponential takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from davinci.schedule.graph import Graph, Node, Operand, Scalar

SCALES = {"logistic": -1.0, "tanh": -2.0}
"""Operators of gates, and the multiple of their operand whose exponential they are computed of."""


@dataclass
class GateForms:
    """Rewrites the gates of a step.

    Args:
        graph: of a step without its products, see `cut_step`; its nodes are replaced.
        products: of the results of products, whether their left factors are rows that are nothing
            but that.
        may_scale: whether the right factor of a product may be multiplied by a number.
        may_add: whether a value times a number may be added by the product.

    Attributes:
        scales: by what the right factors of products are multiplied.
        added: what products add to their results, times that number.
    """

    graph: Graph
    products: Mapping[int, bool]
    may_scale: Callable[[int, float], bool]
    may_add: Callable[[int, int, float], bool]
    scales: dict[int, float] = field(default_factory=dict)
    added: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._makers = {node.result: node for node in self.graph.nodes}
        readers = Counter(v for node in self.graph.nodes for v in node.values)
        self._once = {v for v, n in readers.items() if n == 1 and v not in self.graph.outputs}

    def rewrite(self) -> None:
        """Puts gates that can be into the form in which the cube computes most of them."""
        for node in list(self.graph.nodes):
            if node.name in SCALES and self.graph.arrays[node.result].element == "f32":
                self._gate(node, SCALES[node.name])
        if self.scales:
            self._order()

    def _gate(self, node: Node, scale: float) -> None:
        (x,) = node.operands
        if isinstance(x, Scalar) or not self._scalable(x, scale):
            return
        z = self._scaled(x, scale, self._product_of_rows(x))
        e = self._node(node, "exp", z)
        below = self._node(node, "add", e, Scalar(1.0))
        if node.name == "logistic":
            last = replace(node, name="div", operands=(Scalar(1.0), below))
        else:
            quotient = self._node(node, "div", Scalar(2.0), below)
            last = replace(node, name="add", operands=(quotient, Scalar(-1.0)))
        self._makers[node.result] = replace(last, attributes={})

    def _node(self, like: Node, name: str, *operands: Operand) -> int:
        """The result of a new operator of the shape of another one's."""
        result = self.graph.add(self.graph.arrays[like.result])
        self._makers[result] = Node(name, operands, result, members=like.members)
        return result

    def _scalable(self, value: Operand, scale: float) -> bool:
        """Whether a value is computed of products that may be scaled in its place."""
        if isinstance(value, Scalar) or value not in self._once:
            return False
        if value in self.products:
            return self.may_scale(value, scale)
        node = self._makers.get(value)
        if node is None or node.name not in ("add", "mul"):
            return False
        return any(self._scalable(operand, scale) for operand in node.operands)

    def _product_of_rows(self, value: Operand) -> int | None:
        """A product of rows that a value is a sum of; None if there is none."""
        if isinstance(value, Scalar) or value not in self._once:
            return None
        if value in self.products:
            return value if self.products[value] else None
        node = self._makers.get(value)
        if node is None or node.name != "add":
            return None
        found = (self._product_of_rows(operand) for operand in node.operands)
        return next((product for product in found if product is not None), None)

    def _scaled(self, value: Operand, scale: float, target: int | None) -> Operand:
        """A value times a number.

        Args:
            target: the product that adds one value that is added to it.
        """
        if isinstance(value, Scalar):
            return Scalar(value.value * scale)
        if not self._scalable(value, scale):
            like = self._makers.get(value) or Node("", (), value)
            return self._node(like, "mul", value, Scalar(scale))
        if value in self.products:
            self.scales[value] = scale
            return value
        node = self._makers[value]
        if node.name == "mul":
            first, *_ = (x for x in node.operands if self._scalable(x, scale))
            place = node.operands.index(first)
            made = list(node.operands)
            made[place] = self._scaled(first, scale, self._product_of_rows(first))
            self._makers[value] = replace(node, operands=tuple(made))
            return value
        for x, other in (node.operands, node.operands[::-1]):
            if target is None or target in self.added or isinstance(x, Scalar):
                continue
            if self.may_add(target, x, scale):
                self.added[target] = x
                del self._makers[value]
                return self._scaled(other, scale, target)
        operands = tuple(self._scaled(x, scale, target) for x in node.operands)
        self._makers[value] = replace(node, operands=operands)
        return value

    def _order(self) -> None:
        """The operators that outputs need, in an order in which they can be computed."""
        done: dict[int, Node] = {}

        def visit(value: int) -> None:
            if value in self._makers and value not in done:
                for operand in self._makers[value].values:
                    visit(operand)
                done[value] = self._makers[value]

        for output in self.graph.outputs:
            visit(output)
        self.graph.nodes = list(done.values())
