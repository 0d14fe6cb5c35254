"""Arrays of a launch as buffers: flat, from the first element on, each piece of memory once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.errors import InputError
from davinci.runtime.arguments import as_array

ELEMENTS = {
    "bool": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32",
}  # fmt: skip
"""Element types of MLIR; integers have no sign there."""


@dataclass(frozen=True)
class ArgumentMemory:
    """The memory of an array argument.

    Attributes:
        flat: its elements from the first to the last one, gaps between them included; changes of
            it are changes of the caller's array.
        element: the element type as MLIR has it.
        same: the name of an earlier argument that begins at the same address; None for others.
    """

    flat: npt.NDArray[Any]
    element: str
    same: str | None = None

    @property
    def address(self) -> int:
        return int(self.flat.__array_interface__["data"][0])


def is_array(value: Any) -> bool:
    """Whether an argument is an array or a tensor, not a number."""
    return hasattr(value, "data_ptr") or bool(
        hasattr(value, "dtype") and getattr(value, "shape", ())
    )


def flattened(value: Any, name: str) -> npt.NDArray[Any]:
    """The elements of an array in memory, from the first on.

    Raises:
        InputError: it cannot be reached, or its elements go backwards.
    """
    if getattr(getattr(value, "device", None), "type", "cpu") not in ("cpu",):
        raise InputError(
            f"argument {name} is on another device", found=str(value.device), expected="the CPU"
        )
    strides = tuple(value.stride()) if hasattr(value, "stride") else None
    array = as_array(value, f"argument {name}")
    if strides is not None and not value.is_contiguous() and str(value.dtype) == "torch.bfloat16":
        raise InputError(f"argument {name}: bfloat16 with gaps", hint="call contiguous() first")
    steps = array.strides
    if any(step < 0 for step in steps):
        raise InputError(f"argument {name} goes backwards in memory", found=f"strides {steps}")
    if 0 in array.shape:
        return np.zeros(1, array.dtype)
    size = array.itemsize
    count = 1 + sum((n - 1) * step // size for n, step in zip(array.shape, steps, strict=True))
    return np.lib.stride_tricks.as_strided(
        array, (count,), (size,), writeable=array.flags.writeable
    )


def memories(arrays: Mapping[str, Any]) -> dict[str, ArgumentMemory]:
    """The memory of each array argument, by name; of those that begin at one address, the first
    has all elements of the longest.

    Raises:
        InputError: an element type that kernels do not have.
    """
    found: dict[str, ArgumentMemory] = {}
    firsts: dict[tuple[int, str], str] = {}
    for name, value in arrays.items():
        flat = flattened(value, name)
        kind = str(flat.dtype)
        if kind not in ELEMENTS:
            raise InputError(
                f"argument {name} has an element type that kernels do not have",
                found=kind,
                expected=", ".join(ELEMENTS),
            )
        signed = flat.view(f"i{flat.itemsize}") if flat.dtype.kind in "bu" else flat
        memory = ArgumentMemory(signed, ELEMENTS[kind])
        key = (memory.address, memory.element)
        first = firsts.setdefault(key, name)
        if first != name:
            if memory.flat.size > found[first].flat.size:
                found[first] = ArgumentMemory(memory.flat, memory.element)
            memory = ArgumentMemory(memory.flat, memory.element, first)
        found[name] = memory
    return found
