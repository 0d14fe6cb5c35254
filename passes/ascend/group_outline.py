"""Makes kernels of groups of operators, and calls of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from davinci.mlir import Op, func, ir, kernels_module, symbols, unique
from davinci.operators import OPERATORS
from davinci.passes import builder
from davinci.passes.analysis.group_graph import CONVERSION, graph_of
from davinci.passes.analysis.origins import numbered_location, origins, served
from davinci.passes.ascend.group_names import facts_of_group, parts_of, shortened
from davinci.passes.ascend.grouping import FusedGroup
from davinci.passes.ascend.image_parts import IMAGE_OUTPUTS, image_outputs
from davinci.passes.ascend.kernel_outline import memref_of
from davinci.passes.ascend.overwriting import OVERWRITES
from davinci.passes.ascend.product_grouping import outputs_of
from davinci.passes.ascend.tensor_ops import ON_CUBE, defining_op, users_of
from davinci.schedule.graph import Graph


class Kernels:
    """The module `@kernels` of a module, and the kernels of groups that are made in it.

    Equal groups are one kernel.
    """

    def __init__(self, root: Op) -> None:
        self._root = root
        self._taken = dict(symbols(root))
        self._known: dict[Hashable, str] = {}
        self._functions: dict[str, ir.Operation] = {}

    def kernel_of(
        self, ops: Sequence[Op], inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]
    ) -> str:
        """Name of the kernel of a group, made now if there is no equal one yet.

        Args:
            ops: its operators, in order.
            inputs: values that are buffers of the kernel; others are numbers that it has itself.
            outputs: results that others need.
        """
        graph, _ = graph_of(ops, outputs)
        # What could be a number may be a buffer.
        key = (graph.key(), tuple(str(value.type) for value in inputs))
        if key not in self._known:
            self._known[key] = self._build(ops, graph, inputs, outputs)
        return self._known[key]

    def function(self, name: str) -> ir.Operation:
        """The function of a kernel, by its name."""
        if name not in self._functions:
            self._functions = dict(symbols(kernels_module(self._root)))
        return self._functions[name]

    def with_types(self, name: str, changes: Mapping[int, ir.MemRefType]) -> str:
        """A kernel like another one, with some arguments of other memref types; itself without."""
        if not changes:
            return name
        key = name, tuple((number, str(kind)) for number, kind in sorted(changes.items()))
        if key not in self._known:
            kernel = self.function(name)
            with ir.InsertionPoint(kernel):
                made = kernel.clone().operation
            taken = {**self._taken, **dict(symbols(kernels_module(self._root)))}
            symbol = self._known[key] = unique(f"{name}_apart", taken)
            made.attributes["sym_name"] = ir.StringAttr.get(symbol)
            arguments = list(made.regions[0].blocks[0].arguments)
            for number, kind in changes.items():
                arguments[number].set_type(kind)
            types = ir.FunctionType.get([argument.type for argument in arguments], [])
            made.attributes["function_type"] = ir.TypeAttr.get(types)
            self._taken[symbol] = made
        return self._known[key]

    def _build(
        self,
        ops: Sequence[Op],
        graph: Graph,
        inputs: Sequence[ir.Value],
        outputs: Sequence[ir.Value],
    ) -> str:
        location = location_of(ops)
        module = kernels_module(self._root)
        taken = {**self._taken, **dict(symbols(module))}
        parts = parts_of(graph)
        op_name = "_".join(shortened(parts))
        shape = outputs[-1].type.shape
        sizes = "x".join(map(str, shape))
        symbol = unique(f"{op_name}_{outputs[-1].type.element_type}_{sizes}".rstrip("_"), taken)
        types = [memref_of(v.type) for v in (*inputs, *outputs)]
        with ir.InsertionPoint(module.regions[0].blocks[0]), location:
            kernel = func.FuncOp(symbol, (types, []))
            kernel.attributes["ascend.kernel"] = ir.UnitAttr.get()
            kernel.attributes["ascend.op"] = ir.StringAttr.get(op_name)
            unit = "cube" if any(op.name in ON_CUBE for op in ops) else "vector"
            kernel.attributes["ascend.unit"] = ir.StringAttr.get(unit)
            facts_of_group(ops, inputs, outputs, parts).mark(kernel)
            if pairs := overwritten(inputs, outputs):
                kernel.attributes[OVERWRITES] = builder.as_attribute(pairs)
            if apart := image_outputs(graph):
                kernel.attributes[IMAGE_OUTPUTS] = builder.as_attribute(apart)
            block = kernel.add_entry_block([location] * len(types))
        arguments = list(block.arguments)
        with ir.InsertionPoint(block), location:
            held = [tensor_in(a, v.type) for a, v in zip(arguments, inputs, strict=False)]
            values = dict(zip(inputs, held, strict=True))
            for op in ops:
                _clone(op, values)
            for value, argument in zip(outputs, arguments[len(inputs) :], strict=True):
                store(values[value], argument)
            func.ReturnOp([])
        self._taken[symbol] = kernel.operation
        return symbol


class GroupOutliner:
    """Makes kernels of groups and calls of them."""

    def __init__(self, root: Op) -> None:
        self._root = root
        self._kernels = Kernels(root)
        self._declared: set[str] = set()

    def outline(self, group: FusedGroup) -> None:
        """Replaces the operators of a group by one call of its kernel."""
        ops = depth_first(group.ops)
        outputs = outputs_of(ops)
        _, inputs = graph_of(ops, outputs)
        symbol = self._kernels.kernel_of(ops, inputs, outputs)
        types = [value.type for value in outputs]
        if symbol not in self._declared:
            self._declared.add(symbol)
            with ir.InsertionPoint(self._root.regions[0].blocks[0]), ir.Location.unknown():
                func.FuncOp(symbol, ([v.type for v in inputs], types), visibility="private")
        places = (named_location(op) for op in ops)
        members = [numbered_location(place, number) for number, place in enumerate(places)]
        with ir.InsertionPoint(group.ops[-1]), ir.Location.fused(members):
            callee = ir.FlatSymbolRefAttr.get(symbol)
            call = builder.op("func.call", inputs, types, callee=callee)
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(group.ops):
            op.erase()


def depth_first(ops: Sequence[Op]) -> list[Op]:
    """Operators behind what they read, each as late as that can be: an order that is the same for
    equal groups, whatever stands between their operators in the model."""
    inside, found = set(ops), dict[Op, None]()
    for end in ops:
        if any(user in inside for user in users_of(end)):
            continue
        stack = [end]
        while stack:
            read = map(defining_op, stack[-1].operands)
            waiting = next((op for op in read if op in inside and op not in found), None)
            if waiting is None:
                found[stack.pop()] = None
            else:
                stack.append(waiting)
    return list(found)


def named_location(op: Op) -> ir.Location:
    """The location of an operator; of one without a name that of what it serves, which nobody can
    see in its kernel."""
    if origins(op.location) or not (names := served(op)):
        return op.location
    return ir.Location.fused([ir.Location.name(name) for name in names])


def location_of(ops: Sequence[Op]) -> ir.Location:
    """The locations of operators as one."""
    return ir.Location.fused([op.location for op in ops])


def overwritten(inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]) -> list[list[int]]:
    """Numbers of the outputs, and of the inputs, of which operators overwrite a part."""
    found = []
    for number, value in enumerate(outputs):
        op = defining_op(value)
        if op is None:
            continue
        record = OPERATORS.get(op.name.removeprefix("ascend."))
        if record is not None and record.overwrites:
            found.append([number, list(inputs).index(op.operands[0])])
    return found


def tensor_in(argument: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
    """The tensor that a GM buffer holds."""
    stored = ir.RankedTensorType.get(argument.type.shape, argument.type.element_type)
    made = builder.op("bufferization.to_tensor", [argument], [stored], restrict=True).result
    return made if stored == kind else builder.op(CONVERSION, [made], [kind]).result


def _clone(op: Op, values: dict[ir.Value, ir.Value]) -> None:
    operands = []
    for value in op.operands:
        if value not in values:  # a number, which each kernel has of its own
            values[value] = value.owner.clone().operation.results[0]
        operands.append(values[value])
    new = op.clone().operation
    for i, value in enumerate(operands):
        new.operands[i] = value
    values[op.result] = new.results[0]
    new.location = named_location(op)


def store(value: ir.Value, argument: ir.Value) -> None:
    """Has a GM buffer hold a tensor."""
    stored = ir.RankedTensorType.get(argument.type.shape, argument.type.element_type)
    if stored != value.type:
        value = builder.op(CONVERSION, [value], [stored]).result
    builder.op(
        "bufferization.materialize_in_destination",
        [value, argument],
        restrict=True,
        writable=True,
    )
