"""How long an instruction takes, by the name of its timing rule. All figures are in cycles.

A rule sees the machine, the fields and the regions, never the state of the machine: what other
instructions do to it is the business of `davinci.simulator.timing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from davinci.isa.core import Instruction, Space, Values
from davinci.machine import Machine
from davinci.simulator.regions import Region


@dataclass(frozen=True)
class Cost:
    """Cycles from the start until the pipe takes the next instruction, and until it is complete."""

    occupancy: int
    latency: int


@dataclass(frozen=True)
class Rates:
    """Bytes a cycle between GM and one core while `cores` of them are at work.

    The machine file gives a core's share with all cores at work; fewer share the same total.
    """

    cores: int
    read: float
    write: float


def rates_of(machine: Machine, cores: int) -> Rates:
    """The rates with `cores` cores at work."""
    share = machine.cores / cores
    gm = machine.gm
    return Rates(cores, gm.read_bytes_per_cycle * share, gm.write_bytes_per_cycle * share)


@dataclass(frozen=True)
class Work:
    """What a rule may look at. `phase` is the place of the first GM byte in its line."""

    machine: Machine
    rates: Rates
    record: Instruction
    values: Values
    reads: Sequence[tuple[Space, Region]]
    writes: Sequence[tuple[Space, Region]]
    phase: int

    def bytes_of(self, ports: Sequence[tuple[Space, Region]]) -> int:
        return sum(region.size_bytes for _, region in ports)


def ceil_div(a: float, b: float) -> int:
    """a / b rounded up."""
    return int(-(-a // b))


def vector(work: Work) -> Cost:
    """A fixed part and the cycles of each repeat; nothing overlaps (docs/hardware.md b2)."""
    unit = work.machine.vector
    each = unit.cycles_per_repeat.get(work.record.mnemonic, 1)
    cycles = unit.fixed_cycles + work.values["repeat"] * each
    return Cost(cycles, cycles)


def cube(work: Work) -> Cost:
    """One fractal product a cycle and a fixed occupancy; the result comes later (b1)."""
    unit, values = work.machine.cube, work.values
    k = unit.k_b8 if work.reads and work.reads[0][1].dtype.itemsize == 1 else unit.k_b16
    fractals = (
        ceil_div(values["m"], unit.m) * ceil_div(values["n"], unit.n) * ceil_div(values["k"], k)
    )
    return Cost(fractals + unit.occupancy_cycles, fractals + unit.latency_cycles)


def mte1_load2d(work: Work) -> Cost:
    """Bytes at the rate of the destination and a fixed part an instruction (a3)."""
    unit = work.machine.mte1
    space = work.writes[0][0] if work.writes else Space.L0A
    rate = unit.l0a_bytes_per_cycle if space == Space.L0A else unit.l0b_bytes_per_cycle
    cycles = unit.fixed_cycles + ceil_div(work.bytes_of(work.writes), rate)
    return Cost(cycles, cycles)


def mte1_copy(work: Work) -> Cost:
    """Bytes at the rate of L1 to UB and a fixed part an instruction."""
    unit = work.machine.mte1
    size = work.bytes_of(work.writes)
    assert unit.l1_to_ub_bytes_per_cycle is not None, "no such path"
    cycles = unit.fixed_cycles + ceil_div(size, unit.l1_to_ub_bytes_per_cycle)
    return Cost(cycles, cycles)


def mte2(work: Work) -> Cost:
    """A transfer from GM: a start that overlaps with transfers before it, then the bytes (a3)."""
    unit = work.machine.mte2
    to_l1 = any(space == Space.L1 for space, _ in work.writes)
    port = unit.l1_port_bytes_per_cycle if to_l1 else unit.port_bytes_per_cycle
    cycles = _gm_cycles(work, work.reads, port, work.rates.read)
    return Cost(max(unit.issue_cycles, cycles), unit.start_cycles + cycles)


def mte3(work: Work) -> Cost:
    """A transfer to GM, as `mte2`, or from UB to L1."""
    unit = work.machine.mte3
    if any(space == Space.GM for space, _ in work.writes):
        cycles = _gm_cycles(work, work.writes, unit.port_bytes_per_cycle, work.rates.write)
        return Cost(max(unit.issue_cycles, cycles), unit.start_cycles + cycles)
    assert unit.ub_to_l1_bytes_per_cycle is not None, "no such path"
    assert unit.on_chip_start_cycles is not None, "no such path"
    cycles = ceil_div(work.bytes_of(work.writes), unit.ub_to_l1_bytes_per_cycle)
    cycles += unit.on_chip_start_cycles
    return Cost(cycles, cycles)


def _gm_cycles(
    work: Work, ports: Sequence[tuple[Space, Region]], port_rate: int, share: float
) -> int:
    """Time on the wire: the core's port carries whole lines, the shared memory only the bytes.

    A run that is short or not aligned to a line still costs every line that it touches (a3: rows
    of 128 bytes run at a quarter of the rate).
    """
    line = work.machine.gm.line_bytes
    lines = 0
    for space, region in ports:
        if space == Space.GM and not region.empty:
            starts, lengths = region.runs
            first = (starts + work.phase) // line
            lines += int(np.sum((starts + work.phase + lengths - 1) // line - first + 1))
    return max(ceil_div(lines * line, port_rate), ceil_div(work.bytes_of(ports), share))


def ub_to_ub(work: Work) -> Cost:
    """A repeat's worth of bytes a cycle on the vector pipe."""
    unit = work.machine.vector
    cycles = unit.fixed_cycles + ceil_div(work.bytes_of(work.writes), unit.repeat_bytes)
    return Cost(cycles, cycles)


