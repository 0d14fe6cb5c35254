"""How instructions are executed: one by one, or a part of a stream that is known as a whole.

An `Operation` is an instruction at its addresses, with the arrays that it reads and writes as views
of the memories. A `PartPlan` keeps those of a part that only touch the chip; copies between it and
global memory that follow each other at a constant distance become one, and so do loads of fractals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from davinci.isa.core import LOCATION_SHIFT, Array, Records, Registers, Space
from davinci.isa.mte import load_fractals, move
from davinci.isa.stores import stored
from davinci.native import Ints
from davinci.simulator.checks.races import InstructionRun
from davinci.simulator.core.forms import InstructionForm, TouchedRegion
from davinci.simulator.core.half_range import (
    NOTHING,
    Lost,
    lost_by_arithmetic,
    lost_by_conversion,
    lost_by_product,
    taking_part,
)
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.problems import MALFORMED, UnplacedFault
from davinci.simulator.core.regions import Region
from davinci.simulator.core.tables import Tables

LOADED = [f.name for f in fields(Registers) if f.name != "cmpmask"]
"""Registers that instructions load with what their records hold."""


@dataclass(frozen=True)
class StreamPart:
    """Instructions that follow each other: records, steps, number of the first in the block."""

    records: Records
    steps: Ints
    first: int


class Follower(Protocol):
    """The core that follows a plan."""

    registers: Registers
    lost: Lost

    def compute(self, form: InstructionForm, words: list[int]) -> None: ...

    def check_transfer(self, form: InstructionForm, words: list[int], index: int) -> None: ...

    def may_transfer(self, words: list[int], run: InstructionRun) -> bool: ...


class Unchecked:
    """A core that follows a plan whose transfers were checked before."""

    def __init__(self, core: Follower) -> None:
        self.registers, self.compute = core.registers, core.compute
        self.lost = NOTHING

    def check_transfer(self, form: InstructionForm, words: list[int], index: int) -> None:
        """It was."""

    def may_transfer(self, words: list[int], run: InstructionRun) -> bool:
        """It may."""
        return True


class Operation:
    """An instruction at its addresses.

    Args:
        form: of it.
        words: of its record.
        memories: by number of their space.

    Attributes:
        at: number in its part.
    """

    __slots__ = ("_fields", "_places", "_sources", "at", "form")

    def __init__(
        self, form: InstructionForm, words: list[int], memories: Sequence[Memory], at: int = 0
    ) -> None:
        self.form, self.at = form, at
        self._fields = form.fields(words)
        self._sources = sources_of(form, words, memories)
        self._places = [
            memories[p.space].place(p.region, words[p.word] + p.offset) for p in form.writes
        ]

    def run(self, registers: Registers) -> Lost:
        """Computes it; returns what left the range of f16. Nothing is marked as written."""
        form = self.form
        results = form.record.compute(self._fields, registers, self._sources)
        found = NOTHING
        if form.converts_to_half or form.computes_half:
            found = lost(form, self._sources, results[0])
        for place, result in zip(self._places, results, strict=True):
            place.store(result)
        return found

    def follow(self, core: Follower, records: Records, first: int) -> None:
        """Computes it as an item of a plan."""
        found = self.run(core.registers)
        if found is not NOTHING:
            core.lost += found


class ScalarOperation(Operation):
    """An instruction at its addresses, with another scalar operand each time."""

    def follow(self, core: Follower, records: Records, first: int) -> None:
        """Computes it with the operand of these records."""
        self._fields = self.form.fields(records[self.at].tolist())
        super().follow(core, records, first)


class FractalLoads(Operation):
    """Loads of fractals in a row, at constant distances in both memories: one load.

    Args:
        form: of each of them.
        words: of the record of the first.
        count: of them.
        steps: bytes from one to the next, by the words of their addresses.
    """

    __slots__ = ("_target",)

    def __init__(
        self,
        form: InstructionForm,
        words: list[int],
        memories: Sequence[Memory],
        at: int,
        count: int,
        steps: Mapping[int, int],
    ) -> None:
        whole = form.repeated(count, steps)
        super().__init__(form, words, memories, at)
        self._sources = sources_of(whole, words, memories)
        (port,) = whole.writes
        self._target = memories[port.space].view(port.region, words[port.word] + port.offset)

    def run(self, registers: Registers) -> Lost:
        """Loads all of them."""
        (found,) = load_fractals(self._fields, registers, self._sources)
        self._target[...] = found.reshape(self._target.shape)
        return NOTHING


class RegisterLoad:
    """What the registers hold from here on, but for results of comparisons."""

    def __init__(self, registers: Registers) -> None:
        self._values: dict[str, Any] = {name: getattr(registers, name) for name in LOADED}

    def follow(self, core: Follower, records: Records, first: int) -> None:
        """Loads them."""
        vars(core.registers).update(self._values)


class ScalarAccesses:
    """Accesses of the scalar unit to global memory, which a record sums up: they are only checked.

    Args:
        form: of the record.
        at: number of it in its part.
    """

    def __init__(self, form: InstructionForm, at: int) -> None:
        self._form, self._at = form, at

    def follow(self, core: Follower, records: Records, first: int) -> None:
        """Checks them, at the addresses of these records."""
        words = [*records[self._at].tolist(), 0]
        core.check_transfer(self._form, words, first + self._at)


class Transfers:
    """Instructions in a row that touch global memory.

    Args:
        form: of all of them.
        at: number of the first in its part.
        count: of them.
        step: bytes from one to the next on the chip.
    """

    def __init__(
        self,
        tables: Tables,
        memories: Sequence[Memory],
        form: InstructionForm,
        at: int,
        count: int,
        step: int,
    ) -> None:
        self._tables, self._memories = tables, memories
        self._form, self._at = form, at
        self._count, self._step = count, step
        self._last: tuple[int, InstructionForm | None] = 0, None
        self._moves = chip_port(form) is not None
        self._near: tuple[InstructionForm, int, Array] | None = None

    def follow(self, core: Follower, records: Records, first: int) -> None:
        """Executes them, with the addresses of these records."""
        rows = records[self._at : self._at + self._count]
        index = first + self._at
        run = self._as_one(rows, index) if self._count > 1 else None
        if run is not None:
            words = [*rows[0].tolist(), 0]
            self._tables.locate(run.form, words)
            if core.may_transfer(words, run):
                self._move(run.form, words)
                return
        for i, row in enumerate(rows.tolist()):
            row.append(0)
            self._tables.locate(self._form, row)
            core.check_transfer(self._form, row, index + i)
            if self._moves:
                self._move(self._form, row)
            else:
                core.compute(self._form, row)

    def _move(self, form: InstructionForm, words: list[int]) -> None:
        """Copies, with the region on the chip found once."""
        written = bool(form.far_ports[1])
        (gm,) = form.far_ports[written]
        (port,) = form.chip_ports[not written]
        base = words[port.word] + port.offset
        if self._near is None or self._near[0] is not form or self._near[1] != base:
            self._near = form, base, self._memories[port.space].view(port.region, base)
        memory, base = self._memories[Space.GM], words[gm.word] + gm.offset
        far = memory.view(gm.region, base)
        if written:
            far[...] = self._near[2]
            memory.mark(gm.region, base)
        else:
            self._near[2][...] = far

    def _as_one(self, rows: Records, index: int) -> InstructionRun | None:
        """Them as one, if they are evenly apart in global memory and do together what they do in
        turn."""
        addresses = self._tables.located(rows[:, self._form.gm_word].tolist())
        step = addresses[1] - addresses[0]
        if any(b - a != step for a, b in pairwise(addresses)):
            return None
        if step != self._last[0]:
            self._last = step, self._repeated(step)
        form = self._last[1]
        return (
            None
            if form is None
            else InstructionRun(index, form, int(rows[0, 0]) >> LOCATION_SHIFT, rows)
        )

    def _repeated(self, step: int) -> InstructionForm | None:
        """The form of them so far apart, None if they write a byte twice or go back."""
        if step <= 0:
            return None
        near = chip_port(self._form)
        assert near is not None, "a copy between global memory and the chip"
        steps = {self._form.gm_word: step, near.word: self._step}
        form = self._form.repeated(self._count, steps)
        regions = [port.region for port in form.writes]
        return form if all(region.disjoint for region in regions) else None


Item = Operation | RegisterLoad | ScalarAccesses | Transfers


class PartPlan:
    """A part of a stream that is known, but for its addresses in global memory.

    Args:
        part: of a stream.
        registers: before it.
        memories: by number of their space.

    Attributes:
        items: in order.
        written: by memories on the chip that they write, what they write of their shadows.
    """

    def __init__(
        self, part: StreamPart, tables: Tables, registers: Registers, memories: Sequence[Memory]
    ) -> None:
        self.items: list[Item] = []
        places: dict[Space, list[tuple[Region, int]]] = {}
        registers = copy(registers)
        words = [[*row, 0] for row in part.records.tolist()]
        forms = [tables.form_of(*pair) for pair in zip(part.steps.tolist(), words, strict=True)]
        at, loaded = 0, False
        while at < len(forms):
            form, count = forms[at], 1
            if form.loose:
                form.record.compute(form.fields(words[at]), registers, ())
                loaded = True
            elif form.summary:
                if form.moves_gm:
                    self.items.append(ScalarAccesses(form, at))
            elif not form.sync:
                if loaded:
                    self.items.append(RegisterLoad(registers))
                    loaded = False
                if form.moves_gm:
                    count, step = run_of(forms, words, at)
                    self.items.append(Transfers(tables, memories, form, at, count, step))
                elif (loads := loads_from(forms, words, at))[0] > 1:
                    count, steps = loads
                    self.items.append(FractalLoads(form, words[at], memories, at, count, steps))
                else:
                    kind = ScalarOperation if form.scalar else Operation
                    self.items.append(kind(form, words[at], memories, at))
                for port in form.chip_ports[1]:
                    places.setdefault(port.space, []).extend(
                        (port.region, row[port.word] + port.offset)
                        for row in words[at : at + count]
                    )
            at += count
        if loaded:
            self.items.append(RegisterLoad(registers))
        self.written = {space: memories[space].marks(found) for space, found in places.items()}

    def repeat(self, core: Follower, records: Records) -> Lost | None:
        """Executes the items for other records, whose transfers were checked.

        Returns:
            What left the range of f16, but for what the core notes; None if fields of an
            instruction do not fit each other.
        """
        unchecked = Unchecked(core)
        try:
            with np.errstate(all="ignore"):
                for item in self.items:
                    item.follow(unchecked, records, 0)
        except (*MALFORMED, UnplacedFault):
            return None
        return unchecked.lost

    def mark(self) -> None:
        """Marks what the items have written."""
        for runs in self.written.values():
            for run in runs:
                run.fill(True)


def run_of(
    forms: Sequence[InstructionForm], words: Sequence[list[int]], at: int
) -> tuple[int, int]:
    """How many copies from number `at` on are alike, and their constant distance on the chip."""
    form = forms[at]
    port = chip_port(form)
    if port is None:
        return 1, 0
    end, step = at + 1, 0
    while end < len(forms) and forms[end] is form:
        distance = words[end][port.word] - words[end - 1][port.word]
        if distance != step and end > at + 1:
            break
        end, step = end + 1, distance
    return (end - at, step) if step > 0 else (1, 0)


def loads_from(
    forms: Sequence[InstructionForm], words: Sequence[list[int]], at: int
) -> tuple[int, dict[int, int]]:
    """How many loads of fractals from number `at` on are alike, write no byte twice, and lie at
    constant distances, which are given by the words of addresses."""
    form, end = forms[at], at + 1
    if form.record.compute is not load_fractals or not (form.reads and form.writes):
        return 1, {}
    places = [form.reads[0].word, form.writes[0].word]
    steps: list[int] = []
    while end < len(forms) and forms[end] is form:
        found = [words[end][place] - words[end - 1][place] for place in places]
        if steps and found != steps:
            break
        end, steps = end + 1, found
    if not steps or steps[0] <= 0 or steps[1] < form.writes[0].region.high:
        return 1, {}
    return end - at, dict(zip(places, steps, strict=True))


def chip_port(form: InstructionForm) -> TouchedRegion | None:
    """The region on the chip of a copy between it and global memory; None of all others."""
    reads, writes = form.chip_ports
    ports = (*reads, *writes)
    copies = form.record.compute is move or (form.record.compute is stored and not form.adds)
    if not copies or len(ports) != 1 or not form.gm_word:
        return None
    (port,) = ports
    return None if port.region.empty or port.word > len(form.names) else port


def sources_of(
    form: InstructionForm, words: Sequence[int], memories: Sequence[Memory]
) -> list[Array]:
    """The regions that an instruction reads, as arrays that may be views."""
    return [memories[p.space].view(p.region, words[p.word] + p.offset) for p in form.reads]


def lost(form: InstructionForm, sources: Sequence[Array], result: Array) -> Lost:
    """What the lanes that take part in an instruction lost of what is rounded to f16."""
    masks = [port.region.mask for port in form.reads]
    taken = [taking_part(x, mask) for x, mask in zip(sources, masks, strict=True)]
    result = taking_part(result, form.writes[0].region.mask)
    if form.converts_to_half:
        return lost_by_conversion(taken[0], result)
    if form.multiplies_halves:
        return lost_by_product(taken, result)
    return lost_by_arithmetic(taken, result)
