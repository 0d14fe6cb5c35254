"""convert-hivm-to-llvm: packs instruction fields into configuration words and calls intrinsics.

before:
    func.func @k(%x: !llvm.ptr<1>) attributes {ascend.kernel} {
      "hivm.vadd"(%d, %a, %b, %n) {type = "f32", dynamic = ["repeat"], dst_blk_stride = 1, ...}
    }
after:
    llvm.func @k(%x: !llvm.ptr<1>) attributes {ascend.kernel} {
      %1 = llvm.shl %n, %c56
      %2 = llvm.or %1, %fields
      llvm.call @hivm.vadd.f32(%d, %a, %b, %2, %tag)
    }

A field that is known ends up in one constant of its word; a dynamic one is shifted and or-ed in at
run time. The last operand, the tag, counts the scalar operations since the instruction before in
the same basic block (bits 16..31) and names the source location (bits 32..63), an index into the
module attribute `hivm.locations`. The rest of the kernel is lowered by the upstream conversions.

Instructions that the machine has not, or not on the kind of core that the kernel's `ascend.core`
names, are errors. Needs kernels at the hivm level (`convert-cce-to-hivm`). Everything outside
kernels, and kernels that are at the llvm level already, stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.hivm.ops import SCALAR_TYPES
from davinci.isa import INSTRUCTIONS, Instruction, Pipe
from davinci.isa.core import LOCATION_SHIFT, MOST_SCALAR_OPS, PIPE_FIELDS, SCALAR_OPS_SHIFT
from davinci.machine import Machine
from davinci.machine.legality import illegal_instruction, illegal_pipes
from davinci.mlir import (
    Op,
    arith,
    callee_of,
    ir,
    location_text,
    operations,
    run_unverified,
    symbol_name,
    type_text,
)
from davinci.passes import builder
from davinci.passes.analysis.origins import members
from davinci.passes.pipeline.base import Pass, fail, option, register_pass

WORD = (1 << 64) - 1

UPSTREAM = (
    "builtin.module(canonicalize,cse,convert-scf-to-cf,convert-math-to-funcs,"
    "math-expand-ops{ops=rsqrt},convert-math-to-libm,convert-math-to-llvm,convert-to-llvm,"
    "reconcile-unrealized-casts)"
)
"""Upstream's passes from scf, arith, math and func to llvm.

