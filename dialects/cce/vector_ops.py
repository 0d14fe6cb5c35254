"""The operations of the cce dialect that run on the vector unit.

Operands lie in UB. Which shapes, types and strides an operation takes is written in
docs/architecture.md; its constraints C1, C2, ... are numbered in its docstring.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

import math
from typing import Any

from davinci.dialects.base import attribute, one_of, verifier
from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.checks import (
    BIT_BYTES,
    LANES,
    PREDICATES,
    ROUNDS,
    check_elementwise,
    check_lanes,
    check_row_reduction,
    check_rows,
    check_scalar,
    check_vector,
    require_contiguous,
    require_space,
    require_type,
)
from davinci.dialects.cce.instructions import (
    BINARY,
    CONVERSIONS,
    MULTIPLY_ADD,
    UNARY,
    WITH_SCALAR,
    types_of,
)
from davinci.dialects.cce.ops import Cce as Cce  # complete only with the operations below
from davinci.errors import require
from davinci.isa import BY_NAME
from davinci.isa.transpose import ROWS
from davinci.mlir import ext
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS

Operand = ext.Operand


class Binary(Cce.Operation):
    """dst = op(a, b), element by element."""

    a: Operand[Any]
    b: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_vector(self, [buffer_of(v) for v in self.operands])


class MultiplyAdd(Cce.Operation):
    """dst = op(dst, a, b), element by element: `vmla` adds a b to dst, `vmadd` makes dst a + b."""

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


class ScalarBinary(Cce.Operation):
    """dst = op(a, scalar); the scalar is an SSA value of the element type."""

    a: Operand[Any]
    scalar: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_vector(self, [buffer_of(self.a), buffer_of(self.dst)])
        check_scalar(self.scalar, buffer_of(self.dst))


class VectorDupOp(Cce.Operation, name="vector_dup"):
    """Fills dst with a scalar; with `lanes`, only dst[r, first_lane : first_lane + lanes].

    C1 as for elementwise operations. C2 with `lanes` dst is [r, l], l at most one repeat (256
    bytes) and rows contiguous. C3 the lanes lie within l.
    """

    ATTRIBUTES = LANES
    scalar: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        dst = buffer_of(self.dst)
        check_vector(self, [dst])
        check_scalar(self.scalar, dst)
        if attribute(self, "lanes") is not None:
            check_rows("destination", dst)
            check_lanes(self, dst)
        else:
            require(attribute(self, "first_lane") is None, "first_lane without lanes", "")


class VconvOp(Cce.Operation, name="vconv"):
    """dst = a converted to the element type of dst.

    C1 the pair of types is one of `instructions.CONVERSIONS`. C2 `round` is one of ROUNDS, "none"
    if absent. C3 as for elementwise operations.
    """

    ATTRIBUTES = {"round": one_of(*ROUNDS, required=False)}  # noqa: RUF012 - see CopyOp
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
        check_elementwise([src, dst])


class VcmpselOp(Cce.Operation, name="vcmpsel"):
    """dst = predicate(a, b) ? x : y.

    C1 a and b have one type, x, y and dst have one type, each f16 or f32, of the same width.
    C2 `predicate` is one of PREDICATES. C3 as for elementwise operations.
    """

    ATTRIBUTES = {"predicate": one_of(*PREDICATES)}  # noqa: RUF012 - see CopyOp
    a: Operand[Any]
    b: Operand[Any]
    x: Operand[Any]
    y: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        a, b, x, y, dst = (buffer_of(v) for v in self.operands)
        for role, buffer in (("a", a), ("x", x)):
            require_type(role, buffer.dtype, types_of("vsel"))
        require(b.dtype == a.dtype, "element type of b", b.dtype, a.dtype)
        require(
            x.dtype == y.dtype == dst.dtype,
            "element types of x, y and the destination",
            f"{x.dtype}, {y.dtype}, {dst.dtype}",
        )
        require(x.itemsize == a.itemsize, "width of the selected values", x.dtype, a.dtype)
        check_elementwise([a, b, x, y, dst])


class VcaddOp(Cce.Operation, name="vcadd"):
    """dst[r] = sum of src[r, first_lane : first_lane + lanes].

    C1 both in UB; src [r, l] with l at most one repeat (256 bytes) and contiguous rows that start
    at blocks; dst [r], elements at any distance. C2 f16 or f32. C3 the lanes lie within l.
    """

    ATTRIBUTES = LANES
    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_type("source", src.dtype, types_of("vcadd"))
        check_row_reduction(src, dst, dst.shape)
        require(dst.shape[0] == 1 or dst.strides[0] > 0, "destination overlaps itself", "stride 0")
        check_lanes(self, src)


class Extreme(Cce.Operation):
    """dst[r] = (value, index) of the extreme lane of src[r]; index is an integer of its width."""

    ATTRIBUTES = LANES
    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_type("source", src.dtype, types_of(self.name.removeprefix("cce.")))
        require(dst.shape[1:] == (2,), "shape of the destination", list(dst.shape), "[r, 2]")
        check_row_reduction(src, dst, dst.shape[:1])
        require_contiguous("destination", dst)
        check_lanes(self, src)


class BlockReduction(Cce.Operation):
    """dst[r, b] = reduction of the lanes of src[r, b], a block.

    C1 both in UB, of one type; src [r, 8, 16] of f16, [r, 8, 8] of f32; dst [r, 8] contiguous.
    C2 rows of src are whole blocks.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require_type("source", src.dtype, types_of(self.name.removeprefix("cce.")))
        require_type("destination", dst.dtype, (src.dtype,))
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


