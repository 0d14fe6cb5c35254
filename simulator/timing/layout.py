"""Where the compiled time line keeps what: words of its arrays.

The state of a time line is one array of integers (`Word` and the lists behind it) and one of
doubles. What an instruction is to it is a row of the table of steps (`StepColumn`): an instruction
with everything fixed that time depends on.
"""

from __future__ import annotations

import enum

from davinci.native import Library
from davinci.simulator.core.events import PIPES

LIBRARY = Library()
"""The compiled functions of the simulator."""

NOTHING = -1
"""In place of an instruction that something waited for."""


class Kind(enum.IntEnum):
    """What an instruction is to the time line."""

    WORK = 0
    WAIT = 1
    SET = 2
    BARRIER = 3
    BARRIER_ALL = 4
    FUNCTION = 5
    REGISTER = 6
    CROSS_SET = 7
    CROSS_WAIT = 8
    POST = 9
    POLL = 10
    END_POLL = 11


class StepColumn(enum.IntEnum):
    """Columns of the table of steps. MISS holds the bits of a double."""

    KIND = 0
    PIPE = 1
    EVENT = 2
    OCCUPANCY = 3
    LATENCY = 4
    GM_READ = 5
    GM_WRITE = 6
    FROM_L1 = 7
    TO_L1 = 8
    FORM = 9
    MOVES = 10  # its lines of global memory are noted
    OVERLAP = 11  # cycles that may pass while the one before it ends
    REQUESTS = 12  # to global memory, cut where rows and lines end
    # Units of L0C, see `isa.unit_flags`: of them and of the time they take.
    UNIT_FLAG = 13
    UNIT_BLOCKS = 14
    UNIT_ROWS = 15
    UNIT_PITCH = 16
    UNIT_HEAD = 17  # from the start to the first one
    UNIT_CYCLES = 18  # for all of them
    UNIT_LATE = 19  # from going through one until it is handed over
    COLUMNS = 20


class Word(enum.IntEnum):
    """Words of a time line's state. Addresses are those of other arrays, offsets those in this one
    or in that of the doubles."""

    NOW = 0
    COUNT = 1  # instructions so far
    DEPTH = 2  # of queues
    FLAG_CYCLES = 3
    BARRIER_CYCLES = 4
    ISSUE_CYCLES = 5
    UNTIL = 6  # before which the scalar unit does not start the next instruction
    FLAGS_SENT = 7  # events that were ever set
    CAME = 8  # sets of flags for other cores that their pipes came to
    WOKEN = 9  # pipes that were sent a flag and not looked at
    STUCK_PIPE = 10
    KEEP_ROWS = 11
    ROWS = 12  # their number
    # Addresses; those of tables follow each other, see `core.tables`.
    STEPS = 13
    MISSES = 14  # cycles that a step takes longer if the L2 has none of its rows
    OPCODES = 15
    FORMS = 16
    DETAILS = 17
    TABLE = 18
    TABLE_SIZE = 19
    LOG = 20
    ROW_TABLE = 21
    TRANSFERS = 22
    # Offsets of lists.
    STARTS = 23
    HELD = 24
    FLAGS = 25
    WOKEN_PIPES = 26
    CAME_SETS = 27
    LANE_WORDS = 28
    # The share of global memory.
    FIRST = 29  # start of the first transfer, or -1
    MOVED = 30  # bytes
    PARTS = 31
    PART = 32
    FPC = 33
    CREDIT = 34
    USES_MEMORY = 35
    USES_L2 = 36
    FILLS = 37  # transfers into L1
    STALL_BYTES = 38
    # Decoding.
    TRANSFER_COUNT = 39
    ROOM = 40  # of the log
    TRANSFER_ROOM = 41
    AT = 42  # record under way, counted from the first one handed over
    PASS = 43  # the next instruction between cores is issued
    BOUNDS = 44  # bounds and alignment are checked
    MASK_LOW = 45
    MASK_HIGH = 46
    FMATRIX = 47
    BYPASS = 48  # addresses from here on bypass the L2; 0: none do
    LINE = 49
    BANK_GROUPS = 50
    ROW_BLOCKS = 51
    VA = 52  # offsets again: VA registers, key, events that are set, sizes of memories
    KEY = 53
    EVENT_SETS = 54
    SIZES = 55
    FLAG_TIMES = 56
    SEPARATE = 57  # reads and writes of the L2 have a share each
    WRITTEN_LOW = 58  # what the vector unit writes last: from here
    WRITTEN_HIGH = 59  # to here
    DEQSCALE = 60
    ATOMIC = 61
    FUNCTION = 62  # offset of `FunctionWord`
    FUNCTION_LEFT = 63  # register instructions of the function under way that are still to come
    # Lists of a number for each pipe.
    BUSY = 64
    FLAG_HELD = 80
    BARRIER_HELD = 96
    FREE = 112
    DONE = 128
    KEPT_BY = 144
    DONE_BY = 160
    STARTED = 176
    HELD_COUNT = 192
    HELD_FIRST = 208
    WORKED = 224  # when the last instruction that is work left the pipe
    READERS = 240  # address of what reads of MTE2 have in common with others; 0: not known
    READS_BEGUN = 241  # of these
    RING = 242  # what is remembered of a queue or of a flag: a power of two, above DEPTH + 1
    UNITS = 243  # offset of the units of L0C, see `UnitColumn`
    UNIT_BY = 244  # the last instruction that one waited for at a unit
    END = 245


