"""Kernels that consist of several phases of a launch, between which their cores meet by flags.

The programs of the phases follow each other, those for cube cores and those for vector cores. A
meeting inside a kernel has flags in the place of the barriers of one between two kernels
(`davinci.passes.cce.meeting_kernels`): each core tells that its loads are complete, and that its
stores are, by the pipe that does them. So what a cube core loads for later phases is not waited for
where it comes behind the first of these flags:

    vector cores                              cube cores
    set_core_flag LOADED    (MTE2)            set_core_flag ALL_LOADED, of all    (MTE2)
    set_core_flag STORED    (MTE3)            loads for later phases
                                              wait_core_flag LOADED, STORED
                                              set_core_flag ALL_STORED, of all    (FIX)
                                              wait_core_flag ALL_LOADED, ALL_STORED
                                              set_core_flag GO                    (FIX)
    wait_core_flag GO

Loads for later phases come behind all stores in the queues, or those would wait for them to pass
the memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import space_name
from davinci.dialects.cce.effects import effects_of
from davinci.isa.core import Pipe
from davinci.machine import CUBE_CORE, VECTOR_CORE, Machine, blocks_a_core, prices
from davinci.mlir import Op, arith, callee_of, func, ir, operations, scf, symbols, unique
from davinci.passes import builder
from davinci.passes.analysis.durations import Durations
from davinci.passes.analysis.kernels import BLOCKS, CORE, PHASES, UNIT, seen_by
from davinci.passes.analysis.lifetimes import alloc_bytes, viewed_buffer
from davinci.passes.analysis.origins import moved_members
from davinci.passes.builder import constant_index
from davinci.passes.cce.meeting_kernels import STORES, declare_launch
from davinci.passes.cce.plan_memory import needed_bytes
from davinci.schedule.meetings import meeting_cycles
from davinci.units import round_up

LOADED, STORED, ALL_LOADED, ALL_STORED, GO = FLAGS = range(5)
"""Flags of a meeting, by their places among those that phases leave free."""

LOADS = "MTE2"
"""The pipe that loads from global memory."""


@dataclass(frozen=True, eq=False)
class ChainPhase:
    """A call of a kernel that is a phase of a launch.

    Attributes:
        number: of the call, among those of kernels.
        meeting: the call of the meeting in front of it; None for the first phase of a launch.
        programs: of the kernel, by kind of core.
        loads: that the cube core may begin with, in their order.
    """

    number: int
    call: Op
    meeting: Op | None
    programs: Mapping[str, Op]
    loads: Sequence[Op]

    @cached_property
    def kernel(self) -> str:
        """The name of the kernel."""
        return callee_of(self.call)

    @property
    def blocks(self) -> int:
        """Blocks that share its work."""
        return int(attribute(self.call, BLOCKS, 1))

    @property
    def has_cube(self) -> bool:
        """Whether cube cores have work in it."""
        return CUBE_CORE in self.programs

    @property
    def first(self) -> Op:
        """The program by which reports know the kernel."""
        return next(iter(self.programs.values()))

    @property
    def key(self) -> tuple[str, int, int]:
        """Phases of equal keys are built in the same way."""
        return self.kernel, self.blocks, len(self.loads)

    @property
    def members(self) -> Sequence[Sequence[str]]:
        """Operators of the kernel, each with the names of its nodes."""
        found: Sequence[Sequence[str]] = attribute(self.first, "ascend.members", ())
        return found

    @property
    def nodes(self) -> list[list[str]]:
        """The nodes that each operator of the kernel computes in this call."""
        named = attribute(self.call, "ascend.members", ())
        if len(named) != len(self.members):
            named = [nodes for _, *nodes in self.members]
            if len(named) == 1:
                named = [attribute(self.call, "ascend.operators", named[0])]
        return [list(nodes) for nodes in named]

    def work(self, kind: str) -> Sequence[Op]:
        """What the program for a kind of core consists of; nothing if there is none."""
        if kind not in self.programs:
            return []
        block = self.programs[kind].regions[0].blocks[0]
        return [view.operation for view in block.operations][:-1]


def cube_durations(machine: Machine, cores: int) -> Durations:
    """Durations of what so many cube cores do."""
    return Durations(machines.for_cube(machine), cores)


def time_of(op: Op, pipe: str, durations: Durations) -> int:
    """Cycles that a pipe, or this core's share of the memory, is busy with an operation."""
    duration = durations.of(op, Pipe[pipe])
    return max(duration.busy, duration.of_memory)


