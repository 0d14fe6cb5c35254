"""load-before-meetings: weights of a phase are loaded before the cores meet in front of it.

before:
    call @norm(%x, %t) {ascend.blocks = 2 : i64}
    call @meeting_of_16() {ascend.blocks = 16 : i64, ascend.meeting = -1 : i64}
    call @product(%t, %w, %y) {ascend.blocks = 16 : i64}
after:
    call @norm_then_product(%x, %t, %t, %w, %y) {ascend.blocks = 16 : i64}
    ...
    module @kernels {
      func.func @norm_then_product_aic(..) attributes {ascend.core = "aic"} {
        "cce.copy"(%w_tile, %w_l1)                        // a load of @product
        "cce.wait_core_flag"() {flag = 0 : i64}           // the meeting
        "cce.set_core_flag"() {flag = 1 : i64, of_all, pipe = "FIX"}
        "cce.wait_core_flag"() {flag = 1 : i64}
        "cce.nd2nz"(%t_tile, %t_l1)                       // all else of @product
        ...
      }
      func.func @norm_then_product_aiv(..) attributes {ascend.core = "aiv"} {
        ...                                               // @norm, of the first two vector cores
        "cce.set_core_flag"() {flag = 0 : i64, pipe = "MTE3"}
      }
    }

A phase of a launch begins with empty memories: the first weights that its cube cores load are late,
and while vector cores alone have a phase nothing is loaded at all. Here such a phase and those in
front of it, back to the one before with work for the cube, become one kernel, whose cores meet in
it. Loads to L1 at the head of the phase, of what nothing in the program writes, come behind the
last load of the phase before, as soon as L1 has room beside what that one still holds. So they
delay no load of it, and `plan-memory` and `insert-sync` treat them like all others.

What came first waits in L1 until the cores have met. So loads are moved where those of constants
take longer than what any other pipe does in the phase by as much as the first ones take: what
waited is worked off meanwhile. Cores without work have shares of the bandwidth in a kernel of all
cores; so vector cores' phases are part of it where they take no longer than the loads, although
each core has the share of one of all, and phases of fewer cube cores than the launch has are not.

Kernels whose scalar unit loads what others write, or that are ordered by hand, stay as they are. A
kernel is in a chain once, or several times in a row, so that equal layers share chains. On machines
whose cores are not apart nothing is changed.

Needs buffers without addresses and no flags or barriers, as `multi-buffer` leaves them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import space_name
from davinci.dialects.cce.effects import SYNC_OPS, Effects, effects_of
from davinci.isa.cross_core import BY_FLAGS
from davinci.machine import CUBE_CORE, VECTOR_CORE, Machine, blocks_a_core, prices
from davinci.mlir import Op, callee_of, ir, operations, symbols
from davinci.passes.analysis.accesses import Accesses
from davinci.passes.analysis.affine import Forms
from davinci.passes.analysis.dependences import Dependences
from davinci.passes.analysis.kernels import (
    BLOCKS,
    CORE,
    MEETING,
    launched_programs,
    scalar_accesses,
)
from davinci.passes.analysis.meetings import meetings_in
from davinci.passes.cce.join_launches import is_never_written
from davinci.passes.cce.ordering import is_free
from davinci.passes.cce.phase_chains import (
    LOADS,
    ChainBuilder,
    ChainPhase,
    cube_durations,
    phase_cycles,
    time_of,
)
from davinci.passes.pipeline.base import Pass, option, register_pass

ANOTHERS = "hir"
"""The dialect of another compiler's operations."""

ARENA, ARENA_BUFFERS = "ascend.arena", "ascend.arena_buffers"
"""Of the host's function: values in the arena by the numbers of the calls that use them."""


