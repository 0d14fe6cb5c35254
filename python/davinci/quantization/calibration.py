"""Calibration data, and what tensors are for it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from davinci.arrays import load_npz
from davinci.errors import InputError
from davinci.frontends.onnx.model import inputs_of
from davinci.quantization.ranges import counted, is_flat, observed
from davinci.quantization.records import Array, Observed
from davinci.quantization.runs import ModelRun

WHERE = "calibration_data"

Sample = dict[str, Array]


def samples_of(data: Any, model: onnx.ModelProto) -> list[Sample]:
    """The samples in `data`, each with all inputs of the model.

    Args:
        data: an iterable of samples, arrays by name; or the path of an `.npz` file of arrays that
            hold all samples: stacked (one more dimension than the input), or joined along the
            input's first dimension.

    Raises:
        InputError: no samples, or arrays that are no inputs of the model.
    """
    inputs = inputs_of(model)
    if isinstance(data, (str, os.PathLike)):
        samples = parted(load_npz(os.fspath(data)), inputs, os.fspath(data))
        where = os.fspath(data)
    elif isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise InputError(
            "not calibration data",
            where=WHERE,
            found=f"an object of type {type(data).__name__}",
            expected="an iterable of dicts of arrays by name, or the path of an .npz file",
            hint="a list of one dict is one sample",
        )
    else:
        samples, where = list(data), WHERE
    if not samples:
        raise InputError("no samples", where=where, expected="one at least, 100 are usual")
    return [checked(sample, inputs, f"{where}: sample {i}") for i, sample in enumerate(samples)]


def parted(
    arrays: Mapping[str, Array], inputs: Sequence[onnx.ValueInfoProto], where: str
) -> list[Sample]:
    """The samples of arrays that hold all of them."""
    require_names(arrays, inputs, where)
    pieces: dict[str, list[Array]] = {}
    for value in inputs:
        array = arrays[value.name]
        dims = value.type.tensor_type.shape.dim
        if array.ndim == len(dims) + 1:
            pieces[value.name] = list(array)
            continue
        size = dims[0].dim_value or 1 if dims else 0
        if array.ndim != len(dims) or not size or len(array) % size:
            raise InputError(
                f"array {value.name!r} cannot be parted into samples",
                where=where,
                found=f"shape {list(array.shape)}",
                expected=f"[samples, {text_of(value)}], or samples joined along the first of "
                f"[{text_of(value)}]",
            )
        pieces[value.name] = np.split(array, len(array) // size)
    counts = {name: len(found) for name, found in pieces.items()}
    if len(set(counts.values())) > 1:
        raise InputError(
            "arrays hold different numbers of samples",
            where=where,
            found=", ".join(f"{name} {count}" for name, count in counts.items()),
        )
    return [
        {name: found[i] for name, found in pieces.items()}
        for i in range(min(counts.values(), default=0))
    ]


def require_names(
    found: Mapping[str, Any], inputs: Sequence[onnx.ValueInfoProto], where: str
) -> None:
    names = [value.name for value in inputs]
    if set(found) != set(names):
        raise InputError(
            "not the model's inputs",
            where=where,
            found=", ".join(sorted(found)) or "none",
            expected=", ".join(names),
        )


def text_of(value: onnx.ValueInfoProto) -> str:
    dims = value.type.tensor_type.shape.dim
    return ", ".join(str(dim.dim_value or dim.dim_param or "?") for dim in dims)


def checked(sample: Any, inputs: Sequence[onnx.ValueInfoProto], where: str) -> Sample:
    """A sample whose names, shapes and element types are those of the inputs."""
    if not isinstance(sample, Mapping):
        raise InputError(
            "not a sample",
            where=where,
            found=f"an object of type {type(sample).__name__}",
            expected="a dict of arrays by name",
        )
    require_names(sample, inputs, where)
    result = {}
    for value in inputs:
        kind = value.type.tensor_type
        array = np.asarray(sample[value.name])
        sizes = [dim.dim_value for dim in kind.shape.dim]
        fits = array.ndim == len(sizes) and all(
            size in (0, found) for size, found in zip(sizes, array.shape, strict=True)
        )
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
        if not fits or array.dtype != dtype:
            raise InputError(
                f"input {value.name!r} does not fit",
                where=where,
                found=f"{array.dtype}[{', '.join(map(str, array.shape))}]",
                expected=f"{dtype}[{text_of(value)}]",
            )
        result[value.name] = array
    return result


def observe(
    model: onnx.ModelProto, names: Sequence[str], samples: Sequence[Sample], counts: bool
) -> dict[str, Observed]:
    """What the tensors `names` are for the samples.

    Args:
        counts: whether values are counted, in a second run over all samples.

    Raises:
        InputError: a value that is not finite.
    """
    run = ModelRun(model, names)
    lows, highs = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for number, sample in enumerate(samples):
        for name, values in run(sample).items():
            lows[name] = min(lows[name], float(values.min(initial=0)))
            highs[name] = max(highs[name], float(values.max(initial=0)))
            if not math.isfinite(highs[name] - lows[name]) or np.isnan(values.sum()):
                raise InputError(
                    f"the value {name!r} is not finite",
                    where=f"{WHERE}: sample {number}",
                    hint="quantize a model, and data, whose values are",
                )
    result = {name: observed(lows[name], highs[name]) for name in names}
    for sample in samples if counts else ():
        for name, values in run(sample).items():
            if not is_flat(result[name]):
                result[name] = counted(result[name], values)
    return result
