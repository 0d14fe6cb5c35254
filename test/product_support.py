"""Products as kernels of one operator, for tests and benchmarks: operands in any layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.units import ceil_div
from kernel_support import KernelRun, fractals, matrix_of, run_kernel

Array = npt.NDArray[Any]

CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class Case:
    """C[m, n] = A[m, k] B[k, n], `batch` times if it is not 0.

    Attributes:
        layouts: of A, B and C, "n" for fractals (Nz), "r" for rows.
        turned: the operands given transposed, of "ab".
        result: element type of C.
    """

    m: int
    n: int
    k: int
    batch: int = 0
    layouts: str = "nnn"
    turned: str = ""
    result: str = "f32"

    def stored(self) -> list[tuple[int, int]]:
        """Rows and columns of what lies in GM for A, B and C."""
        a, b = (self.m, self.k), (self.k, self.n)
        a, b = (x[::-1] if side in self.turned else x for side, x in (("a", a), ("b", b)))
        return [a, b, (self.m, self.n)]

    def text(self) -> str:
        """A module with one kernel."""
        lead = f"{self.batch}x" if self.batch else ""
        lines, tensors, buffers, arguments = [], [], [], []
        for name, layout, (rows, columns), element in zip(
            "abc", self.layouts, self.stored(), ("f16", "f16", self.result), strict=True
        ):
            matrix = f"{lead}{rows}x{columns}x{element}"
            array = f"{lead}{ceil_div(columns, 16)}x{ceil_div(rows, 16)}x16x16x{element}"
            nz = layout == "n"
            tensors.append(f'tensor<{matrix}, #ascend.layout<"nz">>' if nz else f"tensor<{matrix}>")
            buffers.append(array if nz else matrix)
            arguments.append(f"%{name}: memref<{buffers[-1]}>")
        for name, tensor, buffer in zip("xy", tensors, buffers, strict=False):
            gm = "ab"["xy".index(name)]
            lines.append(
                f"%{name}_held = bufferization.to_tensor %{gm} restrict : memref<{buffer}> to "
                f"tensor<{buffer}>"
            )
            lines.append(f"%{name} = {CAST} %{name}_held : tensor<{buffer}> to {tensor}")
        a, b, c = tensors
        flags = ", ".join(f"transpose_{side}" for side in self.turned)
        name = "batch_matmul" if self.batch else "matmul"
        lines += [
            f'%z = "ascend.{name}"(%x, %y) {{{flags}}} : ({a}, {b}) -> {c}',
            f"%z_held = {CAST} %z : {c} to tensor<{buffers[2]}>",
            "bufferization.materialize_in_destination %z_held in restrict writable %c : "
            f"(tensor<{buffers[2]}>, memref<{buffers[2]}>) -> ()",
        ]
        body = "\n      ".join(lines)
        return f"""
    func.func @product({", ".join(arguments)})
        attributes {{ascend.kernel, ascend.op = "{name}", ascend.unit = "cube"}} {{
      {body}
      return
    }}"""

    def operands(self) -> tuple[Array, Array]:
        """A and B as they are multiplied."""
        random = np.random.default_rng(self.m + 1000 * self.k + 1000000 * self.n)
        lead = (self.batch,) if self.batch else ()
        a = random.standard_normal((*lead, self.m, self.k)).astype(np.float16)
        return a, random.standard_normal((*lead, self.k, self.n)).astype(np.float16)

    def inputs(self) -> list[Array]:
        """A and B as they lie in GM."""
        found = []
        for layout, side, x in zip(self.layouts, "ab", self.operands(), strict=False):
            stored = np.ascontiguousarray(x.swapaxes(-1, -2)) if side in self.turned else x
            found.append(fractals(stored) if layout == "n" else stored)
        return found

    def matrix(self, output: Array) -> Array:
        """C from what was written; padding of fractals has to be zero."""
        if self.layouts[2] == "r":
            return output
        found = matrix_of(output, self.m, self.n)
        np.testing.assert_array_equal(fractals(found), output, err_msg="padding")
        return found

    def check(self, **options: object) -> KernelRun:
        """Runs the product and compares with NumPy.

        Products of f16 are exact in f32, so the difference is that of the order of summation, at
        most k roundings of the largest partial sum (about sqrt(k)), and for f16 the rounding of
        the result.

        Args:
            options: of `ascend-to-cce`.
        """
        run = run_kernel(self.text(), self.inputs(), **options)
        a, b = self.operands()
        expected = a.astype(np.float64) @ b.astype(np.float64)
        rounding = 2.0**-11 if self.result == "f16" else 0.0
        limit = self.k * 2.0**-24 * (4 + np.abs(expected).max(initial=0))
        found = self.matrix(run.outputs[0])
        np.testing.assert_allclose(found, expected, rtol=rounding, atol=limit)
        return run