@register_pass
@dataclass(frozen=True)
class LoadBeforeMeetingsPass(Pass):
    """Load weights of a phase before the cores of the launch meet in front of it."""

    NAME = "load-before-meetings"

    machine: str = option("ascend910", "machine file that says how cores meet")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        main, module = (dict(symbols(op)).get(name) for name in ("main", "kernels"))
        if not machine.split or main is None or module is None:
            return
        made, joined, replaced = ChainBuilder(op, main, machine), list[int](), set[str]()
        for cores, launch in list(_launches(op, main, module, machine)):
            for chain in _chains(launch, cores, machine):
                names = {phase.kernel for phase in chain}
                names |= {callee_of(p.meeting) for p in chain[1:] if p.meeting is not None}
                if made.build(chain, cores):
                    replaced |= names
                    joined += [phase.number for phase in chain[1:]]
        if joined:
            _renumber(main, joined)
            _drop_unused(op, module, replaced)


def _launches(
    root: Op, main: Op, module: Op, machine: Machine
) -> Iterator[tuple[int, list[ChainPhase | None]]]:
    """Cores and phases of each launch whose cores meet by flags; None for what stays alone."""
    programs_of, kernels = launched_programs(root), dict(symbols(module))
    phases: list[ChainPhase | None] = []
    cores = number = 0
    meeting: Op | None = None
    for call in operations(main, "func.call"):
        if MEETING in call.attributes:
            meeting = call if attribute(call, MEETING) == BY_FLAGS else None
            cores = attribute(call, BLOCKS)
            continue
        if meeting is None:
            if len(phases) > 1:
                yield cores, phases
            phases = []
        names = programs_of.get(callee_of(call), [])
        programs = {
            attribute(kernels[name], CORE, "").upper(): kernels[name]
            for name in names
            if name in kernels
        }
        known = bool(programs) and programs.keys() <= {CUBE_CORE, VECTOR_CORE}
        if known and all(_may_be_joined(program, call) for program in programs.values()):
            cube = programs.get(CUBE_CORE)
            loads = [] if cube is None else _first_loads(cube, call, machine)
            phases.append(ChainPhase(number, call, meeting, programs, loads))
        else:
            phases.append(None)
        meeting, number = None, number + 1
    if len(phases) > 1:
        yield cores, phases


def _may_be_joined(kernel: Op, call: Op) -> bool:
    """Whether a kernel may be part of another one: its pipes are not ordered by hand or by another
    compiler, its scalar unit loads at most what nothing in the program writes, and its cores do not
    meet by counters."""
    ordered = "cce.synced" in kernel.attributes or operations(kernel, ANOTHERS, *SYNC_OPS)
    if ordered or meetings_in(kernel):
        return False
    return all(load and is_never_written(call, array) for load, array in scalar_accesses(kernel))


def _first_loads(kernel: Op, call: Op, machine: Machine) -> list[Op]:
    """What a cube core may do first: loads to L1 of arrays that nothing in the program writes, and
    fills, which depend on nothing that stands before them in the kernel. None where the kernel does
    not work off what waits for the meeting while it loads the rest."""
    accesses = Accesses(Forms(), planned=False)
    dependences, found = Dependences(accesses, []), dict[int, Op]()
    for number, view in enumerate(kernel.regions[0].blocks[0].operations):
        op = view.operation
        if is_free(op):
            continue
        effects = effects_of(op)
        if op.regions or effects is None:
            break
        reads = [accesses.of_operand(value, op) for value in effects.reads]
        writes = [accesses.of_operand(value, op) for value in effects.writes]
        before = dependences.add(number, reads, writes)
        if before.keys() <= found.keys() and _fills_l1(effects, call):
            found[number] = op
    first = list(found.values())
    durations = cube_durations(machine, attribute(call, BLOCKS, 1))
    busy: Counter[str] = Counter()
    for op in operations(kernel):
        effects = effects_of(op)
        if effects is not None and effects.pipe != "S":
            pipe = "constants" if _fills_l1(effects, call) else effects.pipe
            busy[pipe] += time_of(op, effects.pipe, durations)
    constants = busy.pop("constants", 0)
    waiting = sum(time_of(op, LOADS, durations) for op in first)
    return first if constants - max(busy.values(), default=0) >= waiting else []


def _fills_l1(effects: Effects, call: Op) -> bool:
    """Whether an operation fills L1 with what nothing in the program writes."""
    if effects.pipe != "MTE2" or any(space_name(v.type) != "L1" for v in effects.writes):
        return False
    return all(space_name(v.type) == "GM" and is_never_written(call, v) for v in effects.reads)


