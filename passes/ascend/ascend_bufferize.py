"""ascend-bufferize: turns @main on tensors into a list of kernel launches on buffers.

before:
    func.func @main(%x: tensor<300xf32>) -> tensor<300xf32> {
      %w = "ascend.constant"() {value = dense<..> : tensor<300xf32>} : () -> tensor<300xf32>
      %t = "ascend.add"(%x, %w) : (...) -> tensor<300xf32>
      %r = "ascend.exp"(%t) : (...) -> tensor<300xf32>
      return %r : tensor<300xf32>
    }
after:
    func.func @main(%x: memref<300xf32> {ascend.name = "arg0"},
                    %r: memref<300xf32> {ascend.name = "out0", ascend.output}) {
      %arena = memref.alloc() : memref<1216xi8>
      %w = memref.get_global @constant_0 : memref<300xf32>
      %t = memref.view %arena[%c0][] : memref<1216xi8> to memref<300xf32>
      call @add_f32_300(%x, %w, %t) {ascend.blocks = 1 : i64, ascend.operators = ["Add_0"]}
      call @exp_f32_300(%t, %r) {ascend.blocks = 1 : i64, ascend.operators = ["Exp_1"]}
    }
    func.func private @add_f32_300(...) attributes {ascend.launch = @kernels::@add_f32_300}
    ...
    module @kernels { func.func @add_f32_300(...) {ascend.kernel, ...} ... }

Needs straight-line ascend ops with static shapes in @main, and the functions called
already outlined (`ascend-outline-scalar`). Each op becomes a launch; equal ops share a kernel.
A launch names the nodes of the model that it computes, from the locations of its op.
Launches that do not wait for each other may become one, by the option `plan`: calls that have the
same `ascend.stage` (`davinci.passes.ascend.staging`). Intermediate values are placed in one arena
by their lifetimes in stages (`davinci.planning`); `reshape`, `view`, `reinterpret` and slices that
leave bytes in place are views, `constant` is a global, and `full` a constant of the kernel that
uses it. Buffers begin at lines of GM and are whole blocks long, so that whole
blocks may be copied. Results are written in place to the output arguments; a copy is launched only
where that is not possible. Adds `ascend.arena_bytes`, `ascend.arena_unplanned_bytes` (what the
arena would take without reuse), `ascend.arena_lower_bound_bytes` (the most bytes that are live
at once) and `ascend.arena` to @main: of each value in the arena, or of each piece of one whose
pieces are not needed equally long, its offset and size in bytes, and the numbers of the first and
the last launch that needs it; and `ascend.arena_buffers`, for each of these the number of the
buffer that it is all or a piece of, and of the launches that write into it behind the first one:
other parts of it, or results that take its bytes; and where kernels do not wait for each other
`ascend.plans`: of plans from one launch after the other to layers that share launches, and of the
one that is taken, the name, the number of launches, bytes of the arena, and by how many cycles it
is estimated to take longer than the last. With `memory-limit` the arena has at most so many
bytes (`davinci.passes.ascend.memory_limit`): `ascend.arena_limit_bytes`, and what was tried for
that in `ascend.arena_remedies`. With `weights=streamed` the host brings what one launch reads only
to the arena by `memref.copy` (`davinci.passes.ascend.streaming`), and `ascend.arena_weights` are
the numbers of the buffers that hold it. A kernel with `ascend.overwrites` gets an output and an
input that are the same bytes, and outputs may take the bytes of inputs that are needed no more
(`davinci.passes.ascend.overwriting`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from davinci import machine as machines
from davinci.dialects.ascend_types import element_type, tensor_of
from davinci.dialects.base import attribute
from davinci.element_types import dtype_of
from davinci.elements import scalar_value, to_attribute
from davinci.machine import Machine
from davinci.mlir import Op, ir, symbols
from davinci.operators import OPERATORS
from davinci.operators.tensors import NZ, Tensor
from davinci.passes import builder
from davinci.passes.analysis.group_graph import CONVERSION
from davinci.passes.analysis.origins import by_member, served
from davinci.passes.ascend.group_outline import Kernels
from davinci.passes.ascend.grouping import joined_in_place
from davinci.passes.ascend.host_function import (
    HostBuilder,
    Launch,
    Place,
    Storage,
    is_dense,
    states_of,
)
from davinci.passes.ascend.host_values import VIEWS, offset_of, size_bytes, static_tensor, viewed
from davinci.passes.ascend.image_parts import images_of_joined, joins_images
from davinci.passes.ascend.joining import offsets_of, parts_of_joined
from davinci.passes.ascend.kernel_outline import copied_tensor, copied_type, memref_of, prepared
from davinci.passes.ascend.memory_limit import (
    PLANNED,
    Attempt,
    Fit,
    Remedy,
    cut_of,
    does_not_fit,
    fit,
    lowest_of,
    storages_of,
)
from davinci.passes.ascend.overwriting import OVERWRITES, Buffer, in_place, shared_by
from davinci.passes.ascend.past_l2 import reading_past_l2
from davinci.passes.ascend.plan_choice import arena_bytes, chosen, compared, mark_arena
from davinci.passes.ascend.staging import StageSearch
from davinci.passes.ascend.streaming import arrivals, stream
from davinci.passes.ascend.tensor_ops import PRODUCTS, defining_op, stored_array
from davinci.passes.pipeline import memory_limits
from davinci.passes.pipeline.base import Pass, fail, option, register_pass
from davinci.passes.pipeline.pipelines import (
    LIMIT_HELP,
    RESIDENT,
    STREAMED,
    WEIGHTS,
    WEIGHTS_HELP,
)
from davinci.passes.pipeline.plans import expected
from davinci.units import BLOCK_BYTES, round_up

BUFFERS_ONLY = frozenset(
    [
        *("batch_matmul", "broadcast", "call", "conv", "gather", "gather_blocks", "matmul"),
        *("combine_blocks", "pool", "reduce", "relayout", "slice", "sort", "sort_pairs"),
        *("gather_elements", "transpose", "update_blocks"),
    ]
)
"""Operators whose kernels want every operand in a buffer; the others take `full` as a constant."""


@register_pass
@dataclass(frozen=True)
class AscendBufferizePass(Pass):
    """Outline kernels, place values in GM buffers, make @main a list of launches."""

    NAME = "ascend-bufferize"

    machine: str = option("ascend910", "machine file that gives the lines of GM")
    cores: int = option(0, "most cores of a launch; 0: all cores of the machine")
    plan: str = option("sequential", "which kernels share a launch", expected=expected)
    memory_limit: str = option("", LIMIT_HELP, expected=memory_limits.expected)
    weights: str = option(RESIDENT, WEIGHTS_HELP, WEIGHTS)

    def run(self, op: Op) -> None:
        function = dict(symbols(op)).get("main")
        if function is None or "ascend.entry" in function.attributes:
            return
        machine = machines.load(self.machine)
        machines.check_cores(machine, self.cores)
        cores = self.cores or machine.cores
        host = PlannedHost(op, function, machine, cores, self.plan, self.weights)
        staged, arena, placed = host.planned.staged, host.planned.arena, host.planned.placed
        remedies: list[Remedy] = []
        if self.memory_limit:
            cuts = cut_of(op)
            limit = cuts.limit or memory_limits.bytes_of(self.memory_limit, placed.height)
            fitted = host.fit(limit)
            remedies = cuts.remedies(fitted)
            if not fitted.holds:
                raise does_not_fit(fitted.best, remedies, limit)
            staged, arena, placed = fitted.best.staged, fitted.best.arena, fitted.best.placed
        for storage, offset in zip(arena, placed.offsets, strict=True):
            storage.offset = offset
        taken_bytes = arena_bytes(arena, placed)
        for name in host.plan.callees:
            dict(symbols(op))[name].erase()
        unplanned_bytes = int(placed.problem.sizes.sum())
        line_bytes, same = machine.gm.line_bytes, host.plan.same
        points = compared(host.staging, self.plan, host.planned, line_bytes)
        staged.note_lifetimes()
        applied = reading_past_l2(host.staging.apply(staged), op, machine)
        brought: dict[int, list[Storage]] = {}
        for storage, stage in arrivals(staged.launches):
            brought.setdefault(sum(map(len, staged.launches[:stage])), []).append(storage)
        main = HostBuilder(
            op, function, applied, taken_bytes, line_bytes, brought, host.copied, same
        ).main
        main.attributes["ascend.arena_bytes"] = builder.as_attribute(taken_bytes)
        main.attributes["ascend.arena_unplanned_bytes"] = builder.as_attribute(unplanned_bytes)
        bound = builder.as_attribute(placed.problem.lower_bound)
        main.attributes["ascend.arena_lower_bound_bytes"] = bound
        if points:
            main.attributes["ascend.plans"] = builder.as_attribute(points)
        mark_arena(main, staged, arena, placed)
        if remedies:
            texts = [remedy.text(remedies[0]) for remedy in remedies]
            main.attributes["ascend.arena_limit_bytes"] = builder.as_attribute(limit)
            main.attributes["ascend.arena_remedies"] = builder.as_attribute(texts)
        function.erase()


class PlannedHost:
    """@main as launches whose arena is planned.

    Attributes:
        plan: the launches, and the storages of their values.
        staging: of the launches.
        copied: numbers of the results that are copied into the arguments that they belong to.
    """

    def __init__(
        self, root: Op, function: Op, machine: Machine, cores: int, plan: str, weights: str
    ) -> None:
        self.plan = HostPlan(root, function)
        launches = in_place(self.plan.launches)
        if weights == STREAMED:
            machines.check_host_link(machine)
            stream(launches, dict(symbols(dict(symbols(root))["kernels"])))
        copies = self.plan.copies_of_states(launches)
        self.copied = frozenset(launch.buffers[0][0].storage.key for launch in copies)
        launches += copies
        self.staging = StageSearch(root, launches, machine, cores)
        self._arena = storages_of(launches)
        self._line_bytes, self._plan = machine.gm.line_bytes, plan

    @cached_property
    def planned(self) -> Attempt:
        """What is taken without a limit of memory."""
        plans = self.staging.plans(self._plan)
        staged, placed = chosen(plans, self._plan, self._arena, self._line_bytes)
        return Attempt(PLANNED, staged, self._arena, placed)

    def lowest(self) -> Attempt:
        """One launch after the other, in an order in which little is live at once."""
        return lowest_of(self.staging, self._arena, self._line_bytes)

    def fit(self, limit: int) -> Fit:
        """What is taken with a limit, in bytes."""
        return fit(self.staging, self.planned, self._line_bytes, limit)


class HostPlan:
    """Decides the storage of every value of @main and lists the launches. Reads the IR only.

    Attributes:
        launches: what main will do, in order.
        storages: every buffer.
        callees: functions on tensors whose calls became launches of scalar kernels.
        same: numbers of outputs that have the bytes of another output, and of these.
    """

    def __init__(self, root: Op, function: Op) -> None:
        self.launches: list[Launch] = []
        self.storages: list[Storage] = []
        self.callees: set[str] = set()
        self.same: dict[int, int] = {}
        self._root, self._kernels = root, Kernels(root)
        self._constants: dict[ir.Attribute, Storage] = {}
        self._places: dict[ir.Value, Place] = {}
        self._fulls: dict[ir.Value, ir.Attribute] = {}
        self._joined: dict[ir.Value, Place] = {}
        self._shares: dict[str, Sequence[tuple[int, int]]] = {}
        block = function.regions[0].blocks[0]
        self._returned = {viewed(v) for v in block.operations[len(block.operations) - 1].operands}
        for number, argument in enumerate(block.arguments):
            made = self._new("argument", number, argument, argument.location)
            self._places[argument] = Place(made)
        self._parts = parts_of_joined(block, self._returned)
        self._states = states_of(function)
        self._apart: dict[ir.Value, ir.MemRefType] = {}
        for value, (whole, offset, kind) in images_of_joined(block).items():
            self._parts[value], self._apart[value] = (whole, offset), kind
        for op in block.operations:
            self._visit(op.operation)

    def _new(
        self, kind: str, key: ir.Attribute | int | None, value: ir.Value, location: ir.Location
    ) -> Storage:
        tensor = static_tensor(value.type, location)
        size = round_up(size_bytes(tensor, location), BLOCK_BYTES)
        storage = Storage(kind, key, memref_of(tensor), size, 0, 0, location)
        self.storages.append(storage)
        return storage

    def _visit(self, op: Op) -> None:
        name = op.name.removeprefix("ascend.")
        if op.name == "func.return":
            self._visit_return(op)
        elif op.name == "func.call":
            self._visit_kernel(op, "call")
        elif not op.name.startswith("ascend."):
            fail(op, "cannot be bufferized", expected="ascend operators on tensors")
        elif name == "full":
            self._fulls[op.result] = op.attributes["value"]
        elif name == "constant":
            self._places[op.result] = self._constant(op.attributes["value"], op.result, op)
        elif name == "iota":
            tensor = tensor_of(op.result.type)
            array = OPERATORS[name].values([], tensor, {"dim": attribute(op, "dim")})
            elements = to_attribute(array, element_type(tensor.element))
            self._places[op.result] = self._constant(elements, op.result, op)
        elif name == "reshape" and op.operands[0] in self._fulls:
            self._seen_as(op)
        elif op.name in VIEWS:
            self._places[op.result] = self._find(op.operands[0], op)
        elif name == "concat" and joined_in_place(op):
            self._join(op)
        elif name == "concat" and joins_images(op):
            place = self._places[op.results[0]] = self._made(op.results[0])
            place.storage.divided = True
        elif name == "slice" and (part := self._part(op)) is not None:
            self._places[op.result] = part
        else:
            self._visit_kernel(op, name)

    def _seen_as(self, reshape: Op) -> None:
        """Puts a `full` of its own shape in place of one that is reshaped."""
        value = self._fulls[reshape.operands[0]]
        with ir.InsertionPoint(reshape), reshape.location:
            full = builder.op("ascend.full", [], [reshape.result.type], value=value).result
        reshape.result.replace_all_uses_with(full)
        self._fulls[full] = value

    def _part(self, op: Op) -> Place | None:
        """Where a slice lies in its operand, if it is a view of it; other than in the arena buffers
        are passed to kernels as a whole."""
        place = self._find(op.operands[0], op)
        offset = offset_of(op)
        output = viewed(op.operands[0]) in self._returned
        if offset is None or output or place.storage.kind != "arena":
            return None
        offset = place.offset + offset * memref_of(op.result.type).element_type.width // 8
        if offset % BLOCK_BYTES:
            return None
        place.storage.divided = True
        return Place(place.storage, offset)

    def _join(self, concat: Op) -> None:
        """Operands that were not made in their places are copied there."""
        result = concat.results[0]
        place = self._places[result] = self._made(result)
        place.storage.divided = True
        for operand, offset in zip(concat.operands, offsets_of(concat), strict=True):
            if self._parts.get(operand) != (result, offset):
                part, kind = Place(place.storage, place.offset + offset), memref_of(operand.type)
                self._copy((self._find(operand, concat), kind), (part, kind), operand, concat)

    def _made(self, value: ir.Value) -> Place:
        """A new place, or that which a value has in what it is a part of."""
        if value not in self._parts:
            if value not in self._joined:
                self._joined[value] = Place(self._new("arena", None, value, value.owner.location))
            return self._joined[value]
        whole, offset = self._parts[value]
        place = self._made(whole)
        return Place(place.storage, place.offset + offset)

    def _visit_kernel(self, op: Op, name: str) -> None:
        outputs = [self._made(result) for result in op.results]
        self._places.update(zip(op.results, outputs, strict=True))
        if all(place.storage.size == 0 for place in outputs):
            return
        numbers = [value for value in op.operands if value in self._fulls]
        if name in BUFFERS_ONLY or len(numbers) == len(op.operands):
            numbers = []
        elif name == "pad":  # of which only what it pads with may be a number
            numbers = [value for value in op.operands[1:] if value in numbers]
        inputs = list(dict.fromkeys(value for value in op.operands if value not in numbers))
        if name == "call":
            inputs = list(op.operands)
            kernel = prepared(self._root, op)
            self.callees.add(kernel)
        else:
            if op.name in PRODUCTS:
                require_layouts(op)
            kernel = self._kernels.kernel_of([op], inputs, op.results)
        kinds = [self._apart.get(v, memref_of(v.type)) for v in op.results]
        changed = {n: kind for n, kind in enumerate(kinds, len(inputs)) if not is_dense(kind)}
        kernel = self._kernels.with_types(kernel, changed)
        made = list(zip(outputs, kinds, strict=True))
        pairs = attribute(self._kernels.function(kernel), OVERWRITES, ())
        before = {number: made[output] for output, number in pairs}
        for number, made_at in before.items():
            self._begin(inputs[number], made_at, op)
        read = [
            before[number] if number in before else (self._find(value, op), memref_of(value.type))
            for number, value in enumerate(inputs)
        ]
        launch = self._launch_of(kernel, [*read, *made], op, len(made))
        self.launches.append(replace(launch, shares=self._shared_by(kernel, len(read))))

    def _shared_by(self, kernel: str, inputs: int) -> Sequence[tuple[int, int]]:
        """Outputs and inputs of a kernel that may be the same bytes."""
        if kernel not in self._shares:
            self._shares[kernel] = shared_by(self._kernels.function(kernel), inputs)
        return self._shares[kernel]

    def _begin(self, value: ir.Value, made: Buffer, user: Op) -> None:
        """Launches what makes a value in a place where a part of it will be overwritten."""
        if value not in self._fulls:
            self._copy((self._find(value, user), memref_of(value.type)), made, value, user)
            return
        with ir.InsertionPoint(user), user.location:
            filling = builder.op("ascend.copy", [value], [value.type])
        kernel = self._kernels.kernel_of([filling], [], [filling.result])
        filling.erase()
        self.launches.append(self._launch_of(kernel, [made], user))

    def _launch_of(self, kernel: str, buffers: list[Buffer], op: Op, outputs: int = 1) -> Launch:
        operators = served(op)
        members = by_member(op.location) or [operators]
        return Launch(kernel, buffers, op.location, operators, members, outputs)

    def _visit_return(self, op: Op) -> None:
        """Lets producers write straight to the outputs, first to those that are states; launches
        copies for the other results."""
        self._return, values = op, list(op.operands)
        for number in sorted(range(len(values)), key=lambda n: n not in self._states):
            value = values[number]
            place = self._find(value, op)
            source, state = place.storage, self._states.get(number)
            unread = state is None or not self._is_read(state)
            if source.kind == "output" and not place.offset and unread:
                self.same[number] = source.key  # a value that was returned before
                continue
            if source.kind == "arena" and not source.divided:
                source.kind, source.key, source.type = "output", number, memref_of(value.type)
                source.state = self._argument(state)
                continue
            output = self._new("output", number, value, op.location)
            output.state = self._argument(state)
            if output.size:
                self._copy((place, output.type), (Place(output), output.type), value, op)
            if source.key in self._states.values() and source.kind == "argument":
                self.launches.insert(0, self.launches.pop())  # before the state changes

    def _is_read(self, state: int) -> bool:
        """Whether the value of an argument is used: only then its next value must be in its buffer
        when the program is called again."""
        block = self._return.operation.block
        return any(True for _ in block.arguments[state].uses)

    def _argument(self, number: int | None) -> Storage | None:
        """The storage of an argument."""
        return next((s for s in self.storages if s.kind == "argument" and s.key == number), None)

    def copies_of_states(self, launches: Sequence[Launch]) -> list[Launch]:
        """Copies of outputs into the states whose next values they are, for those that do not have
        their bytes.

        Args:
            launches: all others.
        """
        end = self._return
        used = [place.storage for launch in launches for place, _ in launch.buffers]
        found = []
        for output in dict.fromkeys(used):
            if output.kind == "output" and output.state is not None:
                kernel = self._copying(end.operands[output.key], end)
                kind = copied_type(output.type)
                buffers = [(Place(storage), kind) for storage in (output, output.state)]
                found.append(self._launch_of(kernel, buffers, end))
        return found

    def _copy(self, source: Buffer, made: Buffer, value: ir.Value, user: Op) -> None:
        """Launches a kernel that copies the array of a value, for what uses it."""
        location = (defining_op(value) or user) if user.name == "func.return" else user
        kernel = self._copying(value, user)
        buffers = [(place, copied_type(kind)) for place, kind in (source, made)]
        launch = self._launch_of(kernel, buffers, location)
        self.launches.append(replace(launch, shares=((0, 0),), is_copy=True))

    def _copying(self, value: ir.Value, user: Op) -> str:
        """The kernel that copies the array of a value."""
        kind = copied_tensor(value.type)
        with ir.InsertionPoint(user), user.location:
            array = builder.op(CONVERSION, [value], [kind]).result
            copy = builder.op("ascend.copy", [array], [kind])
        kernel = self._kernels.kernel_of([copy], [array], [copy.result])
        copy.erase()
        array.owner.erase()
        return kernel

    def _find(self, value: ir.Value, user: Op) -> Place:
        """Place of `value`; a `full` that needs a buffer becomes a constant."""
        if value in self._fulls:
            return self._constant(filled(self._fulls[value], tensor_of(value.type)), value, user)
        return self._places[value]

    def _constant(self, elements: ir.Attribute, value: ir.Value, op: Op) -> Place:
        if elements not in self._constants:
            self._constants[elements] = self._new("constant", elements, value, op.location)
        return Place(self._constants[elements])


def require_layouts(product: Op) -> None:
    """Fails unless the operands of a product are what its kernel takes."""
    values = [tensor_of(v.type) for v in product.operands]
    for value in values:
        if value.layout != NZ and values[0].bytes_each == 1:
            fail(
                product,
                "has no kernel for rows of bytes",
                found=str(value),
                expected='#ascend.layout<"nz">',
                hint="run ascend-propagate-layouts before ascend-bufferize",
            )


def filled(value: ir.Attribute, tensor: Tensor) -> ir.Attribute:
    """The array of a tensor that is the same value everywhere; what pads it is zero."""
    kind = element_type(tensor.element)
    if tensor.count == math.prod(tensor.stored_shape):
        stored = ir.RankedTensorType.get(list(tensor.stored_shape), kind)
        return ir.DenseElementsAttr.get_splat(stored, value)
    array = np.full(tensor.shape, scalar_value(value), dtype_of(tensor.element))
    return to_attribute(stored_array(array, tensor), kind)
