"""Products: rows into fractals in L1, products of what is in L1, and results out of L0C."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.mlir import Op, arith, ir, memref, operations
from davinci.passes import builder
from davinci.passes.cce_to_hir.operations import NoCounterpart, build
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

EVENTS = 7
"""Flags that a product may take over from the program around it, and whose turn it is."""

NO_EVENT = -1
PRODUCT = "hir.mmadL1"
HALVES = 0, 1
"""Halves of L0A and L0B, which are events: set where the cube has read what is in a half."""

ROWS = 2
"""Dimensions of rows; fractals have more."""

Lowering = Callable[[Op, Sequence[ir.Value]], None]


def nd2nz(op: Op, operands: Sequence[ir.Value]) -> None:
    """Rows become columns of fractals, whose last one may have fewer rows.

    Raises:
        NoCounterpart: rows of fractals lie apart.
    """
    source, target = operands
    view = buffer_of(target)
    columns, rows, lanes = view.shape
    if rows > 1 and view.strides[1] != lanes:
        raise NoCounterpart("cce.nd2nz of rows that lie apart")
    shape = [columns, ceil_div(rows, SIDE), SIDE, lanes]
    fractals = [view.strides[0], SIDE * lanes, lanes, 1]
    sizes = {"operandSegmentSizes": "array<i32: 1, 1, 0, 0>", "dst_continuous": "unit"}
    target = seen_with(target, shape, fractals)
    build("nd2nz", {**sizes, "init_out_buffer": "false"}, [source, target])


def clear_l1(op: Op, operands: Sequence[ir.Value]) -> None:
    """A broadcast of the number of these bits, for each run of the buffer."""
    (target,) = operands
    view = buffer_of(target)
    runs, size = view.shape
    element = ir.MemRefType(target.type).element_type
    i16 = ir.IntegerType.get_signless(16)
    bits = arith.ConstantOp(i16, ir.IntegerAttr.get(i16, attribute(op, "bits", 0))).result
    value = arith.BitcastOp(element, bits).result if attribute(op, "bits", 0) else zero(element)
    for run in range(runs):
        part = seen_with(target, [size], [1], run * view.strides[0])
        build("vbrc", {"broadcast_dims": "array<i64>"}, [value, part])


def zero(element: ir.Type) -> ir.Value:
    """The constant of a type of floats."""
    return arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result


def mad_l1(op: Op, operands: Sequence[ir.Value]) -> None:
    """A product that orders its own loads into L0A and L0B."""
    a, b, c, init = operands
    n1, m1 = buffer_of(c).shape[:2]
    along_b = buffer_of(b)
    # Bytes are transposed always, so rows of B's fractals are those of n.
    k = SIDE * along_b.shape[1]
    if attribute(op, "b_transpose", False):
        k = along_b.block * along_b.shape[0]
    sizes = [builder.constant_index(size) for size in (SIDE * m1, k, SIDE * n1)]
    i64 = ir.IntegerType.get_signless(64)
    none = arith.ConstantOp(i64, ir.IntegerAttr.get(i64, NO_EVENT)).result
    segments = [1, 1, 1, 1, 1, 1, 1, EVENTS, 0, 0]
    attributes = {"operandSegmentSizes": f"array<i32: {', '.join(map(str, segments))}>"}
    for name in ("a_transpose", "b_transpose"):
        if attribute(op, name, False):
            attributes[name] = "unit"
    factors = [without_gaps(factor) for factor in (a, b)]
    build("mmadL1", attributes, [*factors, init, *sizes, c, *[none] * EVENTS])


def hand_halves_over(kernel: Op) -> None:
    """Has products begin with either half of L0A and L0B in turn, so that loads of one run beside
    the one before. The program says at its beginning that both are free and waits for both at its
    end, where else each product would."""
    products = operations(kernel, PRODUCT)
    if not products:
        return
    pipes = {"set_pipe": "#hir.pipe<PIPE_M>", "wait_pipe": "#hir.pipe<PIPE_MTE1>"}
    (block,) = kernel.regions[0]
    first, *_, last = [view.operation for view in block.operations]
    for name, place in (("set_flag", first), ("wait_flag", last)):
        with ir.InsertionPoint(place), place.location:
            for half in HALVES:
                event = {"static_event_id": f"#hir.event<EVENT_ID{half}>"}
                build(name, {**pipes, **event}, [])
    for number, product in enumerate(products):
        with ir.InsertionPoint(product), product.location:
            i64 = ir.IntegerType.get_signless(64)
            given = [
                arith.ConstantOp(i64, ir.IntegerAttr.get(i64, value)).result
                for value in (number % len(HALVES), *HALVES)
            ]
        numbers = range(len(product.operands) - len(given), len(product.operands))
        for operand, value in zip(numbers, given, strict=True):
            product.operands[operand] = value


def without_gaps(factor: ir.Value) -> ir.Value:
    """The fractals of a factor [outer, inner, 16, lanes] with as many in a column as lie from one
    column to the next: AscendNPU-IR's library sees sizes and no strides, and the product says how
    many of k there are, its result how many of the other dimension.

    Raises:
        NoCounterpart: fractals of a column lie apart, or columns in each other.
    """
    view = buffer_of(factor)
    (outer, inner, rows, lanes), (column, fractal) = view.shape, view.strides[:2]
    size = rows * lanes
    pitch, rest = divmod(column, size) if outer > 1 else (inner, 0)
    if rest or pitch < inner or (inner > 1 and fractal != size):
        raise NoCounterpart(f"cce.mad_l1 of fractals {column} and {fractal} elements apart")
    shape, strides = [outer, pitch, rows, lanes], [pitch * size, size, lanes, 1]
    if (list(view.shape), list(view.strides)) == (shape, strides):
        return factor
    return seen_with(factor, shape, strides)


def fixpipe(op: Op, operands: Sequence[ir.Value]) -> None:
    """Results go to rows or fractals in global memory, rounded on their way. Where columns of
    fractals end before those of the source do, the rows of each go by themselves.

    Raises:
        NoCounterpart: no way leads from these elements to those.
    """
    source, target = operands
    src, dst = buffer_of(source), buffer_of(target)
    kinds = src.dtype, dst.dtype
    if kinds not in (("f32", "f32"), ("f32", "f16"), ("s32", "s32")):
        raise NoCounterpart(f"cce.fixpipe of {kinds[0]} to {kinds[1]}")
    attributes = {"operandSegmentSizes": "array<i32: 1, 1, 0, 0>"}
    if kinds[1] == "f16":
        attributes["pre_quant"] = "#hir.fixpipe_pre_quant_mode<F322F16>"
    if attribute(op, "relu", False):
        attributes["pre_relu"] = "#hir.fixpipe_pre_relu_mode<NORMAL_RELU>"
    by_rows = {**attributes, "dma_mode": "#hir.dma_mode<nz2nd>"}
    by_fractals = {**attributes, "dma_mode": "#hir.dma_mode<normal>"}
    columns, *fractals = src.shape
    if len(dst.shape) == ROWS:
        build("fixpipe", by_rows, [source, target])
    elif tuple(dst.shape[1:]) == (fractals[0] * SIDE, SIDE):
        build("fixpipe", by_fractals, [source, in_fractals(target)])
    elif dst.shape == src.shape:
        build("fixpipe", by_fractals, [source, target])
    else:
        for column in range(columns):
            part = builder.subview(source, [column, 0, 0, 0], [1, *fractals])
            rows = builder.subview(target, [column, 0, 0], [1, *dst.shape[1:]], drop=[0])
            build("fixpipe", by_rows, [part, rows])


def in_fractals(value: ir.Value) -> ir.Value:
    """Columns of fractals [n1, m, 16] as [n1, m / 16, 16, 16]."""
    kind = ir.MemRefType(value.type)
    columns, rows, lanes = kind.shape
    layout = None
    if isinstance(kind.layout, ir.StridedLayoutAttr):
        (step, *_), offset = kind.get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(offset, [step, SIDE * lanes, lanes, 1])
    shape = [columns, rows // SIDE, SIDE, lanes]
    result = ir.MemRefType.get(shape, kind.element_type, layout, kind.memory_space)
    groups = [[0], [1, 2], [3]]
    made = memref.ExpandShapeOp(result, value, groups, output_shape=[], static_output_shape=shape)
    return made.result


def seen_with(
    value: ir.Value, shape: Sequence[int], strides: Sequence[int], moved: int = 0
) -> ir.Value:
    """A view at a constant place with another shape and other strides, `moved` elements further.

    Raises:
        NoCounterpart: its place is one that the program computes.
    """
    offset, owner = buffer_of(value).offset, value.owner
    if isinstance(owner, ir.Block) or owner.name != "memref.reinterpret_cast" or offset is None:
        raise NoCounterpart("a place in L1 that the program computes")
    return builder.restride(owner.operands[0], shape, strides, offset + moved)


LOWERINGS: dict[str, Lowering] = {
    "nd2nz": nd2nz,
    "clear_l1": clear_l1,
    "mad_l1": mad_l1,
    "fixpipe": fixpipe,
}
"""For the name of each cce operation of cube cores, the function that replaces it."""
