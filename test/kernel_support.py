"""What tests and benchmarks of kernels share: running one kernel, and the Nz layout in NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci import machine as machines
from davinci.mlir import ir, make_context, symbol_name
from davinci.passes.analysis.kernels import kernels
from davinci.passes.pipeline import runner
from davinci.runtime.jit import KernelLibrary
from davinci.simulator.core.device import Device
from davinci.simulator.timing.profile import LaunchProfile

Array = npt.NDArray[Any]

DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
}
TO_LLVM = "cce-to-hivm{{machine={machine}}},hivm-to-llvm"
GM_BYTES = 1 << 26


@dataclass(frozen=True)
class KernelRun:
    """What a kernel computed and what the simulator counted."""

    outputs: list[Array]
    profile: LaunchProfile


def run_kernel(
    text: str,
    inputs: Sequence[Array],
    outputs: int = 1,
    machine: str = "ascend910",
    **options: object,
) -> KernelRun:
    """Lowers a module that holds one kernel on memrefs and runs it on a new device.

    Args:
        text: the module; the kernel's last `outputs` arguments are written, the others inputs.
        options: of `ascend-to-cce`, e.g. cores=1, matmul_strategy="is".
    """
    chosen = {"machine": machine, **options}
    words = " ".join(f"{key.replace('_', '-')}={value}" for key, value in chosen.items())
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        runner.run(module.operation, f"builtin.module(ascend-to-cce{{{words}}})")
        return run_cce(module, inputs, outputs, machine)


def lowered_text(text: str, pipeline: str) -> str:
    """The module after `pipeline`, written without its anchor."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        runner.run(module.operation, f"builtin.module({pipeline})")
        return str(module)


def run_cce_text(text: str, inputs: Sequence[Array], outputs: int = 1) -> KernelRun:
    """Runs a kernel at the cce level, with addresses and synchronisation as they are."""
    with make_context(), ir.Location.unknown():
        return run_cce(ir.Module.parse(text), inputs, outputs, "ascend910")


def run_cce(module: Any, inputs: Sequence[Array], outputs: int, machine: str) -> KernelRun:
    """Lowers a module whose one kernel is at the cce level, and runs it on a new device."""
    kernel = kernels(module.operation)[0]
    name, blocks = symbol_name(kernel), kernel.attributes["ascend.blocks"].value
    types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    buffers = [(tuple(t.shape), np.dtype(DTYPES[str(t.element_type)])) for t in types]
    runner.run(module.operation, f"builtin.module({TO_LLVM.format(machine=machine)})")
    library = KernelLibrary(module.operation)
    device = Device(machines.load(machine), GM_BYTES)
    addresses = [device.allocate(math.prod(shape) * dtype.itemsize) for shape, dtype in buffers]
    assert len(inputs) + outputs == len(buffers)
    for address, array, (shape, dtype) in zip(addresses, inputs, buffers, strict=False):
        assert (array.shape, array.dtype) == (shape, dtype)
        device.write(address, array)
    profile = device.launch(name, library.programs[name], addresses, blocks, library.locations)
    results = list(zip(addresses, buffers, strict=True))[len(inputs) :]
    return KernelRun([device.read(a, dtype, shape) for a, (shape, dtype) in results], profile)


def fractals(matrix: Array) -> Array:
    """A [.., m, n] matrix in Nz, [.., ceil(n / c), ceil(m / 16), 16, c], padded with zeros."""
    *lead, m, n = matrix.shape
    c = 32 if matrix.dtype.itemsize == 1 else 16
    rows, columns = -(-m // 16), -(-n // c)
    padded = np.zeros((*lead, rows * 16, columns * c), matrix.dtype)
    padded[..., :m, :n] = matrix
    split = padded.reshape(*lead, rows, 16, columns, c)
    return np.ascontiguousarray(np.moveaxis(split, -2, -4))


def matrix_of(nz: Array, m: int, n: int) -> Array:
    """`fractals` backwards: the first m rows and n columns."""
    *lead, columns, rows, side, c = nz.shape
    joined = np.moveaxis(nz, -4, -2).reshape(*lead, rows * side, columns * c)
    return np.ascontiguousarray(joined[..., :m, :n])
