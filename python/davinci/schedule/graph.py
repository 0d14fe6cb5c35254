"""A group of operators as plain data: what `ascend-fuse` weighs and the driver builds.

Values are numbered; an operand is the number of a value, or a `Scalar` that stands for an array
filled with it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from davinci.operators import Tensor


@dataclass(frozen=True)
class Scalar:
    """An operand that is the same number everywhere.

    Attributes:
        negative: whether its sign is, by which zeros differ that are equal as numbers.
    """

    value: float
    negative: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "negative", math.copysign(1.0, self.value) < 0)


Operand = int | Scalar


@dataclass(frozen=True)
class Node:
    """One operator: its name, operands, result and attributes (Python values).

    Attributes:
        members: numbers of the operators of the kernel that it comes from, counted as they stand
            there: one, unless it was made of several.
    """

    name: str
    operands: tuple[Operand, ...]
    result: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    members: tuple[int, ...] = ()

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The operands that are arrays."""
        return tuple(v for v in self.operands if not isinstance(v, Scalar))


@dataclass(frozen=True)
class Window:
    """Where an input or output lies that is a part of an array in GM.

    Attributes:
        place: of the array among the inputs, or the outputs, of the whole group.
        offset: elements in front of the first.
        strides: elements from one to the next, along each dimension of the part.
    """

    place: int
    offset: int
    strides: tuple[int, ...]


@dataclass
class Graph:
    """Operators in an order in which they can be computed.

    Attributes:
        arrays: every value, by number.
        inputs: values that lie in GM when the group begins.
        outputs: values that lie in GM when it ends.
        windows: of inputs and outputs that are parts of arrays.
        lanes_apart: whether the last dimension of the largest value stays an axis of its own, so
            that tiles may have a part of the rows and of the columns.
    """

    arrays: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    windows: dict[int, Window] = field(default_factory=dict)
    lanes_apart: bool = False

    def add(self, array: Tensor) -> int:
        """A new value's number."""
        self.arrays.append(array)
        return len(self.arrays) - 1

    def key(self) -> tuple[object, ...]:
        """What the group is by its operators and arrays: equal for equal groups, from whichever
        operators of a model they come."""
        nodes = tuple(
            (n.name, n.operands, n.result, repr(sorted(n.attributes.items()))) for n in self.nodes
        )
        places = tuple(self.inputs), tuple(self.outputs), tuple(sorted(self.windows.items()))
        return nodes, tuple(self.arrays), *places, self.lanes_apart

    def keyed(self) -> KeyedGraph:
        """The group as a key of what is kept for it: by what it is, and by the operators of its
        kernel that it comes from, which reports of it name."""
        members = tuple(node.members for node in self.nodes)
        return KeyedGraph((self.key(), members), self)

    def rows(self) -> list[list[int]]:
        """Inputs, and outputs, that are neighbouring parts of the rows of one array, in order."""
        return [row for values in (self.inputs, self.outputs) for row in self._rows(values)]

    def _rows(self, values: list[int]) -> Iterator[list[int]]:
        """Those of some values that lie in runs of neighbouring windows of one array, a list for
        each run, in the order in which they lie in memory."""
        alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for value in values:
            window, shape = self.windows.get(value), self.arrays[value].shape
            if window is not None and window.strides[-1:] == (1,):
                alike[window.place, window.strides, shape].append(value)
        for (_, _, shape), members in alike.items():
            row: list[int] = []
            for value in sorted(members, key=lambda value: self.windows[value].offset):
                if row and self.windows[value].offset != self.windows[row[-1]].offset + shape[-1]:
                    yield row
                    row = []
                row.append(value)
            yield row


@dataclass(frozen=True)
class KeyedGraph:
    """A graph as the key of what is kept for it: equal if the keys are, whichever graph it is.

    Attributes:
        key: all of the graph that what is kept depends on.
    """

    key: tuple[object, ...]
    graph: Graph = field(compare=False, repr=False)
