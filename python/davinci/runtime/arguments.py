"""Arguments of a run: arrays by position or by name, made fit for the device or refused."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from davinci.errors import InputError, did_you_mean
from davinci.narrow import BY_DTYPE

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Spec:
    """Name, shape and element type of an input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def signature(specs: Sequence[Spec]) -> str:
    """`x: float32[2, 3], y: int64[4]`, or `none`."""
    return ", ".join(f"{spec.name}: {spec}" for spec in specs) or "none"


def bind(
    specs: Sequence[Spec],
    given: Sequence[Any],
    named: Mapping[str, Any],
    defaults: Mapping[str, Array] | None = None,
) -> list[Array]:
    """The arrays of a call in the order of `specs`, each of exactly its shape and element type.

    Args:
        specs: the inputs of the program.
        given: by position, first ones first; or one mapping, by name. Inputs that are places in an
            argument of the model (`params.w`) may be given as that argument, a tree of mappings and
            sequences.
        named: by name, those that `given` leaves out.
        defaults: of inputs that may be left out.

    Raises:
        InputError: an input is missing, unknown or given twice, or is no array that fits.
    """
    names = [spec.name for spec in specs]
    values = by_name(given, names)
    if values is None:
        raise InputError(
            "too many inputs",
            where="inputs",
            found=", ".join(described(value) for value in given),
            expected=signature(specs),
        )
    if twice := [name for name in named if name in values]:
        raise InputError(
            "given twice", where=f"input {twice[0]!r}", expected=f"once: {signature(specs)}"
        )
    values = dict(leaf for item in (values | dict(named)).items() for leaf in leaves(*item, names))
    values = {**(defaults or {}), **values}
    unknown = [name for name in values if name not in names]
    if unknown or len(values) != len(specs):
        raise InputError(
            "wrong input names",
            where="inputs",
            found=", ".join(map(str, values)) or "none",
            expected=signature(specs),
            hint=did_you_mean(str(unknown[0]), names) if unknown else "",
        )
    return [fitting(values[spec.name], spec, specs) for spec in specs]


def by_name(given: Sequence[Any], names: Sequence[str]) -> dict[str, Any] | None:
    """Arguments by position under their names; None if there are more than can be."""
    trees = any(isinstance(value, (Mapping, list, tuple)) for value in given)
    heads = list(dict.fromkeys(name.partition(".")[0] for name in names)) if trees else []
    if len(given) == 1 and isinstance(given[0], Mapping):
        alone = len(heads) == 1 and heads[0] not in names and heads[0] not in given[0]
        if not alone or any(name in names for name in given[0]):
            return dict(given[0])
    positions = heads if len(given) <= len(heads) else names
    if len(given) > len(positions):
        return None
    return dict(zip(positions, given, strict=False))


def leaves(name: str, value: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Arrays in `value` for the inputs whose names begin with `name.`, or `value` itself."""
    if name in names or not any(other.startswith(f"{name}.") for other in names):
        yield name, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(f"{name}.{key}", part, names)
    elif isinstance(value, (list, tuple)):
        for number, part in enumerate(value):
            yield from leaves(f"{name}.{number}", part, names)
    else:
        yield name, value


def fitting(value: Any, spec: Spec, specs: Sequence[Spec]) -> Array:
    """`value` as the array that `spec` describes.

    What has an element type must have the right one. Python's numbers and lists have none, and take
    the one expected where they are of its kind or a narrower one.
    """
    array = as_array(value, f"input {spec.name!r}")
    if array.shape == spec.shape:
        if array.dtype == spec.dtype:
            return array
        if array.dtype == np.dtype((np.void, spec.dtype.itemsize)) and spec.dtype in BY_DTYPE:
            return array.view(spec.dtype)  # an .npy file does not keep the names of such types
        untyped = getattr(value, "dtype", None) is None
        if untyped and np.can_cast(array.dtype, spec.dtype, "same_kind"):
            with suppress(OverflowError):  # what holds the numbers is refused below
                return np.asarray(value, spec.dtype)
    raise InputError(
        "wrong shape or element type",
        where=f"input {spec.name!r}",
        found=described(array),
        expected=str(spec),
        hint=f"all inputs are {signature(specs)}" if len(specs) > 1 else "",
    )


def as_array(value: Any, where: str) -> Array:
    """Anything that NumPy takes: arrays, PyTorch tensors on the CPU, JAX arrays, numbers, lists."""
    if hasattr(value, "detach"):  # a tensor that takes part in automatic differentiation
        value = value.detach()
    try:
        if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # has no way to NumPy
            bits = value.contiguous().view(sys.modules["torch"].int16)
            return np.asarray(bits).view(ml_dtypes.bfloat16)
        return np.asarray(value)
    except Exception as error:  # whatever the object's own conversion raises
        first = str(error).partition("\n")[0]
        raise InputError(
            f"not an array: {first}",
            where=where,
            found=type(value).__name__,
            expected="something that numpy.asarray takes",
        ) from None


def described(value: Any) -> str:
    """`float32[2, 3]`, or the type of what is no array."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return type(value).__name__
    return f"{dtype}{list(shape)}"
