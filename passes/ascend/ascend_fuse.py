"""ascend-fuse: makes kernels of groups of operators.

before:
    %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<64x512xf32>) -> ..
    %b = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<64xf32>) -> tensor<64x512xf32>
    %y = "ascend.sub"(%x, %b) : (...) -> tensor<64x512xf32>
after:
    %y = call @reduce_sub_f32_64x512(%x) : (tensor<64x512xf32>) -> tensor<64x512xf32>
    func.func private @reduce_sub_f32_64x512(tensor<64x512xf32>) -> tensor<64x512xf32>
    module @kernels {
      func.func @reduce_sub_f32_64x512(%a: memref<64x512xf32>, %r: memref<64x512xf32>)
          attributes {ascend.kernel, ascend.op = "reduce_sub", ascend.unit = "vector", ..} {
        %x = bufferization.to_tensor %a restrict : ..
        (the operators)
        bufferization.materialize_in_destination %y in restrict writable %r : ..
      }
    }

Attention is a group (`attention_grouping`): no matrix of scores reaches GM.
Products take elementwise operators that follow them (`product_grouping`), and the cube adds the
rows of what lies in fractals where that takes less time (`sums_by_cube`). Other operators join the
group of what they read wherever the vector unit can compute both in one kernel
(`davinci.schedule.vector.schedule`), no cycle of kernels comes out and the estimate says that it
takes no longer; grown groups are weighed with those that they read once more. What only lives
inside a group never sees GM. An operator alone is a group of one.
Broadcasts, reshapes and slices are made anew for each of their users, so that they end in the group
that needs them (`group_preparation`). Values of which windows overlap are computed once, by a
kernel of their own, where that takes less time than for each window (`overlapping_windows`). Equal
groups are one kernel.

Chains of operators that only move elements are one kernel where putting the result together at once
(`davinci.schedule.moves.choice`) takes no longer.

Groups that do not wait for each other share a launch, side by side on different cores
(`davinci.schedule.side_by_side`), where that takes no longer than one after the other; but not in
a module whose chains are cut for a limit of memory (`ascend-cut-chains`): parts are computed one
after the other there, unless `ascend-bufferize` finds room for several.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of
from davinci.errors import shipped
from davinci.machine import Machine
from davinci.machine.views import multiplies_f32
from davinci.mlir import Op, ir
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.ascend_dequantize_sums import expand
from davinci.passes.ascend.ascend_fold_constants import fold_padded_rows
from davinci.passes.ascend.ascend_legalize_layouts import has_layouts, in_rows
from davinci.passes.ascend.attention_bands import expand_bands
from davinci.passes.ascend.attention_grouping import attention_groups
from davinci.passes.ascend.fractal_padding import cleared_behind
from davinci.passes.ascend.group_judge import judge_of
from davinci.passes.ascend.group_outline import GroupOutliner
from davinci.passes.ascend.group_preparation import (
    cast_before_broadcasts,
    mark_exact,
    round_before_limits,
    round_behind_reshapes,
    sink,
)
from davinci.passes.ascend.grouping import FusedGroup, Grouping
from davinci.passes.ascend.layout_support import takes_nz
from davinci.passes.ascend.memory_limit import are_cut
from davinci.passes.ascend.product_grouping import product_groups
from davinci.passes.ascend.rows_of_fractals import rows_beside_groups, rows_beside_zeros
from davinci.passes.ascend.sums_by_cube import sums_by_cube
from davinci.passes.ascend.tensor_ops import (
    HALF,
    ON_CUBE,
    PRODUCTS,
    erase_unused,
    fold_numbers,
    is_elementwise,
    merge_equal,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, fail, option, register_pass
from davinci.passes.pipeline.pipelines import FUSION, REWRITES_HELP
from davinci.passes.pipeline.rewrites import chosen, expected
from davinci.schedule.followers import BYTES


@register_pass
@dataclass(frozen=True)
class AscendFusePass(Pass):
    """Make kernels of groups of operators."""

    NAME = "ascend-fuse"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")
    fusion: str = option("all", "which operators share a kernel", FUSION)
    rewrites: str = option("all", REWRITES_HELP, expected=expected)

    def run(self, op: Op) -> None:
        chip = machines.load(self.machine)
        if chip.split:
            refuse_cube(op, chip)
        fusing = _Fusing(op, chip, self.cores, self.fusion == "all", self.rewrites)
        for function in tensor_functions(op):
            fusing.block(function.regions[0].blocks[0])
        for name, count in fusing.counts.items():
            note(op, name, count)


class _Fusing:
    """Makes kernels of the operators of blocks.

    Args:
        chip: the machine as it is; kernels without work for the cube see its vector cores.
        cores: most of its cores that a kernel may use; 0: all.
        together: whether operators share kernels.
        rewrites: those that are wanted, as `rewrites.chosen` reads them.

    Attributes:
        counts: how often each rewrite was applied.
    """

    def __init__(self, root: Op, chip: Machine, cores: int, together: bool, rewrites: str) -> None:
        self.root, self.chip, self.together = root, chip, together
        self.chip_cores = cores or chip.cores
        self.machine = machines.for_vector(chip)
        self.cores = machines.vector_cores_for(chip, cores)
        self.names = chosen(rewrites) if together else frozenset[str]()
        self.counts = Counter[str]()

    def block(self, block: ir.Block) -> None:
        """Outlines all operators of a block: attention first, then products with what follows them,
        then all others."""
        self._prepare(block)
        outliner = GroupOutliner(self.root)
        self._outline_products(block, outliner)
        expand(block)
        expand_bands(block)
        rows_of_what_is_left(block)
        fold_numbers(block)  # what was expanded may repeat one
        # This also brings what was moved into an order in which it can run.
        beside, judge = self.together and not are_cut(self.root), judge_of(self.machine, self.cores)
        for group in Grouping(block, judge, self.together, beside).groups():
            outliner.outline(group)
        merge_equal(block)

    def _prepare(self, block: ir.Block) -> None:
        """Brings operators to the places and forms in which kernels take them."""
        fold_numbers(block)
        mark_exact(block)
        if self.together:
            round_behind_reshapes(block)
            cast_before_broadcasts(block)
            if self.chip.split:
                round_before_limits(block)
        else:
            expand(block)
            expand_bands(block)
        sink(block)
        if self.together:
            rows_beside_groups(block)

    def _outline_products(self, block: ir.Block, outliner: GroupOutliner) -> None:
        """Outlines attention, products, and sums that products compute."""
        split, behind = self.chip.split, "product-epilogues" in self.names
        if "attention" in self.names:
            of_both = (self.chip, self.chip_cores) if split else (self.machine, self.cores)
            for ops in attention_groups(block, *of_both):
                outliner.outline(FusedGroup(ops))
                self.counts["attention"] += 1
        for ops in product_groups(block, behind, self.chip, self.chip_cores):
            outliner.outline(FusedGroup(ops))
            self.counts["product-epilogues"] += len(ops) > 1
        if self.together:
            rows_beside_zeros(block)
        if split:
            fold_padded_rows(self.root, block)
        elif "sums-by-cube" in self.names:
            sums = sums_by_cube(block, self.machine, self.cores)
            if sums:
                self.counts["sums-by-cube"] += sums
                erase_unused(block)
                for ops in product_groups(block, behind, self.chip, self.chip_cores):
                    outliner.outline(FusedGroup(ops))


def refuse_cube(root: Op, machine: Machine) -> None:
    """Raises a `CompileError` where an operator needs work of the cube of which no kernels are made
    on a machine whose cube and vector cores run programs of their own."""
    for function in tensor_functions(root):
        for operation in function.regions[0].blocks[0].operations:
            op = operation.operation
            if op.name not in ON_CUBE:
                continue
            element = tensor_of(op.operands[0].type).element
            singles = element == "f32" and multiplies_f32(machine) and op.name in PRODUCTS
            if element not in (HALF, BYTES) and not singles:
                fail(
                    op,
                    f"needs the cube in a way of which the compiler makes no kernels for "
                    f"{machine.name}",
                    found=f"{op.name.removeprefix('ascend.')} of {element}",
                    expected="factors of f16 or i8",
                    hint="compile for a machine whose cores have both units (ascend910, "
                    f"ascend310), or write kernels by hand, see {shipped('split_matmul_add.mlir')}",
                )


def rows_of_what_is_left(block: ir.Block) -> None:
    """Brings to rows the operators on bytes that products have not taken in and no other group
    computes in nz."""
    cleared = cleared_behind(block)
    for op in [operation.operation for operation in block.operations]:
        if is_elementwise(op) and has_layouts(op) and not takes_nz(op, op in cleared):
            in_rows(op)
