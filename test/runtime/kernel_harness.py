"""Runs hand-written cce kernels on the simulator, for the tests beside it.

`Kernel` builds the text of a kernel: arguments in GM, buffers in UB that mirror them, a barrier of
all pipes behind each operation. `run` compiles a text and launches it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from davinci import machine as machines
from davinci.isa.core import DTYPES
from davinci.mlir import ir, make_context
from davinci.passes.cce_to_hivm.convert_cce_to_hivm import ConvertCceToHivmPass
from davinci.passes.hivm_to_llvm.convert_hivm_to_llvm import ConvertHivmToLlvmPass
from davinci.runtime.jit import KernelLibrary
from davinci.simulator import Device

Array = npt.NDArray[Any]

MLIR_NAMES = {"f16": "f16", "f32": "f32", "s8": "i8", "u8": "ui8", "s16": "i16", "s32": "i32"}
BARRIER = '"cce.pipe_barrier"() {pipe = "ALL"} : () -> ()'


def compile_text(text: str) -> KernelLibrary:
    """Lowers the kernels of a module to LLVM and compiles them."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        ConvertCceToHivmPass().run(module.operation)
        module.operation.verify()
        ConvertHivmToLlvmPass().run(module.operation)
        module.operation.verify()
        return KernelLibrary(module.operation)


def run(text: str, arrays: list[Array], blocks: int = 1, name: str = "k") -> list[Array]:
    """Launches the kernel on copies of `arrays`; returns what the arguments hold afterwards."""
    library = compile_text(text)
    device = Device(machines.load("ascend910"), 1 << 24)
    addresses = [device.allocate(a.nbytes) for a in arrays]
    for address, array in zip(addresses, arrays, strict=True):
        device.write(address, array)
    device.launch(
        name, library.programs[name], addresses, blocks=blocks, locations=library.locations
    )
    return [device.read(p, a.dtype, a.shape) for p, a in zip(addresses, arrays, strict=True)]


class Kernel:
    """A kernel whose arguments are loaded to UB, worked on there, and stored again."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.before: list[str] = []
        self.lines: list[str] = []
        self.after: list[str] = []
        self.address, self.values = 0, 0

    def name(self) -> str:
        self.values += 1
        return f"%v{self.values}"

    def argument(self, size: int, dtype: str) -> tuple[str, str]:
        """An argument of `size` elements mirrored in UB; returns the UB buffer and its type."""
        element = MLIR_NAMES[dtype]
        gm, ub = f"memref<{size}x{element}>", f'memref<{size}x{element}, #cce.space<"UB">>'
        n = len(self.arguments)
        self.arguments.append(f"%a{n}: {gm}")
        self.before += [
            f"%u{n} = memref.alloc() {{cce.address = {self.address} : i64}} : {ub}",
            f'"cce.copy"(%a{n}, %u{n}) {{round_up}} : ({gm}, {ub}) -> ()',
        ]
        self.after.append(f'"cce.copy"(%u{n}, %a{n}) {{round_up}} : ({ub}, {gm}) -> ()')
        self.address += -(-size * DTYPES[dtype].itemsize // 32) * 32
        return f"%u{n}", ub

    def view(
        self,
        size: int,
        dtype: str,
        shape: list[int],
        strides: list[int],
        offset: int = 0,
    ) -> tuple[str, str]:
        """A strided view of a new argument."""
        buffer, ub = self.argument(size, dtype)
        result = self.name()
        layout = f'strided<{strides}, offset: {offset}>, #cce.space<"UB">'
        kind = f"memref<{'x'.join(map(str, shape))}x{MLIR_NAMES[dtype]}, {layout}>"
        self.lines.append(
            f"{result} = memref.reinterpret_cast {buffer} to offset: [{offset}], "
            f"sizes: {shape}, strides: {strides} : {ub} to {kind}"
        )
        return result, kind

    def op(self, name: str, operands: list[tuple[str, str]], attributes: str = "") -> None:
        values = ", ".join(value for value, _ in operands)
        types = ", ".join(kind for _, kind in operands)
        self.lines += [f'"cce.{name}"({values}) {{{attributes}}} : ({types}) -> ()', BARRIER]

    def text(self) -> str:
        body = [*self.before, BARRIER, *self.lines, BARRIER, *self.after, "return"]
        lines = "\n".join(body)
        arguments = ", ".join(self.arguments)
        return f"func.func @k({arguments}) attributes {{ascend.kernel}} {{\n{lines}\n}}"


def strided(array: Array, shape: list[int], strides: list[int], offset: int = 0) -> Array:
    """The same view of a flat NumPy array (strides in elements)."""
    steps = [s * array.itemsize for s in strides]
    return np.lib.stride_tricks.as_strided(array[offset:], shape, steps)
