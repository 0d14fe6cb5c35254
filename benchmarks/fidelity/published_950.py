"""The published measurements of a 950 (docs/hardware.md f), each as a stream for the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from hand_written import Stream, run
from published import KB, MTE2, MTE3, SEEN, Row, V, evidence
from published_memory import Reading, one_after_the_other
from vector_functions import added, gelu, gelu_apart

from davinci import machine as machines
from davinci.simulator import Device

MACHINE = machines.load("ascend950")
VECTOR_CORES = 2 * MACHINE.cores
BYPASS = MACHINE.l2.bypass_offset_bytes or 0
ELEMENTS = 8192 * 8192

GROUPS = (
    "addition of 8192 x 8192 f16 on a 950",
    "GELU of 8192 x 8192 f32 on a 950",
    "reading to UB on a 950",
)

Places = Sequence[tuple[int, ...]]
"""Addresses in UB of the inputs and of the result, for each buffer."""

Compute = Callable[..., list[list[int]]]
"""Instructions that make a tile: of its addresses and bytes."""


def microseconds(cycles: float) -> float:
    return cycles / MACHINE.clock_mhz


def head(cores: int) -> float:
    """Microseconds of a task before its first instruction, on so many vector cores."""
    launch = MACHINE.launch
    return launch.head_us + launch.head_of_all_cores_us * cores / VECTOR_CORES


@dataclass(frozen=True)
class Tiles:
    """Something elementwise on 8192 x 8192 elements, tile by tile.

    Attributes:
        compute: of a tile.
        itemsize: bytes of an element.
        size: bytes of a tile.
        places: of its operands in UB.
        cores: how many.
        bypass: inputs pass the L2 by.
    """

    compute: Compute
    itemsize: int
    size: int
    places: Places
    cores: int = VECTOR_CORES
    bypass: bool = False

    @property
    def tiles(self) -> int:
        """Whole ones of each core."""
        return ELEMENTS * self.itemsize // self.size // self.cores

    def body(self, s: Stream, block: int) -> None:
        """What a core does: all inputs of a tile come one after the other, as published."""
        buffers, rows = len(self.places), {"n_burst": 1, "len_burst": self.size // 32}
        array = ELEMENTS * self.itemsize
        s.lend(MTE2, V, buffers)
        s.lend(V, MTE3, buffers)
        for tile in range(self.tiles):
            event = tile % buffers
            *inputs, result = self.places[event]
            place = 512 + (block * self.tiles + tile) * self.size
            s.wait(V, MTE2, event)
            for number, address in enumerate(inputs):
                if number:
                    s.emit("pipe_barrier", pipe=MTE2)
                source = place + number * array + self.bypass * BYPASS
                s.emit("copy_gm_to_ubuf", dst=address, src=source, **rows)
            s.flag(MTE2, V, event)
            s.wait(MTE3, V, event)
            s.extend(self.compute(*inputs, result, self.size))
            s.set(V, MTE2, event)
            s.flag(V, MTE3, event)
            s.emit("copy_ubuf_to_gm", dst=place + len(inputs) * array, src=result, **rows)
            s.set(MTE3, V, event)
        s.collect(MTE2, V, buffers)
        s.collect(V, MTE3, buffers)

    def task(self) -> float:
        """Microseconds of the whole task, after one that fills the L2."""
        arrays = len(self.places[0])
        target = Device(MACHINE, 512 + arrays * ELEMENTS * self.itemsize, data=False)
        run(target, self.body, "AIV", self.cores)
        cycles = run(target, self.body, "AIV", self.cores).cycles
        whole = ELEMENTS * self.itemsize / (self.size * self.tiles * self.cores)
        return microseconds(cycles) * whole + head(self.cores)

    def vector(self) -> float:
        """Microseconds of the vector unit."""
        each = []
        for places in self.places:
            rows = self.compute(*places, self.size)

            def body(s: Stream, block: int, rows: list[list[int]] = rows) -> None:
                for _ in range(TURNS):
                    s.extend(rows)

            device = Device(MACHINE, 1 << 20, data=False)
            each.append(run(device, body, "AIV").cycles / TURNS)
        tiles = ELEMENTS * self.itemsize / self.size / self.cores
        return microseconds(sum(each) / len(each)) * tiles


LACKS = {
    "64 cores": "what short transfers cost while all cores move: tiles of 8 KB take 25 % longer "
    "than those of 42.5 KB, on the 910B 14 %; here both are limited by the memory alone",
    "unrolled by 6": "in which order the vendor's compiler issues the steps of an unrolled loop: "
    "here step by step for six registers, 53.0 us; three at a time would take 60.1, two or one "
    "65.7 (below), so that as published lies between",
}

TURNS = 4
"""Tiles one after the other that stand for all."""

SMALL, LARGE = 8 * KB, 43520
ONE, DOUBLE = one_after_the_other(LARGE, 1), one_after_the_other(LARGE, 2)
SMALL_PLACES = one_after_the_other(SMALL, 1)
START = evidence("mte2.start_cycles")


def addition() -> Iterator[Row]:
    """BP: x + y of 8192 x 8192 f16, made faster step by step."""
    group = GROUPS[0]
    cases = [
        ("1 core, 8 KB", 8924.0, Tiles(added, 2, SMALL, SMALL_PLACES, cores=1), START),
        ("64 cores", 310.5, Tiles(added, 2, SMALL, SMALL_PLACES), SEEN),
        ("42.5 KB", 251.7, Tiles(added, 2, LARGE, ONE), SEEN),
        ("two buffers", 247.7, Tiles(added, 2, LARGE, DOUBLE), SEEN),
        ("inputs bypass the L2", 182.0, Tiles(added, 2, LARGE, DOUBLE, bypass=True), SEEN),
    ]
    for name, measured, how, mark in cases:
        missing = LACKS.get(name, "")
        yield Row(group, name, "us", measured, how.task(), 0.15, missing, mark)
    for name, measured, how in (
        ("64 cores: vector unit", 15.465, cases[1][2]),
        ("42.5 KB: vector unit", 11.121, cases[2][2]),
        ("two buffers: vector unit", 10.976, cases[3][2]),
    ):
        yield Row(group, name, "us", measured, how.vector(), 0.05, evidence=SEEN)


UNROLLED = 63.66
"""Microseconds of the vector unit with six registers at a time."""

TILE = 32 * KB
PAIRS: Places = [(0, TILE), (2 * TILE, 3 * TILE)]


def unrolled(registers: int) -> Compute:
    """GELU, so many registers at a time."""
    return partial(gelu, unrolled=registers)


def gelu_of_f32() -> Iterator[Row]:
    """BP: GELU of 8192 x 8192 f32, in functions of one step and as one."""
    group = GROUPS[1]
    window = evidence("vector.functions.window")
    for name, task, vector, compute, mark in (
        ("a function each step", 351.5, 147.9, gelu_apart, SEEN),
        ("one function", 348.9, 66.28, gelu, window),
        ("unrolled by 6", 344.4, UNROLLED, unrolled(6), SEEN),
    ):
        how = Tiles(compute, 4, TILE, PAIRS)
        yield Row(group, name, "us", task, how.task(), 0.15, evidence=SEEN)
        title = f"{name}: vector unit"
        missing = LACKS.get(name, "")
        yield Row(group, title, "us", vector, how.vector(), 0.05, missing, mark)


class Reading950(Reading):
    """Reading on the 950."""

    @property
    def cores(self) -> int:
        return VECTOR_CORES


def read_time(how: Reading) -> float:
    """Microseconds of a core."""
    target = Device(MACHINE, 512 + 2 * how.width * how.height, data=False)
    return microseconds(run(target, how.body, how.kind, how.cores).cycles) * how.parts


def reading() -> Iterator[Row]:
    """BP data_copy, to UB."""
    issue = evidence("mte2.issue_cycles")
    for name, measured, how, mark in (
        ("tiles of 1 x 64", 881.1, Reading950("AIV", 1, 64, parts=64), issue),
        ("tiles of 64 x 64", 206.0, Reading950("AIV", 64, 64), SEEN),
        ("tiles of 64 x 1024", 185.7, Reading950("AIV", 64, 1024), SEEN),
        ("four times", 740.8, Reading950("AIV", 64, 1024, repeats=4), SEEN),
        ("four times, by slices", 354.2, Reading950("AIV", 64, 1024, slices=4, repeats=4), SEEN),
    ):
        time = read_time(how)
        yield Row(GROUPS[2], name, "us", measured, time, 0.15, evidence=mark)
