"""Elements attributes as NumPy arrays and back, without a detour through text.

Large constants are `dense_resource` attributes, whose bytes the bindings do not give. Those made
here are remembered; those that a parser made are read by `davinci.bytecode`.
"""

from __future__ import annotations

import math
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from davinci.bytecode import resource_bytes
from davinci.errors import InputError
from davinci.mlir import ir

Array = np.ndarray[Any, np.dtype[Any]]

RESOURCE_BYTES = 1024
"""Constants of at least this size become resources."""

_MADE: WeakKeyDictionary[Any, dict[str, Array]] = WeakKeyDictionary()
"""The arrays behind the resources of a context, which live as long as it does, by the text of the
attribute: a resource's name is its own in a context."""

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
    number = int(value)  # the bindings take the bits of large unsigned numbers as signed ones
    return ir.IntegerAttr.get(element, number - (1 << 64) if number >= 1 << 63 else number)


def scalar_value(attr: Any) -> Any:
    """The number in a typed attribute."""
    return attr.value
