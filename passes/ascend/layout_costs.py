"""What layouts cost: changes of them, padding, movements in rows; and products, merged or not.

Costs are sixteenths of a cycle of the machine, which makes a difference of a few bytes count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.operators import Tensor
from davinci.operators.layouts import is_reshape_view, slice_offset
from davinci.operators.tensors import ND, NZ, width_of
from davinci.passes.analysis.min_cut import NEVER
from davinci.passes.ascend.tensor_ops import CONVOLUTION, OF_WINDOWS, full_value
from davinci.units import BLOCK_BYTES, FRACTAL_SIDE, ceil_div

UNIT = 16
"""Parts of a cycle."""

PIECE = 128
"""Rows and columns of a result that a core computes at a time: about what L0C holds twice."""

CHANGED_BITS = (8, 16, 32)
"""Sizes of elements that kernels change the layout of."""

ROW_PASSES = 2
"""How much longer a product takes for an operand in rows, in times its bytes pass the memory;
measured on 512x768x768 and 1024x1024x1024."""

FIRST_ROWS_CYCLES = 500
"""How much longer it takes besides, whatever its size: its cubes wait for the first rows; measured
on 128x768x3072 and 512x2304x768."""


@dataclass(frozen=True)
class LayoutCosts:
    """Prices of a machine.

    Attributes:
        launch: of a launch.
        bytes_per_cycle: that all cores move.
        cores: that share a product.
        macs_per_cycle: of the cube of one.
        rows_of_bytes: whether rows of bytes become fractals on their way to L1.
    """

    launch: int
    bytes_per_cycle: int
    cores: int
    macs_per_cycle: int
    rows_of_bytes: bool

    @staticmethod
    def of(machine: Machine) -> LayoutCosts:
        cube = machine.cube.m * machine.cube.n * machine.cube.k_b16
        rate = int(machine.gm.read_bytes_per_cycle * machine.cores)
        launch, apart = machine.launch_cycles * UNIT, machine.cubes_apart
        return LayoutCosts(launch, rate, machine.cores, cube, rows_of_bytes=apart)

    def moved(self, size_bytes: int) -> int:
        return ceil_div(size_bytes * UNIT, self.bytes_per_cycle)

    def relayout(self, value: Tensor) -> int:
        """From rows to nz or back: a kernel that reads one array and writes the other."""
        rows, nz = replace(value, layout=ND), replace(value, layout=NZ)
        if value.rank < 2 or value.count == 0 or is_reshape_view(rows, nz):
            return 0
        if width_of(value.element) not in CHANGED_BITS:
            return NEVER
        return self.launch + self.moved(stored_bytes(rows) + stored_bytes(nz))

    def product(self, count: int, m: int, n: int, k: int) -> int:
        """`count` products of f16, launched together: the slower of the cubes and the memory.

        Cores take pieces of the result of `PIECE` rows and columns in turn.
        """
        pieces = count * ceil_div(m, PIECE) * ceil_div(n, PIECE)
        macs = min(m, PIECE) * min(n, PIECE) * k * ceil_div(pieces, self.cores)
        factors, results = count * (m * k + k * n), count * m * n
        moved = self.moved(2 * factors + 4 * results)
        return self.launch + max(ceil_div(macs * UNIT, self.macs_per_cycle), moved)

    def padding(self, value: Tensor) -> int:
        """What an operator in nz moves more than one in rows: its result is read and written."""
        rows, nz = replace(value, layout=ND), replace(value, layout=NZ)
        return self.moved(2 * (stored_bytes(nz) - stored_bytes(rows)))

    def of_rows(self, product: Op, value: ir.Value) -> int:
        """An operand or the result of a product in rows: changed by its kernel, on its way.

        Several cores bring the same part of an operand; the result leaves but once. Windows are
        taken of fractals only, and groups of channels and reductions of windows make fractals.
        """
        kind = tensor_of(value.type)
        if product.name in OF_WINDOWS and not gives_rows(product, value):
            return NEVER
        widths = {width_of(tensor_of(v.type).element) for v in product.operands}
        if value == product.results[0] and widths in ({16}, {8}, {32}):
            return self.moved(stored_bytes(kind))
        stored = all(full_value(v) is None for v in product.operands)
        if widths != {16} and not (widths == {8} and stored and self.rows_of_bytes):
            return NEVER
        return FIRST_ROWS_CYCLES * UNIT + self.moved(ROW_PASSES * stored_bytes(kind))

    def movement(self, op: Op) -> int:
        """A reshape, transpose or slice in rows, which may be a view."""
        operand, result = tensor_of(op.operands[0].type), tensor_of(op.results[0].type)
        if op.name == "ascend.reshape" or result.count == 0:
            return 0
        if op.name == "ascend.slice":
            starts, strides = attribute(op, "starts"), attribute(op, "strides")
            offset = slice_offset(operand, result, starts, strides)
            if offset is not None and offset * operand.bytes_each % BLOCK_BYTES == 0:
                return 0
        return self.launch + self.moved(2 * stored_bytes(result))


def gives_rows(product: Op, value: ir.Value) -> bool:
    """Whether a value is the result of a convolution that leaves in rows where these pay: one of a
    single group of channels, whose fractals would have padding that only kernels of products see
    to. Whoever moves whole fractals reads them as they are."""
    if product.name != CONVOLUTION or value != product.results[0]:
        return False
    groups = tensor_of(product.operands[1].type).shape[0]
    return groups == 1 and tensor_of(value.type).shape[-1] % FRACTAL_SIDE > 0


def stored_bytes(value: Tensor) -> int:
    return math.prod(value.stored_shape) * value.bytes_each
