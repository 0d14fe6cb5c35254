"""Pipes and flags of one core by their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from davinci.isa.core import LOCATION_SHIFT, OPCODE_MASK, Instruction, Pipe, Records
from davinci.native import Ints
from davinci.simulator.core.problems import UnplacedFault, located

PIPES = int(max(Pipe)) + 1
"""Length of lists that are indexed by pipes."""

S, V, M, MTE2 = int(Pipe.S), int(Pipe.V), int(Pipe.M), int(Pipe.MTE2)
ALL, FIX = int(Pipe.ALL), int(Pipe.FIX)

Event = tuple[int, int, int]
"""Source pipe, destination pipe, event id."""

EVENT_IDS = 16
"""Event ids that an instruction can name."""

EVENTS = PIPES * PIPES * EVENT_IDS
"""Events that it can."""


def number_of(event: Event) -> int:
    """Number of an event, below `EVENTS`."""
    source, destination, number = event
    return (source * PIPES + destination) * EVENT_IDS + number


def event_of(number: int) -> Event:
    """The event of that number."""
    pair, event = divmod(number, EVENT_IDS)
    return pair // PIPES, pair % PIPES, event


def name_of(event: Event) -> str:
    """`event 0 from PIPE_MTE2 to PIPE_V`."""
    source, destination, number = event
    return f"event {number} from PIPE_{Pipe(source).name} to PIPE_{Pipe(destination).name}"


def out_of_order(record: Instruction, values: Mapping[str, int], before: str) -> UnplacedFault:
    """A flag holds one event, so it is not set again before a wait clears it; instructions on
    registers are those of a function, and nothing else is.

    Args:
        record, values: the instruction and its fields.
        before: the `set_flag` that set the flag before, in words; "" where it is not known.
    """
    if record.name != "set_flag":
        inside = "a register instruction outside of a function"
        other = "another instruction before a function is over"
        return UnplacedFault(
            inside if record.timing == "register" else other,
            found=record.mnemonic,
            hint="vf_call says how many instructions on registers follow it",
        )
    return UnplacedFault(
        "flag set twice without a wait between",
        found=name_of((values["src_pipe"], values["dst_pipe"], values["event"])) + before,
        hint="wait for it before setting it again, or use another event id",
    )


def set_before(records: Records, at: int, index: int, locations: Sequence[str]) -> str:
    """The last of the records before the one at `at` that is the same but for its location, in
    words; "" if there is none.

    Args:
        index: of the record at `at` in the block.
    """
    same = records[:at] == records[at]
    same[:, 0] = (records[:at, 0] ^ records[at, 0]) & OPCODE_MASK == 0
    found = np.flatnonzero(same.all(axis=1))
    if not len(found):
        return ""
    number = int(found[-1])
    place = located(locations, int(records[number, 0]) >> LOCATION_SHIFT)
    return f", set before by #{index - at + number} at {place}"


def flags_left(counts: Ints) -> None:
    """Checks that no flag is left set.

    Args:
        counts: by event, how much more often each was set than waited for.

    Raises:
        Problem: one is.
    """
    events = [event_of(int(number)) for number in np.flatnonzero(counts > 0)]
    if events:
        raise UnplacedFault(
            "flags left set at the end of the program",
            found=", ".join(map(name_of, events)),
            hint="every set_flag needs a wait_flag: the next kernel would find the flag set",
        )
