"""convert-hir-to-hivm: turns another compiler's operations on memrefs into our instructions.

before:
    func.func @k(%x: memref<?xf32>, %n: i32) attributes {ascend.kernel, ascend.core = "aiv"} {
      %u = "hir.pointer_cast"(%c4096) : (i64) -> memref<1024xf32, "ub">
      "hir.wait_flag"() {set_pipe = #hir.pipe<PIPE_MTE2>, wait_pipe = #hir.pipe<PIPE_V>,
                         static_event_id = #hir.event<EVENT_ID0>} : () -> ()
      "hir.vexp"(%u, %u) {operandSegmentSizes = array<i32: 1, 1, 0>, ...} : ...
after:
    func.func @k(%x: !llvm.ptr<1>, %n: i64) attributes {ascend.kernel, ascend.core = "aiv"} {
      "hivm.wait_flag"() {src_pipe = 4 : i64, dst_pipe = 1 : i64, event = 0 : i64}
      "hivm.set_vector_mask"() {low = -1 : i64, high = 0 : i64}
      "hivm.vexp"(%p, %p) {type = "f32", repeat = 16 : i64, ...}

Addresses, flags and barriers stay as the other compiler chose them. An operation that one
instruction cannot cover becomes several, with what its library needs in between. Loops, branches
and arithmetic of scalars stay for the scalar unit; memrefs that loops carry become addresses.
What has no lowering is an error that lists all such operations of the module, with counts.

Kernels without `hir` operations stay as they are.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.isa import Space
from davinci.machine import Machine
from davinci.mlir import Op, arith, ir, location_text, operations, run_unverified
from davinci.passes import builder, hir_to_hivm
from davinci.passes.analysis.kernels import kernels
from davinci.passes.cce_to_hivm.addresses import Address, Shift, pointer_type
from davinci.passes.hir_to_hivm import DIALECT, FALLBACKS, LOWERINGS, Lowering, elements
from davinci.passes.hir_to_hivm import views as viewing
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported, reachable
from davinci.passes.hir_to_hivm.views import MemrefView
from davinci.passes.pipeline.base import Pass, fail, option, register_pass

CLEAN_UP = "func.func(canonicalize,cse)"
VIEWS: dict[str, Callable[[Op, MemrefView], MemrefView]] = {
    "memref.subview": viewing.subview,
    "memref.reinterpret_cast": viewing.reinterpreted,
    "hir.collapse_shape": viewing.collapsed,
    "hir.expand_shape": viewing.expanded,
    "memref.view": viewing.bytes_as,
    "hir.bitcast": viewing.bits_as,
    "memref.cast": lambda op, source: source,
    "memref.memory_space_cast": lambda op, source: source,
}
"""Operations that make a view of another one."""

BOOLEAN_WORD_BITS = 16
"""Bits of the lanes in which vector instructions combine booleans."""

CARRIERS = ("scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition")
"""Operations through which memrefs may go."""


@register_pass
@dataclass(frozen=True)
class ConvertHirToHivmPass(Pass):
    """Lower operations of AscendNPU-IR in kernels to hivm instructions."""

    NAME = "convert-hir-to-hivm"

    machine: str = option("ascend910b", "machine file that gives limits and costs")

    def run(self, op: Op) -> None:
        for module in pkgutil.iter_modules(hir_to_hivm.__path__):
            importlib.import_module(f"{hir_to_hivm.__name__}.{module.name}")
        machine = machines.load(self.machine)
        refused: Counter[str] = Counter()
        places: dict[str, str] = {}
        for kernel in kernels(op):
            if not operations(kernel, DIALECT):
                continue
            run_unverified(kernel, "func.func(lower-affine)")
            core = attribute(kernel, "ascend.core", "aicore").upper()
            lower_kernel(kernel, KernelLowering(machine, core, refused, places))
            if not refused:
                run_unverified(kernel, CLEAN_UP)
        if refused:
            raise not_supported(refused, places)


def not_supported(refused: Counter[str], places: dict[str, str]) -> CompileError:
    """The error about operations without lowering: all of them, the most frequent first."""
    listed = ", ".join(f"{name} ({count}x)" for name, count in refused.most_common())
    first = refused.most_common(1)[0][0]
    return CompileError(
        "operations of AscendNPU-IR that are not supported yet",
        where=places[first],
        found=listed,
    )


class KernelLowering:
    """Lowers one kernel; what has no lowering is counted, with its first place."""

    def __init__(
        self, machine: Machine, core: str, refused: Counter[str], places: dict[str, str]
    ) -> None:
        self.translator = Translator(machine, core)
        self.refused, self.places = refused, places
        self.dead: list[Op] = []

    def refuse(self, op: Op, what: str) -> None:
        self.refused[what] += 1
        self.places.setdefault(what, location_text(op.location))

    def block(self, block: ir.Block) -> None:
        """Lowers the operations of a block in order; what only makes views is left for later."""
        translator = self.translator
        translator.emitter.forget()
        with translator.emitter.block():
            before = None
            for view in list(block.operations):
                self.operation(view.operation, before)
                before = view.operation

    def operation(self, op: Op, before: Op | None) -> None:
        """Lowers an operation and those inside it; `before` is the one in front of it."""
        with ir.InsertionPoint(op), op.location:
            if op.name in CARRIERS:
                self.carrier(op)
                return
            if op.regions:
                self.refuse(op, op.name)
                return
            lower = self.lowering_of(op)
            if lower is None:
                return
            try:
                self.lower(op, lower, before)
            except Unsupported as error:
                if str(error):
                    self.refuse(op, str(error))
                self.translator.unknown.update(op.results)
        self.dead.append(op)

    def lower(self, op: Op, lower: Lowering, before: Op | None) -> None:
        """Lowers an operation by vector instructions, or else by the scalar unit.

        Raises:
            Unsupported: neither can; what it says is what stands in the way of the first.
        """
        other = FALLBACKS.get(op.name.removeprefix(f"{DIALECT}."))
        if other is None:
            lower(self.translator, op)
            return
        pointers = dict(self.translator.emitter.pointers[-1])
        try:
            lower(self.translator, op)
        except Unsupported as error:
            if not str(error):
                raise
            erase_between(op, before)
            self.translator.emitter.pointers[-1] = pointers
            self.translator.emitter.forget()
            try:
                other(self.translator, op)
            except Unsupported:
                raise error from None

    def lowering_of(self, op: Op) -> Lowering | None:
        """What lowers an operation, None if it stays."""
        if op.name in VIEWS:
            return self.view_of_another
        if op.name.startswith(f"{DIALECT}."):
            found = LOWERINGS.get(op.name.removeprefix(f"{DIALECT}."))
            return found or unsupported
        if op.name == "arith.select" and isinstance(op.results[0].type, ir.MemRefType):
            return self.choice
        return {
            "memref.load": self.scalar_load,
            "memref.store": self.scalar_store,
            "memref.dim": self.dim,
            "memref.extract_strided_metadata": self.metadata,
            "memref.extract_aligned_pointer_as_index": self.pointer,
        }.get(op.name) or (unsupported if op.name.startswith("memref.") else None)

    def view_of_another(self, translator: Translator, op: Op) -> None:
        source = translator.view(op, op.operands[0])
        translator.views[op.results[0]] = VIEWS[op.name](op, source)

    def choice(self, translator: Translator, op: Op) -> None:
        """One of two buffers: its address."""
        condition, *values = list(op.operands)
        first, second = (translator.view(op, value) for value in values)
        if first == second:
            translator.views[op.results[0]] = first
            return
        one, other = (viewing.as_integer_or_fail(op, view) for view in (first, second))
        address = arith.SelectOp(condition, one, other).result
        root = Address(first.space, None, Shift(0, address))
        made = MemrefView(root, Shift(), first.sizes, first.strides, first.kind)
        translator.views[op.results[0]] = made

    def scalar_load(self, translator: Translator, op: Op) -> None:
        view, shift = self.element(op, op.operands[0], list(op.operands)[1:])
        loaded = translator.load(view, shift, op.results[0].type)
        op.results[0].replace_all_uses_with(loaded)

    def scalar_store(self, translator: Translator, op: Op) -> None:
        """A store; a lone boolean takes the word that vector instructions on booleans read."""
        stored, memref, *indices = list(op.operands)
        view = translator.view(op, memref)
        if view.kind == "i1" and view.shift == Shift() and all(n == 1 for n in view.sizes):
            word = arith.ExtUIOp(elements.integer(BOOLEAN_WORD_BITS), stored).result
            translator.store(view, Shift(), word)
            return
        view, shift = self.element(op, memref, indices)
        translator.store(view, shift, stored)

    def element(
        self, op: Op, memref: ir.Value, indices: list[ir.Value]
    ) -> tuple[MemrefView, Shift]:
        """Where the element at `indices` is."""
        view = self.translator.view(op, memref)
        reachable(op, view)
        if view.kind == "i1":
            raise Unsupported(f"{op.name} of a boolean")
        shift = Shift()
        for index, stride in zip(indices, view.strides, strict=True):
            shift = shift.plus(view.step(viewing.folded(index), stride))
        return view, shift

    def dim(self, translator: Translator, op: Op) -> None:
        number = viewing.folded(op.operands[1])
        if not isinstance(number, int):
            raise Unsupported("memref.dim of a dimension that the program computes")
        size = translator.view(op, op.operands[0]).sizes[number]
        op.results[0].replace_all_uses_with(builder.as_value(size))

    def metadata(self, translator: Translator, op: Op) -> None:
        """The buffer under a memref, and the memref's offset in it, its sizes and its strides."""
        view = translator.view(op, op.operands[0])
        buffer, *numbers = list(op.results)
        translator.views[buffer] = MemrefView(view.root, Shift(), (), (), view.kind)
        found = [viewing.elements_of(view.shift, view.kind), *view.sizes, *view.strides]
        for result, number in zip(numbers, found, strict=True):
            result.replace_all_uses_with(builder.as_value(number))

    def pointer(self, translator: Translator, op: Op) -> None:
        """The address at which the buffer under a memref begins."""
        root = translator.view(op, op.operands[0]).root
        i64 = ir.IntegerType.get_signless(64)
        address = builder.op("llvm.ptrtoint", [root.pointer()], [i64]).result
        made = arith.IndexCastOp(ir.IndexType.get(), address).result
        op.results[0].replace_all_uses_with(made)

    def carrier(self, op: Op) -> None:
        """A loop or a branch: memrefs that go through it become addresses on chip."""
        i64 = ir.IntegerType.get_signless(64)
        for number, value in enumerate(list(op.operands)):
            if self.translator.is_array(value) and value.type != i64:
                view = self.translator.view(op, value)
                op.operands[number] = viewing.as_integer_or_fail(op, view)
        for region in op.regions:
            for block in region:
                for argument in block.arguments:
                    self.carried(op, argument, i64)
                self.block(block)
        if op.regions:
            self.translator.emitter.forget()
        for result in op.results:
            self.carried(op, result, i64)

    def carried(self, op: Op, value: ir.Value, i64: ir.Type) -> None:
        """Makes an address of a memref that a loop or branch hands on."""
        if not isinstance(value.type, ir.MemRefType):
            return
        kind = value.type
        view = viewing.from_integer(op, value, kind)
        value.set_type(i64)
        self.translator.views[value] = view


