"""ascend-outline-loops: loops whose states fit a core become kernels, others are repeated.

before:
    %r:2 = stablehlo.custom_call @ascend.loop(%h0, %gs, %r) {ascend.body = @loop_0}
    func.func @loop_0(%h, %g, %r) -> (%n, %n) attributes {ascend.loop, ascend.steps = 100, ..} {
      %p = "ascend.matmul"(%h, %r)   %s = "ascend.add"(%g, %p)   %n = "ascend.tanh"(%s) }
after:
    %f = .. %r, rounded and in fractals : tensor<16x16x16x16xf16>
    %r:2 = call @loop_tanh_0(%h0, %gs, %f)
    module @kernels { func.func @loop_tanh_0(..) attributes {ascend.kernel} {
      %r:2 = scf.for %t = 0 to 100 iter_args(%h = .., %ys = ..) {
        %g = tensor.extract_slice %gs[%t, 0, 0]  ..  %y = tensor.insert_slice %n into %ys[%t, 0, 0]
        scf.yield %n, %y } } }

States, and what they are multiplied by, stay on the core over all steps
(`davinci.schedule.loops.schedule`). Loops that do not wait for each other, as the two directions of
a layer, are side by side in one launch; so are loops of which one takes rows of the other step by
step, as layers one upon the other, with what lies between them (`loop_chains`), where that takes
less time. On a split machine a loop with products takes cube cores with the vector cores beside
them, and does not take rows of another. Where loops do not fit, or a step does what cores cannot,
the step is copied as often as it is done. Needs the functions that `stablehlo-outline-loops` made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import Op, func, ir, kernels_module, operations, symbol_name, symbols, unique
from davinci.passes import builder
from davinci.passes.analysis.kernels import PRODUCTS
from davinci.passes.analysis.loop_graph import loop_graph_of, loops_of
from davinci.passes.ascend import rescale
from davinci.passes.ascend.ascend_fold_constants import mark_foldable, value_of
from davinci.passes.ascend.loop_chains import (
    Chained,
    chained,
    chains_of,
    drop,
    put_in_place,
    with_rows_multiplied,
)
from davinci.passes.ascend.loop_outline import LoopCall, LoopOutliner, build_kernel, repeat
from davinci.passes.ascend.tensor_ops import defining_op, depends_on_constants, tensor_functions
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.schedule.loops.choice import cores_each, product_in_front, schedules_of
from davinci.schedule.loops.group import LoopGroup
from davinci.schedule.loops.schedule import LoopSchedule
from davinci.schedule.vector.space import NoSpace
from davinci.units import ceil_div

CALL, TARGET = "stablehlo.custom_call", "ascend.loop"


@register_pass
@dataclass(frozen=True)
class AscendOutlineLoopsPass(Pass):
    """Make kernels of loops whose states fit a core, repeat the steps of others."""

    NAME = "ascend-outline-loops"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")

    def run(self, op: Op) -> None:
        chip = machines.load(self.machine)
        outliner = LoopKernels(op, chip, self.cores or chip.cores)
        for function in tensor_functions(op):
            calls = operations(function, CALL)
            loops = [c for c in calls if attribute(c, "call_target_name") == TARGET]
            outliner.outline_all(loops)
        for _, function in symbols(op):
            if TARGET in function.attributes:
                function.erase()


class LoopKernels:
    """Makes kernels; equal ones are one.

    Args:
        cores: of the machine that a kernel may use.
    """

    def __init__(self, root: Op, machine: Machine, cores: int) -> None:
        self.root, self.machine, self.cores = root, machine, cores
        self.known: dict[str, str] = {}

    def outline_all(self, calls: Sequence[Op]) -> None:
        """Replaces the calls of loops; those that do not wait for each other share a launch, side
        by side on different cores, where that takes less time."""
        side_by_side: list[LoopOutliner] = []
        for call in self.without_chains(calls):
            loop = self.alone(self.read(call))
            if loop is None:
                continue
            if side_by_side and not self.pays_beside(loop, side_by_side):
                self.launch(side_by_side)
                side_by_side = []
            side_by_side.append(loop)
        if side_by_side:
            self.launch(side_by_side)

    def pays_beside(self, loop: LoopOutliner, others: Sequence[LoopOutliner]) -> bool:
        """Whether a loop takes less time beside others in their kernel than behind it; never if it
        waits for one of them, or for cores of another kind."""
        calls = [other.loop for other in others]
        if depends(loop.loop.call, {call.call for call in calls}):
            return False
        if self.seen_by([loop.loop]) != self.seen_by(calls[:1]):
            return False
        try:
            beside = self.cycles([*calls, loop.loop])
        except NoSpace:
            return False
        return beside < self.cycles(calls) + self.cycles([loop.loop])

    def seen_by(self, loops: Sequence[LoopCall]) -> tuple[Machine, int]:
        """The machine as the kernel of loops sees it, and the cores that it may have: those of one
        kind where no loop needs the cube."""
        if any(op.name in PRODUCTS for loop in loops for op in loop.ops):
            return self.machine, self.cores
        cores = machines.vector_cores_for(self.machine, self.cores)
        return machines.for_vector(self.machine), cores

    def without_chains(self, calls: Sequence[Op]) -> list[Op]:
        """The calls of loops but for those that hand rows on to each other in one kernel, which are
        replaced."""
        rest: list[Op] = []
        loops = [self.multiplying_rows(self.read(call)) for call in calls]
        for chain in chains_of(loops):
            rest += [loop.call for loop in self.without_parts(chain)]
        if not rest:
            return []
        # Those that were replaced are gone, so that nothing is compared with them.
        return [op.operation for op in rest[0].block.operations if op.operation in rest]

    def multiplying_rows(self, loop: LoopCall) -> LoopCall:
        """A loop that multiplies rows of an array in its step, where that takes less time than a
        kernel in front of it; the loop as it is where it does not."""
        new = None if self.machine.split else with_rows_multiplied(loop)
        if new is None:
            return loop
        try:
            (before,), (group,) = self.schedules([loop]), self.groups([new])
            (after,) = schedules_of([group], self.machine, self.cores)
            in_front = product_in_front(group, self.machine, before.units)
            if group.rows is None or after.cycles >= before.cycles + in_front:
                raise NoSpace("rows that take longer in a loop than in front of it")
        except NoSpace:
            drop(new)
            return loop
        put_in_place(new, loop)
        return new

    def without_parts(self, chain: list[LoopCall]) -> list[LoopCall]:
        """The loops of a chain that are none of a kernel of several: of all of them, or of half of
        them each, and so on, if their kernels fit and take less time than a kernel for each."""
        most = 1 if self.machine.split else len(chain)
        for parts in range(1, most):
            size = ceil_div(len(chain), parts)
            made: list[Chained] = []
            try:
                for first in range(0, len(chain), size):
                    made.append(chained(chain[first : first + size]))
                before = sum(self.cycles([loop]) for loop in chain)
                after = sum(self.cycles(part.loops) for part in made)
                if after >= before:
                    raise NoSpace("a chain of loops that takes longer than one after the other")
            except NoSpace:
                for part in made[::-1]:
                    part.undo()
                continue
            for part in made:
                part.finish()
                if part.several:
                    self.launch([LoopOutliner(loop) for loop in part.loops])
            return [loop for part in made if not part.several for loop in part.loops]
        return chain

    def cycles(self, loops: Sequence[LoopCall]) -> float:
        """Estimated cycles of the kernel of loops side by side, and of launching it.

        Raises:
            NoSpace: the cores cannot hold them.
        """
        made = self.schedules(loops)
        units = sum(schedule.units for schedule in made)
        return max(each.cycles for each in made) + self.seen_by(loops)[0].queued_cycles(units)

    def schedules(self, loops: Sequence[LoopCall]) -> list[LoopSchedule]:
        """The schedules of loops side by side.

        Raises:
            NoSpace: the cores cannot hold them.
        """
        groups, (machine, cores) = self.groups(loops), self.seen_by(loops)
        return schedules_of(groups, machine, cores_each(groups, machine, cores))

    def groups(self, loops: Sequence[LoopCall]) -> list[LoopGroup]:
        """Loops side by side as cores compute them.

        Raises:
            NoSpace: cores cannot.
        """
        for loop in loops:
            self.require_range(loop)
        kernel = build_kernel([LoopOutliner(loop) for loop in loops], kernels_module(self.root))
        try:
            return [loop_graph_of(kernel, around).group() for around in loops_of(kernel)]
        finally:
            kernel.erase()

    def alone(self, loop: LoopCall) -> LoopOutliner | None:
        """A loop that cores can hold; None if it is repeated."""
        try:
            self.schedules([loop])
            return LoopOutliner(loop)
        except NoSpace:
            repeat(loop)
            return None

    def launch(self, loops: Sequence[LoopOutliner]) -> None:
        """Replaces the calls of loops by that of one kernel, where the first of them is."""
        calls = [loop.loop.call for loop in loops]
        bring_together(calls)
        name = self.kernel(loops)
        last = calls[-1]
        with ir.Location.fused([call.location for call in calls]), ir.InsertionPoint(last):
            operands = []
            for loop in loops:
                operands += [loop.loop.call.operands[i] for i in loop.operands]
                operands += [loop.arranged(columns) for columns in loop.factors]
            types = [result.type for call in calls for result in call.results]
            callee = ir.FlatSymbolRefAttr.get(self.declared(name, operands, types))
            made = builder.op("func.call", operands, types, callee=callee)
        results = iter(made.results)
        for call in calls:
            for old in call.results:
                old.replace_all_uses_with(next(results))
            call.erase()

    def read(self, call: Op) -> LoopCall:
        name = str(ir.FlatSymbolRefAttr(call.attributes["ascend.body"]).value)
        function = dict(symbols(self.root))[name]
        steps = int(attribute(function, "ascend.steps"))
        roles, outputs = (
            tuple(str(ir.StringAttr(text).value) for text in function.attributes[key])
            for key in ("ascend.roles", "ascend.outputs")
        )
        return LoopCall(call, function, steps, roles, outputs)

    def require_range(self, loop: LoopCall) -> None:
        """Fails at a right factor that f16 does not hold: it needs a scale."""
        foldable = mark_foldable(loop.call.block)
        for op in loop.ops:
            if op.name != "ascend.matmul" or not isinstance(op.operands[1].owner, ir.Block):
                continue
            value = loop.call.operands[ir.BlockArgument(op.operands[1]).arg_number]
            array = value_of(value) if depends_on_constants(value, foldable) else None
            if array is not None and rescale.exponents(array, [1]) is not None:
                raise NoSpace("a factor beyond the range of f16")

    def kernel(self, loops: Sequence[LoopOutliner]) -> str:
        """The kernel of loops side by side, made now if there is no equal one."""
        kernels = kernels_module(self.root)
        taken = {**dict(symbols(self.root)), **dict(symbols(kernels))}
        kernel = build_kernel(loops, kernels)
        key = str(kernel)
        if key in self.known:
            kernel.erase()
            return self.known[key]
        kernel.attributes["sym_name"] = ir.StringAttr.get(unique(loops[0].name, taken))
        self.known[key] = symbol_name(kernel)
        return self.known[key]

    def declared(
        self, name: str, operands: list[ir.Value], types: list[ir.RankedTensorType]
    ) -> str:
        """The function that stands for a kernel in @main."""
        if name not in dict(symbols(self.root)):
            with ir.InsertionPoint(self.root.regions[0].blocks[0]), ir.Location.unknown():
                func.FuncOp(name, ([v.type for v in operands], types), visibility="private")
        return name


def depends(op: Op, sources: set[Op]) -> bool:
    """Whether an operation needs results of some of `sources`."""
    waiting, seen = [op], set()
    while waiting:
        for value in waiting.pop().operands:
            owner = defining_op(value)
            if owner is None or owner.operation in seen:
                continue
            if owner.operation in sources:
                return True
            seen.add(owner.operation)
            waiting.append(owner.operation)
    return False


def bring_together(calls: Sequence[Op]) -> None:
    """Moves what needs the results of calls, and stands in front of the last one, behind it."""
    if len(calls) == 1:
        return
    block, last = calls[0].block, calls[-1]
    found: set[Op] = set()
    place = last
    for op in [view.operation for view in block]:
        if op == last:
            break
        needs = (defining_op(value) for value in op.operands)
        if op in calls:
            continue
        if any(o is not None and (o.operation in calls or o.operation in found) for o in needs):
            found.add(op)
            op.move_after(place)
            place = op
