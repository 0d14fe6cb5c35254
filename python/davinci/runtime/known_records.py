"""Instructions whose operands are all known become rows of a table that native code copies.

before:
    llvm.call @hivm.vadd.f32(%p0, %p1, %p2, %word, %tag)    all constants
    llvm.call @hivm.pipe_barrier(%word2, %tag2)
after:
    llvm.call @davinci.rows(%first, %count)                 2 rows from row %first on

Most instructions of a kernel are of this kind, and the native compiler takes about 0.1 ms for a
call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.isa import INSTRUCTIONS, RECORD_WORDS
from davinci.isa.core import Records
from davinci.mlir import Op, callee_of, ir, llvm
from davinci.passes import builder
from davinci.runtime.device_code import INTRINSIC
from davinci.runtime.intrinsics import ROWS_FUNCTION, touches_gm

WORD = (1 << 64) - 1


class KnownRecords:
    """The table of a library's functions, at the llvm level."""

    def __init__(self) -> None:
        self._rows: list[list[int]] = []

    def table(self) -> Records:
        """The rows, an array [rows, RECORD_WORDS]."""
        padded = [row + [0] * (RECORD_WORDS - len(row)) for row in self._rows]
        return np.array(padded, dtype=np.uint64).reshape(-1, RECORD_WORDS)

    def take(self, function: Op) -> None:
        """Replaces the calls in `function` whose records are known."""
        known: dict[ir.Value, int] = {}
        for block in function.regions[0]:
            run: list[Any] = []
            for view in list(block.operations):
                op = view.operation
                if op.name != "llvm.call":  # all else that a kernel may hold acts on nothing
                    note_constant(op, known)
                elif (row := row_of(op, known)) is not None:
                    self._rows.append(row)
                    run.append(op)
                elif run:
                    self._replace(run)
                    run = []
            if run:
                self._replace(run)

    def _replace(self, run: list[Any]) -> None:
        """Copies the last rows where the last of as many calls stands."""
        i64 = ir.IntegerType.get_signless(64)
        with ir.InsertionPoint(run[-1]), run[-1].location:
            numbers = [
                builder.op("llvm.mlir.constant", [], [i64], value=ir.IntegerAttr.get(i64, n)).result
                for n in (len(self._rows) - len(run), len(run))
            ]
            llvm.CallOp(None, numbers, [], [], callee=ROWS_FUNCTION)
        for op in run:
            op.erase()


def note_constant(op: Op, known: dict[ir.Value, int]) -> None:
    """Adds the result of an operation to the known values, if it is an integer or address."""
    if op.name == "llvm.mlir.constant":
        value = op.attributes["value"]
        if isinstance(value, ir.IntegerAttr):
            known[op.results[0]] = value.value & WORD
    elif op.name == "llvm.mlir.zero":
        known[op.results[0]] = 0
    elif op.name == "llvm.inttoptr" and op.operands[0] in known:
        known[op.results[0]] = known[op.operands[0]]


def row_of(call: Op, known: dict[ir.Value, int]) -> list[int] | None:
    """The record that a call appends; None if it does more, or if an operand is not known."""
    if "callee" not in call.attributes:
        return None
    name = callee_of(call)
    record = INSTRUCTIONS.get(name.removeprefix(INTRINSIC)) if name.startswith(INTRINSIC) else None
    if record is None or touches_gm(record):
        return None
    values = [known.get(operand) for operand in call.operands]
    *words, tag = values
    if tag is None or None in words:
        return None
    return [tag | record.opcode, *(word for word in words if word is not None)]
