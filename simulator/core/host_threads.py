"""How many threads the host's linear algebra takes while a device runs.

A tile's product is too small for several threads: with any other load on the host they wait for
each other, a hundred times as long as the product takes. The limit belongs to the process, so the
devices of several threads share it: the first one sets it, the last one takes it back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_LOCK = threading.Lock()
_LIMIT = ExitStack()
_running = 0


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes some milliseconds; NumPy's is loaded by now."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Holds linear algebra to one thread."""
    global _running
    with _LOCK:
        if _running == 0:
            _LIMIT.enter_context(_controller().limit(limits=1, user_api="blas"))
        _running += 1
    try:
        yield
    finally:
        with _LOCK:
            _running -= 1
            if _running == 0:
                _LIMIT.close()
