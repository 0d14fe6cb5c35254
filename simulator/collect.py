"""Gathers what the blocks of a launch did into its profile."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.simulator.core import Core
from davinci.simulator.profile import BlockProfile, LaunchProfile


class Collector:
    """Fills a profile, program by program.

    Args:
        profile: of the launch.
        machine: says which pipes there are.
        locations: source locations by id.
    """

    def __init__(self, profile: LaunchProfile, machine: Machine, locations: Sequence[str]) -> None:
        self.profile, self._locations = profile, locations
        names = [pipe for core in machine.core_types.values() for pipe in core.pipes]
        self._pipes = {f"PIPE_{name}": int(Pipe[name]) for name in names}
        profile.pipes = dict.fromkeys(self._pipes, 0)

    def add(self, core: Core, place: int, block: int, begin: int) -> int:
        """Ends the program that `core` ran and notes it; returns its cycles.

        Args:
            core: with the program at its end.
            place: number of the core on the machine.
            block: that it ran.
            begin: cycle of the launch at which it began.

        Raises:
            DeviceFault: deadlock, or flags left set.
        """
        cycles = core.finish()
        profile = self.profile
        busy = {name: core.timeline.busy[pipe] for name, pipe in self._pipes.items()}
        profile.per_block.append(_block(place, cycles, busy, core))
        for name, count in busy.items():
            profile.pipes[name] += count
        _count(profile, core)
        for step in core.timeline.rows or ():
            number = step.item.location
            text = self._locations[number] if number < len(self._locations) else ""
            profile.rows.append(step.row(place, block, begin, text))
        return cycles


def _block(place: int, cycles: int, busy: dict[str, int], core: Core) -> BlockProfile:
    profile = BlockProfile(place, cycles, busy, {}, core.timeline.unit_cycles)
    copied = profile.copied_bytes
    for form, count in core.counts.items():
        if form.copies:
            copied[form.copies] = copied.get(form.copies, 0) + count * form.copied_bytes
    return profile


def _count(profile: LaunchProfile, core: Core) -> None:
    for form, count in core.counts.items():
        mnemonic = form.record.mnemonic
        profile.instructions[mnemonic] = profile.instructions.get(mnemonic, 0) + count
        profile.macs += count * form.macs
        profile.vector_repeats += count * form.repeats
        profile.gm_read_bytes += count * form.gm_read_bytes
        profile.gm_write_bytes += count * form.gm_write_bytes
    profile.scalar_accesses += core.scalar_accesses
