"""Programs that take turns: each runs until it gives way, is done, or fails.

The scalar program of a core is native code that calls the simulator from within, so it can only be
held where it is by a thread of its own. One thread runs at any time: the order is the same in every
run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from davinci.errors import InputError


class Abandoned(BaseException):
    """Ends a held program whose launch has failed elsewhere."""


class Coroutine:
    """One program.

    Attributes:
        done: it has ended, with or without an error.
        error: what it raised.

    Args:
        gives_way: it may; one that never does needs no thread.
    """

    def __init__(self, run: Callable[[Coroutine], None], gives_way: bool = True) -> None:
        self._run, self._gives_way = run, gives_way
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._abandoned = False
        self.done = False
        self.error: BaseException | None = None

    def resume(self) -> None:
        """Lets it run until it gives way or ends; called by the owner of the launch.

        Raises:
            InputError: the host gives no thread for it.
        """
        if not self._gives_way:
            self._main()
            return
        if self._thread is None:
            thread = threading.Thread(target=self._main, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise InputError(
                    "no thread for a program of a launch",
                    where="simulation",
                    found=str(error),
                    hint="a launch takes one for each of its programs that waits for others",
                ) from error
            self._thread = thread
        else:
            self._turn.release()
        self._back.acquire()
        if self.done:
            self._thread.join()

    def give_way(self) -> None:
        """Holds the program until its next turn; called by the program itself."""
        assert self._gives_way, "a program that was said to wait for nobody"
        self._back.release()
        self._turn.acquire()
        if self._abandoned:
            raise Abandoned

    def abandon(self) -> None:
        """Ends it, wherever it is."""
        if self._thread is not None and not self.done:
            self._abandoned = True
            self.resume()

    def _main(self) -> None:
        run = self._run
        del self._run  # What it knows knows this program.
        try:
            run(self)
        except BaseException as error:  # raised again by the owner of the launch
            self.error = error
        del run
        self.done = True
        self._back.release()


class Waiting(Protocol):
    """What a program waits for."""

    @property
    def ready(self) -> bool: ...


def take_turns(
    programs: Sequence[Coroutine], waits: Sequence[Waiting], stuck: Callable[[], Exception]
) -> None:
    """Runs each program until what it waits for is not there, again and again, to the end of all.

    Args:
        waits: of each program.
        stuck: what is raised if none can go on.
    """
    try:
        while not all(program.done for program in programs):
            moved = False
            for program, wait in zip(programs, waits, strict=True):
                if program.done or not wait.ready:
                    continue
                program.resume()
                moved = True
                if program.error is not None:
                    raise program.error
            if not moved:
                raise stuck()
    finally:
        for program in programs:
            program.abandon()
