"""Blocks that issue the same, but for the lines of global memory that they work on.

Without data the time of a block depends on nothing else: what one such block did, all of them do.
Its stream is decoded and put on the time line once, also if another launch issues it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci.isa.core import BY_OPCODE, OPCODE_MASK, RECORD_WORDS, Records, Space
from davinci.machine import Machine
from davinci.simulator.core.core import Core
from davinci.simulator.core.forms import ALL_BITS, scalar_word
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.regions import Ints, Region
from davinci.simulator.timing.collect import Done, gm_ports
from davinci.simulator.timing.gm_model import Rates

StreamKey = tuple[Rates, bytes]
"""Share of global memory, and the records without what makes no difference."""

KEPT_RECORDS = 1 << 20
"""Records of all streams that are remembered; the oldest are forgotten."""

SCALAR_ACCESS = next(r for r in BY_OPCODE.values() if r.name == "scalar_access")
LOAD_LOW, LOAD_HIGH, STORE_LOW, STORE_HIGH, SPACE = range(3, 8)
"""Words of a `scalar_access`."""


class StreamRecorder:
    """A core to programs, which keeps what they issue; scalar accesses see a real one's memory."""

    sub_block = 0

    def __init__(self, core: Core) -> None:
        self._core = core
        self._parts: list[Records] = [np.zeros((0, RECORD_WORDS), dtype=np.uint64)]

    def memory(self, space: Space) -> Memory:
        return self._core.memory(space)

    def consume(self, records: Records) -> None:
        self._parts.append(records)

    def records(self) -> Records:
        """All of them, uint64[n, 8] in program order."""
        return self._parts[1] if len(self._parts) == 2 else np.concatenate(self._parts)


BlockProgram = Callable[[Sequence[int], int, int, Core | StreamRecorder], None]
"""`program(arguments, block, blocks, core)`: runs the scalar program of one block."""


@dataclass(frozen=True)
class _Known:
    """A stream that was executed.

    Attributes:
        done: what its block did.
        places: (record, word) of each address in global memory, as indices of the flat records.
        addresses: at these places.
        reach: bytes from there to the end of what is touched.
        owners: for each line touched the number of the address it belongs to.
        size: records.
    """

    done: Done
    places: Ints
    addresses: Ints
    reach: Ints
    owners: Ints
    size: int


class Streams:
    """The streams of a device's blocks, by what they issue.

    Args:
        machine: of the device.
        gm_bytes: size of its global memory.
    """

    def __init__(self, machine: Machine, gm_bytes: int) -> None:
        self._line, self._gm_bytes = machine.gm.line_bytes, gm_bytes
        self._bits = _bits(self._line)
        self._known: dict[StreamKey, _Known] = {}
        self._records = 0

    def run(self, core: Core, rates: Rates, records: Records, begin: Callable[[], None]) -> Done:
        """Executes the records of a block, or finds one that issued the same.

        Args:
            core: to execute them.
            rates: of its share of global memory.
            records: all of the block.
            begin: makes `core` begin the block.

        Raises:
            DeviceFault: the program did something illegal.
        """
        key = (rates, self._signature(records))
        known = self._known.get(key)
        found = None if known is None else self._again(known, records)
        if found is not None:
            return found
        begin()
        core.consume(records)
        done = Done.of(core, self._line)
        if known is None:
            self._keep(key, records, done)
        return done

    def _signature(self, records: Records) -> bytes:
        """The records without the lines of global memory and the data that they name."""
        opcodes = records[:, 0] & OPCODE_MASK
        if opcodes.size and opcodes.max() >= len(self._bits):
            return records.tobytes()
        kept = records & self._bits[opcodes.astype(np.intp)]
        scalar = np.flatnonzero(opcodes == SCALAR_ACCESS.opcode)
        if scalar.size:
            in_gm = scalar[records[scalar, SPACE] == Space.GM]
            for low, high in ((LOAD_LOW, LOAD_HIGH), (STORE_LOW, STORE_HIGH)):
                kept[in_gm, high] -= records[in_gm, low]
                kept[in_gm, low] %= np.uint64(self._line)
        return kept.tobytes()

    def _again(self, known: _Known, records: Records) -> Done | None:
        """What a block with these records does; None if not all of it lies in global memory."""
        scalar = records[records[:, 0] & OPCODE_MASK == SCALAR_ACCESS.opcode]
        scalar = scalar[scalar[:, SPACE] == Space.GM]
        ends = scalar[:, (LOAD_HIGH, STORE_HIGH)]
        addresses = records.reshape(-1)[known.places].astype(np.int64)
        if (ends > self._gm_bytes).any() or (addresses + known.reach > self._gm_bytes).any():
            return None
        touched = known.done.touched
        lines = touched.lines + ((addresses - known.addresses) // self._line)[known.owners]
        return replace(known.done, touched=replace(touched, lines=lines))

    def _keep(self, key: StreamKey, records: Records, done: Done) -> None:
        places, reach, counts = [], [], []
        for item, port, moves, _ in gm_ports(done.timeline):
            places.append(item.index * RECORD_WORDS + port.word)
            reach.append(port.offset + port.region.high)
            address = item.words[port.word] + port.offset
            counts.append(_count_lines(port.region, address, self._line) if moves else 0)
        where = np.array(places, dtype=np.int64)
        addresses = records.reshape(-1)[where].astype(np.int64)
        owners = np.repeat(np.arange(len(counts)), np.array(counts, dtype=np.int64))
        assert owners.size == done.touched.lines.size
        ends = np.array(reach, dtype=np.int64)
        if (addresses + ends > self._gm_bytes).any():
            return
        self._known[key] = _Known(done, where, addresses, ends, owners, len(records))
        self._records += len(records)
        while self._records > KEPT_RECORDS:
            self._records -= self._known.pop(next(iter(self._known))).size


def _bits(line_bytes: int) -> Records:
    """For each opcode the bits of a record's words that matter, uint64[opcodes, 8].

    Of addresses in global memory only the place in a line does; of scalar operands, which are data,
    only the bits that belong to no field. All bits of addresses do where lines are no power of two.
    """
    bits = np.full((max(BY_OPCODE) + 1, RECORD_WORDS), ALL_BITS, dtype=np.uint64)
    for opcode, record in BY_OPCODE.items():
        for word, operand in enumerate(record.operands, 1):
            if operand.space == Space.GM and line_bytes & (line_bytes - 1) == 0:
                bits[opcode, word] = line_bytes - 1
        if word := scalar_word(record):
            (value,) = (f for f in record.fields if f.name == "value")
            bits[opcode, word] = ALL_BITS & ~((1 << value.width) - 1)
    return bits


def _count_lines(region: Region, address: int, line_bytes: int) -> int:
    """How many lines `davinci.simulator.timing.l2.lines_touched` lists for an access."""
    starts, lengths = region.runs
    first, last = starts + address, starts + (lengths - 1) + address
    return int(np.maximum(last // line_bytes - first // line_bytes + 1, 0).sum())
