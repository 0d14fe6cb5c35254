"""The NPU as the host sees it: global memory, and launches of kernels on its cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy.typing as npt

from davinci.errors import DeviceFault, shipped
from davinci.isa.core import Array
from davinci.machine import Machine
from davinci.simulator.checks.block_races import BlockRaces
from davinci.simulator.core.core import MOST_INSTRUCTIONS, BlockProgram, Core
from davinci.simulator.core.forms import Decoder
from davinci.simulator.core.host_threads import one_thread
from davinci.simulator.core.memory import GlobalMemory
from davinci.simulator.core.tables import Tables
from davinci.simulator.split.launch import Pool, SplitLaunch
from davinci.simulator.timing.collect import Collector, Done
from davinci.simulator.timing.gm_model import rates_of
from davinci.simulator.timing.l2 import L2
from davinci.simulator.timing.profile import LaunchProfile


class Device:
    """A simulated NPU.

    Args:
        machine: what it is like.
        gm_bytes: bytes of global memory that are simulated.
        checks: check for unwritten bytes and races; bounds, alignment, legality of fields,
            double flags and deadlocks are always checked.
        data: compute what instructions write. Without it only times are found: memory keeps what
            the host and the scalar units wrote, every byte counts as written, and there are no
            checks for races.
        most_instructions: of a block; more are a fault.
    """

    def __init__(
        self,
        machine: Machine,
        gm_bytes: int,
        checks: bool = True,
        data: bool = True,
        most_instructions: int = MOST_INSTRUCTIONS,
    ) -> None:
        self.machine, self.data = machine, data
        self.checks = checks = checks and data
        self._gm = GlobalMemory(machine, gm_bytes, shadowed=data)
        tables = {kind: Tables(machine, Decoder(machine, kind)) for kind in machine.core_types}
        self._tables = tables
        self.most_instructions = most_instructions
        self._l2 = L2(machine, gm_bytes)

    @property
    def most_instructions(self) -> int:
        """How many a block may issue."""
        return self._most

    @most_instructions.setter
    def most_instructions(self, most: int) -> None:
        self._most = most
        self._pool = Pool(
            lambda kind: Core(
                self.machine, kind, self._gm, self._tables[kind], self.checks, self.data, most
            )
        )

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
        if self.data:
            self._gm.discard(address, nbytes)

    def flush(self) -> None:
        """Empties the L2, for times that do not depend on what ran before."""
        self._l2.flush()

    def launch(
        self,
        name: str,
        program: BlockProgram | Mapping[str, BlockProgram],
        arguments: Sequence[int],
        blocks: int = 1,
        locations: Sequence[str] = (),
        timeline: bool = False,
        timeline_blocks: int | None = None,
    ) -> LaunchProfile:
        """Runs a kernel on all its blocks and returns what it did.

        Args:
            name: the kernel's name, for messages and reports.
            program: the scalar program; on a split machine those of the cube cores ("AIC"), of the
                vector cores ("AIV") or both.
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
        programs = program if isinstance(program, Mapping) else {"AICORE": program}
        self._check_programs(name, programs)
        profile = LaunchProfile(name, blocks)
        collector = Collector(profile, self.machine, locations)
        kept = (blocks if timeline_blocks is None else timeline_blocks) if timeline else 0
        with one_thread():
            if self.machine.split:
                split = SplitLaunch(self.machine, self._pool, name, programs, blocks, collector)
                profile.cores = split.cores
                split.run(arguments, locations, kept, self.checks)
                collector.settle(self._l2, split.at_once)
            else:
                self._run_blocks(programs["AICORE"], arguments, locations, kept, collector)
                collector.settle(self._l2, profile.cores)
        return profile

    def _check_programs(self, name: str, programs: Mapping[str, BlockProgram]) -> None:
        kinds = self.machine.core_types
        if not programs or not set(programs) <= set(kinds):
            raise DeviceFault(
                f"the kernel has no program for the cores of {self.machine.name}",
                where=f"kernel {name}",
                found=" and ".join(programs) or "none",
                expected=" or ".join(kinds),
                hint=f"see ascend.core in {shipped('architecture.md')}",
            )

    def _run_blocks(
        self,
        program: BlockProgram,
        arguments: Sequence[int],
        locations: Sequence[str],
        kept: int,
        collector: Collector,
    ) -> None:
        """Runs the blocks of a coupled machine one after the other, each to its end."""
        profile = collector.profile
        name, blocks = profile.name, profile.blocks
        cores = profile.cores = min(blocks, self.machine.cores)
        rates = rates_of(self.machine, cores)
        between = BlockRaces(name) if self.checks and blocks > 1 else None
        core = self._pool.take("AICORE")
        for block in range(blocks):
            core.begin(name, block, rates, locations, block < kept)
            program(arguments, block, blocks, core)
            collector.add(Done.of(core), block % cores, block)
            if between is not None:
                between.add(block, core)
        self._pool.give("AICORE", core)
        if between is not None:
            between.check()
