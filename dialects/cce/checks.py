"""Constraints of cce operations, shared by their verifiers.

Each `require...` raises `Invalid` with what was found and what was expected.
"""

from __future__ import annotations

from collections.abc import Collection

from davinci.dialects.base import attribute, integer, one_of
from davinci.dialects.cce.buffers import BufferView, type_name
from davinci.dialects.cce.instructions import (
    BITWISE,
    COPIES,
    COPY_BYTES,
    FRACTAL_COPIES,
    types_of,
)
from davinci.errors import require
from davinci.isa import INSTRUCTIONS, Pipe
from davinci.isa.strides import merge_dims, split_run
from davinci.mlir import Op, ir
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, REPEAT_BLOCKS, REPEAT_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

PIPES = tuple(p.name for p in Pipe if p != Pipe.ALL)
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")
ROUNDS = ("none", "rint", "floor", "ceil", "trunc", "away")

MOST_EVENT = next(f.limit for f in INSTRUCTIONS["set_flag"].fields if f.name == "event")
"""Largest event id that an instruction can encode; the machine file says how many exist."""


def require_space(role: str, buffer: BufferView, *spaces: str) -> None:
    require(
        buffer.space in spaces, f"{role} is in the wrong memory", buffer.space, " or ".join(spaces)
    )


def require_type(role: str, dtype: str, types: tuple[str, ...]) -> None:
    require(dtype in types, f"{role} has the wrong element type", dtype, " or ".join(types))


def require_contiguous(role: str, buffer: BufferView) -> None:
    dims = merge_dims(buffer.shape, [buffer.strides])
    found = list(buffer.strides)
    require(
        len(dims) == 0 or (len(dims) == 1 and dims[0].strides == (1,)),
        f"{role} is not contiguous",
        f"strides {found}",
    )


def check_elementwise(buffers: list[BufferView]) -> None:
    """Operands of a vector instruction: in UB, equal shapes, runs that start at blocks."""
    last = buffers[-1]
    for i, buffer in enumerate(buffers):
        role = "destination" if buffer is last else f"source {i}"
        require_space(role, buffer, "UB")
        require(
            buffer.shape == last.shape, f"shape of {role}", list(buffer.shape), list(last.shape)
        )
    outer, run = split_run(merge_dims(last.shape, [b.strides for b in buffers]))
    blocks = run * max(b.itemsize for b in buffers) == BLOCK_BYTES
    for dim in outer:
        for i, buffer in enumerate(buffers):
            role = "destination" if buffer is last else f"source {i}"
            stride = dim.strides[i] * buffer.itemsize
            # Runs that are blocks of the wide operands are halves of those of bytes.
            halves = blocks and dim.strides[i] == run and stride * dim.size == BLOCK_BYTES
            require(
                stride % BLOCK_BYTES == 0 or halves,
                f"{role} has a stride that vector instructions cannot take",
                f"{stride} bytes for a dimension of size {dim.size}",
                f"a contiguous innermost run, other strides multiples of {BLOCK_BYTES} bytes",
            )
            require(stride > 0 or buffer is not last, "destination overlaps itself", "stride 0")


def require_fractals(role: str, buffer: BufferView, columns: int) -> None:
    """[a, b, 16, columns] whose last two dimensions are one contiguous fractal."""
    require(
        len(buffer.shape) == 4 and buffer.shape[2:] == (SIDE, columns),
        f"shape of {role}",
        list(buffer.shape),
        f"[a, b, {SIDE}, {columns}]",
    )
    fractal = SIDE * columns
    require(
        buffer.strides[2:] == (columns, 1)
        and all(
            n == 1 or s % fractal == 0
            for n, s in zip(buffer.shape[:2], buffer.strides[:2], strict=True)
        ),
        f"{role} is not made of contiguous fractals",
        f"strides {list(buffer.strides)}",
        f"[multiples of {fractal}, {columns}, 1]",
    )


