"""A group of operators around one product, as a `Product` with an epilogue.

    %x = cast %a                      A comes in f32 and is rounded on its way
    %c = matmul %x, %w
    %d = broadcast %bias; %e = add %c, %d; %f = add %e, %residual; %g = tanh %f      the epilogue

The epilogue's operators are read by `followers`. `NoSpace` says why a group is none of this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.machine.views import multiplies_f32
from davinci.operators import OPERATORS
from davinci.operators.conv import geometry
from davinci.operators.products import PRODUCTS, TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import ND, NZ, Tensor, lanes
from davinci.operators.vector_program import DTYPE_OF, Operand, Value, VectorProgram, joined
from davinci.schedule.followers import BYTES, FACTORS, Followers, Whence
from davinci.schedule.graph import Graph, Node
from davinci.schedule.products.behind import Behind, behind_of
from davinci.schedule.products.dense_rows import WORD_BYTES
from davinci.schedule.products.epilogue import (
    DEQUANTIZE,
    SCALE_SUMS,
    SCALE_SUMS_OF_RELU,
    Epilogue,
    plain,
)
from davinci.schedule.products.extras import WORDS_BYTES, Extra, FixpipeWords, begun_with_row
from davinci.schedule.products.image import Image
from davinci.schedule.products.one_row import faster_way_round
from davinci.schedule.products.product import Product, ProductResult
from davinci.schedule.products.product import ProductOperand as Factor
from davinci.schedule.products.rewrites import BYTE, only_user
from davinci.schedule.products.row_work import RowWork
from davinci.schedule.vector.space import NoSpace
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

CONVOLUTION = "conv"

SINGLES = "f32"
"""Factors that some cubes take as they are."""

COLUMN_ROWS = 64
"""Rows of C from which on a row, or a matrix, is better added by the cube, where that saves the
vector unit sums of f32."""

SHARE_OF_WORDS = 0.25
"""The part of L1 that words by which fixpipe scales columns may take."""

SCALED = (SCALE_SUMS, SCALE_SUMS_OF_RELU)

LEFT_TO_OTHERS = "left_to_others"
"""A step that stands for an operator that vector cores beside the cube do."""

LEFT_ALONG_ROWS = frozenset({"broadcast", "reduce", "reshape"})
"""Operators, besides elementwise ones, that are left to them."""

NARROW, SHARE_OF_VECTOR = 4, 0.5
"""Fractals of columns up to which tiles are high, so that what the cube would multiply them with
takes half of L0A, and the part of its time in which the vector unit may as well add instead."""


@dataclass(frozen=True)
class ProductGroup:
    """A product, and the group's values that it takes and makes, by number.

    Attributes:
        factors: A and B.
        extras: what the epilogue combines C with, in its order.
        outputs: what it makes, in its order.
        members: operators of the kernel: the product, and those on the way of A and of B.
        behind: what other cores do with its result; None if nothing follows, or the same ones do.
    """

    product: Product
    factors: tuple[int, int]
    extras: tuple[int, ...]
    outputs: tuple[int, ...]
    members: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] = ((), (), ())
    behind: Behind | None = None


def is_product(node: Node) -> bool:
    """Whether the cube computes it."""
    return node.name in PRODUCTS or node.name == CONVOLUTION


def read_group(graph: Graph, machine: Machine | None = None) -> ProductGroup:
    """The product of a group.

    Args:
        machine: the cube adds no rows and residuals where its L0A or L0B has no room for them
            beside the factors; the vector unit does. None where only the group matters.

    Raises:
        NoSpace: it is not one product with what can be done on its way in and out.
    """
    products = [node for node in graph.nodes if is_product(node)]
    if len(products) != 1:
        raise NoSpace(f"{len(products)} products")
    group = _ProductReader(graph, products[0], machine is not None).read(machine)
    if machine is None:
        return group
    return replace(group, product=faster_way_round(group.product, machine))


def image_of(graph: Graph, node: Node) -> Image | None:
    """The image of a convolution; None if windows are the pixels that there are.

    Raises:
        NoSpace: it does not lie in fractals of f16 or bytes.
    """
    x, w = (graph.arrays[value] for value in node.values)
    if x.layout != NZ or w.layout != NZ or x.element not in ("f16", BYTES):
        raise NoSpace(f"a convolution of {x} with {w}")
    shape, channels = geometry(node.attributes), ceil_div(x.shape[-1], w.shape[0])
    if shape.pointwise:
        return None
    return Image(shape, ceil_div(channels, lanes(x.element)), node.attributes.get("padding", 0))


def _has_room(adding: Epilogue, machine: Machine) -> bool:
    """Whether L0A and L0B hold what the cube adds to the smallest tile, and its factors."""
    columns = adding.columns_together
    return all(
        adding.taken(memory, 1, columns) + size <= machine.buffer(memory).bytes // FRACTAL_BYTES
        for memory, size in (("L0A", 1), ("L0B", columns))
    )


class _ProductReader(Followers):
    """Walks the operators of a group in order."""

    def __init__(self, graph: Graph, node: Node, rows: bool) -> None:
        """Args:
        rows: whether rows of C may be computed on as in a kernel of the vector unit, by cores
            beside the cube or by the same core.
        """
        self.rows = rows
        if len(node.values) != 2:
            raise NoSpace("a number as an operand of a product")
        # A convolution of groups is a product for each, with its columns of the result.
        matrices = graph.arrays[node.values[1]].shape[0] if node.name == CONVOLUTION else 0
        super().__init__(graph, node, matrices)
        self.image = image_of(graph, node) if node.name == CONVOLUTION else None
        self.casts_of: dict[int, tuple[int, ...]] = {}
        if self.matrices > 1 and self.c.layout != NZ:
            raise NoSpace("groups of a convolution to rows")

    def read(self, machine: Machine | None) -> ProductGroup:
        """The product of the group, with what is done to its factors and to its result.

        Args:
            machine: None of any: then everything that follows is part of the product's kernel.

        Raises:
            NoSpace: a kernel of a product does not compute the group.
        """
        before = True
        casts: dict[int, int] = {}
        for node in self.graph.nodes:
            if node is self.node:
                before = False
                self.known[node.result] = self.sums
            elif before and node.result in self.node.values:
                casts[node.result] = self._cast(node)
                self.casts_of[node.result] = node.members
            else:
                self.known[node.result] = self.record(node)
        if self.node.name == CONVOLUTION and casts:
            raise NoSpace("an image that is rounded on its way")
        factors = tuple(casts.get(v, v) for v in self.node.values)
        if any(v not in self.graph.inputs for v in factors):
            raise NoSpace("operands of a product that are computed in its group")
        outputs = self.outputs()
        nz = self.c.layout == NZ
        self._require_turned(factors, machine)
        users = [step for step in self.program.steps if self.sums in step.sources]
        if any(step.name == DEQUANTIZE for step in users) and (
            len(users) > 1 or self.sums in self.program.outputs
        ):
            raise NoSpace("sums that are scaled on their way, and needed as they are")
        if machine is not None and machine.cubes_apart:
            return self._apart(factors, outputs, machine)
        if machine is not None and self._left_to_rows(outputs):
            return self._in_rows(factors, machine)
        extras = list(self.extras.values())
        epilogue = Epilogue.of(self.program, self.sums, extras, nz)
        product = self._product(factors[0], factors[1], epilogue)
        narrow, idle = product.fractals.n <= NARROW, product.fractals.k * SHARE_OF_VECTOR
        if product.m >= COLUMN_ROWS and not (narrow and idle >= epilogue.cycles_each):
            adding = Epilogue.of(self.program, self.sums, extras, nz, cube=True)
            if machine is None or _has_room(adding, machine):
                product = replace(product, epilogue=adding)
        product = replace(product, epilogue=product.end.rectify())
        numbers = tuple(number for number, _ in self.extras)
        own = self.node.members
        ways = [joined(own, self.casts_of.get(value, ())) for value in self.node.values]
        members = (own, ways[0], ways[1])
        return ProductGroup(product, (factors[0], factors[1]), numbers, outputs, members)

    def record(self, node: Node) -> Operand | Whence:
        """What a node makes; where rows of C are computed on, that takes other arrays in than rows
        and matrices of C's shape, too, and reduces rows of C."""
        try:
            return super().record(node)
        except NoSpace:
            elementwise = node.name in OPERATORS and OPERATORS[node.name].elementwise
            if not self.rows or not (elementwise or node.name in LEFT_ALONG_ROWS):
                raise
        result = self.graph.arrays[node.result]
        known = [self.known[value] for value in node.values]
        sources = [value for value in known if isinstance(value, Value)]
        if result.layout != ND or result.element not in FACTORS:
            raise NoSpace(f"{result} of {self.c}")
        if not sources:
            return self.program.input(DTYPE_OF[result.element])
        return self.program.step(LEFT_TO_OTHERS, sources, DTYPE_OF[result.element])

    def _require_output(self, array: Tensor) -> None:
        """Where rows of C are computed on, a number for each of them may leave as well, which
        `behind_of` sees to."""
        if not self.rows or array.count == self.c.count:
            super()._require_output(array)

    def _left_to_rows(self, outputs: Sequence[int]) -> bool:
        """Whether some of what follows the product is none of an epilogue."""
        counts = [self.graph.arrays[number].count for number in outputs]
        steps = self.program.steps
        return any(step.name == LEFT_TO_OTHERS for step in steps) or min(counts) < self.c.count

    def _in_rows(self, factors: tuple[int, ...], machine: Machine) -> ProductGroup:
        """The group with all that follows its product done to whole rows of C, which are in UB."""
        behind = behind_of(self.graph, self.node.result)
        kept = [number for number in self.graph.outputs if number == behind.made]
        if self.image is not None:
            raise NoSpace("rows of windows of an image")
        end = plain(DTYPE_OF[self.c.element], nz=True)
        product = self._product(factors[0], factors[1], end)
        if not (product.batch and product.m and product.k and product.n):
            raise NoSpace("rows of an empty product")
        product = replace(
            product,
            c=replace(product.c, nz=True),
            whole_rows=True,
            work=RowWork(behind.graph.keyed(), machine, product.m, product.n, bool(kept)),
        )
        own = self.node.members
        ways = [joined(own, self.casts_of.get(value, ())) for value in self.node.values]
        made = [number for number in self.graph.outputs if number != behind.made]
        outputs, pair = (*made, *kept), (factors[0], factors[1])
        return ProductGroup(product, pair, behind.inputs, outputs, (own, ways[0], ways[1]))

    def _apart(
        self, factors: tuple[int, ...], outputs: tuple[int, ...], machine: Machine
    ) -> ProductGroup:
        """The group on cores without a vector unit: sums begin with a row from the bias table, if
        that is added to them first, the cube adds a matrix in fractals to them, and they leave as
        they are, or rounded, negative ones perhaps as 0. What else follows is left to vector cores
        beside them."""
        program, extras, start = self.program, list(self.extras.values()), self.node.result
        table = self._table(machine)
        begun = begun_with_row(program, self.sums, extras, table) if table else None
        if begun is not None:
            program, extras, made = begun
            start = next(number for number, value in self.known.items() if value == made)
        extras = self._with_words(program, extras, machine)
        rows = [extra for extra in extras if extra.table or extra.words]
        end = self._end_apart(program, extras, machine)
        if end.words is not None:
            start = next(number for number, value in self.known.items() if value == end.sums)
        taken_in = [extra for extra in end.extras if extra.table or extra.words or extra.matrix]
        alone = len(taken_in) == len(extras) and end.unmoved.outputs == [end.sums]
        product, behind = self._product(factors[0], factors[1], end), None
        if end.unmoved.steps or not alone:
            sizes = product.batch, product.m, product.k, product.n
            if product.image is not None or not all(sizes):
                raise NoSpace("what follows a product on a core without a vector unit")
            behind = behind_of(self.graph, start)
            element = DTYPE_OF[self.graph.arrays[start].element]
            rectified = end.words is not None and end.rectified
            end = replace(plain(element, nz=False, extras=rows), rectified=rectified)
            result = ProductResult(nz=False, itemsize=DTYPES[element].itemsize)
            product = replace(product, c=result, whole_rows=behind.whole_rows)
            taken_in = rows
        if (product.a.itemsize, product.b.itemsize) != (2, 2):
            raise NoSpace("factors that become others on a core without a vector unit")
        apart = replace(end, program=end.unmoved, extras=tuple(taken_in))
        product = replace(
            product,
            a=replace(product.a, direct=True),
            b=replace(product.b, direct=True),
            epilogue=apart,
        )
        own = self.node.members
        values = [extra.value for extra in taken_in]
        pairs = zip(self.extras, extras, strict=True)
        numbers = tuple(number for (number, _), extra in pairs if extra.value in values)
        pair = (factors[0], factors[1])
        return ProductGroup(product, pair, numbers, outputs, (own, own, own), behind)

    def _end_apart(
        self, program: VectorProgram, extras: Sequence[Extra], machine: Machine
    ) -> Epilogue:
        """What is done to sums on cores without a vector unit, or is left of it: the cube adds a
        matrix; a row it adds only to what it begins with."""
        nz, beside = self.c.layout == NZ, any(extra.beside for extra in extras)
        adding = Epilogue.of(program, self.sums, extras, nz, cube=not beside, unrounded=True)
        adding = adding.rectify(rows=True)
        if not adding.matrices or _has_room(adding, machine):
            return adding
        return Epilogue.of(program, self.sums, extras, nz).rectify(rows=True)

    def _with_words(
        self, program: VectorProgram, extras: Sequence[Extra], machine: Machine
    ) -> list[Extra]:
        """What sums are combined with, where words by which they are scaled have their room: L1
        holds all of them, the buffer of fixpipe those of a tile.

        Raises:
            NoSpace: fixpipe does not scale so, sums are needed as they are, too, or L1 has no room.
        """
        step = next((step for step in program.steps if step.name in SCALED), None)
        if step is None:
            return list(extras)
        if only_user(self.sums, program) is not step:
            raise NoSpace("sums that are scaled on their way, and needed as they are")
        made = "b8" if step.result.dtype == BYTE else step.result.dtype
        if f"{self.sums.dtype}2{made}v" not in machine.intrinsics.get("fixpipe", ()):
            raise NoSpace(f"{step.name} on {machine.name}, whose fixpipe does not scale")
        words = FixpipeWords(
            ceil_div(self.c.shape[-1], SIDE), machine.buffer("FB").bytes // WORDS_BYTES
        )
        if words.columns * WORDS_BYTES > machine.buffer("L1").bytes * SHARE_OF_WORDS:
            raise NoSpace(f"scales of {self.c.shape[-1]} columns in L1")
        return [
            replace(extra, scale=False, words=words, members=step.members) if extra.scale else extra
            for extra in extras
        ]

    def _table(self, machine: Machine) -> int:
        """Fractals of a row of sums for which the bias table has room; 0 of a machine without one,
        or whose mads take none of these types from it."""
        factor = DTYPE_OF[self.graph.arrays[self.node.values[0]].element]
        types, sums = machine.intrinsics.get("mad_bias", ()), self.sums.dtype
        if f"{factor}2{sums}" not in types:
            return 0
        return machine.buffer("BT").bytes // (SIDE * DTYPES[sums].itemsize)

    def _require_turned(self, factors: Sequence[int], machine: Machine | None) -> None:
        """Bytes lie in rows or fractals along which k runs, and so do f32 that are multiplied as
        they are, in rows: no load turns fractals of them. Rows become fractals on their way to L1
        only where cubes have cores of their own."""
        values, flags = [self.graph.arrays[v] for v in factors], self.node.attributes
        singles = values[0].element == SINGLES and factors[0] in self.node.values
        if singles and not (machine is None or multiplies_f32(machine)):
            raise NoSpace(f"a product of {values[0]}")
        if not singles and values[0].element != BYTES:
            return
        turned = flags.get(TRANSPOSE_A, False), flags.get(TRANSPOSE_B, False)
        apart = machine is not None and machine.cubes_apart
        in_nz = all(value.layout == NZ for value in values)
        words = singles or all(
            value.layout == NZ or value.shape[-1] % BLOCK_BYTES == 0 for value in values
        )
        if turned != (False, True) or not (in_nz or (apart and words)):
            raise NoSpace(f"bytes in {values[0]} and {values[1]}")

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

    def _product(self, a: int, b: int, epilogue: Epilogue) -> Product:
        """The product of two inputs by number; of bytes, of words of two along k."""
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
            if turned_b:
                rows_of_b, n = n, rows_of_b
            k = rows_of_b if self.matrices > 1 or self.image is not None else k
            batch *= self.matrices
        each_a, each_b, factor = of_a.bytes_each, of_b.bytes_each, "f16"
        if of_a.element == BYTES:
            k, each_a, each_b, factor = ceil_div(k, WORD_BYTES), WORD_BYTES, WORD_BYTES, "s8"
        elif of_a.element == SINGLES and a in self.node.values:
            k, each_a, each_b, factor = (
                k * of_a.bytes_each // WORD_BYTES,
                WORD_BYTES,
                WORD_BYTES,
                SINGLES,
            )
        return Product(
            batch,
            m,
            k,
            n,
            Factor(of_a.layout == NZ, each_a, not rows),
            Factor(of_b.layout == NZ, each_b, not turned_b),
            ProductResult(self.c.layout == NZ, min(items)),
            epilogue,
            self.image,
            self.matrices,
            factor,
        )
