"""Kernels whose loops were unrolled and whose operations were reordered compute the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kernel_support import Array
from tile_kernels import PIPELINE, UNTOUCHED, chain, run_tiles, tile_loop

UNARY = ("vexp", "vabs", "vrelu", "vabs", "vrelu", "vabs", "vrelu", "vabs")


def values(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("unroll", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 13])
def test_trip_counts(count: int, unroll: int, cores: int) -> None:
    """Whole loops, remainders and loops of a computed length, or of none, do every tile once."""
    size = 64
    x = values(count * size)
    for dynamic in (False, True) if cores == 1 else (True,):
        text = tile_loop(chain("vabs", "vrelu"), count, size, unroll, cores=cores, dynamic=dynamic)
        assert np.array_equal(run_tiles(text, [x]).outputs[0], np.abs(x))


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [8, 16, 120, 136, 1000, 16384])
def test_sizes_and_slots(size: int, slots: int) -> None:
    text = tile_loop(chain("vabs", "vrelu"), 5, size, 5, min(slots, 200000 // (8 * size)), 1)
    x = values(5 * size)
    assert np.array_equal(run_tiles(text, [x]).outputs[0], np.abs(x))


@pytest.mark.parametrize("cores", [1, 2, 32])
def test_tiles_overlap(cores: int) -> None:
    """The time of a chain of dependent operations is filled with the work of other tiles."""
    size, count = 512, 8 * cores
    x = values(size * count)
    plain = run_tiles(tile_loop(chain(*UNARY), count, size, 0, cores=cores), [x])
    text = tile_loop(chain(*UNARY), count, size, 8, 4, 3, cores=cores)
    ordered = run_tiles(text, [x])
    assert np.array_equal(ordered.outputs[0], plain.outputs[0])
    assert ordered.profile.cycles < 0.7 * plain.profile.cycles


class RandomBody:
    """A loop body of random operations on buffers that are written as a whole, or half by half."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.written: list[str] = []
        self.names = 0

    def text(self) -> str:
        for number in range(self.random.randint(3, 7)):
            slots = self.random.choice(["SLOTS", "TEMPORARIES", ""])
            self.lines.append(f"%b{number} = memref.alloc() {slots} : !ub")
            self.copy("%in0" if number else "%in1", f"%b{number}")
            self.written.append(f"%b{number}")
        for _ in range(self.random.randint(5, 25)):
            self.operation()
        self.lines.append(f'"cce.copy"({self.pick()}, %out) : (!ub, !tile) -> ()')
        return "\n".join(self.lines)

    def pick(self) -> str:
        return self.random.choice(self.written)

    def copy(self, source: str, target: str) -> None:
        self.lines.append(f'"cce.copy"({source}, {target}) : (!tile, !ub) -> ()')

    def operation(self) -> None:
        kind = self.random.choice(["load", "unary", "binary", "binary", "half", "scalar", "fill"])
        if kind == "load":
            self.copy(self.random.choice(["%in0", "%in1"]), self.pick())
        elif kind == "unary":
            name = self.random.choice(["vabs", "vrelu"])
            self.lines.append(f'"cce.{name}"({self.pick()}, {self.pick()}) : (!ub, !ub) -> ()')
        elif kind == "binary":
            name = self.random.choice(["vmax", "vmin", "vsub"])
            operands = ", ".join(self.pick() for _ in range(3))
            self.lines.append(f'"cce.{name}"({operands}) : (!ub, !ub, !ub) -> ()')
        elif kind == "half":
            views = [self.half(self.pick()) for _ in range(2)]
            self.lines.append(f'"cce.vabs"({", ".join(views)}) : (!half, !half) -> ()')
        elif kind == "fill":
            self.lines.append(f'"cce.vector_dup"(%f, {self.pick()}) : (f32, !ub) -> ()')
        else:
            self.scalar()

    def half(self, buffer: str) -> str:
        self.names += 1
        name = f"%h{self.names}"
        self.lines.append(f"{name} = memref.subview {buffer}[%half] [64] [1] : !ub to !half")
        return name

    def scalar(self) -> None:
        """An element goes through the scalar unit, or tells where something is read."""
        self.names += 1
        name, source = f"%s{self.names}", self.pick()
        if self.random.random() < 0.5:
            self.lines.append(f"{name} = memref.load {source}[%one] : !ub")
            self.lines.append(f"memref.store {name}, {self.pick()}[%zero] : !ub")
            return
        self.lines += [
            f"{name} = memref.load %places[%zero] : !places",
            f"{name}i = arith.index_cast {name} : i32 to index",
            f"{name}v = memref.subview %in0_all[{name}i] [128] [1] : !gm to !tile",
        ]
        self.copy(f"{name}v", self.pick())


def random_kernel(seed: int) -> str:
    chosen = random.Random(seed)
    text = tile_loop(
        RandomBody(seed).text(),
        count=chosen.choice([1, 2, 5, 6]),
        size=128,
        unroll=chosen.choice([1, 2, 3, 8]),
        slots=chosen.choice([1, 2, 3]),
        temporaries=chosen.choice([1, 2]),
        inputs=2,
        dynamic=chosen.random() < 0.3,
        before="%f = arith.constant 0.5 : f32\n%half = arith.constant 64 : index\n"
        "%places = memref.reinterpret_cast %zeros to offset: [0], sizes: [1], strides: [1]"
        " : memref<8xi32> to !places",
    )
    half = '!half = memref<64xf32, strided<[1], offset: ?>, #cce.space<"UB">>'
    types = f"!places = memref<1xi32, strided<[1]>>\n{half}\n"
    return types + text.replace("func.func @k(", "func.func @k(%zeros: memref<8xi32>, ")


@pytest.mark.parametrize("seed", range(40))
def test_random_kernel(seed: int) -> None:
    text = random_kernel(seed)
    elements = int(text.partition("!gm = memref<")[2].partition("x")[0])
    inputs = [np.zeros(8, np.int32), values(elements, seed), values(elements, seed + 1)]
    plain = run_tiles(text, inputs, pipeline=UNTOUCHED)
    ordered = run_tiles(text, inputs, pipeline=PIPELINE)
    assert np.array_equal(ordered.outputs[0], plain.outputs[0])
