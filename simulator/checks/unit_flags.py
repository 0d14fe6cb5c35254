"""The unit flags of a core's L0C in program order: what they order, and where they are misused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.isa.core import Pipe
from davinci.isa.unit_flags import FLIP, UNIT_BYTES, UNIT_GIVERS
from davinci.native import Ints
from davinci.simulator.core.forms import InstructionForm
from davinci.simulator.core.problems import UnplacedFault


class UnitFlags:
    """The flags of the units of L0C.

    A unit orders the instruction that takes it behind the one of the other pipe that has handed it
    over, and behind those before that one in its pipe, as the cube and fixpipe go through L0C in
    order. It orders nothing else.

    Args:
        units: of L0C.
    """

    def __init__(self, units: int) -> None:
        self._set = np.zeros(units, dtype=bool)
        self._by: Ints = np.zeros(units, dtype=np.int64)
        self._number: Ints = np.zeros(units, dtype=np.int64)
        self._any = False

    def take(
        self, form: InstructionForm, words: Sequence[int], index: int, number: int, known: list[int]
    ) -> list[int]:
        """The vector clock of an instruction, advanced by those that handed it its units of L0C.

        Args:
            index, number: of the instruction in the block, and in its pipe.
            known: the clock of its pipe.

        Raises:
            Problem: a unit is not there for it, or it ignores a flag that is set.
        """
        units = form.units
        if not form.l0c_word or not (units.flag or self._any) or not units.size:
            return known
        address = words[form.l0c_word]
        if units.flag and address % UNIT_BYTES:
            raise UnplacedFault(
                "unit flags are of whole fractals",
                found=f"L0C {address:#x}",
                expected=f"a multiple of {UNIT_BYTES}",
            )
        numbers = units.numbers(address)
        wrong = self._set[numbers] != (units.flag > 0 and form.pipe == Pipe.FIX)
        if wrong.any():
            raise self._misused(form, int(numbers[wrong.argmax()]))
        if not units.flag:
            return known
        giver = UNIT_GIVERS[form.pipe]
        known = list(known)
        known[giver] = max(known[giver], int(self._number[numbers].min()))
        if units.flag == FLIP:
            self._set[numbers] = form.pipe == Pipe.M
            self._by[numbers], self._number[numbers] = index, number
            self._any = bool(self._set.any())
        return known

    def _misused(self, form: InstructionForm, unit: int) -> UnplacedFault:
        place = f"L0C unit at {unit * UNIT_BYTES:#x}"
        setter = f"{place}, whose flag #{self._by[unit]} has set"
        if not form.units.flag:
            return UnplacedFault(
                "it ignores a unit flag that is set",
                found=setter,
                hint="unit flags are of both sides: give mad and fixpipe the field unit_flag",
            )
        if form.pipe == Pipe.M:
            return UnplacedFault(
                "it waits for ever for a unit of L0C that no fixpipe before it hands back",
                found=setter,
                hint="the fixpipe that reads the sums needs unit_flag 3",
            )
        return UnplacedFault(
            "it waits for ever for a unit of L0C that no mad before it hands over",
            found=place,
            hint="the last mad of the sums needs unit_flag 3, and one fixpipe reads them",
        )
