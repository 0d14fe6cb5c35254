"""Counters in global memory, by which the cores of a coupled machine wait for each other.

Such a machine has no flags between cores. A core stores a growing number into its own line of 32
bytes, and others read the lines again and again until all numbers are large enough (Ascend C's
`SyncAll` in software). All of that is done by ordinary instructions. What says that a store and
a load are meant so are three records that the machine does not have and that take no time:

    hivm.post_counter     behind the store of a line: it orders what was done before it
    hivm.poll_counters    in front of the load of lines, once a turn of the loop that waits
    hivm.end_poll         when the scalar unit has looked at what was loaded, with what it saw

The simulator checks that the stored number is the one that the record names. How often a loop looks
depends on times; what a program issues may not: it issues one turn for each wait, when every
counter it asks for is on its way, and the time line repeats the turn until they have arrived.
"""

from __future__ import annotations

from davinci.isa.core import (
    Field,
    Instruction,
    Operand,
    Pipe,
    Space,
    define,
    no_compute,
    no_regions,
)

LINE_BYTES = 32
"""Bytes of a counter's line, and from one line to the next; the counter is the s32 at its start."""

SOURCE = "docs/hardware.md c (synchronisation of cores)"

define(
    Instruction(
        name="post_counter",
        type="",
        pipe=Pipe.MTE3,
        operands=(Operand("line", Space.GM, writes=False, doc="line of the counter"),),
        fields=(Field("value", 0, 63, doc="what the counter holds now; it must have grown"),),
        accesses=no_regions,
        compute=no_compute,
        timing="counter",
        doc="Not an instruction: the stores issued before have put a counter into its line. Who "
        "sees it there knows everything to be complete that this core's MTE3 knew to be.",
        source=SOURCE,
    )
)

define(
    Instruction(
        name="poll_counters",
        type="",
        pipe=Pipe.MTE2,
        operands=(
            Operand("lines", Space.GM, writes=False, doc="first of the lines"),
            Operand("result", Space.UB, writes=False, doc="where the scalar unit looks, s32"),
        ),
        fields=(
            Field("count", 0, 15, minimum=1, doc="number of lines"),
            Field("looks", 16, 31, minimum=1, doc="numbers, a line apart, that it looks at"),
            Field("value", 0, 63, word=1, doc="what every counter must have reached"),
        ),
        accesses=no_regions,
        compute=no_compute,
        timing="counter",
        doc="Not an instruction: the load issued next reads counters, in a turn of a loop that "
        "waits for all of them to reach a value. In simulations without data it puts the value "
        "wherever the scalar unit looks.",
        source=SOURCE,
    )
)

define(
    Instruction(
        name="end_poll",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(Field("value", 0, 63, doc="least counter that the scalar unit has seen"),),
        accesses=no_regions,
        compute=no_compute,
        timing="counter",
        doc="Not an instruction: the scalar unit has looked at what the last poll loaded. If it is "
        "as much as was waited for, the core knows what those who posted it knew.",
        source=SOURCE,
    )
)
