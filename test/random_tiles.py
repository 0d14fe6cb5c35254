"""Random kernels of loops over tiles."""

from __future__ import annotations

import random

import numpy as np

from kernel_support import Array
from tile_kernels import tile_loop

SIZE = 128
"""Elements of a tile."""


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
        for _ in range(self.random.randint(4, 12)):
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


def tiles_of(seed: int) -> int:
    return random.Random(f"tiles {seed}").choice([1, 2, 5, 6])


def random_kernel(seed: int) -> str:
    """A loop over tiles of two arrays; the first argument is an array of integers."""
    chosen = random.Random(seed)
    text = tile_loop(
        RandomBody(seed).text(),
        count=tiles_of(seed),
        size=SIZE,
        unroll=chosen.choice([1, 2, 3, 6]),
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


def random_inputs(seed: int) -> list[Array]:
    """The inputs of `random_kernel(seed)`."""
    generator = np.random.default_rng(seed)
    arrays = [generator.standard_normal(tiles_of(seed) * SIZE) for _ in range(2)]
    return [np.zeros(8, np.int32), *(array.astype(np.float32) for array in arrays)]
