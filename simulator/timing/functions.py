"""The schedule of a vector function, compiled: instructions on registers that the vector unit
fetches itself and starts as soon as their operands are there, some of them in a cycle.

The scalar unit calls a function with one instruction; the vector pipe takes it as one piece of
work, whose cycles follow from its instructions alone (`machine.functions.VectorFunctions`):

* so many instructions a cycle come to the unit, and of those that have not begun it holds so many;
* an instruction begins when its operands are ready; registers are renamed, so nothing waits for a
  register to be free;
* of the instructions that compute two begin in a cycle, and each keeps one of two units, of which
  there are pairs for simple functions and for exp, division and the like;
* loads begin in their order, and stores in theirs. In a cycle each of the two banks of a group of
  UB serves one access of 256 bytes, and one of these may be a store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from davinci.isa.core import Instruction, Space
from davinci.machine import Vector, VectorFunctions
from davinci.machine.functions import family_of
from davinci.native import Ints, ints_at
from davinci.simulator.timing.layout import LIBRARY, FunctionWord, StepColumn, Word
from davinci.units import REPEAT_BLOCKS

LOAD, STORE, SIMPLE, SPECIAL = 1, 2, 3, 4
"""Units of a vector function."""

UNIT_BITS, BANK_BIT, REGISTER_BITS = 3, 3, 6
FIRST_REGISTER = BANK_BIT + 1
REGISTERS = 4
"""An instruction in one number: its unit, the bank that it accesses, and the registers that it
writes and reads, 1 more than their numbers or 0."""

SLOT_ROOM = FunctionWord.COLUMNS - FunctionWord.SLOTS

BEGUN, SPECIALS, BANKS, STORED, CYCLE = 0, 2, 4, 6, 8
"""Bits of what a cycle is used for: instructions that begin to compute, special units that are
busy, banks, a store; and the cycle itself, as cycles share the words of a ring."""


def beginning(unit: VectorFunctions) -> Sequence[int]:
    """The first words of the state of a time line: `FunctionWord` up to `LAST_LOAD`."""
    return [0, 0, 1, unit.start_cycles, unit.drain_cycles, unit.window, unit.width]


def packed(record: Instruction, places: Mapping[str, int], vector: Vector) -> int:
    """An instruction as the schedule sees it.

    Args:
        record: the instruction.
        places: of its operands, in blocks of 32 bytes.
        vector: says which of its functions are special, and how UB is divided.
    """
    unit, number, shift = vector.functions, 0, FIRST_REGISTER
    assert unit is not None, "no registers without functions"
    kind = SPECIAL if family_of(record.name) in unit.special else SIMPLE
    named = sorted(record.operands, key=lambda operand: not operand.writes)
    if all(operand.space != Space.VREG for operand in named if operand.writes):
        shift += REGISTER_BITS  # nothing is written
    for operand in named:
        place = places[operand.name]
        if operand.space == Space.VREG:
            number |= (place // REPEAT_BLOCKS + 1) << shift
            shift += REGISTER_BITS
        else:
            kind = STORE if operand.writes else LOAD
            number |= (place // vector.bank_groups % 2) << BANK_BIT
    return number | kind


@LIBRARY.function
def call(t: Ints, count: int) -> None:
    """A function of so many instructions begins."""
    f = t[Word.FUNCTION]
    t[Word.FUNCTION_LEFT] = count
    base = t[f + FunctionWord.END] + SLOT_ROOM
    t[f + FunctionWord.ISSUED] = 0
    t[f + FunctionWord.BASE] = base
    t[f + FunctionWord.END] = base
    t[f + FunctionWord.LAST_LOAD] = base
    t[f + FunctionWord.LAST_STORE] = base
    for i in range(64):
        t[f + FunctionWord.READY + i] = base
    for i in range(t[f + FunctionWord.WINDOW]):
        t[f + FunctionWord.LATEST + i] = base


@LIBRARY.function
def register(t: Ints, step: int) -> None:
    """Puts the next instruction of a function into its schedule."""
    f = t[Word.FUNCTION]
    steps = ints_at(t[Word.STEPS])
    row = step * StepColumn.COLUMNS
    what = steps[row + StepColumn.EVENT]
    keeps = steps[row + StepColumn.OCCUPANCY]
    unit = what & (1 << UNIT_BITS) - 1
    number = t[f + FunctionWord.ISSUED]
    t[f + FunctionWord.ISSUED] = number + 1
    begin = t[f + FunctionWord.BASE] + number // t[f + FunctionWord.WIDTH]
    first = f + FunctionWord.LATEST
    for i in range(1, t[f + FunctionWord.WINDOW]):
        if t[f + FunctionWord.LATEST + i] < t[first]:
            first = f + FunctionWord.LATEST + i
    begin = max(begin, t[first])
    for i in range(1, REGISTERS):
        source = what >> FIRST_REGISTER + i * REGISTER_BITS & (1 << REGISTER_BITS) - 1
        if source:
            begin = max(begin, t[f + FunctionWord.READY + source - 1])
    if unit == LOAD:
        begin = max(begin, t[f + FunctionWord.LAST_LOAD])
    if unit == STORE:
        begin = max(begin, t[f + FunctionWord.LAST_STORE])
    while not take(t, f, unit, what >> BANK_BIT & 1, begin, keeps):
        begin += 1
    if unit == LOAD:
        t[f + FunctionWord.LAST_LOAD] = begin
    if unit == STORE:
        t[f + FunctionWord.LAST_STORE] = begin
    t[first] = max(t[first], begin)
    end = begin + steps[row + StepColumn.LATENCY]
    written = what >> FIRST_REGISTER & (1 << REGISTER_BITS) - 1
    if written:
        t[f + FunctionWord.READY + written - 1] = end
    t[f + FunctionWord.END] = max(t[f + FunctionWord.END], begin + keeps)


@LIBRARY.function
def take(t: Ints, f: int, unit: int, bank: int, begin: int, keeps: int) -> int:
    """Takes what an instruction needs from cycle `begin` on, if it is free; whether it was."""
    used = used_of(t, f, begin)
    if unit <= STORE:
        if used >> BANKS + bank & 1 or (unit == STORE and used >> STORED & 1):
            return 0
        used |= 1 << BANKS + bank
        if unit == STORE:
            used |= 1 << STORED
        put(t, f, begin, used)
        return 1
    if (used >> BEGUN & 3) > 1:
        return 0
    if unit == SPECIAL:
        for cycle in range(begin, begin + keeps):
            if (used_of(t, f, cycle) >> SPECIALS & 3) > 1:
                return 0
        for cycle in range(begin, begin + keeps):
            put(t, f, cycle, used_of(t, f, cycle) + (1 << SPECIALS))
    put(t, f, begin, used_of(t, f, begin) + (1 << BEGUN))
    return 1


@LIBRARY.function
def used_of(t: Ints, f: int, cycle: int) -> int:
    """The bits of what a cycle is used for, see `BEGUN`; 0 if its word is of another cycle."""
    word = t[f + FunctionWord.SLOTS + cycle % SLOT_ROOM]
    return word & (1 << CYCLE) - 1 if word >> CYCLE == cycle else 0


@LIBRARY.function
def put(t: Ints, f: int, cycle: int, used: int) -> None:
    """Stores the bits of what a cycle is used for."""
    t[f + FunctionWord.SLOTS + cycle % SLOT_ROOM] = cycle << CYCLE | used
