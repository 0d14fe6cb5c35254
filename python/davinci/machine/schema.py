"""The tables and keys of a machine file.

Every key carries its unit: bytes, cycles of the core's clock, or bytes a cycle. The schema is
strict: an unknown key is an error that names the nearest known one.
"""

from __future__ import annotations

from typing import Literal

import pydantic

from davinci.machine.functions import VectorFunctions
from davinci.machine.host import HostLink, LaunchSection
from davinci.machine.memories import (
    GlobalMemorySection,
    L2Section,
    OnChipMemories,
    OnChipMemory,
)
from davinci.machine.section import (
    Amount,
    Cycles,
    Ids,
    Positive,
    Section,
)
from davinci.machine.tables import entry_of
from davinci.units import BLOCK_BYTES, FRACTAL_SIDE, ceil_div

PipeName = Literal["S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"]
MemoryName = Literal["L1", "L0A", "L0B", "L0C", "UB", "VREG", "L0A_MX", "L0B_MX", "BT", "FB"]


class CoreType(Section):
    """One kind of core.

    Attributes:
        count: cores of this kind in each of the machine's `cores`.
        pipes: queues it has.
        memories: on-chip memories it has, as in `[buffers]`.
        reaches: on-chip memories of the other kind of core in its group that it writes to from its
            own ones.
    """

    count: Positive
    pipes: list[PipeName]
    memories: list[MemoryName]
    reaches: list[MemoryName] = pydantic.Field(default_factory=list)


class CoreTypes(Section):
    """The kinds of cores: one that has all pipes, or a cube core and vector cores."""

    AICORE: CoreType | None = None
    AIC: CoreType | None = None
    AIV: CoreType | None = None


class SyncSection(Section):
    """Flags, barriers and queues inside a core.

    Attributes:
        event_ids: for each pair of pipes, flags that can be set at the same time.
        queue_depth: instructions of a pipe that the scalar unit can issue ahead.
        flag_cycles: from a set to when the waiting pipe sees it.
        barrier_cycles: of a barrier when all before it is complete.
        sequential_pipes: those whose own instructions never overlap.
    """

    event_ids: Ids
    queue_depth: Positive
    flag_cycles: Cycles
    barrier_cycles: Cycles
    sequential_pipes: list[PipeName]


class CrossCore(Section):
    """Flags between the cores of a split machine.

    Attributes:
        flag_ids: flags of each core.
        depth: what the counter of a flag can hold.
        flag_cycles: from the last set of a group to when the receivers see it.
    """

    flag_ids: Ids
    depth: Positive
    flag_cycles: Cycles


class ScalarSection(Section):
    """The scalar unit.

    Attributes:
        issue_cycles: of an operation, or of an instruction that it puts into a queue.
        gm_access_cycles, ub_access_cycles: of a load or store of one element.
    """

    issue_cycles: Positive
    gm_access_cycles: Positive
    ub_access_cycles: Positive


class Vector(Section):
    """The vector unit and the banks of UB.

    Attributes:
        block_bytes, repeat_bytes, max_repeat: those of `davinci.units`, said for the reader.
        fixed_cycles: of an instruction besides its repeats; `fixed_cycles_of` has what differs.
        head_cycles: the part of them before the first repeat is read; the rest is the depth of the
            unit, from the last read of a repeat to its write.
        completion_cycles: from when the unit takes the next instruction until results are visible.
        overlap_cycles: of its head that pass while the instruction before it ends, if it touches
            nothing of what that one writes, or while a barrier does.
        copy_bytes_per_cycle: of a burst of a copy from UB to UB.
        copy_bursts_at_once: its bursts that move at the same time.
        sorted_per_cycle: elements that are sorted or merged, where there are instructions for it.
        bank_groups: groups of the banks of UB; in a cycle each serves a read and a write.
        bank_bytes: of a bank.
        fixed_cycles_of, cycles_per_repeat: by instruction, see `tables.entry_of`.
        functions: those on vector registers, where the unit has them.
    """

    block_bytes: Positive
    repeat_bytes: Positive
    max_repeat: Positive
    fixed_cycles: Cycles
    head_cycles: Cycles
    completion_cycles: Cycles
    overlap_cycles: Cycles = 0
    copy_bytes_per_cycle: Positive
    copy_bursts_at_once: Positive = 1
    sorted_per_cycle: Positive | None = None
    bank_groups: Positive
    bank_bytes: Positive
    fixed_cycles_of: dict[str, Positive]
    cycles_per_repeat: dict[str, Positive]
    functions: VectorFunctions | None = None

    def price(self, name: str, type_: str) -> tuple[int, int]:
        """Cycles of the instruction `name`.`type_` besides its repeats, and of each repeat."""
        fixed = entry_of(self.fixed_cycles_of, name, type_, self.fixed_cycles)
        return fixed, entry_of(self.cycles_per_repeat, name, type_, 1)