def erase_between(op: Op, before: Op | None) -> None:
    """Erases what was built in front of an operation, behind the one that was there before it."""
    made: list[Op] = []
    for view in op.block.operations:
        if view.operation == op:
            break
        if view.operation == before:
            made.clear()
        else:
            made.append(view.operation)
    for each in reversed(made):
        each.erase()


def unsupported(translator: Translator, op: Op) -> None:
    raise Unsupported(op.name.removeprefix(f"{DIALECT}."))


@hir_to_hivm.lowering("pointer_cast")
def lower_pointer(translator: Translator, op: Op) -> None:
    """A buffer at an address."""
    (*addresses,), *sizes = translator.groups(op)
    kind = ir.MemRefType(op.results[0].type)
    space = viewing.space_of(op, kind)
    if space is Space.GM:
        raise Unsupported("pointer_cast of a pointer into global memory that the program loads")
    if len(addresses) != 1 or any(sizes):
        raise Unsupported("pointer_cast of several addresses or of a size the program computes")
    at = viewing.folded(addresses[0])
    shift = Shift(at) if isinstance(at, int) else Shift(0, at)
    view = viewing.typed(op, op.results[0], Address(space, None, shift))
    translator.views[op.results[0]] = view


def lower_kernel(kernel: Op, lowering: KernelLowering) -> None:
    """Makes pointers and i64 values of the arguments, lowers the body, drops what is dead."""
    entry = kernel.regions[0].blocks[0]
    i64 = ir.IntegerType.get_signless(64)
    pending = []
    with ir.InsertionPoint.at_block_begin(entry), kernel.location:
        for argument in entry.arguments:
            if isinstance(argument.type, ir.MemRefType):
                cast = ir.Operation.create(
                    "builtin.unrealized_conversion_cast", [pointer_type(Space.GM)], [argument]
                )
                root = Address(Space.GM, cast.result, Shift())
                view = viewing.typed(kernel, argument, root)
                lowering.translator.views[argument] = view
                pending.append((argument, cast, pointer_type(Space.GM)))
            elif argument.type != i64:
                pending.append((argument, scalar_of(kernel, argument, i64), i64))
    for block in kernel.regions[0]:
        lowering.block(block)
    if lowering.refused:
        return
    for op in reversed(lowering.dead):
        for result in op.results:
            for use in list(result.uses):
                fail(op, "has a use that cannot be lowered", found=use.owner.name)
        op.erase()
    for argument, cast, kind in pending:
        argument.set_type(kind)
        cast.result.replace_all_uses_with(argument)
        cast.erase()
    inputs = [argument.type for argument in entry.arguments]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
    if "arg_attrs" in kernel.attributes:
        del kernel.attributes["arg_attrs"]


def scalar_of(kernel: Op, argument: ir.Value, i64: ir.Type) -> ir.Operation:
    """Has the body take a scalar from an i64 argument that will be in its place.

    Returns:
        What stands for the argument for now, of type i64.
    """
    kind = argument.type
    bits = ir.Operation.create("builtin.unrealized_conversion_cast", [i64], [argument])
    made: ir.OpView
    if isinstance(kind, ir.IndexType):
        made = arith.IndexCastOp(kind, bits.result)
    elif isinstance(kind, ir.IntegerType) and kind.width < 64:
        made = arith.TruncIOp(kind, bits.result)
    elif isinstance(kind, (ir.F16Type, ir.F32Type, ir.F64Type)):
        width = ir.IntegerType.get_signless(kind.width)
        narrow = bits.result if kind.width == 64 else arith.TruncIOp(width, bits.result).result
        made = arith.BitcastOp(kind, narrow)
    else:
        fail(kernel, "has an argument that is neither a memref nor a number", found=str(kind))
    argument.replace_all_uses_except(made.result, bits)
    return bits
