"""A core's use of its shares of the memory and of the L2, and of the port of L1: compiled.

Transfers of one pipe follow each other. They pass in the time that those of other pipes, which were
issued before, have left. Lanes, of the memory and of the L2 (one for reads and one for writes where
these have a share each), remember the last transfers of each pipe.

What comes into L1 takes cycles from the loads out of it.
"""

from __future__ import annotations

from math import ceil

from davinci.native import Floats, Ints
from davinci.simulator.timing.layout import (
    FILLS_KEPT,
    L1_FILLS,
    LANE_COLUMNS,
    LANE_COUNTS,
    LANE_DOUBLES,
    LANE_ORDER,
    LANES,
    LIBRARY,
    MISSING,
    MOST_TAKEN,
    PART_COLUMNS,
    PARTS_AT,
    TRANSFERS_KEPT,
    Word,
)


@LIBRARY.entry
def claim(t: Ints, x: Floats, pipe: int, start: int, read: int, write: int) -> int:
    """Cycle at which the bytes of a transfer of `pipe` that begins at `start` have passed; the part
    of its lines that the L2 has not is in `x` then."""
    if t[Word.FIRST] < 0:
        t[Word.FIRST] = start
    now = float(max(t[Word.FIRST], start - t[Word.CREDIT]))
    needed = from_memory(t, x, read, write)
    end = 0.0
    if t[Word.USES_MEMORY]:
        end = claim_lane(t, x, 0, pipe, now, needed)
    if t[Word.USES_L2]:
        lane = 2 if write and t[Word.SEPARATE] else 1
        needed = read * x[PARTS_AT + 2] + write * x[PARTS_AT + 3]
        end = max(end, claim_lane(t, x, lane, pipe, now, needed))
    return ceil(end)


@LIBRARY.function
def from_memory(t: Ints, x: Floats, read: int, write: int) -> float:
    """Cycles of the memory that a transfer needs, by the rates of the parts of the block's bytes in
    which it is; moves on behind it."""
    parts = t[Word.PARTS]
    x[MISSING] = x[PARTS_AT + 4]
    if parts == 1:
        return read * x[PARTS_AT] + write * x[PARTS_AT + 1]
    size = float(max(read + write, 1))
    at = float(t[Word.MOVED])
    t[Word.MOVED] += read + write
    end = float(t[Word.MOVED])
    part = t[Word.PART]
    needed = 0.0
    missing = 0.0
    while at < end:
        row = PARTS_AT + part * PART_COLUMNS
        while part < parts - 1 and at >= x[row + 5]:
            part += 1
            row += PART_COLUMNS
        upto = end
        if part < parts - 1:
            upto = min(end, x[row + 5])
        share = (upto - at) / size
        needed += share * (read * x[row] + write * x[row + 1])
        missing += share * x[row + 4]
        at = upto
    t[Word.PART] = part
    x[MISSING] = missing
    return needed


@LIBRARY.function
def claim_lane(t: Ints, x: Floats, lane: int, pipe: int, now: float, left: float) -> float:
    """When a transfer that needs `left` cycles of a lane has passed it, not before `now`."""
    if left == 0.0:
        return now
    words = t[Word.LANE_WORDS] + lane * LANE_COLUMNS
    spans = LANES + lane * LANE_DOUBLES
    own = spans + pipe * TRANSFERS_KEPT * 2
    count = t[words + LANE_COUNTS + pipe]
    if count == 0:
        t[words + LANE_ORDER + t[words]] = pipe
        t[words] += 1
    else:
        now = max(now, x[own + (count - 1) % TRANSFERS_KEPT * 2 + 1])
    begin = now
    for i in range(t[words]):
        other = t[words + LANE_ORDER + i]
        if other == pipe:
            continue
        taken = t[words + LANE_COUNTS + other]
        spans_of = spans + other * TRANSFERS_KEPT * 2
        # The first one that is not over by now: they follow each other.
        first = taken
        while first > max(taken - TRANSFERS_KEPT, 0):
            if x[spans_of + (first - 1) % TRANSFERS_KEPT * 2 + 1] <= now:
                break
            first -= 1
        # Uses the gaps between the others.
        for k in range(first, taken):
            at = spans_of + k % TRANSFERS_KEPT * 2
            if x[at + 1] <= now:
                continue
            if x[at] - now >= left:
                break
            left -= max(x[at] - now, 0.0)
            now = x[at + 1]
    x[own + count % TRANSFERS_KEPT * 2] = begin
    x[own + count % TRANSFERS_KEPT * 2 + 1] = now + left
    t[words + LANE_COUNTS + pipe] = count + 1
    return now + left


@LIBRARY.entry
def fill(t: Ints, x: Floats, start: int, end: int, size: int) -> None:
    """`size` bytes come into L1 evenly from `start` to `end`; transfers follow each other."""
    at = L1_FILLS + t[Word.FILLS] % FILLS_KEPT * 3
    x[at] = float(start)
    x[at + 1] = float(end)
    x[at + 2] = min(size / t[Word.STALL_BYTES] / max(end - start, 1), MOST_TAKEN)
    t[Word.FILLS] += 1


@LIBRARY.entry
def stalls(t: Ints, x: Floats, start: int, cycles: int) -> int:
    """Cycles that a load of so many cycles takes longer if it begins at `start`."""
    now = float(start)
    left = float(cycles)
    count = t[Word.FILLS]
    for k in range(max(count - FILLS_KEPT, 0), count):
        at = L1_FILLS + k % FILLS_KEPT * 3
        begin = x[at]
        end = x[at + 1]
        if end <= now:
            continue
        if begin >= now + left:
            break
        if begin > now:
            left = left - (begin - now)
            now = begin
        needed = left / (1.0 - x[at + 2])
        if now + needed <= end:
            return ceil(now + needed) - start - cycles
        left = left - (end - now) * (1.0 - x[at + 2])
        now = end
    return ceil(now + left) - start - cycles
