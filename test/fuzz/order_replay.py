"""Streams without some of their flags and barriers on the simulator, faster than one by one.

Instructions take effect in program order: what is legal, inside bounds and written before it is
read is the same without a flag or barrier, and the kernel has run with these checks. Left are
races, flags and deadlocks, which the simulator's core finds here without any data. Streams that are
equal up to what they leave out share what comes before.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from davinci.errors import DeviceFault
from davinci.isa.core import Records, Registers
from davinci.machine import Machine
from davinci.simulator.checks.checker import Checker
from davinci.simulator.checks.races import Log, Races
from davinci.simulator.core.core import Core
from davinci.simulator.core.forms import Decoder, InstructionForm, TouchedRegion
from davinci.simulator.core.memory import GlobalMemory
from davinci.simulator.core.tables import Tables
from davinci.simulator.timing.gm_model import rates_of
from davinci.simulator.timing.layout import Word
from davinci.simulator.timing.timeline import Timeline

CHANGING = (Checker, Races, Log, Timeline, Registers)
"""What changes while a block runs, beside lists and dictionaries; all else is shared by branches,
also what only times depend on."""

AT_ONCE = 64
"""Records handed to the core at a time: most faults come soon behind what is left out."""


class OrderChecker(Checker):
    """Looks for races only."""

    def written(self, ports: Sequence[TouchedRegion], words: list[int]) -> None:
        pass


class OrderCore(Core):
    """A core that looks only for what flags and barriers can change."""

    def __init__(self, machine: Machine) -> None:
        (kind,) = machine.core_types
        memory = GlobalMemory(machine, 0, shadowed=False)
        tables = Tables(machine, Decoder(machine, kind))
        super().__init__(machine, kind, memory, tables, checks=True, data=False)
        self._checker = OrderChecker(tables, self._memories)
        self.begin("k", 0, rates_of(machine, 1), [], keep_rows=False)
        self._parts.begin(alone=False)  # Each stream is another one.
        self._checker.begin()
        self.timeline.state[Word.BOUNDS] = 0

    def _bounds(self, form: InstructionForm, words: list[int]) -> None:
        pass

    def branch(self) -> OrderCore:
        """A core in the same state, that goes on by itself."""
        other = copy(self)
        for name in ("_checker", "registers", "timeline"):
            setattr(other, name, branched(getattr(self, name)))
        other._checker.gm_reads, other._checker.gm_writes = [], []  # for other blocks
        return other

    def fault(self, records: Records) -> str:
        """Runs to the end; returns the message of the fault, or ""."""
        try:
            for first in range(0, len(records), AT_ONCE):
                self.consume(records[first : first + AT_ONCE])
            self.finish()
        except DeviceFault as fault:
            return str(fault.message)
        return ""


def branched(value: Any) -> Any:
    """A copy of what changes, down to what does not."""
    if isinstance(value, CHANGING):
        other = copy(value)
        names = getattr(value, "__slots__", None) or vars(value)
        for name in names:
            setattr(other, name, branched(getattr(value, name)))
        return other
    if isinstance(value, dict):
        return {key: branched(each) for key, each in value.items()}
    if isinstance(value, (list, deque)) and value and isinstance(value[0], (dict, list, deque)):
        return type(value)(map(branched, value))
    return copy(value) if isinstance(value, (list, deque, array, np.ndarray)) else value


def faults(
    machine: Machine, stream: Records, mutants: Collection[frozenset[int]]
) -> Mapping[frozenset[int], str]:
    """What the simulator says of a stream without some of its records, "" if nothing.

    Args:
        machine: with cores of one kind.
        mutants: each the numbers of the flags and barriers left out; none: the stream as it is.
    """
    found = {}
    core, at = OrderCore(machine), 0
    for mutant in sorted(mutants, key=lambda mutant: min(mutant, default=0)):
        first = min(mutant, default=0)
        core.consume(stream[at:first])
        at = first
        rest = np.delete(stream[first:], [number - first for number in mutant], axis=0)
        found[mutant] = core.branch().fault(rest)
    return found
