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
Intermediate values are placed in one arena by their lifetimes; `reshape` is a view, `constant` a
global, and `full` a constant of the kernel that uses it. Buffers begin at lines of GM and are whole
blocks long, so that whole blocks may be copied. Results are written in place to the output
arguments; a copy is launched only where that is not possible. Adds `ascend.arena_bytes` and
`ascend.arena_unplanned_bytes` (what the arena would take without reuse) to @main.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci import machine as machines
from davinci.dialects.ascend_shapes import NZ, Tensor, tensor_of
from davinci.elements import dtype_of, scalar_value, to_array, to_attribute
from davinci.errors import CompileError
from davinci.mlir import func, function_type, ir, location_text, memref
from davinci.passes import builder
from davinci.passes.analysis.origins import served
from davinci.passes.analysis.packing import Item, pack
from davinci.passes.ascend.kernel_facts import SIZES
from davinci.passes.ascend.kernel_outline import (
    Full,
    KernelOp,
    KernelTable,
    is_boolean,
    is_unsigned,
    memref_of,
    symbols,
    unique,
)
from davinci.passes.ascend.tensor_ops import PRODUCTS, defining_op, stored_array
from davinci.passes.pipeline.base import Pass, fail, option, register_pass
from davinci.units import BLOCK_BYTES, round_up

BUFFERS_ONLY = frozenset(
    [
        *("batch_matmul", "broadcast", "call", "concat", "gather", "matmul", "reduce", "relayout"),
        *("slice", "transpose"),
    ]
)
"""Operators whose kernels want every operand in a buffer; the others take `full` as a constant."""

MARK_BOOLEAN = frozenset({"cast", "not"})
"""Operators that mean something else on booleans than on the bytes that hold them."""


@register_pass
@dataclass(frozen=True)
class AscendBufferizePass(Pass):
    """Outline kernels, place values in GM buffers, make @main a list of launches."""

    NAME = "ascend-bufferize"

    machine: str = option("ascend910", "machine file that gives the lines of GM")

    def run(self, op: Any) -> None:
        function = dict(symbols(op)).get("main")
        if function is None or "ascend.entry" in function.attributes:
            return
        plan = Plan(op, function)
        arena = [storage.item for storage in plan.storages if storage.kind == "arena"]
        line_bytes = machines.load(self.machine).gm.line_bytes
        arena_bytes = pack(arena, line_bytes)
        for name in plan.callees:
            dict(symbols(op))[name].erase()
        unplanned_bytes = sum(round_up(item.size, line_bytes) for item in arena)
        main = HostBuilder(op, function, plan, arena_bytes, line_bytes).main
        main.attributes["ascend.arena_bytes"] = builder.as_attribute(arena_bytes)
        main.attributes["ascend.arena_unplanned_bytes"] = builder.as_attribute(unplanned_bytes)
        function.erase()


@dataclass(eq=False)
class Storage:
    """Where a value lies: an argument, an output, a global or a part of the arena.

    Attributes:
        kind: "argument", "output", "constant" or "arena".
        key: number of the argument or output; the elements attribute of a constant.
        type: memref type it was made for; other types are views.
        item: size, lifetime (launch numbers) and, once packed, arena offset.
        location: of the value it was made for.
    """

    kind: str
    key: Any
    type: Any
    item: Item
    location: Any


@dataclass(frozen=True)
class Launch:
    """A kernel to launch on buffers, each a storage and the memref type it is seen as.

    Attributes:
        operators: names of the model's nodes that it computes.
    """

    kernel: str
    buffers: list[tuple[Storage, Any]]
    location: Any
    operators: tuple[str, ...]


