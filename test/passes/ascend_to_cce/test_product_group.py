"""Products with what follows them in one kernel: random shapes, layouts, chains, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support import compile_text

Array = npt.NDArray[Any]

SIZES = (1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 64, 97, 112, 128, 160, 257)
DTYPES = {"f16": np.float16, "f32": np.float32}
NZ = ', #ascend.layout<"nz">'
ERF = np.vectorize(math.erf, otypes=[np.float64])

UNARY: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "abs": np.abs,
    "neg": np.negative,
    "gelu": lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2,
}


@dataclass
class Chain:
    """A product and elementwise operators behind it, as text and as numbers.

    Operands and the result are in rows or fractals at random; what the product's kernel may not
    take in is changed by others. Values stay small, so that errors are those of f16: each of at
    most eight steps rounds to 2^-11 of values below 16.
    """

    seed: int
    lines: list[str] = field(default_factory=list)
    arguments: list[tuple[str, Array]] = field(default_factory=list)
    results: list[tuple[str, str, Array]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.m, self.k, self.n = (int(self.rng.choice(SIZES)) for _ in range(3))
        self.batch = int(self.rng.choice((0, 0, 1, 2, 5)))
        self.count = 0
        self._product()
        for _ in range(self.rng.integers(0, 6)):
            self._step()
        self._return()

    def chance(self) -> bool:
        return bool(self.rng.integers(2))

    def kind(self, shape: tuple[int, ...], element: str, nz: bool = False) -> str:
        return f"tensor<{''.join(f'{n}x' for n in shape)}{element}{NZ if nz else ''}>"

    def op(
        self, name: str, operands: list[tuple[str, str]], kind: str, attributes: str = ""
    ) -> str:
        self.count += 1
        names, types = ", ".join(v for v, _ in operands), ", ".join(t for _, t in operands)
        result = f"%v{self.count}"
        given = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f'{result} = "ascend.{name}"({names}){given} : ({types}) -> {kind}')
        return result

    def argument(
        self, shape: tuple[int, ...], element: str, scale: float = 1.0
    ) -> tuple[str, Array]:
        data = np.clip(self.rng.standard_normal(shape) * scale, -3, 3).astype(DTYPES[element])
        name = f"%arg{len(self.arguments)}"
        self.arguments.append((f"{name}: {self.kind(shape, element)}", data))
        return name, data

    def lead(self) -> tuple[int, ...]:
        return (self.batch,) if self.batch else ()

    def laid(self, name: str, shape: tuple[int, ...], element: str, nz: bool) -> tuple[str, str]:
        """A value in rows, or in fractals if `nz`, and its type."""
        kind = self.kind(shape, element)
        if not nz:
            return name, kind
        made = self.kind(shape, element, nz)
        return self.op("relayout", [(name, kind)], made), made

    def _product(self) -> None:
        operands, values, flags = [], [], []
        for side, shape in (("a", (self.m, self.k)), ("b", (self.k, self.n))):
            turned = self.chance()
            stored = (*self.lead(), *(shape[::-1] if turned else shape))
            name, data = self.argument(stored, "f16", self.k**-0.25)
            operands.append(self.laid(name, stored, "f16", self.chance()))
            values.append(data.astype(np.float64).swapaxes(-1, -2) if turned else data)
            flags += [f"transpose_{side}"] if turned else []
        self.nz, self.element = self.chance(), str(self.rng.choice(("f16", "f32")))
        self.shape = (*self.lead(), self.m, self.n)
        kind = self.kind(self.shape, self.element, self.nz)
        name = "batch_matmul" if self.batch else "matmul"
        self.value = self.op(name, operands, kind, ", ".join(flags))
        self.data = values[0].astype(np.float64) @ values[1].astype(np.float64)

    def now(self) -> tuple[str, str]:
        return self.value, self.kind(self.shape, self.element, self.nz)

    def _step(self) -> None:
        step = str(self.rng.choice(("unary", "scale", "row", "residual", "cast", "keep")))
        kind = self.now()[1]
        if step == "unary":
            name = str(self.rng.choice(list(UNARY)))
            self.value = self.op(name, [self.now()], kind)
            self.data = UNARY[name](self.data)
        elif step == "scale":
            full = self.op("full", [], kind, f"value = 5.0e-1 : {self.element}")
            self.value = self.op("mul", [self.now(), (full, kind)], kind)
            self.data = self.data * 0.5
        elif step == "row":
            each = bool(self.batch) and self.chance()
            shape = (*(self.lead() if each else ()), self.n)
            name, data = self.argument(shape, self.element)
            dims = f"{'0, ' if each else ''}{len(self.shape) - 1}"
            made = self.kind(self.shape, self.element, self.nz)
            row = (name, self.kind(shape, self.element))
            wide = self.op("broadcast", [row], made, f"dims = array<i64: {dims}>")
            self.value = self.op("add", [(wide, made), self.now()], kind)
            self.data = self.data + (data[:, None, :] if each else data)
        elif step == "residual":
            name, data = self.argument(self.shape, self.element)
            other = self.laid(name, self.shape, self.element, self.nz)
            self.value = self.op("sub", [self.now(), other], kind)
            self.data = self.data - data
        elif step == "cast":
            self.element = "f16" if self.element == "f32" else "f32"
            made = self.kind(self.shape, self.element, self.nz)
            self.value = self.op("cast", [(self.value, kind)], made)
        elif len(self.results) < 1:
            self._return()
        if np.abs(self.data).max(initial=0) > 12:
            self.value = self.op("tanh", [self.now()], self.now()[1])
            self.data = np.tanh(self.data)

    def _return(self) -> None:
        value, kind = self.now()
        if self.nz:
            rows = self.kind(self.shape, self.element)
            value, kind = self.op("relayout", [(value, kind)], rows), rows
        self.results.append((value, kind, self.data))

    def text(self) -> str:
        names, types = (
            ", ".join(v for v, _, _ in self.results),
            ", ".join(t for _, t, _ in self.results),
        )
        given = ", ".join(text for text, _ in self.arguments)
        body = "\n".join(self.lines)
        return f"func.func @main({given}) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}"

    def check(self, **options: Any) -> list[str]:
        """Runs it and compares; names of the kernels."""
        executable = compile_text(self.text(), **options)
        found = executable.run(*(data for _, data in self.arguments)).values()
        for (_, _, wanted), values in zip(self.results, found, strict=True):
            np.testing.assert_allclose(
                values, wanted, rtol=2e-3, atol=8 * 16 * 2**-11, err_msg=f"seed {self.seed}"
            )
        return [launch.name for launch in executable.launches]


@pytest.mark.parametrize("seed", range(8))
def test_random_chains(seed: int) -> None:
    machine = ("ascend910", "ascend310")[seed % 2]
    Chain(seed).check(machine=machine, cores=(1, 2, 5, 32)[seed // 2 % 4] if seed % 2 == 0 else 1)


@pytest.mark.parametrize(
    ("n", "element"),
    [(1, "f32"), (5, "f16"), (15, "f32"), (17, "f16"), (17, "f32"), (31, "f16"), (100, "f32")],
)
def test_rows_that_end_inside_a_block(n: int, element: str) -> None:
    """A bias and a residual of them join the kernel; what lies behind them in GM does no harm."""
    c, row = f"tensor<33x{n}x{element}>", f"tensor<{n}x{element}>"
    of_a, of_b = "tensor<33x20xf16>", f"tensor<20x{n}xf16>"
    text = f"""func.func @main(%a: {of_a}, %b: {of_b}, %x: {row}, %r: {c}) -> {c} {{
      %0 = "ascend.matmul"(%a, %b) : ({of_a}, {of_b}) -> {c}
      %1 = "ascend.broadcast"(%x) {{dims = array<i64: 1>}} : ({row}) -> {c}
      %2 = "ascend.add"(%0, %1) : ({c}, {c}) -> {c}
      %3 = "ascend.mul"(%2, %r) : ({c}, {c}) -> {c}
      return %3 : {c}
    }}"""
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((33, 20), (20, n)))
    x, r = (rng.integers(-3, 4, s).astype(DTYPES[element]) for s in ((n,), (33, n)))
    executable = compile_text(text, cores=2)
    (found,) = executable.run(a, b, x, r).values()
    np.testing.assert_array_equal(found, (a @ b + x) * r)
    assert len(executable.launches) == 1


@pytest.mark.parametrize("m", [1, 17])
@pytest.mark.parametrize("n", [24, 48])
def test_a_bias_of_fewer_bytes(m: int, n: int) -> None:
    """A row of f16 becomes f32 in the product's kernel, also where all of C is one row."""
    c, row = f"tensor<{m}x{n}xf32>", f"tensor<{n}xf16>"
    of_a, of_b = f"tensor<{m}x40xf16>", f"tensor<40x{n}xf16>"
    executable = compile_text(
        f"""
        func.func @main(%a: {of_a}, %b: {of_b}, %r: {row}) -> {c} {{
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({of_a}, {of_b}) -> {c}
          %1 = stablehlo.broadcast_in_dim %r, dims = [1] : ({row}) -> tensor<{m}x{n}xf16>
          %2 = stablehlo.convert %1 : (tensor<{m}x{n}xf16>) -> {c}
          %3 = stablehlo.add %0, %2 : {c}
          return %3 : {c}
        }}"""
    )
    rng = np.random.default_rng(m + n)
    a, b, r = (rng.standard_normal(s).astype(np.float16) for s in ((m, 40), (40, n), (n,)))
    (found,) = executable.run(a, b, r).values()
    # Products of f16 are exact in f32, which sums of 41 numbers round.
    np.testing.assert_allclose(found, a.astype(np.float64) @ b + r.astype(np.float64), atol=2e-5)
    assert len(executable.launches) == 1
