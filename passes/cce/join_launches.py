"""join-launches: kernels that follow each other become phases of one launch.

before:
    call @a(%x, %t) {ascend.blocks = 8 : i64}
    call @b(%t, %y) {ascend.blocks = 32 : i64}
after:
    %counters = memref.get_global @counters : memref<32x8xi32>
    call @a(%x, %t) {ascend.blocks = 8 : i64}
    call @meeting_of_32(%counters, %c0_i64) {ascend.blocks = 32 : i64, ascend.meeting = 1 : i64}
    call @b(%t, %y) {ascend.blocks = 32 : i64}
    ...
    module @kernels { func.func @meeting_of_32(%lines: memref<32x8xi32>, %number: i64) ... }

Between two phases all cores of the launch meet: each has finished what it does, stores a counter,
and waits until those of all others have come (`cce.sync_cores`). Cores without work in a phase only
meet. Nothing is left on chip behind a meeting, so phases use the same buffers and flags. A launch
in phases has as many cores as the phase that has most, and its price is paid once; a meeting has
one too. Kernels are joined where that takes less time (`davinci.schedule.meetings`).

`ascend.meeting` says that what follows belongs to the launch before it; it is the number of the
argument that the host raises from meeting to meeting, from run to run.

Kernels whose scalar unit stores to global memory have a launch of their own, and those whose scalar
unit loads from it are first phases: it has a cache that a meeting does not refresh. Kernels that
were not made of operators have launches of their own, and all on machines with cube and vector
cores, whose kinds do not meet. Needs kernels with blocks
(`convert-ascend-to-cce`); host functions with meetings are left alone, and modules with
`ascend.launched_alone`, whose kernels were weighed with a launch each and as phases.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import space_name
from davinci.isa.counters import LINE_BYTES
from davinci.mlir import Op, arith, func, ir, memref, operations, symbol_name, symbols, unique
from davinci.passes import builder
from davinci.passes.analysis.kernels import LAUNCHED_ALONE, MEETING, STAGE, launched_kernels
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.schedule.meetings import joining_pays

BLOCKS = "ascend.blocks"

LANES = LINE_BYTES // 4


@register_pass
@dataclass(frozen=True)
class JoinLaunchesPass(Pass):
    """Make kernels that follow each other phases of one launch."""

    NAME = "join-launches"

    machine: str = option("ascend910", "machine file that gives prices")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        main = dict(symbols(op)).get("main")
        if machine.split or main is None or LAUNCHED_ALONE in op.attributes:
            return
        calls = operations(main, "func.call")
        if any(MEETING in call.attributes for call in calls):
            return
        made = MeetingBuilder(op, main)
        for phases in runs_of(op, calls):
            blocks = [sum(attribute(call, BLOCKS, 1) for call in phase) for phase in phases]
            if joining_pays(machine, blocks) and max(blocks) <= machine.cores:
                for phase in phases[1:]:
                    made.build(phase[0], max(blocks))


def runs_of(root: Op, calls: list[Any]) -> list[list[list[Any]]]:
    """Calls of kernels that may be phases of one launch: the launches one after the other, each of
    the calls that share it."""
    kernels_of = launched_kernels(root)
    kernels = {symbol_name(op): op for op in _kernels(root)}
    runs: list[list[list[Any]]] = [[]]
    stage = None
    for call in calls:
        name = kernels_of.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value, "")
        role = role_of(kernels[name]) if name in kernels else PhaseRole.ALONE
        own = attribute(call, STAGE, None)
        if role == PhaseRole.PHASE and own is not None and own == stage and runs[-1]:
            runs[-1][-1].append(call)
        else:
            if role != PhaseRole.PHASE:
                runs.append([])
            runs[-1].append([call])
            if role == PhaseRole.ALONE:
                runs.append([])
        stage = own
    return runs


def _kernels(root: Op) -> list[Any]:
    module = dict(symbols(root)).get("kernels")
    return [op for _, op in symbols(module)] if module is not None else []


class PhaseRole(Enum):
    """What a kernel may be: any phase of a launch, the first one, or a launch of its own."""

    PHASE = auto()
    FIRST = auto()
    ALONE = auto()


def role_of(kernel: Op) -> PhaseRole:
    """What a kernel may be: scalar units load from global memory through caches of their own, which
    a meeting does not refresh, so only in the first phase, and none stores there in a phase."""
    if "ascend.members" not in kernel.attributes:
        return PhaseRole.ALONE
    found = PhaseRole.PHASE
    for access in operations(kernel, "memref.load", "memref.store"):
        load = access.name == "memref.load"
        if space_name(access.operands[0 if load else 1].type) == "GM":
            if not load:
                return PhaseRole.ALONE
            found = PhaseRole.FIRST
    return found


class MeetingBuilder:
    """Builds calls of meetings, a kernel and counters for each number of cores."""

    def __init__(self, root: Op, main: Op) -> None:
        self._root, self._main = root, main
        self._made: dict[int, tuple[str, Any, Any]] = {}

    def build(self, call: Op, cores: int) -> None:
        """A meeting in front of a call."""
        if cores not in self._made:
            self._made[cores] = self._parts(cores)
        callee, lines, number = self._made[cores]
        with ir.InsertionPoint(call), call.location:
            marks = {BLOCKS: cores, MEETING: 1}
            name = ir.FlatSymbolRefAttr.get(callee)
            builder.op("func.call", [lines, number], [], callee=name, **marks)

    def _parts(self, cores: int) -> tuple[str, Any, Any]:
        """The name of the function that stands for the kernel, and its arguments."""
        known = dict(symbols(self._root))
        module = known["kernels"]
        kernel = unique(f"meeting_of_{cores}", {**known, **dict(symbols(module))})
        counters = unique("counters", known)
        i32, i64 = (ir.IntegerType.get_signless(width) for width in (32, 64))
        kind = ir.MemRefType.get([cores, LANES], i32)
        with ir.Location.unknown():
            with ir.InsertionPoint(self._main):
                declared = func.FuncOp(kernel, ([kind, i64], []), visibility="private")
                declared.attributes["ascend.launch"] = ir.SymbolRefAttr.get(["kernels", kernel])
                builder.global_of_zeros(counters, kind)
            with ir.InsertionPoint(module.regions[0].blocks[0]):
                _build_kernel(kernel, kind, cores)
            with ir.InsertionPoint.at_block_begin(self._main.regions[0].blocks[0]):
                lines = memref.GetGlobalOp(kind, ir.FlatSymbolRefAttr.get(counters)).result
                number = arith.ConstantOp(i64, ir.IntegerAttr.get(i64, 0)).result
        return kernel, lines, number


def _build_kernel(name: str, kind: Any, cores: int) -> None:
    """The kernel of a meeting: of the counters in global memory and the number to reach."""
    i32, i64 = (ir.IntegerType.get_signless(width) for width in (32, 64))
    kernel = func.FuncOp(name, ([kind, i64], []))
    marks = {"ascend.op": "meeting", "ascend.unit": "vector", "ascend.label": f"meeting of {cores}"}
    for key, value in marks.items():
        kernel.attributes[key] = builder.as_attribute(value)
    kernel.attributes["ascend.kernel"] = ir.UnitAttr.get()
    block = kernel.add_entry_block()
    with ir.InsertionPoint(block):
        lines, number = block.arguments
        cce.pipe_barrier(pipe="ALL")
        scratch = builder.alloc([cores + 1, LANES], i32, "UB")
        zero = arith.ConstantOp(i32, ir.IntegerAttr.get(i32, 0)).result
        cce.vector_dup(zero, builder.subview(scratch, [cores, 0], [1, LANES]))
        cce.set_flag(src="V", dst="S", event=0)
        cce.wait_flag(src="V", dst="S", event=0)
        reached = arith.TruncIOp(i32, number).result
        cce.sync_cores(lines, reached, scratch)
        func.ReturnOp([])
