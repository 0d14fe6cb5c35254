"""The price list: how many cycles an instruction takes, from its form and the machine file alone.

The simulator asks with instructions that it decoded, `passes.analysis.durations` with operations of
cce, schedules with tiles of which no IR exists yet. All of them get what is written here.

A price is a real number: rates need not divide sizes. The clock of a pipe counts whole cycles, so
the simulator rounds up. Prices are linear, so what `instructions` alike ones take together follows
from the sum of their bytes, fractals or repeats. What depends on the state of the machine (who else
uses a memory, what the L2 holds, which flags are set) is not part of a price.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from davinci.machine.schema import Load3d, LoadScales, Machine


class Port(NamedTuple):
    """The way of a core to or from global memory.

    Attributes:
        start_cycles: latency, in which other transfers go on.
        issue_cycles: least distance of two transfers.
        bytes_per_cycle: of whole lines.
        row_miss_cycles: for each row apart that the L2 has not.
        burst_cycles: least, for each burst apart in UB or L1.
    """

    start_cycles: int
    issue_cycles: int
    bytes_per_cycle: int
    row_miss_cycles: float = 0.0
    burst_cycles: float = 0.0

    def busy(self, line_bytes: float, instructions: int = 1, bursts: int = 0) -> float:
        """Cycles until the pipe takes the next transfer.

        Args:
            line_bytes: of the lines that are touched.
            bursts: that lie apart on the chip, of all instructions.
        """
        return max(self.issue_cycles * instructions, self._moving(line_bytes, bursts))

    def result(self, line_bytes: float, bursts: int = 0) -> float:
        """Cycles from the start of a transfer until it is complete."""
        return self.start_cycles + self._moving(line_bytes, bursts)

    def _moving(self, line_bytes: float, bursts: int) -> float:
        return max(line_bytes / self.bytes_per_cycle, bursts * self.burst_cycles)


def reading(machine: Machine, to_l1: bool = False) -> Port:
    """MTE2, global memory to UB or L1."""
    unit = machine.mte2
    rate = unit.l1_port_bytes_per_cycle if to_l1 else unit.port_bytes_per_cycle
    return Port(unit.start_cycles, unit.issue_cycles, rate, unit.row_miss_cycles, unit.burst_cycles)


def writing(machine: Machine) -> Port:
    """MTE3, UB to global memory."""
    unit = machine.mte3
    return Port(
        unit.start_cycles,
        unit.issue_cycles,
        unit.port_bytes_per_cycle,
        burst_cycles=unit.burst_cycles,
    )


def ends(machine: Machine) -> int:
    """Cycles before the first byte of a kernel is there and after its last one left UB."""
    return machine.mte2.start_cycles + machine.mte3.start_cycles


def touched_bytes(machine: Machine, run_bytes: float, *distances: int) -> float:
    """Bytes of the lines that a run in global memory touches, on average over the places at which
    runs begin.

    Args:
        distances: bytes, of whose multiples the places are sums.
    """
    line = machine.gm.line_bytes
    return run_bytes + line - math.gcd(line, *distances)


class MemoryShare(NamedTuple):
    """Bytes a cycle that a core gets of the memory and of the L2 while others work as well."""

    read: float
    write: float
    l2_read: float
    l2_write: float


def share_of(machine: Machine, cores: int) -> MemoryShare:
    """What each of so many cores at work gets."""
    part = machine.cores / max(1, min(cores, machine.cores))
    gm, l2 = machine.gm, machine.l2
    return MemoryShare(
        part * gm.read_bytes_per_cycle,
        part * gm.write_bytes_per_cycle,
        part * l2.read_bytes_per_cycle,
        part * l2.write_bytes_per_cycle,
    )


def moving(
    machine: Machine,
    cores: int,
    load: bool,
    size_bytes: float,
    memory_bytes: float | None = None,
    touched_bytes: float = 0.0,
) -> float:
    """Cycles that bytes take from or to global memory: the longest of what the memory, the L2 and
    the core's port need, the first two at the share that each core at work gets of them.

    Args:
        cores: cores that move bytes at the same time.
        load: whether bytes come to the core.
        size_bytes: bytes that pass the L2.
        memory_bytes: those of them that the L2 has not; None for all.
        touched_bytes: bytes of the lines that they lie in.
    """
    share, port = share_of(machine, cores), reading(machine) if load else writing(machine)
    memory, l2 = (share.read, share.l2_read) if load else (share.write, share.l2_write)
    missed = size_bytes if memory_bytes is None else memory_bytes
    return max(missed / memory, size_bytes / l2, port.busy(max(size_bytes, touched_bytes), 0))


def load2d(machine: Machine, space: str, size_bytes: float, instructions: float = 1) -> float:
    """MTE1, fractals from L1 to L0A or L0B."""
    unit = machine.mte1
    rate = unit.l0a_bytes_per_cycle if space == "L0A" else unit.l0b_bytes_per_cycle
    return instructions * unit.fixed_cycles + size_bytes / rate


def load_scales(machine: Machine, size_bytes: float, instructions: float = 1) -> float:
    """MTE1, scales from L1 to the memory beside L0A or L0B."""
    return _load_small(machine.mte1.scales, size_bytes, instructions)


def l1_to_bt(machine: Machine, size_bytes: float, instructions: float = 1) -> float:
    """MTE1, numbers from L1 to the bias table."""
    return _load_small(machine.mte1.bias, size_bytes, instructions)


def _load_small(unit: LoadScales | None, size_bytes: float, instructions: float) -> float:
    """MTE1, from L1 to a small memory beside the large ones."""
    assert unit is not None, "checked with the instructions that need it"
    return instructions * unit.fixed_cycles + size_bytes / unit.bytes_per_cycle


def l1_to_fb(machine: Machine, size_bytes: float, instructions: float = 1) -> float:
    """FIX, words from L1 to the buffer of fixpipe."""
    unit = machine.fixpipe
    assert unit is not None and unit.from_l1_bytes_per_cycle is not None, (
        "checked with the instructions that need it"
    )
    return instructions * unit.fixed_cycles + size_bytes / unit.from_l1_bytes_per_cycle


def load3d(machine: Machine, space: str, stride: int, rows: Iterable[int]) -> float:
    """MTE1, fractals of windows of an image to L0A or L0B.

    Args:
        stride: pixels from window to window.
        rows: of each fractal the rows of windows that it has parts of.
    """
    unit = _load3d_of(machine)
    more = unit.l0b_cycles if space == "L0B" else 0
    return unit.fixed_cycles + sum(unit.of_fractal(stride, count) + more for count in rows)


def load3d_on_average(
    machine: Machine, space: str, stride: int, of_row: int, fractals: float, instructions: float = 1
) -> float:
    """The same of fractals one after the other, with so many windows in a row, by instructions of
    which all but the first have waited in the queue."""
    unit = _load3d_of(machine)
    more = unit.l0b_cycles if space == "L0B" else 0
    each = unit.on_average(stride, of_row) + more
    queued = unit.fixed_cycles - machine.mte1.overlap_cycles
    return unit.fixed_cycles + (instructions - 1) * queued + fractals * each


def _load3d_of(machine: Machine) -> Load3d:
    assert machine.mte1.load3d is not None, f"{machine.name} has no loads of windows"
    return machine.mte1.load3d


def has_l1_to_ub(machine: Machine) -> bool:
    """Whether there is a path from L1 to UB."""
    return machine.mte1.l1_to_ub_bytes_per_cycle is not None


def l1_to_ub(machine: Machine, size_bytes: float, instructions: float = 1) -> float:
    """MTE1."""
    unit = machine.mte1
    assert unit.l1_to_ub_bytes_per_cycle is not None, f"{machine.name} has no path from L1 to UB"
    return instructions * unit.fixed_cycles + size_bytes / unit.l1_to_ub_bytes_per_cycle


def ub_to_l1(machine: Machine, size_bytes: float, instructions: float = 1) -> float:
    """MTE3."""
    unit = machine.mte3
    assert unit.on_chip_start_cycles is not None and unit.ub_to_l1_bytes_per_cycle is not None, (
        f"{machine.name} has no path from UB to L1"
    )
    return instructions * unit.on_chip_start_cycles + size_bytes / unit.ub_to_l1_bytes_per_cycle


def ub_to_ub(
    machine: Machine,
    size_bytes: float,
    instructions: float = 1,
    bursts: int = 1,
    name: str = "copy_ubuf_to_ubuf",
) -> float:
    """V, blocks.

    Args:
        bursts: of each instruction, alike; some move at the same time, a block each.
    """
    unit = machine.vector
    fixed, _ = unit.price(name, "")
    turns = math.ceil(bursts / unit.copy_bursts_at_once) / max(bursts, 1)
    return instructions * fixed + turns * size_bytes / unit.copy_bytes_per_cycle


def l0c_to_ub(machine: Machine, size_bytes: float, instructions: float = 1) -> float:
    """V, sums; bytes are those of L0C."""
    assert machine.l0c is not None, f"{machine.name} has no path from L0C to UB"
    return (
        instructions * machine.vector.fixed_cycles + size_bytes / machine.l0c.to_ub_bytes_per_cycle
    )


def vector(
    machine: Machine, name: str, type_: str, repeats: float, instructions: float = 1
) -> float:
    """V, repeats whose operands meet in no bank."""
    fixed, each = machine.vector.price(name, type_)
    return instructions * fixed + repeats * each


def short_vector(machine: Machine) -> int:
    """V, an instruction of no particular name besides its repeats."""
    return machine.vector.fixed_cycles


def until_visible(machine: Machine) -> int:
    """Cycles from when the vector unit takes the next instruction until results can be read."""
    return machine.vector.completion_cycles


def mad(machine: Machine, fractals: float, itemsize: int = 2, instructions: float = 1) -> float:
    """M, pairs of fractals of elements of so many bytes."""
    unit = machine.cube
    return fractals * unit.fractal_cycles(itemsize) + instructions * unit.occupancy_cycles


def mad_latency(machine: Machine) -> int:
    """Cycles of a mad from its start to its sums, besides its fractals."""
    return machine.cube.latency_cycles


def mad_drain(machine: Machine) -> int:
    """Cycles from when the cube takes the next mad until the sums of one are there."""
    return machine.cube.latency_cycles - machine.cube.occupancy_cycles


def fixpipe(
    machine: Machine, elements: float, line_bytes: float, share: float = math.inf
) -> tuple[float, float]:
    """FIX, L0C to global memory: until the pipe takes the next one, and until it is complete.

    Args:
        share: bytes a cycle that the core gets of the L2.
    """
    unit = machine.fixpipe
    assert unit is not None, f"{machine.name} has no pipe from L0C to global memory"
    port = line_bytes / min(unit.port_bytes_per_cycle, share)
    busy = unit.fixed_cycles + max(elements / unit.elements_per_cycle, port)
    return busy, unit.start_cycles + busy


def fixpipe_to_ub(machine: Machine, elements: float, size_bytes: float) -> float:
    """FIX, L0C to UB of vector cores."""
    unit = machine.fixpipe
    assert unit is not None and unit.to_ub_bytes_per_cycle is not None, (
        f"{machine.name} has no path from L0C to UB of vector cores"
    )
    moving = max(elements / unit.elements_per_cycle, size_bytes / unit.to_ub_bytes_per_cycle)
    return unit.fixed_cycles + moving


def fixpipe_to_l1(machine: Machine, elements: float) -> float:
    """FIX, L0C to L1 as numbers of 16 bits."""
    unit = machine.fixpipe
    assert unit is not None, f"{machine.name} has no pipe from L0C to L1"
    return unit.fixed_cycles + elements / unit.elements_per_cycle


def nd2nz(
    machine: Machine,
    rows: int,
    size_bytes: float,
    ragged_blocks: int = 0,
    share: float = math.inf,
    missing: float = 0.0,
) -> float:
    """MTE2, rows of global memory to fractals in L1.

    Args:
        ragged_blocks: of fractals whose rows do not begin at whole blocks in global memory; they
            are put together block by block.
        share: bytes a cycle that the core gets of the L2.
        missing: part of the rows that the L2 has not.
    """
    unit = machine.mte2
    fixed, each, block = unit.nd2nz_fixed_cycles, unit.nd2nz_row_cycles, unit.nd2nz_block_cycles
    late, rate = unit.nd2nz_row_miss_cycles, unit.nd2nz_bytes_per_cycle
    assert fixed is not None and each is not None, f"{machine.name} makes no fractals of rows"
    assert block is not None and rate is not None, f"{machine.name} makes no fractals of rows"
    assert late is not None, f"{machine.name} makes no fractals of rows"
    moving = ragged_blocks * block if ragged_blocks else size_bytes / min(rate, share)
    return fixed + rows * (each + late * missing) + moving


def sort(machine: Machine, name: str, type_: str, elements: int) -> float:
    """V, elements that are sorted or merged."""
    unit = machine.vector
    assert unit.sorted_per_cycle is not None, f"{machine.name} does not sort"
    fixed, _ = unit.price(name, type_)
    return fixed + elements / unit.sorted_per_cycle


def scalar_accesses(machine: Machine, count: float, space: str) -> float:
    """S, loads and stores of single elements in global memory ("GM") or UB."""
    unit = machine.scalar
    return count * (unit.gm_access_cycles if space == "GM" else unit.ub_access_cycles)
