"""Groups without slices, concatenations and pads: values are computed region by region.

    %a = slice %x [0:32]           out[0:32]  = x[0:32] * c[0:32] - x[32:64] * s[0:32]
    %b = slice %x [32:64]          out[32:64] = x[32:64] * c[32:64] + x[0:32] * s[32:64]
    %t = concat (neg %b), %a
    %o = add (mul %x, %c), (mul %t, %s)

An output is cut where what defines it changes: where a concatenation goes on with its next operand,
or a pad with the padding. Of each region it is known which region of each operand it needs, back to
the inputs; so what moves elements inside a group is done by the windows through which inputs are
read and outputs written. Where regions of a value overlap, that part is computed for each.

Values are cut elsewhere too where that makes all regions equal: where slices begin and end. Then a
value and its parts have the same rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from davinci.operators import OPERATORS, Tensor
from davinci.operators.movement import runs
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.tensors import ND
from davinci.schedule.graph import Graph, Node, Operand, Scalar, Window
from davinci.schedule.vector.space import NoSpace
from davinci.units import row_major

MOVEMENT = frozenset({"slice", "concat", "pad"})
"""Operators that a group has no steps for."""

MOST_REGIONS = 32
"""Regions of an output, above which a kernel would be too long."""


@dataclass(frozen=True)
class SteppedSpan:
    """`count` elements along a dimension: `first`, `first + step`, .."""

    first: int
    count: int
    step: int = 1

    def of(self, outer: SteppedSpan) -> SteppedSpan:
        """The elements of another span that these number."""
        return SteppedSpan(
            outer.first + self.first * outer.step, self.count, self.step * outer.step
        )


Region = tuple[SteppedSpan, ...]
Cuts = tuple[frozenset[int], ...]
"""For each dimension of a value, where parts other than the first begin."""


@dataclass(frozen=True)
class Regions:
    """A group in regions.

    Attributes:
        graph: the same group; inputs and outputs are windows.
        inputs, outputs: of each of its inputs and outputs, the place among those of the group of
            the array that it is a part of.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def regions_of(graph: Graph) -> Regions:
    """A group in regions; itself where it moves nothing.

    Raises:
        NoSpace: regions cannot be told apart.
    """
    if not any(node.name in MOVEMENT for node in graph.nodes):
        places = (tuple(range(len(values))) for values in (graph.inputs, graph.outputs))
        return Regions(graph, *places)
    return _Cutter(graph).cut()


def whole(shape: Sequence[int]) -> Region:
    """The region of all elements of an array."""
    return tuple(SteppedSpan(0, size) for size in shape)


