"""stablehlo-select-branches: computes all branches of an `if` or `case` and selects the results.

before:
    %r = "stablehlo.if"(%p) ({ %a = stablehlo.add %x, %y .. stablehlo.return %a },
                             { stablehlo.return %x }) : (tensor<i1>) -> tensor<8xf32>
after:
    %a = stablehlo.add %x, %y
    %r = stablehlo.select %p, %a, %x : tensor<i1>, tensor<8xf32>

So the cube and the vector unit compute what the branches hold; a branch that stays is one kernel of
the scalar unit. A branch that holds a loop stays, since the loop may be long or not end; so does
all inside of a loop, which is one kernel of the scalar unit anyway. In the regions of other
operations, `reduce` for example, branches are on tensors of rank 0 and are all replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_scf.elements import inline

BRANCHES = ("stablehlo.case", "stablehlo.if")


@register_pass
@dataclass(frozen=True)
class StablehloSelectBranchesPass(Pass):
    """Compute all branches of an if or case and select the results."""

    NAME = "stablehlo-select-branches"
    ANCHOR = "func.func"

    def run(self, op: Op) -> None:
        for branching in operations(op, *BRANCHES):
            if not operations(branching, "stablehlo.while") and not inside_a_loop(branching):
                select_branches(branching)


def inside_a_loop(op: Op) -> bool:
    """Whether the nearest operation around `op`, but for branches, is a loop."""
    around = op.parent
    while around is not None and around.name in BRANCHES:
        around = around.parent
    return around is not None and around.name == "stablehlo.while"


def select_branches(op: Op) -> None:
    """Replaces `op`; an index that names no branch means the last one."""
    with op.location, ir.InsertionPoint(op):
        branches = [inline(region.blocks[0], []) for region in op.regions]
        if op.name == "stablehlo.if":
            conditions = [op.operands[0]]
        else:
            conditions = [equals(op.operands[0], i) for i in range(len(branches) - 1)]
        results = branches[-1]
        for condition, values in reversed(list(zip(conditions, branches, strict=False))):
            results = [select(condition, a, b) for a, b in zip(values, results, strict=True)]
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def equals(index: ir.Value, number: int) -> ir.Value:
    """Whether a tensor of rank 0 is a number."""
    return t.compare("EQ", index, t.full(index.type, number))


def select(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return a if a == b else builder.op("stablehlo.select", [condition, a, b], [a.type]).result
