"""How long an instruction takes, by the name of its timing rule. All figures are in cycles.

A rule finds the form of an instruction in its fields, its regions and a few bits of the addresses,
and asks the price list (`davinci.machine.prices`). It never sees the state of the machine: what
other instructions do to it is the business of `timing.timeline`, and what other cores do to it that
of `timing.gm_model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci.isa.core import DTYPES, Instruction, Space, Values, finds_nothing
from davinci.isa.img2col import pixels_of
from davinci.isa.sort import STRUCTURE_BYTES
from davinci.machine import Machine, prices
from davinci.machine.vector_banks import BankLayout, OperandBlocks, repeats_cycles
from davinci.simulator.core.regions import Region
from davinci.simulator.timing.functions import packed
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div


@dataclass(frozen=True)
class PipeCycles:
    """Cycles from the start until the pipe takes the next instruction, and until it is complete.

    `gm_read` and `gm_write` are the bytes that pass the global memory, which other transfers and
    other cores use too. `from_l1` and `to_l1`: a load out of L1, a transfer into it.
    `miss_cycles`: how much longer it takes if the L2 has none of its rows. `overlap`: cycles that
    pass while the instruction before it ends, if it needs nothing of that one. `event`: of the call
    of a vector function how many instructions it has, of such an instruction `functions.packed`.
    `requests`: of a read, cut where rows and lines end. `unit_cycles`: the part of the occupancy in
    which it goes through its units of L0C.
    """

    occupancy: int
    latency: int
    gm_read: int = 0
    gm_write: int = 0
    from_l1: bool = False
    to_l1: bool = False
    miss_cycles: float = 0.0
    overlap: int = 0
    event: int = 0
    requests: int = 0
    unit_cycles: int = 0


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
    nothing of what this one writes, or comes behind a barrier, its head does too.
    Masked lanes are taken to use their banks.
    """
    unit, values = work.machine.vector, work.values
    fixed, each = unit.price(work.record.name, work.record.type)
    repeats = values["repeat"]
    if work.strided and repeats:
        count = unit.repeat_bytes // max(operand.itemsize for operand in work.strided)
        streams = [
            OperandBlocks(
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
    overlap = min(unit.overlap_cycles, fixed) if work.record.finds is finds_nothing else 0
    return PipeCycles(fixed + cycles, latency, overlap=overlap)


def sort(work: UnitWork) -> PipeCycles:
    """A fixed part, and elements at the rate at which they are sorted (b2)."""
    unit, record = work.machine.vector, work.record
    elements = work.bytes_of(work.writes) // STRUCTURE_BYTES
    cycles = math.ceil(prices.sort(work.machine, record.name, record.type, elements))
    return PipeCycles(cycles, cycles + unit.completion_cycles, overlap=unit.overlap_cycles)


def cube(work: UnitWork) -> PipeCycles:
    """Fractal products, one a cycle (f32: one in two), and a fixed occupancy; results come later
    (b1)."""
    machine, values = work.machine, work.values
    itemsize = work.reads[0][1].dtype.itemsize
    blocks = work.reads[1][1].size_bytes // FRACTAL_BYTES  # of B; a byte may hold two numbers
    fractals = blocks * ceil_div(values["m"], machine.cube.m)
    cycles = math.ceil(prices.mad(machine, fractals, itemsize))
    busy = cycles - machine.cube.occupancy_cycles
    return PipeCycles(cycles, cycles + prices.mad_drain(machine), unit_cycles=busy)


def mte1_load2d(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of the destination and a fixed part an instruction (a3)."""
    machine = work.machine
    space = work.writes[0][0] if work.writes else Space.L0A
    cycles = math.ceil(prices.load2d(machine, space.name, work.bytes_of(work.writes)))
    return PipeCycles(cycles, cycles, from_l1=True, overlap=machine.mte1.overlap_cycles)


def mte1_load3d(work: UnitWork) -> PipeCycles:
    """A fixed part, and each fractal by the rows of windows and the pixels it is put together from,
    up to a most (a3)."""
    machine, space = work.machine, work.record.operands[0].space
    channels = BLOCK_BYTES // DTYPES[work.record.type].itemsize
    rows = pixels_of(work.values, work.fmatrix, channels).rows.tolist()
    cycles = math.ceil(prices.load3d(machine, space.name, work.values["stride_w"], rows))
    return PipeCycles(cycles, cycles, from_l1=True, overlap=machine.mte1.overlap_cycles)


def mte1_scales(work: UnitWork) -> PipeCycles:
    """Bytes of scales at the rate of their path, and a fixed part an instruction."""
    cycles = math.ceil(prices.load_scales(work.machine, work.bytes_of(work.writes)))
    return PipeCycles(cycles, cycles, from_l1=True)


def l1_to_bt(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of L1 to the bias table and a fixed part an instruction (a3)."""
    cycles = math.ceil(prices.l1_to_bt(work.machine, work.bytes_of(work.writes)))
    return PipeCycles(cycles, cycles, from_l1=True)


def l1_to_fb(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of L1 to the buffer of fixpipe and a fixed part an instruction (a3)."""
    cycles = math.ceil(prices.l1_to_fb(work.machine, work.bytes_of(work.writes)))
    return PipeCycles(cycles, cycles)


def mte1_copy(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of L1 to UB and a fixed part an instruction."""
    cycles = math.ceil(prices.l1_to_ub(work.machine, work.bytes_of(work.writes)))
    return PipeCycles(cycles, cycles, from_l1=True)


def mte2(work: UnitWork) -> PipeCycles:
    """A transfer from GM: a start that overlaps with transfers before it, then the bytes (a3)."""
    to_l1 = any(space == Space.L1 for space, _ in work.writes)
    port = prices.reading(work.machine, all(space != Space.UB for space, _ in work.writes))
    regions = [region for space, region in work.reads if space == Space.GM]
    rows = sum(region.runs[0].size for region in regions if not region.contiguous)
    cost = _transfer(work, port, work.reads, work.writes)
    requests = ceil_div(_line_bytes(work, work.reads), work.machine.gm.line_bytes)
    late = rows * port.row_miss_cycles
    return replace(cost, to_l1=to_l1, miss_cycles=late, requests=requests)


def nd2nz(work: UnitWork) -> PipeCycles:
    """Rows of GM to fractals in L1, one instruction after the other: each row has a cost of its
    own besides its bytes (a3).

    Rows that do not begin at whole blocks are put together block by block.
    """
    machine, values = work.machine, work.values
    late = machine.mte2.nd2nz_row_miss_cycles
    assert late is not None, "no such path"
    (_, region), (_, fractals) = work.reads[0], work.writes[0]
    rows = values["nd_num"] * values["n_value"]
    itemsize, size = region.dtype.itemsize, machine.vector.block_bytes
    starts = [work.bits[0], values["src_d_value"] * itemsize]
    if values["nd_num"] > 1:
        starts.append(values["src_nd_matrix_stride"] * itemsize)
    ragged = fractals.size_bytes // size if any(start % size for start in starts) else 0
    total = math.ceil(prices.nd2nz(machine, rows, region.size_bytes, ragged))
    requests = rows * ceil_div(values["d_value"] * itemsize, machine.gm.line_bytes)
    return PipeCycles(
        total,
        total,
        region.size_bytes,
        to_l1=True,
        miss_cycles=rows * late,
        requests=requests,
    )


def l1_fill(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of the port to L1, and what an instruction takes (assumed: as a transfer
    that finds its bytes at once)."""
    unit = work.machine.mte2
    cycles = unit.issue_cycles + ceil_div(work.bytes_of(work.writes), unit.l1_port_bytes_per_cycle)
    return PipeCycles(cycles, cycles, to_l1=True)


def mte3(work: UnitWork) -> PipeCycles:
    """A transfer to GM, as `mte2`, or from UB to L1."""
    if any(space == Space.GM for space, _ in work.writes):
        return _transfer(work, prices.writing(work.machine), work.writes, work.reads)
    cycles = math.ceil(prices.ub_to_l1(work.machine, work.bytes_of(work.writes)))
    return PipeCycles(cycles, cycles)


def _transfer(
    work: UnitWork,
    port: prices.Port,
    regions: Sequence[tuple[Space, Region]],
    on_chip: Sequence[tuple[Space, Region]],
) -> PipeCycles:
    """A transfer of regions that passes a port; its start overlaps with transfers before it."""
    size = _line_bytes(work, regions)
    bursts = sum(0 if part.contiguous else part.runs[0].size for _, part in on_chip)
    busy, result = port.busy(size, bursts=bursts), port.result(size, bursts)
    return PipeCycles(math.ceil(busy), math.ceil(result), *_gm_bytes(work))


def _gm_bytes(work: UnitWork) -> tuple[int, int]:
    """Bytes of global memory that are read and written."""
    read, written = (
        sum(region.size_bytes for space, region in ports if space == Space.GM)
        for ports in (work.reads, work.writes)
    )
    return read, written


def _line_bytes(work: UnitWork, ports: Sequence[tuple[Space, Region]]) -> int:
    """Bytes that pass the core's port, which carries whole lines.

    A run that is short or not aligned to a line still costs every line that it touches (a3: rows
    of 128 bytes run at a quarter of the rate).
    """
    line = work.machine.gm.line_bytes
    phase = work.bits[0]
    size = 0
    for space, region in ports:
        if space == Space.GM and not region.empty:
            starts, lengths = region.runs
            if region.contiguous and lengths[0] >= line:
                # Only rows pay for the ends of their lines: one long run streams.
                size += region.size_bytes
                continue
            first = (starts + phase) // line
            size += line * int(np.sum((starts + phase + lengths - 1) // line - first + 1))
    return size


def ub_to_ub(work: UnitWork) -> PipeCycles:
    """Bursts, some at once, at their own rate on the vector pipe, and its fixed part (b2)."""
    size, bursts = work.bytes_of(work.writes), work.values["n_burst"]
    cost = prices.ub_to_ub(work.machine, size, bursts=bursts, name=work.record.name)
    cycles = math.ceil(cost)
    return PipeCycles(cycles, cycles)


def l0c_to_ub(work: UnitWork) -> PipeCycles:
    """Bytes at the rate of L0C to UB, on the vector pipe."""
    cycles = math.ceil(prices.l0c_to_ub(work.machine, work.bytes_of(work.reads)))
    return PipeCycles(cycles, cycles)


def fixpipe(work: UnitWork) -> PipeCycles:
    """From L0C to GM: elements at the rate of the conversion, bytes as the memory takes them."""
    elements = sum(int(np.prod(region.shape)) for _, region in work.writes)
    size = _line_bytes(work, work.writes)
    busy, result = map(math.ceil, prices.fixpipe(work.machine, elements, size))
    read, written = _gm_bytes(work)
    return replace(_through_units(work, busy, result), gm_read=read, gm_write=written)


def _through_units(work: UnitWork, busy: int, result: int) -> PipeCycles:
    """Cycles of a fixpipe, whose fixed part is before the first unit of L0C."""
    unit = work.machine.fixpipe
    assert unit is not None, "it was priced"
    return PipeCycles(busy, result, unit_cycles=max(busy - unit.fixed_cycles, 0))


def fixpipe_to_ub(work: UnitWork) -> PipeCycles:
    """From L0C to UB of vector cores: elements at the rate of the conversion, bytes at the path's;
    both cores get theirs at the same time."""
    (_, region) = work.writes[0]
    cores, *rest = region.shape
    one = int(np.prod(rest))
    cost = prices.fixpipe_to_ub(work.machine, one, one * region.dtype.itemsize) if cores else 0
    cycles = math.ceil(cost)
    return _through_units(work, cycles, cycles)


def fixpipe_to_l1(work: UnitWork) -> PipeCycles:
    """From L0C to L1: elements at the rate of the conversion."""
    (_, region) = work.writes[0]
    cycles = math.ceil(prices.fixpipe_to_l1(work.machine, int(np.prod(region.shape))))
    return _through_units(work, cycles, cycles)


def vector_function(work: UnitWork) -> PipeCycles:
    """The vector unit is told which instructions to fetch; what they take is known at the last."""
    return PipeCycles(0, 0, event=work.values["count"])


def register(work: UnitWork) -> PipeCycles:
    """An instruction on vector registers: cycles that it keeps one of the units that do it, and
    until its result can be read."""
    unit = work.machine.vector.functions
    assert unit is not None, "checked with the instructions that need it"
    record = work.record
    keeps, latency = unit.keeps(record.name, record.type), unit.after(record.name, record.type)
    places = dict(zip([o.name for o in work.strided], work.bits, strict=True))
    return PipeCycles(keeps, latency, event=packed(record, places, work.machine.vector))


def nothing(work: UnitWork) -> PipeCycles:
    """Flags and barriers take no time of their own: the time line knows what they wait for."""
    return PipeCycles(0, 0)


def scalar(work: UnitWork) -> PipeCycles:
    """The cycle in which the scalar unit issues it is all."""
    return PipeCycles(0, 0)


def scalar_access(work: UnitWork) -> PipeCycles:
    """Loads and stores of single elements, one after the other (b3)."""
    count = work.values["loads"] + work.values["stores"]
    space = "UB" if work.values["space"] == Space.UB else "GM"
    cycles = math.ceil(prices.scalar_accesses(work.machine, count, space))
    return PipeCycles(cycles, cycles)


RULES: dict[str, Callable[[UnitWork], PipeCycles]] = {
    "vector": vector,
    "vnchwconv": vector,
    "sort": sort,
    "cube": cube,
    "mte1_load2d": mte1_load2d,
    "mte1_load3d": mte1_load3d,
    "mte1_scales": mte1_scales,
    "mte1_copy": mte1_copy,
    "l1_to_bt": l1_to_bt,
    "l1_to_fb": l1_to_fb,
    "mte2": mte2,
    "mte3": mte3,
    "ub_to_ub": ub_to_ub,
    "l0c_to_ub": l0c_to_ub,
    "fixpipe": fixpipe,
    "fixpipe_to_ub": fixpipe_to_ub,
    "fixpipe_to_l1": fixpipe_to_l1,
    "nd2nz": nd2nz,
    "l1_fill": l1_fill,
    "flag": nothing,
    "cross_core_flag": nothing,
    "counter": nothing,
    "turn": nothing,
    "barrier": nothing,
    "vector_function": vector_function,
    "register": register,
    "scalar": scalar,
    "scalar_access": scalar_access,
}

COPIES = frozenset(
    [
        "mte1_load2d",
        "mte1_load3d",
        "mte1_scales",
        "mte1_copy",
        "mte2",
        "nd2nz",
        "mte3",
        "ub_to_ub",
        "l0c_to_ub",
        "fixpipe",
        "fixpipe_to_ub",
        "fixpipe_to_l1",
    ]
)
"""Timing rules of copies between memories."""

FLAGS = frozenset(["flag", "barrier", "cross_core_flag", "counter", "turn"])
"""Timing rules of what orders other instructions."""


def cost_of(work: UnitWork) -> PipeCycles:
    """Applies the rule that the record names."""
    return RULES[work.record.timing](work)
