"""ascend-fuse: makes kernels of groups of operators.

before:
    %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<64x512xf32>) -> ..
    %b = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<64xf32>) -> tensor<64x512xf32>
    %y = "ascend.sub"(%x, %b) : (...) -> tensor<64x512xf32>
after:
    %y = call @reduce_sub_f32_64x512(%x) : (tensor<64x512xf32>) -> tensor<64x512xf32>
    func.func private @reduce_sub_f32_64x512(tensor<64x512xf32>) -> tensor<64x512xf32>
    module @kernels {
      func.func @reduce_sub_f32_64x512(%a: memref<64x512xf32>, %r: memref<64x512xf32>)
          attributes {ascend.kernel, ascend.op = "reduce_sub", ascend.unit = "vector", ..} {
        %x = bufferization.to_tensor %a restrict : ..
        (the operators)
        bufferization.materialize_in_destination %y in restrict writable %r : ..
      }
    }

Products take elementwise operators that follow them (`product_grouping`). Other operators join the
group of what they read wherever the vector unit can compute both in one kernel
(`davinci.schedule.vector_schedule`), no cycle of kernels comes out and the estimate says that it
takes no longer. What only lives inside a group never sees GM. An operator alone is a group of one.
Broadcasts, reshapes and slices are made anew for each of their users, so that they end in the group
that needs them. Equal groups are one kernel. Operators that no group can hold stay as they are.

Groups that do not wait for each other share a launch, side by side on different cores
(`davinci.schedule.side_by_side`), where that takes no longer than one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci import machine as machines
from davinci.machine import Machine
from davinci.mlir import func, ir
from davinci.operators import OPERATORS
from davinci.passes import builder
from davinci.passes.analysis.group_graph import CONVERSION, graph_of
from davinci.passes.ascend.group_names import facts_of_group, parts_of, shortened
from davinci.passes.ascend.kernel_outline import (
    kernels_module,
    memref_of,
    symbols,
    unique,
)
from davinci.passes.ascend.product_grouping import outputs_of, product_groups
from davinci.passes.ascend.tensor_ops import PRODUCTS, defining_op, merge_equal, tensor_functions
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import FUSION
from davinci.schedule.graph import Graph
from davinci.schedule.side_by_side import cycles_of
from davinci.schedule.space import MOVES, NoSpace
from davinci.schedule.vector_schedule import estimate

FREE = frozenset({"ascend.broadcast", "ascend.reshape", "ascend.slice"})
"""Operators that cost nothing inside a group: a slice of what lies in GM is a window of it."""


@register_pass
@dataclass(frozen=True)
class AscendFusePass(Pass):
    """Make kernels of groups of operators."""

    NAME = "ascend-fuse"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")
    fusion: str = option("all", "which operators share a kernel", FUSION)

    def run(self, op: Any) -> None:
        machine = machines.load(self.machine)
        if machine.split:
            return
        cores = self.cores or machine.cores
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            sink(block)
            outliner = Outliner(op)
            if self.fusion == "all":
                for ops in product_groups(block):
                    outliner.outline(Group(ops))
            # This also brings what was moved into an order in which it can run.
            groups = Grouping(block, Judge(machine, cores), self.fusion == "all").groups()
            for group in groups:
                outliner.outline(group)
            merge_equal(block)


def sink(block: Any) -> None:
    """Gives each user of a free operator one of its own, right in front of it."""
    for op in reversed([o.operation for o in block.operations]):
        if op.name not in FREE:
            continue
        uses = [(use.owner.operation, use.operand_number) for use in op.result.uses]
        for user, number in uses[1:]:
            with ir.InsertionPoint(user):
                user.operands[number] = op.clone().operation.results[0]


@dataclass(eq=False)
class Group:
    """Operators that become one kernel.

    Attributes:
        ops: in their order in the block.
    """

    ops: list[Any]


class Judge:
    """Says what a group costs; equal groups are weighed once."""

    def __init__(self, machine: Machine, cores: int) -> None:
        self._machine, self._cores = machine, cores
        self.launch = int(machine.launch.overhead_us * machine.clock_mhz)
        self._known: dict[Any, int | None] = {}

    def cycles(self, graph: Graph, growing: bool) -> int | None:
        """Estimated cycles with those of a launch, None if no kernel can hold the group.

        Args:
            growing: whether more operators may join it.
        """
        key = (key_of(graph), growing)
        if key not in self._known:
            self._known[key] = self._weigh(graph, growing)
        return self._known[key]

    def _weigh(self, graph: Graph, growing: bool) -> int | None:
        try:
            if growing:
                return estimate(graph, self._machine, self._cores) + self.launch
            return cycles_of(graph, self._machine, self._cores) + self.launch
        except NoSpace:
            return None


def key_of(graph: Graph) -> Any:
    """Equal for equal graphs."""
    nodes = tuple(
        (n.name, n.operands, n.result, repr(sorted(n.attributes.items()))) for n in graph.nodes
    )
    windows = tuple(graph.windows.items())
    return nodes, tuple(graph.arrays), tuple(graph.inputs), tuple(graph.outputs), windows


class Grouping:
    """Finds the groups of a block."""

    def __init__(self, block: Any, judge: Judge, fuse: bool) -> None:
        self._judge, self._fuse = judge, fuse
        self._growing = True
        self._place: dict[Any, int] = {}
        self._group: dict[Any, Group] = {}
        self._ops = [op.operation for op in block.operations]
        for place, op in enumerate(self._ops):
            self._place[op] = place

    def groups(self) -> list[Group]:
        """The groups that become kernels, in an order in which they can run."""
        for op in self._ops:
            self._group[op] = Group([op])
            if is_candidate(op):
                self._join(op)
        self._growing = False
        for group in dict.fromkeys(self._group.values()):
            if len(group.ops) > 1 and not self._holds(self._trimmed(group)):
                self._part(group)
        if self._fuse:
            self._side_by_side()
        found = [g for g in self._ordered() if is_candidate(g.ops[-1])]
        kept = [g for g in found if any(op.name not in FREE for op in g.ops) or self._needs(g)]
        return [g for g in map(self._trimmed, kept) if g.ops and self._holds(g)]

    def _holds(self, group: Group) -> bool:
        return not group.ops or self._cycles(group.ops) is not None

    def _part(self, group: Group) -> None:
        """Groups anew what turned out to be no kernel, now without hope that more joins."""
        for op in group.ops:
            self._group[op] = Group([op])
        for op in group.ops:
            self._join(op)

    def _side_by_side(self) -> None:
        """Joins groups that wait for equally many others, and so not for each other, where one
        launch of all takes no more time."""
        levels: dict[int, list[Group]] = {}
        for group, level in self._levels().items():
            alone = self._trimmed(group)
            if any(op.name not in FREE for op in alone.ops) and self._holds(alone):
                levels.setdefault(level, []).append(group)
        for groups in levels.values():
            joined = groups[0]
            for group in groups[1:]:
                ops = sorted((*joined.ops, *group.ops), key=self._place.__getitem__)
                cycles = self._cycles(self._trimmed(Group(ops)).ops)
                apart = [self._cycles(self._trimmed(g).ops) for g in (joined, group)]
                if cycles is None or cycles > sum(c or 0 for c in apart):
                    joined = group
                    continue
                joined = Group(ops)
                for op in ops:
                    self._group[op] = joined

    def _levels(self) -> dict[Group, int]:
        """How many groups, one after the other, are before each candidate group."""
        level: dict[Group, int] = {}
        for group in self._in_order():
            read = (defining_op(value) for op in group.ops for value in op.operands)
            before = {self._group[op] for op in read if op is not None} - {group}
            level[group] = max((level[g] for g in before), default=-1) + 1
        return {g: n for g, n in level.items() if is_candidate(g.ops[0])}

    def _ordered(self) -> list[Group]:
        """All groups, each after those it reads; moves their operators into that order."""
        found = self._in_order()
        end = self._ops[-1]
        for group in found:
            for op in group.ops:
                if op is not end:
                    op.move_before(end)
        return found

    def _in_order(self) -> list[Group]:
        """All groups, each after those it reads."""
        found: dict[Group, None] = {}
        for op in self._ops:
            stack = [self._group[op]]
            while stack:
                group = stack[-1]
                read = [
                    self._group[producer]
                    for member in group.ops
                    for value in member.operands
                    if (producer := defining_op(value)) is not None
                ]
                waiting = [g for g in dict.fromkeys(read) if g is not group and g not in found]
                if waiting:
                    stack += waiting
                else:
                    found[stack.pop()] = None
        return list(found)

    def _needs(self, group: Group) -> bool:
        return any(op.name == "ascend.broadcast" for op in group.ops)

    def _trimmed(self, group: Group) -> Group:
        """Without reshapes at its ends, which are views."""
        ops = set(group.ops)
        changed = True
        while changed:
            changed = False
            for op in list(ops):
                if op.name != "ascend.reshape":
                    continue
                users = [use.owner.operation for use in op.result.uses]
                producer = defining_op(op.operands[0])
                if producer not in ops or not any(user in ops for user in users):
                    ops.discard(op)
                    changed = True
        return Group([op for op in group.ops if op in ops])

    def _join(self, op: Any) -> None:
        """Lets an operator join the groups of what it reads, where that pays."""
        if op.name in FREE:
            return
        for value in op.operands:
            chain, producer = self._chain(value)
            if producer is not None and self._fuse and self._try(op, chain, [producer]):
                continue
            if chain:
                self._try(op, chain, [])

    def _chain(self, value: Any) -> tuple[list[Any], Any]:
        """The free operators that lead to a value, and the candidate that they begin with."""
        chain: list[Any] = []
        producer = defining_op(value)
        while (
            producer is not None and producer.name in FREE and len(self._group[producer].ops) == 1
        ):
            chain.append(producer)
            if producer.name == "ascend.slice":  # which reads GM
                return chain, None
            producer = defining_op(producer.operands[0])
        return chain, producer if producer is not None and is_candidate(producer) else None

    def _try(self, op: Any, chain: list[Any], producers: list[Any]) -> bool:
        """Joins an operator's group with operators in front of it, if one kernel can hold all of
        them in no more time."""
        own = self._group[op]
        others = [self._group[producer] for producer in producers]
        if own in others:
            others.remove(own)
        links = [self._group[link] for link in chain]
        members = [own, *links, *others]
        if any(self._between(other, members) for other in others):
            return False
        ops = sorted((o for g in members for o in g.ops), key=self._place.__getitem__)
        cycles = self._cycles(ops)
        apart = [c for g in (own, *others) if (c := self._cycles(g.ops)) is not None]
        if cycles is None or (others and len(apart) > 1 and cycles > sum(apart)):
            return False
        joined = Group(ops)
        for member in ops:
            self._group[member] = joined
        return True

    def _between(self, first: Group, members: list[Group]) -> bool:
        """Whether something outside all of `members` needs `first` and is needed by another."""
        begin = self._place[first.ops[0]]
        seen = {id(group) for group in members}
        stack = [group for group in members if group is not first]
        while stack:
            group = stack.pop()
            for op in group.ops:
                for value in op.operands:
                    producer = defining_op(value)
                    if producer is None:
                        continue
                    found = self._group[producer]
                    if found is first and id(group) not in {id(m) for m in members}:
                        return True
                    if id(found) in seen or self._place[found.ops[-1]] < begin:
                        continue
                    seen.add(id(found))
                    stack.append(found)
        return False

    def _cycles(self, ops: list[Any]) -> int | None:
        graph, _ = graph_of(ops, outputs_of(ops))
        return self._judge.cycles(graph, self._growing)


def is_candidate(op: Any) -> bool:
    """Whether a group may hold the operator."""
    name = op.name.removeprefix("ascend.")
    if not op.name.startswith("ascend.") or len(op.results) != 1:
        return False
    return name in MOVES or (name in OPERATORS and OPERATORS[name].elementwise)


class Outliner:
    """Makes kernels of groups and calls of them."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._symbols = dict(symbols(root))
        self._kernels: dict[str, Any] = {}
        self._known: dict[Any, str] = {}

    def outline(self, group: Group) -> None:
        outputs = outputs_of(group.ops)
        graph, inputs = graph_of(group.ops, outputs)
        last = group.ops[-1]
        location = ir.Location.fused([op.location for op in group.ops])
        # Two windows of one array have it in common.
        key = (key_of(graph), tuple(inputs.index(value) for value in inputs))
        if key not in self._known:
            self._known[key] = self._build(group, graph, inputs, outputs, location)
        types = [value.type for value in outputs]
        with ir.InsertionPoint(last), location:
            callee = ir.FlatSymbolRefAttr.get(self._known[key])
            call = builder.op("func.call", inputs, types, callee=callee)
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(group.ops):
            op.erase()

    def _build(
        self, group: Group, graph: Graph, inputs: list[Any], outputs: list[Any], location: Any
    ) -> str:
        """The kernel of a group and its declaration on tensors."""
        module = kernels_module(self._root)
        taken = {**self._symbols, **dict(symbols(module))}
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
            unit = "cube" if any(op.name in PRODUCTS for op in group.ops) else "vector"
            kernel.attributes["ascend.unit"] = ir.StringAttr.get(unit)
            facts_of_group(group.ops, inputs, outputs, parts).mark(kernel)
            block = kernel.add_entry_block([location] * len(types))
        arguments = list(block.arguments)
        with ir.InsertionPoint(block), location:
            held = [_tensor(a, v.type) for a, v in zip(arguments, inputs, strict=False)]
            values = dict(zip(inputs, held, strict=True))
            for op in group.ops:
                _clone(op, values)
            for value, argument in zip(outputs, arguments[len(inputs) :], strict=True):
                _store(values[value], argument)
            func.ReturnOp([])
        with ir.InsertionPoint(self._root.regions[0].blocks[0]), ir.Location.unknown():
            signature = ([v.type for v in inputs], [v.type for v in outputs])
            func.FuncOp(symbol, signature, visibility="private")
        self._symbols[symbol] = kernel.operation
        return symbol


def _tensor(argument: Any, kind: Any) -> Any:
    """The tensor that a GM buffer holds."""
    stored = ir.RankedTensorType.get(argument.type.shape, argument.type.element_type)
    made = builder.op("bufferization.to_tensor", [argument], [stored], restrict=True).result
    return made if stored == kind else builder.op(CONVERSION, [made], [kind]).result


def _clone(op: Any, values: dict[Any, Any]) -> None:
    operands = []
    for value in op.operands:
        if value not in values:  # a number, which each kernel has of its own
            values[value] = value.owner.clone().operation.results[0]
        operands.append(values[value])
    new = op.clone().operation
    for i, value in enumerate(operands):
        new.operands[i] = value
    values[op.result] = new.results[0]


def _store(value: Any, argument: Any) -> None:
    stored = ir.RankedTensorType.get(argument.type.shape, argument.type.element_type)
    if stored != value.type:
        value = builder.op(CONVERSION, [value], [stored]).result
    builder.op(
        "bufferization.materialize_in_destination",
        [value, argument],
        restrict=True,
        writable=True,
    )
