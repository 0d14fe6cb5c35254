"""Static memory planning: buffers with sizes and lifetimes get offsets in one memory.

`solve` takes the best of several algorithms; `npu-plan` and `benchmarks/speed/planning.py` compare
them. `lowest` orders the steps of a network so that little is live at once, `layers` and
`in_groups` say which of them run at the same time.
"""

from davinci.planning.order import StepOrder, lowest
from davinci.planning.planner import (
    ALGORITHMS,
    COMPILE,
    PIECES,
    QUICK,
    SEARCH,
    Budget,
    algorithms_for,
    run,
    solve,
)
from davinci.planning.problem import (
    Buffer,
    Piece,
    Plan,
    Problem,
    faults,
    live_bytes,
    pieces_of,
)
from davinci.planning.steps import (
    Step,
    Work,
    can_run,
    in_groups,
    layers,
    one_by_one,
    peak_bytes,
    problem_of,
)

__all__ = [
    "ALGORITHMS",
    "COMPILE",
    "PIECES",
    "QUICK",
    "SEARCH",
    "Budget",
    "Buffer",
    "Piece",
    "Plan",
    "Problem",
    "Step",
    "StepOrder",
    "Work",
    "algorithms_for",
    "can_run",
    "faults",
    "in_groups",
    "layers",
    "live_bytes",
    "lowest",
    "one_by_one",
    "peak_bytes",
    "pieces_of",
    "problem_of",
    "run",
    "solve",
]
