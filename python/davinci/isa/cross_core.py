"""Flags between the cores of a split machine.

Each core has a counter for each flag. A set of mode 0 counts on every core of the setter's kind
once all of them have set; mode 1 does the same for the vector cores of one block's group; with
mode 2 a cube core's set counts on its vector cores, and theirs, once all have set, on the cube
core.

Locks have no instruction: code of AscendNPU-IR reads a word in global memory again and again until
it holds the number of the block, whose turn it is then, and stores the next number behind it. Two
records stand for the loop and for what the store says.
"""

from __future__ import annotations

from davinci.isa.control import PIPE_DOC
from davinci.isa.core import (
    Field,
    Instruction,
    Pipe,
    Values,
    check_queue,
    define,
    no_compute,
    no_regions,
)

ALL_OF_A_KIND, VECTOR_CORES_OF_A_GROUP, CUBE_AND_VECTOR_CORES = range(3)
BY_FLAGS = -1
"""In the place of the number of a counter's argument: the cores of a launch meet by flags."""

FLAG_DOC = "flag id; the machine file says how many exist"


def check_pipe(values: Values) -> str:
    """The pipe must be one that executes instructions."""
    return check_queue(values["pipe"])


define(
    Instruction(
        name="ffts_cross_core_sync",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(
            Field("pipe", 0, 3, maximum=Pipe.FIX, doc=f"pipe that sets the flag: {PIPE_DOC}"),
            Field(
                "mode",
                4,
                5,
                maximum=CUBE_AND_VECTOR_CORES,
                doc="0: among all cube or all vector cores of the launch; 1: between the two "
                "vector cores of a group; 2: between a cube core and its vector cores",
            ),
            Field("flag", 8, 11, doc=FLAG_DOC),
        ),
        accesses=no_regions,
        compute=no_compute,
        timing="cross_core_flag",
        doc="Sets a flag for other cores once all earlier instructions of the pipe are complete.",
        source="docs/hardware.md c (flags between cores)",
        check=check_pipe,
    )
)

define(
    Instruction(
        name="wait_flag_dev",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(Field("flag", 0, 3, doc=FLAG_DOC),),
        accesses=no_regions,
        compute=no_compute,
        timing="cross_core_flag",
        doc="Holds the scalar unit, and so everything after it, until the core's counter of the "
        "flag is above 0; counts it down by 1.",
        source="docs/hardware.md c (flags between cores)",
    )
)

TURN_SOURCE = "AscendNPU-IR, sync_block_lock and sync_block_unlock"

define(
    Instruction(
        name="pass_turn",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(
            Field("pipe", 0, 3, maximum=Pipe.FIX, doc=f"pipe that passes it on: {PIPE_DOC}"),
            Field("lock", 8, 23, doc="number of the lock in its launch"),
        ),
        accesses=no_regions,
        compute=no_compute,
        timing="turn",
        doc="Not an instruction: the next block has its turn in a lock, once all earlier "
        "instructions of the pipe are complete.",
        source=TURN_SOURCE,
        check=check_pipe,
    )
)

define(
    Instruction(
        name="await_turn",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(Field("lock", 8, 23, doc="number of the lock in its launch"),),
        accesses=no_regions,
        compute=no_compute,
        timing="turn",
        doc="Not an instruction: holds the scalar unit, and so everything after it, until the "
        "block has its turn in a lock. The first block has it from the start.",
        source=TURN_SOURCE,
    )
)
