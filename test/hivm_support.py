"""Kernels in the text of AscendNPU-IR for tests: buffers at addresses, one operation after another.

What is written here is generic MLIR of its dialect `hivm.hir`, with a barrier of all pipes between
operations, so that a test is about one operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import davinci
from davinci.frontends.hivm import Given, launch
from davinci.runtime.executable import Executable

ELEMENTS = {
    "float32": "f32",
    "float16": "f16",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "int64": "i64",
}
BARRIER = '"hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}> : () -> ()'
ALIGN = 256


@dataclass
class KernelText:
    """A kernel for vector cores that is being written.

    Attributes:
        lines: of its body.
        top: bytes of UB that have buffers.
    """

    arguments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    top: int = 0
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def constant(self, value: Any, kind: str) -> str:
        name = self.name()
        self.lines.append(
            f'{name} = "arith.constant"() <{{value = {value} : {kind}}}> : () -> {kind}'
        )
        return name

    def buffer(self, shape: Sequence[int], element: str, space: str = "ub") -> tuple[str, str]:
        """A buffer behind the others, and its type."""
        kind = memref(shape, element, space)
        address, name = self.constant(self.top, "i64"), self.name()
        sizes = "operandSegmentSizes = array<i32: 1, 0>"
        self.lines.append(
            f'{name} = "hivm.hir.pointer_cast"({address}) <{{{sizes}}}> : (i64) -> {kind}'
        )
        bits = 1 if element == "i1" else int(element[-2:].lstrip("ifb")) if element != "i8" else 8
        size = int(np.prod(shape)) * bits // 8
        self.top += -(-max(size, 1) // ALIGN) * ALIGN
        return name, kind

    def argument(self, shape: Sequence[int], element: str) -> tuple[str, str]:
        """An array in global memory, seen as `shape`."""
        number = len(self.arguments)
        whole = memref(["?"], element, "gm")
        self.arguments.append(f"%arg{number}: {whole}")
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        kind = memref(shape, element, "gm")
        name = self.name()
        given = (
            "operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, "
            f"static_sizes = array<i64: {joined(shape)}>, "
            f"static_strides = array<i64: {joined(strides)}>"
        )
        self.lines.append(
            f'{name} = "memref.reinterpret_cast"(%arg{number}) <{{{given}}}> : ({whole}) -> {kind}'
        )
        return name, kind

    def op(self, name: str, operands: Sequence[tuple[str, str]], attributes: str = "") -> None:
        """An operation on operands with their types, and a barrier."""
        values, kinds = (", ".join(part) for part in zip(*operands, strict=True))
        given = f" <{{{attributes}}}>" if attributes else ""
        self.lines += [f'"hivm.hir.{name}"({values}){given} : ({kinds}) -> ()', BARRIER]

    def first_column(
        self, array: tuple[str, str], rows: int, columns: int, element: str
    ) -> tuple[str, str]:
        """The first element of each row of a buffer."""
        (value, whole), name = array, self.name()
        kind = f"memref<{rows}x{element}, strided<[{columns}]>, #hivm.address_space<ub>>"
        given = (
            "operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0, 0>, "
            f"static_sizes = array<i64: {rows}, 1>, static_strides = array<i64: 1, 1>"
        )
        self.lines.append(f'{name} = "memref.subview"({value}) <{{{given}}}> : ({whole}) -> {kind}')
        return name, kind

    def load(self, shape: Sequence[int], element: str) -> tuple[str, str]:
        """The next argument, in a buffer."""
        source, target = self.argument(shape, element), self.buffer(shape, element)
        self.op("load", [source, target], LOAD)
        return target

    def store(self, value: tuple[str, str], shape: Sequence[int], element: str) -> None:
        """A buffer into the next argument."""
        self.op("store", [value, self.argument(shape, element)], STORE)

    def text(self) -> str:
        body = "\n    ".join(self.lines)
        kinds = ", ".join(argument.partition(": ")[2] for argument in self.arguments)
        return f"""
"builtin.module"() ({{
  "func.func"() <{{function_type = ({kinds}) -> (), sym_name = "k"}}> ({{
  ^bb0({", ".join(self.arguments)}):
    "hivm.hir.set_mask_norm"() : () -> ()
    {body}
    "func.return"() : () -> ()
  }}) {{hivm.func_core_type = #hivm.func_core_type<AIV>}} : () -> ()
}}) : () -> ()
"""


LOAD = (
    "init_out_buffer = false, may_implicit_transpose_with_last_axis = false, "
    "operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>"
)
STORE = "may_implicit_transpose_with_last_axis = false"


def joined(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))


def memref(shape: Sequence[Any], element: str, space: str) -> str:
    sizes = "".join(f"{n}x" for n in shape)
    return f"memref<{sizes}{element}, #hivm.address_space<{space}>>"


def segments(*sizes: int) -> str:
    """`operandSegmentSizes`, and what elementwise operations say besides."""
    given = f"operandSegmentSizes = array<i32: {joined(sizes)}>"
    return f"{given}, broadcast = array<i64>, transpose = array<i64>"


def compiled(text: str, arrays: Sequence[np.ndarray[Any, Any]], blocks: int = 1) -> Executable:
    """The launch of a kernel on arrays like these."""
    given = [
        Given(f"x{i}", array.shape, ELEMENTS[str(array.dtype)]) for i, array in enumerate(arrays)
    ]
    return davinci.compile(launch(text, [blocks], given), machine="ascend910b")


def run(text: str, *arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The last array after a run."""
    executable = compiled(text, arrays)
    outputs = executable.run({f"x{i}": array for i, array in enumerate(arrays)})
    return outputs[f"x{len(arrays) - 1}"]
