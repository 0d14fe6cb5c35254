"""Elementwise operations: tile rules of the operator records, built on tiles in UB.

Booleans are 1.0 and 0.0 in f32 or f16 here, not bytes: comparisons leave and selections take them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from davinci.mlir import Op, arith, ir
from davinci.operators import OPERATORS, VectorProgram
from davinci.operators.comparison import chosen_of, holds
from davinci.operators.vector_program import DTYPE_OF, ELEMENTS, Operand, TileStep, Value
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import op as build
from davinci.passes.linalg_to_cce import lowering, refusal
from davinci.passes.linalg_to_cce.tiles import Number, Tensor, TileForm, UbTile, step_views
from davinci.passes.linalg_to_cce.translator import KernelTranslator

RECORDS = {
    "arith.addf": "add", "arith.addi": "add", "arith.subf": "sub", "arith.subi": "sub",
    "arith.mulf": "mul", "arith.muli": "mul", "arith.divf": "div", "arith.divsi": "div",
    "arith.remsi": "remainder", "arith.negf": "neg",
    "arith.maximumf": "max", "arith.maxnumf": "max", "arith.maxsi": "max",
    "arith.minimumf": "min", "arith.minnumf": "min", "arith.minsi": "min",
    "math.absf": "abs", "math.absi": "abs", "math.exp": "exp", "math.log": "log",
    "math.log1p": "log1p", "math.expm1": "expm1", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt",
    "math.tanh": "tanh", "math.erf": "erf", "math.sin": "sine", "math.cos": "cosine",
    "math.floor": "floor", "math.ceil": "ceil", "math.powf": "pow",
}  # fmt: skip
"""Operator records, by names of upstream operations."""

CASTS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.fptosi", "arith.extsi",
         "arith.trunci")  # fmt: skip
OF_FLAGS = {"arith.andi": "vmin", "arith.ori": "vmax"}
"""What operations on booleans are on 1.0 and 0.0."""

FLAGS_AS_NUMBERS = ("arith.extui", "arith.uitofp")

PREDICATES = {
    arith.CmpIPredicate: {"eq": "eq", "ne": "ne", "slt": "lt", "sle": "le", "sgt": "gt",
                          "sge": "ge"},
    arith.CmpFPredicate: {"OEQ": "eq", "UNE": "ne", "OLT": "lt", "OLE": "le", "OGT": "gt",
                          "OGE": "ge"},
}  # fmt: skip
"""Predicates of ours by those of upstream, signed and ordered."""

Rule = Callable[[VectorProgram, Sequence[Operand]], Value]


@lowering(*RECORDS, *CASTS)
def lower_record(translator: KernelTranslator, op: Op) -> None:
    record = OPERATORS[RECORDS.get(op.name, "cast")]
    element = element_of(op.results[0])
    if element not in ELEMENTS.values():
        raise refusal(op, f"{op.name} of {element}")

    def rule(program: VectorProgram, operands: Sequence[Operand]) -> Value:
        return record.tile(program, operands, {}, element)

    apply(translator, op, rule)


@lowering("arith.cmpf", "arith.cmpi")
def lower_comparison(translator: KernelTranslator, op: Op) -> None:
    kind = arith.CmpIPredicate if op.name == "arith.cmpi" else arith.CmpFPredicate
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    predicate = PREDICATES[kind].get(kind(number).name)
    if predicate is None:
        raise refusal(op, f"{op.name} {kind(number).name}")
    apply(translator, op, lambda p, operands: holds(p, predicate, *operands), flag=True)


@lowering(*OF_FLAGS)
def lower_flags(translator: KernelTranslator, op: Op) -> None:
    if element_of(op.results[0]) != "i1":
        raise refusal(op, f"{op.name} of {element_of(op.results[0])}")

    def rule(program: VectorProgram, operands: Sequence[Operand]) -> Value:
        kind = next(o.dtype for o in operands if isinstance(o, Value))
        a, b = (program.convert(o, kind) if isinstance(o, Value) else o for o in operands)
        return program.binary(OF_FLAGS[op.name], a, b)

    apply(translator, op, rule, flag=True)


@lowering(*FLAGS_AS_NUMBERS)
def lower_flag_as_number(translator: KernelTranslator, op: Op) -> None:
    dtype = DTYPE_OF.get(element_of(op.results[0]), "")
    if element_of(op.operands[0]) != "i1" or dtype not in ("f16", "f32", "s32"):
        raise refusal(op, f"{op.name} from {op.operands[0].type} to {op.results[0].type}")
    apply(translator, op, converted_to(dtype, "rint" if dtype == "s32" else "none"))


@lowering("arith.select")
def lower_selection(translator: KernelTranslator, op: Op) -> None:
    dtype = DTYPE_OF.get(element_of(op.results[0]), "")
    if dtype not in ("f16", "f32", "s32"):
        raise refusal(op, f"arith.select of {element_of(op.results[0])}")

    def rule(program: VectorProgram, operands: Sequence[Operand]) -> Value:
        flag, x, y = operands
        if not isinstance(flag, Value):
            return program.array(x if flag else y, dtype)
        if dtype == "s32":
            return chosen_of(program, program.convert(flag, "f16"), x, y)
        return program.select(program.convert(flag, dtype), x, y)

    apply(translator, op, rule)


def converted_to(dtype: str, rounding: str = "none") -> Rule:
    """The rule that converts its operand."""

    def rule(program: VectorProgram, operands: Sequence[Operand]) -> Value:
        (value,) = operands
        return program.convert(program.array(value, dtype), dtype, rounding)

    return rule


def element_of(value: ir.Value) -> str:
    """The element type of a tensor, or the type of a scalar."""
    kind = value.type
    return str(kind.element_type if isinstance(kind, ir.RankedTensorType) else kind)


def apply(translator: KernelTranslator, op: Op, rule: Rule, flag: bool = False) -> None:
    """Builds what a rule records for the operands of an operation.

    Args:
        flag: whether the result is of booleans.
    """
    given = [translator.tensor(value) for value in op.operands]
    try:
        result = computed(translator, given, rule)
    except (TileForm, TypeError) as error:
        raise refusal(op, f"{op.name} of {error}") from None
    translator.values[op.results[0]] = replace(result, flag=flag) if flag else result


def computed(translator: KernelTranslator, given: Sequence[Tensor], rule: Rule) -> UbTile:
    """The tile that a rule makes of tensors of one shape."""
    # Choices by masks of bits take less time on tiles of four repeats and more.
    program, tiles = VectorProgram(masks=True), dict[Value, UbTile]()
    operands: list[Operand] = []
    known = all(isinstance(tensor, Number) for tensor in given)
    for tensor in given:
        if isinstance(tensor, Number) and not known:
            operands.append(tensor.number)
            continue
        tile = translator.constant(tensor) if isinstance(tensor, Number) else tensor
        value = program.input(tile.dtype)
        tiles[value] = tile
        operands.append(value)
    result = rule(program, operands)
    program.output(result)
    program.drop_unused()
    shape = given[0].shape
    for value, number in program.constants.items():
        tiles[value] = translator.constant(Number(number, value.dtype, shape))
    for step in program.steps:
        tiles[step.result] = _built(step, tiles)
    return replace(tiles[result], flag=False)


def _built(step: TileStep, tiles: dict[Value, UbTile]) -> UbTile:
    """Builds one step; its result."""
    if step.accumulates or step.result.dtype not in ELEMENTS:
        raise TileForm(f"{step.name} of {step.result.dtype}")
    views = step_views([tiles[source] for source in step.sources], step.result.dtype)
    operands = list(views.operands)
    if step.scalar is not None:
        operands.insert(-1, scalar(step.result.dtype, step.scalar))
    build(f"cce.{step.name}", operands, **step.attributes)
    return views.result
