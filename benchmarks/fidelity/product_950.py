"""Products of f16 by hand for the 950 whose results leave for UB of the vector cores beside the
cube, which compute GELU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hand_written import Stream
from published import FIX, MTE3, V, head, microseconds
from published_products import Product, Rows
from vector_functions import gelu

from davinci.machine import Machine
from davinci.simulator import Device, LaunchProfile

READY, FREE = 0, 1
"""Flags between the cores: a block is in UB, and may be overwritten."""


class _Cube(Rows):
    """Rows of blocks whose halves go to UB of both vector cores."""

    blocks_left = ub_bytes = 0

    def leave(self, top: int, column: int, n: int) -> None:
        """One block of C, as soon as the vector cores have read the one before."""
        s, how = self.s, self.how
        if self.blocks_left:
            s.emit("wait_flag_dev", flag=FREE)
        self.blocks_left += 1
        s.emit(
            "fixpipe_to_ub.f32",
            dst=0,
            src=0,
            n_size=n,
            m_size=how.m,
            src_stride=how.m,
            dst_stride=n,
            split=1,
            core_stride=self.ub_bytes // 32,
        )
        s.emit("ffts_cross_core_sync", pipe=FIX, mode=2, flag=READY)

    def end(self) -> None:
        """Takes back the last block."""
        self.s.emit("wait_flag_dev", flag=FREE)


@dataclass(frozen=True)
class WithGelu:
    """GELU(A B) as f32 of a product, whose blocks are whole.

    Attributes:
        product: how A B is computed.
        machine: that runs it, with a path from L0C to UB.
        rows: of blocks of a core that run, the first ones; 0: all.
    """

    product: Product
    machine: Machine
    rows: int = 0

    def _blocks(self, block: int) -> list[tuple[int, int]]:
        """First row and column of the blocks of a core, in order."""
        how = self.product
        top, left = block % how.down * how.share_m, block // how.down * how.share_n
        count = self.rows or how.share_m // how.m
        return [
            (top + row * how.m, column)
            for row in range(count)
            for column in range(left, left + how.share_n, how.n)
        ]

    def run(self, target: Device) -> LaunchProfile:
        """Launches it; A, B with k along the rows, and C follow each other from byte 512 on."""
        how = self.product

        def cube(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            stream = Stream(core)
            rows = _Cube(stream, how, True)
            rows.ub_bytes = self.machine.buffer("UB").bytes
            top, left = self._blocks(block)[0]
            count = self.rows or how.share_m // how.m
            rows.blocks(top, range(count), left, left + how.share_n)
            rows.end()
            stream.flush()

        def vector(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            stream = Stream(core)
            self._vector(stream, self._blocks(block), core.sub_block)
            stream.flush()

        programs = {"AIC": cube, "AIV": vector}
        return target.launch("product with GELU", programs, [], how.cores)

    def _vector(self, s: Stream, blocks: list[tuple[int, int]], half: int) -> None:
        """GELU of half of the rows of each block."""
        how = self.product
        height, width, depth = how.size
        c = 512 + 2 * depth * (height + width)
        rows, size = how.m // 2, how.m // 2 * how.n * 4
        s.set(MTE3, V)
        for top, column in blocks:
            s.emit("wait_flag_dev", flag=READY)
            s.wait(MTE3, V)
            s.extend(gelu(0, size, size))
            s.emit("ffts_cross_core_sync", pipe=V, mode=2, flag=FREE)
            s.flag(V, MTE3)
            s.emit(
                "copy_ubuf_to_gm",
                dst=c + 4 * (width * (top + half * rows) + column),
                src=size,
                n_burst=rows,
                len_burst=how.n // 8,
                dst_gap=(width - how.n) // 8,
            )
            s.set(MTE3, V)
        s.wait(MTE3, V)

    def times(self) -> tuple[float, float, float, float]:
        """Microseconds of the task, and on average of the cube, of MTE1 and of the vector units."""
        how = self.product
        height, width, depth = how.size
        gm_bytes = 512 + 2 * depth * (height + width) + 4 * height * width
        profile = self.run(Device(self.machine, gm_bytes, data=False))
        scale = how.share_m // how.m / (self.rows or how.share_m // how.m)
        vectors = how.cores * self.machine.core_types["AIV"].count
        pipes = [("M", how.cores), ("MTE1", how.cores), ("V", vectors)]
        times = [
            microseconds(profile.pipes[f"PIPE_{pipe}"], self.machine) * scale / cores
            for pipe, cores in pipes
        ]
        task = microseconds(profile.cycles, self.machine) * scale + head(how.cores, self.machine)
        return task, times[0], times[1], times[2]
