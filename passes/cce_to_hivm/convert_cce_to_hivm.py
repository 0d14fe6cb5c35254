"""convert-cce-to-hivm: turns cce operations on arrays into instructions on pointers.

before:
    func.func @k(%x: memref<300xf32>) attributes {ascend.kernel} {
      %u = memref.alloc() {cce.address = 0 : i64} : memref<304xf32, #cce.space<"UB">>
      %v = memref.subview %u[0] [300] [1] : ...
      "cce.vexp"(%v, %v) : ...
after:
    func.func @k(%x: !llvm.ptr<1>) attributes {ascend.kernel} {
      "hivm.set_vector_mask"() {low = -1 : i64, high = -1 : i64}
      "hivm.vexp"(%p, %p) {type = "f32", repeat = 4, dst_blk_stride = 1, ...}
      "hivm.set_vector_mask"() {low = 0xfffffffffff, high = 0 : i64}
      "hivm.vexp"(%q, %q) {type = "f32", repeat = 1, ...}

Sizes and strides become fields, views become address arithmetic, loads and stores on memrefs become
those of the scalar unit. An operation that one instruction cannot cover becomes several, in a loop
if they are many. The vector mask is set only where it changes.

Needs an address for every buffer (`plan-memory`) and, for a correct program, `insert-sync`. The
lowering of each operation lies in `davinci.passes.cce_to_hivm`. Everything outside kernels, and
kernels without arrays, stay as they are.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

from davinci import machine as machines
from davinci.isa import Space
from davinci.mlir import Op, ir, operations, run_unverified
from davinci.passes import cce_to_hivm
from davinci.passes.analysis.group_graph import CONVERSION
from davinci.passes.analysis.kernels import kernels, seen_by
from davinci.passes.analysis.lifetimes import VIEWS
from davinci.passes.cce_to_hivm import LOWERINGS, Lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift, pointer_type
from davinci.passes.cce_to_hivm.emitter import Emitter
from davinci.passes.pipeline.base import Pass, fail, option, register_pass

CLEAN_UP = "func.func(canonicalize,cse,loop-invariant-code-motion)"
BUFFERS = ("memref.alloc", *VIEWS)


@register_pass
@dataclass(frozen=True)
class ConvertCceToHivmPass(Pass):
    """Lower cce operations in kernels to hivm instructions."""

    NAME = "convert-cce-to-hivm"

    machine: str = option("ascend910", "machine file that gives sizes and costs")

    def run(self, op: Op) -> None:
        for module in pkgutil.iter_modules(cce_to_hivm.__path__):
            importlib.import_module(f"{cce_to_hivm.__name__}.{module.name}")
        machine = machines.load(self.machine)
        for kernel in kernels_on_arrays(op):
            lower_kernel(kernel, Emitter(seen_by(kernel, machine)))
            run_unverified(kernel, CLEAN_UP)


def kernels_on_arrays(root: Op) -> list[Op]:
    """Kernels below `root` that take memrefs or hold operations on them."""
    return [
        kernel
        for kernel in kernels(root)
        if list(kernel.regions[0])
        and (
            any(isinstance(a.type, ir.MemRefType) for a in kernel.regions[0].blocks[0].arguments)
            or operations(kernel, "cce", "memref")
        )
    ]


def lower_kernel(kernel: Op, emitter: Emitter) -> None:
    """Lowers the body, then makes pointers of the arguments."""
    entry = kernel.regions[0].blocks[0]
    casts = []
    with ir.InsertionPoint.at_block_begin(entry), kernel.location:
        for argument in entry.arguments:
            if not isinstance(argument.type, ir.MemRefType):
                continue
            cast = ir.Operation.create(CONVERSION, [pointer_type(Space.GM)], [argument])
            emitter.addresses.set(argument, Address(Space.GM, cast.result, Shift()))
            casts.append((argument, cast))
    dead: list[Op] = []
    for block in kernel.regions[0]:
        lower_block(block, emitter, dead)
    for op in reversed(dead):
        if any(list(result.uses) for result in op.results):
            fail(
                op,
                "has a use that cannot be lowered",
                found=next(iter(op.results[0].uses)).owner.name,
            )
        op.erase()
    for argument, cast in casts:
        argument.set_type(pointer_type(Space.GM))
        cast.result.replace_all_uses_with(argument)
        cast.erase()
    inputs = [argument.type for argument in entry.arguments]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))


def lower_block(block: ir.Block, emitter: Emitter, dead: list[Op]) -> None:
    """Lowers the operations of a block; views and buffers are left for `dead`.

    Registers are unknown at the start of a block and after one that is nested.
    """
    emitter.forget()
    with emitter.block():
        for view in list(block.operations):
            op = view.operation
            if op.name in BUFFERS:
                dead.append(op)
                continue
            for region in op.regions:
                for inner in region:
                    lower_block(inner, emitter, dead)
                emitter.forget()
            lower = lowering_of(op)
            if lower is not None:
                with ir.InsertionPoint(op), op.location:
                    lower(emitter, op)
                op.erase()


def lowering_of(op: Op) -> Lowering | None:
    """The lowering of an operation, None if it stays."""
    from davinci.passes.cce_to_hivm import control

    name = op.name
    if name == "memref.load":
        return control.lower_load
    if name == "memref.store":
        return control.lower_store
    if name == CONVERSION and isinstance(op.results[0].type, ir.IntegerType):
        return control.lower_sign
    if name.startswith("ascend."):
        fail(op, "is not at the cce level", hint="run ascend-to-cce first")
    if not name.startswith("cce."):
        return None
    lower = LOWERINGS.get(name.removeprefix("cce."))
    if lower is None:
        fail(op, "has no lowering to hivm")
    return lower
