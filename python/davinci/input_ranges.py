"""Ranges of a model's inputs, for policies of precision that scale values by them.

A range is declared, `ranges={"x": (0, 255)}` or `--range x=0:255`, or measured: the least and the
largest element of samples, an `.npz` file as quantization takes it, or the inputs of a run. It is
written on the argument (`ascend.range`), and compared with what each run is given.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from davinci.arrays import Arrays, load_npz
from davinci.errors import InputError, did_you_mean
from davinci.mlir import ir, is_public

WHERE = "ranges"

DECLARED, MEASURED = "declared", "measured"


class InputRange(NamedTuple):
    """Between which numbers the elements of an input lie, and who says so."""

    low: float
    high: float
    source: str = DECLARED


SCALED = "scaled-fp16"
"""The policy of precision that reads ranges."""

Given = Mapping[str, Sequence[Any]] | Iterable[Arrays] | str | os.PathLike[str] | None
"""What `davinci.compile` takes: pairs by name, samples, or the path of an `.npz` file of them."""


def require_scaling(precision: str, where: str = WHERE) -> None:
    """Raises an `InputError` where ranges are given to a policy that reads none."""
    if precision != SCALED:
        raise InputError(
            "ranges are not read with this precision",
            where=where,
            found=precision,
            expected=SCALED,
            hint="leave the ranges out, or scale values by them",
        )


def ranges_of(given: Given) -> dict[str, InputRange]:
    """The ranges that a user gives.

    Raises:
        InputError: something is no range, or has no elements.
    """
    if given is None:
        return {}
    if isinstance(given, (str, os.PathLike)):
        return measured([load_npz(os.fspath(given))], os.fspath(given))
    if isinstance(given, Mapping):
        return {str(name): checked(name, found) for name, found in given.items()}
    samples = list(given)
    if not samples or not all(isinstance(sample, Mapping) for sample in samples):
        raise InputError(
            "not ranges",
            where=WHERE,
            found=f"an object of type {type(given).__name__}",
            expected="pairs by name, a list of samples, or the path of an .npz file",
        )
    return measured(samples)


def checked(name: str, found: Any) -> InputRange:
    """A declared range.

    Raises:
        InputError: it is no pair of numbers, lowest first.
    """
    where = f"range of input {name!r}"
    expected = "(lowest, highest), two finite numbers"
    try:
        low, high, *rest = found
        made = InputRange(float(low), float(high), *rest)
    except (TypeError, ValueError):
        raise InputError("not a range", where=where, found=repr(found), expected=expected) from None
    if not (math.isfinite(made.low) and math.isfinite(made.high)):
        raise InputError(
            "a range that is not finite", where=where, found=text(made), expected=expected
        )
    if made.low > made.high:
        raise InputError(
            "a range that ends before it begins",
            where=where,
            found=text(made),
            expected=expected,
            hint=f"{text(InputRange(made.high, made.low))} is the other way round",
        )
    return made


def parsed(texts: Iterable[str]) -> dict[str, InputRange]:
    """The ranges that options of a command give: `x=0:255`, or an `.npz` file of samples; later
    ones count.

    Raises:
        InputError: one is neither.
    """
    found: dict[str, InputRange] = {}
    for given in texts:
        if given.endswith(".npz"):
            found |= ranges_of(given)
            continue
        name, equals, pair = given.rpartition("=")
        ends = pair.split(":")
        try:
            low, high = map(float, ends)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InputError(
                "not a range",
                where="--range",
                found=repr(given),
                expected="NAME=LOW:HIGH, as x=0:255, or an .npz file of samples",
            )
        found[name] = checked(name, (low, high))
    return found


def measured(samples: Iterable[Mapping[str, Any]], where: str = WHERE) -> dict[str, InputRange]:
    """The least and the largest element of each input over all samples.

    Raises:
        InputError: an input has no elements, or some that are not finite.
    """
    found: dict[str, InputRange] = {}
    for sample in samples:
        for name, array in sample.items():
            values = np.asarray(array)
            if not values.size or not np.isfinite(values.astype(np.float64)).all():
                raise InputError(
                    "no range can be measured",
                    where=f"{where}: input {name!r}",
                    found="no elements" if not values.size else "elements that are not finite",
                    expected="finite numbers",
                )
            low, high = float(values.min()), float(values.max())
            if name in found:
                low, high = min(low, found[name].low), max(high, found[name].high)
            found[name] = InputRange(low, high, MEASURED)
    return found


def text(found: InputRange) -> str:
    """A range as options have it: 0:255."""
    return f"{found.low:g}:{found.high:g}"


def declare(module: ir.Module, ranges: Mapping[str, InputRange]) -> None:
    """Writes ranges on the arguments of a module's host function.

    Raises:
        InputError: the function has no input of such a name.
    """
    function = next(op for op in module.body.operations if is_public(op.operation)).operation
    arguments = list(function.regions[0].blocks[0].arguments)
    with module.context, ir.Location.unknown():
        given = function.attributes.get("arg_attrs") or [{}] * len(arguments)
        attributes = [{x.name: x.attr for x in found} for found in given]
        names = [
            ir.StringAttr(found["ascend.name"]).value if "ascend.name" in found else f"arg{number}"
            for number, found in enumerate(attributes)
        ]
        for name in ranges:
            if name not in names:
                raise InputError(
                    "no such input",
                    where=f"range of input {name!r}",
                    expected=", ".join(names),
                    hint=did_you_mean(name, names),
                )
        kind = ir.F64Type.get()
        for name, found in zip(names, attributes, strict=True):
            if name in ranges:
                ends = [ir.FloatAttr.get(kind, x) for x in ranges[name][:2]]
                found["ascend.range"] = ir.ArrayAttr.get(ends)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [ir.DictAttr.get(found) for found in attributes]
        )
