"""split-cores: a kernel of cube and vector work becomes a program for each kind of core.

before, as for a machine whose cores have both units:
    func.func @mm_relu(%a, %b, %out) {
      ...
      "cce.mad"(%l0a, %l0b, %l0c, %true)
      "cce.copy_l0c"(%l0c, %ub)
      "cce.vrelu"(%ub, %ub)
      "cce.copy"(%ub, %out)
    }
after:
    func.func @mm_relu(%a, %b, %out, %ring) attributes {ascend.core = "aic"} {
      ...
      "cce.mad"(%l0a, %l0b, %l0c, %true)
      "cce.fixpipe"(%l0c, %place)
      "cce.set_core_flag"() {flag = 1, pipe = "FIX"}
    }
    func.func @mm_relu_vector(%a, %b, %out, %ring) attributes {ascend.core = "aiv"} {
      "cce.wait_core_flag"() {flag = 1}
      "cce.copy"(%half_of_place, %half_of_ub)
      "cce.vrelu"(%half_of_ub, %half_of_ub)
      "cce.copy"(%half_of_ub, %half_of_out)
    }

Operations go to the kind of core that has the memories of their operands. What the scalar unit does
is in both programs, but for what only the other one needs. Where tiles cross between the units,
`copy_l0c` and `copy_l1`, they go through a ring in global memory, an argument that each launch has
memory for (`crossings`), with flags and back-pressure (`core_rings`). The two vector cores do half
of each operation (`row_halves`). Where work cannot be shared so, the first one does all, the other
one only takes part in flags, and the attribute `ascend.unshared` of the vector program says why.

Both programs come to all crossings in the order of the text, as their loops are those of the text;
so they never wait for each other in a circle (`core_rings`), and what follows leaves that order as
it is: nothing is moved across a flag. `check-meetings` proves it of the machine's program.

A kernel of cube work alone becomes one for cube cores. Kernels that name their kind of core,
`ascend.core`, are left alone, and so is everything on machines whose cores have both units. Needs
kernels without flags, barriers and meetings: `insert-sync` comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce.effects import MEETINGS, SYNC_OPS, effects_of
from davinci.machine import CUBE_CORE, VECTOR_CORE, Machine
from davinci.mlir import (
    Op,
    callee_of,
    ir,
    operations,
    root_of,
    run_unverified,
    symbol_name,
)
from davinci.passes.analysis.kernels import (
    BLOCKS,
    CORE,
    UNIT,
    kernels,
    launched_programs,
)
from davinci.passes.analysis.lifetimes import viewed_buffer
from davinci.passes.cce.crossings import crossing_ops, crossings_of
from davinci.passes.cce.unit_programs import (
    ProgramRings,
    SharedVectorWork,
    build_cube,
    copy_into,
    memories_of,
    works_of,
)
from davinci.passes.pipeline.base import Pass, fail, option, register_pass
from davinci.passes.programs import vector_program

BY_HAND = (*SYNC_OPS, *MEETINGS, "cce.set_core_flag", "cce.wait_core_flag")
CLEAN_UP = "func.func(canonicalize,cse)"


@register_pass
@dataclass(frozen=True)
class SplitCoresPass(Pass):
    """Make a program for cube cores and one for vector cores of a kernel that has work for both."""

    NAME = "split-cores"

    machine: str = option("ascend910", "machine file that says what each kind of core has")
    depth: int = option(2, "tiles that one kind of core may be ahead of the other")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        if not machine.split:
            return
        for kernel in kernels(op):
            if CORE in kernel.attributes:
                continue
            cube, vector = (works_of(kernel, machine, kind) for kind in (CUBE_CORE, VECTOR_CORE))
            if cube and vector:
                KernelSplit(kernel, machine, self.depth).run()
            elif cube:
                kernel.attributes[CORE] = ir.StringAttr.get("aic")


@dataclass
class KernelSplit:
    """Makes two programs of a kernel.

    Attributes:
        depth: places of rings.
    """

    kernel: Op
    machine: Machine
    depth: int

    def run(self) -> None:
        """Raises `CompileError` where that cannot be done."""
        self._check()
        ops = crossing_ops(self.kernel)
        limits = self.machine.cross_core
        assert limits is not None, "split machines have flags between cores"
        crossings = crossings_of(ops, self.depth, limits.flag_ids)
        blocks, before = self._blocks(), len(self.kernel.regions[0].blocks[0].arguments)
        vector = vector_program(self.kernel, [crossing.array(blocks) for crossing in crossings])
        marks = {UNIT: "cube", CORE: "aic"}
        for key, value in marks.items():
            self.kernel.attributes[key] = ir.StringAttr.get(value)
        if BLOCKS in self.kernel.attributes:
            vector.attributes[BLOCKS] = self.kernel.attributes[BLOCKS]
        _copy_body(self.kernel, vector)
        rings = [
            ProgramRings(crossings, list(program.regions[0].blocks[0].arguments)[before:])
            for program in (self.kernel, vector)
        ]
        build_cube(self.kernel, rings[0], works_of(self.kernel, self.machine, VECTOR_CORE))
        SharedVectorWork(vector, rings[1], self.machine).build()
        for program in (self.kernel, vector):
            run_unverified(program, CLEAN_UP)
        self._check_programs(vector, before)

    def _blocks(self) -> int:
        """The most blocks of a launch of the kernel."""
        root, name = root_of(self.kernel), symbol_name(self.kernel)
        declared = {key for key, found in launched_programs(root).items() if name in found}
        calls = [c for c in operations(root, "func.call") if callee_of(c) in declared]
        counts = [attribute(call, BLOCKS, 1) for call in calls]
        return max(counts, default=self.machine.cores)

    def _check(self) -> None:
        """Refuses depths that flags cannot count, kernels with flags of their own, and work of both
        units between which no tile crosses."""
        limits = self.machine.cross_core
        assert limits is not None, "split machines have flags between cores"
        if not 1 <= self.depth <= limits.depth:
            fail(
                self.kernel,
                "cannot have rings between its cores",
                found=f"{self.depth} places",
                expected=f"1..{limits.depth}, what a flag between cores counts to",
            )
        for op in operations(self.kernel, *BY_HAND)[:1]:
            fail(
                op,
                "is in a kernel that is to become a program for each kind of core",
                hint="leave synchronisation to insert-sync, or write both programs, each with "
                "ascend.core",
            )

    def _check_programs(self, vector: Op, arguments: int) -> None:
        """Refuses programs that need what only cores of the other kind have, or that exchange data
        otherwise than by crossings."""
        for program, other in ((self.kernel, VECTOR_CORE), (vector, CUBE_CORE)):
            for op in works_of(program, self.machine, other)[:1]:
                fail(
                    op,
                    f"is needed by the {'cube' if other == VECTOR_CORE else 'vector'} cores",
                    found=f"an access to {', '.join(sorted(memories_of(op)))}",
                    expected="numbers that both kinds of cores know: constants, block numbers, "
                    "variables of loops, loads from global memory",
                    hint="have what follows from it done by the same unit",
                )
        require_no_exchange(self.kernel, vector, arguments)


def _copy_body(source: Op, target: Op) -> None:
    """Copies the operations of a function into another one that has the same arguments."""
    block, other = (function.regions[0].blocks[0] for function in (source, target))
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, other.arguments, strict=True))
    copy_into([view.operation for view in block.operations], other, values)


def require_no_exchange(cube: Op, vector: Op, arguments: int) -> None:
    """Refuses arrays in global memory that one program writes and the other accesses: no flag would
    order that.

    Args:
        arguments: how many the kernel had; those behind them are rings.
    """
    for own, other in ((cube, vector), (vector, cube)):
        touched = {number for number, _, _ in _global_accesses(other)}
        for number, op, writes in _global_accesses(own):
            if writes and number in touched and number < arguments:
                fail(
                    op,
                    "writes an array in global memory that the other kind of core accesses",
                    found=f"argument {number}",
                    expected="tiles that cross by cce.copy_l0c or cce.copy_l1",
                    hint="keep what the other unit needs on the chip, or write two kernels",
                )


def _global_accesses(program: Op) -> Iterator[tuple[int, Op, bool]]:
    """Accesses to arguments of a program: the number, the operation, and whether it writes."""
    for op in operations(program):
        effects = effects_of(op)
        if effects is None:
            continue
        for value in (*effects.reads, *effects.writes):
            array = viewed_buffer(value)
            if isinstance(array.owner, ir.Block):
                yield ir.BlockArgument(array).arg_number, op, value in effects.writes
