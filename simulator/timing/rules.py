"""How long an instruction takes, by the name of its timing rule. All figures are in cycles.

A rule sees the machine, the fields, the regions and a few bits of the addresses, never the state
of the machine: what other instructions do to it is the business of `timing.timeline`, and what
other cores do to it that of `timing.gm_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci.isa.core import Instruction, Space, Values, finds_nothing
from davinci.isa.img2col import pixels_of
from davinci.isa.sort import STRUCTURE_BYTES
from davinci.machine import Machine
from davinci.machine.vector_banks import BankLayout, Stream, repeats_cycles
from davinci.simulator.core.regions import Region
from davinci.units import BLOCK_BYTES, ceil_div


@dataclass(frozen=True)
class PipeCycles:
    """Cycles from the start until the pipe takes the next instruction, and until it is complete.

    `gm_read` and `gm_write` are the bytes that pass the global memory, which other transfers and
    other cores use too. `from_l1` and `to_l1`: a load out of L1, a transfer into it.
    `miss_cycles`: how much longer it takes if the L2 has none of its rows. `overlap`: cycles that
    pass while the instruction before it ends, if it needs nothing of that one.
    """

    occupancy: int
    latency: int
    gm_read: int = 0
    gm_write: int = 0
    from_l1: bool = False
    to_l1: bool = False
    miss_cycles: float = 0.0
    overlap: int = 0


@dataclass(frozen=True)
class StridedOperand:
    """A strided operand of a vector instruction: its name, and bytes of an element."""

    name: str
    itemsize: int
    written: bool


@dataclass(frozen=True)
class UnitWork:
    """The facts about an instruction that a timing rule may use.

    Attributes:
        strided: strided operands of a vector instruction.
        bits: what of the addresses matters: the place of the first GM byte in its line, or for each
            of `strided` its banks, see `vector_banks.bank_bits`.
        fmatrix: the register that describes the image of an img2col.
    """

    machine: Machine
    record: Instruction
    values: Values
    reads: Sequence[tuple[Space, Region]]
    writes: Sequence[tuple[Space, Region]]
    strided: Sequence[StridedOperand]
    bits: Sequence[int]
    fmatrix: int = 0

    def bytes_of(self, ports: Sequence[tuple[Space, Region]]) -> int:
        return sum(region.size_bytes for _, region in ports)


def vector(work: UnitWork) -> PipeCycles:
    """A fixed part, and for each repeat its cycles or those in which its banks are free (b2).

    The fixed part is a head and the depth of the unit, which its writes are behind its reads.
    The last cycles until results are visible overlap with the next instruction; if that touches
    nothing of what this one writes, a part of its head does too.
    Masked lanes are taken to use their banks.
    """
    unit, values = work.machine.vector, work.values
    name, type_ = work.record.name, work.record.type
    each = unit.cycles_of(unit.cycles_per_repeat, name, type_, 1)
    fixed = unit.cycles_of(unit.fixed_cycles_of, name, type_, unit.fixed_cycles)
    repeats = values["repeat"]
    if work.strided and repeats:
        count = unit.repeat_bytes // max(operand.itemsize for operand in work.strided)
        streams = [
            Stream(
                block,
                max(1, count * operand.itemsize // unit.block_bytes),
                values[f"{operand.name}_blk_stride"],
                values.get(f"{operand.name}_rep_stride", 0),
            )
            for operand, block in zip(work.strided, work.bits, strict=True)
        ]
        cycles = repeats_cycles(
            tuple(s for s, o in zip(streams, work.strided, strict=True) if not o.written),
            tuple(s for s, o in zip(streams, work.strided, strict=True) if o.written),
            repeats,
            each,
            max(fixed - unit.head_cycles, 1),
            BankLayout.of(unit),
        )
    else:
        cycles = repeats * each
    latency = fixed + cycles + unit.completion_cycles
    # What a gather reads is not known before.
    overlap = unit.overlap_cycles if work.record.finds is finds_nothing else 0
    return PipeCycles(fixed + cycles, latency, overlap=overlap)


def sort(work: UnitWork) -> PipeCycles:
    """A fixed part, and elements at the rate at which they are sorted (b2)."""
    unit, name = work.machine.vector, work.record.name
    assert unit.sorted_per_cycle is not None, "no such instruction"
    fixed = unit.cycles_of(unit.fixed_cycles_of, name, work.record.type, unit.fixed_cycles)
    elements = work.bytes_of(work.writes) // STRUCTURE_BYTES
    cycles = fixed + ceil_div(elements, unit.sorted_per_cycle)
    return PipeCycles(cycles, cycles + unit.completion_cycles, overlap=unit.overlap_cycles)


def cube(work: UnitWork) -> PipeCycles:
    """Fractal products, one a cycle (f32: one in two), and a fixed occupancy; results come later
    (b1)."""
    unit, values = work.machine.cube, work.values
    itemsize = work.reads[0][1].dtype.itemsize
    sides = ceil_div(values["m"], unit.m) * ceil_div(values["n"], unit.n)
    cycles = sides * ceil_div(values["k"], BLOCK_BYTES // itemsize) * unit.fractal_cycles(itemsize)
    return PipeCycles(cycles + unit.occupancy_cycles, cycles + unit.latency_cycles)


def mte1_load2d(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of the destination and a fixed part an instruction (a3)."""
    unit = work.machine.mte1
    space = work.writes[0][0] if work.writes else Space.L0A
    rate = unit.l0a_bytes_per_cycle if space == Space.L0A else unit.l0b_bytes_per_cycle
    cycles = unit.fixed_cycles + ceil_div(work.bytes_of(work.writes), rate)
    return PipeCycles(cycles, cycles, from_l1=True, overlap=unit.overlap_cycles)


