"""Python's search for garbage in cycles, and when it is not worth its time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_search() -> Iterator[None]:
    """Garbage in cycles is not looked for meanwhile.

    A compiler makes many objects that stay, and next to no cycles; each search looks at all of them
    again.
    """
    searches = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searches:
            gc.enable()
