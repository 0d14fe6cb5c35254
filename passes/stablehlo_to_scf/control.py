"""`while`, `if` and `case`: loops and branches of scf.

Values of rank 0 are carried as scalars. Others are carried as tensors that stay in one buffer: what
an iteration or branch yields is copied into it, so buffers are known when the kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.mlir import Op, ir
from davinci.passes import builder
from davinci.passes.stablehlo_to_scf import lowering
from davinci.passes.stablehlo_to_scf.elements import (
    Values,
    buffer,
    cast,
    compare,
    constant,
    extract,
    inline,
    rank_zero,
    signless,
    stored,
)

LOOPS = frozenset({"scf.for", "scf.if", "scf.while"})
"""What operations with regions have become when the loop around them is lowered."""

MAY_SHARE = (
    LOOPS
    | {"bufferization.materialize_in_destination"}
    | {
        "builtin.unrealized_conversion_cast",
        *(
            f"stablehlo.{name}"
            for name in (
                *("bitcast_convert", "broadcast_in_dim", "concatenate", "convert", "dynamic_slice"),
                *("dynamic_update_slice", "optimization_barrier", "pad", "reduce", "reshape"),
                *("slice", "transpose"),
            )
        ),
    }
)
"""Operations whose result may lie in the buffer of an operand."""


@lowering("while")
def lower_while(op: Op) -> Values:
    kinds = [value.type for value in op.operands]
    start = [pack(value) for value in op.operands]
    types = [value.type for value in start]
    loop = ir.Operation.create("scf.while", results=types, operands=start, regions=2)
    locations = [op.location] * len(types)
    before = loop.regions[0].blocks.append(*types, arg_locs=locations)
    with ir.InsertionPoint(before):
        (condition,) = inline(op.regions[0].blocks[0], unpack(before.arguments, kinds))
        builder.op("scf.condition", [extract(condition), *before.arguments])
    after = loop.regions[1].blocks.append(*types, arg_locs=locations)
    with ir.InsertionPoint(after):
        body = op.regions[1].blocks[0]
        returned = list(body.operations)[-1].operation.operands
        results = inline(body, unpack(after.arguments, kinds))
        moved = [
            aside(new) if needs_copy(old, number, body) else new
            for number, (old, new) in enumerate(zip(returned, results, strict=True))
        ]
        builder.op("scf.yield", [into(v, t) for v, t in zip(moved, after.arguments, strict=True)])
    return unpack(loop.results, kinds)


@lowering("if")
def lower_if(op: Op) -> Values:
    condition = extract(op.operands[0])
    return branch(condition, op.results, *(block_builder(region) for region in op.regions))


@lowering("case")
def lower_case(op: Op) -> Values:
    """A chain of conditions; any other index means the last branch."""
    index = extract(stored(op.operands[0]))
    *first, otherwise = [block_builder(region) for region in op.regions]
    for number, build in reversed(list(enumerate(first))):
        otherwise = condition_builder(index, number, op.results, build, otherwise)
    return otherwise()


Build = Callable[[], Values]


def block_builder(region: ir.Region) -> Build:
    return lambda: inline(region.blocks[0], [])


def condition_builder(
    index: ir.Value, number: int, like: Sequence[ir.Value], build: Build, otherwise: Build
) -> Build:
    """Builds one of two branches, by whether `index` is `number`."""

    def chosen() -> Values:
        return branch(compare("eq", index, constant(index.type, number)), like, build, otherwise)

    return chosen


def branch(condition: ir.Value, like: Sequence[ir.Value], *builds: Build) -> Values:
    """The values of one of two branches, of the types of `like`."""
    kinds = [value.type for value in like]
    targets = [buffer(signless(kind)) if kind.rank else None for kind in kinds]
    types = [signless(k) if k.rank else signless(k).element_type for k in kinds]
    both = ir.Operation.create("scf.if", results=types, operands=[condition], regions=2)
    for region, build in zip(both.regions, builds, strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            values = build()
            builder.op("scf.yield", [into(v, t) for v, t in zip(values, targets, strict=True)])
    return unpack(both.results, kinds)


def pack(value: ir.Value) -> ir.Value:
    """A tensor as it is carried: a scalar if it is of rank 0."""
    return stored(value) if value.type.rank else extract(stored(value))


def unpack(values: Sequence[ir.Value], kinds: Sequence[ir.RankedTensorType]) -> Values:
    return [
        cast(value, kind) if kind.rank else rank_zero(value, kind)
        for value, kind in zip(values, kinds, strict=True)
    ]


def into(value: ir.Value, target: ir.Value | None) -> ir.Value:
    """`value` in the buffer of the tensor `target`; a scalar as it is."""
    packed = pack(value)
    if target is None or not value.type.rank or packed == target:
        return packed
    name = "bufferization.materialize_in_destination"
    return builder.op(name, [packed, target], [target.type]).result


def aside(value: ir.Value) -> ir.Value:
    """A copy of a tensor in a buffer of its own."""
    packed = stored(value)
    return cast(buffer(packed.type, packed), value.type)


def needs_copy(value: ir.Value, number: int, body: ir.Block) -> bool:
    """Whether a value that a loop's body yields may lie in the buffer of an argument in its way.

    The buffer of another argument is written before the value is copied from it, or after. Its own
    buffer is what it should lie in, but bufferization sees that only where no loop is between.
    """
    if not is_array(value):
        return False
    own = body.arguments[number]
    pending, seen = [(value, False)], set()
    while pending:
        found, by_loop = pending.pop()
        if (found, by_loop) in seen:
            continue
        seen.add((found, by_loop))
        if isinstance(found.owner, ir.Block):
            if found.owner == body and (by_loop or found != own):
                return True
        elif found.owner.name in MAY_SHARE:
            by_loop = by_loop or found.owner.name in LOOPS
            sources = [*found.owner.operands, *captured_by(found.owner)]
            if found.owner.name == "stablehlo.dynamic_update_slice":
                sources = sources[:1]  # what is written into it is copied
            pending += [(v, by_loop) for v in sources if is_array(v)]
    return False


def is_array(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.rank > 0


def captured_by(op: Op) -> Values:
    """Values that operations in the regions of `op` use, those made inside among them."""
    found: Values = []

    def visit(nested: Op) -> ir.WalkResult:
        found.extend(nested.operands)
        return ir.WalkResult.ADVANCE

    for region in op.regions:
        for block in region:
            for inner in block.operations:
                inner.operation.walk(visit)
    return found
