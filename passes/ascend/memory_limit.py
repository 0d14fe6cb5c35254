"""What is done so that the values that kernels hand to each other fit a limit of memory.

Remedies are tried in this order, until the arena fits:

reorder      the launches as they are, in another order
split        fewer kernels share a launch, in the end none, in the order of least peak
recompute    what is cheap to compute is computed again where it is needed late
cut          chains of kernels compute their results in parts (`ascend-cut-chains`), so that only
             a part of what lies between them is live, with all the remedies above

Each is said with the bytes that it takes and its estimated time, also in the error where none is
enough; that error lists what is live at the peak.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.mlir import Op
from davinci.passes import builder
from davinci.passes.ascend.host_function import Launch, Storage
from davinci.passes.ascend.recomputation import recompute
from davinci.passes.ascend.staging import Staged, StageSearch
from davinci.planning import (
    Buffer,
    Plan,
    Problem,
    Step,
    Work,
    live_bytes,
    lowest,
    one_by_one,
    pieces_of,
    problem_of,
    solve,
)
from davinci.planning.order import STATES

PLANNED, REORDER, SPLIT, RECOMPUTE = "planned", "reorder", "split", "recompute"
CUT = "cut"

CUTS = "ascend.cuts_"
"""Beginning of the names of the attributes that `Cuts` has on a module."""

CUTS_LIMIT = f"{CUTS}limit"

MOST_ROUNDS = 3
"""Times that values to compute again are chosen: storages that do not lie side by side leave gaps,
and then more of them are chosen."""

MOST_NAMES = 2
"""Nodes of the model that name a value in an error; how many more there are is said."""


@dataclass(frozen=True)
class Remedy:
    """The arena and the time that a remedy gives.

    Attributes:
        name: "planned" for what is taken without a limit, "reorder", "split", "recompute", "cut".
        arena_bytes: that the arena has with it.
        cycles: estimated, of all launches; the scalar unit's kernels, whose time nobody estimates,
            count as none. None if nobody has asked.
        repeated: launches that compute something again.
        parts: in which each chain that is cut is computed, in rising order.
    """

    name: str
    arena_bytes: int
    cycles: float | None
    repeated: int = 0
    parts: tuple[int, ...] = ()

    def text(self, first: Remedy) -> str:
        """In words, with the difference to another one.

        >>> print(Remedy("split", 90, 1200.0).text(Remedy("planned", 100, 1000.0)))
        split: 90 bytes, about 200 cycles more
        """
        more = ""
        if self != first and self.cycles is not None and first.cycles is not None:
            more = f", about {self.cycles - first.cycles:,.0f} cycles more"
        again = f" by {self.repeated} launch{'es' * (self.repeated > 1)}" if self.repeated else ""
        if self.parts:
            least, most = self.parts[0], self.parts[-1]
            chains = f"{len(self.parts)} chain{'s' * (len(self.parts) > 1)}"
            each = f"{least} to {most}" if least < most else f"{most}"
            again = f" of {chains} in {each} parts"
        return f"{self.name}{again}: {self.arena_bytes:,} bytes{more}"


@dataclass(frozen=True)
class Attempt:
    """Launches as a remedy has them, and where their storages lie.

    Attributes:
        name: of the remedy.
        staged: the launches in stages.
        arena: storages.
        placed: the offsets of `arena`.
        repeated: launches that compute something again.
    """

    name: str
    staged: Staged
    arena: list[Storage]
    placed: Plan
    repeated: int = 0


def place(staged: Staged, arena: Sequence[Storage], line_bytes: int) -> Plan:
    """Offsets of storages, whose lifetimes are those in `staged` from then on."""
    staged.note_lifetimes()
    buffers = tuple(
        Buffer(s.size, s.first, s.last + 1, pieces=pieces_of(s.uses, s.size, line_bytes))
        for s in arena
    )
    return solve(Problem(buffers, line_bytes))


@dataclass(frozen=True)
class Fit:
    """What came of a limit.

    Attributes:
        best: the first attempt whose arena has at most `limit` bytes, else the smallest one.
        remedies: what all up to it gave.
    """

    best: Attempt
    remedies: list[Remedy]
    limit: int

    @property
    def holds(self) -> bool:
        return self.best.placed.height <= self.limit


@dataclass(frozen=True)
class Cuts:
    """What `ascend-cut-chains` did for a limit, which it leaves in attributes of the module.

    Attributes:
        limit: in bytes; 0 where the pass has not run.
        tried: what remedies gave without the cuts that were taken in the end.
        parts: of each chain that is cut.
    """

    limit: int = 0
    tried: tuple[Remedy, ...] = ()
    parts: tuple[int, ...] = ()

    def remedies(self, fitted: Fit) -> list[Remedy]:
        """All remedies, once it is known what is left to do where chains are cut."""
        if not self.parts:
            return [*fitted.remedies, *(each for each in self.tried if each.name == CUT)]
        best = min(fitted.remedies, key=lambda each: each.arena_bytes)
        return [*self.tried, replace(best, name=CUT, parts=tuple(sorted(self.parts)))]

    def mark(self, root: Op) -> None:
        """Leaves it in attributes of a module."""
        values: dict[str, Any] = {"limit": self.limit, "parts": list(self.parts)}
        values["tried"] = [
            [each.name, each.arena_bytes, int(each.cycles or 0), each.repeated, list(each.parts)]
            for each in self.tried
        ]
        for name, value in values.items():
            root.attributes[CUTS + name] = builder.as_attribute(value)


def are_cut(root: Op) -> bool:
    """Whether chains of a module are cut."""
    return bool(attribute(root, CUTS + "parts"))


def cut_of(root: Op) -> Cuts:
    """What was left in attributes of a module, which are taken away."""
    if CUTS_LIMIT not in root.attributes:
        return Cuts()
    limit, tried, parts = (attribute(root, CUTS + name) for name in ("limit", "tried", "parts"))
    for name in ("limit", "tried", "parts"):
        del root.attributes[CUTS + name]
    remedies = tuple(
        Remedy(name, size, cycles or None, repeated, tuple(each))
        for name, size, cycles, repeated, each in tried
    )
    return Cuts(limit, remedies, tuple(parts))


def fit(staging: StageSearch, planned: Attempt, line_bytes: int, limit: int) -> Fit:
    """Tries remedies in turn until the arena has at most `limit` bytes.

    Args:
        planned: what is taken without a limit.
    """
    remedies: list[Remedy] = []
    best = planned
    for attempt in _attempts(staging, planned, line_bytes, limit):
        height, cycles = attempt.placed.height, staging.cycles_of(attempt.staged)
        remedies.append(Remedy(attempt.name, height, cycles, attempt.repeated))
        if height < best.placed.height:
            best = attempt
        if height <= limit:
            break
    return Fit(best, remedies, limit)


def lowest_of(staging: StageSearch, arena: list[Storage], line_bytes: int) -> Attempt:
    """One launch after the other, in the order of least peak that is found."""
    staged = staging.in_order(lowest(staging.work(line_bytes)).steps)
    return Attempt(SPLIT, staged, arena, place(staged, arena, line_bytes))


def _attempts(
    staging: StageSearch, planned: Attempt, line_bytes: int, limit: int
) -> Iterator[Attempt]:
    """All remedies in turn; what was planned is the first."""
    known = set(planned.arena)

    def attempt(name: str, staged: Staged, repeated: int = 0) -> Attempt:
        launches = (launch for stage in staged.launches for launch in stage)
        arena = [*planned.arena, *(s for s in storages_of(launches) if s not in known)]
        return Attempt(name, staged, arena, place(staged, arena, line_bytes), repeated)

    yield planned
    work = staging.work(line_bytes)
    stages = [stage.tasks for stage in planned.staged.stages]
    yield attempt(REORDER, staging.of_stages(_reordered(work, stages)))
    order = lowest(work).steps
    for cut in _cut(work, stages, order):
        yield attempt(SPLIT, staging.of_stages(cut))
    apart = staging.in_order(order)
    yield attempt(SPLIT, apart)
    flat = [launch for launches in apart.launches for launch in launches]
    room = repeated = 0  # room: what gaps between storages have taken
    for _ in range(MOST_ROUNDS):
        made = recompute(flat, limit - room, staging.cycles_alone)
        if made.repeated <= repeated:
            return
        repeated = made.repeated
        again = staging.with_launches(made.launches)
        staged = again.of_stages(one_by_one(range(len(made.launches))))
        tried = attempt(RECOMPUTE, staged, repeated)
        yield tried
        room += max(tried.placed.height - limit, line_bytes)


def _reordered(
    work: Work, stages: Sequence[tuple[int, ...]], states: int = STATES
) -> list[tuple[int, ...]]:
    """Stages as they are, in an order in which little is live at once; see `lowest`."""
    place_of = {number: at for at, stage in enumerate(stages) for number in stage}
    steps = []
    for at, stage in enumerate(stages):
        reads = frozenset(t for number in stage for t in work.steps[number].touches)
        needs = {place_of[need] for number in stage for need in work.needs[number]}
        steps.append(Step(tuple(reads), (), frozenset(needs - {at})))
    return [stages[at] for at in lowest(Work(work.sizes, tuple(steps)), states).steps]


def _cut(
    work: Work, stages: Sequence[tuple[int, ...]], order: Sequence[int]
) -> Iterator[list[tuple[int, ...]]]:
    """Stages with ever more of them cut in halves, the one at the peak first, until that is one
    launch."""
    rank = {number: at for at, number in enumerate(order)}
    now = list(stages)
    while True:
        now = _reordered(work, now, states=0)
        peak = int(live_bytes(problem_of(work, now).buffers, len(now)).argmax())
        if len(now[peak]) == 1:
            return
        ranked = sorted(now[peak], key=rank.__getitem__)
        middle = len(ranked) // 2
        now[peak : peak + 1] = [tuple(sorted(ranked[:middle])), tuple(sorted(ranked[middle:]))]
        yield list(now)


def storages_of(launches: Iterable[Launch]) -> list[Storage]:
    """Storages in the arena that launches touch, in the order in which that happens."""
    touched = [place.storage for launch in launches for place, _ in launch.buffers]
    return [s for s in dict.fromkeys(touched) if s.kind == "arena" and s.size]


def does_not_fit(best: Attempt, remedies: Sequence[Remedy], limit: int) -> CompileError:
    """The error that lists what is live at the peak of the best remedy, and what each gave."""
    staged, buffers = best.staged, best.placed.problem.buffers
    peak = int(live_bytes(buffers, len(staged.launches)).argmax())
    alive: dict[Storage, int] = {}
    for storage, buffer in zip(best.arena, buffers, strict=True):
        parts = [part for part in buffer.parts if part.lower <= peak < part.upper]
        if parts:
            alive[storage] = sum(part.end - part.begin for part in parts)
    running = staged.launches[peak]
    touched = {place.storage for launch in running for place, _ in launch.buffers}
    makers: dict[Storage, list[str]] = {}
    for launch in (launch for stage in staged.launches for launch in stage):
        inputs = len(launch.buffers) - launch.outputs
        for number, (place_of, _) in enumerate(launch.buffers):
            if number >= inputs or place_of.storage.streamed:
                makers.setdefault(place_of.storage, []).extend(launch.operators)
    rows = [f"{'bytes':>14}  made by"]
    for storage in sorted(alive, key=lambda s: -alive[s]):
        kept = "" if storage in touched else ", only kept"
        what = "weights of " if storage.streamed else ""
        rows.append(f"{alive[storage]:>14,}  {what}{named(makers.get(storage, []))}{kept}")
    lines = [f"alive while {' and '.join(map(_kernel_text, running))} runs:", *rows]
    if len(running) == 1:
        least = sum(size for storage, size in alive.items() if storage in touched)
        lines.append(f"{least:>14,}  of these the kernel itself reads and writes")
    lines += ["what each remedy gives:", *(f"  {r.text(remedies[0])}" for r in remedies)]
    return CompileError(
        "the values that kernels hand to each other do not fit the memory limit",
        found=f"{best.placed.height:,} bytes with the best remedy",
        expected=f"at most {limit:,} bytes",
        hint="raise the limit, or make what is largest smaller, as with a smaller batch or shorter "
        "sequences; " + "\n".join(lines),
    )


def named(nodes: Sequence[str]) -> str:
    """Nodes of the model, few of them by name.

    >>> named(["a", "b", "c", "d"])
    'c, d and 2 more'
    """
    shown = list(dict.fromkeys(nodes))
    more = len(shown) - MOST_NAMES
    text = ", ".join(shown[-MOST_NAMES:]) or "nodes without names"
    return text + (f" and {more} more" if more > 0 else "")


def _kernel_text(launch: Launch) -> str:
    return f"@{launch.kernel} ({named(launch.operators)})"
