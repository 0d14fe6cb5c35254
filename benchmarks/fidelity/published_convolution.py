"""PTO's manual convolution: 3 x 3, padding 1, f16, as its kernel issues it on 24 cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from hand_written import Stream, run
from published import FIX, MACHINE, MTE1, MTE2, M, Row, device, evidence, head, microseconds

GROUP = "PTO convolution"
SIDE, ELEMENTS, BLOCK = 3, 9, 16
"""Height and width of the kernel, their product, channels of a block."""

ROWS, COLUMNS, DEPTH, STEPS = 128, 256, 48, 3
"""Block of a mad; blocks along the depth that come to L1 at a time."""

WINDOWS = {"filter_w": SIDE, "filter_h": SIDE, "stride_w": 1, "stride_h": 1}
WINDOWS |= {"dilation_w": 1, "dilation_h": 1}

WEIGHTS, UNUSED = 0x20000, 0x50000
"""Addresses of the weights in L1, and behind them."""

PORT = int(MACHINE.mte2.l1_port_bytes_per_cycle)
"""Bytes that come into L1 in a cycle."""


@dataclass(frozen=True)
class Convolution:
    """Of batch images [c1][height][width][16] with `filters` filters; a core has an image and a
    sixth of the filters.

    Attributes:
        late: part of the transfers of weights that take longer than here, by `late_cycles`.
    """

    batch: int
    blocks: int
    height: int
    width: int
    filters: int
    late: float = 0
    late_cycles: int = 0

    @property
    def cores(self) -> int:
        return 6 * self.batch

    @property
    def image_bytes(self) -> int:
        return self.blocks * self.height * self.width * BLOCK * 2


class _Core:
    """What one core issues."""

    def __init__(self, s: Stream, how: Convolution, block: int) -> None:
        self.s, self.how = s, how
        image, part = divmod(block, 6)
        pixels, filters = how.height * how.width, how.filters
        self.x = 512 + image * how.image_bytes
        self.k = 512 + how.batch * how.image_bytes + part * filters // 6 * BLOCK * 2
        y = 512 + how.batch * how.image_bytes + how.blocks * ELEMENTS * filters * BLOCK * 2
        self.y = y + (image * filters + part * filters // 6) * pixels * 2
        self.chunks = self.mads = 0
        self.chance = Random(block)

    def whole(self) -> None:
        s, how = self.s, self.how
        for event in range(2):
            s.set(MTE1, MTE2, event)
            s.set(M, MTE1, event)
        for top in range(0, how.height * how.width, ROWS):
            for left in range(0, how.filters // 6, COLUMNS):
                for step in range(how.blocks * ELEMENTS * BLOCK // DEPTH):
                    self.step(top, left, step)
                self.store(top, left)
        for event in range(2):
            s.wait(M, MTE1, event)
            s.wait(MTE1, MTE2, event)

    def lines(self, top: int) -> tuple[int, int, int]:
        """Of the image, for windows from number `top` on: first line, lines, padding above."""
        first, last = top // self.how.width, (top + ROWS - 1) // self.how.width
        low = max(0, first - 1)
        return low, min(last + 1, self.how.height - 1) - low + 1, int(first == 0)

    def step(self, top: int, left: int, step: int) -> None:
        """The next 48 of the depth: a third of a block of channels."""
        s, how = self.s, self.how
        low, count, above = self.lines(top)
        line = how.width * BLOCK * 2
        slot, first = self.chunks % 2, step % STEPS == 0
        image = slot * line * (ROWS // how.width + SIDE - 1)
        weights = WEIGHTS + slot * DEPTH * STEPS * COLUMNS * 2
        if first:
            s.wait(MTE1, MTE2, slot)
            at = self.x + step // STEPS * how.height * line + low * line
            s.emit("copy_gm_to_cbuf", dst=image, src=at, n_burst=1, len_burst=count * line // 32)
            s.set(MTE2, MTE1, 0)
            row = how.filters * BLOCK * 2
            s.emit(
                "copy_gm_to_cbuf",
                dst=weights,
                src=self.k + step * DEPTH // BLOCK * row + left * BLOCK * 2,
                n_burst=STEPS * DEPTH // BLOCK,
                len_burst=COLUMNS,
                src_gap=how.filters - COLUMNS,
            )
            if self.chance.random() < how.late:
                blocks = how.late_cycles * PORT // 32
                s.emit("copy_gm_to_cbuf", dst=UNUSED, src=512, n_burst=1, len_burst=blocks)
            s.set(MTE2, MTE1, 1)
        l0 = self.mads % 2
        s.wait(M, MTE1, l0)
        if first:
            s.wait(MTE2, MTE1, 0)
        s.emit("set_fmatrix", l1_w=how.width, l1_h=count, pad_left=1, pad_right=1, pad_top=above)
        s.emit(
            "img2colv2_cbuf_to_ca.f16",
            dst=l0 * 0x8000,
            src=image,
            k_extension=DEPTH,
            m_extension=ROWS,
            k_start=step % STEPS * DEPTH,
            m_start=top % how.width,
            **WINDOWS,
        )
        if first:
            s.wait(MTE2, MTE1, 1)
        fractals = DEPTH // BLOCK * COLUMNS // BLOCK
        part = weights + step % STEPS * fractals * 512
        s.emit("load_cbuf_to_cb.f16", dst=l0 * 0x8000, src=part, src_stride=1, repeat=fractals)
        if step % STEPS == STEPS - 1:
            s.set(MTE1, MTE2, slot)
            self.chunks += 1
        s.flag(MTE1, M, l0)
        place = {"c": 0, "a": l0 * 0x8000, "b": l0 * 0x8000}
        s.emit("mad.f162f32", **place, m=ROWS, k=DEPTH, n=COLUMNS, init=int(step == 0))
        s.set(M, MTE1, l0)
        self.mads += 1

    def store(self, top: int, left: int) -> None:
        s, pixels = self.s, self.how.height * self.how.width
        s.flag(M, FIX)
        sizes = {"n_size": COLUMNS, "m_size": ROWS, "dst_stride": pixels, "src_stride": ROWS}
        s.emit("fixpipe.f322f16", dst=self.y + (left * pixels + top * BLOCK) * 2, src=0, **sizes)
        s.flag(FIX, M)


def convolution(how: Convolution) -> tuple[float, ...]:
    """Microseconds of cube, MTE1, MTE2 and fixpipe, on average over the cores, and of the task;
    what it reads is in the L2, as when it is repeated."""
    outputs = how.batch * how.filters * how.height * how.width * 2
    weights = how.blocks * ELEMENTS * how.filters * BLOCK * 2
    target = device(1024 + how.batch * how.image_bytes + weights + outputs)

    def body(s: Stream, block: int) -> None:
        _Core(s, how, block).whole()

    run(target, body, "AIC", how.cores)
    profile = run(target, body, "AIC", how.cores)
    pipes = (microseconds(profile.pipes[f"PIPE_{p.name}"]) for p in (M, MTE1, MTE2, FIX))
    return (*(t / how.cores for t in pipes), microseconds(profile.cycles) + head(how.cores))


IMAGES = Convolution(4, 16, 12, 64, 3072)
LACKS = (
    "how unevenly transfers come, which two buffers do not hide. 4 cores read the same weights "
    "and 6 the same image here. If all transfers of weights took longer, or lines that several "
    "cores read cost 8 %, not 1.6, MTE2 would be as measured and the task as it is here; if a "
    "quarter of them took 320 cycles more, cube, MTE2 and task would be within 3 % (below). The "
    "cube says the same: a mad that waited shows 61 cycles besides its fractals, others 11, so "
    "407 a mad, 384 and 23, are one in four that waited, where a chunk has three; PTO's product "
    "has 13. 8 % would be wrong for that product, by 30 %. Nor is a slower way into L1 it: 77 "
    "bytes a cycle, PTO's own figure, leave the task as it is. Which transfers come late is not "
    "published; tiles are, for another size"
)
"""Why the times of a core are short."""

SHARES = (147.3, 86.1, 57.3, 75.1, 4.0)
"""Microseconds of the task; of it, per cent in which cube, MTE1, MTE2 and fixpipe work."""


def pto_convolution(how: Convolution = IMAGES) -> Iterator[Row]:
    """PTO: X [4, 16, 12, 64, 16], K [144, 192, 16, 16]."""
    task, *shares = SHARES
    names = ("cube", "MTE1", "MTE2", "fixpipe", "task")
    measured = [*(share / 100 * task for share in shares), task]
    targets = (0.05, 0.05, 0.15, 0.15, 0.15)
    found = convolution(how)
    for name, real, time, target in zip(names, measured, found, targets, strict=True):
        key = evidence("mte1.load3d.fixed_cycles" if name == "MTE1" else "")
        yield Row(GROUP, name, "us", real, time, target, LACKS, key)
