"""The catalogue of rewrites: what the compiler does to a network to make it faster, by name.

A rewrite computes the same in another way, and can be left out: `npu-run --no-rewrite NAME`,
`--rewrites`, the argument `rewrites` of `davinci.compile`, and the option of that name of the
passes that hold several of them. Its value is a list: `all`, `none`, names, and names behind a
minus sign that are left out of what stands before them:

    all                     everything that is on by default
    gelu,merge-products     these two only
    all,-slice-product      all but one

Passes count what they have rewritten (`davinci.passes.analysis.rewrite_counts`).
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.errors import InputError, did_you_mean

ALL, NONE = "all", "none"

SLICES, OPERATORS, CONSTANTS, ORDER, KERNELS = (
    "slice hoisting",
    "operator substitution",
    "constant folding",
    "reordering",
    "fusion",
)
"""Kinds of rewrites, as the source of the idea has them."""


@dataclass(frozen=True)
class Rewrite:
    """A rewrite.

    Attributes:
        kind: one of the five above.
        place: the pass that does it.
        before, after: an example.
        bound: what it may change in the result; "" for nothing.
        rounds: whether it rounds f32 numbers otherwise, and so is not done with `precision=fp32`.
        default: whether it is part of `all`.
    """

    kind: str
    place: str
    before: str
    after: str
    bound: str = ""
    rounds: bool = False
    default: bool = True

    @property
    def is_pass(self) -> bool:
        """Whether the pass does nothing else, so that it is left out of the pipeline."""
        return sum(other.place == self.place for other in REWRITES.values()) == 1


REWRITES: dict[str, Rewrite] = {
    "slice-elementwise": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "gelu(x)[-1:]",
        "gelu(x[-1:])",
    ),
    "slice-broadcast": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "broadcast(x)[-1:]",
        "broadcast(x[-1:]), or of all of x",
    ),
    "slice-reduction": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "sum(x, 1)[-1:]",
        "sum(x[-1:], 1)",
    ),
    "slice-product": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "(x @ w)[-1:, :8]",
        "x[-1:] @ w[:, :8]",
        "where a smaller product is computed in other pieces of k, its sums are in another order",
    ),
    "slice-convolution": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "conv(x, w)[.., 8:16, 8:16]",
        "conv(x[.., 7:17, 7:17], w)",
        "as slice-product",
    ),
    "slice-movement": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "transpose(x)[-1:], of reshapes, concatenations and paddings, too",
        "transpose(x[:, -1:])",
    ),
    "slice-gather": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "table[i][-1:]",
        "table[i[-1:]]",
    ),
    "gather-to-slice": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "x[[3, 4, 5]]",
        "x[3:6]",
    ),
    "gather-to-runs": Rewrite(
        SLICES,
        "ascend-hoist-slices",
        "(a @ b)[i, f(j - i)], known f",
        "rows of a @ b[:, f], each begun a column before the one above",
    ),
    "gelu": Rewrite(
        OPERATORS,
        "ascend-combine-operators",
        "x * (1 + erf(x / sqrt 2)) / 2",
        "gelu(x)",
        "error below 2e-6 of gelu's own formula",
    ),
    "quantize": Rewrite(
        OPERATORS,
        "ascend-combine-operators",
        "min(max(round(x) + zero, low), high)",
        "quantize(x)",
    ),
    "score-scales": Rewrite(
        OPERATORS,
        "ascend-combine-operators",
        "softmax((a * c) @ (b * c))",
        "softmax((a @ b) * c^2)",
        "factors are rounded to f16 before they are scaled",
    ),
    "drop-identities": Rewrite(
        OPERATORS,
        "ascend-simplify-arithmetic",
        "x * 1, x + 0, -(-x), relu(relu(x)), x + -y",
        "x, x, x, relu(x), x - y",
        "-0 + 0 stays -0",
    ),
    "floored-remainders": Rewrite(
        OPERATORS,
        "ascend-simplify-arithmetic",
        "select(r < 0 != y < 0 and r != 0, r + y, r), r = remainder(x, y)",
        "remainder(x, y) {down}",
    ),
    "fold-scales": Rewrite(
        OPERATORS,
        "ascend-simplify-arithmetic",
        "((x - mean) / deviation) * gain + bias",
        "x * a + b",
        "a few units in the last place of abs(x a) + abs(b)",
        rounds=True,
    ),
    "divisions-to-products": Rewrite(
        OPERATORS,
        "ascend-simplify-arithmetic",
        "x / 3",
        "x * (1 / 3)",
        "one unit in the last place",
        rounds=True,
    ),
    "reciprocal-roots": Rewrite(
        OPERATORS,
        "ascend-simplify-arithmetic",
        "x / sqrt(y), 1 / sqrt(y)",
        "x * rsqrt(y), rsqrt(y)",
        "one unit in the last place",
        rounds=True,
    ),
    "powers": Rewrite(
        OPERATORS,
        "ascend-simplify-arithmetic",
        "x ** 1.5, x ** -0.5, 2 ** x",
        "x * sqrt(x), rsqrt(x), exp(x ln 2)",
        "error below 1e-5 of the result before, two units in the last place now; 2 ** x as before",
        rounds=True,
    ),
    "tanh-to-logistic": Rewrite(
        OPERATORS,
        "ascend-simplify-arithmetic",
        "x * (1 + tanh(y)) / 2",
        "x * logistic(y * 2)",
        "two units in the last place of 1 + tanh(y), whose own rounding goes",
        rounds=True,
    ),
    "scale-weights": Rewrite(
        OPERATORS,
        "ascend-scale-weights",
        "(conv(x, w) + b) * s, s a number for each channel: batch normalisation",
        "conv(x, w * s) + b * s",
        "weights are rounded to f16 after the scale instead of before it",
        rounds=True,
    ),
    "merge-linear-layers": Rewrite(
        OPERATORS,
        "ascend-scale-weights",
        "(x @ V + b) @ W",
        "x @ (V @ W) + b @ W",
        "the value in between is not rounded to f16, its product with W is",
        rounds=True,
    ),
    "drop-casts": Rewrite(
        OPERATORS,
        "ascend-simplify-moves",
        "cast(cast(x: f16 to f32) to f16), cast(flag to i64) != 0",
        "x, flag",
    ),
    "merge-slices": Rewrite(
        OPERATORS,
        "ascend-simplify-moves",
        "x[2:9][1:3], concat(x[:4], x[4:8])",
        "x[3:5], x[:8]",
    ),
    "common-subexpressions": Rewrite(
        OPERATORS,
        "ascend-simplify-moves",
        "exp(a + b), exp(b + a)",
        "the first of them twice",
    ),
    "fold-constants": Rewrite(
        CONSTANTS,
        "ascend-fold-constants",
        "an operator on known values",
        "its value",
    ),
    "fold-pads": Rewrite(
        OPERATORS,
        "stablehlo-fold-pads",
        "conv(pad(x)), max_pool(pad(x, -inf))",
        "conv(x) {pads}, max_pool(x) {pads}",
    ),
    "pixels-to-channels": Rewrite(
        OPERATORS,
        "stablehlo-pixels-to-channels",
        "a filter of 1 to 4 planes [h, w]",
        "a convolution of 16 channels [h, w / 16, 16]",
        "sums in another order; a NaN or infinite pixel spoils those in the blocks beside it",
    ),
    "drop-guards": Rewrite(
        OPERATORS,
        "ascend-drop-guards",
        "select(isnan(softmax(s)), 0, softmax(s)), no row all minus infinity",
        "softmax(s)",
    ),
    "cancel-transposes": Rewrite(
        ORDER,
        "ascend-simplify-moves",
        "transpose(relu(transpose(x)))",
        "relu(x)",
    ),
    "absorb-transposes": Rewrite(
        ORDER,
        "ascend-absorb-transposes",
        "matmul(a, transpose(b)), transpose(matmul(a, w) + row)",
        "matmul(a, b) {transpose_b}, matmul(transpose(w), a) {transpose_b} + column",
    ),
    "sink-rearrangements": Rewrite(
        ORDER,
        "ascend-sink-rearrangements",
        "relu(transpose(conv(x)))",
        "transpose(relu(conv(x)))",
    ),
    "merge-products": Rewrite(
        OPERATORS,
        "ascend-merge-products",
        "x @ V, x @ W",
        "slices of x @ [V W]",
    ),
    "split-reductions": Rewrite(
        OPERATORS,
        "ascend-split-reductions",
        "sums of 40 rows of 2^16",
        "sums of 32 sums of 2^11 each",
        "sums in another order",
    ),
    "split-moves": Rewrite(
        OPERATORS,
        "ascend-split-moves",
        "a transposition that turns three dimensions round",
        "two transpositions of two dimensions each",
    ),
    "loop-kernels": Rewrite(
        KERNELS,
        "stablehlo-outline-loops",
        "a step of a GRU or LSTM as operators",
        "all steps as one kernel",
        "the product of the state is of f16 and the state stays f32",
    ),
    "attention": Rewrite(
        KERNELS,
        "ascend-fuse",
        "matmul, then scale, mask and softmax, then matmul",
        "one kernel",
        "sums of a row of probabilities in another order",
    ),
    "product-epilogues": Rewrite(
        KERNELS,
        "ascend-fuse",
        "matmul, then add (bias), relu, cast",
        "one kernel",
    ),
    "sums-by-cube": Rewrite(
        OPERATORS,
        "ascend-fuse",
        "sum of the rows of x (f16)",
        "ones @ x",
        "sums in another order",
    ),
}
"""In the order of the page `docs/rewrites.md`."""


def chosen(text: str) -> frozenset[str]:
    """The names that a list means.

    >>> sorted(chosen("none,gelu,quantize,-gelu"))
    ['quantize']

    Raises:
        InputError: a name that is none of a rewrite.
    """
    words = [word.strip() for word in text.split(",")]
    every = frozenset(name for name, rewrite in REWRITES.items() if rewrite.default)
    found = every if words[0].startswith("-") else frozenset[str]()
    for word in words:
        name = word.removeprefix("-")
        if name not in REWRITES and word not in (ALL, NONE):
            raise InputError(
                "no such rewrite",
                where="rewrites",
                found=repr(name),
                expected="all, none, or names of rewrites",
                hint=did_you_mean(name, [*REWRITES, ALL, NONE]),
            )
        if word in (ALL, NONE):
            found = every if word == ALL else frozenset()
        elif word.startswith("-"):
            found -= {name}
        else:
            found |= {name}
    return found


def expected(text: str) -> str:
    """What a list of rewrites should be, if it is not one; else ""."""
    try:
        chosen(text)
    except InputError as error:
        return ", ".join(filter(None, (f"{error.expected}; {error.found} is none", error.hint)))
    return ""
