"""Kernels of Triton as the vendor's compilers make them, beside the same function by our passes.

    python benchmarks/speed/vendor_kernels.py
    python benchmarks/speed/vendor_kernels.py --write

Both run with data on the simulated 910B and must agree. Of the kernel of Triton some choices of
tiles are tried, the quickest counts; our passes choose for themselves. `--write` puts the table
into docs/triton.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import parser
from page_section import print_table

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import davinci.triton
import triton_kernels
from davinci.errors import CompileError

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "triton.md"
SECTION = "beside our passes"
MACHINE = "ascend910b"
CORES = 48
"""Vector cores; there are half as many cube cores."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Arrays:
    """Shapes and element types of the inputs, whose names are those of the model, and of the
    output."""

    inputs: Mapping[str, tuple[str, tuple[int, ...]]]
    output: tuple[str, tuple[int, ...]]

    def random(self) -> dict[str, Array]:
        rng = np.random.default_rng(0)
        made: dict[str, Array] = {}
        for name, (kind, shape) in self.inputs.items():
            if kind == "int32":
                made[name] = rng.integers(0, ROWS_OF_TABLE, shape).astype(kind)
            else:
                made[name] = (rng.standard_normal(shape) / 2).astype(kind)
        return made


@dataclass(frozen=True)
class Case:
    """A function, as a kernel of Triton and as a model.

    Attributes:
        label: what it computes, with its sizes.
        kernel: the name in `test/triton_kernels.py`.
        arrays: what it takes, in the order of the kernel's parameters, and gives.
        rest: the other arguments of the kernel, in order.
        tries: grid and constants that are tried.
        nodes: of the ONNX model, in its text form; the result is `out`.
    """

    label: str
    kernel: str
    arrays: Arrays
    rest: Sequence[float]
    tries: Sequence[tuple[tuple[int, ...], Mapping[str, int]]]
    nodes: str


ROWS_OF_TABLE = 5000
TYPES = {"float32": "float", "float16": "float16", "int32": "int32"}
MOST_APART = {"float32": 2e-4, "float16": 4e-3}


def flat(n: int, *names: str) -> Arrays:
    return Arrays(dict.fromkeys(names, ("float32", (n,))), ("float32", (n,)))