def phase_cycles(machine: Machine, cores: int) -> float:
    """Cycles that a phase of vector cores takes at least: it loads, stores and meets."""
    line = machine.gm.line_bytes
    ends = prices.reading(machine).result(line) + prices.writing(machine).result(line)
    return ends + meeting_cycles(machine, cores)


class ChainBuilder:
    """Builds kernels of several phases, equal ones once, and calls of them."""

    def __init__(self, root: Op, main: Op, machine: Machine) -> None:
        self._root, self._main, self._machine = root, main, machine
        self._made: dict[tuple[tuple[str, int, int], ...], str] = {}

    def build(self, chain: Sequence[ChainPhase], cores: int) -> bool:
        """Replaces calls of phases, and of the meetings between them, by one call of a kernel.

        Args:
            cores: cube cores of the launch.

        Returns:
            Whether there is one: kernels may leave no flags for meetings.
        """
        key = tuple(phase.key for phase in chain)
        if key not in self._made:
            flags = self._free_flags(chain)
            if len(flags) < len(FLAGS):
                return False
            self._made[key] = self._kernel(chain, cores, flags)
        call = chain[-1].call
        names = [name for phase in chain for name in attribute(phase.call, "ascend.operators", ())]
        marks = {
            "callee": ir.FlatSymbolRefAttr.get(self._made[key], call.context),
            BLOCKS: cores,
            "ascend.operators": list(dict.fromkeys(names)),
            "ascend.members": [nodes for phase in chain for nodes in phase.nodes],
        }
        arguments = [value for phase in chain for value in phase.call.operands]
        with call.context:
            place = ir.Location.fused([phase.call.location for phase in chain])
        with place, ir.InsertionPoint(call):
            builder.op("func.call", arguments, [], **marks)
        for phase in chain:
            if phase.meeting is not None and phase is not chain[0]:
                phase.meeting.erase()
            phase.call.erase()
        return True

    def _free_flags(self, chain: Sequence[ChainPhase]) -> list[int]:
        """Flags between cores that no program of the phases uses."""
        limits = self._machine.cross_core
        assert limits is not None, "split machines have flags between cores"
        programs = [program for phase in chain for program in phase.programs.values()]
        used = {
            attribute(op, "flag")
            for program in programs
            for op in operations(program, "cce.set_core_flag", "cce.wait_core_flag")
        }
        return [flag for flag in range(limits.flag_ids) if flag not in used][: len(FLAGS)]

    def _kernel(self, chain: Sequence[ChainPhase], cores: int, flags: Sequence[int]) -> str:
        """Makes the programs of a kernel; returns the name of what stands for them."""
        module = dict(symbols(self._root))["kernels"]
        known = {**dict(symbols(self._root)), **dict(symbols(module))}
        name = unique(f"{chain[0].kernel}_to_{chain[-1].kernel}", known)
        types = [value.type for phase in chain for value in phase.call.operands]
        kinds = sorted(set().union(*(phase.programs for phase in chain)))
        parts = {kind: f"{name}_{kind.lower()}" if len(kinds) > 1 else name for kind in kinds}
        for kind, part in parts.items():
            made = ChainProgram(self._machine, chain, kind, cores, flags)
            program = made.build(module, part, types)
            seen = seen_by(program, self._machine)
            if any(n > seen.buffer(s).bytes for s, n in needed_bytes(program, seen).items()):
                program.erase()
                made = ChainProgram(self._machine, chain, kind, cores, flags, next_only=True)
                made.build(module, part, types)
        declare_launch(self._main, name, list(parts.values()), types)
        return name


