"""join-loads-and-products: has products take their factors from L1.

before:
    "cce.load2d"(%a, %l0a) : (memref<2x4x16x16xf16, strided<[256, 512, 16, 1]>, L1>, .. L0A)
    "cce.load2d"(%b, %l0b) {transpose} : ..
    "cce.mad"(%l0a, %l0b, %c, %init)
after:
    "cce.mad_l1"(%a', %b', %c, %init)
       : (memref<4x2x16x16xf16, strided<[512, 256, 16, 1]>, L1>, ..)

AscendNPU-IR has an operation for parts of products in L1, and none for loads into L0A and L0B. A
load is done again by each product that reads what it loaded, or a part of it; a factor that several
loads made is cut where they meet, and so is the product. Loads of windows of one pixel are loads,
too, and so are windows that make fractals of rows, which come as fractals instead
(`bring_as_fractals`). What was loaded has to be in L1 still: what would overwrite it before the
product comes behind it, if it may. Fractals loaded in rows lie in columns instead
(`lay_in_columns`). Kernels with products of other factors stay as they are.

It comes before `multi-buffer` and `plan-memory`, which let what was loaded be overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.cce.effects import effects_of
from davinci.machine import Machine
from davinci.mlir import Op, arith, ir, operations, symbol_name
from davinci.passes import builder
from davinci.passes.analysis.kernels import kernels, launched_programs
from davinci.passes.analysis.lifetimes import VIEWS, viewed_buffer
from davinci.passes.cce_to_hir.column_major_fractals import lay_in_columns
from davinci.passes.cce_to_hir.loaded_fractals import (
    LOADS,
    BlockOrders,
    LoadedPart,
    see_bytes,
    written,
)
from davinci.passes.cce_to_hir.rows_as_fractals import bring_as_fractals
from davinci.passes.cce_to_hir.whole_fills import fill_in_front
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.units import FRACTAL_SIDE as SIDE

TURNED = ("a_transpose", "b_transpose")
C, INIT = 2, 3
"""Numbers of operands of a product."""


@register_pass
@dataclass(frozen=True)
class JoinLoadsAndProductsPass(Pass):
    """Have products take their factors from L1."""

    NAME = "join-loads-and-products"

    machine: str = option("ascend910b", "machine file that gives what fills of L1 take")

    def run(self, op: Op) -> None:
        found = {symbol_name(kernel): kernel for kernel in kernels(op)}
        launches = launched_programs(op).values()
        for name, kernel in found.items():
            names = next((each for each in launches if name in each), [name])
            join(kernel, [found[each] for each in names], machines.load(self.machine))


def join(kernel: Op, programs: Sequence[Op], machine: Machine) -> None:
    """Joins the products of a kernel with their loads, if all of them can be.

    Args:
        programs: of the launch that it is part of.
    """
    arguments = kernel.regions[0].blocks[0].arguments
    stored = {number for program in programs for number in arguments_written(program)}
    given = [value for number, value in enumerate(arguments) if number not in stored]
    products = operations(kernel, "cce.mad")
    if any(buffer_of(mad.operands[0]).itemsize == 1 for mad in products):
        see_bytes(kernel)
    bring_as_fractals(kernel)
    lines = BlockOrders(kernel, given)
    found = []
    for mad in products:
        a, b = (lines.parts_of(mad, mad.operands[i]) for i in range(2))
        if a is None or b is None:
            return
        found.append((mad, a, b))
    if not all(keep(lines, mad, part) for mad, a, b in found for part in (*a, *b)):
        return
    for mad, a, b in found:
        with ir.InsertionPoint(mad), mad.location:
            replace(mad, a, b)
        mad.erase()
    for load in operations(kernel, *LOADS):
        load.erase()
    lengthen(kernel)
    lay_in_columns(kernel)
    fill_in_front(kernel, machine)
    for op in reversed(operations(kernel, *VIEWS, "memref.alloc")):
        if not list(op.results[0].uses):
            op.erase()


def arguments_written(program: Op) -> set[int]:
    """The numbers of the arguments that a program writes to."""
    arguments = list(program.regions[0].blocks[0].arguments)
    buffers = {buffer for op in operations(program) for buffer in written(op)}
    return {number for number, value in enumerate(arguments) if value in buffers}


def keep(lines: BlockOrders, mad: Op, part: LoadedPart) -> bool:
    """Has what a load reads in L1 stay there until a product: what overwrites it before comes
    behind the product. False if it cannot."""
    found = lines.overwriting(part.load, mad)
    return found is not None and all(lines.sink(op, mad) for op in reversed(found))


def replace(mad: Op, a: Sequence[LoadedPart], b: Sequence[LoadedPart]) -> None:
    """Builds products of the parts of both factors in L1 in front of the product of all of them."""
    *_, c, init = mad.operands
    i1 = ir.IntegerType.get_signless(1)
    goes_on = ir.IntegerAttr.get(i1, 0)
    n1, m1 = buffer_of(c).shape[:2]
    lanes = buffer_of(mad.operands[0]).block
    rows = between(part.rows for part in a)
    inner = between([*(part.columns for part in a), *(part.rows for part in b)])
    columns = between(part.columns for part in b)
    if len(rows) > 1:  # Parts of columns of C are without gaps only one by one.
        columns = [range(i, i + 1) for i in range(n1)]
    for n in columns:
        for m in rows:
            whole = (len(n), len(m)) == (n1, m1)
            into = c if whole else part_of_result(c, n, m)
            for number, k in enumerate(inner):
                left, right = holding(a, m, k), holding(b, k, n)
                # Rows of fractals first in L0A and L0B; in L1 the blocks that are rows of the
                # factor.
                a_transpose, b_transpose = left.load.turned, not right.load.turned
                cce.mad_l1(
                    left.view(m, k, not a_transpose, lanes),
                    right.view(k, n, not b_transpose, lanes),
                    into,
                    arith.ConstantOp(i1, goes_on).result if number else init,
                    a_transpose=a_transpose,
                    b_transpose=b_transpose,
                )


def between(ranges: Iterable[range]) -> list[range]:
    """The ranges between all ends of some ranges."""
    ends = sorted({end for each in ranges for end in (each.start, each.stop)})
    return [range(first, last) for first, last in pairwise(ends)]


def holding(parts: Sequence[LoadedPart], rows: range, columns: range) -> LoadedPart:
    """The part of a factor that these rows and columns are in."""
    return next(p for p in parts if rows.start in p.rows and columns.start in p.columns)


def part_of_result(c: ir.Value, columns: range, rows: range) -> ir.Value:
    """Some columns and rows of fractals of a product's result."""
    starts, sizes = [columns.start, rows.start, 0, 0], [len(columns), len(rows), SIDE, SIDE]
    return builder.subview(c, starts, sizes)


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
