"""The cce dialect: instruction-like operations on multi-dimensional arrays.

Operands are memrefs with static shapes and strides, sources first, destination last; nothing is
returned. Memory is an attribute of the type, `memref<16x16xf16, #cce.space<"L0A">>`; a memref
without it lies in GM. Which operation takes which shapes, types and spaces is written in
docs/architecture.md; the constraints C1, C2, ... of an operation are numbered in its docstring.
Alignment of addresses is the machine's matter: `convert-cce-to-hivm` checks it.
Operations print in generic form.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from typing import Any

from davinci.dialects.base import attribute, verifier
from davinci.dialects.cce_buffers import buffer_of
from davinci.dialects.cce_checks import (
    CONVERSIONS,
    FLOATS,
    L0C_TYPES,
    MAD_TYPES,
    PIPES,
    PREDICATES,
    ROUNDS,
    check_copy,
    check_elementwise,
    check_flag,
    check_lanes,
    check_row_reduction,
    check_scalar,
    check_vector,
    require,
    require_contiguous,
    require_fractals,
    require_space,
    require_type,
)
from davinci.isa.transpose import ROWS
from davinci.mlir import ext, ir
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS
from davinci.units import FRACTAL_SIDE as SIDE

Operand = ext.Operand


class Cce(ext.Dialect, name="cce"):
    """Instruction-like operations on arrays in the memories of one core."""


class SpaceAttr(Cce.Attribute, name="space"):
    """Memory space of a memref: `#cce.space<"L1">`, "L0A", "L0B", "L0C" or "UB"."""

    space: ir.StringAttr


class CopyOp(Cce.Operation, name="copy"):
    """Moves an array between memories.

    C1 source and destination have the same shape and element type.
    C2 the two memories are connected (ROUTES).
    C3 contiguous runs are multiples of 32 bytes, unless `round_up` is set; then there is one run.
    C4 strides on chip are multiples of 32 bytes; the destination has no stride 0.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        check_copy(src, dst, attribute(self, "round_up", False))


class CopyL0cOp(Cce.Operation, name="copy_l0c"):
    """Moves the cube's results to UB, converting f32 to f16 if the destination is f16.

    C1 source in L0C, destination in UB, both [n1, m1, 16, 16].
    C2 types f32 to f32 or f16, f16 to f16, i32 to i32.
    C3 fractals are contiguous in both; the source's outer strides are whole fractals.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_space("source", src, "L0C")
        require_space("destination", dst, "UB")
        require(src.shape == dst.shape, "shapes differ", list(src.shape), list(dst.shape))
        require_fractals("source", src, SIDE)
        require(
            (src.dtype, dst.dtype) in L0C_TYPES,
            "types",
            f"{src.dtype} to {dst.dtype}",
            ", ".join(f"{a} to {b}" for a, b in sorted(L0C_TYPES)),
        )
        found = list(dst.strides)
        require(found[2:] == [SIDE, 1], "destination fractals are not contiguous", found)


class Load2dOp(Cce.Operation, name="load2d"):
    """Moves fractals from L1 to L0A or L0B, each transposed inside if `transpose` is set.

    C1 source in L1, destination in L0A or L0B, both [a, b, 16, c], c 32 bytes' worth of elements.
    C2 the destination is contiguous; the source's outer strides are whole fractals.
    C3 `transpose` only for 16-bit types.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_space("source", src, "L1")
        require_space("destination", dst, "L0A", "L0B")
        require_type("source", src.dtype, ("f16", "s8", "u8"))
        require(src.dtype == dst.dtype, "element types differ", dst.dtype, src.dtype)
        require(src.shape == dst.shape, "shapes differ", list(src.shape), list(dst.shape))
        require_fractals("source", src, src.block)
        require_contiguous("destination", dst)
        if attribute(self, "transpose", False):
            require(src.itemsize == 2, "transpose needs a 16-bit type", src.dtype)


class MadOp(Cce.Operation, name="mad"):
    """Multiplies fractals: C = A * B if `init` is true, C += A * B otherwise.

    C1 A in L0A [m1, k1, 16, c], B in L0B [k1, n1, 16, c], C in L0C [n1, m1, 16, 16], contiguous.
    C2 types f16 x f16 to f32 or f16, s8 x s8 and u8 x s8 to i32.
    """

    a: Operand[Any]
    b: Operand[Any]
    c: Operand[Any]
    init: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        a, b, c = buffer_of(self.a), buffer_of(self.b), buffer_of(self.c)
        for role, buffer, space in (("A", a, "L0A"), ("B", b, "L0B"), ("C", c, "L0C")):
            require_space(role, buffer, space)
            require_contiguous(role, buffer)
        require(
            (a.dtype, b.dtype, c.dtype) in MAD_TYPES,
            "types",
            f"{a.dtype} x {b.dtype} to {c.dtype}",
            ", ".join(f"{x} x {y} to {z}" for x, y, z in sorted(MAD_TYPES)),
        )
        require_fractals("A", a, a.block)
        require_fractals("B", b, b.block)
        expected = (b.shape[1], a.shape[0], SIDE, SIDE)
        require(a.shape[1] == b.shape[0], "inner sizes differ", b.shape[0], a.shape[1])
        require(c.shape == expected, "shape of C", list(c.shape), list(expected))
        require(str(self.init.type) == "i1", "type of init", self.init.type, "i1")


