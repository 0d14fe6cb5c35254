"""join-loads-and-products: has products take their factors from L1.

before:
    "cce.load2d"(%a, %l0a) : (memref<2x4x16x16xf16, strided<[256, 512, 16, 1]>, L1>, .. L0A)
    "cce.load2d"(%b, %l0b) {transpose} : ..
    "cce.mad"(%l0a, %l0b, %c, %init)
after:
    "cce.mad_l1"(%a', %b', %c, %init)
       : (memref<4x2x16x16xf16, strided<[512, 256, 16, 1]>, L1>, ..)

AscendNPU-IR has an operation for parts of products in L1, and none for loads into L0A and L0B. A
load is done again by each product that reads what it loaded. That needs what was loaded to be in L1
still, so nothing may write to it between the load and the product, which are in one block or the
product deeper in it; and what a product reads to be one load's. Products of other factors stay as
they are.

It comes before `multi-buffer` and `plan-memory`, which let what was loaded be overwritten.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.cce.effects import effects_of
from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.analysis.kernels import kernels
from davinci.passes.analysis.lifetimes import VIEWS
from davinci.passes.pipeline.base import Pass, register_pass

TURNED = ("a_transpose", "b_transpose")
C, INIT = 2, 3
"""Numbers of operands of a product."""


@register_pass
@dataclass(frozen=True)
class JoinLoadsAndProductsPass(Pass):
    """Have products take their factors from L1."""

    NAME = "join-loads-and-products"

    def run(self, op: Op) -> None:
        for kernel in kernels(op):
            join(kernel)


def join(kernel: Op) -> None:
    """Joins the products of a kernel with their loads, if all of them can be."""
    products, lines = operations(kernel, "cce.mad"), BlockOrders(kernel)
    found = [[lines.load_of(mad, mad.operands[i]) for i in range(2)] for mad in products]
    pairs = [(a, b) for a, b in found if a is not None and b is not None]
    if len(pairs) < len(products):
        return
    for mad, (a, b) in zip(products, pairs, strict=True):
        with ir.InsertionPoint(mad), mad.location:
            replace(mad, a, b)
        mad.erase()
    for load in operations(kernel, "cce.load2d"):
        load.erase()
    lengthen(kernel)
    for op in reversed(operations(kernel, *VIEWS, "memref.alloc")):
        if not list(op.results[0].uses):
            op.erase()


def replace(mad: Op, a: Op, b: Op) -> None:
    """Builds the product of what two loads load in front of the product of what they loaded."""
    turned_a, turned_b = (bool(attribute(load, "transpose", False)) for load in (a, b))
    left, right, into = a.operands[0], b.operands[0], list(mad.operands)[2:]
    # Rows of fractals first in L0A and L0B; in L1 the blocks that are rows of the factor.
    if not turned_a:
        left = swapped(left)
    if turned_b:
        right = swapped(right)
    a_transpose, b_transpose = turned_a, not turned_b
    cce.mad_l1(left, right, *into, a_transpose=a_transpose, b_transpose=b_transpose)


def swapped(value: ir.Value) -> ir.Value:
    """A view of fractals with its two outer dimensions the other way round."""
    view, owner = buffer_of(value), value.owner
    (first, second, *others), (one, two, *steps) = view.shape, view.strides
    assert not isinstance(owner, ir.Block), "a view of a buffer"
    offset = ir.MemRefType(value.type).get_strides_and_offset()[1]
    source = owner.operands[0]
    return builder.restride(source, [second, first, *others], [two, one, *steps], offset)


class BlockOrders:
    """The operations of each block of a kernel in their order."""

    def __init__(self, kernel: Op) -> None:
        self._lines: dict[ir.Block, list[ir.Operation]] = {}
        self._places: dict[ir.Operation, int] = {}
        for op in operations(kernel):
            for region in op.regions:
                for block in region:
                    line = [view.operation for view in block.operations]
                    self._lines[block] = line
                    self._places |= {each: number for number, each in enumerate(line)}

    def load_of(self, mad: ir.Operation, factor: ir.Value) -> ir.Operation | None:
        """The load whose result a product reads, None if it cannot be done again there."""
        for use in factor.uses:
            load = use.owner.operation
            if load.name == "cce.load2d" and self._holds(load, mad, factor):
                return load
        return None

    def _holds(self, load: ir.Operation, mad: ir.Operation, factor: ir.Value) -> bool:
        """Whether what a load reads and writes is the same at the product."""
        source = load.operands[0]
        between = self._between(load, mad)
        if between is None or not plain_view(source):
            return False
        touched = {viewed_buffer(factor), viewed_buffer(source)}
        written = [found.writes for op in between if (found := effects_of(op)) is not None]
        return not any(viewed_buffer(value) in touched for values in written for value in values)

    def _between(self, load: ir.Operation, mad: ir.Operation) -> list[ir.Operation] | None:
        """What may run between a load and a product in the same block or deeper in it, None if the
        product is elsewhere or in front of it."""
        around = mad
        while around.block != load.block:
            parent = around.parent
            if parent is None or parent.operation.name == "func.func":
                return None
            around = parent.operation
        first, last = self._places[load], self._places[around]
        if last < first:
            return None
        line = self._lines[load.block][first + 1 : last]
        inside = [] if around == mad else operations(around)
        return [op for each in line for op in operations(each)] + inside


@dataclass(frozen=True)
class PartInL1:
    """A part of a factor in L1.

    Attributes:
        source: the buffer.
        view: of it.
        k: the dimension of the blocks of k.
    """

    source: ir.Value
    view: BufferView
    k: int

    @staticmethod
    def of(product: Op, number: int) -> PartInL1:
        """The left or right factor of a product."""
        value = product.operands[number]
        turned = bool(attribute(product, TURNED[number], False))
        return PartInL1(value.owner.operands[0], buffer_of(value), int(turned != bool(number)))

    def goes_on(self, other: PartInL1) -> bool:
        """Whether another part begins where this one ends along k."""
        mine, theirs = self.view, other.view
        places = mine.offset, theirs.offset
        if self.source != other.source or self.k != other.k or None in places:
            return False
        across = mine.shape[1 - self.k] == theirs.shape[1 - self.k]
        end = (mine.offset or 0) + mine.shape[self.k] * mine.strides[self.k]
        return across and mine.strides == theirs.strides and end == theirs.offset

    def with_more(self, blocks: int) -> ir.Value:
        """The part with so many blocks of k."""
        shape = list(self.view.shape)
        shape[self.k] = blocks
        return builder.restride(self.source, shape, self.view.strides, self.view.offset or 0)


def lengthen(kernel: Op) -> None:
    """Makes one product of two in a row that go on along k, at the place of the second one."""
    blocks = {op.block for op in operations(kernel, "cce.mad_l1")}
    for block in blocks:
        open_: ir.Operation | None = None
        for op in [view.operation for view in block.operations]:
            if op.name == "cce.mad_l1":
                if open_ is not None and follows(open_, op):
                    take_in(open_, op)
                open_ = op
            elif open_ is not None and is_needed(open_, op):
                open_ = None


def is_needed(product: Op, op: Op) -> bool:
    """Whether an operation touches what a product leaves or overwrites what it reads, so that the
    product cannot come behind it."""
    a, b, c = (viewed_buffer(value) for value in list(product.operands)[:3])
    effects = [found for inner in operations(op) if (found := effects_of(inner)) is not None]
    written = {viewed_buffer(value) for found in effects for value in found.writes}
    read = {viewed_buffer(value) for found in effects for value in found.reads}
    return bool(written & {a, b, c}) or c in read


def follows(first: Op, second: Op) -> bool:
    """Whether a product adds to what another one leaves, and their factors go on along k."""
    starts = second.operands[INIT].owner
    if (
        first.operands[C] != second.operands[C]
        or isinstance(starts, ir.Block)
        or starts.name != "arith.constant"
    ):
        return False
    if ir.IntegerAttr(starts.attributes["value"]).value:
        return False
    pairs = [(PartInL1.of(first, i), PartInL1.of(second, i)) for i in range(2)]
    return all(one.goes_on(other) for one, other in pairs)


def take_in(first: ir.Operation, second: ir.Operation) -> None:
    """Has the second product do what both do."""
    with ir.InsertionPoint(second), second.location:
        for number in range(2):
            part, more = PartInL1.of(first, number), PartInL1.of(second, number)
            blocks = part.view.shape[part.k] + more.view.shape[more.k]
            second.operands[number] = part.with_more(blocks)
    second.operands[INIT] = first.operands[INIT]
    first.erase()


def plain_view(value: ir.Value) -> bool:
    """Whether a value is a `memref.reinterpret_cast`, with a constant place, of what another
    operation makes."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "memref.reinterpret_cast":
        return False
    return len(owner.operands) == 1 and not isinstance(owner.operands[0].owner, ir.Block)


def viewed_buffer(value: ir.Value) -> ir.Value:
    """The buffer that a view is one of."""
    while not isinstance(value.owner, ir.Block) and value.owner.name in VIEWS:
        value = value.owner.operands[0]
    return value
