"""ascend-outline-loops: loops whose states fit a core become kernels, others are repeated.

before:
    %r:2 = stablehlo.custom_call @ascend.loop(%h0, %gs, %r) {ascend.body = @loop_0}
    func.func @loop_0(%h, %g, %r) -> (%n, %n) attributes {ascend.loop, ascend.steps = 100, ..} {
      %p = "ascend.matmul"(%h, %r)   %s = "ascend.add"(%g, %p)   %n = "ascend.tanh"(%s) }
after:
    %f = (cast, transpose) %r : tensor<16x16x16x16xf16>
    %r:2 = call @loop_tanh_0(%h0, %gs, %f)
    module @kernels { func.func @loop_tanh_0(..) attributes {ascend.kernel} {
      %r:2 = scf.for %t = 0 to 100 iter_args(%h = .., %ys = ..) {
        %g = tensor.extract_slice %gs[%t, 0, 0]  ..  %y = tensor.insert_slice %n into %ys[%t, 0, 0]
        scf.yield %n, %y } } }

States, and what they are multiplied by, stay on the core over all steps
(`davinci.schedule.loop_schedule`). Where they do not fit, or a step does what the core cannot, the
step is copied as often as it is done. Needs the functions that `stablehlo-outline-loops` made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import func, ir, operations, symbol_name
from davinci.passes import builder
from davinci.passes.analysis.loop_graph import loop_graph_of, loop_of
from davinci.passes.ascend import rescale
from davinci.passes.ascend.ascend_fold_constants import mark_foldable, value_of
from davinci.passes.ascend.kernel_outline import kernels_module, symbols, unique
from davinci.passes.ascend.loop_outline import LoopCall, LoopOutliner, repeat
from davinci.passes.ascend.tensor_ops import definition, tensor_functions
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.schedule.loop_schedule import schedule_of
from davinci.schedule.space import NoSpace

CALL, TARGET = "stablehlo.custom_call", "ascend.loop"


@register_pass
@dataclass(frozen=True)
class AscendOutlineLoopsPass(Pass):
    """Make kernels of loops whose states fit a core, repeat the steps of others."""

    NAME = "ascend-outline-loops"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")

    def run(self, op: Any) -> None:
        machine = machines.load(self.machine)
        outliner = Outliner(op, machine, self.cores or machine.cores)
        for function in tensor_functions(op):
            for call in operations(function, CALL):
                if attribute(call, "call_target_name") == TARGET:
                    outliner.outline(call)
        for _, function in symbols(op):
            if TARGET in function.attributes:
                function.erase()


class Outliner:
    """Makes kernels; equal ones are one."""

    def __init__(self, root: Any, machine: Machine, cores: int) -> None:
        self.root, self.machine, self.cores = root, machine, cores
        self.known: dict[str, str] = {}

    def outline(self, call: Any) -> None:
        """Replaces the call of a loop."""
        loop = self.read(call)
        try:
            if self.machine.split:
                raise NoSpace("a loop on cores of two kinds")
            self.require_range(loop)
            outliner = LoopOutliner(loop, kernels_module(self.root))
            name = self.kernel(outliner)
        except NoSpace:
            repeat(loop)
            return
        with call.location, ir.InsertionPoint(call):
            operands = [call.operands[i] for i in outliner.operands]
            operands += [outliner.arranged(columns) for columns in outliner.factors]
            types = [result.type for result in call.results]
            callee = ir.FlatSymbolRefAttr.get(self.declared(name, operands, types))
            made = builder.op("func.call", operands, types, callee=callee)
        for old, new in zip(call.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()

    def read(self, call: Any) -> LoopCall:
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
            known = value in foldable or definition(value) is not None
            array = value_of(value, foldable) if known else None
            if array is not None and rescale.exponents(array, [1]) is not None:
                raise NoSpace("a factor beyond the range of f16")

    def kernel(self, outliner: LoopOutliner) -> str:
        """The kernel of a loop, made now if there is no equal one."""
        taken = {**dict(symbols(self.root)), **dict(symbols(outliner.kernels))}
        name = unique(outliner.name, taken)
        kernel = outliner.build("")
        try:
            schedule_of(loop_graph_of(kernel, loop_of(kernel)).group(), self.machine, self.cores)
        except NoSpace:
            kernel.erase()
            raise
        key = str(kernel)
        if key in self.known:
            kernel.erase()
            return self.known[key]
        kernel.attributes["sym_name"] = ir.StringAttr.get(name)
        self.known[key] = symbol_name(kernel)
        return self.known[key]

    def declared(self, name: str, operands: list[Any], types: list[Any]) -> str:
        """The function that stands for a kernel in @main."""
        if name not in dict(symbols(self.root)):
            with ir.InsertionPoint(self.root.regions[0].blocks[0]), ir.Location.unknown():
                func.FuncOp(name, ([v.type for v in operands], types), visibility="private")
        return name