class ChainProgram:
    """The program of a kernel of several phases for one kind of core.

    Args:
        cores: cube cores of the launch.
        flags: that meetings take.
        next_only: whether a cube core loads for its next phase at most, so that L1 is theirs.
    """

    def __init__(
        self,
        machine: Machine,
        chain: Sequence[ChainPhase],
        kind: str,
        cores: int,
        flags: Sequence[int],
        next_only: bool = False,
    ) -> None:
        self._machine, self._chain, self._kind = machine, chain, kind
        self._cores, self._next_only = cores, next_only
        self._flags = flags
        self._values: list[dict[ir.Value, ir.Value]] = []
        self._done: list[set[Op]] = [set() for _ in chain]
        self._moved: dict[tuple[int, ir.Location], ir.Location] = {}

    def build(self, module: Op, name: str, types: Sequence[ir.Type]) -> Op:
        """The function, in the module of kernels."""
        labels = [attribute(phase.first, "ascend.label", phase.kernel) for phase in self._chain]
        schedules = [attribute(phase.first, "ascend.schedule", "") for phase in self._chain]
        marks = {
            BLOCKS: self._cores,
            CORE: self._kind.lower(),
            UNIT: "cube" if self._kind == CUBE_CORE else "vector",
            "ascend.op": "phases",
            "ascend.label": ", then ".join(labels),
            "ascend.schedule": "; then ".join(filter(None, schedules)),
            "ascend.members": [list(member) for phase in self._chain for member in phase.members],
            PHASES: [{"key": key, "choices": found} for key, found in self._choices().items()],
        }
        with ir.Location.unknown(module.context):
            with ir.InsertionPoint(module.regions[0].blocks[0]):
                made = func.FuncOp(name, (types, []))
            for key, value in marks.items():
                made.attributes[key] = builder.as_attribute(value)
            made.attributes["ascend.kernel"] = ir.UnitAttr.get()
            block = made.add_entry_block()
            arguments = iter(block.arguments)
            for phase in self._chain:
                own = [next(arguments) for _ in phase.call.operands]
                program = phase.programs.get(self._kind)
                taken = [] if program is None else program.regions[0].blocks[0].arguments
                self._values.append(dict(zip(taken, own, strict=False)))
            with ir.InsertionPoint(block):
                self._cube() if self._kind == CUBE_CORE else self._vector()
                func.ReturnOp([])
        return made.operation

    def _choices(self) -> dict[ir.Attribute, ir.Attribute]:
        """What was decided for the kernels that are phases, by their keys."""
        known = [phase.first.attributes for phase in self._chain]
        return {x["ascend.key"]: x["ascend.choices"] for x in known if "ascend.choices" in x}

    def _cube(self) -> None:
        """Phases of a cube core; in the meeting behind each, what it loads for later ones."""
        numbers = [number for number, phase in enumerate(self._chain) if phase.has_cube]
        loads: dict[int, list[tuple[int, Op]]] = defaultdict(list)
        for before, number in zip([-1, *numbers], numbers, strict=False):
            if number > 0:
                loads[before] += [(number, op) for op in self._chain[number].loads]
        for first, second, third in zip([-1, *numbers], numbers, numbers[1:], strict=False):
            early = self._fitting(first, second, self._chain[third].loads)
            loads[first] += loads[second][:early]
            del loads[second][:early]
        for number, op in loads[-1]:
            self._put(number, op)
        for number, phase in enumerate(self._chain):
            if number > 0:
                self._meet_as_cube(number, loads[number - 1])
            for op in phase.work(CUBE_CORE):
                if number == 0 or op not in phase.loads:
                    self._put(number, op)

    def _fitting(self, first: int, second: int, loads: Sequence[Op]) -> int:
        """How many loads of a later phase begin in front of the second of two phases with work for
        the cube: as many as L1 has room for beside it, while the first one ends and vector cores
        have phases of their own.

        The first one ends when its busiest pipe is done with what follows its last load.

        Args:
            first: number of the first of the two; -1 where the launch begins in front of the other.
        """
        between = second - first - 1
        if self._next_only or between == 0 or self._chain[second].loads:
            return 0
        durations = cube_durations(self._machine, self._cores)
        time = between * phase_cycles(self._machine, self._cores)
        busy: Counter[str] = Counter()
        for op in self._chain[first].work(CUBE_CORE) if first >= 0 else ():
            effects = effects_of(op)
            if effects is not None and effects.pipe == LOADS:
                busy.clear()
            elif effects is not None:
                busy[effects.pipe] += time_of(op, effects.pipe, durations)
        time += max(busy.values(), default=0)
        room = self._cube_machine.buffer("L1").bytes
        room -= sum(map(self._size, self._buffers_in_l1(second)))
        filled, count = set[ir.Value](), 0
        for load in loads:
            filled.add(viewed_buffer(load.operands[-1]))
            if time < 0 or sum(map(self._size, filled)) > room:
                break
            time -= time_of(load, LOADS, durations)
            count += 1
        return count

    @cached_property
    def _cube_machine(self) -> Machine:
        return machines.for_cube(self._machine)

    def _buffers_in_l1(self, number: int) -> list[ir.Value]:
        """Buffers of a phase's cube core."""
        allocs = operations(self._chain[number].programs[CUBE_CORE], "memref.alloc")
        return [alloc.result for alloc in allocs if space_name(alloc.result.type) == "L1"]

    def _size(self, buffer: ir.Value) -> int:
        """Bytes of a buffer in L1."""
        align = self._cube_machine.buffer("L1").align_bytes
        return round_up(alloc_bytes(buffer.owner.operation), align)

    def _vector(self) -> None:
        """Phases of a vector core."""
        lanes = blocks_a_core(self._machine, {VECTOR_CORE}, {CUBE_CORE, VECTOR_CORE})
        for number, phase in enumerate(self._chain):
            if number > 0:
                self._meet_as_vector(number)
            work = phase.work(VECTOR_CORE)
            if not work:
                continue
            if phase.has_cube:
                for op in work:
                    self._put(number, op)
                continue
            index = builder.add(builder.mul(cce.get_block_idx(), lanes), cce.get_sub_block_idx())
            with _only_below(builder.as_value(index), phase.blocks, self._cores * lanes):
                for op in work:
                    self._put(number, op, builder.as_value(index))

    def _meet_as_cube(self, number: int, loads: Sequence[tuple[int, Op]]) -> None:
        """The meeting in front of a phase, for a cube core, and loads for later phases in it."""
        flags, stores = self._flags, STORES[CUBE_CORE]
        has_loaded = self._chain[number - 1].has_cube
        if has_loaded:
            cce.set_core_flag(pipe=LOADS, flag=flags[ALL_LOADED], of_all=True)
        for phase, op in loads:
            self._put(phase, op)
        if self._vector_cores_come(number):
            cce.wait_core_flag(flag=flags[LOADED])
            cce.wait_core_flag(flag=flags[STORED])
        cce.set_core_flag(pipe=stores, flag=flags[ALL_STORED], of_all=True)
        if has_loaded:
            cce.wait_core_flag(flag=flags[ALL_LOADED])
        cce.wait_core_flag(flag=flags[ALL_STORED])
        if self._vector_cores_go_on(number):
            cce.set_core_flag(pipe=stores, flag=flags[GO])

    def _meet_as_vector(self, number: int) -> None:
        """The meeting in front of a phase, for a vector core."""
        if self._vector_cores_come(number):
            cce.set_core_flag(pipe=LOADS, flag=self._flags[LOADED])
            cce.set_core_flag(pipe=STORES[VECTOR_CORE], flag=self._flags[STORED])
        if self._vector_cores_go_on(number):
            cce.wait_core_flag(flag=self._flags[GO])

    def _vector_cores_come(self, number: int) -> bool:
        """Whether vector cores have worked in the phase in front of this one."""
        return VECTOR_CORE in self._chain[number - 1].programs

    def _vector_cores_go_on(self, number: int) -> bool:
        """Whether vector cores work in this phase or in a later one."""
        return any(VECTOR_CORE in phase.programs for phase in self._chain[number:])

    def _put(self, number: int, op: Op, index: ir.Value | None = None) -> None:
        """Adds a copy of an operation of a phase behind copies of what makes its operands.

        Args:
            index: the number of the block for the phase; None if it is that of the launch.
        """
        values, done = self._values[number], self._done[number]
        if op in done:
            return
        for inner in operations(op):
            for value in inner.operands:
                if value not in values and not isinstance(value.owner, ir.Block):
                    owner = value.owner.operation
                    if owner.block == op.block:
                        self._put(number, owner, index)
        done.add(op)
        made = op.clone()
        builder.replace_operands(made, values)
        values.update(zip(op.results, made.results, strict=True))
        first = sum(len(phase.members) for phase in self._chain[:number])
        for inner in operations(made):
            inner.location = self._moved_location(inner.location, first)
            if index is not None and inner.name in ("cce.get_block_idx", "cce.get_block_num"):
                with ir.InsertionPoint(inner), inner.location:
                    own = self._chain[number].blocks
                    known = index if inner.name == "cce.get_block_idx" else constant_index(own)
                inner.result.replace_all_uses_with(known)
                if inner == made.operation:
                    values[op.results[0]] = known

    def _moved_location(self, location: ir.Location, first: int) -> ir.Location:
        key = first, location
        if key not in self._moved:
            self._moved[key] = moved_members(location, first)
        return self._moved[key]


@contextmanager
def _only_below(index: ir.Value, blocks: int, of: int) -> Iterator[None]:
    """Work of the first blocks only, of so many."""
    if blocks >= of:
        yield
        return
    below = arith.CmpIOp(arith.CmpIPredicate.ult, index, constant_index(blocks)).result
    branch = scf.IfOp(below)
    with ir.InsertionPoint(branch.then_block):
        yield
        scf.YieldOp([])
