"""A search for plans with hardly a free byte, as native code; see `search`, which calls it.

Seen over the sections, the tops of what was placed are a skyline. Its *valleys* are runs of
sections of one floor between higher ones. What lies next in the first section of a valley begins
there, for it does not fit through what is higher in front; else nothing lies at the floor, and
bytes of that section are lost. The same holds for the last section. So a valley has few ways to go
on, one where no bytes may be lost, and the valley of the fewest is filled first, wherever it is.

A border between two sections is *bridged* if an unplaced buffer is live on both sides. What lies
below that buffer on both sides has to be of one height, but for bytes that may be lost: some sums
of the sizes of buffers that begin at the border and of those that end there have to be equal. That
is checked at both ends of each buffer that is placed.
"""

from __future__ import annotations

from davinci.native import Ints, ints_at
from davinci.planning.canonical import HUGE, LIBRARY, CountIndex, Outcome, PlaceIndex

MOST_SUMMANDS = 16
"""Buffers that begin or end at a border up to which their sums are looked at."""

MANY = 1 << 30
"""More ways than any valley has."""

MOST_SUMS = 4_000
"""Sums that are looked at, at most, to tell whether a border may be bridged."""


FILL = "fill_all"
"""The name of the search by valleys among the entries of `LIBRARY`."""


@LIBRARY.entry
def fill_all(place: Ints, sections: int, buffers: int) -> int:
    """Looks for a plan within the capacity."""
    counts = ints_at(place[PlaceIndex.COUNTS])
    counts[CountIndex.TOP] = 0
    return fill(place, 0, sections, sections)


@LIBRARY.function
def fill(place: Ints, first: int, last: int, sections: int) -> int:
    """Places all unplaced buffers of sections `first` to `last`, which meet no others."""
    counts, stack = ints_at(place[PlaceIndex.COUNTS]), ints_at(place[PlaceIndex.STACK])
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    crossing = ints_at(place[PlaceIndex.CROSSING])
    failures = ints_at(place[PlaceIndex.FAILURES])
    if counts[CountIndex.STATES] >= counts[CountIndex.LIMIT]:
        return Outcome.STOPPED
    while first < last and rest[first] == 0:
        first += 1
    while first < last and rest[last - 1] == 0:
        last -= 1
    if first == last:
        return Outcome.FOUND
    trail = counts[CountIndex.TRAIL]
    for s in range(first, last - 1):
        if crossing[s] == 0:
            result = fill(place, first, s + 1, sections)
            if result == Outcome.FOUND:
                result = fill(place, s + 1, last, sections)
            if result != Outcome.FOUND:
                undo(place, trail)
            return result
    counts[CountIndex.STATES] += 1
    # The valley and the side of it with the fewest ways, the one of more failures first.
    fewest, weight, begin, end, side = MANY, 1, first, last, 0
    s = first
    while s < last and fewest > 1:
        e = s + 1
        if rest[s] > 0:
            while e < last and rest[e] > 0 and floor[e] == floor[s]:
                e += 1
            if is_valley(place, s, e, first, last) == 1:
                for at in range(2):
                    ways = ways_of(place, s, e, at)
                    border = s if at == 0 else e
                    if ways * weight < fewest * failures[border]:
                        fewest, weight, begin, end, side = ways, failures[border], s, e, at
        s = e
    border = begin if side == 0 else end
    own = counts[CountIndex.TOP]
    found = options(place, begin, end, side)
    counts[CountIndex.TOP] = own + found
    result = Outcome.NONE
    k = 0
    while k < found and result == Outcome.NONE:
        b = stack[own + k]
        if b >= 0:
            lay(place, b)
            good = bridged(place, begin_of(place, b), sections)
            if good == 1:
                good = bridged(place, end_of(place, b), sections)
        else:
            lost = begin if side == 0 else end - 1
            good = lose(place, lost, begin, end, side)
            if good == 1:
                good = bridged(place, lost, sections)
            if good == 1:
                good = bridged(place, lost + 1, sections)
        if good == 1:
            result = fill(place, first, last, sections)
        if result != Outcome.FOUND:
            undo(place, trail)
        k += 1
    if result == Outcome.NONE:
        failures[border] += 1
    counts[CountIndex.TOP] = own
    return result