class UnitColumn(enum.IntEnum):
    """Columns of a unit of L0C: its flag, when it was changed last, and which instruction did."""

    SET = 0
    TIME = 1
    BY = 2
    COLUMNS = 3


class FunctionWord(enum.IntEnum):
    """Words of the schedule of a vector function; see `timing.functions`."""

    ISSUED = 0  # its instructions so far
    END = 1  # cycle in which the last of them is complete
    BASE = 2  # cycle in which it begins, counted on from function to function
    START_CYCLES = 3
    DRAIN_CYCLES = 4
    WINDOW = 5
    WIDTH = 6
    LAST_LOAD = 7  # cycle in which a load began, and a store
    LAST_STORE = 8
    READY = 9  # of each register
    LATEST = READY + 64  # cycles in which as many instructions began as the unit holds, the latest
    SLOTS = LATEST + 256
    COLUMNS = SLOTS + 4096


class QueueColumn(enum.IntEnum):
    """Columns of an instruction in a queue."""

    STEP = 0
    INDEX = 1
    TIME = 2
    ISSUE_AFTER = 3
    LOCATION = 4
    CLEAR = 5
    UNIT = 6
    COLUMNS = 7


class TimelineColumn(enum.IntEnum):
    """Columns of an instruction on the time line; see `timeline.Row`."""

    INDEX = 0
    PIPE = 1
    START = 2
    FREE = 3
    END = 4
    ISSUED = 5
    ISSUE_AFTER = 6
    START_AFTER = 7
    END_AFTER = 8
    SHARED = 9
    COLUMNS = 10


TRANSFERS_KEPT = 64
"""Transfers of a pipe that are remembered: more than a queue holds."""

FILLS_KEPT = 8
"""Transfers into L1 that are remembered: more than can be under way with a load."""

MOST_TAKEN = 0.5
"""Loads and fills take turns: fills get no more of the cycles of L1's port."""

LANE_ORDER = 1
LANE_COUNTS = 16
LANE_COLUMNS = 32
"""A lane's words: number of pipes that used it, which in order, and the transfers of each."""

# Doubles: how much longer reads take for lines in common, the missing part of the lines of the last
# transfer, the fills of L1, the transfers of the lanes, and the rates of the parts.
STRETCH = 0
MISSING = 1
L1_FILLS = 2
LANES = L1_FILLS + 3 * FILLS_KEPT
LANE_DOUBLES = PIPES * TRANSFERS_KEPT * 2
LANE_COUNT = 3
"""Lanes: the memory, the L2, and writes to the L2 if they have a share of their own."""
PARTS_AT = LANES + LANE_COUNT * LANE_DOUBLES
PART_COLUMNS = 6
"""Rates of memory, read and written, of the L2, the missing part of the lines, and the bytes that
the block has moved at the end of the part."""


class Stop(enum.IntEnum):
    """Why compiled code returned."""

    END = 0
    QUEUE_FULL = 1
    SCALAR_WAITS = 2
    BARRIER_WAITS = 3
    CROSS_WAIT = 4  # before it
    CAME = 5  # behind an instruction
    ROOM = 6  # before an instruction for which there is none
    UNKNOWN_FORM = 7
    UNKNOWN_STEP = 8
    ILLEGAL = 9
    SET_TWICE = 10
    CROSS = 11  # before it
    POLLED = 12  # before the end of a poll
    FUNCTION = 13  # a register instruction outside of a function, or another one inside