def _chains(
    launch: Sequence[ChainPhase | None], cores: int, machine: Machine
) -> Iterator[list[ChainPhase]]:
    """Phases of a launch that become kernels: up to those whose loads come earlier so, each behind
    one with work for the cube, or behind it. One of the cube whose own loads cannot is in between
    where there is time in front of it, as vector cores alone have phases there."""
    chain, behind = list[ChainPhase](), list[ChainPhase]()
    for phase in [*launch, None]:
        if phase is None or (phase.has_cube and phase.blocks != cores):
            if len(chain) > 1:
                yield chain
            chain, behind = [], []
        elif not phase.has_cube or (
            not phase.loads and behind and not any(each.has_cube for each in behind)
        ):
            behind.append(phase)
        else:
            fills = phase.loads and _fills_time(phase, behind, cores, machine)
            if fills and _may_follow([*behind, phase], chain):
                chain, behind = [*chain, *behind, phase], []
                continue
            if len(chain) > 1:
                yield chain
            chain, behind = [*(behind if fills else []), phase], []


def _fills_time(
    phase: ChainPhase, behind: Sequence[ChainPhase], cores: int, machine: Machine
) -> bool:
    """Whether the first loads of a phase take as long as those phases before it that vector cores
    have for themselves, if each of the vector cores has the same share of the bandwidth."""
    durations = cube_durations(machine, cores)
    time = float(sum(time_of(op, LOADS, durations) for op in phase.loads))
    own = machines.for_vector(machine)
    share = prices.share_of(own, cores * blocks_a_core(machine, {VECTOR_CORE}, {CUBE_CORE}))
    for each in behind:
        if each.has_cube:
            continue
        work = each.first.attributes.get("ascend.work", None)
        if work is None:
            return False
        moved = {item.name: ir.IntegerAttr(item.attr).value for item in work}
        read, write = (moved.get(f"{way}_bytes", 0) / each.blocks for way in ("read", "write"))
        time -= phase_cycles(machine, cores) + read / share.read + write / share.write
    return time >= 0


def _may_follow(phases: Sequence[ChainPhase], chain: Sequence[ChainPhase]) -> bool:
    """Whether phases may be the next ones of a chain: no kernel of theirs is part of it, but for
    the last one, which may come again."""
    last = chain[-1].kernel if chain else ""
    known = {phase.kernel for phase in chain}
    new = [name for name, _ in groupby(phase.kernel for phase in phases)]
    return known.isdisjoint(new[1:] if new[0] == last else new)


def _renumber(main: Op, joined: Sequence[int]) -> None:
    """Counts calls of kernels anew where values of the arena are, of which `joined` are part of the
    call before them."""

    def new(number: int) -> int:
        return number - sum(each <= number for each in joined)

    if ARENA in main.attributes:
        values = attribute(main, ARENA)
        places = [new(x) if n % 4 > 1 else x for n, x in enumerate(values)]
        main.attributes[ARENA] = ir.DenseI64ArrayAttr.get(places)
    if ARENA_BUFFERS in main.attributes:
        buffers = [
            ir.DenseI64ArrayAttr.get([buffer, *map(new, writers)])
            for buffer, *writers in attribute(main, ARENA_BUFFERS)
        ]
        main.attributes[ARENA_BUFFERS] = ir.ArrayAttr.get(buffers)


def _drop_unused(root: Op, module: Op, names: Collection[str]) -> None:
    """Erases what stands for kernels of these names, and the kernels, where nobody calls them."""
    called = {callee_of(call) for call in operations(root, "func.call")}
    programs_of = launched_programs(root)
    kept = {part for name in programs_of if name in called for part in programs_of[name]}
    declared, kernels = dict(symbols(root)), dict(symbols(module))
    for name in names:
        if name not in called:
            declared[name].erase()
            for part in programs_of[name]:
                if part not in kept and part in kernels:
                    kernels.pop(part).erase()