class Binary(Cce.Operation):
    """dst = op(a, b), element by element."""

    a: Operand[Any]
    b: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_vector(self, [buffer_of(v) for v in self.operands])


class Unary(Cce.Operation):
    """dst = op(a), element by element."""

    a: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_vector(self, [buffer_of(v) for v in self.operands])


class VaddOp(Binary, name="vadd"):
    """dst = a + b."""


class VsubOp(Binary, name="vsub"):
    """dst = a - b."""


class VmulOp(Binary, name="vmul"):
    """dst = a * b."""


class VdivOp(Binary, name="vdiv"):
    """dst = a / b."""


class VmaxOp(Binary, name="vmax"):
    """dst = max(a, b)."""


class VminOp(Binary, name="vmin"):
    """dst = min(a, b)."""


class VandOp(Binary, name="vand"):
    """dst = a & b, on 16-bit words."""


class VorOp(Binary, name="vor"):
    """dst = a | b, on 16-bit words."""


class VexpOp(Unary, name="vexp"):
    """dst = e ** a."""


class VlnOp(Unary, name="vln"):
    """dst = natural logarithm of a."""


class VsqrtOp(Unary, name="vsqrt"):
    """dst = square root of a."""


class VrsqrtOp(Unary, name="vrsqrt"):
    """dst = 1 / square root of a."""


class VrecOp(Unary, name="vrec"):
    """dst = 1 / a."""


class VabsOp(Unary, name="vabs"):
    """dst = |a|."""


class VreluOp(Unary, name="vrelu"):
    """dst = max(a, 0)."""


class VnotOp(Unary, name="vnot"):
    """dst = ~a, on 16-bit words."""


class ScalarBinary(Cce.Operation):
    """dst = op(a, scalar); the scalar is an SSA value of the element type."""

    a: Operand[Any]
    scalar: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_vector(self, [buffer_of(self.a), buffer_of(self.dst)])
        check_scalar(self.scalar, buffer_of(self.dst))


class VaddsOp(ScalarBinary, name="vadds"):
    """dst = a + scalar."""


class VmulsOp(ScalarBinary, name="vmuls"):
    """dst = a * scalar."""


class VectorDupOp(Cce.Operation, name="vector_dup"):
    """Fills dst with a scalar."""

    scalar: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        dst = buffer_of(self.dst)
        check_vector(self, [dst])
        check_scalar(self.scalar, dst)


class VconvOp(Cce.Operation, name="vconv"):
    """dst = a converted to the element type of dst.

    C1 the pair of types is one of CONVERSIONS. C2 `round` is one of ROUNDS, "none" if absent.
    C3 as for elementwise operations.
    """

    a: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.a), buffer_of(self.dst)
        require(
            (src.dtype, dst.dtype) in CONVERSIONS,
            "no such conversion",
            f"{src.dtype} to {dst.dtype}",
        )
        mode = attribute(self, "round", "none")
        require(mode in ROUNDS, "attribute round", repr(mode), ", ".join(ROUNDS))
        check_elementwise([src, dst])


class VcmpselOp(Cce.Operation, name="vcmpsel"):
    """dst = predicate(a, b) ? x : y.

    C1 a and b have one type, x, y and dst have one type, each f16 or f32, of the same width.
    C2 `predicate` is one of PREDICATES. C3 as for elementwise operations.
    """

    a: Operand[Any]
    b: Operand[Any]
    x: Operand[Any]
    y: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        a, b, x, y, dst = (buffer_of(v) for v in self.operands)
        for role, buffer in (("a", a), ("x", x)):
            require_type(role, buffer.dtype, FLOATS)
        require(b.dtype == a.dtype, "element type of b", b.dtype, a.dtype)
        require(
            x.dtype == y.dtype == dst.dtype,
            "element types of x, y and the destination",
            f"{x.dtype}, {y.dtype}, {dst.dtype}",
        )
        require(x.itemsize == a.itemsize, "width of the selected values", x.dtype, a.dtype)
        predicate = attribute(self, "predicate", "")
        require(
            predicate in PREDICATES, "attribute predicate", repr(predicate), ", ".join(PREDICATES)
        )
        check_elementwise([a, b, x, y, dst])


