"""Elementwise operators behind an operator that computes parts of its result in UB.

    %c = conv %x, %w                  sums
    %d = broadcast %bias; %e = add %c, %d; %f = add %e, %residual; %g = tanh %f      the epilogue

They are of the result's shape but for dimensions of size 1 and the way in which the batch is
written. What they combine it with is an input of the same shape and layout, or a row, broadcast.
Where groups of columns are computed apart and the last one ends inside a block, what pads it is
computed, too: operators make zeros of zeros, and a row lies in fractals, whose padding is zero.
`NoSpace` says why operators are none of this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.operators import OPERATORS, Tensor
from davinci.operators.arithmetic import FINITE
from davinci.operators.tensors import ND, NZ
from davinci.operators.vector_program import DTYPE_OF, Operand, Value, VectorProgram
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.products.epilogue import DEQUANTIZE, PAIR, SCALE_SUMS, SCALE_SUMS_OF_RELU
from davinci.schedule.products.extras import Extra
from davinci.schedule.products.rewrites import is_widening
from davinci.schedule.vector.space import NoSpace
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

SUMS = ("f16", "f32", "i32")
"""Element types of sums."""

BYTES = "i8"
"""What leaves a kernel, or comes to be combined with sums, by whole blocks of 32 columns."""

FACTORS = (*SUMS, BYTES)
"""Element types of what is computed of sums, and of what they are combined with."""


@dataclass(frozen=True)
class Whence:
    """An input of the group, seen with another shape."""

    number: int
    shape: tuple[int, ...]


class Followers:
    """Reads what is done to the result of one operator of a group.

    Attributes:
        c: the result.
        matrices: groups of its columns that are computed apart; 0 where there are none.
        ragged: whether the last one of several groups ends inside a block.
        program: what is done to it.
        sums: the program's value of the result.
        known: what the group's values are, by number.
        extras: other inputs of the program, by number and whether they are rows.
    """

    def __init__(self, graph: Graph, node: Node, matrices: int = 0) -> None:
        self.graph, self.node = graph, node
        self.c = graph.arrays[node.result]
        if self.c.element not in SUMS:
            raise NoSpace(f"{node.name} to {self.c.element}")
        self.matrices = matrices
        self.ragged = matrices > 1 and self.c.shape[-1] % SIDE > 0
        self.program = VectorProgram()
        self.sums = self.program.input(DTYPE_OF[self.c.element])
        self.known: dict[int, Operand | Whence] = {
            number: Whence(number, graph.arrays[number].shape) for number in graph.inputs
        }
        self.extras: dict[tuple[int, bool], Extra] = {}

    def outputs(self) -> tuple[int, ...]:
        """Numbers of what leaves; the program's outputs in the same order, each once."""
        numbers: dict[Value, int] = {}
        for number in self.graph.outputs:
            value, array = self.known[number], self.graph.arrays[number]
            given = any(value == extra.value for extra in self.extras.values())
            if not isinstance(value, Value) or value in numbers or given:
                raise NoSpace(f"an output that {self.node.name} has no part in, or one twice")
            self._require_output(array)
            numbers[value] = number
            self.program.output(value)
        self.program.drop_unused()
        return tuple(numbers.values())

    def _require_output(self, array: Tensor) -> None:
        """An output is of C's shape and layout, and leaves by whole blocks."""
        self._require_shape(array)
        self._require_blocks(array)

    def _require_shape(self, array: Tensor) -> None:
        """The shape of C, however the batch is written, in C's layout."""
        same = array.shape[-2:] == self.c.shape[-2:] and array.count == self.c.count
        if not same or array.layout != self.c.layout or array.element not in FACTORS:
            raise NoSpace(f"{array} beside {self.c}")

    def _require_blocks(self, array: Tensor) -> None:
        """Bytes cross GM by whole blocks: in nz a fractal has two of C's columns of fractals."""
        columns = self.c.shape[-1]
        whole = columns % BLOCK_BYTES == 0
        if array.layout == NZ:
            whole = ceil_div(columns, SIDE) % PAIR == 0 and self.matrices <= 1
        if array.element == BYTES and not whole:
            raise NoSpace(f"{array} in parts of blocks")

    def record(self, node: Node) -> Operand | Whence:
        """Writes the steps of an operator behind the product into the program.

        Returns:
            the value or number that it makes, or, of an array that is only reshaped, whence it
            comes.

        Raises:
            NoSpace: it cannot be computed on tiles of C.
        """
        result = self.graph.arrays[node.result]
        self.program.serving = node.members
        if node.name == "reshape":
            return self._reshaped(node, result)
        if node.name == "broadcast":
            return self._broadcast(node, result)
        if node.name == DEQUANTIZE:
            return self._dequantized(node, result)
        if node.name == SCALE_SUMS:
            return self._scaled(node, result)
        record = OPERATORS.get(node.name)
        if record is None or not record.elementwise:
            raise NoSpace(f"{node.name} behind {self.node.name}")
        self._require_shape(result)
        operands = [self._operand(x) for x in node.operands]
        if not any(isinstance(x, Value) for x in operands):
            raise NoSpace(f"an operator that does not need {self.node.name}")
        if self.ragged:
            self._require_zeros(node, operands, result)
        if node.attributes.get(FINITE):
            self._mark_finite(operands)
        return record.tile(self.program, operands, node.attributes, result.element)

    def _require_zeros(self, node: Node, operands: Sequence[Operand], result: Tensor) -> None:
        """What pads the last group is zero behind an operator as in front of it."""
        elements = (
            result.element if isinstance(x, Scalar) else self.graph.arrays[x].element
            for x in node.operands
        )
        numbers = [0 if isinstance(x, Value) else x for x in operands]
        given = list(zip(elements, numbers, strict=True))
        if not OPERATORS[node.name].makes_zero(given, result.element, node.attributes):
            raise NoSpace(f"{node.name} of what pads the last group of columns")

    def _mark_finite(self, operands: Sequence[Operand]) -> None:
        """Notes that extras are finite that are added, or made wider and added."""
        narrow = {step.result: step.sources[0] for step in self.program.steps if is_widening(step)}
        found = [narrow.get(value, value) for value in operands if isinstance(value, Value)]
        for key, extra in self.extras.items():
            self.extras[key] = replace(extra, finite=extra.finite or extra.value in found)

    def _dequantized(self, node: Node, result: Tensor) -> Operand:
        """Sums of bytes that are scaled on their way out of L0C."""
        sums, scales, digits = node.values
        if self.known[sums] is not self.sums or self.c.layout != NZ or self.matrices > 1:
            raise NoSpace(f"{node.name} of what does not come from L0C in fractals")
        self._require_shape(result)
        blocks = self.graph.arrays[digits].shape[-1] // BLOCK_BYTES
        values = []
        for number, layout in ((scales, ND), (digits, NZ)):
            array = self.graph.arrays[number]
            if number not in self.graph.inputs or array.layout != layout:
                raise NoSpace(f"{node.name} by {array}")
            value = self.program.input(DTYPE_OF[array.element])
            extra = Extra(value, row=True, batch=False, members=node.members)
            if number == digits:
                extra = replace(extra, column=True, blocks=blocks)
            else:
                extra = replace(extra, scale=True)
            self.extras[number, True] = extra
            values.append(value)
        return self.program.step(DEQUANTIZE, [self.sums, *values], DTYPE_OF[result.element])

    def _scaled(self, node: Node, result: Tensor) -> Operand:
        """Sums of bytes that fixpipe scales by words of their columns."""
        sums, number = node.values
        source, words = self.known[sums], self.graph.arrays[number]
        if number not in self.graph.inputs or not isinstance(source, Value) or self.matrices > 1:
            raise NoSpace(f"{node.name} of what does not come from L0C")
        self._require_shape(result)
        self._require_blocks(result)
        value = self.program.input(DTYPE_OF[words.element])
        self.extras[number, True] = Extra(value, row=True, batch=False, scale=True)
        name = SCALE_SUMS_OF_RELU if node.attributes.get("relu") else SCALE_SUMS
        return self.program.step(name, [source, value], DTYPE_OF[result.element])

    def _reshaped(self, node: Node, result: Tensor) -> Operand | Whence:
        """The operand itself: a reshape of what is computed keeps C's rows, one of an input is
        noted."""
        operand = self.known[node.values[0]]
        if isinstance(operand, Whence):
            return Whence(operand.number, result.shape)
        self._require_shape(result)
        return operand

    def _broadcast(self, node: Node, result: Tensor) -> Operand:
        """A row of C: one for all matrices, or each has its own."""
        if not node.values:
            return self._operand(node.operands[0])
        operand = self.known[node.values[0]]
        if not isinstance(operand, Whence):
            raise NoSpace("a broadcast of what is computed in the group")
        self._require_shape(result)
        dims = [int(dim) for dim in node.attributes["dims"]]
        held = dict(zip(dims, operand.shape, strict=True))
        last = len(result.shape) - 1
        if held.get(last, 1) != result.shape[last] or held.get(last - 1, 1) != 1:
            raise NoSpace("a broadcast that is no row")
        batch = math.prod(held.get(i, 1) for i in range(last - 1))
        if batch not in (1, math.prod(result.shape[:-2])):
            raise NoSpace("a row for several matrices each")
        if self.matrices > 1 and batch > 1:
            raise NoSpace("a row for each image of groups")
        return self._extra(operand.number, row=True, batch=batch > 1 or self.matrices > 1)

    def _operand(self, operand: int | Scalar) -> Operand:
        """An operand as the program has it: a number, a value of C's form, or an input, which
        becomes an extra of all elements of C, or of a row where C is one."""
        if isinstance(operand, Scalar):
            return operand.value
        found = self.known[operand]
        if not isinstance(found, Whence):
            return found
        array = self.graph.arrays[found.number]
        one = array.count == self.c.shape[-1] == self.c.count
        if one and (len(array.shape) == 1 or (array.layout == ND and not self.ragged)):
            # All of C is one row, so a row is at most reshaped.
            return self._extra(found.number, row=True, batch=False)
        if array.shape[-2:] != self.c.shape[-2:]:
            raise NoSpace(f"{array} beside {self.c}")
        self._require_shape(array)
        self._require_blocks(array)
        return self._extra(found.number, row=False, batch=True)

    def _extra(self, number: int, row: bool, batch: bool) -> Value:
        """The program's input for an array beside C, the same one for each use.

        Args:
            number: of the array in the graph.
            row: whether it is a row for all rows of C.
            batch: whether each matrix has its own.
        """
        key = number, row
        array = self.graph.arrays[number]
        bytes_of_row = row and array.element == BYTES
        layout = NZ if self.ragged else ND
        if array.element not in FACTORS or bytes_of_row or (row and array.layout != layout):
            raise NoSpace(f"{array} beside {self.node.name}")
        if row and batch and self.c.shape[-1] % SIDE and not self.ragged:
            raise NoSpace("rows that end inside a block, each matrix its own")
        if key not in self.extras:
            value = self.program.input(DTYPE_OF[array.element])
            self.extras[key] = Extra(value, row, batch, fractals=row and self.ragged)
        return self.extras[key].value
