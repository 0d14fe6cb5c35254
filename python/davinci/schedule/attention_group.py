"""A group of operators as an `Attention`.

    %s = batch_matmul %q, %k      scores
    %t = mul %s, 0.125; %m = broadcast %mask; %x = add %t, %m        the chain: elementwise
    softmax of %x over keys, however it is spelled
    %o = batch_matmul %p, %v

with casts in between, batches written in any way, and K and V that are repeated for several
matrices of Q. `NoSpace` says why a group is none of this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.operators import OPERATORS, Tensor
from davinci.operators.arithmetic import is_power_of_two
from davinci.operators.products import PRODUCTS, TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import ND, NZ
from davinci.operators.vector_program import DTYPE_OF, Operand, Step, Value, VectorProgram
from davinci.schedule.attention import Attention, Chain, Extra, Turn
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.product import Operand as Factor
from davinci.schedule.product import Result
from davinci.schedule.space import NoSpace

SCORES = ("f16", "f32")
"""Element types of scores."""

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AttentionGroup:
    """Attention, and the group's values that it takes and makes, by number.

    Attributes:
        factors: Q, K and V.
        extras: of the chain, in its order.
        output: O.
    """

    attention: Attention
    factors: tuple[int, int, int]
    extras: tuple[int, ...]
    output: int


@dataclass(frozen=True)
class _Seen:
    """An input, seen with another shape.

    Attributes:
        number: of the input.
        shape: as it is seen.
        matrices: for each of the leading indices of `shape` the matrix of the input.
    """

    number: int
    shape: tuple[int, ...]
    matrices: Indices


@dataclass(frozen=True)
class _Statistic:
    """A number for each row of scores: "max", "sum" of exponentials, or "inverse" of that."""

    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Row:
    """A statistic, repeated for all scores of its row."""

    kind: str


@dataclass(frozen=True)
class _Difference:
    """x - max(x)."""


@dataclass(frozen=True)
class _Weight:
    """exp(x - max(x)), or that divided by its sum."""

    divided: bool


@dataclass(frozen=True)
class _Result:
    """O."""


Known = Operand | _Seen | _Statistic | _Row | _Difference | _Weight | _Result


def read_attention(graph: Graph) -> AttentionGroup:
    """The attention of a group.

    Raises:
        NoSpace: it is not one attention.
    """
    if len([node for node in graph.nodes if node.name in PRODUCTS]) != 2:
        raise NoSpace("no two products")
    if graph.windows:
        raise NoSpace("parts of arrays as operands of attention")
    if len(graph.outputs) != 1:
        raise NoSpace(f"{len(graph.outputs)} outputs of attention")
    return _Reader(graph).read()


@dataclass
class _Reader:
    """Walks the operators of a group in order."""

    graph: Graph
    known: dict[int, Known] = field(default_factory=dict)
    program: VectorProgram = field(default_factory=VectorProgram)
    extras: dict[tuple[int, bool], Extra] = field(default_factory=dict)
    products: list[tuple[Node, tuple[_Seen, ...]]] = field(default_factory=list)
    highest: Value | None = None

    def read(self) -> AttentionGroup:
        if self.scores.element not in SCORES:
            raise NoSpace(f"scores of {self.scores.element}")
        self.program.input(DTYPE_OF[self.scores.element])
        for number in self.graph.inputs:
            array = self.graph.arrays[number]
            count = math.prod(array.shape[:-2])
            self.known[number] = _Seen(
                number, array.shape, np.arange(count).reshape(array.shape[:-2])
            )
        for node in self.graph.nodes:
            self.known[node.result] = self._read(node)
        (output,) = self.graph.outputs
        if not isinstance(self.known[output], _Result):
            raise NoSpace("an output of attention that is not its last product")
        return self._group(output)

    def _read(self, node: Node) -> Known:
        found = [x.value if isinstance(x, Scalar) else self.known[x] for x in node.operands]
        if node.name in PRODUCTS:
            return self._product(node, found)
        result = self.graph.arrays[node.result]
        if node.name == "reshape":
            return self._reshaped(found[0], result)
        if node.name == "broadcast":
            return self._broadcast(node, found[0], result)
        if node.name == "reduce":
            return self._reduced(node, found[0])
        if node.name == "cast" and not isinstance(found[0], Value | float):
            return self._cast(node, found[0])
        if any(isinstance(x, _Statistic | _Row | _Difference | _Weight) for x in found):
            return self._softmax(node, found)
        return self._record(node, found, result)

    # Products.

    def _product(self, node: Node, found: list[Known]) -> Known:
        a, b = found
        if not self.products:
            if not (isinstance(a, _Seen) and isinstance(b, _Seen)):
                raise NoSpace("a product of what is computed in the group")
            self.products.append((node, (a, b)))
            return self.program.inputs[0]
        if not (isinstance(a, _Weight) and a.divided and isinstance(b, _Seen)):
            raise NoSpace("a second product of something else than weights and an input")
        if node.attributes.get(TRANSPOSE_A):
            raise NoSpace("weights that are turned")
        self.products.append((node, (b,)))
        return _Result()

    @property
    def scores(self) -> Tensor:
        """S as the first product gives it."""
        first = next(node for node in self.graph.nodes if node.name in PRODUCTS)
        return self.graph.arrays[first.result]

    def _is_scores(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape is that of S, however the batch is written."""
        of = self.scores.shape
        return shape[-2:] == of[-2:] and math.prod(shape) == math.prod(of)

    # What moves nothing.

    def _reshaped(self, operand: Known, result: Tensor) -> Known:
        shape = result.shape
        if isinstance(operand, _Seen):
            if shape[-2:] != operand.shape[-2:] or len(shape) < 2:
                if operand.matrices.size != 1 and self._packed(operand):
                    raise NoSpace("a reshape of repeated matrices")
                count = math.prod(shape[:-2])
                return _Seen(operand.number, shape, np.arange(count).reshape(shape[:-2]))
            return replace(operand, shape=shape, matrices=operand.matrices.reshape(shape[:-2]))
        if isinstance(operand, _Statistic):
            return replace(operand, shape=shape)
        if isinstance(operand, _Result):
            of = self.graph.arrays[self.products[1][0].result]
            if shape[-2:] != of.shape[-2:] or math.prod(shape) != of.count:
                raise NoSpace("a result with another shape")
        if isinstance(operand, Value | _Row | _Difference | _Weight) and not self._is_scores(shape):
            raise NoSpace("scores with another shape")
        return operand

    def _packed(self, seen: _Seen) -> bool:
        """Whether matrices are not those of the input in their order."""
        return not np.array_equal(seen.matrices.reshape(-1), np.arange(seen.matrices.size))

    def _broadcast(self, node: Node, operand: Known, result: Tensor) -> Known:
        if isinstance(operand, float | int):
            return float(operand)
        dims = [int(dim) for dim in node.attributes["dims"]]
        last = len(result.shape) - 1
        if isinstance(operand, _Statistic) and self._is_scores(result.shape):
            held = dict(zip(dims, operand.shape, strict=True))
            if held.pop(last, 1) == 1 and all(result.shape[d] == n for d, n in held.items()):
                return _Row(operand.kind)
        if not isinstance(operand, _Seen):
            raise NoSpace("a broadcast of what is computed in attention")
        held = dict(zip(dims, operand.shape, strict=True))
        if dims != sorted(dims):
            raise NoSpace("a broadcast that turns")
        matrices = len(dims) >= 2 and dims[-2:] == [last - 1, last]
        if matrices and operand.shape[-2:] == result.shape[-2:]:
            return self._spread(operand, dims[:-2], result)
        if not self._is_scores(result.shape):
            raise NoSpace("a broadcast of something else than a mask")
        if held.get(last, 1) != result.shape[last] or held.get(last - 1, 1) != 1:
            raise NoSpace("a mask that is not one number a key")
        lead = [held.get(i, 1) for i in range(last - 1)]
        rows = np.arange(math.prod(lead)).reshape(lead)
        spread = np.broadcast_to(rows, result.shape[:-2]).reshape(-1)
        if self._packed(operand):
            raise NoSpace("a mask of repeated rows")
        return self._extra(operand.number, whole=False, turn=turn_of(spread))

    def _spread(self, operand: _Seen, dims: list[int], result: Tensor) -> _Seen:
        """More matrices of the same ones."""
        lead = result.shape[:-2]
        shape = [1] * len(lead)
        for dim, size in zip(dims, operand.shape[:-2], strict=True):
            shape[dim] = size
        matrices = np.broadcast_to(operand.matrices.reshape(shape), lead)
        return _Seen(operand.number, result.shape, matrices)

    def _extra(self, number: int, whole: bool, turn: Turn) -> Value:
        array = self.graph.arrays[number]
        layout = NZ if whole else ND
        if DTYPE_OF.get(array.element) != self.program.inputs[0].dtype or array.layout != layout:
            raise NoSpace(f"{array} beside scores of {self.scores.element}")
        key = number, whole
        if key not in self.extras:
            value = self.program.input(DTYPE_OF[array.element])
            self.extras[key] = Extra(value, whole, turn)
        if self.extras[key].turn != turn:
            raise NoSpace("a mask that is used in two ways")
        return self.extras[key].value

    # Softmax.

    def _reduced(self, node: Node, operand: Known) -> _Statistic:
        source, result = (self.graph.arrays[x] for x in (node.values[0], node.result))
        kind, last = node.attributes["kind"], len(source.shape) - 1
        if list(node.attributes["dims"]) != [last]:
            raise NoSpace("a reduction of something else than keys")
        if kind == "max" and isinstance(operand, Value) and self.highest in (None, operand):
            self.highest = operand
            return _Statistic("max", result.shape)
        if kind == "add" and operand == _Weight(divided=False):
            return _Statistic("sum", result.shape)
        raise NoSpace(f"{kind} over keys")

    def _cast(self, node: Node, operand: Known) -> Known:
        result = self.graph.arrays[node.result]
        if isinstance(operand, _Seen):
            given = self.graph.arrays[operand.number]
            legal = (given.element, result.element) == ("f32", "f16") and given.layout == ND
            if not legal or operand.number not in self.graph.inputs:
                raise NoSpace("a cast of an operand that is no rounding of rows")
        elif result.element not in SCORES:
            raise NoSpace(f"a cast to {result.element}")
        return operand

    def _softmax(self, node: Node, found: list[Known]) -> Known:
        """The operators of softmax behind its maximum."""
        first, second = found[0], found[-1]
        undivided = _Weight(divided=False)
        if node.name == "sub" and second == _Row("max") and first is self.highest:
            return _Difference()
        if node.name == "exp" and first == _Difference():
            return undivided
        if node.name == "max" and -math.inf in found:  # some take care of empty rows
            (statistic,) = (x for x in found if x != -math.inf)
            if isinstance(statistic, _Statistic) and statistic.kind == "max":
                return statistic
        inverse = node.name == "rec" or (node.name == "div" and first == 1.0)
        if inverse and isinstance(second, _Statistic) and second.kind == "sum":
            return replace(second, kind="inverse")
        if node.name == "div" and (first, second) == (undivided, _Row("sum")):
            return _Weight(divided=True)
        if node.name == "mul" and undivided in found and _Row("inverse") in found:
            return _Weight(divided=True)
        raise NoSpace(f"{node.name} in softmax")

    # The chain.

    def _record(self, node: Node, found: list[Any], result: Tensor) -> Value:
        record = OPERATORS.get(node.name)
        if record is None or not record.elementwise:
            raise NoSpace(f"{node.name} between products")
        if not any(isinstance(x, Value) for x in found) or not self._is_scores(result.shape):
            raise NoSpace(f"{node.name} of something else than scores")
        operands: list[Operand] = []
        for operand in found:
            if isinstance(operand, _Seen):
                operand = self._one_row(operand)
            if not isinstance(operand, Value | float | int):
                raise NoSpace(f"{node.name} of something else than scores")
            operands.append(operand)
        if node.name == "div" and isinstance(operands[1], float | int):
            return self.program.mul(operands[0], 1.0 / operands[1])
        return record.tile(self.program, operands, node.attributes, result.element)

    def _one_row(self, mask: _Seen) -> Value:
        """A mask of scores of one row: a number for each key."""
        rows, keys = self.scores.shape[-2:]
        if rows != 1 or mask.shape[-2:] != (1, keys) or not self._is_scores(mask.shape):
            raise NoSpace("a mask with a number for each score")
        return self._extra(mask.number, whole=False, turn=turn_of(mask.matrices.reshape(-1)))

    def _chain(self) -> tuple[Chain, float]:
        """The steps as a line, and a scale that is taken to Q."""
        scores, scale = self.program.inputs[0], 1.0
        if self.highest is None:
            raise NoSpace("no maximum")
        self.program.outputs = [self.highest]
        self.program.drop_unused()
        steps, running = list(self.program.steps), scores
        numbers = self.program.constants.values()
        given = {extra.value for extra in self.extras.values()} | set(numbers)
        for step in steps:
            line = step.sources.count(running) >= 1 and given.issuperset(
                source for source in step.sources if source is not running
            )
            if not line or step.result.dtype != scores.dtype:
                raise NoSpace("a chain that is no line")
            running = step.result
        if running is not self.highest:
            raise NoSpace("a chain that does not end where the maximum is taken")
        if steps and is_scale(steps[0]):
            first = steps.pop(0)
            assert first.scalar is not None
            scale = first.scalar
            steps = [renamed(step, first.result, scores) for step in steps]
        extras = tuple(self.extras.values())
        pairs = tuple((value, number) for (_, number), value in self.program.constants.items())
        return Chain(scores, tuple(steps), extras, pairs), scale

    # The group.

    def _group(self, output: int) -> AttentionGroup:
        chain, scale = self._chain()
        (first, (q, k)), (second, (v,)) = self.products
        *_, rows, keys = self.scores.shape
        batch = math.prod(self.scores.shape[:-2])
        turned_q, turned_k = (bool(first.attributes.get(x)) for x in (TRANSPOSE_A, TRANSPOSE_B))
        turned_v = bool(second.attributes.get(TRANSPOSE_B))
        depth = q.shape[-2] if turned_q else q.shape[-1]
        columns = self.graph.arrays[second.result].shape[-1]
        o = self.graph.arrays[output]
        if o.element not in SCORES or o.count != batch * rows * columns:
            raise NoSpace(f"{o} as the result of attention")
        if min(batch, rows, keys, depth, columns) == 0:
            raise NoSpace("attention of nothing")

        def factor(seen: _Seen, k_rows: bool) -> Factor:
            array = self.graph.arrays[seen.number]
            if array.element not in ("f16", "f32"):
                raise NoSpace(f"attention of {array.element}")
            return Factor(array.layout == NZ, array.bytes_each, k_rows)

        attention = Attention(
            batch,
            rows,
            keys,
            depth,
            columns,
            factor(q, turned_q),
            factor(k, not turned_k),
            factor(v, not turned_v),
            Result(o.layout == NZ, o.bytes_each),
            turn_of(q.matrices.reshape(-1)),
            turn_of(k.matrices.reshape(-1)),
            turn_of(v.matrices.reshape(-1)),
            scale,
            chain,
        )
        extras = tuple(number for number, _ in self.extras)
        return AttentionGroup(attention, (q.number, k.number, v.number), extras, output)


def turn_of(matrices: Indices) -> Turn:
    """i // each % count as the rule of a list of matrices.

    Raises:
        NoSpace: they follow another rule.

    >>> turn_of(np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    Turn(each=2, count=2)
    """
    count = int(matrices.max()) + 1
    change = np.flatnonzero(matrices != matrices[0])
    each = int(change[0]) if change.size else matrices.size
    found = np.arange(matrices.size) // each % count
    if not np.array_equal(found, matrices):
        raise NoSpace("matrices in another order")
    return Turn(each, count)


def is_scale(step: Step) -> bool:
    """Whether a step multiplies by a power of two, which f16 does exactly."""
    return step.name == "vmuls" and step.scalar is not None and is_power_of_two(step.scalar)


def renamed(step: Step, old: Value, new: Value) -> Step:
    return replace(step, sources=tuple(new if value is old else value for value in step.sources))