class VcaddOp(Cce.Operation, name="vcadd"):
    """dst[r] = sum of src[r, first_lane : first_lane + lanes].

    C1 both in UB; src [r, l] with l at most one repeat (256 bytes) and contiguous rows that start
    at blocks; dst [r] contiguous. C2 f16 or f32. C3 the lanes lie within l.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_type("source", src.dtype, FLOATS)
        check_row_reduction(src, dst, dst.shape)
        check_lanes(self, src)


class Extreme(Cce.Operation):
    """dst[r] = (value, index) of the extreme lane of src[r]; the index is a 16-bit integer."""

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_type("source", src.dtype, ("f16",))
        require(dst.shape[1:] == (2,), "shape of the destination", list(dst.shape), "[r, 2]")
        check_row_reduction(src, dst, dst.shape[:1])
        check_lanes(self, src)


class VcmaxOp(Extreme, name="vcmax"):
    """Largest lane of each row."""


class VcminOp(Extreme, name="vcmin"):
    """Smallest lane of each row."""


class BlockReduction(Cce.Operation):
    """dst[r, b] = reduction of the 16 lanes of src[r, b], f16.

    C1 both in UB; src [r, 8, 16], dst [r, 8] contiguous. C2 rows of src are whole blocks.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_type("source", src.dtype, ("f16",))
        require_type("destination", dst.dtype, ("f16",))
        require_space("source", src, "UB")
        require_space("destination", dst, "UB")
        expected = f"[r, {REPEAT_BLOCKS}, {src.block}]"
        shape = list(src.shape)
        require(shape[1:] == [REPEAT_BLOCKS, src.block], "shape of the source", shape, expected)
        require(
            dst.shape == src.shape[:2],
            "shape of the destination",
            list(dst.shape),
            list(src.shape[:2]),
        )
        require(
            src.strides[2] == 1 and all(s % src.block == 0 for s in src.strides[:2]),
            "blocks of the source",
            f"strides {list(src.strides)}",
            f"[multiples of {src.block}, .., 1]",
        )
        require_contiguous("destination", dst)


class VcgaddOp(BlockReduction, name="vcgadd"):
    """Sum of each block."""


class VcgmaxOp(BlockReduction, name="vcgmax"):
    """Largest element of each block."""


class VcgminOp(BlockReduction, name="vcgmin"):
    """Smallest element of each block."""


class VnchwconvOp(Cce.Operation, name="vnchwconv"):
    """Transposes: dst[i, t, j] = src[j, t, i].

    C1 both in UB, [16, r, 16], the same 16-bit type (8-bit [32, r, 32]).
    C2 the last dimension is contiguous, strides of the others are multiples of 32 bytes.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require(src.itemsize == 2, "vnchwconv of this type is not supported", src.dtype, "16 bits")
        require(src.dtype == dst.dtype, "element types differ", dst.dtype, src.dtype)
        require(src.shape == dst.shape, "shapes differ", list(src.shape), list(dst.shape))
        for role, buffer in (("source", src), ("destination", dst)):
            require_space(role, buffer, "UB")
            require(
                len(buffer.shape) == 3 and (buffer.shape[0], buffer.shape[2]) == (ROWS, ROWS),
                f"shape of {role}",
                list(buffer.shape),
                f"[{ROWS}, r, {ROWS}]",
            )
            require(
                buffer.strides[2] == 1
                and all(
                    n == 1 or s * buffer.itemsize % BLOCK_BYTES == 0
                    for n, s in zip(buffer.shape[:2], buffer.strides[:2], strict=True)
                ),
                f"{role} has strides vnchwconv cannot take",
                list(buffer.strides),
                "[multiples of 32 bytes, multiples of 32 bytes, 1]",
            )


class SetFlagOp(Cce.Operation, name="set_flag"):
    """Fires event `event` from pipe `src` to `dst` when all earlier work of `src` is complete."""

    @verifier
    def verify_invariants(self) -> None:
        check_flag(self)


class WaitFlagOp(Cce.Operation, name="wait_flag"):
    """Holds pipe `dst` until event `event` from `src` has fired, and clears it."""

    @verifier
    def verify_invariants(self) -> None:
        check_flag(self)


class PipeBarrierOp(Cce.Operation, name="pipe_barrier"):
    """Holds later instructions of `pipe` until its earlier ones are complete; "ALL": all pipes."""

    @verifier
    def verify_invariants(self) -> None:
        pipe = attribute(self, "pipe")
        legal = (*(p for p in PIPES if p != "S"), "ALL")
        require(pipe in legal, "attribute pipe", repr(pipe), ", ".join(legal))


class GetBlockIdxOp(Cce.Operation, name="get_block_idx", traits=[ext.Pure]):
    """Number of this block, from 0."""

    result: ext.Result[ir.IndexType]


class GetBlockNumOp(Cce.Operation, name="get_block_num", traits=[ext.Pure]):
    """Number of blocks of the launch."""

    result: ext.Result[ir.IndexType]
