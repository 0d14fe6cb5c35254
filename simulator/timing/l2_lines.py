"""What a part of a round does to the lines of the L2: compiled; see `timing.l2`.

`bounds` has two numbers for each of `blocks` blocks: which accesses of the round are its own in the
part, the first one and the one behind the last.
"""

from __future__ import annotations

from davinci.native import Bytes, Ints
from davinci.simulator.timing.layout import LIBRARY

OWNERS_A_WORD = 62
"""Blocks whose reads of a line one word of a line notes, each with a bit."""

COMING, PRESENT, FILLED, READ, COMMON, READS = range(6)
COUNTS = 6
"""What `look_up` counts: lines that come in, that were there, that come in for a read; lines read
by each block, how often two of them read the same one, and reads."""


@LIBRARY.entry
def look_up(
    lines: Ints, kinds: Bytes, bounds: Ints, blocks: int, used: Ints, step: int,
    readers: Ints, words: int, fresh: Bytes, coming: Ints, present: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Looks accesses up; all hits and misses are those at the start.

    Args:
        lines, kinds: of the accesses: line, and kind.
        used: for each line the step in which it was last used, 0 if it is not there; brought to
            `step` for lines that are used.
        readers: `words` for each line: which blocks read it, and behind these how many; no words
            if there is one block.
        fresh: of each line 0.
        coming, present: filled with lines that come in, and that were there.
        counts: filled with `COUNTS` numbers.
    """
    for block in range(blocks):
        bit = 1 << block % OWNERS_A_WORD
        for i in range(bounds[2 * block], bounds[2 * block + 1]):
            line = lines[i]
            kind = kinds[i]
            if kind & 1 == 0:
                counts[READS] += 1
                if words:
                    place = line * words
                    mask = place + block // OWNERS_A_WORD
                    if readers[mask] & bit == 0:
                        readers[mask] = readers[mask] | bit
                        counts[COMMON] += 2 * readers[place + words - 1]
                        readers[place + words - 1] += 1
                        counts[READ] += 1
            if used[line] == 0:
                if kind < 2 and fresh[line] == 0:
                    fresh[line] = 1
                    coming[counts[COMING]] = line
                    counts[COMING] += 1
                    counts[FILLED] += 1 - (kind & 1)
            elif used[line] != step:
                used[line] = step
                present[counts[PRESENT]] = line
                counts[PRESENT] += 1
    for i in range(counts[COMING]):
        used[coming[i]] = step
        fresh[coming[i]] = 0


@LIBRARY.entry
def note_readers(
    lines: Ints, bounds: Ints, blocks: int, readers: Ints, words: int, noted: Ints
) -> None:
    """Notes for each access how many blocks have read its line."""
    for block in range(blocks):
        for i in range(bounds[2 * block], bounds[2 * block + 1]):
            noted[i] = readers[lines[i] * words + words - 1]


@LIBRARY.entry
def forget_readers(lines: Ints, bounds: Ints, blocks: int, readers: Ints, words: int) -> None:
    """Makes the words of all lines that were accessed 0."""
    for block in range(blocks):
        for i in range(bounds[2 * block], bounds[2 * block + 1]):
            for k in range(words):
                readers[lines[i] * words + k] = 0


@LIBRARY.entry
def write_lines(
    lines: Ints, kinds: Bytes, bounds: Ints, blocks: int, used: Ints, dirty: Bytes, moved: Ints,
    passing: Ints,
) -> None:  # fmt: skip
    """Notes which lines that stay hold something new.

    Args:
        lines, kinds, used: as in `look_up`, once what has no room has left.
        dirty: of each line, whether the memory does not have what it holds.
        moved, passing: filled with the accesses of each kind, and with those of lines that are not
            there.
    """
    for block in range(blocks):
        for i in range(bounds[2 * block], bounds[2 * block + 1]):
            kind = kinds[i]
            moved[kind] += 1
            if used[lines[i]] == 0:
                passing[kind] += 1
            elif kind & 1:
                dirty[lines[i]] = 1
