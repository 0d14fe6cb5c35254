"""Streams that no compiler would write: random words, fields at their limits, damaged kernels.

Whatever the words are, a launch ends by itself or with a `DeviceFault`.
"""

from __future__ import annotations

import signal
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from davinci.errors import DeviceFault
from davinci.isa.core import BY_OPCODE, RECORD_WORDS, Records, header
from davinci.simulator import Device
from fuzz.random_cores import CoresPool, Seat, Team
from fuzz.random_programs import pick

EDGES = [0, 1, 31, 32, 512, 1 << 17, (1 << 18) - 32, 1 << 31, 1 << 44, (1 << 63) - 1, (1 << 64) - 1]
"""Addresses: aligned and not, near the ends of memories, far outside."""

DAMAGES = {"flip a bit": 3, "random word": 1, "word of another": 1, "delete": 1, "repeat": 1}
DAMAGES |= {"swap": 1}
"""What happens to instructions of a stream that is damaged, by weight."""

SECONDS = 30
"""No single launch of these takes a tenth of it."""


class Hang(Exception):
    """A launch took longer than any may."""


@contextmanager
def watched(seconds: int = SECONDS) -> Iterator[None]:
    """Raises `Hang` after some time, and all warnings.

    Raises:
        Hang: the body takes too long.
    """

    def late(*_: Any) -> None:
        raise Hang(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def launch(device: Device, streams: Mapping[str, Records], blocks: int = 1) -> str:
    """Runs a stream on every core of its kind; returns the fault, or "".

    Raises:
        Hang: it takes too long.
    """
    programs = {
        kind: lambda a, b, n, core, words=words: core.consume(words)
        for kind, words in streams.items()
    }
    with watched():
        try:
            device.launch("k", programs, [], blocks)
        except DeviceFault as fault:
            return str(fault)
    return ""


def random_words(rng: np.random.Generator, count: int, addresses: Sequence[int]) -> Records:
    """Random bytes; three quarters have an opcode, half of them small fields and near addresses."""
    opcodes = np.array(sorted(BY_OPCODE), dtype=np.uint64)
    words = rng.integers(0, 1 << 64, (count, RECORD_WORDS), dtype=np.uint64)
    for row in words:
        kind = rng.integers(4)
        if kind:
            row[0] = rng.choice(opcodes)
        if kind >= 2:
            # Small fields and addresses get further.
            row[1:] &= np.uint64(0x0103_0307_0303_0303)
            row[1:4] = rng.choice(np.array(addresses, dtype=np.uint64), 3)
    return words


def at_the_limits(rng: np.random.Generator, record: Any) -> Records:
    """An instruction with fields and addresses at, near and beyond their limits."""
    row = [header(record.opcode, int(rng.integers(1 << 16)), int(rng.integers(1 << 32)))]
    row += [EDGES[i] for i in rng.integers(len(EDGES), size=len(record.operands))]
    words = [0] * record.words
    for f in record.fields:
        choices = [f.minimum, f.minimum + 1, f.limit, (1 << f.width) - 1]
        words[f.word] |= (choices[rng.integers(4)] & (1 << f.width) - 1) << f.lo
    row += words
    return np.array([row + [0] * (RECORD_WORDS - len(row))], dtype=np.uint64)


def damaged(rng: np.random.Generator, stream: Records) -> Records:
    """A stream with one to three damages: bits, words, and the order of instructions."""
    words = stream.copy()
    for _ in range(int(rng.integers(1, 4))):
        if not len(words):
            return words
        i, j = int(rng.integers(len(words))), int(rng.integers(RECORD_WORDS))
        damage = pick(rng, DAMAGES)
        if damage == "flip a bit":
            words[i, j] ^= np.uint64(1) << np.uint64(rng.integers(64))
        elif damage == "random word":
            words[i, j] = rng.integers(0, 1 << 64, dtype=np.uint64)
        elif damage == "word of another":
            words[i, j] = words[int(rng.integers(len(words))), j]
        elif damage == "delete":
            words = np.delete(words, slice(i, i + int(rng.integers(1, 4))), axis=0)
        elif damage == "repeat":
            words = np.insert(words, i, words[int(rng.integers(len(words)))], axis=0)
        else:
            k = int(rng.integers(len(words)))
            words[[i, k]] = words[[k, i]]
    return words


def damaged_team(rng: np.random.Generator, pool: CoresPool, where: Sequence[Seat]) -> str:
    """Runs programs for several cores, one to three of them damaged; returns the fault, or ""."""
    programs = [member.rows for member in Team(pool, rng, where, 6).members]
    for _ in range(int(rng.integers(1, 4))):
        i = int(rng.integers(len(programs)))
        rows = np.array(programs[i], dtype=np.uint64).reshape(-1, RECORD_WORDS)
        programs[i] = damaged(rng, rows).tolist()
    with watched():
        return pool.simulate(where, programs)


def outcome(fault: str) -> str:
    """What kind of fault it is: the message without place, names and numbers."""
    if not fault:
        return "ran"
    parts = fault.split(": ")
    text = parts[1] if len(parts) > 1 else fault
    return " ".join(text.split(";")[0].split()[:3])


def add(counts: Counter[str], fault: str) -> None:
    """Counts an outcome, and that it says where and what."""
    assert "Traceback" not in fault and "\n" not in fault, fault
    assert not fault or fault.startswith("kernel "), fault
    counts[outcome(fault)] += 1
