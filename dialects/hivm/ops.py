"""The hivm dialect: the machine's instructions, one operation per instruction name.

The operations are made from the records of `davinci.isa`; nothing about an instruction is written
here. Operands are the addresses, then the dynamic fields in the order of the attribute `dynamic`:

    "hivm.vadd"(%d, %a, %b, %r) {type = "f32", dynamic = ["repeat"], dst_blk_stride = 1, ...}
        : (!llvm.ptr<6>, !llvm.ptr<6>, !llvm.ptr<6>, i64) -> ()

Five operations of the scalar unit have no record: `ld`, `st`, `get_block_idx`, `get_block_num` and
`get_sub_block_idx`.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from davinci.dialects.base import attribute_of, verifier
from davinci.errors import Invalid, did_you_mean
from davinci.isa import BY_NAME, Field, Instruction, Space
from davinci.mlir import Op, ext, ir, llvm, type_text

Operand = ext.Operand
Result = ext.Result

PSEUDO = ("scalar_access",)
"""Records that the runtime writes and no program contains."""

SCALAR_TYPES = ("i8", "i16", "i32", "i64", "f16", "f32", "f64")
"""Types that the scalar unit loads and stores."""

SCALAR_SPACES = (Space.GM, Space.UB)
"""Memories that the scalar unit reaches."""

CONSTANTS = ("arith.constant", "llvm.mlir.constant")
WORD_BITS = 64


class Hivm(ext.Dialect, name="hivm"):
    """Exact instructions on `!llvm.ptr` addresses, with their fields as attributes or operands."""


def no_field(record: Instruction, name: str, known: Iterable[str]) -> Invalid:
    """The error about a field that an instruction has not."""
    parts = [f"{record.mnemonic} has no field {name!r}", did_you_mean(name, known)]
    return Invalid("; ".join(filter(None, parts)))


def static_value(attr: ir.Attribute | None, width: int) -> int | None:
    """The value of an i64 attribute as the unsigned field it fills; None for anything else."""
    if not isinstance(attr, ir.IntegerAttr) or type_text(attr.type) != "i64":
        return None
    # Fields as wide as a word use all bits of the attribute, the sign bit too.
    return int(attr.value) % (1 << WORD_BITS) if width == WORD_BITS else int(attr.value)


def record_of(op: Op) -> Instruction:
    """The instruction record of an operation of this dialect, by its name and `type`.

    Raises:
        Invalid: there is no such instruction for this type.
    """
    name = op.operation.name.removeprefix("hivm.")
    types = BY_NAME[name]
    attr = attribute_of(op, "type")
    if attr is not None and not isinstance(attr, ir.StringAttr):
        raise Invalid("attribute type", attr, "a string")
    dtype = "" if attr is None else attr.value
    if dtype not in types:
        known = ", ".join(repr(t) for t in types)
        raise Invalid("attribute type", repr(dtype), known if "" not in types else "none")
    return types[dtype]


def dynamic_fields(op: Op) -> list[str]:
    """Names in the attribute `dynamic`, in order.

    Raises:
        Invalid: it is not an array of different strings.
    """
    attr = attribute_of(op, "dynamic")
    if attr is None:
        return []
    if not isinstance(attr, ir.ArrayAttr) or not all(isinstance(a, ir.StringAttr) for a in attr):
        raise Invalid("attribute dynamic", attr, "an array of field names")
    names = [ir.StringAttr(a).value for a in attr]
    for name in names:
        if names.count(name) > 1:
            raise Invalid("attribute dynamic names a field twice", repr(name))
    return names


def check_pointer(role: str, value: ir.Value, spaces: Sequence[Space]) -> None:
    """The value must be a pointer into one of the memories."""
    kind = value.type
    address_space = kind.address_space if isinstance(kind, llvm.PointerType) else None
    if address_space in spaces:
        return
    found = str(kind)
    if address_space in list(Space):
        found += f" ({Space(address_space).name})"
    expected = " or ".join(f"!llvm.ptr<{space.value}> ({space.name})" for space in spaces)
    raise Invalid(role, found, expected)


def check_attribute_names(op: Op, record: Instruction) -> None:
    """Attributes are `type`, `dynamic`, fields, and foreign ones with a dot in their name."""
    known = {"type", "dynamic", *(f.name for f in record.fields)}
    for name in op.attributes:
        if name not in known and "." not in name:
            raise no_field(record, name, known)


def static_fields(op: Op, record: Instruction, dynamic: Sequence[str]) -> dict[str, int]:
    """Values of the fields that are attributes.

    Raises:
        Invalid: a field is missing, given twice, not an i64, or out of range.
    """
    attributes, values = op.attributes, {}
    for field in record.fields:
        name = field.name
        if name not in attributes:
            if name not in dynamic and field.optional:
                values[name] = 0
            elif name not in dynamic:
                raise Invalid(f"field {name} is missing", "", f"{field.minimum}..{field.limit}")
            continue
        if name in dynamic:
            raise Invalid(f"field {name} is given twice", "an attribute and an operand", "one")
        value = static_value(attribute_of(op, name), field.width)
        if value is None:
            raise Invalid(f"field {name}", attributes[name], "an i64 attribute")
        check_range(field, value)
        values[name] = value
    return values


def check_range(field: Field, value: int) -> None:
    if not field.minimum <= value <= field.limit:
        expected = f"{field.minimum}..{field.limit}"
        raise Invalid(f"field {field.name} is out of range", value, expected)


def constant_field(field: Field, value: ir.Value) -> int | None:
    """What an operand is known to put into `field`: the value of a constant, None if unknown."""
    if isinstance(value, ir.BlockArgument) or value.owner.name not in CONSTANTS:
        return None
    return static_value(value.owner.attributes["value"], field.width)


class InstructionOp(Hivm.Operation):
    """An instruction with a record; its addresses and a list of dynamic fields are its operands.

    C1 `type` is one that the instruction has; absent where it has none.
    C2 no attribute is unknown; `dynamic` is an array of different field names.
    C3 every field is given once, as an i64 attribute or in `dynamic`; or not at all if optional.
    C4 static fields are within their limits, and legal together; the same for constant operands.
    C5 there is one operand for each address and dynamic field.
    C6 addresses are pointers into the memory of the record; dynamic fields are i64.
    """

    VALUES = "dynamic"  # of which constants are looked at

    @verifier
    def verify_invariants(self) -> None:
        record = record_of(self)
        check_attribute_names(self, record)
        dynamic = dynamic_fields(self)
        fields = {f.name: f for f in record.fields}
        for name in dynamic:
            if name not in fields:
                raise no_field(record, name, fields)
        values = static_fields(self, record, dynamic)
        operands = list(self.operation.operands)
        addresses = len(record.operands)
        if len(operands) != addresses + len(dynamic):
            names = [*(o.name for o in record.operands), *dynamic]
            raise Invalid("number of operands", len(operands), f"{len(names)} ({', '.join(names)})")
        for operand, value in zip(record.operands, operands[:addresses], strict=True):
            check_pointer(f"address {operand.name}", value, [operand.space])
        for name, value in zip(dynamic, operands[addresses:], strict=True):
            if type_text(value.type) != "i64":
                raise Invalid(f"type of the dynamic field {name}", value.type, "i64")
            known = constant_field(fields[name], value)
            if known is not None:
                check_range(fields[name], known)
                values[name] = known
        if len(values) == len(fields) and (message := record.check(values)):
            raise Invalid(message)


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) + "Op"


def _define(name: str, record: Instruction) -> type:
    """The operation class of the instructions called `name`; all its types have equal operands."""
    operands = {operand.name: Operand[Any] for operand in record.operands}
    namespace = {
        "__doc__": record.doc,
        "__module__": __name__,
        "__annotations__": {**operands, "dynamic_values": Sequence[Operand[Any]]},
    }
    return type(_class_name(name), (InstructionOp,), namespace, name=name)


OPERATIONS: dict[str, type] = {
    name: _define(name, next(iter(types.values())))
    for name, types in BY_NAME.items()
    if name not in PSEUDO
}
"""Operation classes by instruction name."""


def check_scalar_type(role: str, mlir_type: ir.Type) -> None:
    if type_text(mlir_type) not in SCALAR_TYPES:
        raise Invalid(role, mlir_type, ", ".join(SCALAR_TYPES))


class LdOp(Hivm.Operation, name="ld"):
    """The scalar unit loads one element.

    C1 the address lies in GM or UB. C2 the result is one of SCALAR_TYPES.
    """

    pointer: Operand[Any]
    value: Result[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_pointer("address", self.pointer, SCALAR_SPACES)
        check_scalar_type("type of the result", self.value.type)


class StOp(Hivm.Operation, name="st"):
    """The scalar unit stores one element.

    C1 the address lies in GM or UB. C2 the value is one of SCALAR_TYPES.
    """

    pointer: Operand[Any]
    value: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_pointer("address", self.pointer, SCALAR_SPACES)
        check_scalar_type("type of the value", self.value.type)


def check_i64(op: Op) -> None:
    if type_text(op.value.type) != "i64":
        raise Invalid("type of the result", op.value.type, "i64")


class GetBlockIdxOp(Hivm.Operation, name="get_block_idx"):
    """Number of this block, from 0. C1 the result is an i64."""

    value: Result[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_i64(self)


class GetBlockNumOp(Hivm.Operation, name="get_block_num"):
    """Number of blocks of the launch. C1 the result is an i64."""

    value: Result[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_i64(self)


class GetSubBlockIdxOp(Hivm.Operation, name="get_sub_block_idx"):
    """Which of its block's vector cores this is, from 0. C1 the result is an i64."""

    value: Result[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_i64(self)


def pointer_type(space: Space) -> ir.Type:
    """`!llvm.ptr<n>` of a memory."""
    return llvm.PointerType.get(address_space=space.value)


def build(
    name: str, dtype: str, addresses: Sequence[ir.Value], fields: Mapping[str, int | ir.Value]
) -> ir.Operation:
    """Builds the instruction `name` at the current insertion point.

    Args:
        name: instruction name, e.g. "vadd".
        dtype: its `type`, "" if it has none.
        addresses: pointer values, in the order of the record's operands.
        fields: every field of the record but optional ones that are 0: an int for a static one, an
            i64 value for a dynamic one.

    Raises:
        ValueError: no such instruction, or the names in `fields` are not the record's.
    """
    if dtype not in BY_NAME.get(name, {}):
        raise ValueError(f"no instruction {name!r} of type {dtype!r}")
    record = BY_NAME[name][dtype]
    names = [n for n in record.field_names if n in fields or n not in record.defaults]
    if fields.keys() != set(names):
        found = sorted(fields)
        raise ValueError(f"{record.mnemonic}: found fields {found}, expected {list(names)}")
    i64 = ir.IntegerType.get_signless(WORD_BITS)
    attributes: dict[str, Any] = {"type": ir.StringAttr.get(dtype)} if dtype else {}
    dynamic: dict[str, ir.Value] = {}
    for n in names:
        field = fields[n]
        if isinstance(field, int):
            attributes[n] = ir.IntegerAttr.get(i64, signed_word(field))
        else:
            dynamic[n] = field
    if dynamic:
        attributes["dynamic"] = ir.ArrayAttr.get([ir.StringAttr.get(n) for n in dynamic])
    return ir.Operation.create(
        f"hivm.{name}",
        operands=[*addresses, *dynamic.values()],
        attributes=attributes,
    )


def signed_word(value: int) -> int:
    """A 64-bit pattern as the signed integer that an i64 attribute holds."""
    return value - (1 << WORD_BITS) if value >> (WORD_BITS - 1) else value