class Plan:
    """Decides the storage of every value of @main and lists the launches. Reads the IR only.

    Attributes:
        launches: what main will do, in order.
        storages: every buffer.
        callees: functions on tensors whose calls became launches of scalar kernels.
    """

    def __init__(self, root: Any, function: Any) -> None:
        self.launches: list[Launch] = []
        self.storages: list[Storage] = []
        self.callees: set[str] = set()
        self._kernels = KernelTable(root)
        self._constants: dict[Any, Storage] = {}
        self._storage: dict[Any, Storage] = {}
        self._fulls: dict[Any, Any] = {}
        block = function.regions[0].blocks[0]
        for number, value in enumerate(block.arguments):
            self._storage[value] = self._new("argument", number, value, value.location)
        for op in block.operations:
            self._visit(op.operation)

    def _new(self, kind: str, key: Any, value: Any, location: Any) -> Storage:
        tensor = _static_tensor(value.type, location)
        now = len(self.launches)
        size = round_up(_size_bytes(tensor, location), BLOCK_BYTES)
        storage = Storage(kind, key, memref_of(tensor), Item(size, now, now), location)
        self.storages.append(storage)
        return storage

    def _visit(self, op: Any) -> None:
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
            self._storage[op.result] = self._constant(op.attributes["value"], op.result, op)
        elif name == "reshape" and op.operands[0] in self._fulls:
            self._fulls[op.result] = self._fulls[op.operands[0]]
        elif name == "reshape":
            self._storage[op.result] = self._find(op.operands[0], op)
        else:
            self._visit_kernel(op, name)

    def _visit_kernel(self, op: Any, name: str) -> None:
        outputs = [self._new("arena", None, result, op.location) for result in op.results]
        self._storage.update(zip(op.results, outputs, strict=True))
        if all(storage.item.size == 0 for storage in outputs):
            return
        operands = [
            Full(self._fulls[value], value.type)
            if name not in BUFFERS_ONLY and value in self._fulls
            else (self._find(value, op), memref_of(value.type))
            for value in op.operands
        ]
        buffers = [x for x in operands if not isinstance(x, Full)]
        buffers += [(storage, storage.type) for storage in outputs]
        if name == "call":
            kernel = self._kernels.prepared(op)
            self.callees.add(kernel)
        else:
            described = tuple(x if isinstance(x, Full) else x[1] for x in operands)
            results = tuple(storage.type for storage in outputs)
            kernel_op = KernelOp(kernel_name(op), described, results, kernel_attributes(op))
            kernel = self._kernels.outlined(kernel_op, op.location)
        self._launch(kernel, buffers, op)

    def _launch(self, kernel: str, buffers: list[tuple[Storage, Any]], op: Any) -> None:
        for storage, _ in buffers:
            storage.item.last = len(self.launches)
        self.launches.append(Launch(kernel, buffers, op.location, served(op)))

    def _visit_return(self, op: Any) -> None:
        """Lets producers write straight to the outputs; launches copies for the other results."""
        for number, value in enumerate(op.operands):
            source = self._find(value, op)
            if source.kind == "arena":
                source.kind, source.key, source.type = "output", number, memref_of(value.type)
                continue
            output = self._new("output", number, value, op.location)
            if source.item.size:
                copy = KernelOp("copy", (output.type,), (output.type,))
                kernel = self._kernels.outlined(copy, op.location)
                copied = [(source, output.type), (output, output.type)]
                self._launch(kernel, copied, defining_op(value) or op)

    def _find(self, value: Any, user: Any) -> Storage:
        """Storage of `value`; a `full` that needs a buffer becomes a constant."""
        if value in self._fulls:
            return self._constant(filled(self._fulls[value], tensor_of(value.type)), value, user)
        return self._storage[value]

    def _constant(self, elements: Any, value: Any, op: Any) -> Storage:
        if elements not in self._constants:
            self._constants[elements] = self._new("constant", elements, value, op.location)
        return self._constants[elements]


def kernel_name(op: Any) -> str:
    """The operator on buffers that does what `op` does on tensors."""
    if op.name == "ascend.relayout":
        return "fractalize" if tensor_of(op.result.type).layout == NZ else "defractalize"
    return str(op.name.removeprefix("ascend."))


