"""Kernels of which cube cores and the vector cores beside them make one part after the other, each
in a program of its own.

    cube cores      part 1    part 2    ..
    vector cores    part 1    part 2    ..

What the two hand to each other for a part lies in arrays in global memory, further arguments of
both programs; cores of a kind go on to the next part without waiting for the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from davinci.mlir import Op, func, ir
from davinci.passes.analysis.kernels import BLOCKS
from davinci.passes.builder import as_attribute
from davinci.passes.programs import vector_program

GmBuffers = Mapping[int, ir.Value]
"""Buffers in GM of a group's inputs and outputs, by number."""


class PairedPart(ABC):
    """What cube cores and the vector cores beside them do for a part of a kernel.

    Attributes:
        kinds: types of the arrays by which they hand something to each other.
    """

    kinds: Sequence[ir.Type]

    @abstractmethod
    def cube(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        """Builds what the cube cores do, with the arrays of `kinds`."""

    @abstractmethod
    def vector(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        """Builds what the vector cores do, with the arrays of `kinds`."""


def build_paired(parts: Sequence[PairedPart], gm: GmBuffers, kernel: Op, blocks: int) -> Op:
    """Builds both programs of a kernel; returns that of the vector cores.

    Args:
        gm: arguments of the kernel, which both programs have.
        blocks: with which the kernel is launched.
    """
    other = vector_program(kernel, [kind for part in parts for kind in part.kinds])
    own, block = (each.regions[0].blocks[0] for each in (kernel, other))
    theirs = {n: block.arguments[ir.BlockArgument(array).arg_number] for n, array in gm.items()}
    first = len(block.arguments) - sum(len(part.kinds) for part in parts)
    places = []
    for part in parts:
        places.append(slice(first, first + len(part.kinds)))
        first += len(part.kinds)
    for part, place in zip(parts, places, strict=True):
        part.cube(gm, list(own.arguments)[place])
    with ir.InsertionPoint(block):
        for part, place in zip(parts, places, strict=True):
            part.vector(theirs, list(block.arguments)[place])
        func.ReturnOp([])
    other.attributes[BLOCKS] = as_attribute(blocks)
    return other
