"""ascend-legalize-precision: gives the cube the element types it has.

before:
    %c = "ascend.matmul"(%a, %b) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
after, precision=mixed:
    %0 = "ascend.cast"(%a) : (tensor<8x16xf32>) -> tensor<8x16xf16>
    %1 = "ascend.cast"(%b) : (tensor<16x4xf32>) -> tensor<16x4xf16>
    %c = "ascend.matmul"(%0, %1) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>

A cast goes in front of reshapes, and of transposes, slices and broadcasts that lead to products
only, so that less is moved and one cast serves several products.
`mixed`: products f16 x f16 -> f32, everything else is computed as it is, but what a product reads
is stored as f16, which its other readers widen again, but for comparisons and others whose results
jump (`narrow_storage`), and a softmax between values of f16 is one of f16 but for its sums
(`half_softmax`). `fp16`: every f32 value of `@main` becomes f16 as well, but for sums that
f16 may not hold, until they are divided (`wide_sums`), and, on machines with a bias table, sums of
products and constant rows, which are rounded once (`begun_products`); arguments and results keep
their type and are cast. Constant matrices beyond the range of f16 are scaled by powers of two
(`rescale`). `fp32`: nothing is rounded; a product of f32 becomes several of f16 parts
(`split_products`) where the cube has no f32, or windows of images are its rows. Integer products
are left alone. `scaled-fp16`: what `ascend-scale-values` leaves in f32 is treated as in `mixed`,
but stored as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.machine.views import multiplies_f32
from davinci.mlir import Op, ir, owner_of
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import Tensor, is_integer
from davinci.passes import builder
from davinci.passes.ascend import rescale
from davinci.passes.ascend.ascend_fold_constants import mark_foldable, value_of
from davinci.passes.ascend.begun_products import begun_products
from davinci.passes.ascend.half_softmax import compute_softmax_of_halves
from davinci.passes.ascend.integer_images import ELSEWHERE
from davinci.passes.ascend.narrow_storage import mark_finite, round_shortcuts, store_once
from davinci.passes.ascend.split_products import kept_dimensions, split_product
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    HALF,
    MOVES,
    ON_CUBE,
    POOL,
    PRODUCTS,
    TensorOps,
    defining_op,
    definition,
    depends_on_constants,
    erase_unused,
    full_value,
    is_f32,
    merge_equal,
    read_once,
    readers_of,
    tensor_functions,
    users_of,
)
from davinci.passes.ascend.wide_sums import bound_roots, wide_sums
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS


@register_pass
@dataclass(frozen=True)
class AscendLegalizePrecisionPass(Pass):
    """Cast operands of the cube to f16, and in fp16 all values."""

    NAME = "ascend-legalize-precision"

    precision: str = option(
        "mixed", "f16 products, f32 elsewhere; f16 or f32 everywhere; or scaled", PRECISIONS
    )
    machine: str = option("ascend910", "machine file: bias table, types of the cube")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        begun = machine.buffers.BT is not None
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            foldable = mark_foldable(block)
            wide, exact = set[ir.Value](), exact_values(block)
            if self.precision == "fp16":
                wide = wide_sums(block, foldable)
                bound_roots(block, wide)
                if begun:
                    wide |= begun_products(block, foldable)
            for operation in list(block.operations):
                op = operation.operation
                if op.name in ON_CUBE and is_f32(op.operands[0]):
                    constants = [known(v, foldable) for v in op.operands]
                    if self.precision == "fp32" and multiplies_f32(machine) and op.name in PRODUCTS:
                        turn_factors(op)
                    elif self.precision == "fp32":
                        split_product(op, constants)
                    else:
                        in_f32 = op.results[0] in wide
                        narrow_product(op, constants, "mixed" if in_f32 else self.precision)
                elif any(value in wide for value in op.results):
                    narrow_pixels(op)
                elif self.precision == "fp16" and exact.isdisjoint((*op.operands, *op.results)):
                    # It may be erased, and what is made later have its address.
                    foldable.difference_update(op.results)
                    narrow(op)
                elif self.precision == "mixed" and is_average(op) and is_f32(op.operands[0]):
                    with op.location, ir.InsertionPoint(op):
                        op.operands[0] = narrowed(op.operands[0], TensorOps())
            merge_equal(block)
            if self.precision == "mixed":
                store_once(block)
                round_in_front(block)
                round_shortcuts(block)
                compute_softmax_of_halves(block)
                erase_unused(block)
            mark_finite(block)


def turn_factors(op: Op) -> None:
    """Gives a product of f32 rows along which k runs, as the cube takes them."""
    with op.location, ir.InsertionPoint(op):
        ops = TensorOps()
        for number, (flag, wanted) in enumerate(((TRANSPOSE_A, False), (TRANSPOSE_B, True))):
            if (flag in op.attributes) == wanted:
                continue
            operand = op.operands[number]
            *outer, rows, columns = range(tensor_of(operand.type).rank)
            op.operands[number] = ops.transpose(operand, [*outer, columns, rows])
            if wanted:
                op.attributes[flag] = ir.UnitAttr.get()
            else:
                del op.attributes[flag]


def narrow(op: Op) -> None:
    """Makes f16 what `op` takes and gives, if it is f32."""
    if not op.name.startswith("ascend.") or op.name in CONSTANTS:
        # Constants are narrowed at their uses, where casts of them are folded.
        return
    if any(is_f32(v) for v in [*op.operands, *op.results]):
        rebuild(op)


def narrow_pixels(op: Op) -> None:
    """Rounds to f16 the images of which windows are added in f32."""
    if op.name == POOL:
        with op.location, ir.InsertionPoint(op):
            op.operands[0] = narrowed(op.operands[0], TensorOps())


def known(value: ir.Value, foldable: set[ir.Value]) -> Array | None:
    """The elements of a value that only depends on constants."""
    return value_of(value) if depends_on_constants(value, foldable) else None


def narrow_product(op: Op, constants: list[Array | None], precision: str) -> None:
    """Rounds the operands of a product to f16; scales constants that f16 does not hold.

    Args:
        constants: the elements of each operand that is known.
    """
    result = tensor_of(op.result.type)
    sides = list(zip(constants, kept_dimensions(op), strict=True))
    powers = [None if x is None else rescale.exponents(x, kept.dims) for x, kept in sides]
    if precision == "fp16" and all(e is None for e in powers):
        rebuild(op)
        return
    with op.location, ir.InsertionPoint(op):
        ops = TensorOps()
        for i, ((array, kept), e) in enumerate(zip(sides, powers, strict=True)):
            operand = op.operands[i]
            if array is not None and e is not None:
                operand = rescale.scaled(array, e, kept.dims, ops)
            op.operands[i] = narrowed(operand, ops)
    uses = list(op.result.uses)
    total: ir.Value = op.result
    with op.location, ir.InsertionPoint.after(op):
        ops = TensorOps()
        for (_, kept), e in zip(sides, powers, strict=True):
            if e is not None:
                total = rescale.scaled_back(total, e, kept, result, ops)
        if precision == "fp16":
            total = ops.cast(ops.cast(total, HALF), result.element)
    for use in uses:
        use.owner.operands[use.operand_number] = total


def exact_values(block: ir.Block) -> set[ir.Value]:
    """Sums of products of f16 in f32 of which only integers are made, which no rounding may change,
    and what these become on their way there by moves of elements."""
    exact = set[ir.Value]()
    for op in block.operations:
        product = op.name in ON_CUBE and is_f32(op.results[0]) and not is_f32(op.operands[0])
        moved = op.name in ELSEWHERE and op.operands[0] in exact
        if moved or (product and becomes_integers(op.results[0])):
            exact.update(op.results)
    return exact


def becomes_integers(value: ir.Value) -> bool:
    """Whether all that reads a value makes integers of it, some after its elements are moved."""
    return all(
        becomes_integers(user.results[0])
        if user.name in ELSEWHERE
        else user.name == "ascend.cast" and is_integer(tensor_of(user.results[0].type).element)
        for user in users_of(value.owner)
    )


def rebuild(op: Op) -> None:
    """Replaces `op` by itself on f16 values, with casts around it that cancel with others."""
    with op.location, ir.InsertionPoint(op):
        ops = TensorOps()
        inputs = [narrowed(v, ops) if is_f32(v) else v for v in op.operands]
        result = tensor_of(op.result.type)
        target = HALF if is_f32(op.result) else result.element
        kind = tensor_type(Tensor(result.shape, target))
        name = op.name.removeprefix("ascend.")
        attributes = {key: op.attributes[key] for key in op.attributes}
        if name == "cast" and inputs[0].type == kind:
            new = inputs[0]
        else:
            new = builder.op(op.name, inputs, [kind], **attributes).result
        if target != result.element:
            new = builder.op("ascend.cast", [new], [op.result.type]).result
    op.result.replace_all_uses_with(new)
    op.erase()


SCALINGS = frozenset({"ascend.mul", "ascend.div"})
"""Operations that may multiply by a number."""


def rounds_alike(op: Op) -> bool:
    """Whether an operation gives the same of rounded values as rounding gives of its result."""
    moves = op.name in MOVES or op.name == "ascend.broadcast"
    return moves or (op.name == POOL and attribute(op, "kind") in ("max", "min"))


def round_in_front(block: ir.Block) -> None:
    """Rounds what windows are taken the largest of, where these are only needed rounded: what makes
    it stores half as much, and the values are the same."""
    casts = [op.operation for op in block.operations if op.operation.name == "ascend.cast"]
    for rounded in casts:
        pool = defining_op(rounded.operands[0])
        if pool is None or pool.name != POOL or not rounds_alike(pool):
            continue
        narrow = tensor_of(rounded.result.type).element == HALF
        if narrow and is_f32(pool.operands[0]) and read_once(pool.result):
            rebuild(pool)
            wide = owner_of(rounded.operands[0])
            rounded.result.replace_all_uses_with(wide.operands[0])
            for cast in (rounded, wide):
                cast.erase()


def narrowed(value: ir.Value, ops: TensorOps) -> ir.Value:
    """`value` as f16: the cast goes in front of operations that only move data."""
    owner = defining_op(value)
    if owner is None or not owner.name.startswith("ascend."):
        return ops.cast(value, HALF)
    if owner.name in CONSTANTS:
        # Left to ascend-fold-constants, which counts what leaves the range of f16.
        narrow = tensor_type(Tensor(tensor_of(value.type).shape, HALF))
        return builder.op("ascend.cast", [value], [narrow]).result
    if owner.name == "ascend.cast" and tensor_of(owner.operands[0].type).element == HALF:
        return owner.operands[0]
    computed = not any(map(definition, owner.operands))
    if rounds_alike(owner) and computed and goes_in_front(owner):
        sources = [narrowed(operand, ops) for operand in owner.operands]
        result = Tensor(tensor_of(value.type).shape, HALF)
        attributes = {key: owner.attributes[key] for key in owner.attributes}
        with owner.location:
            return ops.emit(owner.name.removeprefix("ascend."), sources, result, **attributes)
    return ops.cast(value, HALF)


def goes_in_front(move: Op) -> bool:
    """Whether a cast in front of an operation that moves data is no dearer than one behind it.

    It is not if nobody else needs the wide values, and what slices leave out is not much.
    """
    if move.name == "ascend.reshape":
        # A product alone rounds an argument on its way; what makes other values rounds them.
        alone = read_once(move.operands[0]) and read_once(move.results[0])
        return not alone or defining_op(move.operands[0]) is not None
    if move.name == "ascend.slice":
        source = move.operands[0]
        users = readers_of(source)
        sliced = sum(tensor_of(u.results[0].type).count for u in users if u.name == move.name)
        if 2 * sliced < tensor_of(source.type).count:
            return False
    return narrows_all(move.results[0])


def narrows_all(value: ir.Value) -> bool:
    """Whether all uses of a value are products, whose operands become f16, directly or moved."""
    return all(
        user.name in ON_CUBE
        or (rounds_alike(user) and narrows_all(user.results[0]))
        or is_average(user)
        for user in readers_of(value)
    )


def is_average(op: Op) -> bool:
    """Whether an operation adds windows, and their sums are moved, scaled and then rounded to f16.

    Sums of f32 of rounded pixels are then as near as they are rounded themselves.
    """
    return op.name == POOL and attribute(op, "kind") == "add" and scaled_down(op.results[0])


def scaled_down(value: ir.Value) -> bool:
    """Whether all uses of a value scale it by numbers, move it or round it to f16 for products."""
    return all(
        scaled_down(user.results[0])
        if is_scaling(user) or user.name in MOVES
        else user.name in ON_CUBE
        for user in readers_of(value)
    )


def is_scaling(op: Op) -> bool:
    """Whether an operation multiplies by a number, or divides by one."""
    return op.name in SCALINGS and full_value(op.operands[1]) is not None
