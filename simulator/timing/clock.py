"""The time line of one core, compiled: what `timing.timeline` describes.

`t` is the state, `x` its doubles; see `timing.layout`.
"""

from __future__ import annotations

from math import ceil

from davinci.isa.core import MOST_SCALAR_OPS
from davinci.isa.unit_flags import FLIP
from davinci.native import Floats, Ints, floats_at, ints_at
from davinci.simulator.core.events import EVENT_IDS, FIX, MTE2, PIPES, M, S, V
from davinci.simulator.timing.functions import call, register
from davinci.simulator.timing.layout import (
    LIBRARY,
    MISSING,
    NOTHING,
    STRETCH,
    FunctionWord,
    Kind,
    QueueColumn,
    StepColumn,
    Stop,
    TimelineColumn,
    UnitColumn,
    Word,
)
from davinci.simulator.timing.shares import claim, fill, stalls

DRAINED = -2
"""In place of the end of work, behind a barrier: what comes next needs nothing until its head is
over, so that passes before the barrier is."""

FLAG_COLUMNS = 3
"""Words of a flag: how often it was set, how often that was waited for, and the place of its event
among those that were ever set."""

OPS_SHIFT = 32
CLEAR_BIT = 1 << OPS_SHIFT - 1
STEP_MASK = CLEAR_BIT - 1
UNIT_SHIFT = OPS_SHIFT + MOST_SCALAR_OPS.bit_length()
"""A word of the log: the step, whether it is clear of what the vector unit writes last, the scalar
operations before it, and its first unit of L0C."""


@LIBRARY.entry
def replay(t: Ints, x: Floats, count: int) -> int:
    """Issues again what a log holds, up to `count` instructions; the log's address is in `t`.

    Returns a `Stop`: behind a set of a flag of other cores that its pipe came to, before a wait for
    one unless `UNTIL` has its time, and before the end of a poll unless `PASS` lets it go on.
    """
    log = ints_at(t[Word.LOG])
    steps = ints_at(t[Word.STEPS])
    while t[Word.COUNT] < count:
        entry = log[t[Word.COUNT]]
        step = entry & STEP_MASK
        kind = steps[step * StepColumn.COLUMNS + StepColumn.KIND]
        if kind == Kind.CROSS_WAIT and t[Word.UNTIL] < 0:
            return Stop.CROSS_WAIT
        if kind == Kind.END_POLL:
            if not t[Word.PASS]:
                return Stop.POLLED
            t[Word.PASS] = 0
        ops = entry >> OPS_SHIFT & MOST_SCALAR_OPS
        stop = issue(t, x, step, entry & CLEAR_BIT, entry >> UNIT_SHIFT, ops, 0)
        if stop != Stop.END:
            return stop
        if t[Word.CAME]:
            return Stop.CAME
    return Stop.END


