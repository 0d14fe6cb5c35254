"""Where a memref lies: a base pointer and a byte offset, followed through its chain of views.

The base is a kernel argument in GM, or the constant that plan-memory gave a buffer on chip. Views
add to the offset: what is static is folded, what is dynamic is computed where the view stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import space_name
from davinci.errors import Invalid
from davinci.isa.core import Space
from davinci.mlir import Op, arith, ir, llvm
from davinci.passes.analysis.lifetimes import VIEWS
from davinci.passes.builder import IndexLike
from davinci.passes.pipeline.base import fail

GEP_DYNAMIC = -(1 << 31)
"""What stands for an SSA index among the constant indices of llvm.getelementptr."""


@dataclass(frozen=True)
class Shift:
    """A distance in bytes: a constant and an i64 value, or None for no dynamic part."""

    constant: int = 0
    dynamic: ir.Value | None = None

    def plus(self, other: Shift) -> Shift:
        if self.dynamic is None or other.dynamic is None:
            dynamic = other.dynamic if self.dynamic is None else self.dynamic
        else:
            dynamic = arith.AddIOp(self.dynamic, other.dynamic).result
        return Shift(self.constant + other.constant, dynamic)


@dataclass(frozen=True)
class Address:
    """A byte address: in GM a distance from the pointer `base`; on chip `base` is None."""

    space: Space
    base: ir.Value | None
    shift: Shift

    @property
    def place(self) -> int | None:
        """The byte on chip, None in GM and where it depends on a value."""
        known = self.base is None and self.shift.dynamic is None
        return self.shift.constant if known else None

    def plus(self, shift: Shift) -> Address:
        return replace(self, shift=self.shift.plus(shift))

    def pointer(self) -> ir.Value:
        """Builds the `!llvm.ptr`."""
        kind = pointer_type(self.space)
        base, constant = self.base, self.shift.constant
        if base is None:
            base, constant = _built("llvm.inttoptr", kind, [constant_i64(constant)]), 0
        if self.shift.dynamic is not None:
            base = step(base, kind, self.shift.dynamic)
        return step(base, kind, constant) if constant else base

    def integer(self) -> ir.Value:
        """Builds the address as an i64, for on-chip memories."""
        total = constant_i64(self.shift.constant)
        if self.shift.dynamic is None:
            return total
        return arith.AddIOp(self.shift.dynamic, total).result


def pointer_type(space: Space) -> ir.Type:
    return llvm.PointerType.get(address_space=int(space))


def _built(
    name: str,
    kind: ir.Type,
    operands: list[ir.Value],
    attributes: dict[str, ir.Attribute] | None = None,
) -> ir.Value:
    """The result of an operation; those of instructions are many, and classes take longer."""
    return ir.Operation.create(
        name, results=[kind], operands=operands, attributes=attributes
    ).result


def step(base: ir.Value, kind: ir.Type, distance: IndexLike) -> ir.Value:
    """`llvm.getelementptr` by bytes; `distance` is an int or an i64 value."""
    static, indices = GEP_DYNAMIC, list[ir.Value]()
    if not isinstance(distance, int):
        indices = [distance]
    elif -(1 << 31) < distance < 1 << 31:
        static = distance
    else:
        indices = [constant_i64(distance)]
    raw = ir.DenseI32ArrayAttr.get([static])
    byte = ir.IntegerType.get_signless(8)
    attributes = {"rawConstantIndices": raw, "elem_type": ir.TypeAttr.get(byte)}
    return _built("llvm.getelementptr", kind, [base, *indices], attributes)


def constant_i64(value: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    return _built("arith.constant", i64, [], {"value": ir.IntegerAttr.get(i64, value)})


def scaled(index: ir.Value, scale: int) -> ir.Value:
    """index * scale as an i64 value."""
    i64 = ir.IntegerType.get_signless(64)
    value = arith.IndexCastOp(i64, index).result
    return value if scale == 1 else arith.MulIOp(value, constant_i64(scale)).result


class Addresses:
    """The addresses of a kernel's memrefs, found once and remembered."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Address] = {}

    def set(self, value: ir.Value, address: Address) -> None:
        self._known[value] = address

    def of(self, value: ir.Value) -> Address:
        """The address of the first element of a memref value."""
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._find(value)
        return found

    def _find(self, value: ir.Value) -> Address:
        op = value.owner
        name = op.name
        if name == "memref.alloc":
            return alloc_address(op)
        if name == "memref.view":
            source = self.of(op.operands[0])
            with ir.InsertionPoint(op), op.location:
                return source.plus(term(op.operands[1], 1))
        if name not in VIEWS:
            fail(
                op,
                "makes a memref that cannot be traced to a buffer",
                expected=f"memref.alloc, a kernel argument, {', '.join(sorted(VIEWS))}",
            )
        source = self.of(op.operands[0])
        if name == "memref.subview":
            with ir.InsertionPoint(op), op.location:
                return source.plus(subview_shift(op))
        if name == "memref.reinterpret_cast":
            base = self._root(op.operands[0])
            with ir.InsertionPoint(op), op.location:
                return base.plus(reinterpret_shift(op))
        return source

    def _root(self, value: ir.Value) -> Address:
        """The address of the buffer under a chain of views: reinterpret_cast counts from there."""
        while not isinstance(value, ir.BlockArgument) and value.owner.name in VIEWS:
            if value.owner.name == "memref.view":
                break  # it starts a buffer of another element type
            value = value.owner.operands[0]
        return self.of(value)


def alloc_address(op: Op) -> Address:
    try:
        space = Space[space_name(op.results[0].type)]
    except Invalid as error:
        fail(op, str(error))
    if space is Space.GM:
        fail(op, "allocates in GM inside a kernel", expected="a buffer on chip or an argument")
    address = attribute(op, "cce.address")
    if address is None:
        fail(
            op, "has no address", expected="the attribute cce.address", hint="run plan-memory first"
        )
    return Address(space, None, Shift(address))


def element_bytes(value: ir.Value) -> int:
    element = ir.MemRefType(value.type).element_type
    return max(1, (int(element.width) + 7) // 8)


def subview_shift(op: Op) -> Shift:
    """Sum of offset times the source's stride, over the dimensions."""
    source = op.operands[0]
    strides, _ = ir.MemRefType(source.type).get_strides_and_offset()
    width = element_bytes(source)
    return offsets_shift(op, [s * width for s in strides])


def reinterpret_shift(op: Op) -> Shift:
    return offsets_shift(op, [element_bytes(op.operands[0])])


def offsets_shift(op: Op, scales: list[int]) -> Shift:
    """The op's offsets, static ones from `static_offsets`, dynamic ones from its operands."""
    dynamic = ir.ShapedType.get_dynamic_size()
    operands = iter(list(op.operands)[1:])
    shift = Shift()
    for offset, scale in zip(attribute(op, "static_offsets"), scales, strict=True):
        shift = shift.plus(
            term(next(operands), scale) if offset == dynamic else Shift(offset * scale)
        )
    return shift


def term(index: ir.Value, scale: int) -> Shift:
    """index * scale bytes; a constant index is folded."""
    owner = None if isinstance(index, ir.BlockArgument) else index.owner
    if owner is not None and owner.name == "arith.constant":
        return Shift(ir.IntegerAttr(owner.attributes["value"]).value * scale)
    return Shift(0, scaled(index, scale)) if scale else Shift()
