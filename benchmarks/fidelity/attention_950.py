"""Flash attention by hand for the 950, one head: scores and partial results go from L0C to UB of
the vector cores, weights from UB to L1 of the cube core, nothing of them through global memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hand_written import Stream, rows_of
from published import FIX, MTE1, MTE2, MTE3, M, V, nd2nz
from vector_functions import REGISTER, bits, function

from davinci.machine import Machine
from davinci.simulator import Device, LaunchProfile

HEAD = QUERIES = KEYS = 128
"""Elements of a head, queries of a cube core, keys of a tile."""

ROWS = QUERIES // 2
"""Queries of a vector core."""

KB = 1024
SCORES, WEIGHTS, RESULTS = (0, 32 * KB), (64 * KB, 80 * KB), (96 * KB, 128 * KB)
FACTORS, OUT, MOST, SUMS = (160 * KB, 176 * KB), 192 * KB, 224 * KB, 240 * KB
"""Places in UB: two tiles of scores, weights, partial results and factors each, the result, and of
each row its largest score and the sum of its weights, in every lane of a register."""

L1_Q, L1_K, L1_V, L1_P = 0, (32 * KB, 64 * KB), (96 * KB, 128 * KB), (160 * KB, 192 * KB)
L0_SCORES, L0_RESULTS = (0, 64 * KB), (128 * KB, 192 * KB)
"""Places in L0C."""

(SCORES_READY, SCORES_FREE, WEIGHTS_READY, WEIGHTS_FREE, RESULTS_READY, RESULTS_FREE) = range(6)
"""Flags between the cores."""

LOWEST = -3.0e38

VECTOR_REGISTERS = 32
"""Vector registers."""


@lru_cache(maxsize=8)
def beginning() -> list[list[int]]:
    """No scores yet: of each row the lowest number, and no weights."""

    def issue(s: Stream) -> None:
        s.emit("vlds.f32", dst=0, src=SCORES[0])
        s.emit("vmuls_reg.f32", dst=REGISTER, src=0, value=bits(0))
        s.emit("vmins_reg.f32", dst=0, src=REGISTER, value=bits(LOWEST))
        for row in range(ROWS):
            s.emit("vsts.f32", dst=MOST + row * REGISTER, src=0)
            s.emit("vsts.f32", dst=SUMS + row * REGISTER, src=REGISTER)

    return function(issue)


Steps = Callable[[Stream, int, int], None]
"""Instructions on one row: its number, and the first of the registers that it may use."""


def side_by_side(steps: Steps, registers: int) -> list[list[int]]:
    """A function that does the same for all rows: as many rows as there are registers for take
    turns, step by step, so that none waits for the results of its own last step."""
    count = VECTOR_REGISTERS // registers
    rows = [
        rows_of(lambda s, row=row: steps(s, row, row % count * registers * REGISTER))
        for row in range(ROWS)
    ]
    groups = (rows[first : first + count] for first in range(0, ROWS, count))
    body = [one for group in groups for turn in zip(*group, strict=True) for one in turn]
    return [*rows_of(lambda s: s.emit("vf_call", count=len(body))), *body]


@lru_cache(maxsize=8)
def weights(slot: int, scale: float) -> list[list[int]]:
    """Of a tile of scores: weights, what earlier ones are multiplied by, and the sums so far."""

    def steps(s: Stream, row: int, first: int) -> None:
        x, y, most, old, factor, total, *halves = (first + i * REGISTER for i in range(8))
        at = SCORES[slot] + row * 2 * REGISTER
        s.emit("vlds.f32", dst=x, src=at)
        s.emit("vlds.f32", dst=y, src=at + REGISTER)
        s.emit("vlds.f32", dst=old, src=MOST + row * REGISTER)
        s.emit("vlds.f32", dst=total, src=SUMS + row * REGISTER)
        for register in (x, y):
            s.emit("vmuls_reg.f32", dst=register, src=register, value=bits(scale))
        s.emit("vmax_reg.f32", dst=most, src0=x, src1=y)
        s.emit("vcmax_reg.f32", dst=most, src=most)
        s.emit("vdup_reg.f32", dst=most, src=most)
        s.emit("vmax_reg.f32", dst=most, src0=most, src1=old)
        s.emit("vsts.f32", dst=MOST + row * REGISTER, src=most)
        s.emit("vsub_reg.f32", dst=factor, src0=old, src1=most)
        s.emit("vexp_reg.f32", dst=factor, src=factor)
        s.emit("vsts.f32", dst=FACTORS[slot] + row * REGISTER, src=factor)
        for register in (x, y):
            s.emit("vsub_reg.f32", dst=register, src0=register, src1=most)
        for register in (x, y):
            s.emit("vexp_reg.f32", dst=register, src=register)
        for i, register in enumerate((x, y)):
            s.emit("vcvt_reg.f322f16", dst=halves[i], src=register)
            to = WEIGHTS[slot] + row * REGISTER + i * REGISTER // 2
            s.emit("vsts_pk.b32", dst=to, src=halves[i])
        s.emit("vadd_reg.f32", dst=x, src0=x, src1=y)
        s.emit("vcadd_reg.f32", dst=x, src=x)
        s.emit("vdup_reg.f32", dst=x, src=x)
        s.emit("vmula_reg.f32", dst=x, src0=total, src1=factor)
        s.emit("vsts.f32", dst=SUMS + row * REGISTER, src=x)

    return side_by_side(steps, 8)


@lru_cache(maxsize=16)
def results(slot: int, first: bool, last: bool) -> list[list[int]]:
    """Adds a partial result to the result, which is scaled down before; at last by the sums."""

    def steps(s: Stream, row: int, place: int) -> None:
        factor, total, *both = (place + i * REGISTER for i in range(6))
        if not first:
            s.emit("vlds.f32", dst=factor, src=FACTORS[slot] + row * REGISTER)
        if last:
            s.emit("vlds.f32", dst=total, src=SUMS + row * REGISTER)
        for i in range(2):
            out, part = both[i], both[2 + i]
            at = (2 * row + i) * REGISTER
            s.emit("vlds.f32", dst=part, src=RESULTS[slot] + at)
            if not first:
                s.emit("vlds.f32", dst=out, src=OUT + at)
                s.emit("vmula_reg.f32", dst=part, src0=out, src1=factor)
            if last:
                s.emit("vdiv_reg.f32", dst=part, src0=part, src1=total)
            s.emit("vsts.f32", dst=OUT + at, src=part)

    return side_by_side(steps, 8)


@dataclass(frozen=True)
class Attention:
    """softmax(Q K^T / sqrt(HEAD)) V of one head, f16 to f32, without a mask.

    Attributes:
        machine: with paths between cube and vector cores.
        queries, keys: multiples of QUERIES and KEYS; each cube core takes QUERIES of them.
    """

    machine: Machine
    queries: int
    keys: int

    @property
    def gm_bytes(self) -> int:
        return 512 + HEAD * (2 * self.queries + 4 * self.keys + 4 * self.queries)

    @property
    def places(self) -> tuple[int, int, int, int]:
        """Addresses of Q, K, V and the result in global memory."""
        k = 512 + 2 * HEAD * self.queries
        v = k + 2 * HEAD * self.keys
        return 512, k, v, v + 2 * HEAD * self.keys

    def run(self, target: Device, timeline: bool = False) -> LaunchProfile:
        """Launches it."""

        def cube(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            stream = Stream(core)
            _Cube(stream, self, block).whole()
            stream.flush()

        def vector(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            stream = Stream(core)
            _Vector(stream, self, block, core.sub_block).whole()
            stream.flush()

        programs = {"AIC": cube, "AIV": vector}
        return target.launch("attention", programs, [], self.queries // QUERIES, timeline=timeline)


class _Cube:
    """The cube core of a block: scores are a tile ahead of results."""

    def __init__(self, s: Stream, how: Attention, block: int) -> None:
        self.s, self.how = s, how
        self.tiles = how.keys // KEYS
        q, self.k, self.v, _ = how.places
        self.q = q + block * 2 * HEAD * QUERIES

    def whole(self) -> None:
        s = self.s
        s.lend(MTE2, MTE1, 4)
        s.lend(MTE1, M, 2)
        s.lend(M, FIX, 4)
        nd2nz(s, L1_Q, self.q, QUERIES, HEAD, HEAD)
        for tile in range(self.tiles + 1):
            if tile < self.tiles:
                self.scores(tile)
            if tile:
                self.results(tile - 1)
        s.collect(MTE2, MTE1, 4)
        s.collect(MTE1, M, 2)
        s.collect(M, FIX, 4)
        for _ in range(min(2, self.tiles)):
            s.emit("wait_flag_dev", flag=SCORES_FREE)
            s.emit("wait_flag_dev", flag=RESULTS_FREE)

    def scores(self, tile: int) -> None:
        """Q K^T of a tile, whose rows both vector cores get halves of."""
        s, slot = self.s, tile % 2
        s.wait(MTE1, MTE2, slot)
        nd2nz(s, L1_K[slot], self.k + tile * 2 * HEAD * KEYS, KEYS, HEAD, HEAD)
        s.flag(MTE2, MTE1, slot)
        s.wait(M, MTE1, 0)
        s.emit("load_cbuf_to_ca.f16", dst=0, src=L1_Q, src_stride=1, repeat=64)
        s.emit("load_cbuf_to_cb.f16", dst=0, src=L1_K[slot], src_stride=1, repeat=64)
        s.set(MTE1, MTE2, slot)
        self.multiply(0, L0_SCORES[slot], slot)
        self.leave(tile, SCORES[slot], L0_SCORES[slot], (SCORES_READY, SCORES_FREE), slot)

    def results(self, tile: int) -> None:
        """Weights by V of a tile."""
        s, slot = self.s, tile % 2
        s.wait(MTE1, MTE2, 2 + slot)
        nd2nz(s, L1_V[slot], self.v + tile * 2 * HEAD * KEYS, KEYS, HEAD, HEAD)
        s.flag(MTE2, MTE1, 2 + slot)
        s.emit("wait_flag_dev", flag=WEIGHTS_READY)
        s.wait(M, MTE1, 1)
        s.emit("load_cbuf_to_ca.f16", dst=32 * KB, src=L1_P[slot], src_stride=1, repeat=64)
        for k in range(KEYS // 16):
            s.emit(
                "load_cbuf_to_cb.f16",
                dst=32 * KB + k * HEAD * 32,
                src=L1_V[slot] + k * 512,
                src_stride=KEYS // 16,
                repeat=HEAD // 16,
                transpose=1,
            )
        s.set(MTE1, MTE2, 2 + slot)
        s.emit("ffts_cross_core_sync", pipe=MTE1, mode=2, flag=WEIGHTS_FREE)
        self.multiply(1, L0_RESULTS[slot], 2 + slot)
        self.leave(tile, RESULTS[slot], L0_RESULTS[slot], (RESULTS_READY, RESULTS_FREE), 2 + slot)

    def multiply(self, operands: int, c: int, accumulator: int) -> None:
        """One product of operands that were loaded last."""
        s, place = self.s, operands * 32 * KB
        s.flag(MTE1, M, operands)
        s.wait(FIX, M, accumulator)
        s.emit("mad_nz.f162f32", c=c, a=place, b=place, m=QUERIES, k=HEAD, n=KEYS, init=1)
        s.set(M, MTE1, operands)
        s.flag(M, FIX, accumulator)

    def leave(self, tile: int, ub: int, l0c: int, flags: tuple[int, int], accumulator: int) -> None:
        """From L0C to UB, behind what was there two tiles before."""
        s, (ready, free) = self.s, flags
        if tile >= 2:
            s.emit("wait_flag_dev", flag=free)
        s.emit(
            "fixpipe_to_ub.f32",
            dst=ub,
            src=l0c,
            n_size=128,
            m_size=QUERIES,
            src_stride=QUERIES,
            dst_stride=128,
            split=1,
            core_stride=self.how.machine.buffer("UB").bytes // 32,
        )
        s.set(FIX, M, accumulator)
        s.emit("ffts_cross_core_sync", pipe=FIX, mode=2, flag=ready)


class _Vector:
    """A vector core of a block: half of its rows."""

    def __init__(self, s: Stream, how: Attention, block: int, half: int) -> None:
        self.s, self.how, self.half = s, how, half
        self.tiles = how.keys // KEYS
        self.out = how.places[3] + (block * QUERIES + half * ROWS) * 4 * HEAD

    def whole(self) -> None:
        s = self.s
        s.lend(V, MTE3, 2)
        for tile in range(self.tiles + 1):
            if tile < self.tiles:
                self.weights(tile)
            if tile:
                self.results(tile - 1)
        s.collect(V, MTE3, 2)
        s.flag(V, MTE3, 2)
        s.emit("copy_ubuf_to_gm", dst=self.out, src=OUT, n_burst=1, len_burst=ROWS * HEAD // 8)
        for _ in range(min(2, self.tiles)):
            s.emit("wait_flag_dev", flag=WEIGHTS_FREE)

    def weights(self, tile: int) -> None:
        """Weights of a tile, to L1 as blocks of 16 columns."""
        s, slot = self.s, tile % 2
        s.emit("wait_flag_dev", flag=SCORES_READY)
        if tile == 0:
            s.extend(beginning())
        s.wait(MTE3, V, slot)
        s.extend(weights(slot, 1 / math.sqrt(HEAD)))
        s.emit("ffts_cross_core_sync", pipe=V, mode=2, flag=SCORES_FREE)
        s.flag(V, MTE3, slot)
        if tile >= 2:
            s.emit("wait_flag_dev", flag=WEIGHTS_FREE)
        for block in range(KEYS // 16):
            s.emit(
                "copy_ubuf_to_cbuf",
                dst=L1_P[slot] + block * QUERIES * 32 + self.half * ROWS * 32,
                src=WEIGHTS[slot] + block * 32,
                n_burst=ROWS,
                len_burst=1,
                src_gap=KEYS // 16 - 1,
            )
        s.emit("ffts_cross_core_sync", pipe=MTE3, mode=2, flag=WEIGHTS_READY)
        s.set(MTE3, V, slot)

    def results(self, tile: int) -> None:
        """Adds what a tile gives to the result."""
        s = self.s
        s.emit("wait_flag_dev", flag=RESULTS_READY)
        s.extend(results(tile % 2, tile == 0, tile == self.tiles - 1))
        s.emit("ffts_cross_core_sync", pipe=V, mode=2, flag=RESULTS_FREE)