@LIBRARY.function
def issue(t: Ints, x: Floats, step: int, clear: int, unit: int, ops: int, location: int) -> int:
    """The scalar unit issues an instruction, after `ops` operations of its own; `clear` of what the
    vector unit writes last, or 0; `unit` is its first unit of L0C."""
    index = t[Word.COUNT]
    t[Word.COUNT] = index + 1
    steps = ints_at(t[Word.STEPS])
    row = step * StepColumn.COLUMNS
    pipe = steps[row + StepColumn.PIPE]
    kind = steps[row + StepColumn.KIND]
    t[Word.NOW] += ops * t[Word.ISSUE_CYCLES]
    if kind == Kind.REGISTER:
        if not t[Word.FUNCTION_LEFT]:
            return Stop.FUNCTION
        register(t, step)
        t[Word.FUNCTION_LEFT] -= 1
        if t[Word.FUNCTION_LEFT]:
            return Stop.END
        function = t[Word.FUNCTION]
        clear = t[function + FunctionWord.END] - t[function + FunctionWord.BASE]
        clear += t[function + FunctionWord.START_CYCLES] + t[function + FunctionWord.DRAIN_CYCLES]
    elif t[Word.FUNCTION_LEFT]:
        return Stop.FUNCTION
    elif kind < Kind.POST:  # the others are no instructions
        t[Word.NOW] += t[Word.ISSUE_CYCLES]
    if kind == Kind.BARRIER_ALL:
        return barrier_all(t, index)
    if kind == Kind.FUNCTION:
        call(t, steps[row + StepColumn.EVENT])
        return Stop.END
    if pipe == S:
        stop = scalar(t, step, index)
        if stop == Stop.END:
            wake(t, x)
        return stop
    depth = t[Word.DEPTH]
    started = t[Word.STARTED + pipe]
    held = t[Word.HELD_COUNT + pipe]
    left = min(started, depth)
    behind = left + held - depth
    issue_after = NOTHING
    if behind >= 0:
        if behind >= left:
            t[Word.STUCK_PIPE] = pipe
            return Stop.QUEUE_FULL
        at = start_place(t, pipe, started - left + behind)
        if t[at] > t[Word.NOW]:
            t[Word.NOW] = t[at]
            issue_after = t[at + 1]
    time = t[Word.NOW]
    if held or not start(t, x, step, clear, unit, index, time, issue_after):
        at = held_place(t, pipe, t[Word.HELD_FIRST + pipe] + held)
        t[at + QueueColumn.STEP] = step
        t[at + QueueColumn.CLEAR] = clear
        t[at + QueueColumn.UNIT] = unit
        t[at + QueueColumn.INDEX] = index
        t[at + QueueColumn.TIME] = time
        t[at + QueueColumn.ISSUE_AFTER] = issue_after
        t[at + QueueColumn.LOCATION] = location
        t[Word.HELD_COUNT + pipe] = held + 1
    wake(t, x)
    return Stop.END


@LIBRARY.function
def barrier_all(t: Ints, index: int) -> int:
    """The scalar unit and all pipes wait until everything is complete."""
    for pipe in range(PIPES):
        if t[Word.HELD_COUNT + pipe]:
            return Stop.BARRIER_WAITS
    begin = t[Word.NOW]
    end_after = NOTHING
    for times in range(Word.FREE, Word.DONE + 1, Word.DONE - Word.FREE):
        owners = Word.KEPT_BY if times == Word.FREE else Word.DONE_BY
        last = 0
        for pipe in range(1, PIPES):
            if t[times + pipe] > t[times + last]:
                last = pipe
        if t[times + last] > t[Word.NOW]:
            t[Word.NOW] = t[times + last]
            end_after = t[owners + last]
    t[Word.NOW] += t[Word.BARRIER_CYCLES]
    now = t[Word.NOW]
    for pipe in range(PIPES):
        ended = max(begin, t[Word.DONE + pipe], t[Word.FREE + pipe])
        t[Word.BARRIER_HELD + pipe] += now - ended
    for pipe in range(PIPES):
        t[Word.FREE + pipe] = now
        t[Word.KEPT_BY + pipe] = index
    note(t, index, S, begin, now, now, begin, NOTHING, NOTHING, end_after, 0)
    return Stop.END


@LIBRARY.function
def scalar(t: Ints, step: int, index: int) -> int:
    """An instruction of the scalar unit itself."""
    steps = ints_at(t[Word.STEPS])
    row = step * StepColumn.COLUMNS
    kind = steps[row + StepColumn.KIND]
    begin = t[Word.NOW]
    end_after = NOTHING
    waits = 0
    if kind == Kind.WAIT:
        at = t[Word.FLAGS] + steps[row + StepColumn.EVENT] * FLAG_COLUMNS
        if t[at] == t[at + 1]:
            return Stop.SCALAR_WAITS
        waits = 1
        place = flag_time(t, steps[row + StepColumn.EVENT], t[at + 1])
        t[at + 1] += 1
        if t[place] > t[Word.NOW]:
            t[Word.FLAG_HELD + S] += t[place] - t[Word.NOW]
            t[Word.NOW] = t[place]
            end_after = t[place + 1]
    elif kind == Kind.SET:
        send(t, steps[row + StepColumn.EVENT], begin, index)
    elif kind == Kind.CROSS_SET:
        come(t, index, begin)
    elif kind == Kind.CROSS_WAIT:
        if t[Word.UNTIL] > begin:
            waits = 1
            t[Word.NOW] = t[Word.UNTIL]
        t[Word.UNTIL] = -1
    t[Word.NOW] += steps[row + StepColumn.OCCUPANCY]
    now = t[Word.NOW]
    if not waits:
        t[Word.BUSY + S] += now - begin
    t[Word.DONE + S] = now
    t[Word.DONE_BY + S] = index
    note(t, index, S, begin, now, now, begin, NOTHING, NOTHING, end_after, 0)
    return Stop.END


