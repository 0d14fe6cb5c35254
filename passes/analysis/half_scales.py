"""Chooses what is stored as f16, and the power of two that each value is multiplied by.

    f(x) = (x (a x + b)) / (x (c x + d) + e), x in [0, 255], a = 2.51, ..

A value that f16 holds keeps its scale, so nothing is spent on it. Here x (a x + b) reaches 163,000:
its scale has to be 2^-3. That may come from either factor; a x + b has it for nothing, since a and
b are constants, which are scaled at compile time: x ((a / 8) x + b / 8). The same goes for the
divisor, and the quotient has the scale 2^(-3 + 3). Where no constant and no conversion on the way
takes the factor, one multiplication is made for it.

Scales follow the operators: of a product they add up, of a quotient they are subtracted, a root
halves them, sums, maxima, comparisons and joins want equal ones, exponentials and other functions
none. Sums of rows and windows are f32, and so is what few values are computed from them. What has
no finite bound, or one beyond `MOST`, stays f32; a product reads it times powers of two that are
found at run time, or as it is where it has no bound at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from davinci.passes.analysis.scale_shifts import (
    ALIKE,
    KEEPING,
    LARGEST_SCALE,
    MOST,
    ROOTS,
    ScaledGraph,
    ShiftLimits,
)
from davinci.passes.analysis.value_analysis import (
    MOVED,
    SUMS,
    ScalePlan,
    bounds_of,
    is_sum,
    overflows,
)
from davinci.passes.analysis.value_bounds import Bound
from davinci.passes.analysis.value_graph import ARGUMENT, OTHER, PRODUCTS, ValueGraph, ValueNode

FARTHEST = 2.0**64
"""Up to this operands of products are scaled by what their largest number is at run time; beyond
it a bound is of the kind that grows with each layer, whatever the numbers are."""

FEW = 8
"""Elements for each one of a sum, or of what is repeated, of which f32 thus costs nothing."""

MOST_TRIES = 20

FUNCTIONS = frozenset({"exp", "log", "tanh", "erf", "logistic", "floor", "ceil", "round", "sign"})
"""Operators of f16 that want a scale of 1, and give it."""

GROWING = frozenset({"mul", "pow", "exp", "div"})
"""Operators whose result is f32 where nothing but sums in f32 read it."""

NO_RANGE = "no range is known"
NO_RULE = "nothing is known of this operator"
TOO_FAR = "the bound grows beyond 2^31"
TOO_NEAR = "the bound lies below 2^-48"


@dataclass
class Scales:
    """A plan, and what is left in f32 for want of a bound.

    Attributes:
        left: why each value stays f32 that might have been f16.
        exact: bounds of real arithmetic.
        bounds: those of what the plan computes.
    """

    plan: ScalePlan
    left: dict[int, str]
    exact: list[Bound]
    bounds: list[Bound]


def plan_scales(graph: ValueGraph) -> Scales:
    """A plan by which no f16 overflows, whatever arguments are in their ranges."""
    exact = bounds_of(graph)
    wide: dict[int, str] = {}
    for _ in range(MOST_TRIES):
        planner = Planner(graph, exact, left=dict(wide))
        planner.run()
        found = bounds_of(graph, planner.plan)
        lost = set(overflows(graph, planner.plan, found))
        if not lost:
            return Scales(planner.plan, planner.left, exact, found)
        wide |= dict.fromkeys(lost, "its roundings may leave f16")
    every = dict.fromkeys(range(len(graph.nodes)), "its roundings may leave f16")
    planner = Planner(graph, exact, left=every)
    planner.run()
    return Scales(planner.plan, planner.left, exact, bounds_of(graph, planner.plan))


@dataclass
class Planner(ScaledGraph):
    """Makes a plan node by node.

    Attributes:
        left: nodes that stay f32 and why; those given at first are so whatever their bound.
        small: nodes of few values that are computed from sums in f32.
    """

    left: dict[int, str] = field(default_factory=dict)
    small: set[int] = field(default_factory=set)

    def run(self) -> None:
        """Decides on all nodes."""
        self.summed = self._only_summed()
        self.given = set(self.left)
        for number, node in enumerate(self.graph.nodes):
            if node.name != ARGUMENT and not node.fixed and node.known is None:
                self._visit(number, node)
        self._drop_unread()

    def _drop_unread(self) -> None:
        """Leaves in f32 what is computed in f32, or comes out of the cube so, and is read in f32
        only, like scores with a mask that f16 does not hold: two conversions and a product by the
        scale less."""
        dropped = set(self.plan.exponents) - (self.results - self.converted)
        while wrong := {n for n in dropped if not self._is_f32_only(n, dropped)}:
            dropped -= wrong
        for number in dropped:
            del self.plan.exponents[number]
            node = self.graph.nodes[number]
            if node.name in PRODUCTS:
                self._unscale(number)
                continue
            self.converted.discard(number)
            for place in range(len(node.operands)):
                self.plan.reads.pop((number, place), None)

    def _is_f32_only(self, number: int, dropped: set[int]) -> bool:
        """Whether no operator reads a value in f16 but dropped ones, and computing it in f32 takes
        no conversion: it is so anyway, or comes from dropped values, constants and small ones."""
        for reader in self.readers[number]:
            operands = self.graph.nodes[reader].operands
            places = [place for place, operand in enumerate(operands) if operand == number]
            halves = any(map(self.plan.reads_half, ((reader, place) for place in places)))
            if halves and (reader not in dropped or self.graph.nodes[reader].name in PRODUCTS):
                return False
        node = self.graph.nodes[number]
        if node.name in PRODUCTS or number in self.converted:
            return True
        computed = [x for x in self._operands(node) if not self.is_fixed(x)]
        return bool(computed) and all(
            x in dropped or self._is_computed_in_f32(x) or self._is_spread(x, node)
            for x in computed
        )

    def _is_computed_in_f32(self, number: int) -> bool:
        return number not in self.plan.exponents and self.graph.nodes[number].name != ARGUMENT

    def _is_spread(self, number: int, node: ValueNode) -> bool:
        """Whether a node has many elements for each one of an operand, whose conversion is thus
        nothing beside it."""
        return FEW * self.graph.nodes[number].count <= node.count

    def _only_summed(self) -> set[int]:
        """Growing operators that only sums in f32 read, directly or through others of them."""
        found: set[int] = set()
        for number in reversed(range(len(self.graph.nodes))):
            readers = self.readers[number]
            if self.graph.nodes[number].name not in GROWING or number in self.results:
                continue
            if readers and all(is_sum(self.graph.nodes[r]) or r in found for r in readers):
                found.add(number)
        return found

    def _visit(self, number: int, node: ValueNode) -> None:
        """Decides on a node."""
        if node.element != "f32":
            self._read_by_other(number, node)
            return
        halves = self._operands(node)
        if is_sum(node):
            self._sum(number, node)
        elif number in self.summed or self._is_small(node, halves):
            if self._is_small(node, halves):
                self.small.add(number)
        elif number in self.given:
            if node.name in PRODUCTS:
                self._far_product(number, node)
        elif self.limits[number] is None and node.name not in PRODUCTS:
            self.left[number] = self._why(number)
        elif not halves or not all(self._may_read(x) for x in halves):
            if node.name in PRODUCTS:
                self._far_product(number, node)
            else:
                self._convert(number)
        else:
            self._choose(number, node)

    def _why(self, number: int) -> str:
        bound = self.exact[number]
        if self.graph.nodes[number].name == OTHER:
            return NO_RULE
        if not bound.is_finite:
            return NO_RANGE
        return TOO_FAR if bound.magnitude > MOST else TOO_NEAR

    def _operands(self, node: ValueNode) -> list[int]:
        """The operands of f32."""
        return [x for x in node.operands if self.graph.nodes[x].element == "f32"]

    def _may_read(self, number: int) -> bool:
        """Whether an operator may read a value as f16."""
        return self.limits[number] is not None and number not in self.given

    def _is_small(self, node: ValueNode, halves: Sequence[int]) -> bool:
        """Whether a node computes with few values that come from sums in f32."""
        moves = node.name in MOVED or node.name in SUMS or node.name in PRODUCTS
        if (moves and node.name != "reshape") or node.name in ("concat", "pad", "gather", OTHER):
            return False
        computed = [x for x in halves if not self.is_fixed(x)]
        return bool(computed) and all(x in self.small for x in computed)

    def _sum(self, number: int, node: ValueNode) -> None:
        """A sum in f32, whose operand may be read as it is stored."""
        if node.terms >= FEW:
            self.small.add(number)
        (operand,) = node.operands[:1]
        if operand in self.plan.exponents:
            self.plan.reads[number, 0] = self.plan.exponents[operand]

    def _read_by_other(self, number: int, node: ValueNode) -> None:
        """What an operator with a result of another type reads of f16."""
        halves = self._operands(node)
        if node.name == "compare" and halves and all(map(self._may_read, halves)):
            self._alike(number, node, ShiftLimits(-LARGEST_SCALE, LARGEST_SCALE))
        elif node.name == "cast" and halves and self.plan.exponents.get(halves[0]) == 0:
            self.plan.reads[number, 0] = 0

    def _convert(self, number: int) -> None:
        """A value that is computed in f32 and then rounded."""
        limits = self.limits[number]
        assert limits is not None, "values in f16 have limits"
        self.plan.exponents[number] = self._wanted(number)
        self.converted.add(number)

    def _wanted(self, number: int) -> int:
        """The scale of a value where none is given: 1 if that holds it; of large values the
        largest, and small ones become about 1."""
        limits = self.limits[number]
        assert limits is not None, "values in f16 have limits"
        if 0 in limits or limits.high < 0:
            return limits.nearest
        magnitude = self.exact[number].magnitude
        return min(max(limits.low, round(-math.log2(magnitude))), limits.high)

    def _choose(self, number: int, node: ValueNode) -> None:
        """Decides on a node whose operands f16 holds."""
        limits = self.limits[number]
        if node.name in ALIKE and limits is not None:
            self.plan.exponents[number] = self._alike(number, node, limits)
        elif node.name in KEEPING or node.name == "gather" or node.name in SUMS:
            self._keep(number)
        elif node.name == "mul" or node.name == "div":
            self._multiply(number, node, (1, 1 if node.name == "mul" else -1))
        elif node.name in PRODUCTS:
            self._product(number, node)
        elif node.name in ROOTS:
            self._root(number, ROOTS[node.name])
        elif node.name in FUNCTIONS:
            self._function(number)
        else:
            self._convert(number)

    def _scale_of(self, number: int) -> int:
        """The scale that a value is read with unless something speaks against it."""
        found = self.plan.exponents.get(number)
        return self._wanted(number) if found is None else found

    def _keep(self, number: int) -> None:
        (operand, *_) = self.graph.nodes[number].operands
        exponent = self._scale_of(operand)
        self.plan.reads[number, 0] = self.plan.exponents[number] = exponent

    def _alike(self, number: int, node: ValueNode, limits: ShiftLimits) -> int:
        """Gives the operands of a node one scale, as cheaply as possible, and returns it."""
        places = ALIKE[node.name]
        operands = [(place, node.operands[place]) for place in places]
        every = [limits] + [x for _, n in operands if (x := self.limits[n]) is not None]
        high = min(x.high for x in every)
        computed = [n for _, n in operands if not self.is_fixed(n)]
        candidates = {self._scale_of(n) for n in computed} or {limits.nearest}
        low = min(limits.low, high)
        candidates = {min(max(e, low), high) for e in candidates}

        def cost(exponent: int) -> tuple[int, int]:
            total = 0
            for place, n in operands:
                self.plan.reads[number, place] = self._scale_of(n)
                delta = exponent - self._scale_of(n)
                if delta and not self.edge_may_shift(number, place, delta):
                    total += self.graph.nodes[n].count
            return total, -exponent

        chosen = min(candidates, key=cost)
        for place, n in operands:
            self.plan.reads[number, place] = self._scale_of(n)
            self._set(number, place, chosen)
        return chosen

    def _set(self, number: int, place: int, exponent: int) -> None:
        """Has an operand read with a scale: for nothing if possible, else multiplied."""
        delta = exponent - self.plan.reads[number, place]
        if not delta:
            return
        if self.edge_may_shift(number, place, delta):
            self.shift_edge(number, place, delta)
        else:
            self.plan.reads[number, place] = exponent

    def _multiply(self, number: int, node: ValueNode, signs: tuple[int, int]) -> None:
        """A product or quotient: scales are added or subtracted, and mended where the result leaves
        f16."""
        limits = self.limits[number]
        assert limits is not None, "values in f16 have limits"
        a, b = node.operands
        for place, n in enumerate((a, b)):
            self.plan.reads[number, place] = self._scale_of(n)
        natural = self.natural(number, signs)
        if natural not in limits:
            wanted = self._wanted(number)
            self._mend(number, wanted - natural, signs)
        self._settle(number, signs)
        natural = self.natural(number, signs)
        if natural in limits:
            self.plan.exponents[number] = natural
        else:
            for place in (0, 1):
                del self.plan.reads[number, place]
            self._convert(number)

    def _settle(self, number: int, signs: tuple[int, int]) -> None:
        """Brings a result back to a scale of 1 where that fits and a constant takes the rest: what
        comes next then meets others without a multiplication."""
        limits = self.limits[number]
        if limits is not None and 0 in limits:
            self._unscale(number, signs)

    def _unscale(self, number: int, signs: tuple[int, int] = (1, 1)) -> None:
        """Brings a result back to a scale of 1 where a constant operand takes the rest."""
        natural = self.natural(number, signs)
        if not natural:
            return
        for place in (1, 0):
            operand = self.graph.nodes[number].operands[place]
            delta = -signs[place] * natural
            if self.is_fixed(operand) and self.edge_may_shift(number, place, delta):
                self.shift_edge(number, place, delta)
                return

    def _mend(self, number: int, delta: int, signs: tuple[int, int]) -> None:
        """Changes the scales of the operands of a product so that its own changes by `delta`."""
        operands = self.graph.nodes[number].operands
        order = sorted((0, 1), key=lambda place: not self.is_fixed(operands[place]))
        for place in order:
            if self.edge_may_shift(number, place, signs[place] * delta):
                self.shift_edge(number, place, signs[place] * delta)
                return
        order.sort(key=lambda place: self.graph.nodes[operands[place]].count)
        for place in order:
            limits = self.limits[operands[place]]
            assert limits is not None, "values in f16 have limits"
            now = self.plan.reads[number, place]
            wanted = now + signs[place] * delta
            given = min(max(wanted, min(limits.low, now)), max(limits.high, now))
            self.plan.reads[number, place] = given
            delta -= signs[place] * (given - now)

    def _product(self, number: int, node: ValueNode) -> None:
        """A product on the cube, whose sums are f32: what operands cannot take is multiplied on
        their way out."""
        for place, n in enumerate(node.operands[:2]):
            self.plan.reads[number, place] = self._scale_of(n)
        limits = self.limits[number]
        if limits is None:
            self.left[number] = self._why(number)
            return
        if self._is_result(number):
            self._unscale(number)
            return
        natural = self.natural(number, (1, 1))
        if natural not in limits:
            delta = self._wanted(number) - natural
            for place in (1, 0):
                if self.edge_may_shift(number, place, delta):
                    self.shift_edge(number, place, delta)
                    break
            else:
                self.converted.add(number)
                self.plan.exponents[number] = natural + delta
                return
        self._settle(number, (1, 1))
        self.plan.exponents[number] = self.natural(number, (1, 1))

    def _far_product(self, number: int, node: ValueNode) -> None:
        """A product with an operand that no known scale fits: measured ones where there is a bound,
        else left as it is, but for operands that are known to need a scale."""
        for place, n in enumerate(node.operands[:2]):
            if self._may_read(n):
                self.plan.reads[number, place] = self._scale_of(n)
            elif self.exact[n].magnitude <= FARTHEST and not self.is_fixed(n):
                self.plan.measured.add((number, place))
        edges = ((number, 0), (number, 1))
        if not all(map(self.plan.reads_half, edges)):
            self.left[number] = NO_RANGE
            self.plan.measured -= set(edges)
        elif (
            number not in self.given
            and self.limits[number] is not None
            and not self._is_result(number)
        ):
            self._convert(number)

    def _is_result(self, number: int) -> bool:
        """Whether nothing but the function's end reads a value."""
        return number in self.results and not self.readers[number]

    def _root(self, number: int, sign: int) -> None:
        """A root: of an even scale."""
        limits = self.limits[number]
        assert limits is not None, "values in f16 have limits"
        (operand,) = self.graph.nodes[number].operands
        exponent = self.plan.reads[number, 0] = self._scale_of(operand)
        if exponent % 2:
            inside = self.limits[operand]
            assert inside is not None, "values in f16 have limits"
            free = [d for d in (1, -1) if self.edge_may_shift(number, 0, d)]
            up = 1 if exponent + 1 in inside else -1
            self._set(number, 0, exponent + (free[0] if free else up))
        natural = sign * self.plan.reads[number, 0] // 2
        if natural in limits:
            self.plan.exponents[number] = natural
        else:
            del self.plan.reads[number, 0]
            self._convert(number)

    def _function(self, number: int) -> None:
        """A function of unscaled values."""
        node = self.graph.nodes[number]
        (operand,) = node.operands
        inside, limits = self.limits[operand], self.limits[number]
        assert inside is not None and limits is not None, "values in f16 have limits"
        if node.name == "sign":
            self.plan.reads[number, 0] = self._scale_of(operand)
            self.plan.exponents[number] = 0
        elif inside.high < 0 or inside.low > 0 or 0 not in limits:
            self._convert(number)
        else:
            self.plan.reads[number, 0] = self._scale_of(operand)
            self._set(number, 0, 0)
            self.plan.exponents[number] = 0
