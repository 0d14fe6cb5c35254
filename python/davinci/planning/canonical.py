"""The inner loop of the search for plans, as native code; see `search`, which calls it.

A plan is *canonical* if its buffers, in order of their offsets, each lie on the top of one before
or on the floor. A state places some buffers in that order. For each unplaced buffer `least` is the
lowest offset above all placed ones that it conflicts with, and for each section (a time at which
buffers are live) `floor` is what unplaced buffers there cannot go below: the top of what was placed
there last, or the least offset of all that are still to come. A state is given up if at some
section the floor and the sizes that are still to come are more than the capacity.

Canonical search, its pruning and its decomposition follow M. D. Moffitt, "MiniMalloc: A Lightweight
Memory Allocator for Hardware-Accelerated Machine Learning" (ASPLOS 2023).

Functions know all arrays by their addresses in `place`, at the numbers below.
"""

from __future__ import annotations

from enum import IntEnum, auto

from davinci.native import Ints, Library, ints_at

LIBRARY = Library()


class PlaceIndex(IntEnum):
    """Numbers of the arrays in `place`.

    Members:
        SIZES: bytes of each buffer.
        FIRST, LAST: sections of each buffer, from FIRST up to, but not, LAST.
        OVERLAPS, OVERLAPPING: what conflicts with buffer b is
            OVERLAPPING[OVERLAPS[b] : OVERLAPS[b + 1]].
        MEMBERS, MEMBER: the buffers of section s are MEMBER[MEMBERS[s] : MEMBERS[s + 1]].
        KEY0, KEY1, KEY2: by which buffers of equal least offsets are ordered, the largest first.
        FULLEST: most unplaced bytes in a section of each buffer, which is one of the keys.
        LEAST: least offset of each unplaced buffer.
        OPEN: 1 for each unplaced buffer.
        FLOOR, REST: floor and unplaced bytes of each section.
        CROSSING: number of unplaced buffers that are live in a section and in the next one.
        MARKS: number of the placement that may have raised the floor of each section last.
        OFFSETS: of each buffer in the plan that was found.
        CHANGED, BEFORE: least offsets, by buffer, and floors, by -1 - section, that were changed on
            the way to the present state, and what they were before.
        STACK: lists of buffers and of candidates.
        COUNTS: see `CountIndex`.
        STARTS, STARTING: the buffers whose first section is s are STARTING[STARTS[s] :
            STARTS[s + 1]].
        ENDS, ENDING: the same for buffers whose section behind the last one is s.
        FAILURES: how often the search has failed at the border in front of each section.
    """

    SIZES = 0
    FIRST = auto()
    LAST = auto()
    OVERLAPS = auto()
    OVERLAPPING = auto()
    MEMBERS = auto()
    MEMBER = auto()
    KEY0 = auto()
    KEY1 = auto()
    KEY2 = auto()
    FULLEST = auto()
    LEAST = auto()
    OPEN = auto()
    FLOOR = auto()
    REST = auto()
    CROSSING = auto()
    MARKS = auto()
    OFFSETS = auto()
    CHANGED = auto()
    BEFORE = auto()
    STACK = auto()
    COUNTS = auto()
    STARTS = auto()
    STARTING = auto()
    ENDS = auto()
    ENDING = auto()
    FAILURES = auto()


class CountIndex(IntEnum):
    """Numbers in the array COUNTS.

    Members:
        CAPACITY: bytes that a plan may take.
        STATES, LIMIT: states that were looked at, and how many may be.
        PUT: buffers that were placed so far, in all states.
        TRAIL: length of CHANGED.
        TOP: length of STACK.
        DECOMPOSE: whether sections that no unplaced buffer crosses part the problem.
        SUMS: sums that were looked at for one border.
    """

    CAPACITY = 0
    STATES = auto()
    LIMIT = auto()
    PUT = auto()
    TRAIL = auto()
    TOP = auto()
    DECOMPOSE = auto()
    SUMS = auto()


class Outcome(IntEnum):
    """How a search ended: with a plan, with a proof that there is none, or at its limit."""

    STOPPED = -1
    NONE = 0
    FOUND = 1


HUGE = 1 << 62
"""Above all offsets."""


SOLVE = "solve"
"""The name of the search by offsets among the entries of `LIBRARY`."""


@LIBRARY.entry
def solve(place: Ints, sections: int, buffers: int) -> int:
    """Looks for a plan within the capacity."""
    stack, counts = ints_at(place[PlaceIndex.STACK]), ints_at(place[PlaceIndex.COUNTS])
    for i in range(buffers):
        stack[i] = i
    counts[CountIndex.TOP] = buffers
    return parts(place, 0, buffers, 0, sections, 0, sections)


