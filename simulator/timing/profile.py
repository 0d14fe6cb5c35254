"""Reports of a launch about each of its kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

from davinci.simulator.core.half_range import NOTHING, Lost
from davinci.simulator.timing.l2 import UNCACHED, LaunchTraffic
from davinci.simulator.timing.retime import Recording
from davinci.simulator.timing.timeline import TimelineRow


@dataclass
class BlockProfile:
    """Counts of one block, on a split machine of one core's part in it.

    Attributes:
        core, block: where it ran, and its number in its kernel.
        cycles: from its start until everything is complete.
        pipes: cycles in which a pipe had work under way.
        copied_bytes: bytes that copies wrote, by path: `GM_to_L1`.
        unit_cycles: cycles that instructions kept the cube or the vector unit, by mnemonic.
    """

    core: int
    block: int
    cycles: int
    pipes: dict[str, int]
    copied_bytes: dict[str, int] = field(default_factory=dict)
    unit_cycles: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Fetch:
    """Bytes that the host brings to global memory for a launch.

    Attributes:
        behind: launches of the run, or phases of them, that are over before the transfer begins:
            they use the place where the bytes go.
    """

    nbytes: int
    behind: int


@dataclass
class LaunchProfile:
    """Counts of one kernel in a launch, over all its blocks; mostly it is the only one.

    Attributes:
        name: the kernel.
        operators: names of the model's nodes that it computes, where the caller knows them.
        members: of those the ones that each operator of the kernel computes, by its number.
        blocks: number of blocks.
        cores: that took part, cube and vector cores.
        cycles: from the start of the launch until the last of these cores is done.
        pipes: cycles in which a pipe had work under way, summed over the blocks.
        flag_cycles, barrier_cycles: in which a pipe had none, held by a wait for a flag or a
            barrier, summed over the blocks.
        gm_read_bytes, gm_write_bytes: what instructions moved from and to global memory, counted
            from the regions they touched; the scalar unit's accesses are counted apart.
        traffic: bytes that passed between cores, L2 and memory, of all kernels of the launch.
        instructions: number of instructions by mnemonic.
        macs: multiply-accumulates that the cube was asked for (m * k * n).
        vector_repeats: repeats of vector instructions.
        scalar_accesses: loads and stores of single elements by the scalar unit.
        lost: values that left the range of f16 where they were rounded to it.
        begins_run: whether it is the first of a run, and so waits for the host.
        begins_launch: whether it is the first kernel of its launch, or of a phase; the others share
            the launch of the profile before them, and begin with it.
        launch_cores: of a launch in phases, in all of them together; 0 for one without.
        launch_kinds: kinds of the cores of a launch in phases on a split machine.
        continues: whether it is of a phase behind others of the same launch.
        meeting: of the cores of its launch in front of its phase; None where there is none, and of
            kernels behind the first one of a phase.
        fetches: what the host brings for the kernel, in order.
        per_block: counts of each block.
        rows: the time line, if the launch was asked to keep it.
        recording: what the launch issued, all its kernels, to be timed again.
    """

    name: str
    blocks: int
    cores: int = 0
    cycles: int = 0
    pipes: dict[str, int] = field(default_factory=dict)
    flag_cycles: dict[str, int] = field(default_factory=dict)
    barrier_cycles: dict[str, int] = field(default_factory=dict)
    gm_read_bytes: int = 0
    gm_write_bytes: int = 0
    traffic: LaunchTraffic = UNCACHED
    instructions: dict[str, int] = field(default_factory=dict)
    macs: int = 0
    vector_repeats: int = 0
    scalar_accesses: int = 0
    lost: Lost = NOTHING
    begins_run: bool = False
    begins_launch: bool = True
    launch_cores: int = 0
    launch_kinds: frozenset[str] = frozenset()
    continues: bool = False
    meeting: LaunchProfile | None = None
    fetches: tuple[Fetch, ...] = ()
    per_block: list[BlockProfile] = field(default_factory=list)
    rows: list[TimelineRow] = field(default_factory=list)
    operators: tuple[str, ...] = ()
    members: tuple[tuple[str, ...], ...] = ()
    recording: Recording | None = field(default=None, compare=False, repr=False)