@LIBRARY.function
def start(
    t: Ints, x: Floats, step: int, clear: int, unit: int, index: int, time: int, issue_after: int
) -> int:
    """Executes the head of a queue; 0 if it waits for a flag that is not set yet, or for a unit of
    L0C that is not handed over."""
    steps = ints_at(t[Word.STEPS])
    row = step * StepColumn.COLUMNS
    pipe = steps[row + StepColumn.PIPE]
    kind = steps[row + StepColumn.KIND]
    begin = time
    start_after = NOTHING
    end_after = NOTHING
    shared = 0
    hidden = 0  # Cycles that have passed while the instruction before it ended.
    if t[Word.FREE + pipe] > begin:
        worked = t[Word.WORKED + pipe]
        if worked == DRAINED or (clear and t[Word.FREE + pipe] == worked):
            hidden = min(steps[row + StepColumn.OVERLAP], t[Word.FREE + pipe] - begin)
        begin = t[Word.FREE + pipe]
        start_after = t[Word.KEPT_BY + pipe]
    done = t[Word.DONE + pipe]
    free = begin
    end = begin
    left = begin  # A wait or barrier leaves the queue when it is over, else when it starts.
    if kind == Kind.REGISTER:  # the last one of a function, which takes `clear` cycles
        free = begin + clear
        end = free
        t[Word.FREE + pipe] = free
        t[Word.WORKED + pipe] = NOTHING
        t[Word.KEPT_BY + pipe] = index
        t[Word.BUSY + pipe] += max(end - max(begin, done), 0)
        t[Word.DONE + pipe] = max(end, done)
        t[Word.DONE_BY + pipe] = index
    elif kind == Kind.WORK:
        if steps[row + StepColumn.UNIT_FLAG] and not units_ready(t, row, pipe, unit):
            return 0
        free = begin + steps[row + StepColumn.OCCUPANCY] - hidden
        end = begin + steps[row + StepColumn.LATENCY] - hidden
        if steps[row + StepColumn.FROM_L1]:
            stalled = stalls(t, x, begin, steps[row + StepColumn.OCCUPANCY] - hidden)
            free += stalled
            end += stalled
        read = steps[row + StepColumn.GM_READ]
        write = steps[row + StepColumn.GM_WRITE]
        if read or write:
            passed = claim(t, x, pipe, begin, read, write)
            if read:
                misses = floats_at(t[Word.MISSES])
                late = misses[step] * x[MISSING]
                if t[Word.READERS] and pipe == MTE2:
                    common = floats_at(t[Word.READERS] + 16 * t[Word.READS_BEGUN])
                    t[Word.READS_BEGUN] += 1
                    served = steps[row + StepColumn.REQUESTS] * common[1]
                    kept = max(steps[row + StepColumn.OCCUPANCY] * common[0] + late, served)
                else:
                    kept = (steps[row + StepColumn.OCCUPANCY] + late) * x[STRETCH]
                passed = max(passed, begin + ceil(kept))
            shared = max(passed - free, 0)
            free += shared
            end += shared
            if steps[row + StepColumn.TO_L1]:
                fill(t, x, begin, free, read)
        if steps[row + StepColumn.UNIT_FLAG]:
            t[Word.UNIT_BY] = NOTHING
            waited = take_units(t, row, unit, begin, shared, index)
            free += waited
            end += waited
            if pipe == FIX:
                end_after = t[Word.UNIT_BY]
            else:
                t[Word.BUSY + pipe] -= waited
                t[Word.FLAG_HELD + pipe] += waited
        t[Word.FREE + pipe] = free
        t[Word.WORKED + pipe] = free
        t[Word.KEPT_BY + pipe] = index
        if end > done:
            t[Word.BUSY + pipe] += end - max(begin, done)
            t[Word.DONE + pipe] = end
            t[Word.DONE_BY + pipe] = index
    elif kind == Kind.WAIT:
        at = t[Word.FLAGS] + steps[row + StepColumn.EVENT] * FLAG_COLUMNS
        if t[at] == t[at + 1]:
            return 0
        place = flag_time(t, steps[row + StepColumn.EVENT], t[at + 1])
        t[at + 1] += 1
        if t[place] > begin:
            end_after = t[place + 1]
        end = max(begin, t[place])
        t[Word.FREE + pipe] = end
        t[Word.WORKED + pipe] = NOTHING
        t[Word.KEPT_BY + pipe] = index
        t[Word.FLAG_HELD + pipe] += max(0, end - max(begin, done))
        free = end
        left = end
    elif kind != Kind.POLL:
        end = max(begin, done)
        if done > begin:
            end_after = t[Word.DONE_BY + pipe]
        if kind == Kind.BARRIER:
            end += t[Word.BARRIER_CYCLES]
            t[Word.FREE + pipe] = end
            t[Word.WORKED + pipe] = DRAINED if pipe == V else NOTHING
            t[Word.KEPT_BY + pipe] = index
            t[Word.BARRIER_HELD + pipe] += t[Word.BARRIER_CYCLES]
            free = end
            left = end
    started = t[Word.STARTED + pipe]
    at = start_place(t, pipe, started)
    t[at] = left
    t[at + 1] = index
    t[Word.STARTED + pipe] = started + 1
    note(t, index, pipe, begin, free, end, time, issue_after, start_after, end_after, shared)
    if kind == Kind.SET:
        send(t, steps[row + StepColumn.EVENT], end, index)
    elif kind >= Kind.CROSS_SET:
        come(t, index, end)
    return 1


