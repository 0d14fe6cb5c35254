"""The pipes of a core, numbered without gaps: `insert-sync` keeps lists by them."""

from __future__ import annotations

import enum


class Queue(enum.IntEnum):
    """Pipes by the names of `isa.core.Pipe`, whose numbers are those that instructions encode; ALL,
    the last one, stands for all of them."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    FIX = 6
    ALL = 7
