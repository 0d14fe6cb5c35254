"""Elements attributes as NumPy arrays and back, without a detour through text.

Large constants are `dense_resource` attributes, whose bytes the bindings do not give. Those made
here are remembered; those that a parser made are read by `davinci.bytecode`.
"""

from __future__ import annotations

import math
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from davinci import element_types
from davinci.bytecode import resource_bytes
from davinci.errors import InputError
from davinci.mlir import ir, run_pipeline
from davinci.narrow import FLOATS, NARROW, from_stored, to_stored
from davinci.stand_ins import stands_in

Array = np.ndarray[Any, np.dtype[Any]]

RESOURCE_BYTES = 1024
"""Constants of at least this size become resources."""

_MADE: WeakKeyDictionary[Any, dict[str, Array]] = WeakKeyDictionary()
"""The arrays behind the resources of a context, which live as long as it does, by the text of the
attribute: a resource's name is its own in a context."""


def dtype_of(element: ir.Type) -> Any:
    """The `np.dtype` of an element type; KeyError for one that arrays cannot have."""
    return element_types.dtype_of(str(element))


def to_array(attr: ir.Attribute) -> Array:
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
    if str(attr.type.element_type) in NARROW:
        return _narrow_array(attr).reshape(shape)
    return np.asarray(attr).astype(dtype, copy=False).reshape(shape)


def _narrow_array(attr: ir.Attribute) -> Array:
    """The values of a dense attribute whose element type the bindings do not read."""
    element = str(attr.type.element_type)
    kind = NARROW[element]
    if element not in FLOATS:
        # Both as a list of numbers and as bytes, the text is that of the wider type, too.
        text, _, shaped = str(attr).rpartition(" : ")
        with attr.context:
            wide = ir.Attribute.parse(f"{text} : {shaped.replace(element, kind.computed)}")
        return from_stored(np.asarray(wide), kind.dtype)
    bits = attr.type.element_type.width
    shape = "x".join(map(str, attr.type.shape))
    names = [f"tensor<{shape}x{name}>" for name in (element, f"i{bits}", kind.stored)]
    lines = [
        f"%0 = arith.constant {attr}",
        f"%1 = arith.bitcast %0 : {names[0]} to {names[1]}",
        f"%2 = arith.extui %1 : {names[1]} to {names[2]}" if bits < 8 else "",
        f"return %{2 if bits < 8 else 1} : {names[2]}",
    ]
    text = "\n".join([f"func.func @f() -> {names[2]} {{", *lines, "}"])
    module = ir.Module.parse(text, attr.context)
    run_pipeline(module.operation, "canonicalize")
    found = module.body.operations[0].regions[0].blocks[0].operations[0].attributes["value"]
    return from_stored(np.asarray(ir.DenseElementsAttr(found)), kind.dtype)


def to_attribute(array: Array, element: ir.Type, name: str = "constant") -> ir.Attribute:
    """`array` as an elements attribute of that element type; a large one as a resource `name`.

    The resource of an array that stands in for another holds nothing: only `to_array` reads it.
    """
    if stands_in(array):
        shaped = ir.RankedTensorType.get(list(array.shape), element)
        return _remembered(np.zeros(1, array.dtype), array, name, shaped)
    array = np.ascontiguousarray(array, dtype_of(element)).reshape(array.shape)
    array = to_stored(array)
    shaped = ir.RankedTensorType.get(list(array.shape), element)
    if array.size == 0:
        return ir.Attribute.parse(f"dense<> : {shaped}")
    if array.nbytes >= RESOURCE_BYTES and array.dtype != np.bool_:
        return _remembered(array, from_stored(array, dtype_of(element)), name, shaped)
    return ir.DenseElementsAttr.get(array, type=element, shape=list(array.shape))


def _remembered(data: Array, array: Array, name: str, shaped: ir.Type) -> ir.Attribute:
    """A resource of those bytes, which `to_array` knows as an array."""
    attr = ir.DenseResourceElementsAttr.get_from_buffer(data, name, shaped)
    made = array.view()
    made.flags.writeable = False
    _MADE.setdefault(attr.context, {})[str(attr)] = made
    return attr


def scalar_attribute(value: Any, element: ir.Type) -> ir.Attribute:
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
