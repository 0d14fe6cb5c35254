"""Elements attributes as NumPy arrays and back, without a detour through text.

Large constants are `dense_resource` attributes, whose bytes the bindings do not give. Those made
here are remembered; those that a parser made are read from the bytecode of an operation that holds
nothing else (https://mlir.llvm.org/docs/BytecodeFormat).
"""

from __future__ import annotations

import io
import math
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from davinci.errors import InputError
from davinci.mlir import ir

Array = np.ndarray[Any, np.dtype[Any]]

RESOURCE_BYTES = 1024
"""Constants of at least this size become resources."""

RESOURCE_SYNTAX = '{-# dialect_resources: { builtin: { NAME: "0x..." } } #-} at the end of the file'
"""Where the data of resources is in MLIR text."""

_MADE: WeakKeyDictionary[Any, dict[str, Array]] = WeakKeyDictionary()
"""The arrays behind the resources of a context, which live as long as it does, by the text of the
attribute: a resource's name is its own in a context."""

SECTION_RESOURCE = 5
ALIGNED = 0x80

DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    **{f"{s}i{n}": f"int{n}" for s in ("", "s") for n in (8, 16, 32, 64)},
    **{f"ui{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}
"""NumPy types of element types, by their text."""


def dtype_of(element: Any) -> Any:
    """The `np.dtype` of an element type; KeyError for one that arrays cannot have."""
    return np.dtype(DTYPES[str(element)])


def to_array(attr: Any) -> Array:
    """The values of a dense or dense_resource attribute, read-only; a splat takes no memory.

    Raises:
        InputError: the data of a resource is missing, or not of the size of its type.
    """
    dtype, shape = dtype_of(attr.type.element_type), tuple(attr.type.shape)
    if not isinstance(attr, ir.DenseElementsAttr):
        # Read back from an operation, a resource comes as a plain attribute.
        attr = ir.DenseResourceElementsAttr(attr)
        made = _MADE.get(attr.context, {}).get(str(attr))
        if made is not None:
            return made
        data = resource_bytes(attr)
        expected = math.prod(shape) * dtype.itemsize
        if len(data) != expected:
            message = f"a constant has {len(data)} bytes of data"
            raise InputError(message, found=str(attr), expected=f"{expected} bytes")
        return np.frombuffer(data, dtype).reshape(shape)
    if attr.is_splat:
        return np.broadcast_to(np.asarray(scalar_value(attr.get_splat_value()), dtype), shape)
    return np.asarray(attr).astype(dtype, copy=False).reshape(shape)


def to_attribute(array: Array, element: Any, name: str = "constant") -> Any:
    """`array` as an elements attribute of that element type; a large one as a resource `name`."""
    array = np.ascontiguousarray(array, dtype_of(element)).reshape(array.shape)
    shaped = ir.RankedTensorType.get(list(array.shape), element)
    if array.size == 0:
        return ir.Attribute.parse(f"dense<> : {shaped}")
    if array.nbytes >= RESOURCE_BYTES and array.dtype != np.bool_:
        attr = ir.DenseResourceElementsAttr.get_from_buffer(array, name, shaped)
        made = array.view()
        made.flags.writeable = False
        _MADE.setdefault(attr.context, {})[str(attr)] = made
        return attr
    return ir.DenseElementsAttr.get(array, type=element)


def scalar_attribute(value: Any, element: Any) -> Any:
    """A number as a typed attribute."""
    if isinstance(element, ir.FloatType):
        return ir.FloatAttr.get(element, float(value))
    if str(element) == "i1":
        return ir.BoolAttr.get(bool(value))
    return ir.IntegerAttr.get(element, int(value))


def scalar_value(attr: Any) -> Any:
    """The number in a typed attribute."""
    return attr.value


def resource_bytes(attr: Any) -> memoryview:
    """The bytes of a dense_resource attribute."""
    with attr.context, ir.Location.unknown():
        holder = ir.Operation.create(
            "builtin.unrealized_conversion_cast", attributes={"value": attr}
        )
        stream = io.BytesIO()
        holder.write_bytecode(stream)
        holder.erase()
    data = stream.getbuffer()
    for kind, begin, end in sections(data):
        if kind == SECTION_RESOURCE:
            alignment, position = varint(data, begin)
            size, position = varint(data, position)
            position = -(-position // alignment) * alignment
            if size > end - position:
                break
            return data[position : position + size]
    raise InputError("a constant has no data", found=str(attr), expected=RESOURCE_SYNTAX)


def sections(data: memoryview) -> list[tuple[int, int, int]]:
    """Kind, begin and end of the sections of a bytecode file."""
    _, position = varint(data, 4)
    while data[position]:
        position += 1
    position += 1
    found = []
    while position < len(data):
        kind = data[position]
        size, position = varint(data, position + 1)
        if kind & ALIGNED:
            alignment, position = varint(data, position)
            position = -(-position // alignment) * alignment
        found.append((kind & ~ALIGNED, position, position + size))
        position += size
    return found


def varint(data: memoryview, position: int) -> tuple[int, int]:
    """A number at `position`, and the position behind it.

    The count of trailing zeros of the first byte is the number of further bytes.
    """
    first = data[position]
    if first == 0:
        return int.from_bytes(data[position + 1 : position + 9], "little"), position + 9
    size = (first & -first).bit_length()
    word = int.from_bytes(data[position : position + size], "little")
    return word >> size, position + size
