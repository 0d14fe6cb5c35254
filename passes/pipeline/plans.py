"""Names of plans: which kernels of a network share a launch.

time         the stages of least estimated time
memory       of all plans the one whose arena is smallest
balanced     of all plans the one whose time times arena is smallest
sequential   one launch after the other
groups=N     layers of kernels that wait for equally many others, each cut in N groups
"""

from __future__ import annotations

import re

TIME, MEMORY, BALANCED, SEQUENTIAL = PLANS = ("time", "memory", "balanced", "sequential")

_GROUPS = re.compile(r"groups=([1-9]\d{0,8})")


def groups_of(plan: str) -> int | None:
    """How many groups a layer is cut in, None for a plan without."""
    found = _GROUPS.fullmatch(plan)
    return int(found[1]) if found else None


def expected(plan: str) -> str:
    """What a plan should be, if the text is none; else ""."""
    if plan in PLANS or groups_of(plan) is not None:
        return ""
    return f"{', '.join(PLANS)}, or groups=N"
