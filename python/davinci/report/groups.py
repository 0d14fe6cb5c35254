"""Time by operator and by layer, from the launches of a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]

MOST_LAYERS = 20
"""Bars of a chart; larger networks are shown less deep."""

WORTH_OPENING = 0.15
"""A layer of a larger share of the time is shown by its parts, as long as there is room."""


MOST_OF_IT = 0.5
"""A layer of a larger share is opened even if not all of its parts have room."""


@dataclass
class LaunchGroup:
    """Launches that belong together.

    Attributes:
        name: of the operator, or the scope.
        unit: that its kernels run on; of a layer "".
        kernel_us, launch_us: in kernels, and to start them.
        launches: how many.
    """

    name: str
    unit: str = ""
    kernel_us: float = 0.0
    launch_us: float = 0.0
    launches: int = 0

    def add(self, kernel_us: float, launch_us: float) -> None:
        self.kernel_us += kernel_us
        self.launch_us += launch_us
        self.launches += 1

    @property
    def time_us(self) -> float:
        return self.kernel_us + self.launch_us


@dataclass
class Scope(LaunchGroup):
    """A scope of the model, its launches and those of the scopes in it.

    Attributes:
        inner: scopes in it by name, in the order in which they are first launched.
        numbers: of the launches that lie in no inner scope.
    """

    inner: dict[str, Scope] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)

    def all_numbers(self) -> Iterator[int]:
        """The launches in it and in its inner scopes."""
        yield from self.numbers
        for scope in self.inner.values():
            yield from scope.all_numbers()

    def parts(self) -> list[Scope]:
        """The inner scopes, and what lies in none of them."""
        name = f"{self.name} itself" if self.name else "outside of layers"
        rest = Scope(name, "", self.kernel_us, self.launch_us, self.launches)
        rest.numbers = self.numbers
        for scope in self.inner.values():
            rest.kernel_us -= scope.kernel_us
            rest.launch_us -= scope.launch_us
            rest.launches -= scope.launches
        return [*self.inner.values(), *([rest] if self.numbers else [])]


def time_by_operator(record: Record) -> list[LaunchGroup]:
    """A group for each operator and unit, the longest first."""
    rows = {row["name"]: row for row in record["kernels"]}
    groups: dict[tuple[str, str], LaunchGroup] = {}
    for _, launch, kernel_us, launch_us in launch_costs(record):
        row = rows[launch["kernel"]]
        key = (row["op"], row["unit"])
        groups.setdefault(key, LaunchGroup(*key)).add(kernel_us, launch_us)
    return sorted(groups.values(), key=lambda group: -group.time_us)


def time_by_layer(record: Record) -> list[Scope]:
    """Scopes of the model in the order in which they run, as deep as there is room for.

    A launch lies in the scope of the first node that it computes. Nodes of a model that has no
    scopes at all are scopes themselves.
    """
    paths = [path_of(launch["scope"]) for launch in record["launches_list"]]
    deepest = max(map(len, paths), default=0)
    root = Scope("")
    for number, launch, kernel_us, launch_us in launch_costs(record):
        scopes = paths[number] if deepest else tuple(launch["operators"][:1])
        scope = root
        scope.add(kernel_us, launch_us)
        for depth in range(len(scopes)):
            name = "/".join(scopes[: depth + 1])
            scope = scope.inner.setdefault(scopes[depth], Scope(name))
            scope.add(kernel_us, launch_us)
        scope.numbers.append(number)
    return sorted(opened(root), key=lambda scope: min(scope.all_numbers(), default=0))


def opened(root: Scope) -> list[Scope]:
    """The parts of a network: the largest is opened as long as that leaves few enough."""
    shown, closed = [root], set[int]()
    while candidates := [x for x in shown if x.inner and id(x) not in closed]:
        largest = max(candidates, key=lambda scope: scope.time_us)
        parts = largest.parts()
        wanted = largest is root or largest.time_us >= WORTH_OPENING * root.time_us
        if not wanted:
            break
        room = MOST_LAYERS - len(shown) + 1
        if len(parts) > room and largest.time_us < MOST_OF_IT * root.time_us:
            closed.add(id(largest))
            continue
        place = shown.index(largest)
        shown[place : place + 1] = longest(parts, room)
    return shown


def longest(scopes: list[Scope], room: int) -> list[Scope]:
    """The longest scopes, and if there is no room for all, the others as one."""
    if len(scopes) <= room:
        return scopes
    ordered = sorted(scopes, key=lambda scope: -scope.time_us)
    kept, others = ordered[: room - 1], ordered[room - 1 :]
    rest = Scope(f"{len(others)} others")
    for scope in others:
        rest.kernel_us += scope.kernel_us
        rest.launch_us += scope.launch_us
        rest.launches += scope.launches
        rest.numbers += scope.all_numbers()
    return [*kept, rest]


def launch_costs(record: Record) -> Iterator[tuple[int, Record, float, float]]:
    """Number, entry, time in the kernel and time to start it, of each call of a kernel. Kernels
    that share a launch share its times, in proportion to their own."""
    end_us, number = 0.0, 0
    for sharing in sharing_of(record):
        begin_us, before_us = sharing[0]["start_us"], end_us
        end_us = max(each["end_us"] for each in sharing)
        alone = [each["end_us"] - begin_us for each in sharing]
        for each, kernel_us in zip(sharing, alone, strict=True):
            part = kernel_us / sum(alone) if sum(alone) else 1 / len(sharing)
            yield number, each, part * (end_us - begin_us), part * (begin_us - before_us)
            number += 1


def sharing_of(record: Record) -> list[list[Record]]:
    """The entries of `launches_list`, those together that share a launch; records of versions in
    which none did have no numbers of launches."""
    found: list[list[Record]] = []
    for entry in record["launches_list"]:
        if not found or entry.get("launch") is None or entry["launch"] != found[-1][0]["launch"]:
            found.append([])
        found[-1].append(entry)
    return found


def path_of(scope: str) -> tuple[str, ...]:
    """The scopes from the outermost to this one: `encoder/layer.0` is two."""
    return tuple(part for part in scope.split("/") if part)
