"""check-meetings: proves that the cores of a launch come through its meetings and do not race.

before:
    func.func @main(..) { ..
      call @a(%x, %t) {ascend.blocks = 8 : i64}
      call @meeting_of_8(%counters, %c0_i64) {ascend.blocks = 8 : i64, ascend.meeting = 1 : i64}
      call @b(%t, %y) {ascend.blocks = 8 : i64}
after:
    func.func @main(..) attributes {ascend.checked_launches = [
      "launch 1 at @a: 2 phases, 8 cores, 1 meeting, 112 overlapping pairs: proven"
    ]} ..

Overlapping pairs are accesses of two cores whose ranges of bytes do so between meetings of all:
strides or meetings of some, or flags, tell them apart.

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

On a split machine the cube core and the vector cores of a block have programs of their own, and
flags for each other instead of counters. Both are followed, and what the pipes of a core know of
each other (`core_pipes`), as a flag is set behind the work of one pipe. The flags
(`davinci.passes.analysis.flag_order`) show the same, and

* that sets of a flag which count on one core come in a known order, that no counter passes what it
  holds in whatever order cores run, and that no flag is left set for the next launch.

Needs kernels with cce operations and their calls (`convert-ascend-to-cce`), on a split machine as
`insert-sync` leaves them; launches of other kernels are not proven. The module is not changed but
for the attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.isa.counters import LINE_BYTES
from davinci.machine import CUBE_CORE, VECTOR_CORE, Machine
from davinci.mlir import Op, callee_of, ir, operations, symbols
from davinci.passes.analysis.accesses import Accesses
from davinci.passes.analysis.affine import AffineForm, Forms
from davinci.passes.analysis.block_places import KernelPlaces
from davinci.passes.analysis.block_steps import (
    BlockMeeting,
    FlagSet,
    FlagWait,
    GlobalAccess,
    ProgramSteps,
)
from davinci.passes.analysis.core_pipes import PIPES, Numbers
from davinci.passes.analysis.flag_order import CorePlace, judge_flags
from davinci.passes.analysis.kernels import (
    BLOCKS,
    MEETING,
    STAGE,
    known_kernels,
    launched_programs,
    runs_on_cube,
    scalar_accesses,
)
from davinci.passes.analysis.meeting_order import (
    NO_PIPE,
    CoreAccess,
    CoreFlagSet,
    CoreMeeting,
    CoreStep,
    LaunchVerdict,
    PipeWork,
    judge,
)
from davinci.passes.analysis.not_provable import NotProvable
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
        by_flags: whether its cores have flags for each other.
    """

    call: Op
    phases: int
    cores: int
    verdict: LaunchVerdict
    by_flags: bool = False

    @property
    def text(self) -> str:
        """What is said of a launch that is not wrong."""
        left = self.verdict.open
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        said = f"not proven: {left[0]}{more}" if left else "proven"
        counts = (
            _counted(self.phases, "phase"),
            _counted(self.cores, "core"),
            _counted(self.verdict.meetings, "wait" if self.by_flags else "meeting"),
            _counted(self.verdict.pairs, "overlapping pair"),
        )
        return f"at @{callee_of(self.call)}: {', '.join(counts)}: {said}"


