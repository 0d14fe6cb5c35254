"""The published measurements of docs/hardware.md (b, d), each as a stream for the simulator.

Every function gives rows: what was measured, and what the simulator says for the same program.
Nothing here changes the model: addresses and schedules are those that were published, or are said
to be assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hand_written import Stream, run

from davinci import machine as machines
from davinci.isa import Pipe
from davinci.machine import Machine
from davinci.simulator import Device

MACHINE = machines.load("ascend910b")
MHZ = MACHINE.clock_mhz
CUBE_CORES, VECTOR_CORES = MACHINE.cores, 2 * MACHINE.cores
V, M, MTE1, MTE2, MTE3, FIX = Pipe.V, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX

KB = 1024

SEEN, INDEPENDENT = "seen", "independent"
MARKS = ("fitted", SEEN, INDEPENDENT)


@dataclass(frozen=True)
class Row:
    """One measurement beside the simulator's figure.

    Attributes:
        group, name: which measurement.
        unit: "cycles" or "us".
        measured, simulated: the figures.
        target: largest error that is accepted, as a fraction.
        missing: the mechanism that the model lacks, if the row is outside.
        evidence: "fitted: keys" if those keys of the machine file were set with this row in view,
            "seen" if it gave no number but was known when the form of a mechanism that decides it
            was chosen, "independent" if form and numbers come from elsewhere.
        published: what was published, if several rows are points of it; else each row is.
    """

    group: str
    name: str
    unit: str
    measured: float
    simulated: float
    target: float
    missing: str = ""
    evidence: str = SEEN
    published: str = ""

    @property
    def error(self) -> float:
        return self.simulated / self.measured - 1

    @property
    def good(self) -> bool:
        return abs(self.error) <= self.target


def evidence(keys: str = "") -> str:
    """Of a row that was in view when those keys of the machine file were set."""
    return f"fitted: {keys}" if keys else SEEN


def device(gm_bytes: int = 1 << 20, machine: Machine | None = None) -> Device:
    """A device that finds times only, by default of `MACHINE`."""
    return Device(machine or MACHINE, gm_bytes, data=False)


def microseconds(cycles: float, machine: Machine | None = None) -> float:
    return cycles / (machine or MACHINE).clock_mhz


def head(cores: float, machine: Machine | None = None) -> float:
    """Microseconds of a task before its first instruction, on so many cube cores with their vector
    cores, of which one is half of one: what a task's published time has besides its cores'."""
    machine = machine or MACHINE
    launch = machine.launch
    return launch.head_us + launch.head_of_all_cores_us * min(cores / machine.cores, 1)


# Chained mads: eight of m 128, k 64 without waiting.


def mads(n: int) -> int:
    """Cycles of eight mads."""

    def body(s: Stream, block: int) -> None:
        for _ in range(8):
            s.emit("mad.f162f32", m=128, k=64, n=n, init=1)

    return run(device(), body, "AIC").cycles


def chained_mads() -> Iterator[Row]:
    """API, unit flag table."""
    key = evidence("cube.occupancy_cycles")
    for n, measured in ((256, 4209), (128, 2172)):
        yield Row("chained mads", f"n {n}", "cycles", measured, mads(n), 0.05, evidence=key)


# GM to UB: one transfer.


def tload(size: int) -> int:
    """Cycles of one transfer of `size` bytes."""

    def body(s: Stream, block: int) -> None:
        s.emit("copy_gm_to_ubuf", dst=0, src=512, n_burst=1, len_burst=size // 32)

    return run(device(), body, "AIV").cycles


def transfers() -> Iterator[Row]:
    """PTO `tload`."""
    key = evidence("mte2.start_cycles")
    for size, measured in ((65536, 776), (65024, 773), (32512, 519), (16256, 392)):
        name = f"{size / KB:.2f} KB"
        yield Row("GM to UB", name, "cycles", measured, tload(size), 0.05, evidence=key)


def nd2nz(
    s: Stream, dst: int, src: int, rows: int, columns: int, row_elements: int, words: str = "b16"
) -> None:
    """Loads rows x columns of f16, or of words of another size, into L1 as Nz."""
    s.emit(
        f"copy_gm_to_cbuf_multi_nd2nz.{words}",
        dst=dst,
        src=src,
        nd_num=1,
        n_value=rows,
        d_value=columns,
        src_d_value=row_elements,
        dst_nz_c0_stride=rows + -rows % 16,
        dst_nz_n_stride=1,
    )
