"""Checks of the operations in kernels before they become native code of this process.

A kernel runs on the host. One that loads from a host address, calls into the host's libraries or
recurses without end could take the process down with it, so functions may compute, branch, call
each other without a cycle, and reach memory only through the intrinsics. A division has a trap on
the host and none here: its divisor goes through `davinci.divisor`, which reports zero as a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from davinci.errors import CompileError, shipped
from davinci.isa.core import LOCATION_SHIFT
from davinci.mlir import Op, callee_of, ir, llvm, location_text, type_text
from davinci.native import half
from davinci.passes.pipeline.base import fail
from davinci.runtime.intrinsics import signature

INTRINSIC, RESERVED = "hivm.", "davinci."


def _named(prefix: str, names: str) -> frozenset[str]:
    return frozenset(f"{prefix}{name}" for name in names.split())


OPERATIONS = _named(
    "llvm.",
    "add sub mul sdiv udiv srem urem and or xor shl lshr ashr icmp select "
    "fadd fsub fmul fdiv frem fneg fcmp trunc zext sext fptrunc fpext fptosi fptoui sitofp "
    "uitofp bitcast inttoptr ptrtoint addrspacecast getelementptr freeze extractvalue "
    "insertvalue mlir.constant mlir.undef mlir.poison mlir.zero br cond_br switch call return",
)
"""Operations of the scalar unit: nothing that reaches memory or leaves the program."""

MATH = _named(
    "llvm.intr.",
    "abs bitreverse bswap ctlz ctpop cttz fshl fshr smax smin umax umin sadd.sat ssub.sat "
    "uadd.sat usub.sat sadd.with.overflow ssub.with.overflow smul.with.overflow "
    "uadd.with.overflow usub.with.overflow umul.with.overflow ceil copysign cos exp exp10 "
    "exp2 fabs floor fma fmuladd is.fpclass log log10 log2 maximum maxnum minimum minnum "
    "nearbyint pow powi rint round roundeven sin sqrt tan tanh trunc",
)
"""LLVM's intrinsics that only compute."""

LIBM = dict.fromkeys(
    _named(
        "",
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor "
        "log log10 log1p log2 rint round roundeven sin sinh sqrt tan tanh trunc",
    ),
    1,
) | {"atan2": 2, "copysign": 2, "fmod": 2, "pow": 2, "fma": 3}
"""Functions of the C library that upstream's conversion of `math` calls: number of arguments."""

_TYPES = re.compile(
    r"i[1-9]|i[1-5]\d|i6[0-4]|f16|f32|f64|!llvm\.ptr(<\d+>)?|!llvm\.struct<\(i\d\d?, i1\)>"
)

DIVISIONS = {"llvm.sdiv": "s", "llvm.srem": "s", "llvm.udiv": "u", "llvm.urem": "u"}
"""Operations that divide integers, signed or unsigned."""


def check_intrinsic(function: Op, name: str) -> None:
    """Checks the declaration of an intrinsic.

    Raises:
        CompileError: there is none of that name, it has another type, or a body of its own.
    """
    where = location_text(function.location)
    expected = signature(name)
    if expected is None:
        raise CompileError(
            "no such intrinsic",
            where=where,
            found=f"@{name}",
            expected="hivm. and the name of an instruction with its type, as in @hivm.vadd.f32",
            hint=f"see {shipped('instructions.md')}",
        )
    found = str(function.attributes["function_type"])
    if found != str(ir.TypeAttr.get(ir.Type.parse(expected))):
        raise CompileError(
            f"the intrinsic @{name} has another type", where=where, found=found, expected=expected
        )
    if function.regions[0].blocks:
        fail(function, f"defines the intrinsic @{name}", expected="a declaration")


def check_signature(kernel: Op, name: str) -> None:
    """A kernel takes addresses in GM and scalars of 64 bits, and gives nothing back."""
    if not kernel.regions[0].blocks:
        fail(kernel, f"declares kernel @{name}", expected="a body")
    found = ir.TypeAttr(kernel.attributes["function_type"]).value
    arguments = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    pointers = ", ".join("i64" if type_text(kind) == "i64" else "ptr<1>" for kind in arguments)
    expected = f"!llvm.func<void ({pointers})>"
    if found != ir.Type.parse(expected):
        fail(kernel, f"kernel @{name} has a wrong type", found=str(found), expected=expected)


def check_name(function: Op, name: str) -> None:
    """Names that begin with `davinci.`, and those of conversions of half precision, are those of
    the runtime's own functions."""
    if name.startswith(RESERVED) or name in half.NAMES:
        fail(function, "has a reserved name", found=f"@{name}", hint="rename the function")


