"""Placement of a network's operators on several unlike devices, and their order: plain data.

`place` makes a plan by one of several algorithms, `faults` checks one, `play` runs one event by
event.
"""

from davinci.placement.planner import ALGORITHMS, BEST, place
from davinci.placement.player import Move, Timeline, play
from davinci.placement.problem import NEVER, Plan, Problem, Task, Tensor, faults, queues_of

__all__ = [
    "ALGORITHMS",
    "BEST",
    "NEVER",
    "Move",
    "Plan",
    "Problem",
    "Task",
    "Tensor",
    "Timeline",
    "faults",
    "place",
    "play",
    "queues_of",
]