class VbrcbOp(Cce.Operation, name="vbrcb"):
    """dst[r, b] = src[r, b] in all lanes of a block.

    C1 both in UB, of one type of 16 or 32 bits. C2 src [r, 8], contiguous; dst [r, 8, l], l the
    elements of a block, strides whole blocks.
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        require(src.itemsize in BIT_BYTES, "bytes of elements", src.itemsize, "2 or 4")
        require_type("destination", dst.dtype, (src.dtype,))
        require_space("source", src, "UB")
        require_space("destination", dst, "UB")
        expected = f"[r, {REPEAT_BLOCKS}]"
        require(src.shape[1:] == (REPEAT_BLOCKS,), "shape of the source", src.shape, expected)
        require_contiguous("source", src)
        shape = (*src.shape, dst.block)
        require(dst.shape == shape, "shape of the destination", list(dst.shape), list(shape))
        require(
            dst.strides[2] == 1 and all(s % dst.block == 0 and s > 0 for s in dst.strides[:2]),
            "blocks of the destination",
            f"strides {list(dst.strides)}",
            f"[multiples of {dst.block}, .., 1]",
        )


class VgatherOp(Cce.Operation, name="vgather"):
    """dst[i] = the element of src that begins `offsets[i]` bytes behind its first one.

    C1 all in UB, src and dst of one type of 16 or 32 bits, offsets s32. C2 all have one dimension
    and are contiguous, offsets and dst have one length.
    """

    offsets: Operand[Any]
    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        offsets, src, dst = (buffer_of(v) for v in self.operands)
        require(src.itemsize in BIT_BYTES, "bytes of elements", src.itemsize, "2 or 4")
        require_type("destination", dst.dtype, (src.dtype,))
        require_type("offsets", offsets.dtype, ("s32",))
        for role, buffer in (("offsets", offsets), ("source", src), ("destination", dst)):
            require_space(role, buffer, "UB")
            require(len(buffer.shape) == 1, f"shape of {role}", list(buffer.shape), "[n]")
            require_contiguous(role, buffer)
        require(dst.shape == offsets.shape, "length", dst.shape[0], str(offsets.shape[0]))


class VnchwconvOp(Cce.Operation, name="vnchwconv"):
    """Transposes 16 rows of 16 words of 16 bits: word i of row j becomes word j of row i, r times.

    C1 both in UB, of any types of 16 bits or more, [rows .., r, b]: sizes of the row dimensions
    multiply to 16, the last dimension is a block of 32 bytes; r is the same in both.
    C2 the last dimension is contiguous, strides of the others are multiples of 32 bytes (0 too).
    """

    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        src, dst = buffer_of(self.src), buffer_of(self.dst)
        for role, buffer in (("source", src), ("destination", dst)):
            require(buffer.itemsize > 1, f"type of {role}", buffer.dtype, "16 bits or more")
            require_space(role, buffer, "UB")
            shape = buffer.shape
            require(
                len(shape) >= 3 and math.prod(shape[:-2]) == ROWS and shape[-1] == buffer.block,
                f"shape of {role}",
                list(shape),
                f"[{ROWS}, r, {buffer.block}]; {ROWS} may be several dimensions",
            )
            require(
                buffer.strides[-1] == 1
                and all(
                    n == 1 or s * buffer.itemsize % BLOCK_BYTES == 0
                    for n, s in zip(shape[:-1], buffer.strides[:-1], strict=True)
                ),
                f"{role} has strides vnchwconv cannot take",
                list(buffer.strides),
                "[multiples of 32 bytes, multiples of 32 bytes, 1]",
            )
        require(src.shape[-2] == dst.shape[-2], "repeats differ", dst.shape[-2], src.shape[-2])


def _define(base: type, name: str) -> type:
    """The operation of an instruction, documented by its record."""
    doc = next(iter(BY_NAME[name].values())).doc
    namespace = {"__doc__": doc, "__module__": __name__}
    return type(f"{name.capitalize()}Op", (base,), namespace, name=name)


ONE_INSTRUCTION: dict[type, tuple[str, ...]] = {
    Binary: BINARY,
    Unary: UNARY,
    ScalarBinary: WITH_SCALAR,
    MultiplyAdd: MULTIPLY_ADD,
    Extreme: ("vcmax", "vcmin"),
    BlockReduction: ("vcgadd", "vcgmax", "vcgmin"),
}
"""Operations that differ in their instruction only."""

OPERATIONS = [_define(base, name) for base, names in ONE_INSTRUCTION.items() for name in names]