@dataclass
class _Classes:
    """Dimensions of values that have the same size because operators bring them together."""

    leader: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    cuts: dict[tuple[int, int], set[int]] = field(default_factory=dict)

    def of(self, value: int, dim: int) -> tuple[int, int]:
        """The leader of the class that a dimension of a value is in."""
        found = (value, dim)
        while found in self.leader:
            found = self.leader[found]
        return found

    def join(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        first, second = self.of(*a), self.of(*b)
        if first != second:
            self.leader[first] = second

    def cut(self, value: int, dim: int, places: Sequence[int]) -> None:
        self.cuts.setdefault(self.of(value, dim), set()).update(places)


class _Cutter:
    """Cuts one group."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.shapes = [array.shape for array in graph.arrays]
        self.cuts: dict[int, Cuts] = {v: self._none(v) for v in graph.inputs}
        for node in graph.nodes:
            self.cuts[node.result] = self._cuts(node)
        self.equal = self._wished()
        self.made = Graph()
        self.members: tuple[int, ...] = ()
        self.known: dict[tuple[int, Region], Operand] = {}

    def cut(self) -> Regions:
        """The group on regions of its arrays, each computed by itself, with the place of each of
        its inputs and outputs among those of the group.

        Raises:
            NoSpace: an output has more than `MOST_REGIONS`.
        """
        graph, made = self.graph, self.made
        cells = {value: list(self._cells(value)) for value in graph.outputs}
        if max(map(len, cells.values())) > MOST_REGIONS:
            raise NoSpace("too many regions")
        wanted = self._wanted(cells)
        inputs, outputs = [], []
        for place, value in enumerate(graph.inputs):
            for region in wanted[value]:
                number = self._array(value, region)
                self._see(number, value, region, place)
                made.inputs.append(number)
                inputs.append(place)
                self.known[value, region] = number
        for node in graph.nodes:
            for region in wanted[node.result]:
                self.known[node.result, region] = self._computed(node, region)
        for place, value in enumerate(graph.outputs):
            for region in cells[value]:
                number = self._output(value, region)
                self._see(number, value, region, place)
                made.outputs.append(number)
                outputs.append(place)
        return Regions(made, tuple(inputs), tuple(outputs))

    # Where values are cut.

    def _none(self, value: int) -> Cuts:
        return (frozenset[int](),) * len(self.shapes[value])

    def _cuts(self, node: Node) -> Cuts:
        """Where the result of an operator must be cut."""
        if node.name == "concat":
            return self._cuts_of_concat(node)
        if not node.values:
            return self._none(node.result)
        operand = self.cuts[node.values[0]]
        attributes = node.attributes
        if node.name == "slice":
            names = ("starts", "limits", "strides")
            bounds = zip(*(attributes[name] for name in names), strict=True)
            return tuple(
                frozenset(-(-(cut - first) // step) for cut in cuts if first < cut < limit) - {0, n}
                for cuts, (first, limit, step), n in zip(
                    operand, bounds, self.shapes[node.result], strict=True
                )
            )
        if node.name == "pad":
            return self._cuts_of_pad(node, operand)
        if node.name == "reduce":
            return tuple(c for i, c in enumerate(operand) if i not in attributes["dims"])
        if node.name == "transpose":
            return tuple(operand[dim] for dim in attributes["permutation"])
        if node.name == "broadcast":
            found = list(self._none(node.result))
            for dim, cuts in zip(attributes["dims"], operand, strict=True):
                found[dim] = cuts
            return tuple(found)
        if node.name == "reshape":
            return self._cuts_of_reshape(node, operand)
        every = (self.cuts[value] for value in node.values)
        return tuple(frozenset[int]().union(*cuts) for cuts in zip(*every, strict=True))

    def _cuts_of_concat(self, node: Node) -> Cuts:
        """Where operands are cut, and where they meet."""
        dim, start = node.attributes["dim"], 0
        found = [set[int]() for _ in self.shapes[node.result]]
        for operand in node.operands:
            if isinstance(operand, Scalar):
                raise NoSpace("a number that is joined")
            for i, cuts in enumerate(self.cuts[operand]):
                found[i] |= {cut + start for cut in cuts} if i == dim else cuts
            start += self.shapes[operand][dim]
            found[dim].add(start)
        return tuple(
            frozenset(cuts) - {0, n}
            for cuts, n in zip(found, self.shapes[node.result], strict=True)
        )

    def _cuts_of_pad(self, node: Node, operand: Cuts) -> Cuts:
        """Where a padded result is cut: where its operand begins and ends, and is cut itself."""
        if any(node.attributes["interior"]) or len(node.values) != 1:
            raise NoSpace("padding between elements, or with what is computed")
        found = []
        shapes = zip(self.shapes[node.values[0]], self.shapes[node.result], strict=True)
        for low, cuts, (old, new) in zip(node.attributes["low"], operand, shapes, strict=True):
            places = {low, low + old, *(low + cut for cut in cuts)}
            found.append(frozenset(cut for cut in places if 0 < cut < new))
        return tuple(found)

    def _cuts_of_reshape(self, node: Node, operand: Cuts) -> Cuts:
        """Where a reshape's result is cut: along the outermost of the dimensions that an operand's
        outermost one becomes.

        Raises:
            NoSpace: a cut would go through rows of the result.
        """
        found: list[frozenset[int]] = []
        done = 0
        for sources, results in runs(self.shapes[node.values[0]], self.shapes[node.result]):
            own = operand[done : done + len(sources)]
            done += len(sources)
            flat = set()
            for i, cuts in enumerate(own):
                if cuts and math.prod(sources[:i]) != 1:
                    raise NoSpace("a reshape of parts")
                flat |= {cut * math.prod(sources[i + 1 :]) for cut in cuts}
            first = next((i for i, size in enumerate(results) if size > 1), 0)
            inner = math.prod(results[first + 1 :])
            if any(cut % inner for cut in flat):
                raise NoSpace("a reshape of parts")
            found += (
                frozenset(cut // inner for cut in flat) if i == first else frozenset()
                for i in range(len(results))
            )
        return tuple(found)

    def _wished(self) -> _Classes:
        """Where slices begin and end, and concatenations go on, on all values beside theirs."""
        classes = _Classes()
        for node in self.graph.nodes:
            for value, pairs in self._beside(node):
                for own, place in pairs:
                    if self.shapes[value][own] == self.shapes[node.result][place]:
                        classes.join((value, own), (node.result, place))
        for node in self.graph.nodes:
            if node.name == "slice" and node.values[0] not in self.graph.inputs:
                bounds = zip(node.attributes["starts"], node.attributes["limits"], strict=True)
                for dim, found in enumerate(bounds):
                    classes.cut(node.values[0], dim, found)
            elif node.name == "concat":
                dim = node.attributes["dim"]
                classes.cut(node.result, dim, sorted(self.cuts[node.result][dim]))
        return classes

    def _beside(self, node: Node) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """The operands whose dimensions are some of the result's, with both places of each."""
        rank = len(self.shapes[node.result])
        if node.name in MOVEMENT or node.name == "reshape" or not node.values:
            return
        pairs = [(i, i) for i in range(rank)]
        if node.name == "broadcast":
            pairs = list(enumerate(node.attributes["dims"]))
        elif node.name == "transpose":
            pairs = [(dim, i) for i, dim in enumerate(node.attributes["permutation"])]
        elif node.name == "reduce":
            dims = range(len(self.shapes[node.values[0]]))
            kept = [dim for dim in dims if dim not in node.attributes["dims"]]
            pairs = [(dim, i) for i, dim in enumerate(kept)]
        for value in node.values:
            yield value, pairs

    def _places(self, value: int, dim: int) -> list[int]:
        """Where parts begin along a dimension, and where the last one ends."""
        size, needed = self.shapes[value][dim], self.cuts[value][dim]
        wished = self.equal.cuts.get(self.equal.of(value, dim), set())
        places = sorted({0, size, *needed, *wished})
        if len({b - a for a, b in pairwise(places)}) == 1:
            return places
        return sorted({0, size, *needed})

    def _spans(self, value: int, dim: int) -> list[SteppedSpan]:
        return [SteppedSpan(a, b - a) for a, b in pairwise(self._places(value, dim))]

    def _cells(self, value: int) -> Iterator[Region]:
        """The regions of an output."""
        if 0 in self.shapes[value]:
            raise NoSpace("a group of nothing")
        return itertools.product(*(self._spans(value, d) for d in range(len(self.shapes[value]))))

    # What each region needs.

    def _wanted(self, cells: dict[int, list[Region]]) -> dict[int, dict[Region, None]]:
        """The regions of each value that are needed, in order."""
        wanted: dict[int, dict[Region, None]] = {v: {} for v in range(len(self.shapes))}
        for value, regions in cells.items():
            wanted[value] |= dict.fromkeys(regions)
        for node in reversed(self.graph.nodes):
            for region in wanted[node.result]:
                for value, read in self._reads(node, region):
                    wanted[value][read] = None
        return wanted

    def _reads(self, node: Node, region: Region) -> list[tuple[int, Region]]:
        """What a region of the result of an operator is computed from."""
        if node.name == "concat":
            return [self._part(node, region)]
        if not node.values:
            return []
        source, attributes = node.values[0], node.attributes
        shape = self.shapes[source]
        if node.name == "slice":
            bounds = zip(attributes["starts"], attributes["strides"], strict=True)
            outer = (SteppedSpan(first, 0, step) for first, step in bounds)
            return [(source, tuple(a.of(b) for a, b in zip(region, outer, strict=True)))]
        if node.name == "pad":
            low = attributes["low"]
            moved = tuple(replace(s, first=s.first - n) for s, n in zip(region, low, strict=True))
            inside = all(0 <= s.first < n for s, n in zip(moved, shape, strict=True))
            return [(source, moved)] if inside else []
        if node.name == "transpose":
            place = {dim: i for i, dim in enumerate(attributes["permutation"])}
            return [(source, tuple(region[place[dim]] for dim in range(len(shape))))]
        if node.name == "broadcast":
            dims = attributes["dims"]
            spans = (
                region[d] if n > 1 else SteppedSpan(0, 1) for d, n in zip(dims, shape, strict=True)
            )
            return [(source, tuple(spans))]
        if node.name == "reshape":
            return [(source, tuple(self._regrouped(shape, self.shapes[node.result], region)))]
        if node.name == "reduce":
            kept = iter(region)
            dims = attributes["dims"]
            every = (
                self._spans(source, i) if i in dims else [next(kept)] for i in range(len(shape))
            )
            return [(source, cell) for cell in itertools.product(*every)]
        return [(value, region) for value in dict.fromkeys(node.values)]

    def _part(self, node: Node, region: Region) -> tuple[int, Region]:
        """The operand of a concatenation that a region lies in, and where."""
        dim = node.attributes["dim"]
        first = region[dim].first
        for value in node.values:
            size = self.shapes[value][dim]
            if first < size:
                moved = replace(region[dim], first=first)
                return value, (*region[:dim], moved, *region[dim + 1 :])
            first -= size
        raise AssertionError("a region behind the end")

    def _regrouped(
        self, sources: tuple[int, ...], results: tuple[int, ...], region: Region
    ) -> Iterator[SteppedSpan]:
        """The part of the operand of a reshape that is a region of its result."""
        done = 0
        for own, theirs in runs(sources, results):
            spans = region[done : done + len(theirs)]
            done += len(theirs)
            if all(s == SteppedSpan(0, n) for s, n in zip(spans, theirs, strict=True)):
                yield from whole(own)
                continue
            wide = [(s, n) for s, n in zip(spans, theirs, strict=True) if n > 1]
            if [n for n in own if n > 1] == [n for _, n in wide]:
                left = iter([s for s, _ in wide])
                yield from (next(left) if n > 1 else SteppedSpan(0, 1) for n in own)
                continue
            (outer, _), *others = wide
            inner = math.prod(n for _, n in others)
            wanted = [n for n in own if n > 1]
            if outer.step != 1 or any(s != SteppedSpan(0, n) for s, n in others):
                raise NoSpace("a reshape of parts")
            behind = math.prod(wanted[1:])
            if outer.first * inner % behind or outer.count * inner % behind:
                raise NoSpace("a reshape of parts")
            part = SteppedSpan(outer.first * inner // behind, outer.count * inner // behind)
            place = next(i for i, n in enumerate(own) if n > 1)
            yield from (part if i == place else SteppedSpan(0, n) for i, n in enumerate(own))

    # The graph of the regions.

    def _array(self, value: int, region: Region) -> int:
        """A new value for a region."""
        array = self.graph.arrays[value]
        if array.layout != ND and region != whole(array.shape):
            raise NoSpace("a part of fractals")
        return self.made.add(replace(array, shape=tuple(span.count for span in region)))

    def _see(self, number: int, value: int, region: Region, place: int) -> None:
        """Notes where an input or output lies that is a part of an array."""
        array = self.graph.arrays[value]
        if region == whole(array.shape):
            return
        strides = row_major(array.shape)
        offset = sum(s.first * n for s, n in zip(region, strides, strict=True))
        steps = tuple(s.step * n for s, n in zip(region, strides, strict=True))
        self.made.windows[number] = Window(place, offset, steps)

    def _add(self, name: str, operands: Sequence[Operand], array: Tensor, **given: Any) -> int:
        result = self.made.add(array)
        self.made.nodes.append(Node(name, tuple(operands), result, given, self.members))
        return result

    def _computed(self, node: Node, region: Region) -> Operand:
        """A region of the result of an operator."""
        self.members = node.members
        reads = self._reads(node, region)
        if node.name in MOVEMENT:
            return self.known[reads[0]] if reads else next(_numbers(node))
        if node.name == "reduce":
            return self._reduced(node, region, reads)
        known = {value: self.known[value, read] for value, read in reads}
        operands = [v if isinstance(v, Scalar) else known[v] for v in node.operands]
        array = replace(self.graph.arrays[node.result], shape=tuple(span.count for span in region))
        if any(isinstance(operand, int) for operand in operands):
            number = self._array(node.result, region)
            self.made.nodes.append(replace(node, operands=tuple(operands), result=number))
            return number
        if node.name in ("broadcast", "reshape", "transpose"):
            return operands[0]
        return self._number(node, operands, array)

    def _number(self, node: Node, operands: Sequence[Operand], array: Tensor) -> Scalar:
        """The result of an elementwise operator on numbers."""
        given = [np.asarray(x.value) for x in operands if isinstance(x, Scalar)]
        result = replace(array, shape=())
        return Scalar(OPERATORS[node.name].values(given, result, node.attributes).item())

    def _reduced(self, node: Node, region: Region, reads: list[tuple[int, Region]]) -> Operand:
        """The parts of a reduction, combined."""
        kind = node.attributes["kind"]
        whole_type = self.graph.arrays[node.result].element
        element = REDUCTIONS[kind].accumulator(whole_type) if len(reads) > 1 else whole_type
        array = Tensor(tuple(span.count for span in region), element)
        found: int | None = None
        for value, read in reads:
            part = self.known[value, read]
            if isinstance(part, Scalar):
                raise NoSpace("a reduction of padding")
            source = self.made.arrays[part]
            if source.element != element:
                part = self._add("cast", [part], replace(source, element=element))
            made = self._add("reduce", [part], array, **node.attributes)
            found = made if found is None else self._add(kind, [found, made], array)
        assert found is not None, "a reduction of nothing"
        if element != whole_type:
            found = self._add("cast", [found], replace(array, element=whole_type))
        return found

    def _output(self, value: int, region: Region) -> int:
        """A region of an output as a value that nothing else is."""
        found = self.known[value, region]
        others = {*self.made.inputs, *self.made.outputs}
        if isinstance(found, int) and found not in others:
            return found
        array = self.graph.arrays[value]
        shape = tuple(span.count for span in region)
        self.members = next((n.members for n in self.graph.nodes if n.result == value), ())
        return self._add("copy", [found], replace(array, shape=shape))


def _numbers(node: Node) -> Iterator[Scalar]:
    return (x for x in node.operands if isinstance(x, Scalar))
