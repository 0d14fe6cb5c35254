"""Image and data processing on the simulated Ascend 310, beside OpenCV and NumPy on one core.

    python benchmarks/speed/data_processing.py [name ...] [--size HxW] [--write]

Runs the six programs of `examples/gdp` with data at 1080 x 1920 (KNN: 5000 x 1000), compares what
comes out with f64, and times NumPy and OpenCV on one core of this host (medians of 7 runs). Then
the two substitutions of the source (GDPNPU), with and without. --write makes
docs/data-processing.md.
"""

from __future__ import annotations

import argparse
import functools
import operator
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from data_processing_page import (
    BORDERS,
    COLUMNS,
    END,
    ERRORS,
    INTRODUCTION,
    NOTES,
    SUBSTITUTIONS,
    TABLE_5_1,
)

import davinci
from davinci import gdp, machine
from davinci.files import write_atomically
from davinci.gdp.lowering import build
from davinci.mlir import make_context

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "gdp"))
PROGRAMS = ("canny", "gaussian", "knn", "mean_std", "sharp", "tone")
canny, gaussian, knn, mean_std, sharp, tone = map(import_module, PROGRAMS)
picture = import_module("workloads").picture

Array = npt.NDArray[Any]
PAGE = ROOT / "docs" / "data-processing.md"
MACHINE = "ascend310"
RUNS = 7


@dataclass(frozen=True)
class Workload:
    """A program of `examples/gdp`.

    Attributes:
        program: of symbolic arrays.
        inputs: makes them for a size of images.
        by_numpy: the same in NumPy, in the precision of its operands.
        by_opencv: the same in OpenCV, of f32 pixels by channels (bytes for Canny).
        precision: policy of the compiler.
        target_ms: the simulated time that is wanted at most.
        board, core: milliseconds of the source, on its board (Table 5-3, opt) and on one core.
        error: the source's relative error in percent, of Table 5-4.
    """

    program: Callable[..., Any]
    inputs: Callable[[int, int], dict[str, Array]]
    by_numpy: Callable[..., Any]
    by_opencv: Callable[..., Any]
    precision: str
    target_ms: float
    board: float
    core: float
    error: float


def planes(height: int, width: int) -> dict[str, Array]:
    """Three planes of f16 between 0 and 1."""
    return {"img": (picture(height, width) / 255).astype(np.float16)}