@LIBRARY.function
def is_valley(place: Ints, begin: int, end: int, first: int, last: int) -> int:
    """Says whether a run of sections of one floor lies between higher ones, or the ends of all."""
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    if begin > first and rest[begin - 1] > 0 and floor[begin - 1] < floor[begin]:
        return 0
    return 0 if end < last and rest[end] > 0 and floor[end] < floor[begin] else 1


@LIBRARY.function
def begin_of(place: Ints, b: int) -> int:
    """The first section of a buffer."""
    firsts = ints_at(place[PlaceIndex.FIRST])
    return firsts[b]


@LIBRARY.function
def end_of(place: Ints, b: int) -> int:
    """The section behind the last one of a buffer."""
    lasts = ints_at(place[PlaceIndex.LAST])
    return lasts[b]


@LIBRARY.function
def fits_in(place: Ints, b: int, begin: int, end: int) -> int:
    """Says whether an unplaced buffer may lie next on the floor of a valley.

    Of two buffers of the same lifetime and size the first one is taken, and of two of the same
    lifetime that lie on each other the first one is below.
    """
    firsts, lasts = ints_at(place[PlaceIndex.FIRST]), ints_at(place[PlaceIndex.LAST])
    is_open, sizes = ints_at(place[PlaceIndex.OPEN]), ints_at(place[PlaceIndex.SIZES])
    offsets, floor = ints_at(place[PlaceIndex.OFFSETS]), ints_at(place[PlaceIndex.FLOOR])
    starts, starting = ints_at(place[PlaceIndex.STARTS]), ints_at(place[PlaceIndex.STARTING])
    if is_open[b] == 0 or firsts[b] < begin or lasts[b] > end:
        return 0
    for k in range(starts[firsts[b]], starts[firsts[b] + 1]):
        other = starting[k]
        if lasts[other] == lasts[b]:
            if is_open[other] == 1 and sizes[other] == sizes[b] and other < b:
                return 0
            top = offsets[other] + sizes[other]
            if is_open[other] == 0 and top == floor[begin] and other > b:
                return 0
    return 1


@LIBRARY.function
def ways_of(place: Ints, begin: int, end: int, side: int) -> int:
    """In how many ways a valley goes on at its first section, or, for side 1, at its last one."""
    bounds, members = (
        ints_at(place[PlaceIndex.STARTS if side == 0 else PlaceIndex.ENDS]),
        ints_at(place[PlaceIndex.STARTING if side == 0 else PlaceIndex.ENDING]),
    )
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    counts = ints_at(place[PlaceIndex.COUNTS])
    border = begin if side == 0 else end
    lost = begin if side == 0 else end - 1
    found = 1 if floor[lost] + rest[lost] < counts[CountIndex.CAPACITY] else 0
    for k in range(bounds[border], bounds[border + 1]):
        found += fits_in(place, members[k], begin, end)
    return found


@LIBRARY.function
def options(place: Ints, begin: int, end: int, side: int) -> int:
    """Lists on the stack what may lie next in a section of a valley, by KEY0, and -1 for nothing;
    returns how many these are."""
    bounds, members = (
        ints_at(place[PlaceIndex.STARTS if side == 0 else PlaceIndex.ENDS]),
        ints_at(place[PlaceIndex.STARTING if side == 0 else PlaceIndex.ENDING]),
    )
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    counts, stack = ints_at(place[PlaceIndex.COUNTS]), ints_at(place[PlaceIndex.STACK])
    key = ints_at(place[PlaceIndex.KEY0])
    border = begin if side == 0 else end
    lost = begin if side == 0 else end - 1
    own = counts[CountIndex.TOP]
    found = 0
    for k in range(bounds[border], bounds[border + 1]):
        b = members[k]
        if fits_in(place, b, begin, end) == 1:
            at = own + found
            while at > own and key[stack[at - 1]] < key[b]:
                stack[at] = stack[at - 1]
                at -= 1
            stack[at] = b
            found += 1
    if floor[lost] + rest[lost] < counts[CountIndex.CAPACITY]:
        stack[own + found] = -1
        found += 1
    return found


