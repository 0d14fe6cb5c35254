"""The table `[vector.functions]` of a machine file: functions on vector registers."""

from __future__ import annotations

from davinci.machine.section import Cycles, Positive, Section
from davinci.machine.tables import entry_of


class VectorFunctions(Section):
    """What the vector unit does with the instructions of a function; see `simulator.timing`.

    Attributes:
        start_cycles: from the call until the first instruction begins.
        drain_cycles: from when the last one begins to compute or move until the function is over.
        width: instructions that come to the unit in a cycle.
        window: instructions that it holds and that have not begun.
        special: instructions, named as those on UB, that keep one of the two units for functions
            like exp.
        cycles: likewise by instruction, those that it keeps its unit; 1 if it is not listed.
        latency: by instruction, from when it begins until its result can be read.
    """

    start_cycles: Cycles
    drain_cycles: Cycles
    width: Positive
    window: Positive
    special: list[str]
    cycles: dict[str, Positive]
    latency: dict[str, Positive]

    def keeps(self, name: str, type_: str) -> int:
        """Cycles that an instruction keeps its unit."""
        return entry_of(self.cycles, family_of(name), type_, 1)

    def after(self, name: str, type_: str) -> int:
        """Cycles until the result of an instruction can be read."""
        return entry_of(self.latency, family_of(name), type_, 1)


def family_of(name: str) -> str:
    """The name of an instruction on registers without what tells it from one on UB."""
    return name.removesuffix("_reg")
