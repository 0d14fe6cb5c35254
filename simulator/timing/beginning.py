"""What the time line of a block begins with: the layout of its state, and the machine's figures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from davinci.isa.core import Space
from davinci.isa.unit_flags import UNIT_BYTES
from davinci.machine import Machine
from davinci.native import Floats, Ints
from davinci.simulator.core.columns import KEY_WORDS, VA_WORDS
from davinci.simulator.core.events import EVENTS, PIPES
from davinci.simulator.timing.clock import FLAG_COLUMNS
from davinci.simulator.timing.functions import beginning
from davinci.simulator.timing.gm_model import Rates
from davinci.simulator.timing.layout import (
    LANE_COLUMNS,
    LANE_COUNT,
    PART_COLUMNS,
    PARTS_AT,
    STRETCH,
    FunctionWord,
    QueueColumn,
    UnitColumn,
    Word,
)


def units_of(machine: Machine) -> int:
    """The number of fractals in L0C that have a unit flag: none on a machine without fixpipe."""
    return 0 if machine.fixpipe is None else machine.buffer("L0C").bytes // UNIT_BYTES


class Beginning(NamedTuple):
    """What the time line of every block begins with that has the same rates.

    Attributes:
        rates: of its share of global memory.
        keep_rows: whether rows are kept.
        size: of the state.
        state, doubles: see `timing.layout`; of the state what is not written before it is read.
    """

    rates: Rates
    keep_rows: bool
    size: int
    state: Ints
    doubles: Floats

    def begin(self) -> tuple[Ints, Floats]:
        """State and doubles of one time line."""
        state: Ints = np.empty(self.size, dtype=np.int64)
        state[: self.state.size] = self.state
        return state, self.doubles.copy()

    @staticmethod
    def of(machine: Machine, row_blocks: int, keep_rows: bool, rates: Rates) -> Beginning:
        """The beginning of a time line; `row_blocks` as in `vector_banks.BankLayout`."""
        depth = machine.sync.queue_depth
        ring = 1 << (depth + 1).bit_length()
        lists = _words_of_lists(machine, ring)
        ends = np.cumsum([Word.END, *lists.values()]).tolist()
        state: Ints = np.empty(ends[-1], dtype=np.int64)
        state[: ends[-2]] = 0
        memory, l2 = rates.needs
        words = {
            **dict(zip(lists, ends, strict=False)),
            Word.DEPTH: depth,
            Word.RING: ring,
            Word.FLAG_CYCLES: machine.sync.flag_cycles,
            Word.BARRIER_CYCLES: machine.sync.barrier_cycles,
            Word.ISSUE_CYCLES: machine.scalar.issue_cycles,
            Word.UNTIL: -1,
            Word.KEEP_ROWS: keep_rows,
            Word.FIRST: -1,
            Word.PARTS: len(rates.parts),
            Word.CREDIT: rates.idle_credit_cycles,
            Word.USES_MEMORY: memory,
            Word.USES_L2: l2,
            Word.SEPARATE: machine.l2.separate_writes,
            Word.STALL_BYTES: machine.mte1.stall_bytes,
            Word.BOUNDS: 1,
            Word.MASK_LOW: -1,
            Word.MASK_HIGH: -1,
            Word.BYPASS: machine.l2.bypass_offset_bytes or 0,
            Word.LINE: machine.gm.line_bytes,
            Word.BANK_GROUPS: machine.vector.bank_groups,
            Word.ROW_BLOCKS: row_blocks,
        }
        state[list(words)] = list(words.values())
        if machine.vector.functions:
            state[words[Word.FUNCTION] :][: FunctionWord.LAST_LOAD] = beginning(
                machine.vector.functions
            )
        doubles: Floats = np.zeros(PARTS_AT + PART_COLUMNS * len(rates.parts))
        doubles[STRETCH] = rates.stretch
        doubles[PARTS_AT:] = [
            number
            for part in rates.parts
            for number in (*part.memory, *part.l2, part.missing, part.end)
        ]
        return Beginning(rates, keep_rows, ends[-1], state[: ends[-2]], doubles)


def _words_of_lists(machine: Machine, ring: int) -> dict[int, int]:
    """Words of each list behind the single ones of the state, in their order.

    Args:
        ring: entries of a pipe's ring of instructions, a power of two.
    """
    depth = machine.sync.queue_depth
    return {
        Word.STARTS: PIPES * ring * 2,
        Word.HELD: PIPES * ring * QueueColumn.COLUMNS,
        Word.WOKEN_PIPES: PIPES * depth + 2,
        Word.CAME_SETS: 2 * PIPES * depth + 2,
        Word.LANE_WORDS: LANE_COUNT * LANE_COLUMNS,
        Word.VA: VA_WORDS,
        Word.KEY: KEY_WORDS,
        Word.SIZES: max(Space) + 1,
        Word.FUNCTION: FunctionWord.COLUMNS if machine.vector.functions else 0,
        Word.EVENT_SETS: EVENTS,
        Word.UNITS: units_of(machine) * UnitColumn.COLUMNS,
        Word.FLAGS: EVENTS * FLAG_COLUMNS,
        Word.FLAG_TIMES: EVENTS * 2 * ring,  # last: the only one not zero at first
    }
