"""Functions of f32 over all exponents, integers and f64 bit for bit, on all machines.

    python benchmarks/proofs/elementwise.py [--machine NAME ..] [--each N] [--only TEXT]

A line for each function shows its largest error over `--each` random numbers of every exponent and
both signs, near multiples of a quarter turn, and near 1, against f64: in units in the last place of
the result, less what the bound allows beside them. The bounds are those that docs/operators.md
states. A line for each type of integers, and one for f64, shows how many results of its operators
differ, of all pairs of edge values and of random numbers, small and large. Exits with 1 if an error
is beyond its bound or a result differs. Needs scipy.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammaln

import davinci
from davinci.operators.inverse_functions import erf_inverse

Array = npt.NDArray[Any]

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")


@dataclass(frozen=True)
class Function:
    """A function of one number of f32, or of two.

    Attributes:
        exact: the same in f64.
        most: units in the last place that are stated.
        beside: what the error may be more, in absolute terms.
        growth: units that are stated beside them for each unit of the logarithm of the result.
        low, high: where it is swept.
        count: of operands.
    """

    exact: Callable[..., Any]
    most: float
    beside: float = 0.0
    growth: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    count: int = 1


LEAST_NORMAL = 2.0**-126
"""The least number of f32 of full precision."""

FUNCTIONS: dict[str, Function] = {
    "stablehlo.sine": Function(np.sin, 3, 2.0**-35),
    "stablehlo.cosine": Function(np.cos, 3, 2.0**-35),
    "stablehlo.tan": Function(np.tan, 5, low=-1.5, high=1.5),
    "stablehlo.atan2": Function(np.arctan2, 2, count=2),
    "chlo.asin": Function(np.arcsin, 3),
    "chlo.acos": Function(np.arccos, 2),
    "chlo.sinh": Function(np.sinh, 3),
    "chlo.cosh": Function(np.cosh, 3),
    "chlo.asinh": Function(np.arcsinh, 3),
    "chlo.acosh": Function(np.arccosh, 3, low=1),
    "chlo.atanh": Function(np.arctanh, 2, low=-1, high=1),
    "stablehlo.exponential": Function(np.exp, 3, LEAST_NORMAL),
    "stablehlo.log": Function(np.log, 4, low=0),
    "chlo.lgamma": Function(gammaln, 4, 2.0**-18),
    "chlo.digamma": Function(digamma, 4, 2.0**-18),
    "stablehlo.exponential_minus_one": Function(np.expm1, 5),
    "stablehlo.log_plus_one": Function(np.log1p, 4, low=-1),
    "stablehlo.cbrt": Function(np.cbrt, 3),
    "stablehlo.rsqrt": Function(lambda x: 1 / np.sqrt(x), 2, low=0),
    "stablehlo.tanh": Function(np.tanh, 3),
    "stablehlo.logistic": Function(lambda x: 1 / (1 + np.exp(-x)), 4, LEAST_NORMAL),
    "chlo.erf": Function(np.vectorize(math.erf), 6),
    "chlo.erf_inv": Function(erf_inverse, 4, low=-1, high=1),
    "stablehlo.power": Function(np.power, 8, growth=3.5, count=2),
}

INTEGERS = ("i32", "ui32", "i64", "ui64", "i8", "ui8", "i16", "ui16")


def all_exponents(each: int, rng: np.random.Generator) -> Array:
    """Random numbers of both signs, `each` of every exponent of f32, and more up to 1 and 4."""
    exponents = np.repeat(np.arange(-126, 128), each)
    digits = rng.uniform(1, 2, exponents.size) * rng.choice([-1, 1], exponents.size)
    near = [np.arange(-3000, 3000) * math.pi / 2, 1 + rng.standard_normal(4000) * 1e-3]
    near += [rng.uniform(-1, 1, 20000), rng.uniform(1, 4, 4000)]
    close = np.concatenate([*near, rng.uniform(-20, 88, 4000)]).astype(np.float32)
    swept = np.ldexp(digits.astype(np.float32), exponents).astype(np.float32)
    return np.concatenate([swept, close])


def run(operation: str, inputs: tuple[Array, ...], kinds: tuple[str, str], machine: str) -> Array:
    """An operator of operands of one type, on a machine."""
    size = inputs[0].size
    given, made = (f"tensor<{size}x{kind}>" for kind in kinds)
    arguments = ", ".join(f"%{i}: {given}" for i in range(len(inputs)))
    names = ", ".join(f"%{i}" for i in range(len(inputs)))
    types = given if kinds[0] == kinds[1] else f"({', '.join([given] * len(inputs))}) -> {made}"
    if operation.startswith("chlo"):
        types = f"{given} -> {made}"
    text = (
        f"func.func @main({arguments}) -> {made} {{\n%r = {operation.format(names)} : {types}\n"
        f"return %r : {made} }}"
    )
    (found,) = davinci.compile(text, machine=machine).run(*inputs).values()
    return np.asarray(found)


def error_of(name: str, function: Function, machine: str, each: int) -> tuple[float, float]:
    """The largest error in units in the last place, and where."""
    rng = np.random.default_rng(0)
    x = all_exponents(each, rng)
    inputs = (x, *(rng.permutation(x) for _ in range(function.count - 1)))
    if name == "stablehlo.power":  # also such pairs whose results are numbers of f32
        logarithms = np.log(np.abs(x).astype(np.float64))
        pairs = np.abs(x), rng.uniform(-87, 88, x.size) / np.where(logarithms, logarithms, 1)
        inputs = tuple(map(np.concatenate, zip(inputs, pairs, strict=True)))
        inputs = tuple(v.astype(np.float32) for v in inputs)
    kept = (inputs[0] > function.low) & (inputs[0] < function.high)
    inputs = tuple(v[kept] for v in inputs)
    found = run(name + " {}", inputs, ("f32", "f32"), machine).astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = np.asarray(function.exact(*(v.astype(np.float64) for v in inputs)), np.float64)
        size = np.abs(wanted).astype(np.float32)
        errors = (np.abs(found - wanted) - function.beside) / np.spacing(size).astype(np.float64)
        if function.growth:
            errors -= function.growth * np.abs(np.log(np.where(wanted, np.abs(wanted), 1)))
        errors = np.where(np.isfinite(size), errors, 0)
    errors = np.where(np.isnan(errors), np.inf, errors)
    worst = int(np.argmax(errors))
    return float(errors[worst]), float(inputs[0][worst])


def edges(kind: str) -> tuple[Array, Array]:
    """Operands a and b of an integer type: all pairs of values at the ends of its range and at
    powers of two, then random pairs of the whole range and of small numbers."""
    dtype = np.dtype(f"{'u' * (kind[0] == 'u')}int{kind.lstrip('ui')}")
    ends = np.iinfo(dtype)
    few = [0, 1, 2, 3, 7, ends.max, ends.max - 1, ends.max // 2, ends.min, ends.min + 1]
    few += [
        n
        for n in (-1, -2, -7, 1 << 15, 1 << 16, (1 << 24) + 1, (1 << 31) - 1, 1 << 31)
        if ends.min <= n <= ends.max
    ]
    values = np.array(few, dtype)
    a, b = (v.ravel() for v in np.meshgrid(values, values))
    rng = np.random.default_rng(0)
    large = [rng.integers(ends.min, ends.max, 3000, dtype, endpoint=True) for _ in "ab"]
    small = [rng.integers(max(ends.min, -9), 10, 1000).astype(dtype) for _ in "ab"]
    return np.concatenate([a, large[0], small[0], large[0][:1000]]), np.concatenate(
        [b, large[1], small[1], small[1]]
    )


def quotient(a: Array, b: Array) -> Array:
    """Towards zero; -1 where b is 0, and the lowest number by -1 is itself."""
    return np.where(b == 0, np.array(-1).astype(a.dtype), towards_zero(a, b)[0])


def rest(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, towards_zero(a, b)[1])


def towards_zero(a: Array, b: Array) -> tuple[Array, Array]:
    by = np.where(b == 0, 1, b).astype(a.dtype)
    left = np.fmod(a, np.where(by == -1, 1, by).astype(a.dtype) if a.dtype.kind == "i" else by)
    whole = np.where(by == -1, -a, (a - left) // by) if a.dtype.kind == "i" else a // by
    return whole.astype(a.dtype), left.astype(a.dtype)


def shifted(a: Array, b: Array, how: str) -> Array:
    """Counts of the width and more leave nothing, or copies of the sign."""
    bits = a.dtype.itemsize * 8
    unsigned = a.view(f"u{a.dtype.itemsize}")
    count = b.view(f"u{b.dtype.itemsize}")
    far, near = count >= bits, np.minimum(count, bits - 1)
    if how == "left":
        return np.where(far, 0, unsigned << near).astype(unsigned.dtype).view(a.dtype)
    if how == "logical":
        return np.where(far, 0, unsigned >> near).astype(unsigned.dtype).view(a.dtype)
    signed = a.view(f"i{a.dtype.itemsize}")
    return (signed >> near.astype(signed.dtype)).view(a.dtype)


PAIRS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": quotient,
    "remainder": rest,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shift_left": lambda a, b: shifted(a, b, "left"),
    "shift_right_logical": lambda a, b: shifted(a, b, "logical"),
    "shift_right_arithmetic": lambda a, b: shifted(a, b, "arithmetic"),
}

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "LT": np.less,
    "GE": np.greater_equal,
}


def differing(kind: str, name: str, machine: str) -> int:
    """Counts the results of an integer operator on a machine that are not those of NumPy."""
    a, b = edges(kind)
    with np.errstate(all="ignore"):
        if name in PAIRS:
            found, wanted = (
                run(f"stablehlo.{name} {{}}", (a, b), (kind, kind), machine),
                PAIRS[name](a, b),
            )
        else:
            sign = "UNSIGNED" if kind[0] == "u" else "SIGNED"
            spelt = f"stablehlo.compare {name}, {{}}, {sign}"
            found, wanted = run(spelt, (a, b), (kind, "i1"), machine), COMPARISONS[name](a, b)
    return int((found != wanted).sum())


def away(x: Array) -> Array:
    """Whole numbers nearest to f64, ties away from zero."""
    whole = np.trunc(x)
    found: Array = np.copysign(abs(whole) + (abs(x - whole) >= 0.5), x)
    return found


DOUBLES: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "round_nearest_even": np.rint,
    "round_nearest_afz": away,
}
"""Operators on f64, which are rounded once."""


def doubles() -> tuple[Array, Array]:
    """Operands of f64: all pairs of edge values, then random bits, exponents close to each other,
    numbers that nearly cancel, whole ones, of whose products the last bit is often a half, and such
    that have few bits around the point."""
    few = [0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.0**-1022, 2.0**-1022 - 5e-324]
    few += [1, -1, 1.5, 2.0**-537, np.finfo("f8").max, -np.finfo("f8").max, 2.0**53, 1 + 2.0**-52]
    a, b = (v.ravel() for v in np.meshgrid(np.array(few), np.array(few)))
    rng = np.random.default_rng(0)
    ends = np.iinfo(np.int64)
    bits = [rng.integers(ends.min, ends.max, 2000, endpoint=True).view("f8") for _ in "ab"]
    close = [rng.standard_normal(2000) * 2.0 ** rng.integers(-60, 4, 2000) for _ in "ab"]
    steps = 1 + rng.integers(-3, 4, 2000) * 2.0**-52
    whole = [rng.integers(1 << 26, 1 << 27, 2000).astype(np.float64) for _ in "ab"]
    halves = [rng.integers(-64, 64, 2000) * 2.0 ** rng.integers(-8, 50, 2000) for _ in "ab"]
    halves = [x + rng.choice([0, 0.25, 0.5], 2000) for x in halves]
    return np.concatenate([a, bits[0], close[0], close[0], whole[0], halves[0]]), np.concatenate(
        [b, bits[1], close[1], -close[0] * steps, whole[1], halves[1]]
    )


def differing_doubles(name: str, machine: str) -> int:
    """Counts the results of an operator of f64 on a machine that have not NumPy's bits; every NaN
    is one."""
    function = DOUBLES[name]
    with np.errstate(all="ignore"):
        inputs = doubles()[: getattr(function, "nin", 1)]
        found = run(f"stablehlo.{name} {{}}", inputs, ("f64", "f64"), machine)
        wanted = function(*inputs)
    both = np.isnan(found) & np.isnan(wanted)
    return int((~both & (found.view("i8") != wanted.view("i8"))).sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--machine", nargs="*", default=MACHINES)
    parser.add_argument("--each", type=int, default=128, help="numbers of each exponent")
    parser.add_argument("--only", default="", help="functions and types whose names contain this")
    options = parser.parse_args()
    wrong = 0
    for machine in options.machine:
        for name, function in FUNCTIONS.items():
            if options.only in name:
                error, where = error_of(name, function, machine, options.each)
                beyond = error > function.most
                wrong += beyond
                line = (
                    f"{machine:<12}{name:<34}{error:>10.2f} of {function.most:5.2f} at {where:.8g}"
                )
                print(f"{line}{'  beyond' if beyond else ''}", flush=True)
        for kind in (kind for kind in (*INTEGERS, "f64") if options.only in kind):
            if kind == "f64":
                counts = {name: differing_doubles(name, machine) for name in DOUBLES}
            else:
                counts = {name: differing(kind, name, machine) for name in (*PAIRS, *COMPARISONS)}
            bad = {name: count for name, count in counts.items() if count}
            wrong += len(bad)
            print(
                f"{machine:<12}{kind:<34}{len(counts)} operators, wrong: {bad or 'none'}",
                flush=True,
            )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
