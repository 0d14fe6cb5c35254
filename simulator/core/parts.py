"""Parts of streams that were executed before.

What the instructions of a block do on the chip is the same wherever their operands lie in global
memory. The blocks of a launch, and launches of a kernel for other buffers, mostly issue the same
but for addresses there and scalar operands: a part of a stream that was executed before, behind the
same beginning, is known but for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from davinci.native import Ints
from davinci.simulator.checks.races import Clock
from davinci.simulator.core.compared import ComparedWords
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.plan import PartPlan, StreamPart
from davinci.simulator.core.tables import Tables

MOST_KEPT = 1 << 18
"""Instructions of a block that are passed over at most: their records are kept."""

MOST_KNOWN = MOST_KEPT
"""Instructions in the parts that are known; with more, all are forgotten. With fewer than a block
may pass over, the first parts of a long block would be forgotten before another one begins."""

Order = list[tuple[int, Clock]]
"""The instructions of a part that access global memory: number in the pipe, and its clock."""


@dataclass
class KnownPart:
    """What is known of a part: the order that its checks have found, and from the second time on
    how it is executed."""

    order: Order
    plan: PartPlan | None = None


class KnownParts:
    """The parts of streams that one core knows.

    Args:
        tables: of its kind of core.
        memories: that it reaches, by number of their space.
    """

    def __init__(self, tables: Tables, memories: Sequence[Memory]) -> None:
        self._tables, self._memories = tables, memories
        self._known: dict[bytes, KnownPart] = {}
        self._instructions = 0
        self._words: dict[bytes, ComparedWords] = {}
        self._compared_instructions = 0

    def begin(self, alone: bool) -> None:
        """Starts a block; `alone`: nothing that other cores do orders its instructions."""
        self._digest = b"" if alone else None

    def find(self, part: StreamPart) -> KnownPart | None:
        """What is known of the next part of the block."""
        if self._digest is None:
            return None
        compared = self._compared(part.steps)
        if part.first > MOST_KEPT or compared.finds:
            self._digest = None
            return None
        told = compared.of(part.records).tobytes() + compared.stored(part.records, self._memories)
        self._digest = blake2b(self._digest + told, digest_size=16).digest()
        return self._known.get(self._digest)

    def _compared(self, steps: Ints) -> ComparedWords:
        key = steps.tobytes()
        found = self._words.get(key)
        if found is None:
            self._compared_instructions += len(steps)
            if self._compared_instructions > MOST_KNOWN:
                self._words, self._compared_instructions = {}, len(steps)
            found = self._words[key] = self._tables.compared(steps)
        return found

    def learn(self, part: StreamPart, order: Order) -> None:
        """The part that was looked for last was legal."""
        if self._digest is None:
            return
        self._instructions += len(part.records)
        if self._instructions > MOST_KNOWN:
            self._known, self._instructions = {}, len(part.records)
        self._known[self._digest] = KnownPart(order)
