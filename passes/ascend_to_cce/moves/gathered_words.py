"""Elements of a table in UB at places in UB, gathered by the scalar unit in words of 64 bits.

    loop over words:  load two places as one word
                      load the element at each of them
                      put as many elements as fit into a word, and store it

An access to UB takes the scalar unit several times as long as an operation on what it has loaded.
An element of 32 bits, whose place and result are half a word each, takes two accesses, not three.
"""

from __future__ import annotations

from davinci.mlir import arith, ir, memref
from davinci.passes.builder import add, as_value, for_loop, mul, viewed
from davinci.schedule.moves.element_gathers import words_of
from davinci.units import BYTE_BITS

PLACE_BITS, WORD_BITS = 32, 64
"""Bits of a place, and of the widest word that the scalar unit loads and stores."""

PLACES = WORD_BITS // PLACE_BITS
"""Places of a word."""


def gather_by_words(table: ir.Value, places: ir.Value, found: ir.Value, count: int) -> None:
    """found[i] = table[places[i]] for i below `count`: whole words of places and results in a loop,
    then what is left element by element.

    Args:
        table, places, found: arrays in UB that are views of buffers of bytes.
    """
    width = ir.MemRefType(table.type).element_type.width
    each = words_of(count, width // BYTE_BITS)
    words = count // each if each else 0
    if words:
        elements, pairs, results = _seen(table, width), _seen(places), _seen(found)
        with for_loop(0, words) as number:
            _words(elements, pairs, results, number, each)
    if words * each < count:
        with for_loop(words * each, count) as number:
            place = memref.LoadOp(places, [number]).result
            memref.StoreOp(memref.LoadOp(table, [_as_index(place)]).result, found, [number])


def _words(
    table: ir.Value, places: ir.Value, found: ir.Value, number: ir.Value, count: int
) -> None:
    """The elements of the step `number` of a loop over `count` at a time.

    Args:
        table: of integers as wide as elements.
        places, found: of words.
    """
    width = ir.MemRefType(table.type).element_type.width
    fitting = WORD_BITS // width
    elements: list[ir.Value] = []
    for i in range(count // PLACES):
        at = as_value(add(mul(number, count // PLACES), i))
        pair = memref.LoadOp(places, [at]).result
        low = arith.TruncIOp(_bits(PLACE_BITS), pair).result
        high = arith.ShRUIOp(pair, _number(PLACE_BITS)).result
        for place in (low, high):
            element = memref.LoadOp(table, [_as_index(place)]).result
            if width < WORD_BITS:
                element = arith.ExtUIOp(_bits(WORD_BITS), element).result
            elements.append(element)
    for i in range(count // fitting):
        word, *others = elements[i * fitting : (i + 1) * fitting]
        for part, other in enumerate(others, 1):
            word = arith.OrIOp(word, arith.ShLIOp(other, _number(part * width)).result).result
        memref.StoreOp(word, found, [as_value(add(mul(number, count // fitting), i))])


def _bits(width: int) -> ir.IntegerType:
    return ir.IntegerType.get_signless(width)


def _number(value: int) -> ir.Value:
    """A constant word."""
    return arith.ConstantOp(_bits(WORD_BITS), ir.IntegerAttr.get(_bits(WORD_BITS), value)).result


def _seen(buffer: ir.Value, width: int = WORD_BITS) -> ir.Value:
    """The bytes of a buffer as words of so many bits."""
    raw = buffer.owner.operands[0]
    (size,) = ir.MemRefType(raw.type).shape
    return viewed(raw, [size * BYTE_BITS // width], _bits(width))


def _as_index(place: ir.Value) -> ir.Value:
    return arith.IndexCastOp(ir.IndexType.get(), place).result
