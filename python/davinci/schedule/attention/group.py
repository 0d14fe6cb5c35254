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

from davinci.operators import OPERATORS, Tensor
from davinci.operators.products import PRODUCTS, TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import ND, NZ
from davinci.operators.vector_program import DTYPE_OF, Operand, Value, VectorProgram
from davinci.schedule.attention.attention import Attention, ScoreChain, ScoreOperand
from davinci.schedule.attention.band import KeyBand
from davinci.schedule.attention.members import Found, Members
from davinci.schedule.attention.steps import may_come_last, without_scale
from davinci.schedule.attention.terms import (
    LEAST,
    AttentionResult,
    Difference,
    Empty,
    Known,
    Row,
    ScoreBooleans,
    Seen,
    Selection,
    Statistic,
    Weight,
    factor_of,
    turn_of,
    turn_of_rows,
)
from davinci.schedule.attention.turn import MatrixTurn
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.products.product import ProductResult as Leaving
from davinci.schedule.vector.space import NoSpace

SCORES = ("f16", "f32")
"""Element types of scores."""

BOOLEAN = "i1"


@dataclass(frozen=True)
class AttentionGroup:
    """Attention, and the group's values that it takes and makes, by number.

    Attributes:
        factors: Q, K and V.
        matrices: the arrays that each of them consists of.
        extras: of the chain, in its order.
        upright: those with a number for each score that are not turned yet, as scores are.
        selections: that are not bounds yet.
        output: O.
        members: operators of the kernel that each part of it serves.
    """

    attention: Attention
    factors: tuple[int, int, int]
    matrices: tuple[Tensor, ...]
    extras: tuple[int, ...]
    upright: tuple[int, ...]
    selections: tuple[Selection, ...]
    output: int
    members: Members

    @property
    def ready(self) -> bool:
        """Whether masks are as a kernel takes them."""
        return not (self.upright or self.selections)


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
    extras: dict[tuple[int, bool], ScoreOperand] = field(default_factory=dict)
    products: list[tuple[Node, tuple[Seen, ...]]] = field(default_factory=list)
    upright: list[int] = field(default_factory=list)
    selections: list[Selection] = field(default_factory=list)
    made_ready: set[int] = field(default_factory=set)
    found: Found = field(default_factory=Found)
    scaling: tuple[int, ...] = ()
    highest: Value | None = None
    guarded: bool = False
    band: KeyBand | None = None
    banded: Value | None = None

    def read(self) -> AttentionGroup:
        if self.scores.element not in SCORES:
            raise NoSpace(f"scores of {self.scores.element}")
        self.program.input(DTYPE_OF[self.scores.element])
        for number in self.graph.inputs:
            array = self.graph.arrays[number]
            matrices = np.arange(math.prod(array.shape[:-2])).reshape(array.shape[:-2])
            self.known[number] = Seen(number, array.shape, matrices)
        for node in self.graph.nodes:
            self.program.serving = node.members
            self.known[node.result] = self._read(node)
            if node.name in PRODUCTS:
                part = "scores" if len(self.products) == 1 else "product"
                self.found.add(part, node.members)
            else:
                self.found.note(node.members, self.known[node.result])
        (output,) = self.graph.outputs
        if not isinstance(self.known[output], AttentionResult):
            raise NoSpace("an output of attention that is not its last product")
        return self._group(output)

    def _read(self, node: Node) -> Known:
        """Finds what the result of an operator is in attention, from what its operands are."""
        found = [x.value if isinstance(x, Scalar) else self.known[x] for x in node.operands]
        if node.name in PRODUCTS:
            return self._product(node, found)
        result = self.graph.arrays[node.result]
        if node.name == "reshape":
            return self._reshaped(found[0], result)
        if node.name == "broadcast":
            return self._broadcast(node, found[0], result)
        if node.name in ("relayout", "transpose") and isinstance(found[0], Seen):
            return self._turned(node, found[0], result)
        if node.name == "select":
            return self._guard(found) if found[0] == Empty() else self._select(node, found)
        if node.name == "reduce":
            return self._reduced(node, found[0])
        if node.name == "cast" and not isinstance(found[0], Value | float):
            return self._cast(node, found[0])
        if node.name == "band" and isinstance(found[0], Value):
            return self._band(node, found[0])
        if any(isinstance(x, Statistic | Row | Difference | Weight) for x in found):
            return self._softmax(node, found)
        return self._record(node, found, result)

    # Products.

    def _product(self, node: Node, found: list[Known]) -> Known:
        """The scores, or of the second product the result of attention."""
        a, b = found
        if not self.products:
            if not (isinstance(a, Seen) and isinstance(b, Seen)):
                raise NoSpace("a product of what is computed in the group")
            self.products.append((node, (a, b)))
            return self.program.inputs[0]
        if not (isinstance(a, Weight) and a.divided and isinstance(b, Seen)):
            raise NoSpace("a second product of something else than weights and an input")
        if node.attributes.get(TRANSPOSE_A):
            raise NoSpace("weights that are turned")
        self.products.append((node, (b,)))
        return AttentionResult()

    @property
    def scores(self) -> Tensor:
        """S as the first product gives it."""
        first = next(node for node in self.graph.nodes if node.name in PRODUCTS)
        return self.graph.arrays[first.result]

    def _is_scores(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape has a number for each score, in rows of all keys,
        however its dimensions outside of the keys are split."""
        of = self.scores.shape
        return shape[-1:] == of[-1:] and math.prod(shape) == math.prod(of)

    # What moves nothing.

    def _reshaped(self, operand: Known, result: Tensor) -> Known:
        """An operand with another shape, of which rows of matrices stay rows."""
        shape = result.shape
        if isinstance(operand, Seen):
            if shape[-2:] != operand.shape[-2:] or len(shape) < 2:
                if operand.matrices.size != 1 and self._packed(operand):
                    raise NoSpace("a reshape of repeated matrices")
                count = math.prod(shape[:-2])
                return Seen(operand.number, shape, np.arange(count).reshape(shape[:-2]))
            return replace(operand, shape=shape, matrices=operand.matrices.reshape(shape[:-2]))
        if isinstance(operand, Statistic):
            return replace(operand, shape=shape)
        if isinstance(operand, AttentionResult):
            of = self.graph.arrays[self.products[1][0].result]
            if shape[-2:] != of.shape[-2:] and result.layout != ND:
                raise NoSpace("a result with another shape")
        if isinstance(operand, Value | Row | Difference | Weight) and not self._is_scores(shape):
            raise NoSpace("scores with another shape")
        return operand

    def _packed(self, seen: Seen) -> bool:
        """Whether matrices are not those of the input in their order."""
        return not np.array_equal(seen.matrices.reshape(-1), np.arange(seen.matrices.size))

    def _broadcast(self, node: Node, operand: Known, result: Tensor) -> Known:
        """A number, a row's statistic beside scores, a factor for several heads, or a mask of one
        number a key, as a broadcast to `result` repeats it; NoSpace of all else."""
        if isinstance(operand, float | int):
            return float(operand)
        dims = [int(dim) for dim in node.attributes["dims"]]
        last = len(result.shape) - 1
        if isinstance(operand, Statistic) and self._is_scores(result.shape):
            held = dict(zip(dims, operand.shape, strict=True))
            if held.pop(last, 1) == 1 and all(result.shape[d] == n for d, n in held.items()):
                return Row(operand.kind)
        if not isinstance(operand, Seen):
            raise NoSpace("a broadcast of what is computed in attention")
        held = dict(zip(dims, operand.shape, strict=True))
        if dims != sorted(dims):
            raise NoSpace("a broadcast that turns")
        matrices = len(dims) >= 2 and dims[-2:] == [last - 1, last]
        if matrices and operand.shape[-2:] == result.shape[-2:]:
            return self._spread(operand, dims[:-2], result)
        if not self._is_scores(result.shape):
            raise NoSpace("a broadcast of something else than a mask")
        if held.get(last, 1) != result.shape[last]:
            raise NoSpace("a mask that is not one number a key")
        lead = [held.get(i, 1) for i in range(last)]
        rows = np.arange(math.prod(lead)).reshape(lead)
        if self._packed(operand):
            raise NoSpace("a mask of repeated rows")
        turn = turn_of_rows(np.broadcast_to(rows, result.shape[:-1]), self.scores.shape[-2])
        if self.graph.arrays[operand.number].element == BOOLEAN:
            return ScoreBooleans(operand.number, whole=False, turn=turn)
        return self._extra(operand.number, whole=False, turn=turn)

    def _spread(self, operand: Seen, dims: list[int], result: Tensor) -> Seen:
        """More matrices of the same ones."""
        lead = result.shape[:-2]
        shape = [1] * len(lead)
        for dim, size in zip(dims, operand.shape[:-2], strict=True):
            shape[dim] = size
        matrices = np.broadcast_to(operand.matrices.reshape(shape), lead)
        return replace(operand, shape=result.shape, matrices=matrices)

    def _turned(self, node: Node, operand: Seen, result: Tensor) -> Seen:
        """A mask that comes as scores are computed, keys first and in fractals."""
        if node.name == "relayout":
            return operand
        rank = len(result.shape)
        wanted = [*range(rank - 2), rank - 1, rank - 2]
        if list(node.attributes["permutation"]) != wanted:
            raise NoSpace("a transpose in attention")
        return replace(operand, shape=result.shape, turned=not operand.turned)

    def _extra(self, number: int, whole: bool, turn: MatrixTurn) -> Value:
        """The input of the chain for a mask: of all scores (`whole`) or of one number a key."""
        array, dtype = self.graph.arrays[number], self.program.inputs[0].dtype
        ready = DTYPE_OF.get(array.element) == dtype and array.layout == (NZ if whole else ND)
        if not ready and number not in self.made_ready:
            raise NoSpace(f"{array} beside scores of {self.scores.element}")
        key = number, whole
        if key not in self.extras:
            self.extras[key] = ScoreOperand(self.program.input(dtype), whole, turn)
        if self.extras[key].turn != turn:
            raise NoSpace("a mask that is used in two ways")
        return self.extras[key].value

    # Softmax.

    def _reduced(self, node: Node, operand: Known) -> Statistic:
        """The maxima of scores over keys, or the sums of their exponentials."""
        source, result = (self.graph.arrays[x] for x in (node.values[0], node.result))
        kind, last = node.attributes["kind"], len(source.shape) - 1
        if list(node.attributes["dims"]) != [last]:
            raise NoSpace("a reduction of something else than keys")
        if kind == "max" and isinstance(operand, Value) and self.highest in (None, operand):
            self.highest = operand
            return Statistic("max", result.shape)
        if kind == "add" and operand == Weight(divided=False):
            return Statistic("sum", result.shape)
        raise NoSpace(f"{kind} over keys")

    def _cast(self, node: Node, operand: Known) -> Known:
        result = self.graph.arrays[node.result]
        if isinstance(operand, Seen):
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
        undivided = Weight(divided=False)
        if node.name == "sub" and second == Row("max") and first is self.highest:
            return Difference()
        if node.name == "exp" and first == Difference():
            return undivided
        if node.name == "max" and -math.inf in found:  # some take care of empty rows
            (statistic,) = (x for x in found if x != -math.inf)
            if isinstance(statistic, Statistic) and statistic.kind == "max":
                return statistic
        inverse = node.name == "rec" or (node.name == "div" and first == 1.0)
        if inverse and isinstance(second, Statistic) and second.kind == "sum":
            return replace(second, kind="inverse")
        if node.name == "div" and (first, second) == (undivided, Row("sum")):
            return Weight(divided=True)
        if node.name == "mul" and undivided in found and Row("inverse") in found:
            return Weight(divided=True)
        divided = Weight(divided=True)
        different = node.name == "compare" and node.attributes["predicate"] == "NE"
        if different and (first, second) == (divided, divided):  # of what is no number only
            return Empty()
        raise NoSpace(f"{node.name} in softmax")

    def _guard(self, found: list[Known]) -> Known:
        """Zeros for weights that are no number."""
        weights = Weight(divided=True)
        if found[1] != 0.0 or found[2] != weights:
            raise NoSpace("a selection by weights of something else than zeros and weights")
        self.guarded = True
        return weights

    # The chain.

    def _record(self, node: Node, found: list[Any], result: Tensor) -> Value:
        """The scores behind an elementwise operator, whose steps join the chain."""
        record = OPERATORS.get(node.name)
        if record is None or not record.elementwise:
            raise NoSpace(f"{node.name} between products")
        if not any(isinstance(x, Value) for x in found) or not self._is_scores(result.shape):
            raise NoSpace(f"{node.name} of something else than scores")
        operands: list[Operand] = []
        for operand in found:
            if isinstance(operand, Seen):
                operand = self._mask(operand)
            if not isinstance(operand, Value | float | int):
                raise NoSpace(f"{node.name} of something else than scores")
            operands.append(operand)
        if node.name == "div" and isinstance(operands[1], float | int):
            return self.program.mul(operands[0], 1.0 / operands[1])
        return record.tile(self.program, operands, node.attributes, result.element)

    def _select(self, node: Node, found: list[Any]) -> Value:
        """Scores where flags say so, else a number that is less than all of them."""
        flags, first, second = found
        if isinstance(flags, Seen):
            flags = self._flags(flags)
        kept = isinstance(first, Value)
        scores, fill = (first, second) if kept else (second, first)
        if not (isinstance(flags, ScoreBooleans) and isinstance(scores, Value)):
            raise NoSpace("a selection of something else than scores by flags")
        if not isinstance(fill, float | int) or fill > LEAST[scores.dtype]:
            raise NoSpace("a selection between scores and what may be among them")
        self.selections.append(Selection(flags.number, node.result, float(fill), kept))
        if flags.whole:
            self.upright.append(flags.number)
        self.made_ready.add(flags.number)
        return self.program.min(scores, self._extra(flags.number, flags.whole, flags.turn))

    def _band(self, node: Node, scores: Value) -> Value:
        """Scores of which each row keeps some keys, which is done behind the chain."""
        shape = self.graph.arrays[node.result].shape
        if self.band is not None or shape[-2:] != self.scores.shape[-2:]:
            raise NoSpace("a band of something else than scores, or a second one")
        *lead, rows, keys = self.scores.shape
        given, shape = node.attributes, (rows, keys)
        ends = tuple(given["runs"]), given.get("each", 1), given["fill"]
        self.band, self.banded = KeyBand.of(*ends, math.prod(lead), shape), scores
        return scores

    def _flags(self, seen: Seen) -> ScoreBooleans:
        if self.graph.arrays[seen.number].element != BOOLEAN or seen.turned:
            raise NoSpace("a selection by something else than flags")
        whole, turn = self._whole(seen)
        return ScoreBooleans(seen.number, whole, turn)

    def _whole(self, mask: Seen) -> tuple[bool, MatrixTurn]:
        """Whether a mask has a number for each score of a matrix, and which of its matrices, else
        rows, each matrix of S takes."""
        if not self._is_scores(mask.shape):
            raise NoSpace(f"an operand of {mask.shape} beside scores")
        height = mask.shape[-2]
        of_matrices = height == self.scores.shape[-2]
        if of_matrices and (height > 1 or mask.turned):
            return True, turn_of(mask.matrices.reshape(-1))
        if mask.turned:
            raise NoSpace(f"a turned operand of {mask.shape} beside scores")
        rows = mask.matrices[..., None] * height + np.arange(height)
        return False, turn_of_rows(rows, self.scores.shape[-2])

    def _mask(self, mask: Seen) -> Value:
        """A mask with a number for each score; where rows of a matrix share one, for each key."""
        whole, turn = self._whole(mask)
        if not whole:
            return self._extra(mask.number, whole=False, turn=turn)
        if not mask.turned:
            array = self.graph.arrays[mask.number]
            if DTYPE_OF.get(array.element) != self.program.inputs[0].dtype:
                raise NoSpace(f"{array} beside scores of {self.scores.element}")
            self.upright.append(mask.number)
            self.made_ready.add(mask.number)
        return self._extra(mask.number, whole=True, turn=turn)

    def _chain(self) -> tuple[ScoreChain, float]:
        """The steps as a line, and a scale that is taken to Q."""
        scores = self.program.inputs[0]
        if self.highest is None:
            raise NoSpace("no maximum")
        self.program.outputs = [self.highest]
        self.program.drop_unused()
        steps, running = list(self.program.steps), scores
        numbers = self.program.constants
        given = {extra.value for extra in self.extras.values()} | set(numbers)
        for step in steps:
            line = step.sources.count(running) >= 1 and given.issuperset(
                source for source in step.sources if source is not running
            )
            if not line or step.result.dtype != scores.dtype:
                raise NoSpace("a chain that is no line")
            running = step.result
        if self.banded is not None and (self.extras or not may_come_last(self.banded, steps)):
            raise NoSpace("a band in front of what may change the order of scores")
        if running is not self.highest:
            raise NoSpace("a chain that does not end where the maximum is taken")
        steps, scale, self.scaling = without_scale(steps, scores)
        extras = tuple(self.extras.values())
        pairs = tuple(self.program.constants.items())
        return ScoreChain(scores, tuple(steps), extras, pairs), scale

    # The group.

    def _group(self, output: int) -> AttentionGroup:
        """The group that was read; its extents come from the shapes of Q, K, V and scores."""
        chain, scale = self._chain()
        (first, (q, k)), (second, (v,)) = self.products
        *_, rows, keys = self.scores.shape
        batch = math.prod(self.scores.shape[:-2])
        turned_q, turned_k = (bool(first.attributes.get(x)) for x in (TRANSPOSE_A, TRANSPOSE_B))
        turned_v = bool(second.attributes.get(TRANSPOSE_B))
        depth = q.shape[-2] if turned_q else q.shape[-1]
        arrays = self.graph.arrays
        columns, o = arrays[second.result].shape[-1], arrays[output]
        if o.element not in SCORES or o.count != batch * rows * columns:
            raise NoSpace(f"{o} as the result of attention")
        if min(batch, rows, keys, depth, columns) == 0:
            raise NoSpace("attention of nothing")

        attention = Attention(
            batch,
            rows,
            keys,
            depth,
            columns,
            factor_of(q, arrays, turned_q),
            factor_of(k, arrays, not turned_k),
            factor_of(v, arrays, not turned_v),
            Leaving(o.layout == NZ, o.bytes_each),
            turn_of(q.matrices.reshape(-1)),
            turn_of(k.matrices.reshape(-1)),
            turn_of(v.matrices.reshape(-1)),
            scale,
            chain,
            self.guarded and (bool(chain.extras) or bool(self.band and self.band.hides_rows)),
            self.band,
        )
        return AttentionGroup(
            attention,
            (q.number, k.number, v.number),
            tuple(replace(arrays[seen.number], shape=seen.shape[-2:]) for seen in (q, k, v)),
            tuple(number for number, _ in self.extras),
            tuple(self.upright),
            tuple(self.selections),
            output,
            self.found.members(
                (q.number, k.number, v.number),
                tuple(number for number, _ in self.extras),
                self.scaling,
            ),
        )