def _counted(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def checked_launches(root: Op, main: Op, machine: Machine) -> Iterator[CheckedLaunch]:
    """Checks the launches of a host's function one after the other."""
    check = _Check(root, main, machine)
    for phases in _launches(main, check.is_alone):
        verdict, cores = check.split_launch(phases) if machine.split else check.launch(phases)
        count = sum(not phase.meeting for phase in phases)
        yield CheckedLaunch(phases[0].calls[0], count, cores, verdict, machine.split)


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
    _followed: dict[tuple[str, int, int, int], ProgramSteps] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._kernels = known_kernels(self.root)
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
            return LaunchVerdict(open=[f"{error}, in @{callee_of(call)}"]), cores
        if meets and cores > self.machine.cores:
            text = f"a deadlock: {cores} blocks wait for each other on {self.machine.cores} cores"
            return LaunchVerdict(faults=[text]), cores
        return judge(steps), cores

    def split_launch(self, phases: Sequence[_Phase]) -> tuple[LaunchVerdict, int]:
        """The verdict of a launch on a split machine, and how many cube and vector cores it has."""
        launch = _SplitLaunch(self.machine)
        try:
            for phase in phases:
                for call in phase.calls:
                    if len(phase.calls) > 1:
                        raise NotProvable("kernels side by side are not followed")
                    self._run(call, launch)
        except NotProvable as error:
            return LaunchVerdict(open=[f"{error}, in @{callee_of(call)}"]), len(launch.steps)
        return launch.verdict(), len(launch.steps)

    def _run(self, call: Op, launch: _SplitLaunch) -> None:
        """Has the cores of a launch run the programs of a kernel."""
        programs = self._programs.get(callee_of(call), [])
        both, blocks = len(programs) > 1, attribute(call, BLOCKS, 1)
        if both and self.machine.direct_paths:
            raise NotProvable("what cores leave in each other's memories is not followed")
        for name in programs:
            kernel = self._places(name)
            on_cube = runs_on_cube(self._kernels[name])
            for block in range(blocks):
                for core in launch.cores_of(block, on_cube, both):
                    key = name, block, blocks, core.number if both else 0
                    if key not in self._followed:
                        self._followed[key] = kernel.program_of(*key[1:])
                    launch.run(core, self._followed[key], partial(self._on_host, call=call))

    def is_alone(self, call: Op) -> bool:
        """Whether a kernel never runs beside others: its scalar unit accesses global memory, or it
        adds to what is there."""
        names = self._programs.get(callee_of(call), [])
        return any(
            any(scalar_accesses(kernel))
            or any("adds" in op.attributes for op in operations(kernel, "cce.copy"))
            for kernel in map(self._kernels.get, names)
            if kernel is not None
        )

    def _kernel(self, call: Op) -> KernelPlaces:
        (name,) = self._programs.get(callee_of(call), [""])
        return self._places(name)

    def _places(self, name: str) -> KernelPlaces:
        """The places in memory of a program's operations, which are read once."""
        if name not in self._kernels:
            raise NotProvable("its program is not known")
        if name not in self._read:
            kernel = self._kernels[name]
            if not kernel.regions[0].blocks:
                raise NotProvable("it has no body")
            self._read[name] = KernelPlaces(kernel, self.machine.split)
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
            assert isinstance(step, GlobalAccess | BlockMeeting), "flags are of split machines"
            yield self._on_host(step, call=call)

    def _on_host(
        self, step: GlobalAccess | BlockMeeting, work: PipeWork = NO_PIPE, *, call: Op
    ) -> CoreStep:
        """A step of a kernel at its place in the host's memory, in a call of the kernel.

        Args:
            work: of the core's pipes, that the step is part of.

        Raises:
            NotProvable: it is no argument of the kernel whose place is known.
        """
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
        first, dims, run = start + step.start, step.dims, step.run
        return CoreAccess(step.op, step.what, buffer, first, dims, run, step.exact, work)


@dataclass
class _SplitLaunch:
    """What the cores of a launch on a split machine do, phase after phase.

    Attributes:
        steps: of each core, work of its pipes counted from the launch's beginning.
        of_all: whether all cores of a kind wait for each other.
    """

    machine: Machine
    steps: dict[CorePlace, list[CoreStep]] = field(default_factory=dict)
    of_all: bool = False
    _pipes: dict[CorePlace, tuple[Numbers, Numbers]] = field(default_factory=dict)
    """Of each core what its pipes have done so far, and what its scalar unit knows of that."""

    def cores_of(self, block: int, on_cube: bool, both: bool) -> Iterator[CorePlace]:
        """Where a program of a block runs, for cube cores or for vector cores; `both` if there is
        one for each."""
        vectors = self.machine.core_types[VECTOR_CORE].count
        if on_cube:
            yield CorePlace(CUBE_CORE, block)
        elif both:
            yield from (CorePlace(VECTOR_CORE, block, number) for number in range(vectors))
        else:
            yield CorePlace(VECTOR_CORE, *divmod(block, vectors))

    def run(
        self,
        core: CorePlace,
        program: ProgramSteps,
        on_host: Callable[[GlobalAccess, PipeWork], CoreStep],
    ) -> None:
        """A core runs a program behind those it has run; `on_host` gives an access its place in the
        host's memory and in the work of the core."""
        none = (0,) * len(PIPES)
        before, known = self._pipes.get(core, (none, none))
        found = self.steps.setdefault(core, [])

        def complete(numbers: Numbers) -> Numbers:
            """From the launch's beginning on."""
            rows = zip(before, known, numbers, strict=True)
            return tuple(old if own < 0 else base + own for base, old, own in rows)

        for step in program.steps:
            if isinstance(step, GlobalAccess):
                pipe = PIPES.index(step.pipe)
                base, (first, last) = before[pipe], step.numbers
                found.append(on_host(step, PipeWork(pipe, base + first, base + last)))
            elif isinstance(step, FlagSet):
                pipe = PIPES.index(step.pipe)
                number, numbers = before[pipe] + step.number, complete(step.complete)
                found.append(CoreFlagSet(step.op, pipe, step.flag, step.of_all, number, numbers))
                self.of_all |= step.of_all
            elif isinstance(step, FlagWait):
                found.append(step)
        done = tuple(map(sum, zip(before, program.done, strict=True)))
        self._pipes[core] = done, complete(program.complete)

    def verdict(self) -> LaunchVerdict:
        """The verdict of the flags and accesses of all cores of the launch."""
        groups, cores = 1 + max(core.group for core in self.steps), self.machine.cores
        if self.of_all and groups > cores:
            text = f"a deadlock: {groups} blocks wait for each other on {cores} cores"
            return LaunchVerdict(faults=[text])
        limits = self.machine.cross_core
        assert limits is not None, "split machines have flags between cores"
        return judge_flags(list(self.steps), list(self.steps.values()), limits.depth)


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


def checked_lines(module: Op) -> list[str]:
    """What `check-meetings` noted of each launch of a module, at any level."""
    main = dict(symbols(module)).get("main")
    return [] if main is None else list(attribute(main, CHECKED, ()))
