"""ascend-simplify-arithmetic: spells arithmetic in fewer or cheaper operators.

before:
    %0 = "ascend.sub"(%x, %mean) : (..)            mean, deviation, gain and bias are constants
    %1 = "ascend.div"(%0, %deviation) : (..)
    %2 = "ascend.mul"(%1, %gain) : (..)
    %3 = "ascend.add"(%2, %bias) : (..)
    %4 = "ascend.sqrt"(%v) : (..)
    %5 = "ascend.div"(%3, %4) : (..)
after:
    %0 = "ascend.mul"(%x, %a) : (..)               a = gain / deviation, b = bias - mean a
    %1 = "ascend.add"(%0, %b) : (..)
    %2 = "ascend.rsqrt"(%v) : (..)
    %3 = "ascend.mul"(%1, %2) : (..)

A quotient takes the vector unit four times as long as a product, and a power that is no root
about twenty instructions. Rules are tried on each operator until none applies
(`arithmetic_rules`); numbers are combined at compile time.

Rules that round otherwise leave alone what a rounding, a comparison or a conversion to integers
may read, behind whatever elementwise operators: there a difference in the last digit becomes one of
a whole step. So quantized layers keep their bytes. They need f32, and are not used with
`precision=fp32`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import Op, ir
from davinci.operators.tensors import is_float
from davinci.passes.analysis.origins import fuse
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.arithmetic_rules import RULES, ArithmeticRule, may_round
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    ON_CUBE,
    POOL,
    TensorOps,
    defining_op,
    erase_unused,
    readers_of,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS, REWRITES_HELP
from davinci.passes.pipeline.rewrites import chosen, expected

STEPS = frozenset(
    f"ascend.{name}"
    for name in ("compare", "round", "floor", "ceil", "sign", "quantize", "remainder")
)
"""Operators whose result jumps where the operand changes by its last digit."""

SUMS = (*ON_CUBE, POOL, "ascend.reduce")
"""Operators that no such digit is followed through: they round and add in their own way."""

MOST_SWEEPS = 32
"""How often all operators are looked at; chains of numbers are done in a few."""


@register_pass
@dataclass(frozen=True)
class AscendSimplifyArithmeticPass(Pass):
    """Spell arithmetic in fewer or cheaper operators."""

    NAME = "ascend-simplify-arithmetic"

    precision: str = option("mixed", "fp32 leaves out what rounds otherwise", PRECISIONS)
    rewrites: str = option("all", REWRITES_HELP, expected=expected)

    def run(self, op: Op) -> None:
        names = chosen(self.rewrites)
        rules = [
            rule
            for rule in RULES
            if rule.rewrite in names and not (rule.rounds and self.precision == "fp32")
        ]
        counts = Counter[str]()
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            for _ in range(MOST_SWEEPS):
                found = sweep(block, rules)
                if not found:
                    break
                counts += found
            erase_unused(block)
        for name, count in counts.items():
            note(op, name, count)


def sweep(block: ir.Block, rules: list[ArithmeticRule]) -> Counter[str]:
    """Tries all rules once on each operator of a block; how often each rewrite was done."""
    exact = needed_exactly(block) if any(rule.rounds for rule in rules) else set()
    by_operator: dict[str, list[ArithmeticRule]] = {}
    for rule in rules:
        by_operator.setdefault(rule.operator, []).append(rule)
    counts = Counter[str]()
    for operation in list(block.operations):
        op = operation.operation
        for rule in by_operator.get(op.name, ()):
            if rule.rounds and (op.results[0] in exact or not may_round(op)):
                continue
            if replaced(op, rule):
                counts[rule.rewrite] += 1
                break
    return counts


def replaced(op: Op, rule: ArithmeticRule) -> bool:
    """Replaces an operation by what a rule makes of it; whether the rule applies."""
    ops = TensorOps()
    with op.location, ir.InsertionPoint(op):
        made = rule.emit(op, ops)
    if made is None or made.type != op.results[0].type:
        for built in reversed(ops.built):
            built.erase()
        return False
    sources = [defining_op(value) for value in op.operands]
    absorbed = [x.location for x in sources if x is not None and x.name not in CONSTANTS]
    if absorbed and any(made == built.result for built in ops.built):
        fuse(made.owner, absorbed)
    op.results[0].replace_all_uses_with(made)
    drop(op)
    return True


def drop(op: Op) -> None:
    """Erases an operation that nobody reads, and what only it read. What it reads stands before
    it, so that a walk through the block has already passed that."""
    dead = [op]
    for reader in dead:
        for source in map(defining_op, reader.operands):
            if source is None or not source.name.startswith("ascend."):
                continue
            unread = all(user in dead for value in source.results for user in readers_of(value))
            if unread and source.operation not in dead:
                dead.append(source.operation)
    for found in dead:
        found.erase()


def needed_exactly(block: ir.Block) -> set[ir.Value]:
    """Values of which a step function may be taken later."""
    found: set[ir.Value] = set()
    for operation in reversed(list(block.operations)):
        op = operation.operation
        if op.name == "func.return" or op.name in CONSTANTS:
            continue
        follows = op.name not in SUMS and any(result in found for result in op.results)
        if follows or takes_steps(op):
            found.update(op.operands)
    return found


def takes_steps(op: Op) -> bool:
    """Whether an operation is a step function of its operands, or nothing is known of it."""
    if not op.name.startswith("ascend."):
        return True
    if op.name == "ascend.cast":
        return not is_float(tensor_of(op.results[0].type).element)
    return op.name in STEPS
