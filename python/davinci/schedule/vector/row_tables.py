"""One row of values that all rows of a tile are combined with: gamma and beta of a layer norm.

It lies in UB once for each of them, so that a use is one instruction. It comes in one of two ways:

moved      GM -> L1 once, L1 -> UB for each row of a tile, on PIPE_MTE1, which vector kernels leave
           idle: at no cost where that takes no longer than what is computed of the tile's rows
doubled    GM -> UB once, then copied by the vector unit: 1, 2, 4, .. rows
"""

from __future__ import annotations

from functools import lru_cache

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.vector.steps import RESULT, BufferStep, BufferSteps, View, copy_of
from davinci.units import REPEAT_BYTES


def is_moved(lanes: int, dtype: str, steps: int, machine: Machine) -> bool:
    """Whether a row of so many lanes comes from L1 for each row of a tile: where there is that path
    and a row takes no longer on it than the vector unit takes for its steps of one."""
    if not prices.has_l1_to_ub(machine):
        return False
    size = lanes * DTYPES[dtype].itemsize
    return prices.l1_to_ub(machine, size) <= prices.vector(
        machine, "", "", size / REPEAT_BYTES * steps
    )


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