The library comes first: what convert-math-to-llvm makes of log1p and expm1 loses small arguments.
The pass would also call a function for rsqrt, which the library has not: a division of 1 by sqrt.
"""

INTRINSICS: dict[str, dict[str, bool]] = {
    "copysign": {},
    "ctpop": {},
    "ctlz": {"is_zero_poison": False},
    "cttz": {"is_zero_poison": False},
}
"""Operations of math that are intrinsics of LLVM, and the attributes of these."""

FREE = (
    "arith.bitcast",
    "arith.constant",
    "arith.index_cast",
    "builtin.unrealized_conversion_cast",
    "llvm.inttoptr",
    "llvm.mlir.constant",
    "llvm.ptrtoint",
)
"""Operations that cost the scalar unit nothing."""

NAME_PIPES = ("flag", "barrier", "cross_core_flag", "turn")
"""Timing rules of instructions that name pipes."""

SCALAR_ACCESSES = ("hivm.ld", "hivm.st")
"""Operations without records."""

SPECIAL_REGISTERS = ("hivm.get_block_idx", "hivm.get_block_num", "hivm.get_sub_block_idx")


@register_pass
@dataclass(frozen=True)
class ConvertHivmToLlvmPass(Pass):
    """Pack instruction fields into configuration words and lower kernels to the LLVM dialect."""

    NAME = "convert-hivm-to-llvm"

    machine: str = option("ascend910", "machine file that says what instructions there are")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        for module, kernels in modules_with_kernels(op):
            locations = Locations.of(module)
            for kernel in kernels:
                lower_instructions(kernel, machine, locations)
            lower_functions(module)
            module.attributes["hivm.locations"] = ir.ArrayAttr.get(
                [ir.StringAttr.get(text) for text in locations.texts]
            )
            if any(locations.members):
                module.attributes["hivm.members"] = builder.as_attribute(locations.members)


def modules_with_kernels(root: Op) -> list[tuple[Op, list[Op]]]:
    """Every module at or below `root` that directly holds kernels not yet in LLVM, with those."""
    found: list[tuple[Op, list[Op]]] = []

    def visit(op: Op) -> ir.WalkResult:
        if op.name == "builtin.module":
            functions: list[Op] = [o.operation for o in op.regions[0].blocks[0].operations]
            kernels = [f for f in functions if f.name == "func.func" and is_kernel(f)]
            if kernels:
                found.append((op, kernels))
            return ir.WalkResult.ADVANCE
        return ir.WalkResult.SKIP

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def core_of(kernel: Op, machine: Machine) -> str:
    """The kind of core that a kernel is for, as the machine file names it.

    Raises:
        CompileError: the machine has no such cores.
    """
    core: str = attribute(kernel, "ascend.core", "aicore").upper()
    if core not in machine.core_types:
        fail(
            kernel,
            f"is not for the cores of {machine.name}",
            found=f'ascend.core = "{core.lower()}"' if "ascend.core" in kernel.attributes else "",
            expected=" or ".join(
                f'ascend.core = "{name.lower()}"' if machine.split else "no ascend.core"
                for name in machine.core_types
            ),
        )

    return core


def is_kernel(function: Op) -> bool:
    return "ascend.kernel" in function.attributes


@dataclass
class Locations:
    """Numbers the source locations of a module's instructions; 0 is unknown.

    Attributes:
        members: of each, the operators of its kernel that are there; see `analysis.origins`.
        last: the location that was asked for last, which is often the next one too.
    """

    texts: list[str] = field(default_factory=lambda: [""])
    members: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    numbers: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=lambda: {("", ()): 0})
    last: tuple[ir.Location, int] | None = None

    @staticmethod
    def of(module: Op) -> Locations:
        """Starts from the locations the module already lists."""
        texts = list(attribute(module, "hivm.locations", [""]))
        given = [tuple(each) for each in attribute(module, "hivm.members", [])][: len(texts)]
        members = given + [()] * (len(texts) - len(given))
        keys = zip(texts, members, strict=True)
        return Locations(texts, members, {key: i for i, key in enumerate(keys)})

    def number(self, location: ir.Location) -> int:
        if self.last is None or location != self.last[0]:
            self.last = location, self._number(location)
        return self.last[1]

    def _number(self, location: ir.Location) -> int:
        text = location_text(location)
        key = "" if text == "unknown" else text, members(location)
        if key not in self.numbers:
            self.numbers[key] = len(self.texts)
            self.texts.append(key[0])
            self.members.append(key[1])
        return self.numbers[key]


def lower_instructions(kernel: Op, machine: Machine, locations: Locations) -> None:
    """Replaces the hivm operations of a kernel by calls, block by block."""
    records = Records(machine, core_of(kernel, machine))
    blocks: list[ir.Block] = list(kernel.regions[0])
    if not blocks:
        return
    constants = Constants(blocks[0])
    while blocks:
        block = blocks.pop()
        # A loop's body is entered after an increment, a comparison and a branch.
        scalar_ops = 3 if block.owner.name == "scf.for" else 0
        for view in list(block.operations):
            op = view.operation
            name = op.name
            for region in op.regions:
                blocks += list(region)
            if name.startswith(("ascend.", "cce.", "memref.")):
                fail(op, "is not at the hivm level", hint="run ascend-to-cce and cce-to-hivm first")
            if not name.startswith("hivm."):
                scalar_ops += name not in FREE
                continue
            place = op.location
            with ir.InsertionPoint(op), place:
                if name in SPECIAL_REGISTERS:
                    scalar_ops += 1
                    call(op, name, [])
                    continue
                record = None if name in SCALAR_ACCESSES else records.of(op)
                lower_instruction(op, record, constants, scalar_ops, locations.number(place))
            scalar_ops = 0


class Records:
    """Records of the instructions of a kind of core."""

    def __init__(self, machine: Machine, core: str) -> None:
        self._machine, self._core = machine, core
        self._legal: dict[tuple[str, str], Instruction] = {}

    def of(self, op: Op) -> Instruction:
        """The record of an operation.

        Raises:
            CompileError: that kind of core of the machine has no such instruction.
        """
        key = op.name, attribute(op, "type", "")
        record = self._legal.get(key)
        if record is None:
            record = self._legal[key] = self._find(op, *key)
        if record.timing in NAME_PIPES:
            fields = {name: attribute(op, name, int(Pipe.S)) for name in PIPE_FIELDS}
            if message := illegal_pipes(self._machine, self._core, record, fields):
                fail(op, f"is illegal: {message}")
        return record

    def _find(self, op: Op, name: str, kind: str) -> Instruction:
        name = name.removeprefix("hivm.")
        record = INSTRUCTIONS.get(f"{name}.{kind}" if kind else name)
        if record is None:
            fail(op, "is no instruction", found=f"type {kind!r}")
        if message := illegal_instruction(self._machine, self._core, record):
            fail(op, f"is illegal: {message}")
        return record


class Constants:
    """64-bit constants of a kernel, each made once, in front of its first block's operations."""

    def __init__(self, entry: ir.Block) -> None:
        self._entry = entry
        self._type = ir.IntegerType.get_signless(64)
        self._known: dict[int, ir.Value] = {}

    def of(self, value: int) -> ir.Value:
        """The constant of the bits of `value`."""
        if value not in self._known:
            signed = value - (1 << 64) if value >> 63 else value
            attr = ir.IntegerAttr.get(self._type, signed)
            # A point of its own each time: it is in front of an operation, which may be erased.
            with ir.InsertionPoint.at_block_begin(self._entry), ir.Location.unknown():
                self._known[value] = arith.ConstantOp(self._type, attr).result
        return self._known[value]


