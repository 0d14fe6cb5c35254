"""Removes and moves every flag, barrier and flag between cores of kernels of AscendNPU-IR.

They are what the vendor's compilers make of kernels of Triton (test/triton_kernels.py), and the
correct twins of reported kernels (test/frontends/hivm/reports).

    python benchmarks/proofs/hivm_mutations.py [kernel ...] [--every N] [--write]

Each mutant must be reported by the simulator, or shown harmless by an order worked out
independently (test/fuzz/happens_before.py). Prints the numbers; --write puts them into
docs/checks.md. Exits with 1 if a mutant escapes or if what is ordered is reported. Needs
`pip install '.[triton]'` for kernels of Triton.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

import davinci
import davinci.triton
import triton_kernels as kernels
from davinci.frontends.hivm import launch
from fuzz.hivm_mutation import HivmOutcomes, MutatedLaunch, judge, table
from fuzz.recorded_launches import RecordedLaunch, record_launches
from reported_kernels import Report, inputs_of

ROOT = Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(1)
BLOCK = 128


def numbers(*shape: int, kind: str = "float32") -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape).astype(kind)


def elementwise(name: str, count: int, *scalars: float) -> Callable[[], tuple[Any, ...]]:
    def arguments() -> tuple[Any, ...]:
        arrays = [numbers(200) for _ in range(count)]
        return (getattr(kernels, name), (2,), *arrays, numbers(200), 200, *scalars), {
            "BLOCK": BLOCK
        }

    return arguments


def of_rows(name: str, *, out: int, scale: int = 0) -> Callable[[], tuple[Any, ...]]:
    """A kernel on rows: the shape of its result, and how many vectors it takes besides."""

    def arguments() -> tuple[Any, ...]:
        x = numbers(3, 100)
        vectors = [numbers(100) for _ in range(scale)]
        result = numbers(3) if out == 1 else np.zeros_like(x)
        epsilon = [1e-5] if scale else []
        return (getattr(kernels, name), (2,), x, *vectors, result, 100, 100, *epsilon), {
            "BLOCK": BLOCK
        }

    return arguments


def tiles(name: str) -> Callable[[], tuple[Any, ...]]:
    def arguments() -> tuple[Any, ...]:
        x = numbers(37, 50)
        return (getattr(kernels, name), (2,), x, numbers(50), 37, 50), {"ROWS": 16, "COLUMNS": 64}

    return arguments


def product() -> tuple[Any, ...]:
    a, b = numbers(50, 70, kind="float16"), numbers(70, 33, kind="float16")
    c = np.zeros((50, 33), np.float16)
    sizes = (50, 33, 70, 70, 1, 33, 1, 33, 1)
    return (kernels.matmul, (1,), a, b, c, *sizes), {"M": 64, "N": 64, "K": 32}


def attention(causal: bool) -> Callable[[], tuple[Any, ...]]:
    def arguments() -> tuple[Any, ...]:
        length = 32 if causal else 64
        q, k, v = (numbers(1, length, 32, kind="float16") for _ in range(3))
        sizes = {"ROWS": 32, "LENGTH": length, "DEPTH": 32, "COLUMNS": 32, "CAUSAL": causal}
        return (kernels.attention, (1, 1), q, k, v, np.zeros_like(q), 0.125), sizes

    return arguments


def softmax() -> tuple[Any, ...]:
    x = numbers(5, 100)
    return (kernels.softmax, (2,), x, np.zeros_like(x), 5, 100, 100), {"BLOCK": BLOCK}


def copy() -> tuple[Any, ...]:
    return (kernels.persistent_copy, (1,), numbers(900), numbers(900), 900), {"BLOCK": BLOCK}


TRITON: dict[str, Callable[[], tuple[Any, ...]]] = {
    "add": elementwise("add", 2),
    "silu": elementwise("silu", 1),
    "scale_and_clamp": elementwise("scale_and_clamp", 1, 2.5, -1.0, 1.5),
    "leaky": elementwise("leaky", 1, 0.1),
    "swiglu": elementwise("swiglu", 2),
    "roots": elementwise("roots", 1),
    "persistent_copy": copy,
    "row_sums": of_rows("row_sums", out=1),
    "row_maxima": of_rows("row_maxima", out=1),
    "tile_row_sums": tiles("tile_row_sums"),
    "log_softmax": of_rows("log_softmax", out=2),
    "softmax": softmax,
    "layer_norm": of_rows("layer_norm", out=2, scale=2),
    "rms_norm": of_rows("rms_norm", out=2, scale=1),
    "matmul": product,
    "attention": attention(False),
    "causal attention": attention(True),
}


def of_triton(name: str) -> RecordedLaunch:
    """A kernel of Triton as the vendor's compilers made it."""
    positional, named = TRITON[name]()
    (found,) = record_launches(name, lambda: davinci.triton.run(*positional, **named))
    return found


def of_report(path: Path) -> RecordedLaunch:
    """The correct twin of a reported kernel."""
    report = Report(path)
    module = launch(report.text(twin=True), [report.grid], report.given, where=path.name)
    executable = davinci.compile(module, machine="ascend910b")
    (found,) = record_launches(path.stem, lambda: executable.run(inputs_of(report)))
    return found


def main() -> int:
    reports = {path.stem: path for path in sorted(ROOT.glob("test/frontends/hivm/reports/*.txt"))}
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a kernel or a report")
    parser.add_argument("--every", type=int, default=1, help="one mutant in so many")
    options = parser.parse_args()
    start, outcomes = time.process_time(), HivmOutcomes()
    for name in options.names or [*TRITON, *reports]:
        launched = of_report(reports[name]) if name in reports else of_triton(name)
        before = outcomes.mutants
        judge(MutatedLaunch(launched), outcomes, options.every)
        print(f"{name}: {outcomes.mutants - before} mutants", flush=True)
    said = ", ".join(f"{text} {count}" for text, count in outcomes.messages.most_common())
    lines = [
        f"{outcomes.kernels} kernels, {outcomes.instructions} instructions",
        *table(outcomes),
        *wrap(f"reported as: {said}", 120),
    ]
    command = " ".join(["hivm_mutations.py", *options.names])
    put("HIVM", command, lines, time.process_time() - start, options.write)
    print(*outcomes.wrong[:20], sep="\n")
    return int(bool(outcomes.wrong))


if __name__ == "__main__":
    sys.exit(main())
