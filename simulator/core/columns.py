"""Columns of the tables by which compiled code decodes; `core.tables` fills them."""

from __future__ import annotations

import enum

from davinci.isa.core import RECORD_WORDS

KEY_HEAD = 3
KEY_WORDS = KEY_HEAD + RECORD_WORDS - 1
"""A key: its head (an opcode, what its form depends on, and how many words the key has), two words
of registers, and the configuration words; or a head with `OF_STEP`, a form, and what of its
addresses matters. No word behind the last one of a key is looked at."""

COUNT_SHIFT = 32
"""Where the head of a key has the number of its words."""

ENTRY = 1 + KEY_WORDS
"""Words of an entry of the table: a number and 1, 0 where it is empty; its key."""

BY_MASK, BY_FMATRIX, BY_VA, BY_DEQSCALE, BY_ATOMIC, OF_STEP = 1, 2, 3, 4, 5, 6 << 16
"""What a form depends on besides its words: the vector mask, FMATRIX, the VA registers,
DEQSCALE, ATOMIC and FPC."""

VA_WORDS = 64


class OpcodeColumn(enum.IntEnum):
    """What is known of an opcode; columns 1 to 7 say which bits of the words matter."""

    KNOWN = 0
    SCALAR = RECORD_WORDS  # word of a scalar operand, 0 if there is none
    UNUSED = RECORD_WORDS + 1  # bits of it that no field has
    DEPENDS = RECORD_WORDS + 2
    SUMMARY = RECORD_WORDS + 3  # it sums up scalar accesses
    FIRST = RECORD_WORDS + 4  # its configuration words
    END = RECORD_WORDS + 5
    PLAIN = RECORD_WORDS + 6  # some of its forms depend on no registers
    COLUMNS = RECORD_WORDS + 7


class Effect(enum.IntEnum):
    """Which registers an instruction loads."""

    NONE = 0
    MASK = 1
    FMATRIX = 2
    VA = 3
    DEQSCALE = 4
    FPC = 5
    ATOMIC = 6  # and what it is set to: the last one


class FormColumn(enum.IntEnum):
    """What compiled code knows of a form; DETAILS, STRIDES and GM_PORTS are places in `details`."""

    STEP = 0  # -1: it depends on addresses
    EFFECT = 1
    SUMMARY = 2
    GM_WORD = 3
    GM_OFFSET = 4
    DETAILS = 5
    ALIGNMENTS = 6
    PORTS = 7
    STRIDES = 8
    STRIDED = 9
    GM_PORTS = 10
    GM_PORT_COUNT = 11
    WRITES = 12  # of the ports the last ones, on the vector pipe: what it writes
    FINDS = 13  # its data names more that it reads
    UNITS = 14  # word with the address in L0C of the units whose flags it obeys, 0 if none
    LENGTH = 15  # words of its records, with the header; behind them lies what was there before
    SCALAR = 16  # word of a scalar operand that only its data depends on, 0 if there is none
    COLUMNS = 17


ALIGNMENT, PORT, STRIDED, GM_PORT = 2, 4, 2, 5
"""Words of the details of a form: an alignment (word, bytes), a region (word or 0, offset, end,
memory), a strided operand (word, bytes), a region of global memory (offset, whether it is written,
bytes, number of runs, place of their starts and lengths)."""
