"""Python's search for garbage in cycles, and when it is not worth its time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

FEW = 50_000
"""Objects more than before, from which on a command looks for garbage; Python's own figure is 700,
and an import of all of this package makes 180,000."""


@contextmanager
def rare_search() -> Iterator[None]:
    """Garbage in cycles is looked for rarely meanwhile: most of what a command makes stays."""
    first, *others = gc.get_threshold()
    gc.set_threshold(max(first, FEW), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


@contextmanager
def no_search() -> Iterator[None]:
    """Garbage in cycles is not looked for meanwhile.

    A compiler makes many objects that stay, and next to no cycles; each search looks at all of them
    again. Nor does the first search afterwards, which would take half a second of a network: what
    was made meanwhile counts as old.
    """
    searches = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searches:
            if not gc.get_freeze_count():  # else objects that others have frozen would thaw
                gc.freeze()
                gc.unfreeze()
            gc.enable()
