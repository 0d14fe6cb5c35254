"""Random chains of operators that move elements, as NumPy arrays and as text of one kernel."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.operators import OPERATORS, Tensor
from davinci.operators.fractals import to_nz
from davinci.operators.tensors import lanes

Array = npt.NDArray[Any]

SIZES = (1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 31, 33)
ELEMENTS = {"f16": "f2", "f32": "f4", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"}
LARGEST = 6000
"""Elements of a value."""

CAST = "builtin.unrealized_conversion_cast"
NZ = ', #ascend.layout<"nz">'


@dataclass
class Chain:
    """A kernel that grows operator by operator.

    Attributes:
        value: of the last operator.
        inputs: arrays in GM.
        layouts: of each of them, "" or "nz".
    """

    choice: random.Random
    element: str
    value: Array = field(init=False)
    inputs: list[Array] = field(default_factory=list)
    layouts: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape: list[int] = []
        for _ in range(self.choice.randint(1, 4)):
            size = self.choice.choice(SIZES)
            shape.append(size if math.prod(shape) * size <= LARGEST else 1)
        self.value = self.input(tuple(shape))

    @property
    def name(self) -> str:
        return f"%v{len(self.names)}" if self.names else "%i0"

    def input(self, shape: tuple[int, ...]) -> Array:
        count = math.prod(shape)
        values = (np.arange(count) * 7 + len(self.inputs)) % 251 - 125
        self.inputs.append(values.astype(ELEMENTS[self.element]).reshape(shape))
        nz = self.element != "i64" and len(shape) > 1 and self.choice.random() < 0.2
        self.layouts.append("nz" if nz else "")
        return self.inputs[-1]

    def tensor(self, shape: tuple[int, ...], layout: str = "") -> str:
        sizes = "".join(f"{n}x" for n in shape)
        return f"tensor<{sizes}{self.element}{NZ if layout else ''}>"

    def grow(self) -> None:
        """Adds a random operator."""
        made = self.choice.choice((self.transpose, self.slice, self.pad, self.concat))
        if self.choice.random() < 0.35:
            made = self.choice.choice((self.broadcast, self.reshape))
        made()

    def emit(self, name: str, operands: list[tuple[str, str]], attributes: str, to: Array) -> None:
        if to.size == 0 or to.size > LARGEST:
            return
        self.names.append(name)
        result = self.tensor(to.shape)
        names, types = (", ".join(x) for x in zip(*operands, strict=True))
        self.lines.append(
            f'{self.name} = "ascend.{name}"({names}) {{{attributes}}} : ({types}) -> {result}'
        )
        self.value = np.ascontiguousarray(to)

    @property
    def operand(self) -> tuple[str, str]:
        return self.name, self.tensor(self.value.shape)

    def transpose(self) -> None:
        order = list(range(self.value.ndim))
        self.choice.shuffle(order)
        to = self.value.transpose(order)
        self.emit("transpose", [self.operand], f"permutation = {listed(order)}", to)

    def slice(self) -> None:
        bounds = []
        for size in self.value.shape:
            start = self.choice.randrange(size) if self.choice.random() < 0.5 else 0
            limit = self.choice.randint(start + 1, size) if self.choice.random() < 0.5 else size
            bounds.append((start, limit, self.choice.choice((1, 1, 1, 2, 3))))
        names = ("starts", "limits", "strides")
        lists = [listed([b[i] for b in bounds]) for i in range(3)]
        attributes = ", ".join(f"{n} = {x}" for n, x in zip(names, lists, strict=True))
        to = self.value[tuple(slice(*b) for b in bounds)]
        self.emit("slice", [self.operand], attributes, to)

    def pad(self) -> None:
        shape = self.value.shape
        low = [self.choice.choice((0, 0, 1, 2, -1)) for _ in shape]
        high = [self.choice.choice((0, 0, 1, 3, -1)) for _ in shape]
        interior = [self.choice.choice((0, 0, 0, 1, 2)) for _ in shape]
        places = zip(shape, low, high, interior, strict=True)
        result = [n + a + b + (n - 1) * i for n, a, b, i in places]
        if min(result, default=1) < 1:
            return
        number = self.choice.choice((0, 77, -3))
        attributes = {"low": low, "high": high, "interior": interior}
        given = np.array(number, self.value.dtype)
        to = OPERATORS["pad"].values(
            [self.value, given], Tensor(tuple(result), self.element), attributes
        )
        text = f"{number}.0" if self.element.startswith("f") else f"{number}"
        scalar = f"tensor<{self.element}>"
        full = f"%n{len(self.lines)}"
        self.lines.append(
            f'{full} = "ascend.full"() {{value = {text} : {self.element}}} : () -> {scalar}'
        )
        words = ", ".join(f"{name} = {listed(x)}" for name, x in attributes.items())
        self.emit("pad", [self.operand, (full, scalar)], words, to)

    def concat(self) -> None:
        if not self.value.ndim:
            return
        dim = self.choice.randrange(self.value.ndim)
        other, operand = self.value, self.operand
        if self.choice.random() < 0.6:
            shape = list(self.value.shape)
            shape[dim] = self.choice.choice(SIZES[:6])
            other = self.input(tuple(shape))
            operand = (f"%i{len(self.inputs) - 1}", self.tensor(other.shape))
        operands, arrays = [self.operand, operand], [self.value, other]
        if self.choice.random() < 0.5:
            operands, arrays = operands[::-1], arrays[::-1]
        self.emit("concat", operands, f"dim = {dim} : i64", np.concatenate(arrays, dim))

    def broadcast(self) -> None:
        place = self.choice.randint(0, self.value.ndim)
        shape = list(self.value.shape)
        shape.insert(place, self.choice.choice(SIZES[:6]))
        dims = [i for i in range(len(shape)) if i != place]
        to = np.broadcast_to(np.expand_dims(self.value, place), shape)
        self.emit("broadcast", [self.operand], f"dims = {listed(dims)}", to)

    def reshape(self) -> None:
        rest, shape = self.value.size, []
        while rest > 1 and len(shape) < 3:
            shape.append(self.choice.choice([n for n in range(2, rest + 1) if rest % n == 0]))
            rest //= shape[-1]
        shape.append(rest)
        self.emit("reshape", [self.operand], "", self.value.reshape(shape))

    def program(self) -> str:
        """The operators as a program."""
        kinds = [self.tensor(array.shape) for array in self.inputs]
        arguments = ", ".join(f"%i{i}: {kind}" for i, kind in enumerate(kinds))
        (made, kind), lines = self.operand, "\n".join(self.lines)
        return f"func.func @main({arguments}) -> {kind} {{\n{lines}\nreturn {made} : {kind}\n}}"

    def finished(self) -> tuple[str, list[Array], Array]:
        """The kernel, its inputs as they lie in GM, and what it writes."""
        body, arguments, stored = [], [], []
        for i, (array, layout) in enumerate(zip(self.inputs, self.layouts, strict=True)):
            held = to_nz(array, lanes(self.element)) if layout else array
            stored.append(np.ascontiguousarray(held))
            sizes = "".join(f"{n}x" for n in held.shape)
            arguments.append(f"%a{i}: memref<{sizes}{self.element}>")
            buffer = f"memref<{sizes}{self.element}> to tensor<{sizes}{self.element}>"
            body.append(f"%h{i} = bufferization.to_tensor %a{i} restrict : {buffer}")
            kind = self.tensor(array.shape, layout)
            name = f"%z{i}" if layout else f"%i{i}"
            body.append(f"{name} = {CAST} %h{i} : tensor<{sizes}{self.element}> to {kind}")
            if layout:
                rows = self.tensor(array.shape)
                body.append(f'%i{i} = "ascend.relayout"(%z{i}) : ({kind}) -> {rows}')
        made, kind = self.operand
        wanted = self.value
        nz = self.element != "i64" and wanted.ndim > 1 and self.choice.random() < 0.2
        ends = []
        if nz:
            to = self.tensor(wanted.shape, "nz")
            ends.append(f'%last = "ascend.relayout"({made}) : ({kind}) -> {to}')
            made, kind, wanted = "%last", to, to_nz(wanted, lanes(self.element))
        sizes = "".join(f"{n}x" for n in wanted.shape)
        buffer = f"{sizes}{self.element}"
        ends.append(f"%out = {CAST} {made} : {kind} to tensor<{buffer}>")
        ends.append(
            "bufferization.materialize_in_destination %out in restrict writable %r : "
            f"(tensor<{buffer}>, memref<{buffer}>) -> ()"
        )
        lines = "\n".join([*body, *self.lines, *ends])
        arguments.append(f"%r: memref<{buffer}>")
        text = (
            f"func.func @moves({', '.join(arguments)}) attributes {{ascend.kernel}} {{\n"
            f"{lines}\nreturn\n}}"
        )
        return text, stored, np.ascontiguousarray(wanted)


def listed(values: list[int]) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def chain(seed: int) -> Chain:
    """Two to five operators."""
    choice = random.Random(seed)
    made = Chain(choice, choice.choice(list(ELEMENTS)))
    wanted = choice.randint(2, 5)
    while len(made.names) < wanted:
        made.grow()
    return made
