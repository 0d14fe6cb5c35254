"""Programs that take turns."""

from __future__ import annotations

import threading
from unittest import mock

import pytest

from davinci.errors import InputError
from davinci.simulator.split.coroutines import Coroutine, take_turns


class Ready:
    """Nothing is waited for."""

    ready = True


def test_a_host_without_threads_is_named() -> None:
    """The programs that have begun are ended, and the one that has no thread is not waited for."""
    begun = []

    def run(program: Coroutine) -> None:
        begun.append(program)
        program.give_way()

    start, calls = threading.Thread.start, iter([True, False])

    def limited(thread: threading.Thread) -> None:
        if not next(calls):
            raise RuntimeError("can't start new thread")
        start(thread)

    programs = [Coroutine(run), Coroutine(run)]
    with (
        mock.patch.object(threading.Thread, "start", limited),
        pytest.raises(InputError, match=r"no thread for a program.*can't start new thread"),
    ):
        take_turns(programs, [Ready(), Ready()], RuntimeError)
    assert begun == programs[:1] and programs[0].done