@LIBRARY.function
def lay(place: Ints, b: int) -> int:
    """Places a buffer on the floor of its first section, which is that of all of them."""
    firsts, lasts = ints_at(place[PlaceIndex.FIRST]), ints_at(place[PlaceIndex.LAST])
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    changed, before = ints_at(place[PlaceIndex.CHANGED]), ints_at(place[PlaceIndex.BEFORE])
    counts, crossing = ints_at(place[PlaceIndex.COUNTS]), ints_at(place[PlaceIndex.CROSSING])
    sizes, is_open = ints_at(place[PlaceIndex.SIZES]), ints_at(place[PlaceIndex.OPEN])
    offsets = ints_at(place[PlaceIndex.OFFSETS])
    trail = counts[CountIndex.TRAIL]
    offset = floor[firsts[b]]
    changed[trail] = b
    before[trail] = offset
    counts[CountIndex.TRAIL] = trail + 1
    offsets[b] = offset
    is_open[b] = 0
    for s in range(firsts[b], lasts[b]):
        floor[s] = offset + sizes[b]
        rest[s] -= sizes[b]
        if s + 1 < lasts[b]:
            crossing[s] -= 1
    return 0


@LIBRARY.function
def lose(place: Ints, lost: int, begin: int, end: int, side: int) -> int:
    """Raises the floor of a section to where the next buffer can lie, if none does at the floor;
    returns 0 if there is no such place within the capacity."""
    firsts, lasts = ints_at(place[PlaceIndex.FIRST]), ints_at(place[PlaceIndex.LAST])
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    changed, before = ints_at(place[PlaceIndex.CHANGED]), ints_at(place[PlaceIndex.BEFORE])
    members, member = ints_at(place[PlaceIndex.MEMBERS]), ints_at(place[PlaceIndex.MEMBER])
    sizes, is_open = ints_at(place[PlaceIndex.SIZES]), ints_at(place[PlaceIndex.OPEN])
    counts = ints_at(place[PlaceIndex.COUNTS])
    capacity = counts[CountIndex.CAPACITY]
    # What lies beside the lost bytes and carries the next buffer is in the valley.
    smallest = HUGE
    for s in range(begin, end):
        for k in range(members[s], members[s + 1]):
            b = member[k]
            inside = 1 if firsts[b] >= begin and lasts[b] <= end else 0
            if is_open[b] == 1 and inside == 1 and (firsts[b] > lost or lasts[b] <= lost):
                smallest = min(smallest, sizes[b])
    lowest = HUGE
    for k in range(members[lost], members[lost + 1]):
        b = member[k]
        if is_open[b] == 1:
            least = floor[lost]
            for s in range(firsts[b], lasts[b]):
                least = max(least, floor[s])
            if least == floor[lost]:
                least = least + smallest if smallest < HUGE else HUGE
            lowest = min(lowest, least)
    if lowest == HUGE or lowest + rest[lost] > capacity:
        return 0
    trail = counts[CountIndex.TRAIL]
    changed[trail] = -1 - lost
    before[trail] = floor[lost]
    counts[CountIndex.TRAIL] = trail + 1
    floor[lost] = lowest
    return 1