def blocks_of(n: int, *sizes: int) -> list[tuple[tuple[int, ...], dict[str, int]]]:
    """A grid for each size of a block."""
    return [((-(-n // size),), {"BLOCK": size}) for size in sizes]


def tiles_of(m: int, n: int, *tiles: tuple[int, int, int]) -> list[Any]:
    return [((-(-m // a) * -(-n // b),), {"M": a, "N": b, "K": c}) for a, b, c in tiles]


F32, F16 = "float32", "float16"
NORM = "float32", (768,)
CASES = (
    Case("sum, 600,000 f32", "add", flat(600_000, "x", "y"), [600_000],
         blocks_of(600_000, 2048, 8192, 12_288), "out = Add(x, y)"),
    Case("SiLU, 200,000 f32", "silu", flat(200_000, "x"), [200_000],
         blocks_of(200_000, 1024, 4096, 8192), "s = Sigmoid(x)\nout = Mul(x, s)"),
    Case("softmax, 1,024 x 1,000 f32", "softmax",
         Arrays({"x": (F32, (1024, 1000))}, (F32, (1024, 1000))), [1024, 1000, 1000],
         [((CORES,), {"BLOCK": 1024})], "out = Softmax<axis = -1>(x)"),
    Case("layer norm, 512 x 768 f16", "layer_norm",
         Arrays({"x": (F16, (512, 768)), "scale": (F16, (768,)), "shift": (F16, (768,))},
                (F16, (512, 768))),
         [768, 768, 1e-5], [((512,), {"BLOCK": 1024})],
         "out = LayerNormalization<axis = -1, epsilon = 1e-5>(x, scale, shift)"),
    Case("RMS norm, 256 x 2,048 f32", "rms_norm",
         Arrays({"x": (F32, (256, 2048)), "scale": (F32, (2048,))}, (F32, (256, 2048))),
         [2048, 2048, 1e-5], [((256,), {"BLOCK": size}) for size in (512, 2048)],
         "s = Mul(x, x)\nm = ReduceMean<axes = [-1]>(s)\ne = Constant<value_float = 1e-5>()\n"
         "a = Add(m, e)\nr = Sqrt(a)\nd = Div(x, r)\nout = Mul(d, scale)"),
    Case("sums of rows, 1,024 x 1,000 f32", "row_sums",
         Arrays({"x": (F32, (1024, 1000))}, (F32, (1024,))), [1000, 1000],
         [((1024,), {"BLOCK": 1024})], "out = ReduceSum<keepdims = 0>(x, axes)"),
    Case("product, 512 x 512 x 512 f16", "matmul",
         Arrays({"a": (F16, (512, 512)), "b": (F16, (512, 512))}, (F16, (512, 512))),
         [512, 512, 512, 512, 1, 512, 1, 512, 1],
         tiles_of(512, 512, (64, 64, 64), (128, 128, 64), (128, 64, 128)), "out = MatMul(a, b)"),
    Case("attention, 4 heads of 1,024 x 64 f16", "attention",
         Arrays(dict.fromkeys("qkv", (F16, (4, 1024, 64))), (F16, (4, 1024, 64))), [0.125],
         [((1024 // rows, 4), {"ROWS": rows, "LENGTH": 1024, "DEPTH": 64, "COLUMNS": columns,
                               "CAUSAL": 0}) for rows, columns in ((64, 64), (64, 128))],
         "t = Transpose<perm = [0, 2, 1]>(k)\ns = MatMul(q, t)\n"
         "f = Constant<value_float = 0.125>()\nh = Cast<to = 10>(f)\nm = Mul(s, h)\n"
         "p = Softmax<axis = -1>(m)\nout = MatMul(p, v)"),
    Case("rotary embedding, 512 x 128 f32", "rotary",
         Arrays({"x": (F32, (512, 128)), "cosine": (F32, (512, 64)), "sine": (F32, (512, 64))},
                (F32, (512, 128))), [], [((512,), {"HALF": 64})],
         "a, b = Split<axis = 1>(x)\nac = Mul(a, cosine)\nbs = Mul(b, sine)\n"
         "bc = Mul(b, cosine)\nas = Mul(a, sine)\nu = Sub(ac, bs)\nw = Add(bc, as)\n"
         "out = Concat<axis = 1>(u, w)"),
    Case("1,000 rows of a table of 5,000 x 512 f32", "gather_rows",
         Arrays({"table": (F32, (ROWS_OF_TABLE, 512)), "rows": ("int32", (1000,))},
                (F32, (1000, 512))), [], [((1000,), {"WIDTH": 512})],
         "out = Gather<axis = 0>(table, rows)"),
    Case("transpose, 128 x 128 f32", "transposed",
         Arrays({"x": (F32, (128, 128))}, (F32, (128, 128))), [],
         [((1,), {"ROWS": 128, "COLUMNS": 128})], "out = Transpose<perm = [1, 0]>(x)"),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """Times of one of the two programs of a case, the vendor's compiler's or ours.

    Attributes:
        out: its result.
        time_us: in all.
        cores_us: of that from the first to the last instruction, without the price of launches.
        launches: how many.
        cores: how many work at the same time, at most.
        bytes_moved: from and to global memory.
        scalar_accesses: of memory by the scalar unit.
        instructions: how many units but the scalar one get.
        busiest: its busiest pipe and how busy that is.
        tiles: of the kernel of Triton.
    """

    out: Array
    time_us: float
    cores_us: float
    launches: int
    cores: int
    bytes_moved: int
    scalar_accesses: int
    instructions: int
    busiest: str
    tiles: str = ""


def measured(profile: Mapping[str, Any], out: Array, tiles: str = "") -> Run:
    """Reads the times of a run out of its profile."""
    kernels, pipes = profile["kernels"], profile["pipes"]
    busiest = max(pipes, key=lambda pipe: pipes[pipe]["busy_cycles"])
    found = pipes[busiest]
    return Run(
        out,
        profile["time_us"],
        profile["total_cycles"] / profile["clock_mhz"],
        sum(kernel["launches"] for kernel in kernels),
        max(min(kernel["blocks"], cores_of(kernel)) for kernel in kernels),
        sum(kernel["gm_read_bytes"] + kernel["gm_write_bytes"] for kernel in kernels),
        sum(kernel["scalar_accesses"] for kernel in kernels),
        sum(kernel["instructions"] for kernel in kernels),
        f"{busiest.removeprefix('PIPE_')} {found['ratio']:.0%}",
        tiles,
    )


def cores_of(kernel: Mapping[str, Any]) -> int:
    """The number of cores of a machine that are of the kind that runs a kernel."""
    return CORES if kernel["unit"] == "vector" else CORES // 2


def by_theirs(case: Case, given: Mapping[str, Array]) -> Run:
    """The quickest choice of tiles of the kernel of Triton.

    Raises:
        CompileError: none compiles.
    """
    kernel, runs, refused = getattr(triton_kernels, case.kernel), [], None
    for grid, constants in case.tries:
        out = np.zeros(case.arrays.output[1], case.arrays.output[0])
        try:
            report = davinci.triton.run(kernel, grid, *given.values(), out, *case.rest, **constants)
        except CompileError as error:
            refused = error
            continue
        tiles = " ".join(f"{name}={size}" for name, size in constants.items())
        runs.append(measured(report.profile, out, tiles))
    if not runs:
        assert refused is not None, "something was tried"
        raise refused
    return min(runs, key=lambda run: run.time_us)


def model_of(case: Case) -> Any:
    """The function as an ONNX model."""

    def declared(name: str, kind: str, shape: Sequence[int]) -> str:
        return f"{TYPES[kind]}[{', '.join(map(str, shape))}] {name}"

    inputs = ", ".join(declared(name, *spec) for name, spec in case.arrays.inputs.items())
    constants = "<int64[1] axes = {1}>" if "axes)" in case.nodes else ""
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]>\n'
        f"g ({inputs}) => ({declared('out', *case.arrays.output)}) {constants} {{\n{case.nodes}\n}}"
    )


def by_ours(case: Case, given: Mapping[str, Array]) -> Run:
    """The model by our passes."""
    precision = "fp32" if case.arrays.output[0] == F32 and "MatMul" not in case.nodes else "mixed"
    executable = davinci.compile(model_of(case), machine=MACHINE, precision=precision)
    (out,) = executable.run(dict(given)).values()
    return measured(executable.profile, out)


REASONS = (
    ("launches", "launches", 1.5),
    ("scalar_accesses", "accesses of the scalar unit", 1.5),
    ("bytes_moved", "bytes moved", 1.3),
    ("instructions", "instructions", 1.5),
)


def why(theirs: Run, ours: Run) -> str:
    """What the slower one does more of, by its counts, or that its pipes wait for each other."""
    slow, fast = (theirs, ours) if theirs.time_us > ours.time_us else (ours, theirs)
    if slow.time_us < 1.05 * fast.time_us:
        return "alike"
    who = "theirs" if slow is theirs else "ours"
    found = []
    for name, what, least in REASONS:
        much, little = getattr(slow, name), getattr(fast, name)
        if much > least * little:
            found.append(f"{much / little:.1f} x {what}" if little else f"{much:,} {what}")
    gap = slow.time_us - fast.time_us
    price = (slow.time_us - slow.cores_us) - (fast.time_us - fast.cores_us)
    if price > gap / 4:
        found.insert(0, f"{price:.1f} us for launching more")
    if slow.cores < fast.cores / 1.3:
        found.append(f"the work on {slow.cores} of {fast.cores} cores")
    return f"{who}: {', '.join(found) or 'pipes that wait for each other'}"


def row(case: Case) -> str:
    """A line of the table.

    Raises:
        SystemExit: the two do not agree.
    """
    given = case.arrays.random()
    theirs, ours = by_theirs(case, given), by_ours(case, given)
    apart = np.abs(theirs.out.astype(np.float64) - ours.out.astype(np.float64))
    most = MOST_APART[case.arrays.output[0]] * max(1.0, float(np.abs(ours.out).max()))
    if not apart.max() <= most:
        sys.exit(f"{case.label}: results are {apart.max():.3g} apart; expected at most {most:.3g}")
    sides = [
        f"{run.time_us:.1f} | {run.cores_us:.1f} | {run.cores} | {run.busiest} "
        f"| {run.bytes_moved / 1e6:.2f}"
        for run in (theirs, ours)
    ]
    ratio = theirs.time_us / ours.time_us
    cells = [case.label, theirs.tiles, *sides, f"{ratio:.2f}", why(theirs, ours)]
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| kernel | its tiles | theirs, us | without launch | cores | busiest | MB | ours, us "
    "| without launch | cores | busiest | MB | theirs / ours | what the slower one has more of |\n"
    + "|---" * 14
    + "|"
)


def main() -> None:
    print_table((__doc__ or "").splitlines()[0], CASES, row, HEAD, (PAGE, SECTION))


if __name__ == "__main__":
    main()