def kernel_attributes(op: Any) -> tuple[tuple[str, Any], ...]:
    """Attributes of the operator on buffers, which shows less than that on tensors."""
    found = {key: op.attributes[key] for key in op.attributes}
    if op.name.removeprefix("ascend.") in MARK_BOOLEAN and is_boolean(op.results[0].type):
        found["boolean"] = ir.UnitAttr.get()
    if op.name in PRODUCTS:
        require_nz(op)
        *_, m, n = tensor_of(op.result.type).shape
        found[SIZES] = builder.as_attribute([m, n, tensor_of(op.operands[0].type).shape[-1]])
    return tuple(sorted(found.items()))


def require_nz(product: Any) -> None:
    """Fails unless the operands and the result of a product are what its kernel takes."""
    for value in (*product.operands, product.result):
        if tensor_of(value.type).layout != NZ:
            fail(
                product,
                "has no kernel for these layouts",
                found=str(value.type),
                expected='#ascend.layout<"nz">',
                hint="run ascend-propagate-layouts before ascend-bufferize",
            )


def filled(value: Any, tensor: Tensor) -> Any:
    """The array of a tensor that is the same value everywhere; what pads it is zero."""
    if tensor.count == math.prod(tensor.stored_shape):
        stored = ir.RankedTensorType.get(list(tensor.stored_shape), tensor.element)
        return ir.DenseElementsAttr.get_splat(stored, value)
    array = np.full(tensor.shape, scalar_value(value), dtype_of(tensor.element))
    return to_attribute(stored_array(array, tensor), tensor.element)


class HostBuilder:
    """Writes the new @main in front of `function` from a plan whose arena is packed."""

    def __init__(
        self, root: Any, function: Any, plan: Plan, arena_bytes: int, line_bytes: int
    ) -> None:
        self._symbols = dict(symbols(root))
        self._globals: list[str] = []
        self._views: dict[Any, Any] = {}
        self._declarations: dict[str, str] = {}
        self._arena_bytes, self._line_bytes = arena_bytes, line_bytes
        old_type = function_type(function)
        types = [memref_of(t) for t in (*old_type.inputs, *old_type.results)]
        locations = [argument.location for argument in function.regions[0].blocks[0].arguments]
        locations += [function.location] * len(old_type.results)
        self._front = ir.InsertionPoint(function)
        with self._front, function.location:
            self.main = func.FuncOp("main", (types, []))
        self.main.attributes["ascend.entry"] = ir.UnitAttr.get()
        self.main.attributes["arg_attrs"] = _argument_names(function, old_type)
        block = self.main.add_entry_block(locations)
        self._arguments = list(block.arguments)[: len(old_type.inputs)]
        self._outputs = list(block.arguments)[len(old_type.inputs) :]
        with ir.InsertionPoint(block), function.location:
            for launch in plan.launches:
                with launch.location:
                    self._launch(launch)
            func.ReturnOp([])

    def _launch(self, launch: Launch) -> None:
        values = [self._view(storage, seen_as) for storage, seen_as in launch.buffers]
        callee = ir.FlatSymbolRefAttr.get(self._declaration(launch.kernel, values))
        marks: dict[str, Any] = {"ascend.blocks": 1}
        if launch.operators:
            names = [ir.StringAttr.get(name) for name in launch.operators]
            marks["ascend.operators"] = ir.ArrayAttr.get(names)
        builder.op("func.call", values, [], callee=callee, **marks)

    def _declaration(self, kernel: str, values: list[Any]) -> str:
        """Name of the function that stands for `kernel` in the host's symbol table."""
        if kernel not in self._declarations:
            name = self._declarations[kernel] = unique(kernel, self._symbols)
            with self._front, ir.Location.unknown():
                declared = func.FuncOp(name, ([v.type for v in values], []), visibility="private")
            declared.attributes["ascend.launch"] = ir.SymbolRefAttr.get(["kernels", kernel])
            self._symbols[name] = declared.operation
        return self._declarations[kernel]

    def _view(self, storage: Storage, seen_as: Any) -> Any:
        key = (storage, seen_as)
        if key not in self._views:
            self._views[key] = self._build_view(storage, seen_as)
        return self._views[key]

    def _build_view(self, storage: Storage, seen_as: Any) -> Any:
        if storage.kind == "arena":
            offset = builder.constant_index(storage.item.offset)
            return memref.ViewOp(seen_as, self._arena, offset, []).result
        if seen_as != storage.type:
            strides, _ = seen_as.get_strides_and_offset()
            base = self._view(storage, storage.type)
            return memref.ReinterpretCastOp(
                seen_as, base, [], [], [], [0], list(seen_as.shape), list(strides)
            ).result
        if storage.kind == "constant":
            name = ir.FlatSymbolRefAttr.get(self._build_global(storage))
            return memref.GetGlobalOp(storage.type, name).result
        return (self._arguments if storage.kind == "argument" else self._outputs)[storage.key]

    @functools.cached_property
    def _arena(self) -> Any:
        byte = ir.IntegerType.get_signless(8)
        arena_type = ir.MemRefType.get([self._arena_bytes], byte)
        return memref.AllocOp(arena_type, [], [], alignment=self._line_bytes).result

    def _build_global(self, storage: Storage) -> str:
        name = unique(f"constant_{len(self._globals)}", self._symbols)
        self._globals.append(name)
        elements = storage.key
        if is_boolean(elements.type) or is_unsigned(elements.type):
            elements = to_attribute(to_array(elements), storage.type.element_type, name)
        with self._front, storage.location:
            self._symbols[name] = builder.op(
                "memref.global",
                [],
                sym_name=name,
                sym_visibility="private",
                type=ir.TypeAttr.get(storage.type),
                initial_value=elements,
                constant=ir.UnitAttr.get(),
            )
        return name


