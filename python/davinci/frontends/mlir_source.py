"""Checks the bytes of a program before MLIR's parser sees them: their encoding and their nesting.

The parser takes text in UTF-8, and calls itself for every bracket: brackets in brackets, thousands
deep, overflow its stack and end the process.
"""

from __future__ import annotations

import re

import numpy as np

from davinci.errors import InputError

MOST_NESTED = 256
"""Brackets within brackets. The parser survives some thousand; a thread may have less stack."""

MARKS = {
    b"\xef\xbb\xbf": "a byte order mark",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x00\x00\xfe\xff": "UTF-32",
}
"""What a text in another encoding starts with."""

_NO_BRACKETS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=')
_OPENING, _CLOSING = b"([{<", b")]}>"
_OTHERS = bytes(sorted(set(range(256)) - {*_OPENING, *_CLOSING}))


def check_source(data: bytes, where: str) -> None:
    """Checks text that comes from outside.

    Raises:
        InputError: text that is not UTF-8 without a byte order mark, or nested too deep.
    """
    for mark, name in MARKS.items():
        if data.startswith(mark):
            _refuse_encoding(where, name)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            "neither MLIR bytecode nor text in UTF-8",
            where=where,
            found=f"{data[error.start : error.start + 1]!r} at byte {error.start}",
        ) from None
    if b"\0" in data:
        _refuse_encoding(where, "zero bytes, as in UTF-16")
    if (
        nesting(data) > MOST_NESTED
        and (depth := nesting(_NO_BRACKETS.sub(b"", data))) > MOST_NESTED
    ):
        raise InputError(
            "brackets are nested too deep",
            where=where,
            found=f"{depth} levels",
            expected=f"at most {MOST_NESTED}",
        )


def nesting(data: bytes) -> int:
    """The deepest brackets within brackets, or more where strings and comments hold some too."""
    brackets = np.frombuffer(data.replace(b"->", b"").translate(None, _OTHERS), np.uint8)
    depth = np.cumsum(np.where(np.isin(brackets, list(_OPENING)), 1, -1), dtype=np.int64)
    lowest = np.minimum.accumulate(np.append(0, depth))[:-1]
    return int(np.max(depth - lowest, initial=0))


def _refuse_encoding(where: str, found: str) -> None:
    raise InputError(
        "neither MLIR bytecode nor text in UTF-8",
        where=where,
        found=found,
        expected="UTF-8 without a byte order mark",
        hint="save it so, or convert it: iconv -f UTF-16 -t UTF-8",
    )
