"""Static memory planning: buffers with sizes and lifetimes get offsets in one memory.

`solve` takes the best of several algorithms; `npu-plan` and `benchmarks/speed/planning.py` compare
them.
"""

from davinci.planning.planner import (
    ALGORITHMS,
    COMPILE,
    QUICK,
    SEARCH,
    Budget,
    algorithms_for,
    run,
    solve,
)
from davinci.planning.problem import Buffer, Plan, Problem, faults

__all__ = [
    "ALGORITHMS",
    "COMPILE",
    "QUICK",
    "SEARCH",
    "Budget",
    "Buffer",
    "Plan",
    "Problem",
    "algorithms_for",
    "faults",
    "run",
    "solve",
]
