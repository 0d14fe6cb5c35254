"""Programs that issue what one before them did, but for addresses in global memory.

A launch of thousands of small programs mostly runs one stream of instructions thousands of times.
A program of it is a twin of one that was executed before if its records are the same, each address
in global memory lies at the same place in a line, and what lies at other distances from each other
than it did before does not meet. Then it is legal on the chip and takes the same time; it is only
checked in global memory, all programs of a round at once, and its data is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from davinci.errors import DeviceFault
from davinci.isa.core import RECORD_WORDS, Records, Space
from davinci.native import Ints
from davinci.simulator.checks.races import GmAccess, InstructionRun, Party
from davinci.simulator.core.core import Core
from davinci.simulator.core.forms import InstructionForm
from davinci.simulator.core.launch import KernelCall
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.plan import StreamPart
from davinci.simulator.core.program import BlockProgram, ScalarCore
from davinci.simulator.timing.collect import Done
from davinci.simulator.timing.l2 import Touched

Bools = npt.NDArray[np.bool_]

MOST = (1 << 63) - 1
"""Above every address."""

MOST_UNLIKE = 64
"""Programs in a row that are no twins of others, behind which none is looked for any longer."""

MOST_GROUPS = 16
"""Groups of addresses, each with a distance of its own from where they were, of which every two
are compared."""


class TooLong(BaseException):
    """Ends a scalar program whose stream is longer than a buffer."""


class HeldStream:
    """In place of a core: keeps what a scalar program issues, one buffer at most."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.records: Records = np.zeros((0, RECORD_WORDS), dtype=np.uint64)
        self.sub_block, self.most_turns = 0, core.most_turns

    def memory(self, space: Space) -> Memory:
        """The scalar program accesses none of them."""
        return self._core.memory(space)

    def consume(self, records: Records) -> None:
        """Keeps them.

        Raises:
            TooLong: there were some before.
        """
        if len(self.records):
            raise TooLong
        self.records = records


class TwinRun(NamedTuple):
    """A program that was executed as a twin; but for `done` what `BlockRaces` asks a core for.

    Attributes:
        done: by it, with the time line of the program before it.
        gm_reads, gm_writes, describer, memory: see `Core`.
    """

    done: Done
    gm_reads: list[GmAccess]
    gm_writes: list[GmAccess]
    describer: Callable[[], Callable[[Party], str]]
    memory: Callable[[Space], Memory]


