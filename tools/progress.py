"""Progress of work that takes more than two seconds, on a terminal only."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any

DELAY_SECONDS = 2.0


class Progress:
    """A spinner with the name of the current step; call it with the next step's name."""

    def __init__(self) -> None:
        self._step = ""
        self._status: Any = None
        self._done = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(DELAY_SECONDS, self._start)
        self._timer.daemon = True

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._done = True
            if self._status is not None:
                self._status.stop()

    def __call__(self, step: str) -> None:
        with self._lock:
            self._step = step
            if self._status is not None:
                self._status.update(step)

    def _start(self) -> None:
        from rich.console import Console

        with self._lock:
            if not self._done:
                self._status = Console(stderr=True).status(self._step)
                self._status.start()