def check_functions(functions: dict[str, Any]) -> dict[str, set[str]]:
    """Checks the functions of a library, by name, at the llvm level.

    Returns:
        By name all that each calls, itself or in what it calls.

    Raises:
        CompileError: an operation that the scalar unit has not, a function of the host, or
            recursion.
    """
    called = {
        name: {_check_operation(op) for op in _operations(function)}
        for name, function in functions.items()
    }
    callees = {name: found & functions.keys() for name, found in called.items()}
    for name in set().union(*callees.values()):
        if not functions[name].regions[0].blocks:
            _check_external(functions[name], name)
    reached = {name: _reached(name, callees) for name in functions}
    for name, function in functions.items():
        if name in reached[name]:
            fail(function, f"@{name} calls itself", expected="calls without a cycle")
    return {
        name: called[name].union(*(called[callee] for callee in reached[name]))
        for name in functions
    }


def guard_divisions(functions: dict[str, Any], locations: list[str]) -> set[str]:
    """Sends divisors that may be zero through `@davinci.divisor.*`; appends to `locations`.

    Returns:
        The kinds used: "s32" of signed, "u64" of unsigned divisions, for example.
    """
    kinds: set[str] = set()
    i64 = ir.IntegerType.get_signless(64)
    for function in functions.values():
        for op in list(_operations(function)):
            if op.name not in DIVISIONS or _is_safe(op.operands[1]):
                continue
            divided, by = op.operands
            kind = f"{DIVISIONS[op.name]}{by.type.width}"
            kinds.add(kind)
            tag = ir.IntegerAttr.get(i64, len(locations) << LOCATION_SHIFT)
            locations.append(location_text(op.location))
            with ir.InsertionPoint(op), op.location:
                number = ir.Operation.create("llvm.mlir.constant", [i64], [], {"value": tag}).result
                callee = f"{RESERVED}divisor.{kind}"
                call = llvm.CallOp(by.type, [divided, by, number], [], [], callee=callee)
            op.operands[1] = call.operation.results[0]
    return kinds


def _operations(function: Op) -> Iterator[Any]:
    for region in function.regions:
        for block in region:
            for view in block.operations:
                yield view.operation


def _check_external(function: Op, name: str) -> None:
    """A function without a body is one of the C library's, of f32 (`expf`) or f64 (`exp`)."""
    element, base = ("f64", name) if name in LIBM else ("f32", name.removesuffix("f"))
    found = str(ir.TypeAttr(function.attributes["function_type"]).value)
    if base not in LIBM:
        fail(
            function,
            "is a function of the host",
            found=f"@{name}",
            expected="a body, an intrinsic (hivm.) or a function of the C library's mathematics",
        )
    expected = f"!llvm.func<{element} ({', '.join([element] * LIBM[base])})>"
    if found != expected:
        fail(function, f"declares @{name} wrongly", found=found, expected=expected)


def _check_operation(op: Op) -> str:
    """Returns the function that an operation calls, "" for none."""
    if op.name not in OPERATIONS and op.name not in MATH:
        fail(
            op,
            "is no operation of the scalar unit",
            expected="arithmetic, branches and calls, at the llvm level",
            hint="memory is reached by hivm.ld and hivm.st; other hivm operations stand in kernels",
        )
    for result in op.results:
        if not _TYPES.fullmatch(type_text(result.type)):
            expected = "integers up to i64, f16, f32, f64, pointers"
            fail(
                op, "has a type the scalar unit has not", found=str(result.type), expected=expected
            )
    if op.name != "llvm.call":
        return ""
    if "callee" not in op.attributes:
        fail(op, "calls an address", expected="a function by its name")
    return callee_of(op)


def loaded_arguments(kernel: Op) -> frozenset[int]:
    """Numbers of the arguments from whose memory the scalar unit may load.

    An address reaches a load through arithmetic and blocks. One that reaches anything else, a
    function for example, counts as loaded from.
    """
    arguments = kernel.regions[0].blocks[0].arguments
    return frozenset(i for i, argument in enumerate(arguments) if _reaches_load(argument))


def _reaches_load(address: Any) -> bool:
    seen, pending = {address}, [address]
    while pending:
        for use in pending.pop().uses:
            op = use.owner.operation
            if op.name == "llvm.call":
                callee = callee_of(op)
                if not callee.startswith(INTRINSIC) or callee.startswith(f"{INTRINSIC}ld."):
                    return True
                continue  # what an instruction gives is no address
            targets = [argument for block in op.successors for argument in block.arguments]
            found = {*op.results, *targets} - seen
            if not op.results and not op.successors:
                return True
            seen |= found
            pending += found
    return False


def _reached(name: str, callees: dict[str, set[str]]) -> set[str]:
    """Functions that calls from this one come to; itself if they go in a circle."""
    seen: set[str] = set()
    pending = list(callees[name])
    while pending:
        callee = pending.pop()
        if callee not in seen:
            seen.add(callee)
            pending += callees[callee]
    return seen


def _is_safe(divisor: Any) -> bool:
    """Says whether a divisor is a constant by which division is defined: neither 0 nor -1."""
    owner = divisor.owner
    if isinstance(owner, ir.Block) or owner.name != "llvm.mlir.constant":
        return False
    return ir.IntegerAttr(owner.attributes["value"]).value not in (0, -1)
