"""Which words of records tell a part of a stream from others that are executed otherwise.

Addresses in global memory and scalar operands do not: what is executed is the same with others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.isa.core import RECORD_WORDS, Records, Space
from davinci.native import Ints
from davinci.simulator.core.columns import FormColumn
from davinci.simulator.core.forms import ALL_BITS, OpcodeForms
from davinci.simulator.core.memory import Memory


class ComparedWords:
    """The words that are compared of the records of a part, given the forms of its steps.

    Args:
        forms: row of the form of each, see `FormColumn`.
        summary: the opcode of records that sum up scalar accesses, None if there are none.

    Attributes:
        words: all bits of the words that are compared as they are. What lies behind the words of a
            record, other records have left there.
        finds: the data of some record names what it reads, which records do not tell.
    """

    def __init__(self, forms: Ints, summary: OpcodeForms | None) -> None:
        taken = np.arange(RECORD_WORDS) < forms[:, FormColumn.LENGTH, None]
        self.words: Records = np.where(taken, np.uint64(ALL_BITS), np.uint64(0))
        for column in (FormColumn.GM_WORD, FormColumn.SCALAR):
            rows = np.flatnonzero(forms[:, column])
            self.words[rows, forms[rows, column]] = 0
        self.finds = bool(forms[:, FormColumn.FINDS].any())
        self._summary = summary
        self._rows = np.flatnonzero(forms[:, FormColumn.SUMMARY])

    def stored(self, records: Records, memories: Sequence[Memory]) -> bytes:
        """What is noted as written of the ranges on the chip in which each of these records sums up
        several stores of the scalar unit: which bytes of them it stored, the record does not tell.

        In global memory reads are checked whether the part is known or not, and what the scalar
        unit loads was checked when it did and is seen by what it issues then.

        Args:
            records: of the part, whose stores were made.
            memories: by number of their space.
        """
        if self._summary is None:
            return b""
        summary, (_, stores) = self._summary, self._summary.summed
        found = records[self._rows]
        found = found[(found[:, stores.count] > 1) & (found[:, summary.space_word] != Space.GM)]
        ranges = found[:, [summary.space_word, stores.low, stores.high]].tolist()
        return b"".join(memories[space].written[low:high].tobytes() for space, low, high in ranges)

    def of(self, records: Records) -> Records:
        """A copy of records with nothing but what is compared; of addresses in global memory that
        are summed up, how far they are apart."""
        found: Records = records & self.words
        if self._summary is not None:
            far = self._rows[records[self._rows, self._summary.space_word] == Space.GM]
            for summed in self._summary.summed if far.size else ():
                found[far, summed.high] -= found[far, summed.low]
                found[far, summed.low] = 0
        return found
