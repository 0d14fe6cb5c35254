"""Chains of reshapes and transposes as one: reshape to `shape`, transpose, reshape to the result.

reshape [1, 128, 768] -> [1, 128, 12, 64]
transpose (0, 2, 1, 3)                         shape [128, 12, 64], permutation (1, 0, 2)
reshape [1, 12, 128, 64] -> [12, 128, 64]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators.layouts import Factors, factors, normal, regrouped, steps
from davinci.operators.tensors import ND
from davinci.passes.ascend.tensor_ops import TensorOps, defining_op

REARRANGED = ("ascend.reshape", "ascend.transpose")


@dataclass(frozen=True)
class Rearrangement:
    """See the head of the module."""

    shape: tuple[int, ...]
    permutation: tuple[int, ...]

    def emit(self, source: ir.Value, result: Sequence[int], ops: TensorOps) -> ir.Value:
        """Builds it in rows, with no more operations than it takes."""
        split = ops.reshape(source, self.shape)
        return ops.reshape(ops.transpose(split, self.permutation), result)


def traces(value: ir.Value) -> list[tuple[ir.Value, Factors]]:
    """What `value` is a rearrangement of, itself first, and where its elements lie in rows there.

    A value is left out where a reshape of the chain cuts through what a transpose has taken apart.
    """
    chain: list[Op] = []
    source = value
    found = []
    while True:
        lies = traced(source, reversed(chain))
        if lies is not None:
            found.append((source, lies))
        owner = defining_op(source)
        if owner is None or owner.name not in REARRANGED:
            return found
        chain.append(owner)
        source = owner.operands[0]


def traced(source: ir.Value, chain: Iterable[Op]) -> Factors | None:
    """Where the elements of the last result of a chain of operations lie in rows of `source`."""
    rows = replace(tensor_of(source.type), layout=ND)
    found: Factors | None = factors(rows.shape, steps(rows))
    for op in chain:
        if found is None:
            return None
        if op.name == "ascend.transpose":
            found = [found[i] for i in attribute(op, "permutation")]
        else:
            found = regrouped(found, tensor_of(op.results[0].type).shape)
    return found


def rearrangement(found: Factors) -> Rearrangement:
    """The rearrangement that puts elements there; each factor is a dimension in between."""
    order = normal([factor for dimension in found for factor in dimension])
    split = sorted(order, key=lambda factor: -factor.stride)
    shape = tuple(factor.size for factor in split)
    return Rearrangement(shape, tuple(split.index(factor) for factor in order))
