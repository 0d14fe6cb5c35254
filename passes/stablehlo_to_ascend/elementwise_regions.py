"""Functions of scalars, made of elementwise operations, applied to tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci import elements
from davinci.elements import Array
from davinci.mlir import Op, func, ir, stablehlo
from davinci.passes.stablehlo_to_ascend import tensors as t

ELEMENTWISE = frozenset(
    [
        *("abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "convert", "cosine"),
        *("divide", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one"),
        *("logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "power"),
        *("remainder", "rsqrt", "select", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"),
    ]
)
"""Operations of a function that mean the same on tensors."""


def is_elementwise(region: ir.Region) -> bool:
    """Whether a function of scalars is made of elementwise operations and constants."""
    *inner, _ = (view.operation for view in region.blocks[0].operations)
    names = (op.name.removeprefix("stablehlo.") for op in inner)
    return all(name in ELEMENTWISE or name == "constant" for name in names)


def sole_operation(region: ir.Region) -> Op | None:
    """The operation that a function of two scalars is, on both of them in either order; None of
    other functions."""
    block = region.blocks[0]
    inner, arguments = [view.operation for view in block.operations], list(block.arguments)
    if len(inner) != 2 or list(inner[1].operands) != list(inner[0].results):
        return None
    return inner[0] if list(inner[0].operands) in (arguments, arguments[::-1]) else None


def overwrites(region: ir.Region) -> bool:
    """Whether the function of a scatter gives the updates, the latter half of its arguments."""
    block = region.blocks[0]
    inner, arguments = [view.operation for view in block.operations], list(block.arguments)
    return len(inner) == 1 and list(inner[0].operands) == arguments[len(arguments) // 2 :]


def is_constant(value: ir.Value) -> bool:
    return isinstance(value, ir.OpResult) and value.owner.name == "stablehlo.constant"


def evaluated(build: Callable[[], Sequence[ir.Value]], kinds: Sequence[ir.Type]) -> list[Array]:
    """The results of operations on known numbers, by StableHLO's interpreter.

    Args:
        build: builds them, from constants on.
        kinds: types of the results.
    """
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        block = func.FuncOp("main", ([], list(kinds))).add_entry_block()
    with ir.InsertionPoint(block):
        func.ReturnOp(build())
    return [elements.to_array(made).copy() for made in stablehlo.eval_module(module, [])]


def applied(region: ir.Region, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """What a function of scalars gives for the elements of tensors of one shape."""
    block, shape = region.blocks[0], arguments[0].type.shape
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))

    def value(scalar: ir.Value) -> ir.Value:
        if scalar not in values:  # a constant, or from outside of the function
            kind = ir.RankedTensorType.get(shape, scalar.type.element_type)
            made = scalar
            if is_constant(scalar):
                (made,) = scalar.owner.clone().operation.results
            values[scalar] = t.broadcast(made, kind, [])
        return values[scalar]

    *inner, end = (view.operation for view in block.operations)
    for op in inner:
        if is_constant(op.results[0]):
            continue
        kinds = [ir.RankedTensorType.get(shape, r.type.element_type) for r in op.results]
        made = ir.Operation.create(
            op.name,
            results=kinds,
            operands=[value(v) for v in op.operands],
            attributes={name: op.attributes[name] for name in op.attributes},
        )
        values.update(zip(op.results, made.results, strict=True))
    return [value(v) for v in end.operands]