class Cube(Section):
    """The matrix unit, which multiplies a pair of fractals in a cycle.

    Attributes:
        m, n: rows and columns of a fractal product.
        k_b16, k_b8: its depth in elements of 16 and of 8 bits.
        k_b32: the same of 32 bits, half of a fractal, where it multiplies those.
        occupancy_cycles: of an instruction besides its fractal products.
        latency_cycles: from its start to its result, besides the fractal products.
    """

    m: Positive
    n: Positive
    k_b16: Positive
    k_b8: Positive
    k_b32: Positive | None = None
    occupancy_cycles: Cycles
    latency_cycles: Cycles

    def fractal_cycles(self, itemsize: int) -> int:
        """Cycles of a pair of fractals of elements of so many bytes."""
        depth = {1: self.k_b8, 2: self.k_b16, 4: self.k_b32}[itemsize]
        assert depth is not None, "checked with the instructions that need it"
        return ceil_div(BLOCK_BYTES // itemsize, depth)


class Load3d(Section):
    """Loads that make fractals of the windows of an image.

    Attributes:
        fixed_cycles: of an instruction besides its fractals.
        strides: between windows of a row at which whole lines of L1 serve several windows.
        stride_cycles: of a fractal for each pixel of such a stride.
        row_cycles: of a fractal for each row of windows that it has a part of, if that is not one.
        most_cycles: of a fractal, and what it takes at other strides.
        l0b_cycles: more of a fractal that goes to L0B.
    """

    fixed_cycles: Cycles
    strides: list[Positive]
    stride_cycles: Cycles
    row_cycles: Cycles
    most_cycles: Cycles
    l0b_cycles: Cycles

    def of_fractal(self, stride: int, rows: int) -> int:
        """Cycles of a fractal for L0A of windows so far apart that are in so many rows."""
        if stride not in self.strides:
            return self.most_cycles
        cycles = self.stride_cycles * stride + (self.row_cycles * rows if rows > 1 else 0)
        return min(cycles, self.most_cycles)

    def on_average(self, stride: int, of_row: int) -> float:
        """The same of fractals one after the other, with so many windows in a row."""
        rows, more = divmod(FRACTAL_SIDE - 1, of_row)
        # Of all places in a row where a fractal may begin, so many are in one row more.
        cycles = (of_row - more) * self.of_fractal(stride, rows + 1)
        return (cycles + more * self.of_fractal(stride, rows + 2)) / of_row


class LoadScales(Section):
    """Loads from L1 to small memories beside the large ones: of scales, of a bias.

    Attributes:
        fixed_cycles: of an instruction besides its bytes.
        bytes_per_cycle: of a path of its own.
    """

    fixed_cycles: Cycles
    bytes_per_cycle: Positive


class Mte1(Section):
    """Loads from L1.

    Attributes:
        fixed_cycles: of an instruction besides its bytes.
        l0a_bytes_per_cycle, l0b_bytes_per_cycle, l1_to_ub_bytes_per_cycle: by destination.
        overlap_cycles: of them that pass while the load before it ends, if it waits in the queue.
        stall_bytes: that come into L1 for each cycle that a load under way waits.
        load3d, scales: what loads of windows and of scales take.
        bias: what copies to the bias table take.
    """

    fixed_cycles: Cycles
    overlap_cycles: Cycles = 0
    stall_bytes: Positive
    l0a_bytes_per_cycle: Positive
    l0b_bytes_per_cycle: Positive
    l1_to_ub_bytes_per_cycle: Positive | None = None
    load3d: Load3d | None = None
    scales: LoadScales | None = None
    bias: LoadScales | None = None


class Mte2(Section):
    """Transfers from global memory.

    Attributes:
        start_cycles: latency of the first byte, in which other transfers may go on.
        issue_cycles: least distance of two transfers.
        port_bytes_per_cycle, l1_port_bytes_per_cycle: what the core takes into UB, and into L1.
        row_miss_cycles: for each row that is not in the L2; a long run has none of its own.
        burst_cycles: least, for each burst that lies apart from others in UB or L1.
        nd2nz_fixed_cycles, nd2nz_row_cycles: of a transfer to fractals and of each of its rows,
            besides the bytes; `nd2nz_row_miss_cycles` as above.
        nd2nz_bytes_per_cycle: of its bytes.
        nd2nz_block_cycles: of each block of a row that does not begin at a whole one.
    """

    start_cycles: Cycles
    issue_cycles: Cycles
    port_bytes_per_cycle: Positive
    l1_port_bytes_per_cycle: Positive
    row_miss_cycles: Amount
    burst_cycles: Amount = 0
    nd2nz_fixed_cycles: Amount | None = None
    nd2nz_row_cycles: Amount | None = None
    nd2nz_row_miss_cycles: Amount | None = None
    nd2nz_bytes_per_cycle: Positive | None = None
    nd2nz_block_cycles: Amount | None = None


class Mte3(Section):
    """Transfers from UB.

    Attributes:
        start_cycles, issue_cycles: to global memory, as of `Mte2`.
        port_bytes_per_cycle: what the core gives to global memory.
        burst_cycles: as of `Mte2`.
        on_chip_start_cycles: of a transfer to L1 besides its bytes.
        ub_to_l1_bytes_per_cycle: rate of those.
    """

    start_cycles: Cycles
    issue_cycles: Cycles
    on_chip_start_cycles: Cycles | None = None
    port_bytes_per_cycle: Positive
    burst_cycles: Amount = 0
    ub_to_l1_bytes_per_cycle: Positive | None = None


class L0C(Section):
    """The way out of L0C on machines where the vector pipe takes it."""

    to_ub_bytes_per_cycle: Positive


class Fixpipe(Section):
    """The way out of L0C to global memory on machines that have a pipe for it.

    Attributes:
        fixed_cycles: of an instruction besides its elements.
        start_cycles: latency until the last byte is written, in which others may go on.
        elements_per_cycle: rate of the conversion.
        port_bytes_per_cycle: what the core gives to global memory.
        to_ub_bytes_per_cycle: what its vector cores take into UB, where there is such a path.
        from_l1_bytes_per_cycle: what its own buffer takes from L1.
    """

    fixed_cycles: Cycles
    start_cycles: Cycles
    elements_per_cycle: Positive
    port_bytes_per_cycle: Positive
    to_ub_bytes_per_cycle: Positive | None = None
    from_l1_bytes_per_cycle: Positive | None = None


class VectorCores(Section):
    """Cores without a cube unit beside the AI cores of a coupled machine; they run other launches.

    Attributes:
        count: how many there are.
        clock_mhz: their own clock, in whose cycles the rates are.
        gm_read_bytes_per_cycle, gm_write_bytes_per_cycle: the share of each in global memory.
        l2_read_bytes_per_cycle, l2_write_bytes_per_cycle: the share of each in the L2.
    """

    count: Positive
    clock_mhz: Positive
    gm_read_bytes_per_cycle: Positive
    gm_write_bytes_per_cycle: Positive
    l2_read_bytes_per_cycle: Positive
    l2_write_bytes_per_cycle: Positive


class Machine(Section):
    """One NPU. Fields carry their unit; see the comments of the file for the source of a number.

    Attributes:
        kind: "coupled": one core runs all pipes; "split": a cube core and vector cores, each with a
            scalar unit and program of its own, exchange data through GM.
        cores: cores that run blocks at once; on a split machine cube cores, each with its vector
            cores.
        core: the kinds of cores.
        vector_cores: those of a coupled machine that run launches of their own.
        intrinsics: the types of every instruction the machine has; "" for one without a type.

    Sections and keys that describe what only some machines have may be missing.
    """

    name: str
    kind: Literal["coupled", "split"]
    cores: Positive
    clock_mhz: Positive
    core: CoreTypes
    vector_cores: VectorCores | None = None
    buffers: OnChipMemories
    gm: GlobalMemorySection
    l2: L2Section
    sync: SyncSection
    scalar: ScalarSection
    vector: Vector
    cube: Cube
    mte1: Mte1
    mte2: Mte2
    mte3: Mte3
    l0c: L0C | None = None
    fixpipe: Fixpipe | None = None
    cross_core: CrossCore | None = None
    launch: LaunchSection
    host_link: HostLink | None = None
    intrinsics: dict[str, list[str]]

    def __hash__(self) -> int:
        """So that what is computed for a machine can be kept; equality compares all of it."""
        return hash(self.name)

    @property
    def split(self) -> bool:
        """True if cube and vector cores run programs of their own."""
        return self.kind == "split"

    @property
    def direct_paths(self) -> bool:
        """True if cube cores and their vector cores write into each other's memories."""
        return any(core.reaches for core in self.core_types.values())

    @property
    def cubes_apart(self) -> bool:
        """True if the cores with a cube have no vector unit: rows become fractals between global
        memory and L1, and results leave L0C for global memory."""
        return any("M" in x.pipes and "V" not in x.pipes for x in self.core_types.values())

    @property
    def vector_units(self) -> int:
        """Vector units in each of the `cores`."""
        return sum(core.count for core in self.core_types.values() if "V" in core.pipes)

    @property
    def launch_cycles(self) -> int:
        """Cycles of a launch, by which the compiler weighs kernels against launches."""
        return int(self.launch.overhead_us * self.clock_mhz)

    def queued_cycles(self, blocks: int) -> float:
        """Cycles in front of a kernel of so many blocks that is queued on the device; on a split
        machine, whose cores of one kind are machines of their own, each block is one of both."""
        mixed_us = self.launch.mixed_us if self.split else 0.0
        return (self.launch.us(blocks / self.cores, by_host=False) + mixed_us) * self.clock_mhz

    @property
    def core_types(self) -> dict[str, CoreType]:
        """The kinds of cores by name."""
        types = {name: getattr(self.core, name) for name in type(self.core).model_fields}
        return {name: core for name, core in types.items() if core is not None}

    def buffer(self, space: str) -> OnChipMemory:
        """Capacity and alignment of the on-chip memory `space` ("L1", "L0A", ..., "UB")."""
        found = self.buffers.of(space)
        assert found is not None, f"{self.name} has no {space}"
        return found


def known_keys() -> list[str]:
    """Keys of all tables, sorted."""
    sections: list[type[Section]] = [Machine, *Section.__subclasses__()]
    return sorted({key for section in sections for key in section.model_fields})