def lower_instruction(
    op: Op, record: Instruction | None, constants: Constants, scalar_ops: int, location: int
) -> None:
    """Replaces one hivm operation by the call of its intrinsic."""

    def tag(scalar_ops: int) -> ir.Value:
        held = min(scalar_ops, MOST_SCALAR_OPS)
        return constants.of(held << SCALAR_OPS_SHIFT | location << LOCATION_SHIFT)

    if record is None:
        call(op, scalar_access_name(op), [*op.operands, tag(scalar_ops)])
        return
    operands, packing_ops = packed_operands(op, record, constants)
    call(op, f"hivm.{record.mnemonic}", [*operands, tag(scalar_ops + packing_ops)])


def scalar_access_name(op: Op) -> str:
    """`hivm.ld.f32` in GM, `hivm.ld.ub.f32` in UB."""
    value = op.results[0] if op.results else op.operands[1]
    element = type_text(value.type)
    if element not in SCALAR_TYPES:
        fail(
            op,
            "accesses a type the scalar unit has not",
            found=element,
            expected=", ".join(SCALAR_TYPES),
        )
    spaces = {"!llvm.ptr<1>": "", "!llvm.ptr<6>": "ub."}
    pointer = str(op.operands[0].type)
    if pointer not in spaces:
        fail(
            op, "accesses a memory the scalar unit cannot reach", found=pointer, expected="GM or UB"
        )
    return f"{op.name}.{spaces[pointer]}{element}"