def mte1_load3d(work: UnitWork) -> PipeCycles:
    """A fixed part, and each fractal by the rows of windows and the pixels it is put together from,
    up to a most (a3)."""
    unit = work.machine.mte1.load3d
    assert unit is not None, "no such instruction"
    rows = pixels_of(work.values, work.fmatrix).rows.tolist()
    each = unit.l0b_cycles if work.record.operands[0].space == Space.L0B else 0
    cycles = unit.fixed_cycles + each * len(rows)
    cycles += sum(unit.of_fractal(work.values["stride_w"], count) for count in rows)
    return PipeCycles(cycles, cycles, from_l1=True, overlap=work.machine.mte1.overlap_cycles)


def mte1_copy(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of L1 to UB and a fixed part an instruction."""
    unit = work.machine.mte1
    size = work.bytes_of(work.writes)
    assert unit.l1_to_ub_bytes_per_cycle is not None, "no such path"
    cycles = unit.fixed_cycles + ceil_div(size, unit.l1_to_ub_bytes_per_cycle)
    return PipeCycles(cycles, cycles, from_l1=True)


def mte2(work: UnitWork) -> PipeCycles:
    """A transfer from GM: a start that overlaps with transfers before it, then the bytes (a3)."""
    unit = work.machine.mte2
    to_l1 = any(space == Space.L1 for space, _ in work.writes)
    port = unit.l1_port_bytes_per_cycle if to_l1 else unit.port_bytes_per_cycle
    cycles = _port_cycles(work, work.reads, port)
    regions = [region for space, region in work.reads if space == Space.GM]
    rows = sum(region.runs[0].size for region in regions if not region.contiguous)
    cost = _transfer(work, unit.issue_cycles, unit.start_cycles, cycles)
    return replace(cost, to_l1=to_l1, miss_cycles=rows * unit.row_miss_cycles)


def nd2nz(work: UnitWork) -> PipeCycles:
    """Rows of GM to fractals in L1, one instruction after the other: each row has a cost of its
    own besides its bytes (a3).

    Rows that do not begin at whole blocks are put together block by block.
    """
    unit, values = work.machine.mte2, work.values
    fixed, each, block = unit.nd2nz_fixed_cycles, unit.nd2nz_row_cycles, unit.nd2nz_block_cycles
    late, rate = unit.nd2nz_row_miss_cycles, unit.nd2nz_bytes_per_cycle
    assert fixed is not None and each is not None, "no such path"
    assert block is not None and late is not None and rate is not None, "no such path"
    (_, region), (_, fractals) = work.reads[0], work.writes[0]
    rows = values["nd_num"] * values["n_value"]
    itemsize, size = region.dtype.itemsize, work.machine.vector.block_bytes
    starts = [work.bits[0], values["src_d_value"] * itemsize]
    if values["nd_num"] > 1:
        starts.append(values["src_nd_matrix_stride"] * itemsize)
    if any(start % size for start in starts):
        cycles = fractals.size_bytes // size * block
    else:
        cycles = region.size_bytes / rate
    total = ceil_div(fixed + rows * each + cycles, 1)
    return PipeCycles(total, total, region.size_bytes, 0, to_l1=True, miss_cycles=rows * late)


def l1_fill(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of the port to L1, and what an instruction takes (assumed: as a transfer
    that finds its bytes at once)."""
    unit = work.machine.mte2
    cycles = unit.issue_cycles + ceil_div(work.bytes_of(work.writes), unit.l1_port_bytes_per_cycle)
    return PipeCycles(cycles, cycles, to_l1=True)


def mte3(work: UnitWork) -> PipeCycles:
    """A transfer to GM, as `mte2`, or from UB to L1."""
    unit = work.machine.mte3
    if any(space == Space.GM for space, _ in work.writes):
        cycles = _port_cycles(work, work.writes, unit.port_bytes_per_cycle)
        return _transfer(work, unit.issue_cycles, unit.start_cycles, cycles)
    assert unit.ub_to_l1_bytes_per_cycle is not None, "no such path"
    assert unit.on_chip_start_cycles is not None, "no such path"
    cycles = ceil_div(work.bytes_of(work.writes), unit.ub_to_l1_bytes_per_cycle)
    cycles += unit.on_chip_start_cycles
    return PipeCycles(cycles, cycles)


def _transfer(work: UnitWork, issue: int, start: int, cycles: int) -> PipeCycles:
    """A transfer that keeps the port for `cycles`; its start overlaps with transfers before it."""
    read, written = (
        sum(region.size_bytes for space, region in ports if space == Space.GM)
        for ports in (work.reads, work.writes)
    )
    return PipeCycles(max(issue, cycles), start + cycles, read, written)


def _port_cycles(work: UnitWork, ports: Sequence[tuple[Space, Region]], port_rate: int) -> int:
    """Time on the core's port, which carries whole lines.

    A run that is short or not aligned to a line still costs every line that it touches (a3: rows
    of 128 bytes run at a quarter of the rate).
    """
    line = work.machine.gm.line_bytes
    phase = work.bits[0]
    cycles = 0
    for space, region in ports:
        if space == Space.GM and not region.empty:
            starts, lengths = region.runs
            if region.contiguous and lengths[0] >= line:
                # Only rows pay for the ends of their lines: one long run streams.
                cycles += ceil_div(region.size_bytes, port_rate)
                continue
            first = (starts + phase) // line
            lines = int(np.sum((starts + phase + lengths - 1) // line - first + 1))
            cycles += ceil_div(lines * line, port_rate)
    return cycles


def ub_to_ub(work: UnitWork) -> PipeCycles:
    """Bytes at their own rate on the vector pipe, and its fixed part (b2)."""
    unit, name = work.machine.vector, work.record.name
    fixed = unit.cycles_of(unit.fixed_cycles_of, name, "", unit.fixed_cycles)
    cycles = fixed + ceil_div(work.bytes_of(work.writes), unit.copy_bytes_per_cycle)
    return PipeCycles(cycles, cycles)


def l0c_to_ub(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of L0C to UB, on the vector pipe."""
    unit = work.machine.l0c
    assert unit is not None, "no such path"
    cycles = ceil_div(work.bytes_of(work.reads), unit.to_ub_bytes_per_cycle)
    cycles += work.machine.vector.fixed_cycles
    return PipeCycles(cycles, cycles)


def fixpipe(work: UnitWork) -> PipeCycles:
    """From L0C to GM: elements at the rate of the conversion, bytes as the memory takes them."""
    unit = work.machine.fixpipe
    assert unit is not None, "the machine file lists an instruction whose section is missing"
    elements = sum(int(np.prod(region.shape)) for _, region in work.writes)
    port = _port_cycles(work, work.writes, unit.port_bytes_per_cycle)
    cycles = unit.fixed_cycles + max(ceil_div(elements, unit.elements_per_cycle), port)
    return _transfer(work, 0, unit.start_cycles, cycles)


def nothing(work: UnitWork) -> PipeCycles:
    """Flags and barriers take no time of their own: the time line knows what they wait for."""
    return PipeCycles(0, 0)


def scalar(work: UnitWork) -> PipeCycles:
    """The cycle in which the scalar unit issues it is all."""
    return PipeCycles(0, 0)


def scalar_access(work: UnitWork) -> PipeCycles:
    """Loads and stores of single elements, one after the other (b3)."""
    count = work.values["loads"] + work.values["stores"]
    unit, in_ub = work.machine.scalar, work.values["space"] == Space.UB
    cycles = count * (unit.ub_access_cycles if in_ub else unit.gm_access_cycles)
    return PipeCycles(cycles, cycles)


RULES: dict[str, Callable[[UnitWork], PipeCycles]] = {
    "vector": vector,
    "vnchwconv": vector,
    "sort": sort,
    "cube": cube,
    "mte1_load2d": mte1_load2d,
    "mte1_load3d": mte1_load3d,
    "mte1_copy": mte1_copy,
    "mte2": mte2,
    "mte3": mte3,
    "ub_to_ub": ub_to_ub,
    "l0c_to_ub": l0c_to_ub,
    "fixpipe": fixpipe,
    "nd2nz": nd2nz,
    "l1_fill": l1_fill,
    "flag": nothing,
    "cross_core_flag": nothing,
    "barrier": nothing,
    "scalar": scalar,
    "scalar_access": scalar_access,
}

COPIES = frozenset(
    [
        "mte1_load2d",
        "mte1_load3d",
        "mte1_copy",
        "mte2",
        "nd2nz",
        "mte3",
        "ub_to_ub",
        "l0c_to_ub",
        "fixpipe",
    ]
)
"""Timing rules of copies between memories."""

FLAGS = frozenset(["flag", "barrier", "cross_core_flag"])
"""Timing rules of what orders other instructions."""


def cost_of(work: UnitWork) -> PipeCycles:
    """Applies the rule that the record names."""
    return RULES[work.record.timing](work)
