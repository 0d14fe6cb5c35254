"""The instruction records: one description per instruction, read by everything that needs it.

Importing this package defines all of them, in a fixed order, which fixes their opcodes.
"""

from davinci.isa import (  # noqa: I001  (the order gives the opcodes)
    vector,
    vector_scalar,
    convert,
    compare,
    reduce,
    cube,
    mte,
    transpose,
    control,
    fixpipe,
    gm_formats,
    cross_core,
    vector_910b,
    multiply_add,
    img2col,
    gather,
    sort,
    dequantize,
    atomic,
    fill,
    counters,
    compare_bits,
    vector_integers,
    registers,
)
from davinci.isa.core import (
    BY_OPCODE,
    DTYPES,
    INSTRUCTIONS,
    RECORD_WORDS,
    TIMING_RULES,
    Access,
    Field,
    Instruction,
    Operand,
    Pipe,
    Registers,
    Space,
    header,
)

BY_NAME: dict[str, dict[str, Instruction]] = {}
"""Records by name, then by type."""

for _record in INSTRUCTIONS.values():
    BY_NAME.setdefault(_record.name, {})[_record.type] = _record

__all__ = [
    "BY_NAME",
    "BY_OPCODE",
    "DTYPES",
    "INSTRUCTIONS",
    "RECORD_WORDS",
    "TIMING_RULES",
    "Access",
    "Field",
    "Instruction",
    "Operand",
    "Pipe",
    "Registers",
    "Space",
    "atomic",
    "compare",
    "compare_bits",
    "control",
    "convert",
    "counters",
    "cross_core",
    "cube",
    "dequantize",
    "fill",
    "fixpipe",
    "gather",
    "gm_formats",
    "header",
    "img2col",
    "mte",
    "multiply_add",
    "reduce",
    "registers",
    "sort",
    "transpose",
    "vector",
    "vector_910b",
    "vector_integers",
    "vector_scalar",
]
