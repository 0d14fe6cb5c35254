"""Which core of a machine a block ran on, and what it is called."""

from __future__ import annotations

from collections.abc import Iterable

from davinci.machine import Machine


def seat(machine: Machine, place: int) -> tuple[int, str, int]:
    """Number, kind and number among those of its kind of a core, by its `Row.core`.

    On a split machine the first is the number of the cube core that it is or belongs to.
    """
    if not machine.split:
        return place, "AICORE", 0
    group, which = divmod(place, 1 + machine.core_types["AIV"].count)
    return (group, "AIV", which - 1) if which else (group, "AIC", 0)


def kinds_of(machine: Machine, places: Iterable[int]) -> set[str]:
    """The kinds of the cores at these places, many of which may be the same one."""
    return {seat(machine, place)[1] for place in set(places)}


def core_name(machine: Machine, place: int) -> str:
    """A core's name by its `Row.core`: `core 3`, on a split machine `core 3 AIC`, `core 3 AIV1`."""
    number, kind, which = seat(machine, place)
    return f"core {number}" + {"AICORE": "", "AIC": " AIC", "AIV": f" AIV{which}"}[kind]
