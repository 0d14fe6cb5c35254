"""The work that an operator means, whatever unit and kernel do it: the least any kernel must do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from davinci.operators.call import Call
from davinci.units import REPEAT_BYTES, ceil_div


@dataclass(frozen=True)
class OperatorWork:
    """Counts of one application.

    Attributes:
        macs: multiply-accumulates, of factors of `factor_bits` bits.
        vector_repeats: one for each 256 bytes of the widest operand or result of what is computed
            element by element; operators that only move data have none.
        read_bytes, write_bytes: what is read of each operand, and each result, once, unpadded.
    """

    macs: int = 0
    factor_bits: int = 16
    vector_repeats: int = 0
    read_bytes: int = 0
    write_bytes: int = 0


WorkOf = Callable[[Call], OperatorWork]


def traffic(call: Call) -> tuple[int, int]:
    """Bytes of the inputs and of the outputs."""
    return sum(x.size_bytes for x in call.inputs), sum(x.size_bytes for x in call.outputs)


def moved(call: Call) -> OperatorWork:
    """The work of an operator that computes nothing: bytes read and written."""
    read_bytes, write_bytes = traffic(call)
    return OperatorWork(read_bytes=read_bytes, write_bytes=write_bytes)


def partly_read(call: Call) -> OperatorWork:
    """The work of an operator that reads no more of its first operand than it returns."""
    read_bytes, write_bytes = traffic(call)
    first = call.inputs[0].size_bytes
    return OperatorWork(
        read_bytes=read_bytes - first + min(first, write_bytes), write_bytes=write_bytes
    )


def computed(call: Call) -> OperatorWork:
    """The work of an operator that computes element by element."""
    read_bytes, write_bytes = traffic(call)
    widest = max((x.size_bytes for x in call.values), default=0)
    return OperatorWork(
        vector_repeats=ceil_div(widest, REPEAT_BYTES),
        read_bytes=read_bytes,
        write_bytes=write_bytes,
    )
