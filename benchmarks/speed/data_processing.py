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
        target_ms: what the issue asks for.
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
    """What was found of a workload; times in milliseconds, the error a share."""

    name: str
    simulated: float
    launches: int
    bound: float
    error: str
    numpy: float
    opencv: float


def measured(name: str, size: tuple[int, int]) -> Row:
    """Runs a workload with data, and the same on this host."""
    workload = WORKLOADS[name]
    inputs = workload.inputs(*size)
    model = gdp.compile(workload.program, machine=MACHINE, precision=workload.precision)
    task = gdp.run_async(model, inputs, profile=True)
    found, record = task.result(), task.profile.record
    wide = {key: x.astype(np.float64) for key, x in inputs.items()}
    error = difference(name, found, workload.by_numpy(*wide.values()), inputs)
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
        timed(lambda: workload.by_numpy(*single)),
        timed(lambda: workload.by_opencv(*pixels)),
    )


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


INTRODUCTION = """# Image and data processing

Made by `python benchmarks/speed/data_processing.py --write`; do not edit.

Programs on images and tables are tensor programs too: neighbours, comparisons and reductions
instead of layers. `davinci.gdp` takes them as functions of arrays and runs them on a simulated
Ascend 310, two AI cores of 680 MHz; the idea and the six programs are those of GDPNPU (C. Xia,
PhD thesis, ICT, 2022, chapter 5), which measured a board. A first one is in the
[cookbook](cookbook.md#how-do-i-process-images); the programs of this page are in `examples/gdp`.

## Six programs

Images of {height} x {width} pixels in three planes, zeros around them; KNN finds the nearest of
5,000 vectors of 1,000 features. `simulated`: kernels and launches, in milliseconds of the
simulated machine. `bound`: the time in which its memory moves inputs and outputs once. NumPy and
OpenCV are measured on one core of the host that made this page, in f32 (Canny in bytes): medians of
{runs} runs, of the processor's time, for the host was busy. `board` and `core` are the source's
(Table 5-3, opt and CPU): a real 310, and one core of a Xeon Gold 6151.

"""

COLUMNS = (
    "program",
    "precision",
    "simulated ms",
    "wanted",
    "launches",
    "bound ms",
    "times bound",
    "board ms",
    "core ms",
    "NumPy ms here",
    "OpenCV ms here",
)

ERRORS = """
The simulated machine is not the board: its clock is assumed, and what the board spends in the
vendor's operators, conversions of layout around each convolution above all, is not there. So the
ratio of `board` to `simulated` says how the two programs differ as much as how the machines do.

Errors are against the same program in f64, the largest of any element (as a share of the element,
or of 1/256 of the largest one). Canny's values are whole numbers up to its comparisons, which f32
and the sums of the cube hold exactly; `from OpenCV` compares its edges, with hysteresis done by
the host, with `cv2.Canny`.

| program | error here | source's (Table 5-4) |
|---|---|--:|
"""

SUBSTITUTIONS = """
## Substitutions

The source rewrites what the vendor's operators are slow at; a compiler with kernels of its own
need not. Each row has the same result without and with the substitution.

| substitution | without ms | with ms | ratio | source's ratio |
|---|--:|--:|--:|---|
"""

END = """
* **Filters**: the source cuts an image of few channels in blocks of rows, which become channels,
  and copies their halo. Here 16 pixels that lie side by side become the channels of one, which
  moves nothing, and is done for every network where the estimate says that it takes less
  ([rewrites](rewrites.md)).
* **Reductions**: a minimum of slices is elementwise, which the vendor's reduction was slower than.
  Here a reduction folds whole repeats of its tile in UB, elementwise, before it reduces lanes, and
  takes little more than memory does; the substitution gains nothing, and no rewrite makes it.
* **Comparisons** of neighbours (the source's Algorithm 3 makes a convolution, two comparisons and
  a sum of products of each) are shifted reads: a kernel reads the rows of each neighbour from
  where they lie in the padded image, so only the padding is a kernel of its own, or convolutions,
  each of which writes a plane that is read again. `gdp` asks the estimates of both: convolutions
  gain where one neighbour is all that is read. What is chosen between goes through masks of bits
  where tiles are long, since the mask register holds one repeat.

## More than three times the bound

* **Sharp** passes its planes three times: brightness, the filter, and the variance, whose mean must
  be known before distances from it are squared.
* **Mean-std** reads the image in three kernels: sums, sums of squares, and both extremes.
* **KNN** computes distances in f32: conversions, differences, products and sums of 64 lanes each,
  of features that memory brings in f16.
* **Canny** is a chain of kernels that pass whole planes of f32 to each other, and most of its work
  is comparisons and choices. In f16 (`scaled-fp16`) brightness and the filter's sums lose what
  decides where they are rounded, so that edges move; the other programs may use it.
"""

TABLE_5_1 = """
## The source's instructions

Table 5-1 of the source, f16 on the board: transpose of 1024 x 2048 0.59 ms; of as many elements
absolute values 0.21, sums 0.30, maxima 0.30, `and` 0.41, comparisons 0.26, sum of all 0.21 ms;
product of a vector with a 1024 x 1024 matrix 1.218, of 1024^3 0.80 ms.

Table 5-3 without its optimisations, ms:

| program | FP32 | FP16 | opt | one core |
|---|--:|--:|--:|--:|
| Tone | 5.26 | 2.94 | 2.94 | 2.96 |
| Gaussian | 9.25 | 9.25 | 4.74 | 3.93 |
| Sharp | 42.82 | 37.49 | 25.63 | 9.29 |
| Canny | 440.9 | 285.74 | 159.1 | 88.4 |
| Mean-std | 8.74 | 5.10 | 3.23 | 3.49 |
| KNN | 4.41 | 4.41 | 2.03 | 13.10 |

Its 4.30 for the Gaussian filter and this table's 9.25 to 4.74 are not the same measurement; the
source does not say how they differ.
"""


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
        text += f"| {row.name} | {row.error} | {WORKLOADS[row.name].error:.2f}% |\n"
    text += SUBSTITUTIONS
    for what, without, with_, source in substitutions((height, width)):
        line = f"| {what} | {without:.2f} | {with_:.2f} | {without / with_:.2f} | {source} |"
        print(line, flush=True)
        text += line + "\n"
    text += END + TABLE_5_1
    if options.write:
        write_atomically(PAGE, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
