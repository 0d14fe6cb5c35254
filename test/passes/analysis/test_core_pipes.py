"""What the pipes of a core know of each other's work."""

from __future__ import annotations

import pytest

from davinci.passes.analysis.core_pipes import PIPES, CorePipes, UnansweredFlag
from davinci.passes.analysis.not_provable import NotProvable

MTE2, MTE3, V = (PIPES.index(pipe) for pipe in ("MTE2", "MTE3", "V"))


def test_what_a_pipe_waits_for_is_complete_behind_it() -> None:
    pipes = CorePipes()
    pipes.work("MTE2")
    assert pipes.behind("MTE3")[MTE2] == -1
    pipes.set_flag("MTE2", "V", 0)
    pipes.work("MTE2")
    pipes.wait_flag("MTE2", "V", 0)
    pipes.set_flag("V", "MTE3", 0)
    pipes.wait_flag("V", "MTE3", 0)
    assert pipes.behind("MTE3")[MTE2] == 1
    assert pipes.behind("MTE2")[MTE2] == 2


def test_a_barrier_of_all_is_known_to_all() -> None:
    pipes = CorePipes()
    assert pipes.work("MTE2") == 1
    pipes.barrier("ALL")
    assert pipes.behind("FIX")[MTE2] == 1
    assert pipes.scalar[MTE2] == 1


def test_a_wait_without_a_flag() -> None:
    with pytest.raises(UnansweredFlag, match="PIPE_V waits for a flag that PIPE_MTE2 has not set"):
        CorePipes().wait_flag("MTE2", "V", 0)


@pytest.mark.parametrize("turns", [1, 5, 23, 24, 25, 100])
@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_long_loops_are_known_by_their_first_and_last_turns(turns: int, slots: int) -> None:
    """A load waits for the store that has freed its slot, a store for the load. The stores behind
    the last flags are known, as if each turn had been followed; with 5 slots each is."""

    def run(repeat: bool) -> tuple[int, ...]:
        pipes = CorePipes()

        def turn(number: int) -> None:
            if number >= slots:
                pipes.wait_flag("MTE3", "MTE2", number % slots)
            pipes.work("MTE2")
            pipes.set_flag("MTE2", "MTE3", number % slots)
            pipes.wait_flag("MTE2", "MTE3", number % slots)
            pipes.work("MTE3")
            pipes.set_flag("MTE3", "MTE2", number % slots)

        if repeat:
            pipes.repeat(range(turns), turn)
        else:
            for number in range(turns):
                turn(number)
        done, of_stores, of_loads = pipes.done, pipes.behind("MTE3"), pipes.behind("MTE2")
        late = (done[MTE2] - of_stores[MTE2], min(done[MTE3] - of_loads[MTE3], slots))
        return (*late, done[V])

    assert run(repeat=True) == run(repeat=False)


def test_what_depends_on_data_is_not_counted_on() -> None:
    pipes = CorePipes()
    before = pipes.copy()
    pipes.work("MTE2")
    pipes.barrier("ALL")
    pipes.may_have(before)
    assert pipes.done[MTE2] == 1
    assert pipes.behind("MTE3")[MTE2] == -1
    pipes.set_flag("MTE2", "V", 0)
    with pytest.raises(NotProvable, match="depends on data"):
        pipes.may_have(before)
