"""Flags, barriers, the vector mask, and the record that sums up scalar memory accesses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.isa.core import (
    Access,
    Accesses,
    Array,
    Field,
    Instruction,
    Pipe,
    Registers,
    Space,
    Values,
    check_queue,
    define,
    no_compute,
    no_regions,
)

PIPE_DOC = ", ".join(f"{pipe.value} {pipe.name}" for pipe in Pipe)
BYTE = np.dtype(np.uint8)


def check_flag(values: Values) -> str:
    """Flags order two different pipes."""
    for name in ("src_pipe", "dst_pipe"):
        if message := check_queue(values.get(name, Pipe.S)):
            return message
    if values.get("src_pipe") == values.get("dst_pipe"):
        pipe = Pipe(values["src_pipe"]).name
        return f"a flag needs two pipes: found {pipe} twice, expected pipe_barrier inside one pipe"
    return ""


def check_barrier(values: Values) -> str:
    """A barrier names a pipe or all of them."""
    return "" if values["pipe"] == Pipe.ALL else check_queue(values["pipe"])


FLAG_FIELDS = (
    Field("src_pipe", 0, 3, maximum=Pipe.FIX, doc=f"pipe that sets the flag: {PIPE_DOC}"),
    Field("dst_pipe", 4, 7, maximum=Pipe.FIX, doc="pipe that waits for it"),
    Field("event", 8, 11, doc="event id; the machine file says how many exist"),
)

for name, doc in [
    ("set_flag", "Raises an event once all earlier instructions of src_pipe are complete."),
    ("wait_flag", "Holds later instructions of dst_pipe until the event is raised; clears it."),
]:
    define(
        Instruction(
            name=name,
            type="",
            pipe=Pipe.S,
            operands=(),
            fields=FLAG_FIELDS,
            accesses=no_regions,
            compute=no_compute,
            timing="flag",
            doc=doc,
            source="docs/hardware.md b3 (time), c (events)",
            check=check_flag,
        )
    )

define(
    Instruction(
        name="pipe_barrier",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(Field("pipe", 0, 3, minimum=Pipe.V, maximum=Pipe.FIX, doc=f"pipe: {PIPE_DOC}"),),
        accesses=no_regions,
        compute=no_compute,
        timing="barrier",
        doc="Holds later instructions of the pipe until its earlier ones are complete; "
        "ALL holds every pipe until all are. There is no barrier of S, which is sequential.",
        source="docs/hardware.md b3 (time), c (PipeBarrier)",
        check=check_barrier,
    )
)


def set_mask(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    registers.mask_low, registers.mask_high = values["low"], values["high"]
    return ()


define(
    Instruction(
        name="set_vector_mask",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(
            Field("low", 0, 63, doc="mask of lanes 0..63"),
            Field("high", 0, 63, word=1, doc="mask of lanes 64..127, which 16-bit types have"),
        ),
        accesses=no_regions,
        compute=set_mask,
        timing="scalar",
        doc="Sets the vector mask: bit i lets lane i of each repeat take part.",
        source="docs/hardware.md b2 (time), c (mask)",
    )
)


def scalar_regions(values: Values, registers: Registers) -> Accesses:
    space = Space(values["space"])

    def region(kind: str) -> list[Access]:
        low, high = values[f"{kind}_low"], values[f"{kind}_high"]
        return [Access(space, low, (), high - low, BYTE)] if values[f"{kind}s"] else []

    return region("load"), region("store")


def check_ranges(values: Values) -> str:
    """Address ranges must not be reversed, and the memory must be one the scalar unit reaches."""
    if values["space"] not in (Space.GM, Space.UB):
        return f"no scalar access to memory {values['space']}, expected GM or UB"
    for kind in ("load", "store"):
        low, high = values[f"{kind}_low"], values[f"{kind}_high"]
        if values[f"{kind}s"] and low >= high:
            return f"{kind} range is empty: found {low}..{high}"
    return ""


define(
    Instruction(
        name="scalar_access",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(
            Field("loads", 0, 63, doc="number of loads"),
            Field("stores", 0, 63, word=1, doc="number of stores"),
            Field("load_low", 0, 63, word=2, doc="lowest byte address read"),
            Field("load_high", 0, 63, word=3, doc="one past the highest byte address read"),
            Field("store_low", 0, 63, word=4, doc="lowest byte address written"),
            Field("store_high", 0, 63, word=5, doc="one past the highest byte address written"),
            Field("space", 0, 63, word=6, maximum=Space.UB, doc="memory: 1 GM, 6 UB"),
        ),
        accesses=scalar_regions,
        compute=no_compute,
        timing="scalar_access",
        doc="Not an instruction: what the scalar unit read and wrote since the instruction before, "
        "as written by the runtime. The data is in memory already; the regions bound the accesses "
        "and serve to check their order.",
        source="docs/hardware.md b3 (time)",
        check=check_ranges,
    )
)
