"""Products of MX formats by hand for the 950: numbers of 8 or 4 bits, a scale for each 32 along k.

A and B lie with k along their rows, their scales too. Two buffers each of numbers and of scales in
L1, two of both beside the cube.
"""

from __future__ import annotations

from dataclasses import dataclass

from hand_written import Stream, run
from published import FIX, MTE1, MTE2, M, head, microseconds
from published_products import PipeTimes

from davinci.machine import Machine
from davinci.simulator import Device

SCALED = 32
"""Numbers along k that share a scale."""


@dataclass(frozen=True)
class ScaledProduct:
    """A product of rows x depth by depth x columns to bf16.

    Attributes:
        machine: with MX formats.
        kind: e4m3, e5m2, e2m1 or e1m2.
        bits: of a number.
        size: rows, columns and depth.
        down, across: cores along the rows and columns of C.
        block: rows, columns and depth of one mad.
        step: blocks along k that a transfer of A or B brings.
        scale_step: transfers of A or B whose scales come at once.
    """

    machine: Machine
    kind: str
    bits: int
    size: tuple[int, int, int]
    down: int
    across: int
    block: tuple[int, int, int]
    step: int
    scale_step: int

    @property
    def cores(self) -> int:
        return self.down * self.across

    def row_bytes(self, depth: int) -> int:
        """Bytes of so many numbers."""
        return depth * self.bits // 8

    @property
    def places(self) -> tuple[int, int, int, int, int, int]:
        """In global memory: A, B, their scales, C, and the end."""
        rows, columns, depth = self.size
        a = 512
        b = a + self.row_bytes(rows * depth)
        a_mx = b + self.row_bytes(columns * depth)
        b_mx = a_mx + rows * depth // SCALED
        c = b_mx + columns * depth // SCALED
        return a, b, a_mx, b_mx, c, c + 2 * rows * columns

    def body(self, s: Stream, core: int, rows: range | None = None) -> None:
        """What a core issues: all its blocks, or those of some rows of blocks."""
        _Core(s, self, core).whole(rows)

    def times(self, rows: int) -> PipeTimes:
        """Microseconds, as if all rows of blocks were like the first ones."""
        whole = self.size[0] // self.down // self.block[0]
        target = Device(self.machine, self.places[-1], data=False)
        taken = range(rows)
        profile = run(target, lambda s, core: self.body(s, core, taken), "AIC", self.cores)
        scale = whole / rows
        pipes = (profile.pipes[f"PIPE_{pipe.name}"] for pipe in (M, MTE1, MTE2, FIX))
        each = [microseconds(n, self.machine) * scale / self.cores for n in pipes]
        task = microseconds(profile.cycles, self.machine) * scale
        return PipeTimes(*each, task + head(self.cores, self.machine))


