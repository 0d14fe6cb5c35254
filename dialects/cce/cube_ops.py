"""The operations of the cce dialect that load the factors of the cube and multiply them.

Fractals come from L1 to L0A and L0B, a bias from L1 to BT (`copy`), and products lie in L0C. The
constraints C1, C2, ... of an operation are numbered in its docstring.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from davinci.dialects.base import FLAG, attribute, integer, integers, verifier
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.cce.checks import (
    require_contiguous,
    require_fractals,
    require_space,
    require_type,
)
from davinci.dialects.cce.instructions import (
    BIASED_TYPES,
    LOADS,
    MAD_TYPES,
    WINDOW_LOADS,
    types_of,
)
from davinci.dialects.cce.ops import Cce as Cce  # complete only with the operations below
from davinci.dialects.cce.windows import LIMITS, LoadedWindows
from davinci.errors import require
from davinci.mlir import ext, type_text
from davinci.units import FRACTAL_SIDE as SIDE

Operand = ext.Operand


class Load2dOp(Cce.Operation, name="load2d"):
    """Moves fractals from L1 to L0A or L0B, each transposed inside if `transpose` is set.

    C1 source in L1, destination in L0A or L0B, both [a, b, 16, c], c 32 bytes' worth of elements.
    C2 the destination is contiguous; the source's outer strides are whole fractals.
    C3 `transpose` only for 16-bit types.
    """

    ATTRIBUTES = {"transpose": FLAG}  # noqa: RUF012 - see CopyOp
    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = check_load(self, LOADS)
        require(src.shape == dst.shape, "shapes differ", list(src.shape), list(dst.shape))
        require_fractals("source", src, src.block)
        require_contiguous("destination", dst)
        if attribute(self, "transpose", False):
            require(src.itemsize == 2, "transpose needs a 16-bit type", src.dtype)


class Load3dOp(Cce.Operation, name="load3d"):
    """Makes fractals in L0A or L0B of the windows of an image in L1, see `windows.Windows`.

    Of the result's windows in raster order those from number `first` on, 16 a fractal; row 0 of
    windows begins at row `top` of the source, which may be negative. Of the kernel's elements
    [c1][kh][kw] those from number `element` on, one a fractal. What lies outside is zero, or
    the 16 bits of `padding`, which all loads of a kernel have or none.

    C1 source in L1, an image [c1, h, w, c], c 32 bytes' worth of elements, contiguous.
    C2 destination in L0A, [windows, elements, 16, c], or in L0B, [elements, windows, 16, c]; its
       outer strides are whole fractals.
    C3 sizes, strides and dilations of the kernel are those that the instruction can encode.
    C4 a window fits into the width of the image with its padding.
    C5 the kernel's elements are those of the channel blocks that the source has.
    C6 `first` and `top` are indices.
    """

    ATTRIBUTES = {  # noqa: RUF012 - see CopyOp
        "kernel": integers(2, 1, LIMITS["filter_w"]),
        "strides": integers(2, 1, LIMITS["stride_w"]),
        "dilations": integers(2, 1, LIMITS["dilation_w"]),
        "pads": integers(2, 0, LIMITS["pad_left"]),
        "element": integer(0, 1 << 31),
        "padding": integer(0, (1 << 16) - 1, required=False),
    }
    src: Operand[Any]
    first: Operand[Any]
    top: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = check_load(self, WINDOW_LOADS)
        found, expected = list(src.shape), f"[c1, h, w, {src.block}]"
        require(len(found) == 4 and found[3] == src.block, "shape of source", found, expected)
        require_contiguous("source", src)
        require_fractals("destination", dst, src.block)
        windows = LoadedWindows.of(self)
        wide, reach = windows.padded_width, windows.reach
        require(reach <= wide, "window wider than the image", reach, f"at most {wide}")
        end, most = windows.element + windows.elements, windows.kernel_elements
        require(end <= most, "kernel elements beyond the source", end, f"at most {most}")
        for role, value in (("first", self.first), ("top", self.top)):
            require(type_text(value.type) == "index", f"type of {role}", value.type, "index")


def check_load(
    load: Load2dOp | Load3dOp, instructions: Mapping[str, str]
) -> tuple[BufferView, BufferView]:
    """Requires that a load goes from L1 to L0A or L0B, and that the instruction there has its type;
    its source and destination.

    Args:
        instructions: by the memory of the destination.
    """
    src, dst = buffer_of(load.src), buffer_of(load.dst)
    require_space("source", src, "L1")
    require_space("destination", dst, "L0A", "L0B")
    require_type("source", src.dtype, types_of(instructions[dst.space]))
    require(src.dtype == dst.dtype, "element types differ", dst.dtype, src.dtype)
    return src, dst


class MadOp(Cce.Operation, name="mad"):
    """Multiplies fractals: C = A * B if `init` is true, C += A * B otherwise.

    C1 A in L0A [m1, k1, 16, c], B in L0B [k1, n1, 16, c], C in L0C [n1, m1, 16, 16], contiguous. A
       of one row may be a vector, [1, k1, 1, c]: the first row of C's fractals is valid then.
    C2 types f16 x f16 to f32 or f16, bf16 x bf16 and f32 x f32 to f32, s8 x s8 and u8 x s8 to i32.
    """

    a: Operand[Any]
    b: Operand[Any]
    c: Operand[Any]
    init: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        a, b, _ = check_factors(self, MAD_TYPES)
        if a.shape[:1] + a.shape[2:] != (1, 1, a.block):
            require_fractals("A", a, a.block)
        require_result(self, a.shape[:2], b.shape[:2])
        require(type_text(self.init.type) == "i1", "type of init", self.init.type, "i1")


class MadBiasOp(Cce.Operation, name="mad_bias"):
    """Multiplies fractals and adds a row: every row of C is that of A * B and the bias.

    C1 A, B and C as those of `mad`, whole fractals; the bias in BT, [n1, 16], contiguous.
    C2 types f16 x f16, bf16 x bf16 and f32 x f32 to f32, s8 x s8 to i32; the bias has the type of
       C.
    """

    a: Operand[Any]
    b: Operand[Any]
    bias: Operand[Any]
    c: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        a, b, c = check_factors(self, BIASED_TYPES)
        bias = buffer_of(self.bias)
        require_space("bias", bias, "BT")
        require_contiguous("bias", bias)
        require(bias.dtype == c.dtype, "type of bias", bias.dtype, c.dtype)
        expected = [c.shape[0], SIDE]
        require(list(bias.shape) == expected, "shape of bias", list(bias.shape), expected)
        require_fractals("A", a, a.block)
        require_result(self, a.shape[:2], b.shape[:2])


def check_factors(
    product: MadOp | MadBiasOp, types: Collection[tuple[str, str, str]]
) -> tuple[BufferView, BufferView, BufferView]:
    """Requires that A, B and C lie in the memories of a mad, of one of some types, and that B is
    made of fractals; what they are."""
    a, b, c = (buffer_of(value) for value in (product.a, product.b, product.c))
    for role, buffer, space in (("A", a, "L0A"), ("B", b, "L0B"), ("C", c, "L0C")):
        require_space(role, buffer, space)
        require_contiguous(role, buffer)
    require(
        (a.dtype, b.dtype, c.dtype) in types,
        "types",
        f"{a.dtype} x {b.dtype} to {c.dtype}",
        ", ".join(f"{x} x {y} to {z}" for x, y, z in sorted(types)),
    )
    require_fractals("B", b, b.block)
    return a, b, c


L1_TYPES = ("f16 x f16 to f32", "s8 x s8 to s32")
"""Types of products of factors in L1."""


class MadL1Op(Cce.Operation, name="mad_l1"):
    """Multiplies fractals in L1, which go through L0A and L0B part by part: what AscendNPU-IR has
    in place of `load2d` and `mad`. C = A * B if `init` is true, C += A * B otherwise.

    C1 A in L1 [k1, m1, 16, c], with `a_transpose` [m1, k1, 16, c], whose rows are those of k then;
       B [n1, k1, 16, c], whose rows are those of k, with `b_transpose` [k1, n1, 16, c]; C in L0C
       [n1, m1, 16, 16], contiguous.
    C2 types f16 x f16 to f32, and s8 x s8 to i32, of which B alone is transposed.
    """

    ATTRIBUTES = {"a_transpose": FLAG, "b_transpose": FLAG}  # noqa: RUF012 - see CopyOp
    a: Operand[Any]
    b: Operand[Any]
    c: Operand[Any]
    init: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        a, b, c = buffer_of(self.a), buffer_of(self.b), buffer_of(self.c)
        for role, buffer, space in (("A", a, "L1"), ("B", b, "L1"), ("C", c, "L0C")):
            require_space(role, buffer, space)
        types = f"{a.dtype} x {b.dtype} to {c.dtype}"
        require(types in L1_TYPES, "types", types, " or ".join(L1_TYPES))
        turned = tuple(attribute(self, f"{name}_transpose", False) for name in ("a", "b"))
        if a.dtype == "s8":
            require(turned == (False, True), "bytes transposed", turned, "B alone")
        require_fractals("A", a, a.block)
        require_fractals("B", b, b.block)
        require_contiguous("C", c)
        m1, k1 = a.shape[:2] if attribute(self, "a_transpose", False) else a.shape[1::-1]
        of_k, n1 = b.shape[:2] if attribute(self, "b_transpose", False) else b.shape[1::-1]
        require_result(self, (m1, k1), (of_k, n1))
        require(type_text(self.init.type) == "i1", "type of init", self.init.type, "i1")


def require_result(
    product: MadOp | MadBiasOp | MadL1Op, a: Sequence[int], b: Sequence[int]
) -> None:
    """Requires that C has the fractals of the product of A, m1 x k1 of them, and B, k1 x n1."""
    (rows, inner), (of_k, columns) = a, b
    require(of_k == inner, "inner sizes differ", of_k, inner)
    shape, expected = list(buffer_of(product.c).shape), [columns, rows, SIDE, SIDE]
    require(shape == expected, "shape of C", shape, expected)
