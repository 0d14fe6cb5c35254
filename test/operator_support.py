"""Running one ascend operator as a kernel of its own, for tests against NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_support import DTYPES, KernelRun, run_kernel

Array = npt.NDArray[Any]

TYPES = {name: element for element, name in DTYPES.items()}


def memref(shape: Sequence[int], dtype: npt.DTypeLike) -> str:
    return f"memref<{''.join(f'{n}x' for n in shape)}{TYPES[np.dtype(dtype).name]}>"


def kernel_text(
    name: str,
    inputs: Sequence[Array],
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    attributes: str = "",
    full: Mapping[int, str] | None = None,
) -> str:
    """A module with one kernel that applies `ascend.name`.

    Args:
        shape, dtype: of the result.
        attributes: text of the operation's attributes.
        full: operands, by number, that are an `ascend.full` of this value instead of an argument.
    """
    full = full or {}
    types = [memref(x.shape, x.dtype) for x in inputs]
    result = memref(shape, dtype)
    arguments = [f"%a{i}: {t}" for i, t in enumerate(types) if i not in full]
    lines = [
        f'%a{i} = "ascend.full"() {{value = {value}}} : () -> {types[i]}'
        for i, value in full.items()
    ]
    operands = ", ".join([*(f"%a{i}" for i in range(len(types))), "%r"])
    signature = ", ".join([*types, result])
    lines.append(f'"ascend.{name}"({operands}) {{{attributes}}} : ({signature}) -> ()')
    return (
        f"func.func @{name}({', '.join([*arguments, f'%r: {result}'])}) "
        f"attributes {{ascend.kernel}} {{\n" + "\n".join(lines) + "\nreturn\n}"
    )


def run_operator(
    name: str,
    inputs: Sequence[Array],
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    attributes: str = "",
    full: Mapping[int, str] | None = None,
    **options: object,
) -> KernelRun:
    """Compiles and runs the kernel of `kernel_text`; `options` are those of `ascend-to-cce`."""
    text = kernel_text(name, inputs, shape, dtype, attributes, full)
    arrays = [x for i, x in enumerate(inputs) if i not in (full or {})]
    return run_kernel(text, arrays, **options)
