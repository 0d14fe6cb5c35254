"""Mutation of programs for cube and vector cores: one access to a slot of a ring is to the next.

    copy_gm_to_cbuf  L1 0x0      copy_gm_to_cbuf  L1 0x0
    copy_gm_to_cbuf  L1 0x800    copy_gm_to_cbuf  L1 0x800
    copy_gm_to_cbuf  L1 0x0  ->  copy_gm_to_cbuf  L1 0x800

What instructions of one form reach of a memory again and again, and hand to another pipe or core
or take from it, are the slots of a ring. The simulator must report a mutant if the order that is
worked out independently does not hold any more, or if a slot is read that nobody wrote. Where
neither is so, the mutant gives one result in whatever order, and no check for races can know that
another one was meant; so its results are compared, in some interleavings too.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np

from davinci.isa.core import Access, Pipe, Space
from fuzz.group_interleavings import contents
from fuzz.hivm_mutation import OTHER_RESULTS, HivmOutcomes, MutatedLaunch, note
from fuzz.interleaving import Run
from fuzz.stream_steps import Step, footprint, step_of

ORDERS = 2
"""Random interleavings in which a mutant that is ordered must leave the same bytes."""

CUBE = (Space.L1, Space.L0A, Space.L0B, Space.L0C)
"""Memories of a cube core."""

Operand = tuple[int, int, int]
"""A core, one of its instructions, and the word of that which has the address."""

Memory = tuple[int, Space]
"""A memory of a core; all have the same global memory, that of core 0."""


def judge_slots(judged: MutatedLaunch, outcomes: HivmOutcomes, every: int = 1) -> None:
    """Judges each `every`th mutant of the rings of a launch."""
    meant = results(judged)
    for space, access, address in islice(shifts(judged), 0, None, every):
        mutant = shifted(judged, access, address)
        found, said = mutant.outcome(mutant.whole)
        if found in ("redundant", "false alarm") and (mine := results(mutant)) != meant:
            alike = all(results(mutant, seed) == mine for seed in range(ORDERS))
            found = "reported" if said else OTHER_RESULTS if alike else "escaped"
        if found == "false alarm" and reads_unwritten(mutant):
            found = "reported"
        note(outcomes, judged.launch.name, f"slot in {space.name} shifted", found, said)


def shifts(judged: MutatedLaunch) -> Iterator[tuple[Space, Operand, int]]:
    """Accesses to slots, and the address of the next slot of each."""
    for space, ring in rings(judged):
        slots = sorted(set(ring.values()))
        following = dict(zip(slots, [*slots[1:], *slots[:1]], strict=True))
        for operand, address in ring.items():
            if len(slots) > 1:
                yield space, operand, following[address]


def rings(judged: MutatedLaunch) -> list[tuple[Space, Mapping[Operand, int]]]:
    """Addresses of the accesses of each form, by a core, to what is handed over in a memory: those
    that recur."""
    handed = HandedOver(judged.steps)
    found: dict[tuple[object, ...], dict[Operand, int]] = defaultdict(dict)
    spaces: dict[tuple[object, ...], Space] = {}
    for core, steps in enumerate(judged.steps):
        for i, step in enumerate(steps):
            operands = step.record.operands
            words = judged.streams[core][i, 1:].tolist()
            for number, operand in enumerate(operands):
                if handed.at(core, step.accesses[operand.writes], operand.space, words[number]):
                    form = core, step.record.mnemonic, number, *words[len(operands) :]
                    spaces[form] = operand.space
                    found[form][core, i, 1 + number] = words[number]
    uses = {form: Counter(ring.values()) for form, ring in found.items()}
    return [
        (spaces[form], {at: low for at, low in ring.items() if uses[form][low] > 1})
        for form, ring in found.items()
    ]


class HandedOver:
    """Bytes of all memories that one pipe or core writes and another one reads."""

    def __init__(self, programs: Sequence[Sequence[Step]]) -> None:
        ends: dict[Memory, int] = defaultdict(int)
        for step in chain(*programs):
            for part in (*step.reads, *step.writes):
                where = _memory(step.core, part.space)
                ends[where] = max(ends[where], int(part.ends[-1]))
        # A bit for each pipe of each core.
        users = {where: np.zeros((2, end), np.uint64) for where, end in ends.items()}
        bits: dict[tuple[int, Pipe], np.uint64] = {}
        for step in chain(*programs):
            bit = bits.setdefault((step.core, step.pipe), np.uint64(1 << len(bits)))
            for writes, parts in enumerate((step.reads, step.writes)):
                for part in parts:
                    marks = users[_memory(step.core, part.space)][writes]
                    for start, end in zip(part.starts.tolist(), part.ends.tolist(), strict=True):
                        marks[start:end] |= bit
        self._bytes = {}
        for where, (readers, writers) in users.items():
            both = readers | writers
            several = (both & (both - np.uint64(1))) != 0
            self._bytes[where] = several & (readers != 0) & (writers != 0)

    def at(self, core: int, accesses: Sequence[Access], space: Space, address: int) -> bool:
        """Whether one of the accesses that begin at an address reaches bytes that are handed over:
        several touch them, some to read and some to write."""
        mine = [a for a in accesses if a.space == space and a.address == address]
        return any(
            self._bytes[_memory(core, space)][start:end].any()
            for part in map(footprint, mine)
            if part is not None
            for start, end in zip(part.starts.tolist(), part.ends.tolist(), strict=True)
        )


def _memory(core: int, space: Space) -> Memory:
    return (0 if space == Space.GM else core), space


def shifted(judged: MutatedLaunch, operand: Operand, address: int) -> MutatedLaunch:
    """The launch with one operand of an instruction at another address."""
    core, i, word = operand
    mutant = copy.copy(judged)
    mutant.streams, mutant.steps = [*judged.streams], [*judged.steps]
    records = judged.streams[core].copy()
    records[i, word] = address
    step = judged.steps[core][i]
    changed = step_of(records[i].tolist(), step.registers, core)
    mutant.streams[core] = records
    mutant.steps[core] = [*judged.steps[core][:i], changed, *judged.steps[core][i + 1 :]]
    return mutant


def reads_unwritten(judged: MutatedLaunch) -> bool:
    """Whether a core reads bytes of its cube's memories that none of its instructions wrote before.
    What global memory and UB hold may come from elsewhere: inputs, and stores of the scalar unit.
    """
    machine = judged.launch.device.machine
    for program in judged.steps:
        written = {space: np.zeros(machine.buffer(space.name).bytes, np.bool_) for space in CUBE}
        for step in program:
            for part in step.reads:
                if part.space in CUBE and not all(
                    written[part.space][start:end].all()
                    for start, end in zip(part.starts.tolist(), part.ends.tolist(), strict=True)
                ):
                    return True
            for part in step.writes:
                if part.space in CUBE:
                    for start, end in zip(part.starts.tolist(), part.ends.tolist(), strict=True):
                        written[part.space][start:end] = True
    return False


def results(judged: MutatedLaunch, seed: int | None = None) -> bytes:
    """What a launch leaves in global memory: bytes that it writes and does not read.

    Args:
        seed: of a random interleaving; None: in program order.
    """
    depth, straight = judged.launch.device.machine.sync.queue_depth, seed is None
    memories = contents(judged.steps, np.random.default_rng(1), judged.launch.gm)
    sequential, rng = frozenset(judged.sequential), np.random.default_rng(seed)
    run = Run(judged.steps, memories, sequential, depth, rng, straight, judged.places)
    gm = run.cores[0].memories[Space.GM]
    mine = np.zeros(gm.data.size, np.bool_)
    for written in (True, False):
        for step in chain(*judged.steps):
            for part in step.writes if written else step.reads:
                if part.space == Space.GM:
                    for start, end in zip(part.starts.tolist(), part.ends.tolist(), strict=True):
                        mine[start - gm.origin : end - gm.origin] = written
    return gm.data[mine].tobytes()
