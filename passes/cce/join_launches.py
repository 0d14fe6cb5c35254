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

On a machine with cube and vector cores a launch has both if its phases do, and its cores meet by
flags, with -1 in the place of an argument: vector cores tell their cube core, cube cores each other
and then their vector cores (`davinci.passes.cce.meeting_kernels`).

Kernels whose scalar unit stores to global memory have a launch of their own, and those whose scalar
unit loads from it are first phases: it has a cache that a meeting does not refresh. Where it loads
what no kernel writes, constants and arguments of the host, there is nothing to refresh. Kernels
that were not made of operators have launches of their own, and on machines with cube and vector
cores those whose cores meet: a flag of all cores of a kind waits for those without work, too. Where
these only meet (`ascend.meets`), such a kernel is a phase, of as many blocks as the launch has.
Needs kernels with blocks (`convert-ascend-to-cce`); host functions with meetings are left alone,
and modules with `ascend.launched_alone`, whose kernels were weighed with a launch each and as
phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, auto

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import Op, callee_of, ir, operations, parent_of, root_of, symbols
from davinci.passes import builder
from davinci.passes.analysis.kernels import (
    BLOCKS,
    CORE,
    LAUNCHED_ALONE,
    MEETING,
    MEETS,
    STAGE,
    known_kernels,
    launched_programs,
    scalar_accesses,
)
from davinci.passes.analysis.lifetimes import viewed_buffer
from davinci.passes.analysis.meetings import meetings_in
from davinci.passes.cce.meeting_kernels import MeetingBuilder
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.schedule.meetings import joining_pays
from davinci.units import ceil_div


@register_pass
@dataclass(frozen=True)
class JoinLaunchesPass(Pass):
    """Make kernels that follow each other phases of one launch."""

    NAME = "join-launches"

    machine: str = option("ascend910", "machine file that gives prices")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        main = dict(symbols(op)).get("main")
        if main is None or LAUNCHED_ALONE in op.attributes:
            return
        calls = operations(main, "func.call")
        if any(MEETING in call.attributes for call in calls):
            return
        made = MeetingBuilder(op, main)
        for phases in runs_of(op, calls, machine):
            if (launch := joined(phases, machine)) is not None:
                for phase in phases[1:]:
                    made.build(phase.calls[0], launch.cores, launch.kinds)
                for phase in phases:
                    if phase.meets:
                        each = machines.blocks_a_core(machine, phase.kinds, launch.kinds)
                        blocks = builder.as_attribute(launch.cores * each)
                        phase.calls[0].attributes[BLOCKS] = blocks


@dataclass(frozen=True)
class LaunchPhase:
    """Calls of kernels that may be a phase, the kinds of the cores that run them, and whether all
    cores of a launch meet in it."""

    calls: list[Op]
    kinds: frozenset[str]
    meets: bool = False

    @property
    def blocks(self) -> int:
        """Blocks of all its kernels."""
        return sum(attribute(call, BLOCKS, 1) for call in self.calls)


@dataclass(frozen=True)
class JoinedLaunch:
    """A launch in phases: how many cores it has, and of which kinds."""

    cores: int
    kinds: frozenset[str]


def joined(phases: Sequence[LaunchPhase], machine: Machine) -> JoinedLaunch | None:
    """The launch of some phases; None where they take no longer with a launch each."""
    kinds = frozenset[str]().union(*(phase.kinds for phase in phases))
    seen = machines.for_kinds(machine, kinds)
    cores = [
        ceil_div(phase.blocks, machines.blocks_a_core(machine, phase.kinds, kinds))
        for phase in phases
    ]
    apart = sum(
        machines.for_kinds(machine, phase.kinds).queued_cycles(phase.blocks) for phase in phases
    )
    if joining_pays(seen, cores, apart) and max(cores) <= seen.cores:
        return JoinedLaunch(max(cores), kinds)
    return None


def runs_of(root: Op, calls: Sequence[Op], machine: Machine) -> list[list[LaunchPhase]]:
    """Calls of kernels that may be phases of one launch: the launches one after the other, each of
    the calls that share it."""
    programs_of = launched_programs(root)
    kernels = known_kernels(root)
    runs: list[list[LaunchPhase]] = [[]]
    stage = None
    for call in calls:
        names = programs_of.get(callee_of(call), [])
        programs = [kernels[name] for name in names if name in kernels]
        role = max((role_of(each, call, machine) for each in programs), default=PhaseRole.ALONE)
        kinds = frozenset(attribute(each, CORE, "aicore").upper() for each in programs)
        meets = any(MEETS in each.attributes for each in programs)
        own = attribute(call, STAGE, None)
        if role == PhaseRole.PHASE and own is not None and own == stage and runs[-1]:
            runs[-1][-1].calls.append(call)
        else:
            if role != PhaseRole.PHASE:
                runs.append([])
            runs[-1].append(LaunchPhase([call], kinds, meets))
            if role == PhaseRole.ALONE:
                runs.append([])
        stage = own
    return runs


class PhaseRole(IntEnum):
    """What a kernel may be: any phase of a launch, the first one, or a launch of its own."""

    PHASE = auto()
    FIRST = auto()
    ALONE = auto()


def role_of(kernel: Op, call: Op, machine: Machine) -> PhaseRole:
    """What a call of a kernel may be: scalar units load from global memory through caches of their
    own, which a meeting does not refresh, so what kernels write only in the first phase, and none
    stores there in a phase. Flags of a split machine have all cores of the launch meet, with or
    without blocks: such a kernel may only be a phase that no other shares."""
    if "ascend.members" not in kernel.attributes:
        return PhaseRole.ALONE
    meets = MEETS in kernel.attributes
    if (meets and STAGE in call.attributes) or (
        machine.split and meetings_in(kernel) and not meets
    ):
        return PhaseRole.ALONE
    found = PhaseRole.PHASE
    for load, array in scalar_accesses(kernel):
        if not load:
            return PhaseRole.ALONE
        if not is_never_written(call, array):
            found = PhaseRole.FIRST
    return found


def is_never_written(call: Op, array: ir.Value) -> bool:
    """Whether an array of a kernel is, in this call of it, a constant or an argument of the host's
    function that is neither an output nor becomes one, as states do."""
    argument = viewed_buffer(array)
    if not isinstance(argument.owner, ir.Block):
        return False
    value = viewed_buffer(call.operands[ir.BlockArgument(argument).arg_number])
    if not isinstance(value.owner, ir.Block):
        get = value.owner.operation
        return get.name == "memref.get_global" and "constant" in _global_of(get).attributes
    marks = attribute(parent_of(call), "arg_attrs", ())
    number = ir.BlockArgument(value).arg_number
    states = {mark.get("ascend.state") for mark in marks}
    return bool(marks) and "ascend.output" not in marks[number] and number not in states


def _global_of(get: Op) -> Op:
    """The global that an operation gets."""
    return dict(symbols(root_of(get)))[ir.FlatSymbolRefAttr(get.attributes["name"]).value]