def require_columns(role: str, buffer: BufferView) -> None:
    """[a, b, 16, c] whose fractals along b follow each other."""
    fractal = buffer.shape[2] * buffer.shape[3]
    found = buffer.strides[1]
    alone = buffer.shape[1] == 1
    require(alone or found == fractal, f"columns of fractals of the {role}", found, fractal)


def require_types(src: BufferView, dst: BufferView, types: Collection[tuple[str, str]]) -> None:
    """Element types of a source and a destination are one of some pairs."""
    found = src.dtype, dst.dtype
    expected = ", ".join(" to ".join(pair) for pair in sorted(types))
    require(found in types, "types", " to ".join(found), expected)


def check_exit(src: BufferView, dst: BufferView) -> None:
    """A matrix leaves L0C, [n1, m1, 16, 16], for GM: as rows [m, n], as fractals
    [n1, m1, 16, 16], or as the first rows of columns of them, [n1, m, 16]. Fractals of bytes have
    32 columns, those of two in L0C."""
    require_space("source", src, "L0C")
    require_space("destination", dst, "GM")
    require_fractals("source", src, SIDE)
    require_columns("source", src)
    n1, m1 = src.shape[:2]
    if len(dst.shape) == 2:
        (m, n), most = dst.shape, [m1 * SIDE, n1 * SIDE]
        require(m <= most[0] and n <= most[1], "rows", list(dst.shape), f"at most {most}")
        require(n == 1 or dst.strides[1] == 1, "rows are not contiguous", dst.strides[1], 1)
        return
    lanes = BLOCK_BYTES if dst.itemsize == 1 else SIDE
    columns, rest = divmod(n1 * SIDE, lanes)
    require(not rest, f"columns for fractals of {lanes}", n1 * SIDE, f"a multiple of {lanes}")
    if len(dst.shape) == 3:
        require(dst.shape[0] == columns, "columns of fractals", dst.shape[0], columns)
        require(dst.shape[1] <= m1 * SIDE, "rows", dst.shape[1], f"at most {m1 * SIDE}")
        rows = [dst.shape[2], *dst.strides[1:]]
        require(rows == [lanes, lanes, 1], "rows of fractals", rows, [lanes, lanes, 1])
        return
    expected = [columns, m1, SIDE, lanes]
    require(list(dst.shape) == expected, "shapes differ", list(dst.shape), expected)
    require_fractals("destination", dst, lanes)
    require_columns("destination", dst)


def check_vector(op: Op, buffers: list[BufferView]) -> None:
    """C1 operands in UB with equal shapes; C2 one legal element type, of operations on bits any of
    16 or 32 bits; C3 legal strides."""
    dst, name = buffers[-1], op.name.removeprefix("cce.")
    if name in BITWISE:
        for buffer in buffers:
            require(buffer.itemsize in BIT_BYTES, "bytes of elements", buffer.itemsize, "2 or 4")
            require(buffer.itemsize == dst.itemsize, "bytes", buffer.itemsize, dst.itemsize)
        check_elementwise(buffers)
        return
    require_type("destination", dst.dtype, types_of(name))
    for i, buffer in enumerate(buffers[:-1]):
        require(buffer.dtype == dst.dtype, f"element type of source {i}", buffer.dtype, dst.dtype)
    check_elementwise(buffers)


BIT_BYTES = (2, 4)
"""Sizes of elements that operations on bits take."""


def check_scalar(scalar: ir.Value, dst: BufferView) -> None:
    found = type_name(scalar.type)
    require(found == dst.dtype, "type of the scalar", found, dst.dtype)


def check_rows(role: str, buffer: BufferView) -> None:
    """[r, l]: rows of at most one repeat, contiguous, that start at blocks."""
    require(len(buffer.shape) == 2, f"rank of the {role}", len(buffer.shape), 2)
    rows, length = buffer.shape
    lanes = REPEAT_BLOCKS * buffer.block
    require(length <= lanes, "row is longer than a repeat", length, f"at most {lanes}")
    require(length == 1 or buffer.strides[1] == 1, "rows are not contiguous", buffer.strides[1], 1)
    row_bytes = buffer.strides[0] * buffer.itemsize
    require(
        rows == 1 or row_bytes % BLOCK_BYTES == 0,
        "stride of rows",
        f"{row_bytes} bytes",
        f"a multiple of {BLOCK_BYTES}",
    )


