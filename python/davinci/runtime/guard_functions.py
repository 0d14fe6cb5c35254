"""Native definitions of what guards divisions and loops of the scalar unit, in the LLVM dialect."""

from __future__ import annotations

from collections.abc import Iterable

from davinci.runtime.intrinsics import (
    DIVISION_BY_ZERO,
    FAULT_FUNCTION,
    TOO_MANY_TURNS,
    TURN,
    Slot,
    Text,
    fault,
)


def guards(context: int, kinds: Iterable[str], loops: bool, faults: bool) -> str:
    """Definitions of `@davinci.divisor.*` for divisions of these kinds, of `TURN`, and of the
    function that remembers faults unless it is defined already."""
    known = f"llvm.func @{FAULT_FUNCTION}(i64, i64, i64, i64, i64)\n"
    declared = known if faults else fault(context)
    divisors = [divisor(context, kind) for kind in sorted(kinds)]
    return declared + "".join([*divisors, *([turn(context)] if loops else [])])


def turn(context: int) -> str:
    """A turn of a loop: a fault, and 1, if there were too many."""
    text = Text(context)
    zero = text.constant(0)
    left = text.arith("subi", text.load(Slot.TURNS), text.constant(1))
    text.store(left, Slot.TURNS)
    over = text.compare("slt", left, zero)
    text.do(f"scf.if {over} {{")
    arguments = f"{text.constant(TOO_MANY_TURNS)}, {zero}, {zero}, %tag, {zero}"
    text.do(f"llvm.call @davinci.fault({arguments}) : (i64, i64, i64, i64, i64) -> ()")
    text.do("}")
    text.do(f"llvm.return {over} : i1")
    return text.function(f"@{TURN}(%tag: i64) -> i1", inline=True)


def divisor(context: int, kind: str) -> str:
    """A divisor that the host can divide by: 1 for zero, a fault, and where quotients wrap around.

    `kind` is "s32" for signed numbers of 32 bits, "u64" for unsigned ones of 64.
    """
    bits, element = int(kind[1:]), f"i{kind[1:]}"
    text = Text(context)
    zero = text.constant(0)
    none = text.add(f"arith.cmpi eq, %divisor, {text.constant(0, element)} : {element}")
    text.do(f"scf.if {none} {{")
    arguments = f"{text.constant(DIVISION_BY_ZERO)}, {zero}, {zero}, %tag, {zero}"
    text.do(f"llvm.call @davinci.fault({arguments}) : (i64, i64, i64, i64, i64) -> ()")
    text.do("}")
    if kind[0] == "s":
        lowest, minus = text.constant(-1 << bits - 1, element), text.constant(-1, element)
        is_lowest = text.add(f"arith.cmpi eq, %divided, {lowest} : {element}")
        is_minus = text.add(f"arith.cmpi eq, %divisor, {minus} : {element}")
        wraps = text.add(f"arith.andi {is_lowest}, {is_minus} : i1")
        none = text.add(f"arith.ori {none}, {wraps} : i1")
    one = text.constant(1, element)
    result = text.add(f"arith.select {none}, {one}, %divisor : {element}")
    text.do(f"llvm.return {result} : {element}")
    arguments = f"%divided: {element}, %divisor: {element}, %tag: i64"
    return text.function(f"@davinci.divisor.{kind}({arguments}) -> {element}", inline=True)
