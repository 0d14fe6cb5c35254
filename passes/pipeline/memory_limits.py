"""Limits of memory as a user writes them: bytes, with or without a unit, or a part of what a
network takes without a limit.

>>> bytes_of("4 MB", 10_000_000), bytes_of("60%", 10_000_000), bytes_of("2KiB", 0)
(4000000, 6000000, 2048)
"""

from __future__ import annotations

import re

UNITS = {
    "": 1,
    "b": 1,
    **{"kb": 10**3, "mb": 10**6, "gb": 10**9},
    **{"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30},
}
"""Bytes of each unit, whose case does not count."""

_LIMIT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([a-z]*|%)", re.IGNORECASE)


def expected(text: str) -> str:
    """What a limit should be, if the text is none; else ""; no text is no limit."""
    found = _LIMIT.fullmatch(text)
    known = found and (found[2] == "%" or found[2].lower() in UNITS) and float(found[1]) > 0
    if not text or known:
        return ""
    return "more than 0 bytes, as in 4000000, 4MB or 4MiB, or a part of the arena, as in 60%"


def bytes_of(text: str, arena_bytes: int) -> int:
    """The limit in bytes, of a network whose arena has so many bytes without one."""
    found = _LIMIT.fullmatch(text)
    assert found, "options are checked before they are used"
    if found[2] == "%":
        return int(float(found[1]) * arena_bytes / 100)
    return int(float(found[1]) * UNITS[found[2].lower()])
