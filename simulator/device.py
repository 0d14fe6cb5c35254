"""The NPU as the host sees it: global memory, and launches of kernels on its cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from davinci.errors import DeviceFault
from davinci.isa.core import Array, Pipe
from davinci.machine import Machine
from davinci.simulator.block_races import BlockRaces
from davinci.simulator.core import Core
from davinci.simulator.forms import Decoder
from davinci.simulator.memory import GlobalMemory
from davinci.simulator.profile import BlockProfile, LaunchProfile
from davinci.simulator.timing_rules import rates_of

PIPE_NAMES = {f"PIPE_{pipe.name}": pipe for pipe in Pipe if pipe != Pipe.ALL}

Program = Callable[[Sequence[int], int, int, Core], None]
"""`program(arguments, block, blocks, core)`: runs the scalar program of one block."""


class Device:
    """A simulated NPU.

    Args:
        machine: what it is like.
        gm_bytes: bytes of global memory that are simulated.
        checks: check for unwritten bytes and races; bounds, alignment, legality of fields,
            double flags and deadlocks are always checked.
    """

    def __init__(self, machine: Machine, gm_bytes: int, checks: bool = True) -> None:
        self.machine, self.checks = machine, checks
        self._gm = GlobalMemory(machine, gm_bytes)
        # Blocks are executed one after the other, so one set of on-chip memories serves all cores.
        self._core = Core(machine, self._gm, Decoder(machine), checks)
        # A tile's product is too small for several threads: with any other load on the host they
        # wait for each other, a hundred times as long as the product takes.
        self._threads = ThreadpoolController()

    def allocate(self, nbytes: int) -> int:
        """See `GlobalMemory.allocate`."""
        return self._gm.allocate(nbytes)

    def write(self, address: int, array: Array) -> None:
        """See `GlobalMemory.write`."""
        self._gm.write(address, array)

    def read(self, address: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """See `GlobalMemory.read`."""
        return self._gm.read(address, dtype, shape)

    def discard(self, address: int, nbytes: int) -> None:
        """See `GlobalMemory.discard`."""
        self._gm.discard(address, nbytes)

    def launch(
        self,
        name: str,
        program: Program,
        arguments: Sequence[int],
        blocks: int = 1,
        locations: Sequence[str] = (),
        timeline: bool = False,
        timeline_blocks: int | None = None,
    ) -> LaunchProfile:
        """Runs a kernel on all its blocks and returns what it did.

        Args:
            name: the kernel's name, for messages and reports.
            program: the scalar program.
            arguments: addresses of its buffers in global memory.
            blocks: number of blocks; more than the machine has cores run in rounds.
            locations: source locations by id, number 0 unknown.
            timeline: keep one row an instruction in the profile.
            timeline_blocks: of only so many blocks, the first ones; None: of all.

        Raises:
            DeviceFault: the program did something illegal.
        """
        if blocks < 1:
            raise DeviceFault("no blocks", where=f"kernel {name}", found=f"blocks = {blocks}")
        profile = LaunchProfile(name, blocks)
        cores = min(blocks, self.machine.cores)
        rates = rates_of(self.machine, cores)
        clocks = [0] * cores
        between = BlockRaces(name) if self.checks and blocks > 1 else None
        kept = (blocks if timeline_blocks is None else timeline_blocks) if timeline else 0
        core = self._core
        for block in range(blocks):
            core.begin(name, block, rates, locations, block < kept)
            with self._threads.limit(limits=1, user_api="blas"):
                program(arguments, block, blocks, core)
            begin = clocks[block % cores]
            cycles = core.finish()
            clocks[block % cores] += cycles
            profile.per_block.append(_block(block % cores, cycles, core))
            _count(profile, core)
            if between is not None:
                between.add(block, core)
            for step in core.timeline.rows or ():
                number = step.item.location
                place = locations[number] if number < len(locations) else ""
                profile.rows.append(step.row(block % cores, block, begin, place))
        if between is not None:
            between.check()
        profile.cycles = max(clocks)
        profile.pipes = {
            name: sum(each.pipes[name] for each in profile.per_block) for name in PIPE_NAMES
        }
        return profile


def _block(number: int, cycles: int, core: Core) -> BlockProfile:
    busy = {name: core.timeline.busy[pipe] for name, pipe in PIPE_NAMES.items()}
    profile = BlockProfile(number, cycles, busy, {}, core.timeline.unit_cycles)
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
