"""check-meetings: proves that the cores of a launch come through its meetings and do not race.

before:
    func.func @main(..) { ..
      call @a(%x, %t) {ascend.blocks = 8 : i64}
      call @meeting_of_8(%counters, %c0_i64) {ascend.blocks = 8 : i64, ascend.meeting = 1 : i64}
      call @b(%t, %y) {ascend.blocks = 8 : i64}
after:
    func.func @main(..) attributes {ascend.checked_launches = [
      "launch 1 at @a: 2 phases, 8 cores, 1 meetings, 112 overlapping pairs: proven"
    ]} ..

Overlapping pairs are accesses of two cores whose ranges of bytes do so between meetings of all:
strides or meetings of some tell them apart.

Nothing runs. The kernels of a launch are followed for each of its cores from their operations alone
(`davinci.passes.analysis.block_places`): the bytes of global memory that transfers touch as strided
boxes, and the meetings between them. Cores are then followed from meeting to meeting
(`meeting_order`), which shows

* that no core waits for a counter that nobody raises so far, that no counter has two owners and
  that each only grows, and that a launch whose cores wait for each other has no more blocks than
  the machine has cores;
* that no core writes bytes which another one reads or writes, unless a meeting is between them:
  of all cores, or of a group or neighbours for these.

What is certainly wrong is an error, with both parties and their places. What cannot be followed
(places and branches that depend on data) or be told apart is not proven, and said so in the line of
the launch. Within a core, operations are ordered as they stand: that is what `insert-sync` is for.
On a split machine cores that meet by flags are not followed yet.

Needs kernels with cce operations and their calls (`convert-ascend-to-cce`); launches of other
kernels are not proven. The module is not changed but for the attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import space_name
from davinci.errors import CompileError
from davinci.isa.counters import LINE_BYTES
from davinci.machine import Machine
from davinci.mlir import Op, ir, operations, symbols
from davinci.passes.analysis.accesses import Accesses
from davinci.passes.analysis.affine import AffineForm, Forms
from davinci.passes.analysis.block_places import (
    BlockMeeting,
    BlockStep,
    KernelPlaces,
    NotProvable,
)
from davinci.passes.analysis.kernels import BLOCKS, MEETING, STAGE, launched_programs
from davinci.passes.analysis.meeting_order import (
    CoreAccess,
    CoreMeeting,
    CoreStep,
    LaunchVerdict,
    judge,
)
from davinci.passes.pipeline.base import Pass, fail, option, register_pass

CHECKED = "ascend.checked_launches"
"""Of the host's function: a line for each launch, what of it is proven."""


@register_pass
@dataclass(frozen=True)
class CheckMeetingsPass(Pass):
    """Prove that cores of a launch come through its meetings and do not race, without running."""

    NAME = "check-meetings"

    machine: str = option("ascend910", "machine file that says how many cores there are")

    def run(self, op: Op) -> None:
        main = dict(symbols(op)).get("main")
        if main is None:
            return
        lines = list[str]()
        for launch in checked_launches(op, main, machines.load(self.machine)):
            if launch.verdict.faults:
                fail(launch.call, f"begins a launch with {launch.verdict.faults[0]}")
            lines.append(f"launch {len(lines) + 1} {launch.text}")
        main.attributes[CHECKED] = ir.ArrayAttr.get([ir.StringAttr.get(line) for line in lines])


@dataclass(frozen=True)
class CheckedLaunch:
    """A launch and what was found of it.

    Attributes:
        call: its first one.
        phases, cores: how many it has.
    """

    call: Op
    phases: int
    cores: int
    verdict: LaunchVerdict

    @property
    def text(self) -> str:
        """What is said of a launch that is not wrong."""
        left = self.verdict.open
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        said = f"not proven: {left[0]}{more}" if left else "proven"
        return (
            f"at @{_callee(self.call)}: {self.phases} phases, {self.cores} cores, "
            f"{self.verdict.meetings} meetings, {self.verdict.pairs} overlapping pairs: {said}"
        )


def checked_launches(root: Op, main: Op, machine: Machine) -> Iterator[CheckedLaunch]:
    """Checks the launches of a host's function one after the other."""
    check = _Check(root, main, machine)
    for phases in _launches(main, check.is_alone):
        verdict, cores = check.launch(phases)
        count = sum(not phase.meeting for phase in phases)
        yield CheckedLaunch(phases[0].calls[0], count, cores, verdict)


@dataclass
class _Phase:
    """Calls of kernels that run side by side, or of a meeting, whose number is `meeting` then."""

    calls: list[Op]
    meeting: int = 0


def _launches(main: Op, is_alone: Callable[[Op], bool]) -> list[list[_Phase]]:
    """Launches as the host reads them: what is behind a meeting belongs to the one before, and
    calls of one stage run side by side, but for some."""
    found: list[list[_Phase]] = []
    joins, stage, number = False, None, 0
    for call in operations(main, "func.call"):
        own = None if is_alone(call) else attribute(call, STAGE, None)
        if MEETING in call.attributes:
            number += 1
            found[-1:] = [[*(found[-1] if found else []), _Phase([call], number)]]
            joins, stage = True, None
            continue
        if joins:
            found[-1].append(_Phase([call]))
        elif own is not None and own == stage:
            found[-1][-1].calls.append(call)
        else:
            found.append([_Phase([call])])
            number = 0
        joins, stage = False, own
    return found