@LIBRARY.function
def parts(
    place: Ints, list_at: int, count: int, first: int, last: int, cut_first: int, cut_last: int
) -> int:
    """Solves sections `first` to `last`, part by part where sections from `cut_first` to
    `cut_last` are crossed by no unplaced buffer; STACK has their buffers from `list_at` on."""
    crossing, counts = ints_at(place[PlaceIndex.CROSSING]), ints_at(place[PlaceIndex.COUNTS])
    begin = first
    for s in range(cut_first, cut_last):
        if s + 1 < last and crossing[s] == 0 and counts[CountIndex.DECOMPOSE] == 1:
            result = part(place, list_at, count, begin, s + 1)
            if result != Outcome.FOUND:
                return result
            begin = s + 1
    return part(place, list_at, count, begin, last)


@LIBRARY.function
def part(place: Ints, list_at: int, count: int, first: int, last: int) -> int:
    """Solves a part whose buffers meet no others, in an order of its own."""
    stack, counts, is_open = (
        ints_at(place[PlaceIndex.STACK]),
        ints_at(place[PlaceIndex.COUNTS]),
        ints_at(place[PlaceIndex.OPEN]),
    )
    firsts, lasts = ints_at(place[PlaceIndex.FIRST]), ints_at(place[PlaceIndex.LAST])
    rest, fullest = ints_at(place[PlaceIndex.REST]), ints_at(place[PlaceIndex.FULLEST])
    own = counts[CountIndex.TOP]
    found = 0
    for k in range(count):
        b = stack[list_at + k]
        if is_open[b] == 1 and firsts[b] < last and lasts[b] > first:
            most = 0
            for s in range(firsts[b], lasts[b]):
                most = max(most, rest[s])
            fullest[b] = most
            stack[own + found] = b
            found += 1
    if found == 0:
        return Outcome.FOUND
    for k in range(1, found):
        b = stack[own + k]
        at = k
        while at > 0 and precedes(place, b, stack[own + at - 1]) == 1:
            stack[own + at] = stack[own + at - 1]
            at -= 1
        stack[own + at] = b
    counts[CountIndex.TOP] = own + found
    result = search(place, own, found, first, last, 0, -1)
    counts[CountIndex.TOP] = own
    return result


@LIBRARY.function
def precedes(place: Ints, one: int, other: int) -> int:
    """Says whether a buffer is tried in front of another one of the same least offset."""
    key0, key1 = ints_at(place[PlaceIndex.KEY0]), ints_at(place[PlaceIndex.KEY1])
    key2 = ints_at(place[PlaceIndex.KEY2])
    if key0[one] != key0[other]:
        return 1 if key0[one] > key0[other] else 0
    if key1[one] != key1[other]:
        return 1 if key1[one] > key1[other] else 0
    return 1 if key2[one] > key2[other] else 0


@LIBRARY.function
def search(
    place: Ints, list_at: int, count: int, first: int, last: int, lowest: int, rank: int
) -> int:
    """Places one more buffer in every way that matters, and the others behind it.

    Args:
        list_at: where STACK has the part's buffers, placed and unplaced ones, by their keys.
        count: of them.
        first, last: sections of the part.
        lowest, rank: offset and number in the list of what was placed last; a canonical plan goes
            on above it, or beside it with a buffer behind it in the list.
    """
    counts, stack, is_open = (
        ints_at(place[PlaceIndex.COUNTS]),
        ints_at(place[PlaceIndex.STACK]),
        ints_at(place[PlaceIndex.OPEN]),
    )
    least, sizes, offsets = (
        ints_at(place[PlaceIndex.LEAST]),
        ints_at(place[PlaceIndex.SIZES]),
        ints_at(place[PlaceIndex.OFFSETS]),
    )
    if counts[CountIndex.STATES] >= counts[CountIndex.LIMIT]:
        return Outcome.STOPPED
    counts[CountIndex.STATES] += 1
    # An offset where an unplaced buffer would fit below leaves a gap that another plan has not.
    gap = HUGE
    for k in range(count):
        b = stack[list_at + k]
        if is_open[b] == 1:
            gap = min(gap, least[b] + sizes[b])
    if gap == HUGE:
        return Outcome.FOUND
    own = counts[CountIndex.TOP]
    found = 0
    for k in range(count):
        b = stack[list_at + k]
        onward = least[b] - lowest if least[b] != lowest else k - rank
        if is_open[b] == 1 and least[b] < gap and onward > 0:
            at = own + found
            while at > own and least[stack[list_at + stack[at - 1]]] > least[b]:
                stack[at] = stack[at - 1]
                at -= 1
            stack[at] = k
            found += 1
    counts[CountIndex.TOP] = own + found
    result = Outcome.NONE
    k = 0
    while k < found and result == Outcome.NONE:
        number = stack[own + k]
        b = stack[list_at + number]
        offset = least[b]
        trail = counts[CountIndex.TRAIL]
        covered = put(place, b)
        if fits(place, first, last, offset) == 1:
            result = behind(place, b, list_at, count, first, last, offset, number)
            if result == Outcome.FOUND:
                offsets[b] = offset
        take(place, b, trail)
        k += 1
        if covered == 0:  # Nothing is to lie above b, so that it did not cause the failure.
            k = found
    counts[CountIndex.TOP] = own
    return result


