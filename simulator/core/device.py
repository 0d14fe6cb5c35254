"""The NPU as the host sees it: global memory, and launches of kernels on its cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy.typing as npt

from davinci.errors import DeviceFault, InputError, shipped
from davinci.isa.core import Array
from davinci.isa.cross_core import BY_FLAGS
from davinci.machine import Machine
from davinci.simulator.checks.block_races import BlockRaces
from davinci.simulator.core import processes
from davinci.simulator.core.core import MOST_INSTRUCTIONS, Core
from davinci.simulator.core.coupled import CoupledLaunch
from davinci.simulator.core.forms import Decoder
from davinci.simulator.core.host_threads import one_thread
from davinci.simulator.core.launch import CoreGroup, FreeCores, JoinedKernels, KernelCall
from davinci.simulator.core.memory import GlobalMemory, NearMemories, of_group
from davinci.simulator.core.program import BlockProgram
from davinci.simulator.core.tables import Tables
from davinci.simulator.split.launch import SplitLaunch
from davinci.simulator.split.meetings import Meetings
from davinci.simulator.split.talking import TalkingLaunch
from davinci.simulator.timing.l2 import L2
from davinci.simulator.timing.profile import LaunchProfile


@dataclass(frozen=True)
class NewCores:
    """Makes cores of a device. It does not know the device, so that this goes with its last owner
    and is not left to the search for cycles: hundreds of memories are kept with it.

    Attributes:
        memory: global memory of the device.
        tables: what instructions do, by kind of core.
        checks, data, most_instructions: see `Device`.
    """

    machine: Machine
    memory: GlobalMemory
    tables: Mapping[str, Tables]
    checks: bool
    data: bool
    most_instructions: int

    def core(self, kind: str, near: NearMemories | None = None) -> Core:
        """A core of that kind.

        Args:
            near: its memories, if others reach some of them; None for memories of its own.
        """
        most, tables = self.most_instructions, self.tables[kind]
        return Core(self.machine, kind, self.memory, tables, self.checks, self.data, most, near)

    def group(self) -> CoreGroup:
        """A cube core and its vector cores that reach some of each other's memories."""
        memories = of_group(self.machine, shadowed=self.data)
        cores = [self.core("AIV" if n else "AIC", near) for n, near in enumerate(memories)]
        (whole, shared), *_ = memories
        return CoreGroup(cores, [whole[space] for space in shared])


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

    Attributes:
        cores: that do all that the device does.
        clocks: cores that find times only.
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
        self._meetings = Meetings(machine, self._gm)

    @property
    def most_instructions(self) -> int:
        """How many a block may issue."""
        return self._most

    @most_instructions.setter
    def most_instructions(self, most: int) -> None:
        self._most = most

        def cores(checks: bool, data: bool) -> FreeCores:
            new = NewCores(self.machine, self._gm, self._tables, checks, data, most)
            return FreeCores(new.core, new.group)

        self.cores, self.clocks = cores(self.checks, self.data), cores(checks=False, data=False)

    def allocate(self, nbytes: int) -> int:
        """See `GlobalMemory.allocate`."""
        return self._gm.allocate(nbytes)

    def write(self, address: int, array: Array) -> None:
        """See `GlobalMemory.write`."""
        self._gm.write(address, array)

    def read(self, address: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """See `GlobalMemory.read`."""
        return self._gm.read(address, dtype, shape)

    def array(self, address: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """See `GlobalMemory.array`."""
        return self._gm.array(address, dtype, shape)

    @property
    def gm_bytes(self) -> int:
        """Bytes of global memory that are simulated."""
        return self._gm.size

    def discard(self, address: int, nbytes: int) -> None:
        """See `GlobalMemory.discard`."""
        if self.data:
            self._gm.discard(address, nbytes)

    def receive(self, address: int, nbytes: int, array: Array | None) -> None:
        """Has the host overwrite bytes of global memory between two launches.

        Args:
            array: what it writes; None where nobody reads the values.
        """
        self._l2.forget(address, nbytes)
        if array is not None:
            self.write(address, array)

    def flush(self, dirty_share: float | None = 0.0) -> None:
        """Empties the L2 of what was used, for times that do not depend on what ran before; it is
        left with lines that nothing reads again, of which that share was written; None: as many as
        the next launch writes."""
        self._l2.flush(dirty_share)

    def launch(
        self,
        name: str,
        program: BlockProgram | Mapping[str, BlockProgram],
        arguments: Sequence[int],
        blocks: int = 1,
        locations: Sequence[str] = (),
        timeline: bool = False,
        timeline_blocks: int | None = None,
        talks: bool = False,
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
            talks: on a coupled machine, blocks wait for each other by counters in global memory.

        Raises:
            DeviceFault: the program did something illegal.
        """
        programs = program if isinstance(program, Mapping) else {"AICORE": program}
        kept = (blocks if timeline_blocks is None else timeline_blocks) if timeline else 0
        call = KernelCall(name, programs, arguments, blocks, locations, alone=True, talks=talks)
        launch = JoinedKernels((call,))
        self._check(launch)
        with one_thread():
            return self.profile_of(launch, [kept])[0]

    def run(
        self, launches: Sequence[JoinedKernels], kept: Sequence[Sequence[int]], count: int = 1
    ) -> list[list[LaunchProfile]] | None:
        """Runs launches in order.

        Args:
            kept: of each kernel of each launch, blocks whose rows are kept, the first ones.
            count: of processes that compute data, on a machine whose cores do not meet.

        Returns:
            The profiles of the kernels of each. None, from several processes only: something is
            wrong, and what is found by running the launches again in one.

        Raises:
            DeviceFault: a program did something illegal.
            InputError: a process was killed, or the host gives none.
        """
        for launch in launches:
            self._check(launch)
        count = min(count, max((x.blocks for x in launches if not x.alone), default=1))
        with one_thread():
            if count == 1 or self.machine.split or not self.data:
                return [self.profile_of(x, n) for x, n in zip(launches, kept, strict=True)]
            try:
                return processes.run(self, launches, kept, count)
            except OSError as error:
                raise InputError(
                    "no processes to compute data",
                    where="simulation",
                    found=error.strerror or str(error),
                    hint="take one (--processes 1)",
                ) from error

    def profile_of(self, launch: JoinedKernels, kept: Sequence[int]) -> list[LaunchProfile]:
        """Runs a launch as a whole, in this process.

        Args:
            kept: of each kernel, blocks whose rows are kept, the first ones.

        Raises:
            DeviceFault: the program did something illegal.
        """
        if self.machine.split:
            if launch.meeting == BY_FLAGS:
                return [self._meetings.by_flags(launch, self.cores, self._l2, self.checks)]
            split = SplitLaunch(self.machine, launch, kept[0], self.cores)
            split.run(self.checks)
            return [split.settle(self._l2)]
        if launch.kernels[0].talks:
            if launch.meets:
                return [self._meetings.run(launch, self.cores, self._l2, self.checks)]
            talking = TalkingLaunch(self.machine, launch, kept[0], self.cores)
            talking.run(self.checks)
            return [talking.settle(self._l2)]
        coupled = CoupledLaunch(self.machine, launch, kept)
        between = (
            BlockRaces(launch.name, launch.party) if self.checks and launch.blocks > 1 else None
        )
        for block in range(launch.blocks):
            core = coupled.run(block, self.cores)
            if between is not None:
                between.add(block, core)
        if between is not None:
            between.check()
        return self.settle(coupled)

    def settle(self, launch: CoupledLaunch) -> list[LaunchProfile]:
        """The profiles of the kernels of a launch whose blocks have run."""
        return launch.settle(self._l2)

    def _check(self, launch: JoinedKernels) -> None:
        if len(launch.kernels) > 1 and (self.machine.split or launch.alone):
            why = "on split machines each kernel has a launch of its own"
            if not self.machine.split:
                why = "the scalar unit of one accesses memory, which is not looked for in races"
            raise DeviceFault(
                "kernels cannot share a launch", where=f"kernels {launch.name}", found=why
            )
        for kernel in launch.kernels:
            self._check_kernel(kernel)

    def _check_kernel(self, launch: KernelCall) -> None:
        where, kinds = f"kernel {launch.name}", self.machine.core_types
        if launch.blocks < 1:
            raise DeviceFault("no blocks", where=where, found=f"blocks = {launch.blocks}")
        if not launch.programs or not set(launch.programs) <= set(kinds):
            raise DeviceFault(
                f"the kernel has no program for the cores of {self.machine.name}",
                where=where,
                found=" and ".join(launch.programs) or "none",
                expected=" or ".join(kinds),
                hint=f"see ascend.core in {shipped('architecture.md')}",
            )
