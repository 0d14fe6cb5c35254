"""Arrays in global memory by which the cores of a kernel tell each other something: arguments of
the kernel behind its own, which are globals of the host's part."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.dialects.cce.build import SomeBlocks
from davinci.isa.counters import LINE_BYTES
from davinci.mlir import (
    Op,
    arith,
    callee_of,
    ir,
    memref,
    operations,
    root_of,
    symbol_name,
    symbols,
    unique,
)
from davinci.passes import builder
from davinci.passes.analysis.kernels import MEETS, launched_kernels
from davinci.passes.ascend_to_cce import Target

LANES = LINE_BYTES // 4
"""Numbers of the line of a counter, see `cce.sync_cores`."""


def add_arguments(kernel: Op, kinds: Sequence[ir.MemRefType]) -> list[ir.Value]:
    """Arguments of a kernel that hold zeros before its first launch, and from launch to launch what
    it left there."""
    block, name = kernel.regions[0].blocks[0], symbol_name(kernel)
    with kernel.location:
        made: list[ir.Value] = [block.add_argument(kind, kernel.location) for kind in kinds]
        taken = [argument.type for argument in block.arguments]
        kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(taken, []))
    root = root_of(kernel)
    declared = {d for d, launched in launched_kernels(root).items() if launched == name}
    for _, function in symbols(root):
        if symbol_name(function) in declared:
            function.attributes["function_type"] = kernel.attributes["function_type"]
    calls = [call for call in operations(root, "func.call") if callee_of(call) in declared]
    if calls:
        globals_ = [_zeros(root, kind) for kind in kinds]
        for call in calls:
            _with_arguments(call, kinds, globals_)
    return made


def mark_meeting(program: Op, target: Target) -> None:
    """Notes on a program in which all cores of a kind meet that blocks without work meet, too,
    where they do."""
    if target.has_idle_blocks_meet:
        program.attributes[MEETS] = ir.UnitAttr.get()


def meet_once(lines: ir.Value) -> None:
    """Builds the only meeting of all cores of a kernel.

    A core reads its counter while the last work in front of the meeting still runs.

    Args:
        lines: counters of the cores, i32 [cores, 8], an argument of the kernel.
    """
    CoreMeetings(lines).meet()


class CoreMeetings:
    """Builds meetings of the cores of a kernel, one after the other.

    Args:
        lines: counters of the cores, i32 [cores, 8], an argument of the kernel.
        group: how many cores that follow each other meet; 0 for all of the kernel.
    """

    def __init__(self, lines: ir.Value, group: int = 0) -> None:
        self.lines, (cores, _) = lines, ir.MemRefType(lines.type).shape
        self._i32 = ir.IntegerType.get_signless(32)
        self._some: SomeBlocks = {"group": group} if 0 < group < cores else {}
        self._scratch = builder.alloc([(group or cores) + 1, LANES], self._i32, "UB")
        self._first = self._number = cce.read_counter(lines, self._scratch, **self._some)

    def meet(self) -> None:
        """Waits until the cores have come."""
        one = arith.ConstantOp(self._i32, ir.IntegerAttr.get(self._i32, 1)).result
        self._number = arith.AddIOp(self._number, one).result
        cce.sync_cores(self.lines, self._number, self._scratch, **self._some)

    def only_meet(self, times: int) -> None:
        """What a core without work does where others meet so many times by flags of all cores."""
        for _ in range(times):
            cce.sync_cores(self.lines, self._first, self._scratch, **self._some)


def _zeros(root: Op, kind: ir.MemRefType) -> str:
    """A global array of zeros in front of the host's function; its name."""
    name: str = unique("exchange", dict(symbols(root)))
    main = dict(symbols(root))["main"]
    with ir.Location.unknown(), ir.InsertionPoint(main):
        builder.global_of_zeros(name, kind)
    return name


def _with_arguments(call: Op, kinds: Sequence[ir.MemRefType], names: Sequence[str]) -> None:
    """Replaces a call by one with global arrays behind its operands."""
    with call.location, ir.InsertionPoint(call):
        more = [
            memref.GetGlobalOp(kind, ir.FlatSymbolRefAttr.get(name)).result
            for kind, name in zip(kinds, names, strict=True)
        ]
        made = builder.op("func.call", [*call.operands, *more], [])
        for key in call.attributes:
            made.attributes[key] = call.attributes[key]
    call.erase()
