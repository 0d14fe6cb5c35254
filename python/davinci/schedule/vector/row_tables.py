"""One row of values that all rows of a tile are combined with: gamma and beta of a layer norm.

It lies in UB once for each of them, so that a use is one instruction: loaded once, then copied by
the vector unit, to 1, 2, 4, .. rows. The path from L1 to UB, which copies one row at a time, takes
several times as long.
"""

from __future__ import annotations

from functools import lru_cache

from davinci.machine import Machine
from davinci.schedule.vector.steps import RESULT, BufferStep, BufferSteps, View, copy_of


@lru_cache(maxsize=4096)
def doubling_cycles(rows: int, lanes: int, dtype: str, machine: Machine) -> int:
    """Cycles of the vector unit to make rows of `lanes` of the first one."""
    return doubling(rows, lanes, dtype).estimate(machine).cycles


def doubling(rows: int, lanes: int, dtype: str) -> BufferSteps:
    """The first row of `RESULT`, [rows, lanes], to all others."""
    steps: list[BufferStep] = []
    done = 1
    while done < rows:
        count = min(done, rows - done) * lanes
        source, more = View(RESULT, (count,), (1,)), View(RESULT, (count,), (1,), done * lanes)
        steps.append(copy_of(source, more, dtype))
        done += count // lanes
    return BufferSteps(dtype, tuple(steps), {})