def packed_operands(
    op: Op, record: Instruction, constants: Constants
) -> tuple[list[ir.Value], int]:
    """Addresses, then configuration words; and the number of operations that packing takes."""
    operands = list(op.operands)
    addresses = operands[: len(record.operands)]
    dynamic = {}
    if len(operands) > len(addresses):
        names = attribute(op, "dynamic", [])
        dynamic = dict(zip(names, operands[len(addresses) :], strict=True))
    attributes = op.attributes
    static = [0] * record.words
    parts: list[list[ir.Value]] = [[] for _ in range(record.words)]
    count = 0
    for f in record.fields:
        if f.name in dynamic:
            parts[f.word].append(shifted(dynamic[f.name], f.lo, constants))
            count += f.lo > 0
        elif f.name in attributes or not f.optional:
            # A field as wide as the word may be negative as an attribute.
            static[f.word] |= (attributes[f.name].value << f.lo) & WORD
    words = []
    for known, computed in zip(static, parts, strict=True):
        if known or not computed:
            computed = [*computed, constants.of(known)]
        word = computed[0]
        for part in computed[1:]:
            word = arith.OrIOp(word, part).result
            count += 1
        words.append(word)
    return addresses + words, count


def shifted(value: ir.Value, bits: int, constants: Constants) -> ir.Value:
    return arith.ShLIOp(value, constants.of(bits)).result if bits else value


def call(op: Op, callee: str, operands: list[ir.Value]) -> None:
    """Replaces `op` by a call of `callee`."""
    results = list(op.results)
    # The class of llvm.call takes four times as long.
    built = ir.Operation.create(
        "llvm.call",
        results=[result.type for result in results],
        operands=operands,
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(callee),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    for result, value in zip(results, built.results, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def lower_functions(module: Op) -> None:
    """Lowers the kernels of `module`, and the functions they call, by upstream's passes.

    They are moved to a module of their own meanwhile, because the host's functions, which may
    stand beside them, must stay as they are.
    """
    body = module.regions[0].blocks[0]
    scratch = ir.Module.create(ir.Location.unknown())
    for op in device_functions(body):
        scratch.body.append(op)
    declare(scratch)
    use_intrinsics(scratch.operation)
    run_unverified(scratch.operation, UPSTREAM)
    for view in list(scratch.body.operations):
        body.append(view.operation)


def use_intrinsics(root: Op) -> None:
    """Makes intrinsics of operations that upstream's library pass refuses."""
    for op in operations(root, *(f"math.{name}" for name in INTRINSICS)):
        name = op.name.removeprefix("math.")
        with op.location, ir.InsertionPoint(op):
            kind = op.result.type
            intrinsic = builder.op(
                f"llvm.intr.{name}", list(op.operands), [kind], **INTRINSICS[name]
            )
        op.result.replace_all_uses_with(intrinsic.result)
        op.erase()


def device_functions(body: ir.Block) -> list[Op]:
    """Kernels, the functions reached from them by calls, and LLVM functions, in order."""
    functions = {
        symbol_name(view): view.operation
        for view in body.operations
        if view.operation.name in ("func.func", "llvm.func")
    }
    reached = {n for n, f in functions.items() if is_kernel(f) or f.name == "llvm.func"}
    pending = list(reached)
    while pending:
        for op in operations(functions[pending.pop()], "func.call"):
            callee = callee_of(op)
            if callee in functions and callee not in reached:
                reached.add(callee)
                pending.append(callee)
    return [f for n, f in functions.items() if n in reached]


def declare(module: ir.Module) -> None:
    """Declares every intrinsic that is called and not yet declared, in order of the first call."""
    declared = {symbol_name(o) for o in module.body.operations}
    signatures: dict[str, str] = {}
    for op in operations(module.operation, "llvm.call"):
        if "callee" in op.attributes:  # the runtime refuses the others
            name = callee_of(op)
            if name not in declared:
                declared.add(name)
                signatures[name] = signature(op)
    text = "\n".join(f"llvm.func @{n}{s}" for n, s in signatures.items())
    declarations = ir.Module.parse(text)
    start = ir.InsertionPoint.at_block_begin(module.body)
    for view in list(declarations.body.operations):
        start.insert(view.operation.detach_from_parent())


def signature(op: Op) -> str:
    arguments = ", ".join(str(v.type) for v in op.operands)
    return f"({arguments})" + (f" -> {op.results[0].type}" if op.results else "")