def features(_height: int, _width: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    found = rng.random((5000, 1000)).astype(np.float16)
    return {"features": found, "query": rng.random(1000).astype(np.float16)}


def tone_by_opencv(img: Array) -> Array:
    below = cv2.add(cv2.multiply(img, cv2.add(cv2.multiply(img, tone.C), tone.D)), tone.E)
    return cv2.divide(cv2.multiply(img, cv2.add(cv2.multiply(img, tone.A), tone.B)), below)


def gaussian_by_opencv(img: Array) -> Array:
    return cv2.sepFilter2D(img, -1, gaussian.TAPS, gaussian.TAPS, borderType=cv2.BORDER_CONSTANT)


def sharp_by_opencv(img: Array) -> float:
    gray = cv2.cvtColor(img, cv2.COLOR_RGB2GRAY)
    edges = cv2.Laplacian(gray, -1, borderType=cv2.BORDER_CONSTANT)
    return float(cv2.meanStdDev(edges)[1][0, 0] ** 2)


def gradients(img: Array) -> tuple[Array, Array]:
    """Across and down, of pixels by channels of bytes, zeros around them."""
    gray = cv2.cvtColor(img, cv2.COLOR_RGB2GRAY)
    smooth = cv2.GaussianBlur(gray, (5, 5), 0, borderType=cv2.BORDER_CONSTANT)
    across = cv2.Sobel(smooth, cv2.CV_16S, 1, 0, borderType=cv2.BORDER_CONSTANT)
    return across, cv2.Sobel(smooth, cv2.CV_16S, 0, 1, borderType=cv2.BORDER_CONSTANT)


def canny_by_opencv(img: Array) -> Array:
    """With hysteresis, which OpenCV does not leave out."""
    return cv2.Canny(*gradients(img), canny.LOW, canny.HIGH)


def mean_std_by_opencv(img: Array) -> Any:
    return cv2.meanStdDev(img), [cv2.minMaxLoc(plane) for plane in cv2.split(img)]


def knn_by_opencv(features: Array, query: Array) -> Any:
    return cv2.BFMatcher(cv2.NORM_L2).match(query[None], features)


WORKLOADS = {
    "Tone": Workload(
        tone.tone, planes, tone.tone, tone_by_opencv, "fp16", 1.5, 2.94, 2.96, 0.02
    ),
    "Gaussian": Workload(
        gaussian.gaussian, planes, gaussian.by_numpy, gaussian_by_opencv, "mixed", 1.5, 4.74, 3.93,
        0.06,
    ),
    "Sharp": Workload(
        sharp.sharp, planes, sharp.by_numpy, sharp_by_opencv, "mixed", 4, 25.63, 9.29, 0.18
    ),
    "Canny": Workload(
        canny.canny, lambda h, w: {"img": picture(h, w)}, canny.by_numpy, canny_by_opencv, "mixed",
        12, 159.1, 88.4, 0.00,
    ),
    "Mean-std": Workload(
        mean_std.mean_std, planes, mean_std.by_numpy, mean_std_by_opencv, "mixed", 1.2, 3.23, 3.49,
        0.08,
    ),
    "KNN": Workload(knn.knn, features, knn.by_numpy, knn_by_opencv, "mixed", 1.0, 2.03, 13.10, 0.0),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What was found of a workload, with its own policy and with `scaled-fp16`; times in
    milliseconds, errors shares."""

    name: str
    simulated: float
    launches: int
    bound: float
    error: str
    scaled: float
    scaled_error: str
    numpy: float
    opencv: float


def measured(name: str, size: tuple[int, int]) -> Row:
    """Runs a workload with data, and the same on this host."""
    workload = WORKLOADS[name]
    inputs = workload.inputs(*size)
    found, record = run(workload, inputs, precision=workload.precision)
    wide = {key: x.astype(np.float64) for key, x in inputs.items()}
    wanted = workload.by_numpy(*wide.values())
    error = difference(name, found, wanted, inputs)
    ranges = {key: (float(x.min()), float(x.max())) for key, x in inputs.items()}
    halves, scaled = run(workload, inputs, precision="scaled-fp16", ranges=ranges)
    lost = scaled["range"]["overflows"]
    assert not lost, f"{name}: {lost} values overflow"
    single = [x.astype(np.float32) for x in inputs.values()]
    pixels = [np.ascontiguousarray(np.moveaxis(x, 0, -1)) if x.ndim == 3 else x for x in single]
    if name == "Canny":
        pixels = [x.astype(np.uint8) for x in pixels]
    moved = sum(x.nbytes for x in (*inputs.values(), *found.values()))
    described = machine.load(MACHINE)
    rate = described.gm.read_bytes_per_cycle * described.cores
    return Row(
        name,
        record["time_us"] / 1000,
        sum(kernel["launches"] for kernel in record["kernels"]),
        moved / rate / described.clock_mhz / 1000,
        error,
        scaled["time_us"] / 1000,
        difference(name, halves, wanted, inputs),
        timed(lambda: workload.by_numpy(*single)),
        timed(lambda: workload.by_opencv(*pixels)),
    )


def run(
    workload: Workload, inputs: dict[str, Array], **options: Any
) -> tuple[Mapping[str, Array], dict[str, Any]]:
    """Outputs of a workload, and the record of the run."""
    model = gdp.compile(workload.program, machine=MACHINE, **options)
    task = gdp.run_async(model, inputs, profile=True)
    return task.result(), task.profile.record


def timed(run: Callable[[], Any]) -> float:
    """The median of `RUNS` runs in milliseconds of this thread's processor, after one."""
    run()
    seconds = []
    for _ in range(RUNS):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    return 1000 * statistics.median(seconds)


def difference(
    name: str, found: Mapping[str, Array], expected: Any, inputs: Mapping[str, Array]
) -> str:
    """The largest relative error, or the share of pixels that differ; of Canny's edges also from
    OpenCV's."""
    wanted = expected if isinstance(expected, Mapping) else {"out0": expected}
    if name == "Canny":
        edges = found["out0"]
        apart = np.mean(edges != wanted["out0"])
        pixels = np.ascontiguousarray(np.moveaxis(inputs["img"], 0, -1))
        other = np.mean(with_hysteresis(edges) != (canny_by_opencv(pixels) > 0))
        return f"{apart:.3%} of pixels; {other:.3%} from OpenCV"
    errors = [relative(array, wanted[key]) for key, array in found.items()]
    return f"{max(errors):.3%}"


def relative(found: Array, expected: Any) -> float:
    """The largest error of an element that is not tiny beside the largest one."""
    expected = np.asarray(expected, np.float64)
    size = np.maximum(np.abs(expected), np.abs(expected).max() / 256)
    return float(np.max(np.abs(found.astype(np.float64) - expected) / np.maximum(size, 1e-30)))


def with_hysteresis(edges: Array) -> Array:
    """Strong edges, and weak ones that are connected with them."""
    _, labels = cv2.connectedComponents((edges > 0).astype(np.uint8), connectivity=8)
    kept = np.unique(labels[edges == 2])
    return np.isin(labels, kept) & (edges > 0)


def least(img: gdp.Array) -> gdp.Array:
    return gdp.min(img, (1, 2))


def least_of_slices(parts: int) -> Callable[[gdp.Array], gdp.Array]:
    """The source's substitution: slices, elementwise minima of them, a small reduction."""

    def program(img: gdp.Array) -> gdp.Array:
        rows = img.shape[1] // parts
        slices = [img[:, k * rows : (k + 1) * rows] for k in range(parts)]
        while len(slices) > 1:
            pairs = zip(slices[::2], slices[1::2], strict=True)
            slices = [gdp.minimum(a, b) for a, b in pairs]
        return gdp.min(slices[0], (1, 2))

    return program


SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""Rows and columns to the neighbours of a pixel."""


def brighter(count: int) -> Callable[[gdp.Array], gdp.Array]:
    """How many of the first `count` neighbours of a pixel are darker."""

    def program(img: gdp.Array) -> gdp.Array:
        i, j = gdp.indices()
        flags = [img[i, j] > img[i + down, j + right] for down, right in SIDES[:count]]
        return functools.reduce(operator.add, [gdp.where(x, np.float16(1), 0.0) for x in flags])

    return program


def brighter_by_convolutions(count: int) -> Callable[[gdp.Array], gdp.Array]:
    """The same by the source's Algorithm 3, with one convolution for both masks."""

    def program(img: gdp.Array) -> gdp.Array:
        found = []
        for down, right in SIDES[:count]:
            rows, columns = abs(down), abs(right)
            kernel = np.zeros((2 * rows + 1, 2 * columns + 1))
            kernel[rows, columns], kernel[rows + down, columns + right] = 1, -1
            found.append(gdp.where(gdp.filter2d(img, kernel) > 0, np.float16(1), 0.0))
        return functools.reduce(operator.add, found)

    return program


def simulated(program: Callable[..., Any], shape: tuple[int, ...], **options: Any) -> float:
    """Milliseconds of a program of one image of f16, without data, neighbours read by shifts."""
    img = gdp.input("img", shape, np.float16)
    specs = {"img": (img.dtype, shape)}
    module = build([img], {"out0": program(img)}, specs, make_context())
    executable = davinci.compile(module, machine=MACHINE, timing_only=True, **options)
    executable.run()
    return float(executable.profile["time_us"]) / 1000


def substitutions(size: tuple[int, int]) -> list[tuple[str, float, float, str]]:
    """Each substitution with milliseconds without and with it, and the source's ratio."""
    shape = (3, *size)
    without = "all,-pixels-to-channels"
    found = [
        (
            "16 pixels of a row as channels (`pixels-to-channels`), Gaussian 5x5",
            simulated(gaussian.gaussian, shape, rewrites=without),
            simulated(gaussian.gaussian, shape),
            "4.30 (9.84 to 2.29 ms), rows of blocks",
        )
    ]
    for count, pixels in ((1, "the pixel above"), (4, "four neighbours")):
        ways = brighter(count), brighter_by_convolutions(count)
        times = [simulated(way, size, precision="fp16") for way in ways]
        what = f"comparison with {pixels} of a plane by convolutions (Algorithm 3), not by shifts"
        found.append((what, *times, "not given"))
    whole = simulated(least, shape)
    for parts in (2, 4, 8):
        found.append(
            (
                f"minimum of each plane: of {parts} slices, elementwise, then of what is left",
                whole,
                simulated(least_of_slices(parts), shape),
                "2.5 (1.50 to 0.60 ms)",
            )
        )
    return found


def sum_of_sides(rule: str) -> Callable[[gdp.Array], gdp.Array]:
    """The sum of the four neighbours of each pixel."""

    def program(img: gdp.Array) -> gdp.Array:
        i, j = gdp.indices()
        around = gdp.border(img, rule)
        return functools.reduce(operator.add, [around[i + a, j + b] for a, b in SIDES])

    return program


def blurred(rule: str) -> Callable[[gdp.Array], gdp.Array]:
    return lambda img: gdp.filter2d(img, gaussian.KERNEL, rule)


def borders(size: tuple[int, int]) -> list[str]:
    """Rows of the table of border rules."""
    shape = (3, *size)
    programs = {"four neighbours, added": sum_of_sides, "Gaussian 5x5": blurred}
    rows = []
    for what, made in programs.items():
        times = (f"{simulated(made(rule), shape):.2f}" for rule in gdp.RULES)
        rows.append(f"| {what} | {' | '.join(times)} |")
    return rows


def line_of(row: Row) -> str:
    """A row of the first table."""
    w = WORKLOADS[row.name]
    cells = [
        row.name,
        w.precision,
        f"{row.simulated:.2f}",
        f"{w.target_ms:g}",
        str(row.launches),
        f"{row.bound:.2f}",
        f"{row.simulated / row.bound:.1f}",
        f"{w.board:g}",
        f"{w.core:g}",
        f"{row.numpy:.1f}",
        f"{row.opencv:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(WORKLOADS))
    parser.add_argument("--size", default="1080x1920", help="rows and columns of images")
    parser.add_argument("--write", action="store_true", help="make docs/data-processing.md")
    options = parser.parse_args()
    if unknown := set(options.names) - WORKLOADS.keys():
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    height, width = map(int, options.size.split("x"))
    cv2.setNumThreads(1)
    rows = []
    for name in options.names or WORKLOADS:
        rows.append(measured(name, (height, width)))
        print(line_of(rows[-1]), rows[-1].error, flush=True)
    if options.names:
        return 0
    text = INTRODUCTION.format(height=height, width=width, runs=RUNS)
    text += f"| {' | '.join(COLUMNS)} |\n|---|---|{'--:|' * (len(COLUMNS) - 2)}\n"
    text += "\n".join(map(line_of, rows)) + "\n" + ERRORS
    for row in rows:
        source = f"{WORKLOADS[row.name].error:.2f}%"
        cells = (row.name, row.error, source, f"{row.scaled:.2f}", row.scaled_error)
        text += f"| {' | '.join(cells)} |\n"
    text += SUBSTITUTIONS
    for what, without, with_, source in substitutions((height, width)):
        line = f"| {what} | {without:.2f} | {with_:.2f} | {without / with_:.2f} | {source} |"
        print(line, flush=True)
        text += line + "\n"
    text += NOTES + BORDERS.format(rules=" | ".join(gdp.RULES), lines="--:|" * len(gdp.RULES))
    text += "\n".join(borders((height, width))) + "\n" + END + TABLE_5_1
    if options.write:
        write_atomically(PAGE, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