@dataclass
class _Check:
    """Follows launches of a module; kernels are read once."""

    root: Op
    main: Op
    machine: Machine
    _read: dict[str, KernelPlaces] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = dict(symbols(self.root)).get("kernels")
        self._kernels = dict(symbols(found)) if found is not None else {}
        self._programs = launched_programs(self.root)
        self._host = Accesses(Forms(), planned=False)
        self._shared = _shared_buffers(self.main)

    def launch(self, phases: Sequence[_Phase]) -> tuple[LaunchVerdict, int]:
        """What is proven of a launch, and how many cores it has."""
        cores = max(sum(attribute(call, BLOCKS, 1) for call in phase.calls) for phase in phases)
        steps: list[list[CoreStep]] = [[] for _ in range(cores)]
        meets = False
        try:
            for phase in phases:
                first = 0
                for call in phase.calls:
                    kernel = self._kernel(call)
                    meets = meets or kernel.meets
                    if phase.meeting and not kernel.waits_first:
                        raise NotProvable("pipes may be at work when cores meet between phases")
                    blocks = attribute(call, BLOCKS, 1)
                    for block in range(blocks):
                        steps[first + block] += self._steps(call, phase, kernel, block, blocks)
                    first += blocks
        except NotProvable as error:
            return LaunchVerdict(open=[f"{error}, in @{_callee(call)}"]), cores
        if meets and cores > self.machine.cores:
            text = f"a deadlock: {cores} blocks wait for each other on {self.machine.cores} cores"
            return LaunchVerdict(faults=[text]), cores
        return judge(steps), cores

    def is_alone(self, call: Op) -> bool:
        """Whether a kernel never runs beside others: its scalar unit accesses global memory, or it
        adds to what is there."""
        programs = [self._kernels.get(name) for name in self._programs.get(_callee(call), [])]
        return any(
            "adds" in op.attributes or (op.name != "cce.copy" and _touches_gm(op))
            for kernel in programs
            if kernel is not None
            for op in operations(kernel, "memref.load", "memref.store", "cce.copy")
        )

    def _kernel(self, call: Op) -> KernelPlaces:
        names = self._programs.get(_callee(call), [])
        if len(names) > 1:
            raise NotProvable("programs for two kinds of cores are not followed")
        if not names or names[0] not in self._kernels:
            raise NotProvable("its program is not known")
        (name,) = names
        if name not in self._read:
            kernel = self._kernels[name]
            if not kernel.regions[0].blocks:
                raise NotProvable("it has no body")
            self._read[name] = KernelPlaces(kernel)
        return self._read[name]

    def _steps(
        self, call: Op, phase: _Phase, kernel: KernelPlaces, block: int, blocks: int
    ) -> Iterator[CoreStep]:
        """The steps of a core that runs a block of a kernel, at places of the host's memory."""
        known: dict[ir.Value, AffineForm] = {}
        if phase.meeting:
            place = attribute(call, MEETING)
            number = kernel.argument(place)
            known[number] = AffineForm(phase.meeting, ((number, 1),))
        for step in kernel.steps_of(block, blocks, known):
            yield self._on_host(step, call)

    def _on_host(self, step: BlockStep, call: Op) -> CoreStep:
        memory = step.lines if isinstance(step, BlockMeeting) else step.memory
        if not isinstance(memory.owner, ir.Block):
            raise NotProvable("a kernel has an array of its own in global memory")
        operand = call.operands[ir.BlockArgument(memory).arg_number]
        try:
            place = self._host.of_elements(operand, call)
        except CompileError as error:
            raise NotProvable(str(error.message)) from None
        if place.offset.terms:
            raise NotProvable("the place of an argument is not known")
        start, buffer = place.offset.constant, self._shared.get(place.memory, place.memory)
        if isinstance(step, BlockMeeting):
            first = start // LINE_BYTES
            own = tuple((first + line, ahead) for line, ahead in step.own)
            seen = tuple(first + line for line in step.seen)
            return CoreMeeting(step.op, buffer, step.number, step.relative, own, seen, step.reads)
        return CoreAccess(
            step.op, step.what, buffer, start + step.start, step.dims, step.run, step.exact
        )


def _shared_buffers(main: Op) -> dict[ir.Value | str, ir.Value]:
    """Outputs that are the next values of inputs in the same buffers, and these inputs."""
    arguments = list(main.regions[0].blocks[0].arguments)
    marks = attribute(main, "arg_attrs", ()) or [{}] * len(arguments)
    rows = list(zip(arguments, marks, strict=True))
    inputs = [argument for argument, own in rows if "ascend.output" not in own]
    return {
        argument: inputs[own["ascend.state"]]
        for argument, own in rows
        if "ascend.state" in own and not {"ascend.copied", "ascend.same"} & own.keys()
    }


def _touches_gm(op: Op) -> bool:
    """Whether an operand of an operation is an array in global memory."""
    types = (value.type for value in op.operands)
    return any(isinstance(kind, ir.MemRefType) and space_name(kind) == "GM" for kind in types)


def checked_lines(module: Op) -> list[str]:
    """What `check-meetings` noted of each launch of a module, at any level."""
    main = dict(symbols(module)).get("main")
    return [] if main is None else list(attribute(main, CHECKED, ()))


def _callee(call: Op) -> str:
    """The name of what a call calls."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value
