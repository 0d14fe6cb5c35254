"""Makes a kernel of a loop whose step is a function on tensors, or repeats the step.

Right factors of products are brought into fractals, of f16, in front of the loop; where a step
takes parts of a product's columns, each part is a product of its own. Those that are known are
multiplied by what gates are computed of, and have what is added to their products (`loop_gates`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import element_type, tensor_of, tensor_type
from davinci.elements import scalar_attribute
from davinci.for_readers import for_readers
from davinci.mlir import Op, arith, func, ir, scf
from davinci.operators import Call, Tensor
from davinci.operators.work import OperatorWork, traffic
from davinci.passes import builder
from davinci.passes.analysis.group_graph import graph_of, number_of
from davinci.passes.ascend.group_names import parts_of, shortened
from davinci.passes.ascend.group_outline import store, tensor_in
from davinci.passes.ascend.kernel_facts import KernelFacts, facts_of
from davinci.passes.ascend.kernel_outline import memref_of
from davinci.passes.ascend.loop_factors import FactorPart, KnownOperands, gates_by_cube
from davinci.passes.ascend.tensor_ops import ON_CUBE, TensorOps
from davinci.schedule.graph import Node, Operand, Scalar, Window
from davinci.schedule.loops.cut import CutStep, LoopProduct, cut_step, left_factors, origin_of
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import row_major

SLICES = ("slice", "backwards")


@dataclass(frozen=True)
class LoopCall:
    """A loop in @main: the call, and the function of its step.

    Attributes:
        roles: of the operands: "state", "fixed", "slice" or "backwards".
        outputs: of the results behind the states: "slice" or "backwards".
        handed: the operand that is what another loop of the kernel computes, step by step.
    """

    call: Op
    function: Op
    steps: int
    roles: tuple[str, ...]
    outputs: tuple[str, ...]
    handed: int | None = None

    @property
    def block(self) -> ir.Block:
        found: ir.Block = self.function.regions[0].blocks[0]
        return found

    @property
    def ops(self) -> list[Op]:
        """The operators of a step, and the terminator."""
        return [view.operation for view in self.block.operations]

    @property
    def states(self) -> list[int]:
        """Places of the operands that are states."""
        return [i for i, role in enumerate(self.roles) if role == "state"]


def repeat(loop: LoopCall) -> None:
    """Replaces a loop by copies of its step."""
    call, states = loop.call, loop.states
    *ops, end = loop.ops
    with call.location, ir.InsertionPoint(call):
        emit = TensorOps()
        operands = list(call.operands)
        carried = [operands[i] for i in states]
        made: list[list[ir.Value]] = []
        for step in range(loop.steps):
            arguments: list[ir.Value] = list(loop.block.arguments)
            values = dict(zip((arguments[i] for i in states), carried, strict=True))
            for i, role in enumerate(loop.roles):
                argument = arguments[i]
                if role in SLICES:
                    place = loop.steps - 1 - step if role == "backwards" else step
                    values[argument] = part(operands[i], place, emit)
                elif role == "fixed":
                    values[argument] = operands[i]
            for op in ops:
                copy = op.clone()
                builder.replace_operands(copy.operation, values)
                values.update(zip(op.results, copy.operation.results, strict=True))
            found = [values.get(v, v) for v in end.operands]
            carried = found[: len(states)]
            made.append(found[len(states) :])
        arrays = []
        for number, role in enumerate(loop.outputs):
            parts = [step[number] for step in made]
            arrays.append(joined(parts[::-1] if role == "backwards" else parts, emit))
    for old, new in zip(call.results, [*carried, *arrays], strict=True):
        old.replace_all_uses_with(new)
    call.erase()


def part(value: ir.Value, place: int, emit: TensorOps) -> ir.Value:
    """value[place]."""
    found = tensor_of(value.type)
    zeros = [0] * (found.rank - 1)
    cut = emit.emit(
        "slice",
        [value],
        Tensor((1, *found.shape[1:]), found.element),
        starts=[place, *zeros],
        limits=[place + 1, *found.shape[1:]],
        strides=[1] * found.rank,
    )
    return emit.reshape(cut, found.shape[1:])


def joined(parts: Sequence[ir.Value], emit: TensorOps) -> ir.Value:
    """Values stacked along a new first dimension."""
    found = tensor_of(parts[0].type)
    rows = [emit.reshape(value, (1, *found.shape)) for value in parts]
    return emit.concat(rows, 0)


class LoopOutliner:
    """Makes the part of a kernel that is one loop.

    Attributes:
        factors: what is brought into fractals, in the order of the kernel's arguments.
    """

    def __init__(self, loop: LoopCall) -> None:
        self.loop = loop
        *ops, end = loop.ops
        if any(not op.name.startswith("ascend.") for op in ops):
            raise NoSpace("a step with scalar calls")
        self.operators = [op for op in ops if op.name != "ascend.full"]
        if any(number_of(value) is not None for value in end.operands):
            raise NoSpace("an output of a loop that is a number")
        self.graph, inputs = graph_of(self.operators, list(end.operands))
        arguments: list[ir.Value] = list(loop.block.arguments)
        if any(value not in arguments for value in inputs):
            raise NoSpace("a constant array in a loop")
        self.places = [arguments.index(value) for value in inputs]
        """Places of the graph's inputs among the operands of the loop."""
        self.step: CutStep = cut_step(self.graph)
        self.factors: dict[FactorPart, int] = {}
        self.made: dict[int, ir.Value] = {}

        right = {self.places[self.graph.inputs.index(p.b)] for p in self.step.products}
        known = KnownOperands(loop.call, loop.roles, self.places)
        gates = gates_by_cube(self.step, self._pieces(), self._of_rows(), known)
        right |= gates.spared
        self.step, self.pieces = gates.step, gates.pieces
        self.operands = [i for i in range(len(loop.roles)) if i not in right and i != loop.handed]
        for pieces in self.pieces.values():
            for _, columns in pieces:
                self.factors.setdefault(columns, len(self.factors))

    @property
    def inputs(self) -> list[ir.RankedTensorType]:
        """Types of what the kernel takes."""
        kinds = [self.loop.call.operands[i].type for i in self.operands]
        return [*kinds, *(columns.type for columns in self.factors)]

    @property
    def results(self) -> list[ir.RankedTensorType]:
        """Types of what it gives."""
        return [value.type for value in self.loop.call.results]

    def build(
        self,
        inputs: Sequence[ir.Value],
        outputs: Sequence[ir.Value],
        before: Mapping[ir.Value, ir.Value],
    ) -> list[ir.Value]:
        """The loop on tensors; what it gives.

        Args:
            outputs: tensors whose buffers the results go to.
            before: of results of the calls of loops in front of it, what these give.
        """
        loop = self.loop
        self.given = dict(zip(self.operands, inputs, strict=False))
        if loop.handed is not None:
            self.given[loop.handed] = before[loop.call.operands[loop.handed]]
        self.right = dict(zip(self.factors, inputs[len(self.operands) :], strict=True))
        starts = [self.given[i] for i in loop.states] + list(outputs[len(loop.states) :])
        first, last, each = (builder.constant_index(n) for n in (0, loop.steps, 1))
        around = scf.ForOp(first, last, each, starts)
        with ir.InsertionPoint(around.body):
            values = self._body(around.induction_variable, list(around.inner_iter_args))
            scf.YieldOp(values)
        return list(around.results)

    @property
    def name(self) -> str:
        """What reports call it."""
        return "_".join(("loop", *shortened(parts_of(self.graph))))

    @property
    @for_readers(lambda self: KernelFacts("loop", OperatorWork()))
    def facts(self) -> KernelFacts:
        loop = self.loop
        known = [
            (op, facts_of(op.name.removeprefix("ascend."), call_of(op.opview)))
            for op in self.operators
        ]
        macs, repeats = (
            loop.steps * sum(getattr(facts.work, count) for _, facts in known)
            for count in ("macs", "vector_repeats")
        )
        moved = Call(
            tuple(tensor_of(v.type) for i, v in enumerate(loop.call.operands) if i != loop.handed),
            tuple(tensor_of(v.type) for v in loop.call.results),
        )
        products = [facts.label for op, facts in known if op.name in ON_CUBE]
        names = shortened(parts_of(self.graph))
        others = " ".join(name for name in names if f"ascend.{name}" not in ON_CUBE)
        label = f"{loop.steps} steps: {', '.join(filter(None, [*products, others]))}"
        return KernelFacts(label, OperatorWork(macs, 16, repeats, *traffic(moved)))

    # Products.

    def _pieces(self) -> dict[int, list[tuple[int, FactorPart]]]:
        """For each value that is a factor of a product: which left factors and which columns of the
        right one are cut out of it."""
        step, graph = self.step, self.step.graph
        count, outputs = len(self.graph.inputs), len(self.graph.outputs)
        left = list(dict.fromkeys(product.a for product in step.products))
        found: dict[int, list[tuple[int, FactorPart]]] = {}
        for number, place in zip(graph.inputs, step.inputs, strict=True):
            if place < count:
                continue
            product = step.products[place - count]
            whole = self.graph.arrays[product.result].shape
            column = first_of(graph.windows.get(number), whole, graph.arrays[number].shape)
            found[number] = [
                (a, self._columns(product, row, rows, column, graph.arrays[number].shape[-1]))
                for a, row, rows in self._left(outputs + left.index(product.a), product)
            ]
        return found

    def _left(self, place: int, product: LoopProduct) -> list[tuple[int, int, int]]:
        """The left factor of a product in parts: number, first column and columns of each."""
        step, graph = self.step, self.step.graph
        whole = self.graph.arrays[product.a].shape
        numbers = [n for n, at in zip(graph.outputs, step.outputs, strict=True) if at == place]
        return [
            (n, first_of(graph.windows.get(n), whole, shape), shape[-1])
            for n in numbers
            for shape in [graph.arrays[n].shape]
        ]

    def _columns(
        self, product: LoopProduct, row: int, rows: int, column: int, columns: int
    ) -> FactorPart:
        operand = self.places[self.graph.inputs.index(product.b)]
        return FactorPart(operand, row, rows, column, columns)

    def _of_rows(self) -> set[int]:
        """The inputs that are products of rows which are nothing but left factors, in whole
        blocks."""
        rows, count = self._rows(), len(self.graph.inputs)
        places = zip(self.step.graph.inputs, self.step.inputs, strict=True)
        products = {n: self.step.products[at - count].a for n, at in places if at >= count}
        made = {node.result: node for node in self.graph.nodes}
        return {
            number
            for number, a in products.items()
            if origin_of(a, made) == rows and self.graph.arrays[a].shape[-1] % SIDE == 0
        }

    def _rows(self) -> int | None:
        """The input of the step that is rows which are nothing but left factors; None if there is
        none, or several."""
        operand = dict(zip(self.graph.inputs, self.places, strict=True))
        found = [n for n, i in operand.items() if i == self.loop.handed]
        if not found:
            slices = [n for n, i in operand.items() if self.loop.roles[i] in SLICES]
            found = sorted(left_factors(self.graph).intersection(slices))
        return found[0] if len(found) == 1 else None

    def arranged(self, columns: FactorPart) -> ir.Value:
        """A part of a right factor in fractals, built in front of the loop."""
        return columns.arranged(list(self.loop.call.operands))

    # The body.

    def _body(self, time: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        """Builds a step; what the loop yields."""
        loop, step, graph = self.loop, self.step, self.step.graph
        self.time, self.carried = time, carried
        self.slices: dict[int, ir.Value] = {}
        count = len(self.graph.inputs)
        for number, place in zip(graph.inputs, step.inputs, strict=True):
            if place < count:
                whole = self._argument(self.places[place])
                self.made[number] = self._window(number, whole, graph.windows.get(number))
        self.nodes = {node.result: node for node in graph.nodes}
        for node in graph.nodes:
            self._value(node.result)
        found: dict[int, ir.Value] = {}
        for number, place in zip(graph.outputs, step.outputs, strict=True):
            if place >= len(self.graph.outputs):
                continue
            if place in found or number in graph.windows:
                raise NoSpace("an output of a loop that is put together")
            found[place] = self._value(number)
        states = len(loop.states)
        values = [found[i] for i in range(states)]
        for i, role in enumerate(loop.outputs):
            values.append(self._insert(found[states + i], carried[states + i], role))
        return values

    def _argument(self, operand: int) -> ir.Value:
        """An operand of the loop as a step sees it."""
        role = self.loop.roles[operand]
        if role == "state":
            return self.carried[self.loop.states.index(operand)]
        if role == "fixed":
            return self.given[operand]
        if operand not in self.slices:
            whole = self.given[operand]
            kind = ir.RankedTensorType.get(whole.type.shape[1:], whole.type.element_type)
            given = [whole, self._place(role)]
            found = part_op("tensor.extract_slice", given, whole.type, kind)
            self.slices[operand] = found
        return self.slices[operand]

    def _insert(self, value: ir.Value, into: ir.Value, role: str) -> ir.Value:
        return part_op(
            "tensor.insert_slice", [value, into, self._place(role)], into.type, into.type
        )

    def _place(self, role: str) -> ir.Value:
        if role == "slice":
            return self.time
        last = builder.constant_index(self.loop.steps - 1)
        return arith.SubIOp(last, self.time).result

    def _window(self, number: int, whole: ir.Value, window: Window | None) -> ir.Value:
        """An input as an operator sees it: a part of an array."""
        if window is None:
            return whole
        of, array = tensor_of(whole.type), self.step.graph.arrays[number]
        pitches = row_major(of.shape)
        starts, rest = [], window.offset
        for pitch in pitches:
            starts.append(rest // pitch)
            rest %= pitch
        steps = [s // p for s, p in zip(window.strides, pitches, strict=True)]
        limits = [a + (n - 1) * s + 1 for a, n, s in zip(starts, array.shape, steps, strict=True)]
        kind = tensor_type(Tensor(array.shape, of.element))
        given = {"starts": starts, "limits": limits, "strides": steps}
        attributes = {key: builder.as_attribute(value) for key, value in given.items()}
        return builder.op("ascend.slice", [whole], [kind], **attributes).result

    def _value(self, number: int) -> ir.Value:
        """A value of the step; operators and products are built when they are asked for."""
        if number in self.nodes and number not in self.made:
            self._node(self.nodes[number])
        if number not in self.made:
            total: ir.Value | None = None
            for a, columns in self.pieces[number]:
                product = self._product(a, columns)
                total = (
                    product
                    if total is None
                    else builder.op("ascend.add", [total, product], [product.type]).result
                )
            assert total is not None, "a product has pieces"
            self.made[number] = total
        return self.made[number]

    def _product(self, a: int, columns: FactorPart) -> ir.Value:
        left = self._value(a)
        found = tensor_of(left.type)
        key = -1 - a
        if key not in self.made:
            half = tensor_type(replace(found, element="f16"))
            self.made[key] = builder.op("ascend.cast", [left], [half]).result
            if columns.ones:
                shape = (found.shape[0], columns.depth)
                self.made[key] = TensorOps().padded(self.made[key], shape, 1.0)
        kind = tensor_type(Tensor((found.shape[0], columns.columns), "f32"))
        operands = [self.made[key], self.right[columns]]
        return builder.op("ascend.matmul", operands, [kind], transpose_b=True).result

    def _node(self, node: Node) -> None:
        result = self.step.graph.arrays[node.result]
        operands = [self._operand(node, i, x, result) for i, x in enumerate(node.operands)]
        given = {name: builder.as_attribute(value) for name, value in node.attributes.items()}
        made = builder.op(f"ascend.{node.name}", operands, [tensor_type(result)], **given)
        self.made[node.result] = made.result

    def _operand(self, node: Node, index: int, operand: Operand, result: Tensor) -> ir.Value:
        if not isinstance(operand, Scalar):
            return self._value(operand)
        element = result.element
        if node.name == "compare":
            element = self.step.graph.arrays[node.values[0]].element
        elif node.name == "select" and index == 0:
            element = "i1"
        value = scalar_attribute(operand.value, element_type(element))
        kind = tensor_type(Tensor(result.shape, element))
        return builder.op("ascend.full", [], [kind], value=value).result


def build_kernel(loops: Sequence[LoopOutliner], kernels: Op) -> ir.Operation:
    """A kernel of loops side by side, in the module of kernels: inputs of all, then outputs.

    Raises:
        NoSpace: a step cannot be written down.
    """
    inputs = [kind for loop in loops for kind in loop.inputs]
    results = [kind for loop in loops for kind in loop.results]
    types = [memref_of(kind) for kind in (*inputs, *results)]
    location = ir.Location.fused([loop.loop.call.location for loop in loops])
    with ir.InsertionPoint(kernels.regions[0].blocks[0]), location:
        kernel = func.FuncOp("", (types, []))
        block = kernel.add_entry_block([location] * len(types))
    try:
        with ir.InsertionPoint(block), location:
            arguments = zip(block.arguments, (*inputs, *results), strict=True)
            held = [tensor_in(argument, kind) for argument, kind in arguments]
            taken, given = iter(held[: len(inputs)]), iter(held[len(inputs) :])
            made, before = list[ir.Value](), dict[ir.Value, ir.Value]()
            for loop in loops:
                own = list(islice(taken, len(loop.inputs)))
                values = loop.build(own, list(islice(given, len(loop.results))), before)
                before.update(zip(loop.loop.call.results, values, strict=True))
                made += values
            for value, argument in zip(made, block.arguments[len(inputs) :], strict=True):
                store(value, argument)
            func.ReturnOp([])
    except NoSpace:
        kernel.operation.erase()
        raise
    kernel.attributes["ascend.kernel"] = ir.UnitAttr.get()
    kernel.attributes["ascend.op"] = ir.StringAttr.get(loops[0].name)
    unit = "cube" if any(loop.pieces for loop in loops) else "vector"
    kernel.attributes["ascend.unit"] = ir.StringAttr.get(unit)
    facts_of_loops(loops).mark(kernel)
    return kernel.operation


def facts_of_loops(loops: Sequence[LoopOutliner]) -> KernelFacts:
    """The work of all loops of a kernel together, and a label for them."""
    known = [loop.facts for loop in loops]
    names = ("macs", "vector_repeats", "read_bytes", "write_bytes")
    total = {name: sum(getattr(facts.work, name) for facts in known) for name in names}
    label = known[0].label if len(loops) == 1 else f"{len(loops)} times {known[0].label}"
    return KernelFacts(label, OperatorWork(factor_bits=16, **total))


def first_of(window: Window | None, whole: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """The first column of a part of a matrix that has all of its rows.

    Raises:
        NoSpace: it is another part.
    """
    if window is None:
        return 0
    columns = shape[:-1] == whole[:-1] and window.strides == row_major(whole)
    if not columns or window.offset >= whole[-1]:
        raise NoSpace("a part of the rows of a product")
    return window.offset


def part_op(
    name: str, operands: Sequence[ir.Value], whole: ir.RankedTensorType, kind: ir.RankedTensorType
) -> ir.Value:
    """`tensor.extract_slice` or `insert_slice` of one part along the first dimension; its place is
    the last operand."""
    rank = len(whole.shape)
    array = ir.DenseI64ArrayAttr.get
    return builder.op(
        name,
        operands,
        [kind],
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([*[1] * (len(operands) - 1), 1, 0, 0]),
        static_offsets=array([ir.ShapedType.get_dynamic_size(), *[0] * (rank - 1)]),
        static_sizes=array([1, *whole.shape[1:]]),
        static_strides=array([1] * rank),
    ).result
