"""Python functions of numbers and arrays as native code, made by the LLVM that comes with MLIR.

    LIBRARY = Library()

    @LIBRARY.entry
    def total(values: Ints, count: int) -> int:
        found = 0
        for i in range(count):
            found += values[i]
        return found

    LIBRARY.call("total", array, 10)

The functions of a library are compiled together when the first one is called, in some tenths of a
second; MLIR is imported then. They are a small part of Python, with types known beforehand:
integers of 64 bits, doubles, and one-dimensional arrays (`native.arrays`), which nothing keeps from
being indexed outside. A variable has the type of its first value. There are assignments, also of
several values to as many targets, `if`, `while`, `for` over a `range`, calls of functions of the
same library, constants of their modules, `min`, `max`, `ceil`, `float`, and `ints_at`: the array at
an address. Integers wrap around, `//` and `%` truncate, `>>` keeps the sign. Annotations name the
types of arguments and results.

Numbers of arrays of halves are singles once they are read; arithmetic on two singles is rounded to
single precision. `native.rows` has rows of 16 singles.
"""

from davinci.native.arrays import (
    Bytes,
    Floats,
    Halves,
    Ints,
    Singles,
    address,
    bytes_at,
    floats_at,
    ints_at,
)
from davinci.native.library import Library
from davinci.native.rows import (
    Row,
    Rows,
    interleaved,
    multiply_add,
    put_row,
    row,
    rows,
    spread,
    unrolled,
)

__all__ = [
    "Bytes",
    "Floats",
    "Halves",
    "Ints",
    "Library",
    "Row",
    "Rows",
    "Singles",
    "address",
    "bytes_at",
    "floats_at",
    "interleaved",
    "ints_at",
    "multiply_add",
    "put_row",
    "row",
    "rows",
    "spread",
    "unrolled",
]