@LIBRARY.function
def undo(place: Ints, trail: int) -> int:
    """Takes back what was placed and lost since the trail had that length."""
    firsts, lasts = ints_at(place[PlaceIndex.FIRST]), ints_at(place[PlaceIndex.LAST])
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    changed, before = ints_at(place[PlaceIndex.CHANGED]), ints_at(place[PlaceIndex.BEFORE])
    counts, crossing = ints_at(place[PlaceIndex.COUNTS]), ints_at(place[PlaceIndex.CROSSING])
    sizes, is_open = ints_at(place[PlaceIndex.SIZES]), ints_at(place[PlaceIndex.OPEN])
    at = counts[CountIndex.TRAIL]
    while at > trail:
        at -= 1
        what = changed[at]
        if what < 0:
            floor[-1 - what] = before[at]
        else:
            is_open[what] = 1
            for s in range(firsts[what], lasts[what]):
                floor[s] = before[at]
                rest[s] += sizes[what]
                if s + 1 < lasts[what]:
                    crossing[s] += 1
    counts[CountIndex.TRAIL] = trail
    return 0


@LIBRARY.function
def bridged(place: Ints, s: int, sections: int) -> int:
    """Says whether what lies below a buffer across the border in front of section `s` can be of one
    height on both sides; 1 where no buffer does, or too many begin and end there."""
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    starts, starting = ints_at(place[PlaceIndex.STARTS]), ints_at(place[PlaceIndex.STARTING])
    ends, ending = ints_at(place[PlaceIndex.ENDS]), ints_at(place[PlaceIndex.ENDING])
    counts, crossing = ints_at(place[PlaceIndex.COUNTS]), ints_at(place[PlaceIndex.CROSSING])
    sizes, is_open = ints_at(place[PlaceIndex.SIZES]), ints_at(place[PlaceIndex.OPEN])
    stack = ints_at(place[PlaceIndex.STACK])
    if s <= 0 or s >= sections or crossing[s - 1] == 0:
        return 1
    capacity = counts[CountIndex.CAPACITY]
    low = floor[s] + rest[s] - capacity
    high = capacity - floor[s - 1] - rest[s - 1]
    step = floor[s] - floor[s - 1]
    if low <= step <= high:
        return 1
    own = counts[CountIndex.TOP]
    found = 0
    for k in range(starts[s], starts[s + 1]):
        if is_open[starting[k]] == 1:
            stack[own + found] = sizes[starting[k]]
            found += 1
    for k in range(ends[s], ends[s + 1]):
        if is_open[ending[k]] == 1:
            stack[own + found] = -sizes[ending[k]]
            found += 1
    if found > MOST_SUMMANDS:
        return 1
    # The largest ones first, and behind them what all from each one on add at most and at least.
    for k in range(1, found):
        value = stack[own + k]
        at = own + k
        while at > own and max(value, -value) > max(stack[at - 1], -stack[at - 1]):
            stack[at] = stack[at - 1]
            at -= 1
        stack[at] = value
    most, least = own + found, own + 2 * found + 1
    stack[most + found] = 0
    stack[least + found] = 0
    for k in range(found):
        at = found - 1 - k
        stack[most + at] = stack[most + at + 1] + max(stack[own + at], 0)
        stack[least + at] = stack[least + at + 1] + min(stack[own + at], 0)
    counts[CountIndex.SUMS] = 0
    return reaches(place, own, found, 0, step, low, high)


@LIBRARY.function
def reaches(place: Ints, own: int, count: int, k: int, value: int, low: int, high: int) -> int:
    """Says whether a value and some summands of those from `k` on, which STACK has from `own` on,
    may be a sum from `low` to `high`; 1 where that takes too long to tell."""
    stack, counts = ints_at(place[PlaceIndex.STACK]), ints_at(place[PlaceIndex.COUNTS])
    if low <= value <= high:
        return 1
    most, least = stack[own + count + k], stack[own + 2 * count + 1 + k]
    if k == count or value + most < low or value + least > high:
        return 0
    counts[CountIndex.SUMS] += 1
    if counts[CountIndex.SUMS] > MOST_SUMS:
        return 1
    if reaches(place, own, count, k + 1, value + stack[own + k], low, high) == 1:
        return 1
    return reaches(place, own, count, k + 1, value, low, high)