def l0c_to_ub(work: Work) -> Cost:
    """Bytes at the rate of L0C to UB, on the vector pipe."""
    unit = work.machine.l0c
    assert unit is not None, "no such path"
    cycles = ceil_div(work.bytes_of(work.reads), unit.to_ub_bytes_per_cycle)
    cycles += work.machine.vector.fixed_cycles
    return Cost(cycles, cycles)


def fixpipe(work: Work) -> Cost:
    """From L0C to GM: elements at the rate of the conversion, bytes as the memory takes them."""
    unit = work.machine.fixpipe
    assert unit is not None, "the machine file lists an instruction whose section is missing"
    elements = sum(int(np.prod(region.shape)) for _, region in work.writes)
    memory = _gm_cycles(work, work.writes, unit.port_bytes_per_cycle, work.rates.write)
    cycles = max(ceil_div(elements, unit.elements_per_cycle), memory)
    return Cost(unit.fixed_cycles + cycles, unit.start_cycles + cycles)


def nothing(work: Work) -> Cost:
    """Flags and barriers take no time of their own: the time line knows what they wait for."""
    return Cost(0, 0)


def scalar(work: Work) -> Cost:
    """The cycle in which the scalar unit issues it is all."""
    return Cost(0, 0)


def scalar_access(work: Work) -> Cost:
    """Loads and stores of single elements, one after the other (b3)."""
    count = work.values["loads"] + work.values["stores"]
    cycles = count * work.machine.scalar.gm_access_cycles
    return Cost(cycles, cycles)


RULES: dict[str, Callable[[Work], Cost]] = {
    "vector": vector,
    "vnchwconv": vector,
    "cube": cube,
    "mte1_load2d": mte1_load2d,
    "mte1_copy": mte1_copy,
    "mte2": mte2,
    "mte3": mte3,
    "ub_to_ub": ub_to_ub,
    "l0c_to_ub": l0c_to_ub,
    "fixpipe": fixpipe,
    "nd2nz": mte2,
    "flag": nothing,
    "cross_core_flag": nothing,
    "barrier": nothing,
    "scalar": scalar,
    "scalar_access": scalar_access,
}


def cost_of(work: Work) -> Cost:
    """Applies the rule that the record names."""
    return RULES[work.record.timing](work)
