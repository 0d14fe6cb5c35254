"""Running one ascend operator as a kernel of its own, for tests against NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_support import DTYPES, KernelRun, run_kernel

Array = npt.NDArray[Any]

TYPES = {name: element for element, name in DTYPES.items()}


CAST = "builtin.unrealized_conversion_cast"


def shaped(kind: str, shape: Sequence[int], dtype: npt.DTypeLike, byte: bool = True) -> str:
    """A type of MLIR: `tensor` or `memref`.

    Args:
        byte: whether booleans are the bytes that hold them.
    """
    boolean = np.dtype(dtype) == np.bool_
    element = ("i8" if byte else "i1") if boolean else TYPES[np.dtype(dtype).name]
    return f"{kind}<{''.join(f'{n}x' for n in shape)}{element}>"


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
    tensors = [shaped("tensor", x.shape, x.dtype, byte=False) for x in inputs]
    buffers = [shaped("memref", x.shape, x.dtype) for x in inputs]
    result, out = shaped("tensor", shape, dtype, byte=False), shaped("memref", shape, dtype)
    arguments = [f"%a{i}: {t}" for i, t in enumerate(buffers) if i not in full]
    lines = []
    for i, (buffer, tensor, x) in enumerate(zip(buffers, tensors, inputs, strict=True)):
        held = shaped("tensor", x.shape, x.dtype)
        if i in full:
            lines.append(f'%x{i} = "ascend.full"() {{value = {full[i]}}} : () -> {tensor}')
            continue
        lines.append(f"%h{i} = bufferization.to_tensor %a{i} restrict : {buffer} to {held}")
        lines.append(f"%x{i} = {CAST} %h{i} : {held} to {tensor}")
    operands, types = ", ".join(f"%x{i}" for i in range(len(inputs))), ", ".join(tensors)
    held = shaped("tensor", shape, dtype)
    lines += [
        f'%y = "ascend.{name}"({operands}) {{{attributes}}} : ({types}) -> {result}',
        f"%z = {CAST} %y : {result} to {held}",
        "bufferization.materialize_in_destination %z in restrict writable %r : "
        f"({held}, {out}) -> ()",
    ]
    return (
        f"func.func @{name}({', '.join([*arguments, f'%r: {out}'])}) "
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
    """Compiles and runs the kernel of `kernel_text`; `options` are those of `ascend-to-cce`.

    Booleans come back as the bytes that hold them.
    """
    text = kernel_text(name, inputs, shape, dtype, attributes, full)
    arrays = [
        x.astype(np.int8) if x.dtype == np.bool_ else x
        for i, x in enumerate(inputs)
        if i not in (full or {})
    ]
    return run_kernel(text, arrays, **options)
