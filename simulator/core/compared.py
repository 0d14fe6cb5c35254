"""Which words of records tell a part of a stream from others that are executed otherwise.

Addresses in global memory and scalar operands do not: what is executed is the same with others.
"""

from __future__ import annotations

import numpy as np

from davinci.isa.core import RECORD_WORDS, Records, Space
from davinci.native import Ints
from davinci.simulator.core.columns import FormColumn
from davinci.simulator.core.forms import ALL_BITS, OpcodeForms


class ComparedWords:
    """The words that are compared of the records of a part, given the forms of its steps.

    Args:
        forms: row of the form of each, see `FormColumn`.
        summary: the opcode of records that sum up scalar accesses, None if there are none.

    Attributes:
        words: all bits of the words that are compared as they are. What lies behind the words of a
            record, other records have left there.
    """

    def __init__(self, forms: Ints, summary: OpcodeForms | None) -> None:
        taken = np.arange(RECORD_WORDS) < forms[:, FormColumn.LENGTH, None]
        self.words: Records = np.where(taken, np.uint64(ALL_BITS), np.uint64(0))
        for column in (FormColumn.GM_WORD, FormColumn.SCALAR):
            rows = np.flatnonzero(forms[:, column])
            self.words[rows, forms[rows, column]] = 0
        self._finds = bool(forms[:, FormColumn.FINDS].any())
        self._summary = summary
        self._rows = np.flatnonzero(forms[:, FormColumn.SUMMARY])

    def unseen(self, records: Records) -> bool:
        """Whether any of these records touches what it does not tell: it sums up several stores of
        the scalar unit, or its data names what it reads. What the scalar unit loads was checked
        when it did, and is seen by what it issues then."""
        if self._finds or self._summary is None:
            return self._finds
        _, stores = self._summary.summed
        return bool((records[self._rows, stores.count] > 1).any())

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