def _argument_names(function: Any, old_type: Any) -> Any:
    """Attributes of the new arguments: names; outputs, booleans and unsigned integers marked."""
    attributes = []
    for key, name, types in (
        ("arg_attrs", "arg", old_type.inputs),
        ("res_attrs", "out", old_type.results),
    ):
        given = function.attributes[key] if key in function.attributes else [{}] * len(types)
        for number, tensor in enumerate(types):
            names = {x.name: x.attr for x in given[number]}
            if is_boolean(tensor):
                names["ascend.boolean"] = ir.UnitAttr.get()
            if is_unsigned(tensor):
                names["ascend.unsigned"] = ir.UnitAttr.get()
            names.setdefault("ascend.name", ir.StringAttr.get(f"{name}{number}"))
            if key == "res_attrs":
                names["ascend.output"] = ir.UnitAttr.get()
            attributes.append(ir.DictAttr.get(names))
    return ir.ArrayAttr.get(attributes)


def _static_tensor(value_type: Any, location: Any) -> Any:
    if not isinstance(value_type, ir.RankedTensorType):
        raise CompileError(
            "a value of @main is not a ranked tensor",
            where=location_text(location),
            found=str(value_type),
        )
    if not value_type.has_static_shape:
        raise CompileError(
            "a value of @main has a dynamic shape",
            where=location_text(location),
            found=str(value_type),
            expected="static shapes",
        )
    return value_type


def _size_bytes(tensor: Any, location: Any) -> int:
    """Bytes of the array of a tensor in GM."""
    stored = memref_of(tensor)
    element = stored.element_type
    if not isinstance(element, (ir.IntegerType, ir.FloatType)) or element.width % 8:
        raise CompileError(
            "a value of @main has an element type that GM buffers cannot hold",
            where=location_text(location),
            found=str(tensor),
            expected="booleans, or integers and floats of whole bytes",
        )
    size_bits: int = math.prod(stored.shape) * element.width
    return size_bits // 8
