"""Calls of kernels that are there already, and the types of buffers that hold tensors."""

from __future__ import annotations

from davinci.dialects.ascend_types import tensor_of
from davinci.errors import CompileError
from davinci.mlir import Op, ir, location_text
from davinci.passes.analysis.kernels import known_kernels


def prepared(root: Op, caller: Op) -> str:
    """Name of the kernel that a `func.call` means, which must be there already."""
    callee = str(ir.SymbolRefAttr(caller.attributes["callee"]).value[-1])
    found = known_kernels(root).get(callee)
    if found is None or "ascend.kernel" not in found.attributes:
        raise CompileError(
            "'func.call' op calls a function that is not a kernel on memrefs",
            where=location_text(caller.location),
            found=f"@{callee}",
            expected="a function with ascend.kernel in module @kernels",
            hint="run ascend-outline-scalar before ascend-bufferize",
        )
    return callee


def stored_tensor(tensor_type: ir.Type) -> ir.RankedTensorType:
    """The tensor type of what a buffer holds: booleans are bytes, unsigned integers signless."""
    tensor = ir.RankedTensorType(tensor_type)
    if not is_boolean(tensor) and not is_unsigned(tensor):
        return tensor
    width = 8 if is_boolean(tensor) else tensor.element_type.width
    return ir.RankedTensorType.get(tensor.shape, ir.IntegerType.get_signless(width))


def memref_of(tensor_type: ir.Type) -> ir.MemRefType:
    """The GM buffer type of a static tensor type: the array of its layout."""
    shape = tensor_of(tensor_type).stored_shape
    return ir.MemRefType.get(list(shape), stored_tensor(tensor_type).element_type)


def copied_type(kind: ir.MemRefType) -> ir.MemRefType:
    """The type of a buffer for the kernel that copies it: the vector unit moves f64 as integers."""
    if not isinstance(kind.element_type, ir.F64Type):
        return kind
    return ir.MemRefType.get(kind.shape, ir.IntegerType.get_signless(64, kind.context))


def copied_tensor(tensor_type: ir.Type) -> ir.RankedTensorType:
    """The array of a tensor for the kernel that copies it."""
    copied = copied_type(memref_of(tensor_type))
    return ir.RankedTensorType.get(copied.shape, copied.element_type)


def is_boolean(shaped_type: ir.ShapedType) -> bool:
    return str(shaped_type.element_type) == "i1"


def is_unsigned(shaped_type: ir.ShapedType) -> bool:
    return str(shaped_type.element_type).startswith("ui")
