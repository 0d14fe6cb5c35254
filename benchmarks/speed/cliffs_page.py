"""Operators of StableHLO at two sizes, against their bounds: where a kernel falls off a cliff.

    python benchmarks/speed/cliffs_page.py [--machine NAME ..] [--only TEXT] [--write]

Each operator is a function of JAX, or text where JAX has none, on about 10 thousand and on about a
million elements, compiled alone and simulated without data on all cores. A line shows the unit,
cycles, and cycles over the machine's bound. An operator is above the line if it takes more than
20,000 cycles and more than 20 times its bound. `--write` puts the tables into docs/cliffs.md, with
`--printed FILE ..` those of lines that were printed before. Takes minutes a machine. Needs jax.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from page_section import put_section
from timed import timed

from davinci.errors import DavinciError

PAGE = Path(__file__).parents[2] / "docs" / "cliffs.md"

SMALL, LARGE = (32, 320), (1024, 1024)
MOST_TIMES, MOST_CYCLES = 20, 20000
"""A kernel above both is listed."""

MARK = "**above**"

Shape = tuple[int, ...]
Inputs = Sequence[tuple[Shape, str]]

Models = Mapping[str, Callable[[Shape], Any]]
"""Operators by name: each makes a model for a shape."""


@dataclass(frozen=True)
class Operator:
    """An operator as a function of arrays.

    Attributes:
        inputs: shapes and element types of its arguments, of a shape of one of the two sizes.
    """

    name: str
    model: Callable[..., Any]
    inputs: Callable[[Shape], Inputs]

    def text(self, shape: Shape) -> str:
        """The operator in StableHLO, on arguments of a shape."""
        arguments = [jax.ShapeDtypeStruct(*each) for each in self.inputs(shape)]
        return jax.jit(self.model).lower(*arguments).as_text()


def alike(count: int, kind: str = "float32") -> Callable[[Shape], Inputs]:
    """So many arrays of one type."""
    return lambda shape: [(shape, kind)] * count


def images(channels: int = 16) -> Callable[[Shape], Inputs]:
    """An image of channels, about as many elements as a shape has."""

    def inputs(shape: Shape) -> Inputs:
        side = int((shape[0] * shape[1] / channels) ** 0.5)
        return [((1, side, side, channels), "float32")]

    return inputs


def windows(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def gradient_of_windows(x: Any) -> Any:
    pooled, pull = jax.vjp(windows, x)
    return pull(pooled)[0]


def convolved(x: Any) -> Any:
    weights = np.ones((3, 3, x.shape[3], x.shape[3]), np.float32)
    return lax.conv_general_dilated(
        x, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def normalized(x: Any) -> Any:
    mean = jnp.mean(x, 1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.var(x, 1, keepdims=True) + 1e-5)


def table_and(*others: str) -> Callable[[Shape], Inputs]:
    """A table and 64 indices of its rows, with as many rows if wanted."""

    def inputs(shape: Shape) -> Inputs:
        found: list[tuple[Shape, str]] = [(shape, "float32"), ((64,), "int32")]
        return [*found, *(((64, shape[1]), kind) for kind in others)]

    return inputs


FLOATS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(lax, name) for name in ("abs", "ceil", "cbrt", "cos", "exp", "expm1", "floor")
    },
    **{
        name: getattr(lax, name)
        for name in ("is_finite", "log", "log1p", "logistic", "neg", "rsqrt")
    },
    **{
        name: getattr(lax, name)
        for name in ("sign", "sin", "sqrt", "tan", "tanh", "erf", "erf_inv")
    },
    **{
        name: getattr(jnp, name)
        for name in ("arcsin", "arctan", "sinh", "cosh", "arcsinh", "arctanh")
    },
    "round_nearest_even": jnp.round,
    "softmax": jax.nn.softmax,
    "layer norm": normalized,
    "gelu": jax.nn.gelu,
    "convert to i32": lambda x: x.astype(jnp.int32),
    "convert to f16": lambda x: x.astype(jnp.float16),
    "convert to bf16": lambda x: x.astype(jnp.bfloat16),
    "bitcast_convert": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "reduce_precision": lambda x: lax.reduce_precision(x, 5, 10),
    "reduce add": lambda x: x.sum(1),
    "reduce add, rows": lambda x: x.sum(0),
    "reduce max": lambda x: x.max(1),
    "reduce mul": lambda x: x.prod(1),
    "argmax": lambda x: lax.argmax(x, 1, np.int32),
    "cumsum": lambda x: lax.cumsum(x, 1),
    "cummax": lambda x: lax.cummax(x, 1),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, 1),
    "sort": lambda x: lax.sort(x),
    "argsort": lambda x: jnp.argsort(x),
    "sort, rows": lambda x: lax.sort(x, 0),
    "top-k of 16": lambda x: lax.top_k(x, 16),
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(-1, 5) if x.size % 5 == 0 else x.reshape(-1, 4),
    "reverse": lambda x: lax.rev(x, (1,)),
    "slice": lambda x: x[1:, 3:-2],
    "slice, every other": lambda x: x[:, ::2],
    "pad": lambda x: jnp.pad(x, ((1, 2), (3, 1))),
    "pad, inside": lambda x: lax.pad(x, np.float32(0), ((0, 0, 1), (1, 0, 1))),
    "broadcast_in_dim": lambda x: jnp.broadcast_to(x[:, :1], x.shape) + x[:1],
    "while": lambda x: lax.fori_loop(0, 4, lambda i, v: v * 0.5 + x, x),
}
"""Functions of one array of floats."""

BINARY: dict[str, Callable[..., Any]] = {
    **{name: getattr(lax, name) for name in ("add", "sub", "mul", "div", "max", "min", "pow")},
    **{name: getattr(lax, name) for name in ("atan2", "rem", "nextafter")},
    "compare": lambda x, y: x < y,
    "select": lambda x, y: jnp.where(x < y, x, y),
    "concatenate": lambda x, y: jnp.concatenate([x, y], 1),
    "dot_general": lambda x, y: x @ y.T,
    "clamp": lambda x, y: lax.clamp(np.float32(-1), x, np.float32(1)) + y,
}

WHOLE: dict[str, Callable[..., Any]] = {
    **{name: getattr(lax, name) for name in ("add", "mul", "div", "rem", "max")},
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "shift_left": lambda x, y: lax.shift_left(x, np.int32(3)) + y,
    "shift_right_arithmetic": lambda x, y: lax.shift_right_arithmetic(x, np.int32(3)) + y,
    "shift_right_logical": lambda x, y: lax.shift_right_logical(x, np.int32(3)) + y,
    "popcnt": lambda x, y: lax.population_count(x) + y,
    "clz": lambda x, y: lax.clz(x) + y,
    "compare": lambda x, y: x < y,
    "reduce": lambda x, y: (x + y).sum(1),
}

OPERATORS: tuple[Operator, ...] = (
    *(Operator(name, model, alike(1)) for name, model in FLOATS.items()),
    *(Operator(name, model, alike(2)) for name, model in BINARY.items()),
    *(Operator(f"{name} of i32", model, alike(2, "int32")) for name, model in WHOLE.items()),
    Operator("not of i32", lax.bitwise_not, alike(1, "int32")),
    Operator("reduce or of i1", lambda x: jnp.any(x, 1), alike(1, "bool")),
    Operator("reduce_window", windows, images()),
    Operator("select_and_scatter", gradient_of_windows, images()),
    Operator("convolution", convolved, images()),
    Operator("gather of rows", lambda t, i: t[i], table_and()),
    Operator("scatter of rows", lambda t, i, u: t.at[i].set(u), table_and("float32")),
    Operator("scatter-add of rows", lambda t, i, u: t.at[i].add(u), table_and("float32")),
    Operator(
        "dynamic_slice",
        lambda t, i: lax.dynamic_slice(t, (i[0], i[1] * 0), (8, t.shape[1])),
        table_and(),
    ),
    Operator(
        "dynamic_update_slice",
        lambda t, i, u: lax.dynamic_update_slice(t, u[:8], (i[0], i[1] * 0)),
        table_and("float32"),
    ),
)

TEXT: dict[str, str] = {
    "batch_norm_inference": """
        func.func @main(%x: tensor<{n}x{c}xf32>, %s: tensor<{c}xf32>) -> tensor<{n}x{c}xf32> {{
          %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s)
            <{{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}}>
            : (tensor<{n}x{c}xf32>, tensor<{c}xf32>, tensor<{c}xf32>, tensor<{c}xf32>,
               tensor<{c}xf32>) -> tensor<{n}x{c}xf32>
          return %0 : tensor<{n}x{c}xf32>
        }}""",
    "batch_norm_training": """
        func.func @main(%x: tensor<{n}x{c}xf32>, %s: tensor<{c}xf32>) -> tensor<{n}x{c}xf32> {{
          %0:3 = "stablehlo.batch_norm_training"(%x, %s, %s)
            <{{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}}>
            : (tensor<{n}x{c}xf32>, tensor<{c}xf32>, tensor<{c}xf32>)
            -> (tensor<{n}x{c}xf32>, tensor<{c}xf32>, tensor<{c}xf32>)
          return %0#0 : tensor<{n}x{c}xf32>
        }}""",
    "broadcast": """
        func.func @main(%x: tensor<{c}xf32>) -> tensor<{n}x{c}xf32> {{
          %0 = stablehlo.broadcast %x, sizes = [{n}] : (tensor<{c}xf32>) -> tensor<{n}x{c}xf32>
          return %0 : tensor<{n}x{c}xf32>
        }}""",
    "cholesky": """
        func.func @main(%x: tensor<{n}x{c}xf32>) -> tensor<{b}x16x16xf32> {{
          %0 = stablehlo.reshape %x : (tensor<{n}x{c}xf32>) -> tensor<{b}x16x16xf32>
          %1 = stablehlo.cholesky %0, lower = true : tensor<{b}x16x16xf32>
          return %1 : tensor<{b}x16x16xf32>
        }}""",
    "dot": """
        func.func @main(%x: tensor<{n}x{c}xf32>, %y: tensor<{c}x{n}xf32>) -> tensor<{n}x{n}xf32> {{
          %0 = stablehlo.dot %x, %y : (tensor<{n}x{c}xf32>, tensor<{c}x{n}xf32>)
            -> tensor<{n}x{n}xf32>
          return %0 : tensor<{n}x{n}xf32>
        }}""",
    "einsum": """
        func.func @main(%x: tensor<{n}x{c}xf32>, %y: tensor<{n}x{c}xf32>) -> tensor<{n}x{n}xf32> {{
          %0 = stablehlo.einsum %x, %y, config = "ik,jk->ji"
            : (tensor<{n}x{c}xf32>, tensor<{n}x{c}xf32>) -> tensor<{n}x{n}xf32>
          return %0 : tensor<{n}x{n}xf32>
        }}""",
    "iota": """
        func.func @main(%x: tensor<{n}x{c}xf32>) -> tensor<{n}x{c}xf32> {{
          %0 = stablehlo.iota dim = 1 : tensor<{n}x{c}xf32>
          %1 = stablehlo.add %x, %0 : tensor<{n}x{c}xf32>
          return %1 : tensor<{n}x{c}xf32>
        }}""",
    "map": """
        func.func @main(%x: tensor<{n}x{c}xf32>) -> tensor<{n}x{c}xf32> {{
          %0 = "stablehlo.map"(%x) <{{dimensions = array<i64: 0, 1>}}> ({{
          ^bb0(%a: tensor<f32>):
            %1 = stablehlo.multiply %a, %a : tensor<f32>
            stablehlo.return %1 : tensor<f32>
          }}) : (tensor<{n}x{c}xf32>) -> tensor<{n}x{c}xf32>
          return %0 : tensor<{n}x{c}xf32>
        }}""",
    "round_nearest_afz": """
        func.func @main(%x: tensor<{n}x{c}xf32>) -> tensor<{n}x{c}xf32> {{
          %0 = stablehlo.round_nearest_afz %x : tensor<{n}x{c}xf32>
          return %0 : tensor<{n}x{c}xf32>
        }}""",
    "torch_index_select": """
        func.func @main(%x: tensor<{n}x{c}xf32>, %i: tensor<64xi32>) -> tensor<64x{c}xf32> {{
          %0 = "stablehlo.torch_index_select"(%x, %i) <{{dim = 0 : i64, batch_dims = 0 : i64}}>
            : (tensor<{n}x{c}xf32>, tensor<64xi32>) -> tensor<64x{c}xf32>
          return %0 : tensor<64x{c}xf32>
        }}""",
    "triangular_solve": """
        func.func @main(%x: tensor<{n}x{c}xf32>, %a: tensor<{n}x{n}xf32>) -> tensor<{n}x{c}xf32> {{
          %0 = "stablehlo.triangular_solve"(%a, %x) <{{left_side = true, lower = true,
              unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}>
            : (tensor<{n}x{n}xf32>, tensor<{n}x{c}xf32>) -> tensor<{n}x{c}xf32>
          return %0 : tensor<{n}x{c}xf32>
        }}""",
    "unary_einsum": """
        func.func @main(%x: tensor<{n}x{c}xf32>) -> tensor<{c}xf32> {{
          %0 = "stablehlo.unary_einsum"(%x) <{{einsum_config = "ij->j"}}>
            : (tensor<{n}x{c}xf32>) -> tensor<{c}xf32>
          return %0 : tensor<{c}xf32>
        }}""",
}
"""Operators that JAX does not write: n rows and c columns, or b matrices of 16 x 16."""


def written(text: str) -> Callable[[Shape], str]:
    """An operator of `TEXT` on arguments of a shape."""
    return lambda shape: text.format(n=shape[0], c=shape[1], b=shape[0] * shape[1] // 256)


MODELS: Models = {
    **{each.name: each.text for each in OPERATORS},
    **{name: written(text) for name, text in TEXT.items()},
}

REASONS = {
    "argsort": "a key with its number is two or three planes, each exchange seven instructions",
    "top-k": "as argsort, of runs as long as what is kept, of two of which the smaller keys stay",
    "sort": "a network of log2(n)^2 / 2 steps, each an instruction and a barrier on few repeats",
    "cumlogsumexp": "six instructions and two exponentials in each of log2(n) steps",
    "cos": "some 130 instructions an element: digits up to 2^128 are taken off all of them",
    "sin": "as cos",
    "tan": "as cos, twice",
    "rem": "26 steps of a long division, exact for all of f32",
    "select_and_scatter": "nine positions of a window, each a slice, two choices and a sum",
    "cholesky": "16 columns one after the other, a kernel for nearly each",
    "triangular_solve": "ten kernels, each of which waits for the one before, for 32 rows",
}
"""Why an operator is above the line, by the beginning of its name."""


@dataclass(frozen=True)
class Found:
    """What one operator takes at one size."""

    unit: str
    cycles: int
    bound: int

    @property
    def times(self) -> float:
        return self.cycles / max(1, self.bound)

    @property
    def above(self) -> bool:
        return self.cycles > MOST_CYCLES and self.times > MOST_TIMES


def measured(model: Any, machine: str) -> Found | str:
    """Cycles of a model, or why there are none."""
    try:
        profile = timed(model, machine=machine).profile
    except DavinciError as error:
        return str(error).splitlines()[0][:60]
    longest = max(profile["kernels"], key=lambda k: k["cycles"], default={"unit": "none"})
    return Found(longest["unit"], profile["total_cycles"], profile["bound_cycles"])


def cells(found: Found | str) -> str:
    if isinstance(found, str):
        return f"{found} | |"
    mark = f" {MARK}" if found.above else ""
    return f"{found.unit} | {found.cycles:,} | {found.times:,.1f}{mark}"


def lines_of(rows: Models, machine: str, only: str) -> list[str]:
    """A line of the table for each operator, printed as they come."""
    lines = []
    for name, model_of in ((name, model_of) for name, model_of in rows.items() if only in name):
        found = [measured(model_of(shape), machine) for shape in (SMALL, LARGE)]
        lines.append(f"| {name} | {' | '.join(map(cells, found))} |")
        print(lines[-1], flush=True)
    return lines


def table_of(title: str, lines: Sequence[str], known: Mapping[str, str]) -> str:
    """A table, and what is above the line with the reason, if it is known."""
    head = "| operator | unit, 10 k | cycles | over bound | unit, 1 M | cycles | over bound |"
    above = [line.split("|")[1].strip() for line in lines if MARK in line]
    text = [f"## {title}", "", head, "|---|---|---:|---:|---|---:|---:|", *lines, ""]
    text += [f"{len(above)} of {len(lines)} operators are above the line.", ""]
    for name in above:
        reasons = (why for start, why in known.items() if name.startswith(start))
        text.append(f"* {name}: {next(reasons, 'not looked at yet')}")
    return "\n".join(text)


def run(text: str, rows: Models, reasons: Mapping[str, str], section: str, kind: str = "") -> int:
    """The command line of a script that makes tables of a section of the page.

    Args:
        text: what the script is for.
        reasons: why an operator is above the line, by the beginning of its name.
        kind: what the title of a table has before the machine.
    """
    parser = argparse.ArgumentParser(description=text.partition("\n\n")[0])
    parser.add_argument("--machine", nargs="*", default=["ascend910"])
    parser.add_argument("--only", default="", help="operators whose names contain this")
    parser.add_argument(
        "--printed", type=Path, nargs="*", help="lines printed before, a file for each machine"
    )
    parser.add_argument("--write", action="store_true", help="put the tables into docs/cliffs.md")
    options = parser.parse_args()
    files = options.printed or [None] * len(options.machine)
    if len(files) != len(options.machine):
        parser.error("--printed wants a file for each machine")
    tables = []
    for machine, file in zip(options.machine, files, strict=True):
        printed = file.read_text(encoding="utf-8").splitlines() if file else ()
        found = [line for line in printed if line.startswith("|")]
        lines = found or lines_of(rows, machine, options.only)
        tables.append(table_of(kind + machine, lines, reasons))
    if options.write:
        put_section(PAGE, section, "\n\n".join(tables))
    return 0


if __name__ == "__main__":
    sys.exit(run(str(__doc__), MODELS, REASONS, "tables"))
