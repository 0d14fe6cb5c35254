"""convert-cce-to-hir: turns programs of one kind of core into operations of AscendNPU-IR.

before:
    %u = memref.alloc() {cce.address = 512 : i64} : memref<1000xf32, #cce.space<"UB">>
    "cce.copy"(%x, %u) : (memref<1000xf32>, memref<1000xf32, #cce.space<"UB">>) -> ()
    "cce.set_flag"() {src = "MTE2", dst = "V", event = 0 : i64} : () -> ()
    "cce.vadds"(%u, %c, %u) : ...
after:
    %u = "hir.pointer_cast"(%c512) {...} : (i64) -> memref<1000xf32, "ub">
    "hir.load"(%x, %u) {...} : (memref<1000xf32, "gm">, memref<1000xf32, "ub">) -> ()
    "hir.set_flag"() {set_pipe = #hir.pipe<PIPE_MTE2>, wait_pipe = .., ..} : () -> ()
    "hir.vadd"(%u, %c, %u) {...} : ...

Addresses and flags must be there: it runs behind `ascend-to-cce`. Loops, views and arithmetic stay.
Products are those of `join-loads-and-products`, which order L0A and L0B by flags of their own.
`davinci.frontends.hivm.write` prints the kernels, `convert-hir-to-hivm` makes instructions of them.
What has no counterpart is an error that lists all such operations of a kernel, with counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.errors import CompileError
from davinci.mlir import Op, arith, ir, location_text, operations
from davinci.passes import builder
from davinci.passes.analysis.kernels import kernels
from davinci.passes.cce_to_hir import blocks, choices, cores, cube
from davinci.passes.cce_to_hir.operations import Attributes, NoCounterpart, build
from davinci.passes.cce_to_hir.pieces import in_pieces
from davinci.passes.cce_to_hir.room import GLOBAL, FreeRoom, pointer_cast, space_of
from davinci.passes.cce_to_hir.views import VIEWS, seen_as, whole_blocks, without_repeats
from davinci.passes.pipeline.base import Pass, option, register_pass

BINARY = ("vadd", "vsub", "vmul", "vdiv", "vmax", "vmin")
WITH_SCALAR = {"vadds": "vadd", "vmuls": "vmul"}
UNARY = ("vexp", "vln", "vsqrt", "vrsqrt", "vrec", "vabs", "vrelu")
BITWISE = ("vand", "vor", "vnot")
MULTIPLY_ADDS = ("vmla", "vmadd", "vaxpy")
"""A product and a sum here, which round like the one instruction."""

NUMBERS = ("get_block_idx", "get_block_num", "get_sub_block_idx")
ROUNDS = {
    "none": "rint",
    "rint": "rint",
    "away": "round",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
}
"""Names of roundings there, by ours."""

CORES = ("aiv", "aic")
ROWS = 2
"""Dimensions of a buffer whose rows are filled in part."""


@register_pass
@dataclass(frozen=True)
class ConvertCceToHirPass(Pass):
    """Turn kernels of one kind of core into operations of AscendNPU-IR."""

    NAME = "convert-cce-to-hir"

    machine: str = option("ascend910b", "machine file that gives the size of UB")

    def run(self, op: Op) -> None:
        op.context.allow_unregistered_dialects = True
        for kernel in kernels(op):
            if operations(kernel, "cce"):
                convert(kernel, self.machine)


def convert(kernel: Op, machine: str) -> None:
    """Converts the operations of a kernel, then the types of its buffers; a barrier ends it, as the
    vendor's kernels have one.

    Args:
        machine: whose UB has the buffers; behind them it is free.

    Raises:
        CompileError: some have no counterpart; all of them are named.
    """
    refused: Counter[str] = Counter()
    room = FreeRoom.of(kernel, machines.load(machine).buffers.UB.bytes)
    core = attribute(kernel, "ascend.core", "")
    if core not in CORES:
        refused[f"a program of {core or 'one kind of'} cores"] += 1
    cores.take_base(kernel)
    for op in operations(kernel, "cce", "memref.alloc", "memref.alloca"):
        with ir.InsertionPoint(op), op.location:
            try:
                replace(op, room)
            except NoCounterpart as reason:
                refused[str(reason)] += 1
                continue
        op.erase()
    if refused:
        raise CompileError(
            "a kernel has operations that AscendNPU-IR has no counterpart for",
            where=location_text(kernel.location),
            found=", ".join(f"{name} ({count}x)" for name, count in refused.most_common()),
        )
    for op in reversed(operations(kernel, *VIEWS, "memref.cast")):
        if not list(op.results[0].uses):
            op.erase()
    cube.hand_halves_over(kernel)
    for block in kernel.regions[0]:
        last = list(block.operations)[-1].operation
        with ir.InsertionPoint(last), last.location:
            build("pipe_barrier", {"pipe": "#hir.pipe<PIPE_ALL>"}, [])
    retype(kernel)


def replace(op: Op, room: FreeRoom) -> None:
    """Builds what does the same in front of an operation of cce.

    Args:
        room: that no buffer of the kernel takes.

    Raises:
        NoCounterpart: nothing does.
    """
    name = op.name.removeprefix("cce.")
    operands = list(op.operands)
    if op.name == "memref.alloc":
        replace_buffer(op)
    elif name == "copy":
        if attribute(op, "round_up", False):
            operands = [whole_blocks(operand) for operand in operands]
        build_transfer(*operands)
    elif name in (*BINARY, *UNARY, *WITH_SCALAR, "vconv"):
        replace_elementwise(op, name, operands)
    elif name in BITWISE:
        element = ir.MemRefType(operands[-1].type).element_type
        replace_elementwise(op, name, [seen_as(operand, element) for operand in operands])
    elif name in MULTIPLY_ADDS:
        replace_multiply_add(op, name, operands, room)
    elif name == "vector_dup":
        scalar, target = operands
        fill_lanes(op, scalar, target, room)
    elif name in blocks.REDUCTIONS:
        blocks.reduce_blocks(op, operands)
    elif name == "vcadd":
        blocks.sum_rows(op, operands)
    elif name == "vcmpsel":
        choices.choose(op, operands, room, build_transfer)
    elif name == "vbrcb":
        like = ir.MemRefType(operands[-1].type)
        blocks.fill_blocks(op, operands, lambda count: room.elements(like, count))
    elif name == "vnchwconv":
        blocks.transpose_squares(op, operands, room.end - room.begin, room.words)
    elif name in cores.OPERATIONS:
        cores.replace(op, operands, lambda copied: build_transfer(*copied))
    elif name in cube.LOWERINGS:
        cube.LOWERINGS[name](op, operands)
    elif name in ("set_flag", "wait_flag"):
        build(name, flag(op), [])
    elif name == "pipe_barrier":
        build(name, {"pipe": f"#hir.pipe<PIPE_{attribute(op, 'pipe')}>"}, [])
    elif name in NUMBERS:
        made = build(name, {}, [], ir.IntegerType.get_signless(64))
        cast = arith.IndexCastOp(ir.IndexType.get(), made.result)
        op.results[0].replace_all_uses_with(cast.result)
    else:
        raise NoCounterpart(op.name)


def replace_elementwise(op: Op, name: str, operands: Sequence[ir.Value]) -> None:
    """An operation element by element; operands may repeat along dimensions."""
    *sources, target = operands
    repeated: set[int] = set()
    given = []
    for source in sources:
        if isinstance(source.type, ir.MemRefType):
            sizes = ir.MemRefType(source.type).shape
            source, dims = without_repeats(source)
            repeated |= {i for i in dims if sizes[i] > 1}
        given.append(source)
    # A step of 0 along one element is none to AscendNPU-IR.
    target, _ = without_repeats(target)
    attributes = {
        "operandSegmentSizes": f"array<i32: {len(sources)}, 1, 0>",
        "broadcast": f"array<i64: {', '.join(map(str, sorted(repeated)))}>".replace(": >", ">"),
        "transpose": "array<i64>",
    }
    if name == "vconv":
        name = "vcast"
        mode = ROUNDS[attribute(op, "round", "none")]
        attributes["round_mode"] = f"#hir.round_mode<{mode}>"
    build(WITH_SCALAR.get(name, name), attributes, [*given, target])


def replace_multiply_add(op: Op, name: str, operands: Sequence[ir.Value], room: FreeRoom) -> None:
    """A product and a sum: in the result where that is a factor, else by way of a buffer behind all
    others.

    Raises:
        NoCounterpart: UB has no room for it.
    """
    first, second, result = operands
    barrier = {"pipe": "#hir.pipe<PIPE_V>"}
    if name == "vmadd":
        build("pipe_barrier", barrier, [])
        replace_elementwise(op, "vmul", [result, first, result])
        build("pipe_barrier", barrier, [])
        replace_elementwise(op, "vadd", [result, second, result])
        return
    kind = ir.MemRefType(result.type)
    arrays = list(dict.fromkeys(v for v in operands if isinstance(v.type, ir.MemRefType)))

    def product(shape: Sequence[int]) -> list[ir.MemRefType]:
        return [ir.MemRefType.get(shape, kind.element_type, None, kind.memory_space)]

    def steps(parts: Sequence[ir.Value], buffers: Sequence[ir.Value]) -> None:
        given = dict(zip(arrays, parts, strict=True))
        a, b, total = (given.get(operand, operand) for operand in operands)
        build("pipe_barrier", barrier, [])
        replace_elementwise(op, "vmuls" if name == "vaxpy" else "vmul", [a, b, *buffers])
        build("pipe_barrier", barrier, [])
        replace_elementwise(op, "vadd", [*buffers, total, total])

    in_pieces(arrays, room, product, steps)


def flag(op: Op) -> dict[str, str]:
    """Attributes of a flag.

    Raises:
        NoCounterpart: its event is one that the program computes.
    """
    event = attribute(op, "event", None)
    if event is None:
        raise NoCounterpart(f"{op.name} with an event that the program computes")
    source, target = attribute(op, "src"), attribute(op, "dst")
    if (source, target) == ("MTE2", "M"):  # Loads of the product wait, and it for them.
        target = "MTE1"
    return {
        "set_pipe": f"#hir.pipe<PIPE_{source}>",
        "wait_pipe": f"#hir.pipe<PIPE_{target}>",
        "static_event_id": f"#hir.event<EVENT_ID{event}>",
    }


def build_transfer(source: ir.Value, target: ir.Value) -> None:
    """Moves elements between two memories. What is repeated on its way from global memory is loaded
    once for each place.

    Raises:
        NoCounterpart: nothing does between these.
    """
    shape = ir.MemRefType(source.type).shape
    once, repeated = without_repeats(source)
    if not repeated or space_of(source) != GLOBAL:
        build(*transfer(source, target))
        return
    dims = sorted(repeated)
    sizes = [1 if i in dims else size for i, size in enumerate(shape)]
    once = builder.subview(once, [0] * len(shape), sizes, drop=dims)
    with ExitStack() as loops:
        numbers = {i: loops.enter_context(builder.for_loop(0, shape[i])) for i in dims}
        places = [numbers.get(i, 0) for i in range(len(shape))]
        build(*transfer(once, builder.subview(target, places, sizes, drop=dims)))


def transfer(source: ir.Value, target: ir.Value) -> tuple[str, dict[str, str], list[ir.Value]]:
    """What moves elements between two memories: its name, attributes and operands.

    Raises:
        NoCounterpart: nothing does between these.
    """
    spaces = space_of(source), space_of(target)
    source, repeated = without_repeats(source)
    transposed = {"may_implicit_transpose_with_last_axis": "false"}
    if spaces == ("ub", "ub") and repeated:
        dims = ", ".join(map(str, sorted(repeated)))
        return "vbrc", {"broadcast_dims": f"array<i64: {dims}>"}, [source, target]
    if repeated:
        raise NoCounterpart(f"cce.copy from {spaces[0]} to {spaces[1]} that repeats elements")
    if spaces in ((GLOBAL, "ub"), (GLOBAL, "cbuf")):
        sizes = {"operandSegmentSizes": "array<i32: 1, 1, 0, 0, 0, 0>"}
        return "load", {"init_out_buffer": "false", **transposed, **sizes}, [source, target]
    if spaces == ("ub", GLOBAL):
        return "store", transposed, [source, target]
    if spaces == ("ub", "ub"):
        return "copy", {}, [source, target]
    raise NoCounterpart(f"cce.copy from {spaces[0]} to {spaces[1]}")


def fill_lanes(op: Op, scalar: ir.Value, target: ir.Value, room: FreeRoom) -> None:
    """Fills a buffer, or some lanes of its rows. What lies in front of these in a block is kept
    behind all buffers meanwhile, for fills begin with blocks.

    Raises:
        NoCounterpart: UB has no room for it.
    """
    fill: Attributes = {"broadcast_dims": "array<i64>"}
    rows, wide = (*ir.MemRefType(target.type).shape, 0, 0)[:ROWS]
    lanes, first = attribute(op, "lanes", None), attribute(op, "first_lane", 0)
    if lanes is None or (first, lanes) == (0, wide):
        build("vbrc", fill, [scalar, target])
        return
    block = buffer_of(target).block
    kept = first % block
    part = builder.subview(target, [0, first - kept], [rows, kept + lanes])
    if not kept:
        build("vbrc", fill, [scalar, part])
        return
    like = ir.MemRefType(target.type)
    blocks_of_rows = ir.MemRefType.get([rows, block], like.element_type, None, like.memory_space)
    saved = builder.subview(room.several([blocks_of_rows])[0], [0, 0], [rows, kept])
    front = builder.subview(part, [0, 0], [rows, kept])
    for source, copy in ((front, saved), (saved, front)):
        blocks.wait_for_vectors()
        replace_elementwise(op, "vmax", [source, source, copy])
        blocks.wait_for_vectors()
        if source is front:
            build("vbrc", fill, [scalar, part])


def replace_buffer(op: Op) -> None:
    """A buffer at its address."""
    address = attribute(op, "cce.address", None)
    if address is None:
        raise NoCounterpart("memref.alloc without an address")
    op.results[0].replace_all_uses_with(pointer_cast(address, op.results[0].type))


def retype(kernel: Op) -> None:
    """Gives buffers the memory spaces of AscendNPU-IR."""
    ops = operations(kernel)
    blocks = [block for op in ops for region in op.regions for block in region]
    values: list[ir.Value] = [value for block in blocks for value in block.arguments]
    values += [value for op in ops for value in op.results]
    for value in values:
        if isinstance(value.type, ir.MemRefType):
            kind = ir.MemRefType(value.type)
            space = ir.StringAttr.get(space_of(value), kernel.context)
            value.set_type(
                ir.MemRefType.get(
                    kind.shape, kind.element_type, kind.layout, space, kernel.location
                )
            )
    inputs = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    with kernel.context:
        kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
