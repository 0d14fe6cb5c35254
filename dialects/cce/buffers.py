"""What a cce operation asks about its memref operands: space, element type, shape, strides.

Used by the verifiers of the dialect and by the passes that lower it.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.errors import Invalid
from davinci.isa.core import DTYPES, Space
from davinci.mlir import ir, type_text
from davinci.units import BLOCK_BYTES

_TYPE_NAMES = {
    "f16": "f16",
    "f32": "f32",
    "i8": "s8",
    "si8": "s8",
    "ui8": "u8",
    "i16": "s16",
    "si16": "s16",
    "ui16": "u16",
    "i32": "s32",
    "si32": "s32",
    "ui32": "u32",
    "i64": "s64",
}


@dataclass(frozen=True)
class BufferView:
    """A static view of a memory; strides and offset in elements, `offset` None if dynamic."""

    space: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int | None

    @property
    def itemsize(self) -> int:
        return DTYPES[self.dtype].itemsize

    @property
    def block(self) -> int:
        """Elements of a 32-byte block."""
        return BLOCK_BYTES // self.itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


def space_name(memref_type: ir.MemRefType) -> str:
    """ "GM", "L1", ... of a memref type.

    Raises:
        Invalid: the memory space is not one of the machine's.
    """
    attr = memref_type.memory_space
    if attr is None:
        return "GM"
    if isinstance(attr, ir.DynamicAttr) and attr.attr_name == "cce.space":
        name = str(ir.StringAttr(attr.params[0]).value)
        if name in Space.__members__ and name != "GM":
            return name
    expected = ", ".join(f'#cce.space<"{s.name}">' for s in Space if s.name != "GM")
    raise Invalid("unknown memory space", attr, f"no space (GM) or one of {expected}")


def type_name(element: ir.Type) -> str:
    """The instruction set's name of an element type: "f16", "s32", ...

    Raises:
        Invalid: the machine has no such type.
    """
    name = _TYPE_NAMES.get(type_text(element))
    if name is None:
        raise Invalid("unknown element type", element, f"one of {', '.join(_TYPE_NAMES)}")
    return name


def buffer_of(value: ir.Value) -> BufferView:
    """Describes a memref value.

    Raises:
        Invalid: not a memref, or its shape or strides are not static.
    """
    if not isinstance(value.type, ir.MemRefType):
        raise Invalid("operand is not a memref", value.type)
    memref_type = value.type
    if not memref_type.has_static_shape:
        raise Invalid("operand has a dynamic shape", memref_type, "static sizes; peel tails")
    try:
        strides, offset = memref_type.get_strides_and_offset()
    except RuntimeError:
        raise Invalid("operand's layout has no strides", memref_type, "a strided layout") from None
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if dynamic in strides:
        raise Invalid("operand has dynamic strides", memref_type, "static strides")
    return BufferView(
        space_name(memref_type),
        type_name(memref_type.element_type),
        tuple(memref_type.shape),
        tuple(strides),
        None if offset == dynamic else offset,
    )
