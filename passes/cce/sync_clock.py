"""What a pipe knows of all pipes."""

from __future__ import annotations

from davinci.passes.cce.sync_queues import Queue

PIPES = [pipe for pipe in Queue if pipe < Queue.ALL]

Clock = list[int]
"""For each pipe the number of its operations and waits up to which all are complete."""


def learn(clock: Clock, told: Clock) -> None:
    """Adds to a clock what another one knows."""
    for pipe, number in enumerate(told):
        if number > clock[pipe]:
            clock[pipe] = number
