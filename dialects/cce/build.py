"""Builders of the cce operations, one function each, operands in the order of the operation.

    from davinci.dialects.cce import build as cce

    cce.copy(x_tile, ub)
    cce.vadds(ub, one, ub)
    cce.copy(ub, y_tile)

They build at the current insertion point and take the current location. What an operation does
and takes is said in its class, in `ops.py` or `vector_ops.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from davinci.dialects.base import create
from davinci.mlir import ir

if TYPE_CHECKING:
    from typing_extensions import Unpack

Value = ir.Value


def operation(name: str, operands: Sequence[Value], **attributes: Any) -> None:
    """Builds `cce.name`, for code that has the name as data; those that are None are left out."""
    create(f"cce.{name}", operands, **attributes)


class UnaryBuild(Protocol):
    def __call__(self, a: Value, dst: Value) -> None: ...


class BinaryBuild(Protocol):
    def __call__(self, a: Value, b: Value, dst: Value) -> None: ...


class ScalarBinaryBuild(Protocol):
    def __call__(self, a: Value, scalar: Value, dst: Value) -> None: ...


class MoveBuild(Protocol):
    def __call__(self, src: Value, dst: Value) -> None: ...


class RowReductionBuild(Protocol):
    def __call__(
        self, src: Value, dst: Value, *, first_lane: int | None = None, lanes: int | None = None
    ) -> None: ...


def _unary(name: str) -> UnaryBuild:
    def build(a: Value, dst: Value) -> None:
        operation(name, (a, dst))

    return build


def _binary(name: str) -> BinaryBuild:
    def build(a: Value, b: Value, dst: Value) -> None:
        operation(name, (a, b, dst))

    return build


def _scalar_binary(name: str) -> ScalarBinaryBuild:
    def build(a: Value, scalar: Value, dst: Value) -> None:
        operation(name, (a, scalar, dst))

    return build


def _move(name: str) -> MoveBuild:
    def build(src: Value, dst: Value) -> None:
        operation(name, (src, dst))

    return build


def _row_reduction(name: str) -> RowReductionBuild:
    def build(
        src: Value, dst: Value, *, first_lane: int | None = None, lanes: int | None = None
    ) -> None:
        operation(name, (src, dst), first_lane=first_lane, lanes=lanes)

    return build


vadd = _binary("vadd")
vsub = _binary("vsub")
vmul = _binary("vmul")
vdiv = _binary("vdiv")
vmax = _binary("vmax")
vmin = _binary("vmin")
vand = _binary("vand")
vor = _binary("vor")

vexp = _unary("vexp")
vln = _unary("vln")
vsqrt = _unary("vsqrt")
vrsqrt = _unary("vrsqrt")
vrec = _unary("vrec")
vabs = _unary("vabs")
vrelu = _unary("vrelu")
vnot = _unary("vnot")

vadds = _scalar_binary("vadds")
vmuls = _scalar_binary("vmuls")
vaxpy = _scalar_binary("vaxpy")
vmla = _binary("vmla")
vmadd = _binary("vmadd")

vcadd = _row_reduction("vcadd")
vcmax = _row_reduction("vcmax")
vcmin = _row_reduction("vcmin")

vcgadd = _move("vcgadd")
vcgmax = _move("vcgmax")
vcgmin = _move("vcgmin")
vbrcb = _move("vbrcb")
vgather = _binary("vgather")
vnchwconv = _move("vnchwconv")
nd2nz = _move("nd2nz")
copy_l1 = _move("copy_l1")


def copy_l0c(src: Value, dst: Value, *, relu: bool = False) -> None:
    operation("copy_l0c", (src, dst), relu=relu or None)


def dequantize_l0c(src: Value, scales: Value, dst: Value) -> None:
    operation("dequantize_l0c", (src, scales, dst))


def fixpipe(src: Value, dst: Value, *, relu: bool = False) -> None:
    operation("fixpipe", (src, dst), relu=relu or None)


def fixpipe_scaled(src: Value, words: Value, dst: Value, *, relu: bool = False) -> None:
    operation("fixpipe_scaled", (src, words, dst), relu=relu or None)


def clear_l1(dst: Value, *, bits: int | None = None) -> None:
    operation("clear_l1", (dst,), bits=bits)


def copy(
    src: Value, dst: Value, *, round_up: bool = False, exact: bool = False, adds: bool = False
) -> None:
    some = {"round_up": round_up or None, "exact": exact or None, "adds": adds or None}
    operation("copy", (src, dst), **some)


def copy_rows(
    src: Value, dst: Value, offset: Value, stride: Value, rows: Value, elements: Value
) -> None:
    operation("copy_rows", (src, dst, offset, stride, rows, elements))


def load2d(src: Value, dst: Value, *, transpose: bool = False) -> None:
    operation("load2d", (src, dst), transpose=transpose or None)


def load3d(
    src: Value,
    first: Value,
    top: Value,
    dst: Value,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    element: int,
    padding: int | None = None,
) -> None:
    operation(
        "load3d",
        (src, first, top, dst),
        kernel=list(kernel),
        strides=list(strides),
        dilations=list(dilations),
        pads=list(pads),
        element=element,
        padding=padding,
    )


def mad(a: Value, b: Value, c: Value, init: Value) -> None:
    operation("mad", (a, b, c, init))


def mad_bias(a: Value, b: Value, bias: Value, c: Value) -> None:
    operation("mad_bias", (a, b, bias, c))


def mad_l1(
    a: Value,
    b: Value,
    c: Value,
    init: Value,
    *,
    a_transpose: bool = False,
    b_transpose: bool = False,
) -> None:
    turned = {"a_transpose": a_transpose or None, "b_transpose": b_transpose or None}
    operation("mad_l1", (a, b, c, init), **turned)


def vector_dup(
    scalar: Value, dst: Value, *, first_lane: int | None = None, lanes: int | None = None
) -> None:
    operation("vector_dup", (scalar, dst), first_lane=first_lane, lanes=lanes)


def vconv(a: Value, dst: Value, *, round: str | None = None) -> None:
    operation("vconv", (a, dst), round=round)


def vcmpsel(a: Value, b: Value, x: Value, y: Value, dst: Value, *, predicate: str) -> None:
    operation("vcmpsel", (a, b, x, y, dst), predicate=predicate)


def set_flag(*, src: str, dst: str, event: int) -> None:
    operation("set_flag", (), src=src, dst=dst, event=event)


def wait_flag(*, src: str, dst: str, event: int) -> None:
    operation("wait_flag", (), src=src, dst=dst, event=event)


def pipe_barrier(*, pipe: str) -> None:
    operation("pipe_barrier", (), pipe=pipe)


class SomeBlocks(TypedDict, total=False):
    """Attributes of a meeting of some blocks; without them all blocks meet.

    Attributes:
        own: the line of a block's counter, less the number of the block.
        early: the line of its second counter, the same way, and by how much it is higher; or None.
        seen: the first line that the block looks at, and how many there are.
        again: counters that the scalar unit loads a second time, so that a look takes longer.
        group: how many blocks whose numbers follow each other meet, those of the first group from
            number 0 on.
    """

    own: int
    early: Sequence[int] | None
    seen: Sequence[int]
    again: int
    group: int


def read_counter(lines: Value, scratch: Value, **some: Unpack[SomeBlocks]) -> Value:
    kind = ir.IntegerType.get_signless(32)
    return create("cce.read_counter", (lines, scratch), (kind,), **some).result


def sync_cores(lines: Value, number: Value, scratch: Value, **some: Unpack[SomeBlocks]) -> None:
    operation("sync_cores", (lines, number, scratch), **some)


def sync_and_copy(
    lines: Value,
    number: Value,
    scratch: Value,
    src: Value,
    dst: Value,
    **some: Unpack[SomeBlocks],
) -> None:
    operation("sync_and_copy", (lines, number, scratch, src, dst), **some)


def set_core_flag(*, pipe: str, flag: int, of_all: bool = False) -> None:
    operation("set_core_flag", (), pipe=pipe, flag=flag, of_all=of_all or None)


def wait_core_flag(*, flag: int) -> None:
    operation("wait_core_flag", (), flag=flag)


def get_sub_block_idx() -> Value:
    return create("cce.get_sub_block_idx", (), (ir.IndexType.get(),)).result


def get_block_idx() -> Value:
    return create("cce.get_block_idx", (), (ir.IndexType.get(),)).result


def get_block_num() -> Value:
    return create("cce.get_block_num", (), (ir.IndexType.get(),)).result
