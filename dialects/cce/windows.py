"""The windows that `cce.load3d` makes fractals of, as its attributes and operands say."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.isa import BY_NAME
from davinci.mlir import Op

LIMITS = {
    field.name: field.limit
    for name in ("img2col_cbuf_to_ca", "set_fmatrix")
    for field in next(iter(BY_NAME[name].values())).fields
}
"""Largest values of the fields that a load of windows has."""


@dataclass(frozen=True)
class LoadedWindows:
    """What a load takes.

    Attributes:
        blocks, height, width: of the image in L1.
        kernel, strides, dilations: along the height and the width.
        left, right: padding.
        element: first of the kernel's elements, in the order [c1][kh][kw].
        windows, elements: fractals of the destination along them.
        window_jump, element_jump: fractals from one to the next along them.
    """

    blocks: int
    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    left: int
    right: int
    element: int
    windows: int
    elements: int
    window_jump: int
    element_jump: int

    @staticmethod
    def of(op: Op) -> LoadedWindows:
        """The windows that a `cce.load3d` reads; `op` is the operation or its view."""
        operands = list(op.operands)
        src, dst = buffer_of(operands[0]), buffer_of(operands[-1])
        blocks, height, width, _ = src.shape
        fractal = dst.shape[2] * dst.shape[3]
        sizes = list(dst.shape[:2])
        jumps = [stride // fractal for stride in dst.strides[:2]]
        if dst.space == "L0B":
            sizes, jumps = sizes[::-1], jumps[::-1]
        kernel, strides, dilations = (
            tuple(attribute(op, name)) for name in ("kernel", "strides", "dilations")
        )
        left, right = attribute(op, "pads")
        return LoadedWindows(
            blocks,
            height,
            width,
            kernel,
            strides,
            dilations,
            left,
            right,
            attribute(op, "element"),
            *sizes,
            *jumps,
        )

    @property
    def padded_width(self) -> int:
        return self.left + self.width + self.right

    @property
    def reach(self) -> int:
        """Pixels from the first to the last column of a window."""
        return (self.kernel[1] - 1) * self.dilations[1] + 1

    @property
    def of_row(self) -> int:
        """Windows of a row."""
        return (self.padded_width - self.reach) // self.strides[1] + 1

    @property
    def kernel_elements(self) -> int:
        """Elements of the kernel for the channel blocks of the source."""
        return self.blocks * self.kernel[0] * self.kernel[1]

    @property
    def by_windows(self) -> bool:
        """Whether an instruction takes the same element of many windows, not many elements of 16:
        whichever are fewer instructions."""
        fits = self.window_jump <= LIMITS["jump_stride"]
        return (self.elements <= self.windows and fits) or self.element_jump > LIMITS["jump_stride"]

    @property
    def instructions(self) -> int:
        return self.elements if self.by_windows else self.windows