def check_row_reduction(src: BufferView, dst: BufferView, rows: tuple[int, ...]) -> None:
    """Source [r, l], destination with one result a row."""
    require_space("source", src, "UB")
    require_space("destination", dst, "UB")
    require(src.dtype == dst.dtype, "element types differ", dst.dtype, src.dtype)
    check_rows("source", src)
    require(rows == src.shape[:1], "rows of the destination", list(rows), list(src.shape[:1]))


LANES = {
    "first_lane": integer(0, REPEAT_BYTES, required=False),
    "lanes": integer(1, REPEAT_BYTES, required=False),
}
"""Attributes of operations that reduce some lanes of a repeat."""


def check_lanes(op: Op, src: BufferView) -> None:
    first = attribute(op, "first_lane", 0)
    lanes = attribute(op, "lanes", src.shape[1] - first)
    require(
        lanes >= 1 and first + lanes <= src.shape[1],
        "lanes outside the row",
        f"first_lane {first}, lanes {lanes}",
        f"within {src.shape[1]}",
    )


EVENT = {"src": one_of(*PIPES), "dst": one_of(*PIPES), "event": integer(0, MOST_EVENT)}
"""Attributes of `set_flag` and `wait_flag`."""


def check_flag(op: Op) -> None:
    """`src` and `dst` are different pipes."""
    src, dst = attribute(op, "src"), attribute(op, "dst")
    require(src != dst, "a flag within one pipe", src, "two pipes; use pipe_barrier")


def check_copy(src: BufferView, dst: BufferView, inside: str = "") -> None:
    """The constraints of `cce.copy`.

    Args:
        inside: the attribute by which its only run ends inside a block; "" if none does.
    """
    require(src.shape == dst.shape, "shapes differ", list(src.shape), list(dst.shape))
    # Buffers in GM have no sign.
    alike = src.dtype == dst.dtype or {src.dtype, dst.dtype} == {"s8", "u8"}
    require(alike, "element types differ", dst.dtype, src.dtype)
    require(
        (src.space, dst.space) in COPIES,
        "no copy between these memories",
        f"{src.space} to {dst.space}",
        ", ".join(f"{a} to {b}" for a, b in COPIES),
    )
    outer, run = split_run(merge_dims(src.shape, [src.strides, dst.strides]))
    run_bytes, unit = run * src.itemsize, COPY_BYTES.get(dst.space, BLOCK_BYTES)
    if dst.space in FRACTAL_COPIES:
        require_type("source", src.dtype, types_of(FRACTAL_COPIES[dst.space]))
        whole = not outer and run_bytes % FRACTAL_BYTES == 0 and not inside
        require(
            whole,
            "no run of whole fractals",
            f"{len(outer)} dimensions of runs of {run_bytes} bytes",
            f"one run of a multiple of {FRACTAL_BYTES} bytes",
        )
    if inside:
        require(not outer, f"{inside} with more than one run", f"{len(outer) + 1} dimensions")
    else:
        require(
            run_bytes % unit == 0,
            "contiguous run is not whole blocks",
            f"{run_bytes} bytes",
            f"a multiple of {unit} bytes, round_up or exact",
        )
    for dim in outer:
        for role, buffer, stride in zip(
            ("source", "destination"), (src, dst), dim.strides, strict=True
        ):
            require(
                buffer.space == "GM" or stride * buffer.itemsize % unit == 0,
                f"{role} has a stride that copies cannot take",
                f"{stride * buffer.itemsize} bytes",
                f"a multiple of {unit}",
            )
        require(dim.strides[1] != 0, "destination overlaps itself", "stride 0")
