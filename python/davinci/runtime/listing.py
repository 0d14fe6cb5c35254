"""Disassembly of kernels: the instruction stream that their scalar programs issue.

A stream depends on the run, so the programs are run, on a core that executes nothing: arguments get
made-up addresses in a global memory of zeros, and the instructions are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.dialects.base import attribute
from davinci.errors import DeviceFault
from davinci.isa import RECORD_WORDS, Space
from davinci.isa.assembly import listing
from davinci.isa.core import Records
from davinci.mlir import Op, ir
from davinci.runtime.jit import KernelLibrary, ScalarProgram

GM_BYTES = 1 << 26
UB_BYTES = 1 << 18
"""Made-up memories for scalar loads and stores; every byte is zero and counts as written."""

ALIGN_BYTES = 512
"""Made-up arguments start at multiples of it, the first at the first: 0 is no address of GM."""


MOST_TURNS = 1 << 20
"""Turns of loops up to which a scalar program is listed: a longer listing serves nobody."""


class Zeros:
    """A memory of zeros."""

    def __init__(self, size: int) -> None:
        self.data = np.zeros(size, dtype=np.uint8)
        self.written = np.zeros(0, dtype=np.bool_)


class ListingCore:
    """A core that keeps the records and executes nothing; its memories are made up."""

    sub_block, most_turns = 0, MOST_TURNS

    def __init__(self) -> None:
        self._memories = {Space.GM: Zeros(GM_BYTES), Space.UB: Zeros(UB_BYTES)}
        self._parts: list[Records] = []

    def memory(self, space: Space) -> Zeros:
        return self._memories[space]

    def consume(self, records: Records) -> None:
        self._parts.append(records)

    def records(self) -> Records:
        """Returns the records issued since the last call, uint64[n, 8]."""
        parts, self._parts = self._parts, []
        return np.concatenate([np.zeros((0, RECORD_WORDS), np.uint64), *parts])


def record_stream(
    program: ScalarProgram, core: ListingCore, block: int = 0, blocks: int = 1
) -> Records:
    """The records that one block of a kernel issues.

    Raises:
        DeviceFault: the program loads or stores outside the made-up memory.
    """
    share = GM_BYTES // (program.inputs + 1) // ALIGN_BYTES * ALIGN_BYTES
    arguments = [ALIGN_BYTES + i * share for i in range(program.inputs)]
    core.records()
    program(arguments, block, blocks, core)
    return core.records()


def list_module(module: ir.Module) -> str:
    """The listing of block 0 of every kernel in `module`, an `ir.Module` at the llvm level."""
    lines: list[str] = []
    core = ListingCore()
    for owner, kernels in kernel_modules(module.operation):
        library = KernelLibrary(owner)
        for name, blocks in kernels.items():
            lines.append(f"{name}:  ; block 0 of {blocks}")
            try:
                records = record_stream(library.programs[name], core, 0, blocks)
            except DeviceFault as error:
                records = core.records()
                lines.append(
                    f"; the scalar program needs real data, what follows is partial: {error}"
                )
            lines += listing(records, library.locations)
    return "".join(f"{line}\n" for line in lines)


def kernel_modules(root: Op) -> list[tuple[Any, dict[str, int]]]:
    """Modules that directly hold kernels, with the kernels' names and numbers of blocks."""
    found: list[tuple[Any, dict[str, int]]] = []

    def visit(op: Op) -> Any:
        if op.name != "builtin.module":
            return ir.WalkResult.SKIP
        kernels = {
            ir.StringAttr(view.operation.attributes["sym_name"]).value: attribute(
                view.operation, "ascend.blocks", 1
            )
            for view in op.regions[0].blocks[0].operations
            if "ascend.kernel" in view.operation.attributes
        }
        if kernels:
            found.append((op, kernels))
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