class _Core:
    """The cube core of a block."""

    def __init__(self, s: Stream, how: ScaledProduct, core: int) -> None:
        self.s, self.how = s, how
        rows, columns, _ = how.size
        self.top = core % how.down * rows // how.down
        self.left = core // how.down * columns // how.across
        self.brought = self.scales = self.mads = 0

    def whole(self, rows: range | None) -> None:
        s, how = self.s, self.how
        m, n, _ = how.block
        count = how.size[0] // how.down // m
        s.lend(MTE2, MTE1, 4)
        s.lend(MTE1, M, 2)
        s.lend(M, FIX)
        for row in range(count) if rows is None else rows:
            for column in range(0, how.size[1] // how.across, n):
                self.one(self.top + row * m, self.left + column)
        s.collect(MTE2, MTE1, 4)
        s.collect(MTE1, M, 2)
        s.collect(M, FIX)

    def sides(self, top: int, left: int) -> tuple[tuple[int, int, int, int], ...]:
        """Of A and of B: rows of a block, first row, address of numbers and of scales."""
        how = self.how
        a, b, a_mx, b_mx, *_ = how.places
        m, n, _ = how.block
        return (m, top, a, a_mx), (n, left, b, b_mx)

    def one(self, top: int, left: int) -> None:
        """A block of C."""
        s, how = self.s, self.how
        m, n, k = how.block
        steps, kept = how.size[2] // k, how.step * how.scale_step
        for step in range(steps):
            if step % kept == 0:
                self.bring_scales(top, left, step)
            if step % how.step == 0:
                self.bring(top, left, step)
            self.multiply(step)
            if step % how.step == how.step - 1:
                s.set(MTE1, MTE2, self.brought % 2)
                self.brought += 1
            if step % kept == kept - 1 or step == steps - 1:
                s.set(MTE1, MTE2, 2 + self.scales % 2)
                self.scales += 1
        s.flag(M, FIX)
        sizes = {"n_size": n, "m_size": m, "src_stride": m, "dst_stride": how.size[1]}
        to = how.places[4] + 2 * (top * how.size[1] + left)
        s.emit("fixpipe.f322bf16", dst=to, src=0, nz2nd=1, **sizes)
        s.set(FIX, M)

    def numbers(self, side: int, slot: int) -> int:
        """Where numbers of A (side 0) or B lie in L1."""
        m, n, k = self.how.block
        size = self.how.row_bytes(k * self.how.step)
        return size * (slot * m if side == 0 else 2 * m + slot * n)

    def scale_place(self, side: int, slot: int) -> int:
        """Where the scales of A (side 0) or B lie in L1."""
        how = self.how
        m, n, k = how.block
        size = k * how.step * how.scale_step // SCALED
        first = 2 * how.row_bytes(k * how.step) * (m + n)
        return first + size * (slot * m if side == 0 else 2 * m + slot * n)

    def bring(self, top: int, left: int, step: int) -> None:
        s, how, slot = self.s, self.how, self.brought % 2
        depth, k = how.size[2], how.block[2]
        s.wait(MTE1, MTE2, slot)
        for side, (rows, first, address, _) in enumerate(self.sides(top, left)):
            s.emit(
                "copy_gm_to_cbuf_multi_nd2nz.b8",
                dst=self.numbers(side, slot),
                src=address + how.row_bytes(first * depth + step * k),
                nd_num=1,
                n_value=rows,
                d_value=how.row_bytes(k * how.step),
                src_d_value=how.row_bytes(depth),
                dst_nz_c0_stride=rows,
                dst_nz_n_stride=1,
            )
        s.set(MTE2, MTE1, slot)

    def bring_scales(self, top: int, left: int, step: int) -> None:
        s, how, slot = self.s, self.how, self.scales % 2
        depth, k = how.size[2], how.block[2]
        kept = min(how.step * how.scale_step, depth // k - step)
        pairs = k * kept // (2 * SCALED)
        s.wait(MTE1, MTE2, 2 + slot)
        for side, (rows, first, _, address) in enumerate(self.sides(top, left)):
            s.emit(
                "copy_gm_to_cbuf_multi_dn2nz.b16",
                dst=self.scale_place(side, slot),
                src=address + (first * depth + step * k) // SCALED,
                nd_num=1,
                n_value=rows,
                d_value=pairs,
                src_d_value=depth // (2 * SCALED),
                dst_nz_c0_stride=pairs,
                dst_nz_n_stride=1,
            )
        s.set(MTE2, MTE1, 2 + slot)

    def multiply(self, step: int) -> None:
        s, how, half = self.s, self.how, self.mads % 2
        self.mads += 1
        k = how.block[2]
        kept, scale_part = how.step * how.scale_step, k // (2 * SCALED)
        apart = min(kept, how.size[2] // k - step // kept * kept) * scale_part
        l0, mx = half * 0x8000, half * 0x800
        s.wait(M, MTE1, half)
        if step % how.step == 0:
            s.wait(MTE2, MTE1, self.brought % 2)
        if step % kept == 0:
            s.wait(MTE2, MTE1, 2 + self.scales % 2)
        for side, rows in enumerate(how.block[:2]):
            name = "load_cbuf_to_ca" if side == 0 else "load_cbuf_to_cb"
            size = rows * how.row_bytes(k)
            source = self.numbers(side, self.brought % 2) + step % how.step * size
            s.emit(f"{name}.s8", dst=l0, src=source, src_stride=1, repeat=size // 512)
            source = self.scale_place(side, self.scales % 2) + step % kept * scale_part * 32
            s.emit(
                f"{name}_mx",
                dst=mx,
                src=source,
                x_step=rows // 16,
                y_step=scale_part,
                src_stride=apart,
                dst_stride=scale_part,
            )
        s.flag(MTE1, M, half)
        if step == 0:
            s.wait(FIX, M)
        sizes = dict(zip("mnk", how.block, strict=True))
        operands = {"c": 0, "a": l0, "b": l0, "a_mx": mx, "b_mx": mx}
        s.emit(f"mad_mx.{how.kind}", init=int(step == 0), **operands, **sizes)
        s.set(M, MTE1, half)
