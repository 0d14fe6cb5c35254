"""The bytes of a resource, read from MLIR's bytecode (https://mlir.llvm.org/docs/BytecodeFormat).

MLIR's Python bindings do not give the data of a `dense_resource` attribute, but they write an
operation that holds nothing else as bytecode.
"""

from __future__ import annotations

import io

from davinci.errors import InputError
from davinci.mlir import ir
from davinci.units import round_up

RESOURCE_SYNTAX = '{-# dialect_resources: { builtin: { NAME: "0x..." } } #-} at the end of the file'
"""Where the data of resources is in MLIR text."""

MAGIC = b"ML\xefR"
"""What bytecode begins with."""

SECTION_RESOURCE = 5
"""Kind of the section that holds resources."""

ALIGNED = 0x80
"""Bit of a section's kind that says that an alignment follows."""


def resource_bytes(attr: ir.Attribute) -> memoryview:
    """The bytes of a dense_resource attribute.

    Raises:
        InputError: MLIR has none for it: text may name a resource and not give its data.
    """
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
            position = round_up(position, alignment)
            if size > end - position:
                break
            return data[position : position + size]
    raise InputError("a constant has no data", found=str(attr), expected=RESOURCE_SYNTAX)


def sections(data: memoryview) -> list[tuple[int, int, int]]:
    """Kind, begin and end of the sections of a bytecode file."""
    _, position = varint(data, len(MAGIC))
    while data[position]:
        position += 1
    position += 1
    found = []
    while position < len(data):
        kind = data[position]
        size, position = varint(data, position + 1)
        if kind & ALIGNED:
            alignment, position = varint(data, position)
            position = round_up(position, alignment)
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