@LIBRARY.function
def behind(
    place: Ints, b: int, list_at: int, count: int, first: int, last: int, offset: int, number: int
) -> int:
    """Goes on behind buffer `b`: as one part, or by the parts that it held together."""
    crossing, counts = ints_at(place[PlaceIndex.CROSSING]), ints_at(place[PlaceIndex.COUNTS])
    firsts, lasts = ints_at(place[PlaceIndex.FIRST]), ints_at(place[PlaceIndex.LAST])
    parted = 0
    for s in range(firsts[b], lasts[b] - 1):
        crossing[s] -= 1
        if crossing[s] == 0:
            parted = 1
    if parted == 1 and counts[CountIndex.DECOMPOSE] == 1:
        result = parts(place, list_at, count, first, last, firsts[b], lasts[b] - 1)
    else:
        result = search(place, list_at, count, first, last, offset, number)
    for s in range(firsts[b], lasts[b] - 1):
        crossing[s] += 1
    return result


@LIBRARY.function
def put(place: Ints, b: int) -> int:
    """Places a buffer at its least offset; returns whether unplaced ones conflict with it."""
    sizes, least, is_open = (
        ints_at(place[PlaceIndex.SIZES]),
        ints_at(place[PlaceIndex.LEAST]),
        ints_at(place[PlaceIndex.OPEN]),
    )
    firsts, lasts = ints_at(place[PlaceIndex.FIRST]), ints_at(place[PlaceIndex.LAST])
    overlaps, overlapping = (
        ints_at(place[PlaceIndex.OVERLAPS]),
        ints_at(place[PlaceIndex.OVERLAPPING]),
    )
    members, member = ints_at(place[PlaceIndex.MEMBERS]), ints_at(place[PlaceIndex.MEMBER])
    floor, rest, marks = (
        ints_at(place[PlaceIndex.FLOOR]),
        ints_at(place[PlaceIndex.REST]),
        ints_at(place[PlaceIndex.MARKS]),
    )
    changed, before = ints_at(place[PlaceIndex.CHANGED]), ints_at(place[PlaceIndex.BEFORE])
    counts = ints_at(place[PlaceIndex.COUNTS])
    counts[CountIndex.PUT] += 1
    put_number, trail = counts[CountIndex.PUT], counts[CountIndex.TRAIL]
    top = least[b] + sizes[b]
    is_open[b] = 0
    covered = 0
    low, high = HUGE, 0
    for k in range(overlaps[b], overlaps[b + 1]):
        other = overlapping[k]
        if is_open[other] == 1:
            covered = 1
            if least[other] < top:
                changed[trail] = other
                before[trail] = least[other]
                trail += 1
                least[other] = top
                low, high = min(low, firsts[other]), max(high, lasts[other])
                for s in range(firsts[other], lasts[other]):
                    marks[s] = put_number
    for s in range(firsts[b], lasts[b]):
        changed[trail] = -1 - s
        before[trail] = floor[s]
        trail += 1
        floor[s] = top
        rest[s] -= sizes[b]
    for s in range(low, high):
        if marks[s] == put_number:
            lowest = HUGE
            for k in range(members[s], members[s + 1]):
                if is_open[member[k]] == 1:
                    lowest = min(lowest, least[member[k]])
            if floor[s] < lowest < HUGE:
                changed[trail] = -1 - s
                before[trail] = floor[s]
                trail += 1
                floor[s] = lowest
    counts[CountIndex.TRAIL] = trail
    return covered


@LIBRARY.function
def fits(place: Ints, first: int, last: int, offset: int) -> int:
    """Says whether buffers still to be placed fit above the floors and the last offset."""
    floor, rest, counts = (
        ints_at(place[PlaceIndex.FLOOR]),
        ints_at(place[PlaceIndex.REST]),
        ints_at(place[PlaceIndex.COUNTS]),
    )
    capacity = counts[CountIndex.CAPACITY]
    for s in range(first, last):
        if max(floor[s], offset) + rest[s] > capacity:
            return 0
    return 1


@LIBRARY.function
def take(place: Ints, b: int, trail: int) -> int:
    """Undoes `put`, and what was changed since the trail had that length."""
    sizes, least, is_open = (
        ints_at(place[PlaceIndex.SIZES]),
        ints_at(place[PlaceIndex.LEAST]),
        ints_at(place[PlaceIndex.OPEN]),
    )
    firsts, lasts = ints_at(place[PlaceIndex.FIRST]), ints_at(place[PlaceIndex.LAST])
    floor, rest = ints_at(place[PlaceIndex.FLOOR]), ints_at(place[PlaceIndex.REST])
    changed, before = ints_at(place[PlaceIndex.CHANGED]), ints_at(place[PlaceIndex.BEFORE])
    counts = ints_at(place[PlaceIndex.COUNTS])
    for s in range(firsts[b], lasts[b]):
        rest[s] += sizes[b]
    at = counts[CountIndex.TRAIL]
    while at > trail:
        at -= 1
        what = changed[at]
        if what < 0:
            floor[-1 - what] = before[at]
        else:
            least[what] = before[at]
    counts[CountIndex.TRAIL] = trail
    is_open[b] = 1
    return 0
