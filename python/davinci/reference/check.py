"""Comparison of a run with a reference: onnxruntime's outputs, or those of `interpreter`.

A network passes if for every output the cosine of the angle to the reference is high enough, and no
element is off by more than a share of the largest one; integers and booleans must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.errors import CheckFailed, InputError
from davinci.narrow import is_float

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Tolerance:
    """Least cosine, and the largest error as a share of the largest value."""

    cosine: float
    max_rel_err: float


# A sum of products of fp16 values is off by a few times 2^-11 of its largest value, and errors of
# layers add up: 2^-11 is 0.0005, so these leave room for some hundred roundings that agree in sign.
TOLERANCES = {
    "mixed": Tolerance(cosine=0.9999, max_rel_err=0.05),
    # f32 rounds by 2^-24, functions of the vector unit are within 1e-6: again some hundred of them.
    "fp32": Tolerance(cosine=0.999999, max_rel_err=1e-4),
    "fp16": Tolerance(cosine=0.999, max_rel_err=0.1),
    "scaled-fp16": Tolerance(cosine=0.999, max_rel_err=0.1),
}


def reference_onnx(model: Any, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Outputs of an `onnx.ModelProto` by name, from onnxruntime on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        values = session.run(None, dict(inputs))
    except Exception as error:  # onnxruntime's own exceptions have no common base
        raise InputError(
            f"onnxruntime cannot run the model: {error}", hint="run without --check"
        ) from None
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, values, strict=True))


def compare(found: Arrays, reference: Arrays) -> dict[str, float]:
    """Largest errors and least cosine over all outputs.

    Raises:
        CheckFailed: a value that is not finite where the reference is, or integers that differ.
    """
    worst = {"max_abs_err": 0.0, "max_rel_err": 0.0, "cosine": 1.0}
    for name, wanted in reference.items():
        errors = compare_one(name, np.asarray(found[name]), np.asarray(wanted))
        worst["max_abs_err"] = max(worst["max_abs_err"], errors["max_abs_err"])
        worst["max_rel_err"] = max(worst["max_rel_err"], errors["max_rel_err"])
        worst["cosine"] = min(worst["cosine"], errors["cosine"])
    return worst


def compare_one(name: str, found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> dict[str, float]:
    """Errors of one output, see `compare`."""
    where = f"output {name!r}"
    if found.shape != wanted.shape:
        raise CheckFailed("shapes differ", where=where, found=f"{found.shape}, not {wanted.shape}")
    if not is_float(wanted.dtype):
        different = int((found != wanted).sum())
        if different:
            raise CheckFailed("integers differ", where=where, found=f"{different} of {found.size}")
        return {"max_abs_err": 0.0, "max_rel_err": 0.0, "cosine": 1.0}
    a, b = found.astype(np.float64).ravel(), wanted.astype(np.float64).ravel()
    finite = np.isfinite(b)
    wrong = np.where(finite, ~np.isfinite(a), ~((a == b) | (np.isnan(a) & np.isnan(b))))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise CheckFailed(
            "values are not finite where the reference is, or the reverse",
            where=where,
            found=f"{int(wrong.sum())} of {a.size}, the first {a[at]} instead of {b[at]}",
        )
    a, b = a[finite], b[finite]
    largest = float(np.abs(b).max(initial=0.0))
    error = float(np.abs(a - b).max(initial=0.0))
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return {
        "max_abs_err": error,
        "max_rel_err": error / largest if largest else error,
        "cosine": float(a @ b) / norm if norm else float(error == 0.0),
    }


def require(errors: Mapping[str, float], precision: str) -> None:
    """Raises `CheckFailed` unless the errors are within the tolerance of `precision`."""
    tolerance = TOLERANCES[precision]
    if errors["cosine"] < tolerance.cosine or errors["max_rel_err"] > tolerance.max_rel_err:
        raise CheckFailed(
            "the outputs differ from the reference",
            found=f"cosine {errors['cosine']:.7f}, relative error {errors['max_rel_err']:.3g}",
            expected=f"at least {tolerance.cosine} and at most {tolerance.max_rel_err}",
        )
