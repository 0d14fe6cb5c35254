"""Python's search for garbage in cycles, and when it is not worth its time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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


MANY = 500_000
"""Objects that became old without a search, from which on the next compilation begins with one; a
large network leaves as many, two of three of them garbage."""


@dataclass
class _Unsearched:
    """Counts the objects that became old without a search.

    Attributes:
        objects: how many there are since the last search for all garbage.
        frozen: whether somebody has frozen objects. Found out once: it takes a time that grows with
            them.
    """

    objects: int = 0
    frozen: bool = False

    def grow_old(self) -> None:
        """Has what there is count as old; not if that would thaw objects that others froze."""
        self.frozen = self.frozen or gc.get_freeze_count() > 0
        if not self.frozen:
            self.objects += gc.get_count()[0]
            gc.freeze()
            gc.unfreeze()

    def search(self) -> None:
        """Looks for all garbage where many objects became old without that."""
        if self.objects >= MANY:
            self.objects = 0
            gc.collect()


_UNSEARCHED = _Unsearched()


@contextmanager
def no_search() -> Iterator[None]:
    """Garbage in cycles is not looked for meanwhile.

    A compiler makes many objects that stay; each search looks at all of them again. Nor does the
    first search afterwards, which would take half a second of a network: what was made meanwhile
    counts as old. Python looks at old objects once many young ones have become old by its own
    count, which these pass by; so they are counted here.
    """
    searches = gc.isenabled()
    if searches:
        _UNSEARCHED.search()
    gc.disable()
    try:
        yield
    finally:
        if searches:
            _UNSEARCHED.grow_old()
            gc.enable()
