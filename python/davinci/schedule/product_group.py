"""A group of operators around one product, as a `Product` with an epilogue.

    %x = cast %a                      A comes in f32 and is rounded on its way
    %c = matmul %x, %w
    %d = broadcast %bias; %e = add %c, %d; %f = add %e, %residual; %g = tanh %f      the epilogue

The epilogue's operators are elementwise, of C's shape but for dimensions of size 1 and the way in
which the batch is written. What they combine C with is an input of the same shape and layout, or a
row of C, broadcast. `NoSpace` says why a group is none of this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.operators import OPERATORS, Tensor
from davinci.operators.conv import geometry
from davinci.operators.products import PRODUCTS, TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import ND, NZ
from davinci.operators.vector_program import DTYPE_OF, Operand, Value, VectorProgram
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.image import Image
from davinci.schedule.product import Operand as Factor
from davinci.schedule.product import Product, Result
from davinci.schedule.product_epilogue import Epilogue, Extra
from davinci.schedule.space import NoSpace
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

CONVOLUTION = "conv"

FACTORS = ("f16", "f32")
"""Element types of sums, and of what they are combined with."""


@dataclass(frozen=True)
class ProductGroup:
    """A product, and the group's values that it takes and makes, by number.

    Attributes:
        factors: A and B.
        extras: what the epilogue combines C with, in its order.
        outputs: what it makes, in its order.
    """

    product: Product
    factors: tuple[int, int]
    extras: tuple[int, ...]
    outputs: tuple[int, ...]


def is_product(node: Node) -> bool:
    """Whether the cube computes it."""
    return node.name in PRODUCTS or node.name == CONVOLUTION


def read_group(graph: Graph) -> ProductGroup:
    """The product of a group.

    Raises:
        NoSpace: it is not one product with what can be done on its way in and out.
    """
    products = [node for node in graph.nodes if is_product(node)]
    if len(products) != 1:
        raise NoSpace(f"{len(products)} products")
    return _Reader(graph, products[0]).read()


def image_of(graph: Graph, node: Node) -> Image | None:
    """The image of a convolution; None if windows are the pixels that there are.

    Raises:
        NoSpace: it does not lie in fractals of f16.
    """
    x, w = (graph.arrays[value] for value in node.values)
    if x.layout != NZ or w.layout != NZ or x.element != "f16":
        raise NoSpace(f"a convolution of {x} with {w}")
    shape = geometry(node.attributes)
    return None if shape.pointwise else Image(shape, ceil_div(x.shape[-1] // w.shape[0], SIDE))


@dataclass(frozen=True)
class _Whence:
    """An input of the group, seen with another shape."""

    number: int
    shape: tuple[int, ...]


class _Reader:
    """Walks the operators of a group in order."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        self.c = graph.arrays[node.result]
        self.image = image_of(graph, node) if node.name == CONVOLUTION else None
        if self.c.element not in FACTORS:
            raise NoSpace(f"a product of {self.c.element}")
        # A convolution of groups is a product for each, with its columns of the result.
        self.matrices = 0
        if node.name == CONVOLUTION:
            self.matrices = graph.arrays[node.values[1]].shape[0]
        if self.matrices > 1 and self.c.layout != NZ:
            raise NoSpace("groups of a convolution to rows")
        self.program = VectorProgram()
        self.sums = self.program.input(DTYPE_OF[self.c.element])
        self.known: dict[int, Operand | _Whence] = {
            number: _Whence(number, graph.arrays[number].shape) for number in graph.inputs
        }
        self.extras: dict[tuple[int, bool], Extra] = {}

    def read(self) -> ProductGroup:
        before = True
        casts: dict[int, int] = {}
        for node in self.graph.nodes:
            if node is self.node:
                before = False
                self.known[node.result] = self.sums
            elif before and node.result in self.node.values:
                casts[node.result] = self._cast(node)
            else:
                self.known[node.result] = self._record(node)
        if self.node.name == CONVOLUTION and casts:
            raise NoSpace("an image that is rounded on its way")
        factors = tuple(casts.get(v, v) for v in self.node.values)
        if len(factors) != 2 or any(v not in self.graph.inputs for v in factors):
            raise NoSpace("operands of a product that are computed in its group")
        outputs = self._outputs()
        nz = self.c.layout == NZ
        extras = list(self.extras.values())
        epilogue = Epilogue.of(self.program, self.sums, extras, nz)
        product = self._product(factors[0], factors[1], epilogue)
        numbers = tuple(number for number, _ in self.extras)
        return ProductGroup(product, (factors[0], factors[1]), numbers, outputs)

    def _cast(self, node: Node) -> int:
        """An operand in f32 rows that is rounded on its way."""
        (source,) = node.values
        given, made = self.graph.arrays[source], self.graph.arrays[node.result]
        legal = (
            node.name == "cast"
            and (given.element, made.element) == ("f32", "f16")
            and given.layout == ND
            and source in self.graph.inputs
        )
        if not legal:
            raise NoSpace(f"{node.name} in front of a product")
        return source

    def _outputs(self) -> tuple[int, ...]:
        """Numbers of what leaves; the program's outputs in the same order, each once."""
        numbers: dict[Value, int] = {}
        for number in self.graph.outputs:
            value, array = self.known[number], self.graph.arrays[number]
            if not isinstance(value, Value) or value in numbers:
                raise NoSpace("an output that the product has no part in, or one twice")
            self._require_shape(array)
            numbers[value] = number
            self.program.output(value)
        return tuple(numbers.values())

    def _product(self, a: int, b: int, epilogue: Epilogue) -> Product:
        arrays, flags = self.graph.arrays, self.node.attributes
        of_a, of_b = arrays[a], arrays[b]
        k, rows = of_a.shape[-1], not flags.get(TRANSPOSE_A)
        if not rows:
            k = of_a.shape[-2]
        turned_b = bool(flags.get(TRANSPOSE_B))
        items = [DTYPES[value.dtype].itemsize for value in epilogue.program.outputs]
        *lead, m, n = self.c.shape
        batch = math.prod(lead)
        if self.matrices:
            _, rows_of_b, n = of_b.shape
            k = of_a.shape[-1] // self.matrices if self.image is None else rows_of_b
            batch *= self.matrices
        return Product(
            batch,
            m,
            k,
            n,
            Factor(of_a.layout == NZ, of_a.bytes_each, not rows),
            Factor(of_b.layout == NZ, of_b.bytes_each, not turned_b),
            Result(self.c.layout == NZ, min(items)),
            epilogue,
            self.image,
            self.matrices,
        )

    def _require_shape(self, array: Tensor) -> None:
        """The shape of C, however the batch is written, in C's layout."""
        same = array.shape[-2:] == self.c.shape[-2:] and array.count == self.c.count
        if not same or array.layout != self.c.layout or array.element not in FACTORS:
            raise NoSpace(f"{array} beside a product of {self.c}")

    def _record(self, node: Node) -> Operand | _Whence:
        result = self.graph.arrays[node.result]
        if node.name == "reshape":
            return self._reshaped(node, result)
        if node.name == "broadcast":
            return self._broadcast(node, result)
        record = OPERATORS.get(node.name)
        if record is None or not record.elementwise:
            raise NoSpace(f"{node.name} behind a product")
        self._require_shape(result)
        operands = [self._operand(x) for x in node.operands]
        if not any(isinstance(x, Value) for x in operands):
            raise NoSpace("an operator that needs no product")
        return record.tile(self.program, operands, node.attributes, result.element)

    def _reshaped(self, node: Node, result: Tensor) -> Operand | _Whence:
        operand = self.known[node.values[0]]
        if isinstance(operand, _Whence):
            return _Whence(operand.number, result.shape)
        self._require_shape(result)
        return operand

    def _broadcast(self, node: Node, result: Tensor) -> Operand:
        """A row of C: one for all matrices, or each has its own."""
        if not node.values:
            return self._operand(node.operands[0])
        operand = self.known[node.values[0]]
        if not isinstance(operand, _Whence):
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
        if isinstance(operand, Scalar):
            return operand.value
        found = self.known[operand]
        if not isinstance(found, _Whence):
            return found
        array = self.graph.arrays[found.number]
        if array.shape[-2:] != self.c.shape[-2:]:
            raise NoSpace(f"{array} beside a product of {self.c}")
        self._require_shape(array)
        return self._extra(found.number, row=False, batch=True)

    def _extra(self, number: int, row: bool, batch: bool) -> Value:
        key = number, row
        array = self.graph.arrays[number]
        if array.element not in FACTORS or (row and array.layout != ND):
            raise NoSpace(f"{array} beside a product")
        if row and batch and self.c.shape[-1] % SIDE:
            raise NoSpace("rows that end inside a block, each matrix its own")
        if key not in self.extras:
            value = self.program.input(DTYPE_OF[array.element])
            self.extras[key] = Extra(value, row, batch)
        return self.extras[key].value
