"""The unit flag: the cube and fixpipe share L0C fractal by fractal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.isa.unit_flags import FLIP, KEEP, OFF
from davinci.simulator import Device
from split_support import Split

MACHINE = machine.load("ascend910b")
STEPS = 3
HOLE = 64
"""Bytes between results in global memory that must stay as they are."""


class Products:
    """Products of m x 32 and 32 x n to f16, each of `STEPS` equal mads, in global memory one after
    the other.

    Attributes:
        flags: of the first mads of a product, of the last one, and of fixpipe.
        places: where the sums lie in L0C, in fractals.
        ordered: fixpipe waits for the cube, and the cube for fixpipe, by events.
    """

    def __init__(self, split: Split, m: int, n: int) -> None:
        self.split, self.m, self.n = split, m, n
        self.flags = (KEEP, FLIP, FLIP)
        self.places = [0, 0]
        self.ordered = False
        self.m1, self.n1 = -(-m // 16), -(-n // 16)
        rng = np.random.default_rng(m + n)
        shapes = (self.m1, 2, 16, 16), (2, self.n1, 16, 16)
        self.a, self.b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in shapes)
        split.device.write(split.gm, np.concatenate([self.a.reshape(-1), self.b.reshape(-1)]))
        self.to = split.gm + 4096 + self.a.nbytes + self.b.nbytes
        self.step = 2 * m * n + HOLE

    def program(self, asm: Any, block: int, sub: int) -> None:
        size = self.a.nbytes + self.b.nbytes
        asm.emit("copy_gm_to_cbuf", dst=0, src=self.split.gm, n_burst=1, len_burst=size // 32)
        asm.flag(Pipe.MTE2, Pipe.MTE1)
        loads = {"src_stride": 1, "repeat": self.m1 * 2}
        asm.emit("load_cbuf_to_ca.f16", dst=0, src=0, **loads)
        loads["repeat"] = self.n1 * 2
        asm.emit("load_cbuf_to_cb.f16", dst=0, src=self.a.nbytes, **loads)
        asm.flag(Pipe.MTE1, Pipe.M)
        first, last, out = self.flags
        for number, place in enumerate(self.places):
            if self.ordered and number:
                asm.wait(Pipe.FIX, Pipe.M)
            for i in range(STEPS):
                sizes = {"m": self.m, "k": 32, "n": self.n, "init": int(i == 0)}
                flag = last if i == STEPS - 1 else first
                asm.emit("mad.f162f32", c=1024 * place, unit_flag=flag, **sizes)
            if self.ordered:
                asm.flag(Pipe.M, Pipe.FIX)
            sizes = {"m_size": self.m, "n_size": self.n, "dst_stride": self.n}
            sizes |= {"src_stride": 16 * self.m1, "nz2nd": 1, "unit_flag": out}
            to = self.to + number * self.step
            asm.emit("fixpipe.f322f16", dst=to, src=1024 * place, **sizes)
            if self.ordered and number < len(self.places) - 1:
                asm.set(Pipe.FIX, Pipe.M)

    def run(self) -> int:
        """Cycles; what is in global memory is right."""
        profile = self.split.run(AIC=self.program)
        a = self.a.transpose(0, 2, 1, 3).reshape(16 * self.m1, 32).astype(np.float32)
        b = self.b.transpose(0, 3, 1, 2).reshape(32, 16 * self.n1).astype(np.float32)
        expected = (STEPS * (a @ b))[: self.m, : self.n].astype(np.float16)
        for number in range(len(self.places)):
            at = self.to + number * self.step
            assert np.array_equal(self.split.device.read(at, np.float16, expected.shape), expected)
            assert not self.split.device.read(at + expected.nbytes, np.uint8, (HOLE,)).any()
        return profile.cycles


@pytest.mark.parametrize(("m", "n"), [(16, 16), (128, 128), (37, 70), (2, 256)])
@pytest.mark.parametrize("places", [[0, 0, 0], [0, 64, 0, 64]])
def test_products_follow_each_other(split: Split, m: int, n: int, places: list[int]) -> None:
    """Right, and faster than with events: L0C is free again as soon as it is read."""
    products = Products(split, m, n)
    products.places = places
    by_units = products.run()
    products.flags, products.ordered = (OFF, OFF, OFF), True
    fixpipe = MACHINE.fixpipe
    assert fixpipe is not None
    saved = products.run() - by_units
    if places[0] == places[1]:
        assert saved >= (len(places) - 1) * fixpipe.start_cycles
    else:
        assert saved > 0


def test_l0c_is_free_when_it_is_read(split: Split) -> None:
    """Fixpipe begins to read when the first fractal has its sums, and the next mad when the first
    fractal is read: nobody waits for the last sums, or 220 cycles until results arrive."""
    products = Products(split, 128, 128)
    by_units = split.run(timeline=True, AIC=products.program).rows
    products.flags, products.ordered = (OFF, OFF, OFF), True
    by_events = split.run(timeline=True, AIC=products.program).rows
    mads = [row for row in by_units if row.mnemonic == "mad.f162f32"]
    first, second = (row for row in by_units if row.mnemonic == "fixpipe.f322f16")
    plain = next(row for row in by_events if row.mnemonic == "fixpipe.f322f16")
    unit, fixpipe = MACHINE.cube, MACHINE.fixpipe
    assert fixpipe is not None
    reading = plain.free - plain.start - fixpipe.fixed_cycles
    sums = mads[STEPS - 1].start + 2 + unit.latency_cycles
    assert first.free == sums + reading
    assert first.end == first.free + fixpipe.start_cycles
    assert second.start == first.free
    # The mad follows fixpipe from fractal to fractal.
    following = mads[STEPS]
    busy = 64 * 2 + unit.occupancy_cycles
    assert following.start + busy < following.free <= first.free + 2 + unit.occupancy_cycles


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((KEEP, FLIP, OFF), "ignores a unit flag that is set"),
        ((KEEP, KEEP, FLIP), "no mad before it hands over"),
        ((OFF, OFF, FLIP), "no mad before it hands over"),
        ((KEEP, FLIP, KEEP), "no fixpipe before it hands back"),
        ((FLIP, FLIP, FLIP), "no fixpipe before it hands back"),
        ((KEEP, KEEP, OFF), "race"),
        ((OFF, FLIP, FLIP), "race"),
    ],
)
def test_misuse(split: Split, flags: tuple[int, int, int], message: str) -> None:
    """One side only, nothing handed over, or sums that begin without asking whether L0C is free."""
    products = Products(split, 32, 32)
    products.flags = flags
    with pytest.raises(DeviceFault, match=message):
        split.run(AIC=products.program)


@pytest.mark.parametrize("flag", [OFF, KEEP])
def test_flags_left_set(new_asm: Callable[[], Any], flag: int) -> None:
    """The next kernel would find them set; said without checks, too."""
    device = Device(MACHINE, 1 << 20, data=False, checks=False)
    asm = new_asm()
    sizes = {"n_size": 32, "m_size": 32, "src_stride": 32, "dst_stride": 32, "nz2nd": 1}
    asm.emit("mad.f162f32", m=32, k=16, n=32, init=1, unit_flag=FLIP)
    asm.emit("fixpipe.f32", dst=1024, src=0, unit_flag=flag, **sizes)
    with pytest.raises(DeviceFault, match="unit flags of L0C left set") as found:
        run(device, asm)
    assert "4 units, the first at 0x0" in str(found.value)


def run(device: Device, asm: Any) -> None:
    """Launches a program on a cube core."""

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(asm.array())

    device.launch("test", {"AIC": program}, [])


def test_a_circle_of_unit_flags_and_events(new_asm: Callable[[], Any]) -> None:
    """Fixpipe waits for an event behind the mad that waits for what fixpipe reads."""
    asm = new_asm()
    sizes = {"n_size": 16, "m_size": 16, "src_stride": 16, "dst_stride": 16, "nz2nd": 1}
    mad = {"m": 16, "k": 16, "n": 16, "init": 1, "unit_flag": FLIP}
    asm.emit("mad.f162f32", **mad)
    asm.wait(Pipe.M, Pipe.FIX)
    asm.emit("fixpipe.f32", dst=1024, src=0, unit_flag=FLIP, **sizes)
    asm.emit("mad.f162f32", **mad)
    asm.set(Pipe.M, Pipe.FIX)
    device = Device(MACHINE, 1 << 20, data=False, checks=False)
    with pytest.raises(DeviceFault, match=r"PIPE_(M|FIX) -> PIPE_(FIX|M)") as found:
        run(device, asm)
    assert "for unit flags of PIPE_FIX" in str(found.value)


def test_places_are_whole_fractals(split: Split) -> None:
    products = Products(split, 16, 16)
    program = products.program

    def shifted(asm: Any, block: int, sub: int) -> None:
        program(asm, block, sub)
        for name, row in zip(asm.names, asm.rows, strict=True):
            if name.startswith("mad"):
                row[1] += 512

    with pytest.raises(DeviceFault, match="whole fractals"):
        split.run(AIC=shifted)


def test_only_machines_with_fixpipe_have_them(new_asm: Callable[[], Any]) -> None:
    asm = new_asm()
    asm.emit("mad.f162f32", m=16, k=16, n=16, init=1, unit_flag=FLIP)
    with pytest.raises(DeviceFault, match="ascend910 has no fixpipe"):
        asm.run(Device(machine.load("ascend910"), 1 << 20, data=False, checks=False))
