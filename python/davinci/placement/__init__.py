"""Placement of a network's operators on several unlike devices, and their order: plain data.

`place` makes a plan by one of several algorithms, `faults` checks one, `play` runs one event by
event.
"""

from davinci.placement.planner import ALGORITHMS, BEST, place
from davinci.placement.player import PlacementTimeline, TensorMove, play
from davinci.placement.problem import (
    NEVER,
    MovedTensor,
    Placement,
    PlacementProblem,
    PlacementTask,
    faults,
    queues_of,
)

__all__ = [
    "ALGORITHMS",
    "BEST",
    "NEVER",
    "MovedTensor",
    "Placement",
    "PlacementProblem",
    "PlacementTask",
    "PlacementTimeline",
    "TensorMove",
    "faults",
    "place",
    "play",
    "queues_of",
]