class Transferred:
    """The regions of global memory that a program touches; its transfers are the records that name
    an address there.

    Attributes:
        rows, words: record of each transfer, and the word of it that holds the address.
        owners: number of the transfer of each region.
        lows, highs: of each region first byte and the one behind the last, from that address.
        written: whether each region is written.
        complete: no record touches global memory without naming an address.
    """

    def __init__(self, forms: Sequence[InstructionForm]) -> None:
        self.rows = np.array([i for i, form in enumerate(forms) if form.gm_word], dtype=np.int64)
        self.forms = [forms[row] for row in self.rows.tolist()]
        self.words = np.array([form.gm_word for form in self.forms], dtype=np.int64)
        ports = [(i, *port) for i, form in enumerate(self.forms) for port in form.gm_ports]
        self.owners = np.array([i for i, _, _ in ports], dtype=np.int64)
        self.lows = np.array([p.offset + p.region.low for _, p, _ in ports], dtype=np.int64)
        self.highs = np.array([p.offset + p.region.high for _, p, _ in ports], dtype=np.int64)
        self.written = np.array([written for *_, written in ports], dtype=np.bool_)
        self.complete = all(bool(form.gm_word) == form.moves_gm for form in forms)

    def lines(self, addresses: Ints, line_bytes: int) -> Ints:
        """How many lines each transfer touches, one counted as often as runs lie in it."""
        counts = np.zeros(len(self.forms), dtype=np.int64)
        for i, (form, address) in enumerate(zip(self.forms, addresses.tolist(), strict=True)):
            for port, _ in form.gm_ports:
                starts, lengths = port.region.runs
                first = address + port.offset + starts
                counts[i] += np.sum((first + lengths - 1) // line_bytes - first // line_bytes + 1)
        return counts

    def apart(self, addresses: Ints, shifts: Ints) -> Bools:
        """Of each program whether what it touches meets as little as before: transfers that lie as
        far from where they were meet as they did; between others, nothing that one writes meets
        what the other touches.

        Args:
            addresses, shifts: of each program its transfers, and how far they are from where they
                were, int64[programs, transfers].
        """
        if (shifts == shifts[:, :1]).all():
            return np.ones(len(shifts), dtype=np.bool_)
        distinct, group = np.unique(shifts, axis=1, return_inverse=True)
        count = distinct.shape[1]
        if count > MOST_GROUPS:
            return np.zeros(len(shifts), dtype=np.bool_)
        low, high = addresses[:, self.owners] + self.lows, addresses[:, self.owners] + self.highs
        group = group.reshape(-1)[self.owners]
        bounds = []
        for number in range(count):
            for mine in (group == number, (group == number) & self.written):
                least = low[:, mine].min(axis=1, initial=MOST)
                bounds.append((least, high[:, mine].max(axis=1, initial=-1)))
        fine = np.ones(len(shifts), dtype=np.bool_)
        for one, other in permutations(range(count), 2):
            (low, high), (first, last) = bounds[2 * one + 1], bounds[2 * other]
            fine &= (high <= first) | (last <= low)
        return fine


class KnownStream:
    """A program that was executed, for its twins.

    Args:
        core: that ran it, and computes its twins.
        records: of it.
        done: by it.
        checks: global memory is checked.
    """

    def __init__(self, core: Core, records: Records, done: Done, checks: bool) -> None:
        self._core, self._done, self._checks = core, done, checks
        tables, steps = done.timeline.tables, done.timeline.steps().copy()
        self._line = tables.machine.gm.line_bytes
        self._bypass = tables.machine.l2.bypass_offset_bytes or MOST
        self._gm = core.memory(Space.GM)
        forms = [tables.forms_of_steps[step] for step in steps.tolist()]
        self._there = there = Transferred(forms)
        compared = tables.compared(steps)
        self._compared = compared.words
        self._records, self._masked = records, records & self._compared
        named = self._named(records[None])
        self._direct, self._first = named >= self._bypass, self._located(named)[0]
        self._counts = there.lines(self._first, self._line)
        self._plan = core.plan_of(StreamPart(records, steps, 0))
        self._describe = core.describer()
        self._reads = self._accesses(core.gm_reads) if checks else []
        self._writes = self._accesses(core.gm_writes) if checks else []
        runs = [range(i + 1, i + n) for i, n, _ in (*self._reads, *self._writes)]
        self._inner = np.array(sorted({i for run in runs for i in run}), dtype=np.int64)
        self.fit = there.complete and not compared.finds and self._plan is not None
        self.fit &= int(self._counts.sum()) == done.touched.lines.size

    def __len__(self) -> int:
        return len(self._records)

    def _accesses(self, log: Sequence[GmAccess]) -> list[tuple[int, int, GmAccess]]:
        """Accesses with their first transfer, and how many they are of."""
        first = np.searchsorted(self._there.rows, [access.party.index for access in log]).tolist()
        counts = [len(a.party.records) if isinstance(a.party, InstructionRun) else 1 for a in log]
        return list(zip(first, counts, log, strict=True))

    def _named(self, records: Records) -> Ints:
        """Addresses of transfers as they stand in records of programs."""
        found: Ints = records[:, self._there.rows, self._there.words].view(np.int64)
        return found

    def _located(self, named: Ints) -> Ints:
        """Addresses of transfers in memory: without the offset by which they bypass the L2."""
        found: Ints = np.where(named >= self._bypass, named - self._bypass, named)
        return found

    def key(self) -> bytes:
        """Equal for programs that may be twins of each other."""
        return self.keys(self._records[None])[0]

    def issues(self, streams: Records) -> Bools:
        """Which programs issue the same but for addresses in global memory.

        Args:
            streams: records of each, uint64[programs, n, 8].
        """
        if streams.shape[1:] != self._masked.shape:
            return np.zeros(len(streams), dtype=np.bool_)
        found: Bools = ((streams & self._compared) == self._masked).all(axis=(1, 2))
        return found

    def keys(self, streams: Records) -> list[bytes]:
        """The key of each program that issues the same as this one."""
        places = self._named(streams) % self._line
        return [row.tobytes() for row in places]

    def twins(self, streams: Records) -> tuple[Bools, Ints]:
        """Which programs are its twins, and how far from its own their transfers lie.

        Args:
            streams: records of programs that issue the same, with its key.
        """
        there, named = self._there, self._named(streams)
        addresses = self._located(named)
        shifts = addresses - self._first
        found: Bools = (((named >= self._bypass) == self._direct) & (named >= 0)).all(axis=1)
        base = addresses[:, there.owners]
        inside = (base + there.lows >= 0) & (base + there.highs <= self._gm.size)
        found &= inside.all(axis=1)
        found &= (shifts[:, self._inner] == shifts[:, self._inner - 1]).all(axis=1)
        found[found] = there.apart(addresses[found], shifts[found])
        return found, shifts

    def run(self, records: Records, shifts: Ints) -> TwinRun | None:
        """Executes a twin; None if it is illegal, and how is found by executing it otherwise.

        Args:
            records: of it.
            shifts: see `twins`.
        """
        distances = shifts.tolist()
        reads, writes = [
            [a._replace(address=a.address + distances[i]) for i, _, a in log]
            for log in (self._reads, self._writes)
        ]
        if any(self._gm.first_unwritten(a.region, a.address) is not None for a in reads):
            return None
        assert self._plan is not None, "looked at when it was made"
        lost = self._core.repeat(self._plan, records)
        if lost is None:
            return None
        done, touched = self._done, self._done.touched
        lines = touched.lines + np.repeat(shifts // self._line, self._counts)
        touched = Touched(lines, touched.kinds, touched.sizes, touched.reads)
        mine = Done(done.cycles, done.timeline, touched, done.key, lost, done.talk)
        return TwinRun(mine, reads, writes, lambda: self._describe, self._core.memory)


class Kin(NamedTuple):
    """Programs that issue the same but for addresses in global memory: one of them, and those whose
    twins are known, by their keys."""

    first: KnownStream
    known: dict[bytes, KnownStream]


class Twins:
    """The programs of a launch that know nothing of each other, of which many are twins.

    Args:
        call: with one scalar program, which neither accesses memory nor meets another one.
        core: that computes the twins.
        checks: global memory is checked.

    Attributes:
        over: too many programs were no twins, or were too long: none is looked for any longer.
    """

    def __init__(self, call: KernelCall, core: Core, checks: bool) -> None:
        (self._program,) = call.programs.values()
        self._call, self._core, self._checks = call, core, checks
        self._kin: list[Kin] = []
        self._streams: dict[int, Records] = {}
        self._found: dict[int, tuple[KnownStream, Ints]] = {}
        self._unlike = 0
        self.over = False

    def run(self, blocks: Sequence[int]) -> Iterator[tuple[int, TwinRun | None]]:
        """Executes the twins of blocks, in order. Of a block that is none, the caller runs
        `program(block)` on the core that this one has, and says `learn`.

        Raises:
            DeviceFault: of a scalar program.
        """
        fault = self._issue(blocks)
        for kin in self._kin:
            self._match(kin)
        for block in blocks:
            twin = self._found.pop(block, None)
            if block not in self._streams and fault is not None:
                raise fault
            found = None if twin is None else twin[0].run(self._streams[block], twin[1])
            self._unlike = self._unlike + 1 if found is None else 0
            yield block, found
            self._streams.pop(block, None)
        self.over |= self._unlike > MOST_UNLIKE

    def _issue(self, blocks: Sequence[int]) -> DeviceFault | None:
        """Runs the scalar programs of blocks, up to one that fails."""
        for block in blocks:
            held = HeldStream(self._core)
            try:
                self._program(self._call.arguments, block, self._call.blocks, held)
            except TooLong:
                self.over = True
                return None
            except DeviceFault as fault:
                return fault
            self._streams[block] = held.records
        return None

    def _match(self, kin: Kin) -> None:
        """Finds the twins of programs among blocks that have none yet."""
        left = [block for block in self._streams if block not in self._found]
        left = [block for block in left if len(self._streams[block]) == len(kin.first)]
        if not left:
            return
        streams = np.stack([self._streams[block] for block in left])
        alike: dict[bytes, list[int]] = {}
        same = np.flatnonzero(kin.first.issues(streams))
        for at, key in zip(same.tolist(), kin.first.keys(streams[same]), strict=True):
            alike.setdefault(key, []).append(at)
        for key, mine in alike.items():
            if key in kin.known:
                fits, shifts = kin.known[key].twins(streams[mine])
                for i in np.flatnonzero(fits).tolist():
                    self._found[left[mine[i]]] = kin.known[key], shifts[i]

    def program(self, block: int) -> BlockProgram:
        """What issues the stream of a block that is no twin."""
        records = self._streams.get(block)
        if records is None:
            return self._program

        def issue(arguments: Sequence[int], block: int, blocks: int, core: ScalarCore) -> None:
            if len(records):
                core.consume(records)

        return issue

    def learn(self, block: int, core: Core, done: Done) -> None:
        """A block that is no twin has run: others may be its twins."""
        records = self._streams.pop(block, None)
        if records is None or not len(records) or self.over:
            return
        known = KnownStream(core, records, done, self._checks)
        if not known.fit:
            return
        kin = next((kin for kin in self._kin if kin.first.issues(records[None]).all()), None)
        if kin is None:
            kin = Kin(known, {})
            self._kin.append(kin)
        kin.known[known.key()] = known
        self._match(kin)
