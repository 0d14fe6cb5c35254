"""One encoded instruction, for programs written by hand."""

from __future__ import annotations

from davinci.isa.assembly import encode_record
from davinci.isa.core import INSTRUCTIONS


def encoded(mnemonic: str, scalar_ops: int = 0, location: int = 0, **values: int) -> list[int]:
    """The words of a record; values that are not given are 0, block strides 1.

    Args:
        scalar_ops: operations of the scalar unit since the instruction before.
        location: id of the source location.
    """
    record = INSTRUCTIONS[mnemonic]
    full = {field.name: int(field.name.endswith("_blk_stride")) for field in record.fields}
    full |= {operand.name: 0 for operand in record.operands}
    assert values.keys() <= full.keys(), f"{mnemonic} has no {sorted(values.keys() - full.keys())}"
    return encode_record(record, {**full, **values}, location, scalar_ops)
