"""A fault of a program at its place, as users read it."""

from __future__ import annotations

from collections.abc import Callable

from davinci.errors import DeviceFault
from davinci.simulator.checks.deadlock import Deadlock
from davinci.simulator.checks.races import Party, Race
from davinci.simulator.core.problems import UnplacedFault


def placed(
    problem: UnplacedFault,
    where: str,
    describe: Callable[[Party], str],
    location: Callable[[int], str],
) -> DeviceFault:
    """The error of a fault.

    Args:
        where: kernel, block and instruction.
        describe: puts the other instruction of a race into words.
        location: text of a source location, by its number.
    """
    message, found = problem.message, problem.found
    if isinstance(problem, Race):
        message = problem.between(describe(problem.before))
    if isinstance(problem, Deadlock):
        found = problem.describe(location)
    return DeviceFault(
        message, where=where, found=found, expected=problem.expected, hint=problem.hint
    )