@LIBRARY.function
def unit_place(t: Ints, row: int, unit: int, number: int) -> int:
    """The word at which the record of a unit of L0C begins: of the units that an instruction goes
    through, rows of neighbours at a pitch, the one with this number.

    Args:
        row: of the instruction, in the table of steps.
        unit: the first one that it goes through.
    """
    steps = ints_at(t[Word.STEPS])
    rows = steps[row + StepColumn.UNIT_ROWS]
    place = unit + number // rows * steps[row + StepColumn.UNIT_PITCH] + number % rows
    return t[Word.UNITS] + place * UnitColumn.COLUMNS


@LIBRARY.function
def units_ready(t: Ints, row: int, pipe: int, unit: int) -> int:
    """Whether all units of an instruction are, or will be, handed over to its pipe: those that the
    cube writes have their flags clear, those that fixpipe reads have them set."""
    steps = ints_at(t[Word.STEPS])
    wanted = 1 if pipe == FIX else 0
    for i in range(steps[row + StepColumn.UNIT_BLOCKS] * steps[row + StepColumn.UNIT_ROWS]):
        if t[unit_place(t, row, unit, i) + UnitColumn.SET] != wanted:
            return 0
    return 1


@LIBRARY.function
def take_units(t: Ints, row: int, unit: int, begin: int, shared: int, index: int) -> int:
    """An instruction goes through its units, one after the other, and hands them over if it is to.

    Args:
        shared: how much longer it takes because others use global memory.

    Returns:
        Cycles that it waits for units; the last instruction it waits for is in `UNIT_BY`.
    """
    steps = ints_at(t[Word.STEPS])
    count = steps[row + StepColumn.UNIT_BLOCKS] * steps[row + StepColumn.UNIT_ROWS]
    first = begin + steps[row + StepColumn.UNIT_HEAD]
    cycles = steps[row + StepColumn.UNIT_CYCLES] + shared
    waited = 0
    for i in range(count):
        at = unit_place(t, row, unit, i)
        late = t[at + UnitColumn.TIME] - (first + cycles * i // count + waited)
        if late > 0:
            waited += late
            t[Word.UNIT_BY] = t[at + UnitColumn.BY]
        if steps[row + StepColumn.UNIT_FLAG] == FLIP:
            done = first + cycles * (i + 1) // count + waited
            t[at + UnitColumn.SET] = 1 - t[at + UnitColumn.SET]
            t[at + UnitColumn.TIME] = done + steps[row + StepColumn.UNIT_LATE]
            t[at + UnitColumn.BY] = index
    if steps[row + StepColumn.UNIT_FLAG] == FLIP:
        t[t[Word.WOKEN_PIPES] + t[Word.WOKEN]] = FIX if steps[row + StepColumn.PIPE] == M else M
        t[Word.WOKEN] += 1
    return waited


@LIBRARY.function
def flag_time(t: Ints, event: int, number: int) -> int:
    """Where the time of a set of a flag and its instruction are, by its number. Each set before it
    is waited for, but for those whose waits are in a queue."""
    ring = t[Word.RING]
    return t[Word.FLAG_TIMES] + (event * ring + (number & ring - 1)) * 2


@LIBRARY.function
def start_place(t: Ints, pipe: int, number: int) -> int:
    """Where the start of an instruction of a pipe is kept, and its number in the block, by how many
    left the queue before it. The last ones are kept, as many as a queue holds."""
    ring = t[Word.RING]
    return t[Word.STARTS] + (pipe * ring + (number & ring - 1)) * 2


@LIBRARY.function
def held_place(t: Ints, pipe: int, number: int) -> int:
    """Where an instruction in the queue of a pipe is kept, by how many were put there before it."""
    ring = t[Word.RING]
    return t[Word.HELD] + (pipe * ring + (number & ring - 1)) * QueueColumn.COLUMNS


@LIBRARY.function
def send(t: Ints, event: int, time: int, index: int) -> None:
    """An event is set at `time`; its pipe is to be looked at."""
    at = t[Word.FLAGS] + event * FLAG_COLUMNS
    if t[at] == 0:
        t[at + 2] = t[Word.FLAGS_SENT]
        t[Word.FLAGS_SENT] += 1
    place = flag_time(t, event, t[at])
    t[place] = time + t[Word.FLAG_CYCLES]
    t[place + 1] = index
    t[at] += 1
    t[t[Word.WOKEN_PIPES] + t[Word.WOKEN]] = event // EVENT_IDS % PIPES
    t[Word.WOKEN] += 1


@LIBRARY.function
def come(t: Ints, index: int, time: int) -> None:
    """A pipe has come to a set of a flag for other cores."""
    at = t[Word.CAME_SETS] + 2 * t[Word.CAME]
    t[at] = index
    t[at + 1] = time
    t[Word.CAME] += 1


@LIBRARY.function
def wake(t: Ints, x: Floats) -> None:
    """Executes what waited in the queues of pipes that were sent a flag, and so on."""
    looked = 0
    while looked < t[Word.WOKEN]:
        pipe = t[t[Word.WOKEN_PIPES] + looked]
        looked += 1
        while t[Word.HELD_COUNT + pipe]:
            first = t[Word.HELD_FIRST + pipe]
            at = held_place(t, pipe, first)
            step = t[at + QueueColumn.STEP]
            index = t[at + QueueColumn.INDEX]
            after = t[at + QueueColumn.ISSUE_AFTER]
            if not start(
                t,
                x,
                step,
                t[at + QueueColumn.CLEAR],
                t[at + QueueColumn.UNIT],
                index,
                t[at + QueueColumn.TIME],
                after,
            ):
                break
            t[Word.HELD_FIRST + pipe] = first + 1
            t[Word.HELD_COUNT + pipe] -= 1
    t[Word.WOKEN] = 0


@LIBRARY.function
def note(
    t: Ints,
    index: int,
    pipe: int,
    begin: int,
    free: int,
    end: int,
    issued: int,
    issue_after: int,
    start_after: int,
    end_after: int,
    shared: int,
) -> None:
    """Adds a row, if they are kept."""
    if t[Word.KEEP_ROWS]:
        rows = ints_at(t[Word.ROW_TABLE])
        at = t[Word.ROWS] * TimelineColumn.COLUMNS
        rows[at + TimelineColumn.INDEX] = index
        rows[at + TimelineColumn.PIPE] = pipe
        rows[at + TimelineColumn.START] = begin
        rows[at + TimelineColumn.FREE] = free
        rows[at + TimelineColumn.END] = end
        rows[at + TimelineColumn.ISSUED] = issued
        rows[at + TimelineColumn.ISSUE_AFTER] = issue_after
        rows[at + TimelineColumn.START_AFTER] = start_after
        rows[at + TimelineColumn.END_AFTER] = end_after
        rows[at + TimelineColumn.SHARED] = shared
        t[Word.ROWS] += 1
