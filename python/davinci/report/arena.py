"""The arena over a run: which value lies where, and from which launch to which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from davinci.report.nodes import named
from davinci.report.program import ArenaValue, ProgramFacts
from davinci.simulator.timing.profile import LaunchProfile

Record = dict[str, Any]

MOST_BOXES = 1_500
"""Values that a page draws, those with the most bytes and launches first."""

MOVES = frozenset({"broadcast", "cast", "copy", "relayout", "reshape", "slice", "view"})
"""Operators after which a value is still called by what they were given."""


def arena_values(launches: Sequence[LaunchProfile], program: ProgramFacts) -> list[Record]:
    """The values in the arena, as the record has them.

    Args:
        launches: of a whole run, by whose numbers the program names them. Nodes of a value are
            those that make it, of weights those that read them.
        program: with the places of the values.
    """
    made = Counter(value.first for value in program.arena if not value.weights)

    def nodes_of(value: ArenaValue) -> list[str]:
        if value.weights:
            return list(launches[value.last].operators)
        return nodes_made(launches[value.first], program, made[value.first] == 1)

    return [
        {
            "offset": value.offset,
            "bytes": value.size,
            "first_launch": value.first,
            "last_launch": value.last,
            "nodes": nodes_of(value),
            "buffer": value.buffer,
            "later_writers": [
                {"launch": number, "nodes": nodes_made(launches[number], program, True)}
                for number in value.writers
            ],
            **({"weights": True} if value.weights else {}),
        }
        for value in program.arena
        if value.first <= value.last < len(launches)
    ]


def nodes_made(launch: LaunchProfile, program: ProgramFacts, alone: bool) -> list[str]:
    """The nodes of the model whose result a launch makes: of its last operator that computes. Of
    several values of a launch nobody knows which is whose: all of its nodes.

    Args:
        alone: whether the launch makes one value only.
    """
    members = named(program.kernels[launch.name].members, launch)
    computing = [member for member in members if member.op not in MOVES and member.nodes]
    return list(computing[-1].nodes if computing and alone else launch.operators)


@dataclass(frozen=True)
class Box:
    """A value in the picture: left edge and width in launches, bottom and height in bytes."""

    left: int
    wide: int
    offset: int
    size: int
    unit: str
    kernel: str
    hint: str


@dataclass(frozen=True)
class Arena:
    """The picture of an arena.

    Attributes:
        launches, size: its width, in launches, and height, in bytes.
        boxes: that are drawn.
        left_out: how many values are not.
        live: bytes in use during each launch.
        peak: the launch in which most are.
        peak_hint: how many these are, and of which launch.
    """

    launches: int
    size: int
    boxes: tuple[Box, ...]
    left_out: int
    live: tuple[int, ...]
    peak: int
    peak_hint: str

    @property
    def outline(self) -> str:
        """The bytes in use as the points of a polygon, launches by bytes from the top."""
        points = [(0, self.size)]
        for number, level in enumerate(self.live):
            points += [(number, self.size - level), (number + 1, self.size - level)]
        points.append((self.launches, self.size))
        return " ".join(f"{x},{y}" for x, y in points)


def arena_of(record: Record) -> Arena | None:
    """The picture of a record's arena, None where it has no values."""
    memory, launches = record["memory"], record["launches_list"]
    values = memory["arena"]
    if not values:
        return None
    rows = {row["name"]: row for row in record["kernels"]}
    live = [0] * len(launches)
    for value in values:
        for number in range(value["first_launch"], value["last_launch"] + 1):
            live[number] += value["bytes"]
    peak = max(range(len(live)), key=lambda number: live[number])
    label = rows[launches[peak]["kernel"]]["label"]
    area = {id(value): value["bytes"] * launches_of(value) for value in values}
    drawn = sorted(values, key=lambda value: -area[id(value)])[:MOST_BOXES]
    return Arena(
        launches=len(launches),
        size=max(memory["arena_bytes"], 1),
        boxes=tuple(box_of(value, launches, rows) for value in drawn),
        left_out=len(values) - len(drawn),
        live=tuple(live),
        peak=peak,
        peak_hint=f"peak: {live[peak]:,} bytes in launch {peak + 1}, {label}",
    )


def launches_of(value: Record) -> int:
    """During how many launches a value is in use."""
    return int(value["last_launch"] - value["first_launch"] + 1)


def box_of(value: Record, launches: Sequence[Record], rows: Mapping[str, Record]) -> Box:
    """The box of a value, in the colour of the unit that makes it."""
    first, last = value["first_launch"], value["last_launch"]
    maker = rows[launches[first]["kernel"]]
    reader = rows[launches[last]["kernel"]]
    name = ", ".join(value["nodes"]) or maker["label"]
    came = f"made in launch {first + 1} by {maker['label']}"
    if value.get("weights"):
        name, came = f"weights of {name}", f"brought by the host from launch {first + 1} on"
    hint = (
        f"{name}\n{value['bytes']:,} bytes from {value['offset']:,} on, {came}, needed until "
        f"launch {last + 1}, {reader['label']}"
    )
    for writer in value.get("later_writers", ()):
        names = ", ".join(writer["nodes"]) or launches[writer["launch"]]["kernel"]
        hint += f", written into in launch {writer['launch'] + 1} by {names}"
    wide = launches_of(value)
    return Box(first, wide, value["offset"], value["bytes"], maker["unit"], maker["name"], hint)
