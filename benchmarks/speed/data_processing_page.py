"""Sentences of docs/data-processing.md, which `data_processing.py` puts around its tables."""

from __future__ import annotations

BORDERS = """
## Borders

Milliseconds of three planes of f16 with other borders than zeros around them. Rows of whole blocks
of 16 pixels get margins of 16, so that all that is large moves in blocks; the pixels of the margin
are turned as rows. A filter pads with zeros for nothing, and with others in a pass of its own.

| program | {rules} |
|---|{lines}
"""

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

With `scaled-fp16` and the ranges of the inputs, in which no f16 overflowed:

| program | error | source's (Table 5-4) | scaled-fp16, ms | its error |
|---|---|--:|--:|---|
"""

SUBSTITUTIONS = """
## Substitutions

The source rewrites what the vendor's operators are slow at; a compiler with kernels of its own
need not. Each row has the same result without and with the substitution.

| substitution | without ms | with ms | ratio | source's ratio |
|---|--:|--:|--:|---|
"""

NOTES = """
* **Filters**: the source cuts an image of few channels in blocks of rows, which become channels,
  and copies their halo. Here 16 pixels that lie side by side become the channels of one, which
  moves nothing, and is done for every network where the estimate says that it takes less
  ([rewrites](rewrites.md)). Their number, 16, 32 or 64, is the one whose estimate is least.
* **Reductions**: a minimum of slices is elementwise, which the vendor's reduction was slower than.
  Here a reduction folds whole repeats of its tile in UB, elementwise, before it reduces lanes, and
  takes little more than memory does; slices of rows gain nothing. `ascend-split-reductions` makes
  the parts that cores share, as many as take least time by the estimate, where they pay.
* **Comparisons** of neighbours (the source's Algorithm 3 makes a convolution, two comparisons and
  a sum of products of each) are shifted reads: a kernel reads the rows of each neighbour from
  where they lie in the padded image, so only the padding is a kernel of its own, or convolutions,
  each of which writes a plane that is read again. `gdp` asks the estimates of both: convolutions
  gain where one neighbour is all that is read. What is chosen between goes through masks of bits
  where tiles are long, since the mask register holds one repeat.
"""

END = """
## More than three times the bound

* **Sharp** passes its planes three times: brightness, the filter, and the variance, whose mean must
  be known before distances from it are squared.
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
