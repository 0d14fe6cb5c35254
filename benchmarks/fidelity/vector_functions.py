"""Functions on vector registers, written by hand for the 950 as its vendor's examples have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from hand_written import Stream, rows_of

REGISTER = 256
"""Bytes of a vector register."""


def function(issue: Callable[[Stream], None]) -> list[list[int]]:
    """The call of a function, and the instructions that `issue` puts into it."""
    body = rows_of(issue)
    return [*rows_of(lambda s: s.emit("vf_call", count=len(body))), *body]


def bits(value: float) -> int:
    """A number of f32 as its bits."""
    return int(np.float32(value).view(np.uint32))


@lru_cache(maxsize=64)
def added(x: int, y: int, z: int, size: int) -> list[list[int]]:
    """z = x + y of f16, of so many bytes at these addresses in UB."""

    def issue(s: Stream) -> None:
        count = size // REGISTER
        s.emit("vf_call", count=4 * count)
        for at in range(0, size, REGISTER):
            s.emit("vlds.f16", dst=0, src=x + at)
            s.emit("vlds.f16", dst=REGISTER, src=y + at)
            s.emit("vadd_reg.f16", dst=2 * REGISTER, src0=0, src1=REGISTER)
            s.emit("vsts.f16", dst=z + at, src=2 * REGISTER)

    return rows_of(issue)


GELU = ["mul", "mul", "muls", "add", "muls", "exp", "adds", "div"]
"""x / (1 + exp(-1.595769 (x + 0.044715 x^3))), as the vendor's example computes it."""


def step(s: Stream, number: int, x: int, y: int) -> None:
    """The step of GELU of that number, of f32, on registers at these addresses."""
    if number == 0:
        s.emit("vmul_reg.f32", dst=y, src0=x, src1=x)
    elif number == 1:
        s.emit("vmul_reg.f32", dst=y, src0=y, src1=x)
    elif number == 3:
        s.emit("vadd_reg.f32", dst=y, src0=x, src1=y)
    elif number == 5:
        s.emit("vexp_reg.f32", dst=y, src=y)
    elif number == 6:
        s.emit("vadds_reg.f32", dst=y, src=y, value=bits(1))
    elif number == 7:
        s.emit("vdiv_reg.f32", dst=y, src0=x, src1=y)
    else:
        factor = 0.044715 if number == 2 else -1.595769
        s.emit("vmuls_reg.f32", dst=y, src=y, value=bits(factor))


@lru_cache(maxsize=64)
def gelu(x: int, y: int, size: int, unrolled: int = 1) -> list[list[int]]:
    """y = GELU(x) of f32 as one function, `unrolled` registers at a time."""

    def issue(s: Stream) -> None:
        places = range(0, size, REGISTER)
        s.emit("vf_call", count=(len(GELU) + 2) * len(places))
        for first in range(0, len(places), unrolled):
            group = places[first : first + unrolled]
            for i, at in enumerate(group):
                s.emit("vlds.f32", dst=2 * i * REGISTER, src=x + at)
            for number in range(len(GELU)):
                for i in range(len(group)):
                    step(s, number, 2 * i * REGISTER, (2 * i + 1) * REGISTER)
            for i, at in enumerate(group):
                s.emit("vsts.f32", dst=y + at, src=(2 * i + 1) * REGISTER)

    return rows_of(issue)


@lru_cache(maxsize=64)
def gelu_apart(x: int, y: int, size: int) -> list[list[int]]:
    """y = GELU(x) of f32 with a function for each step, which loads its operands from UB and stores
    its result there."""

    def issue(s: Stream) -> None:
        for number, name in enumerate(GELU):
            two = name in ("mul", "add", "div")
            s.emit("vf_call", count=(4 if two else 3) * (size // REGISTER))
            for at in range(0, size, REGISTER):
                if two:
                    s.emit("vlds.f32", dst=0, src=x + at)
                s.emit("vlds.f32", dst=REGISTER, src=(y if number else x) + at)
                step(s, number, 0 if number else REGISTER, REGISTER)
                s.emit("vsts.f32", dst=y + at, src=REGISTER)

    return rows_of(issue)
