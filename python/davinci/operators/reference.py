"""The operator reference page, made from the records.

python -m davinci.tools.reference docs
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.operators import OPERATORS, Operator, VectorProgram
from davinci.operators.core import NONE
from davinci.operators.vector_program import DTYPE_OF

INTRODUCTION = """# Operators of ascend

Made from the records in `davinci.operators` by `python -m davinci.tools.reference docs`; do not
edit.

Operators are on tensors, `%r = ascend.add %a, %b : tensor<8x4xf32>`. Constraints have the numbers
that messages give. Element types are those that the operator's unit takes; others are computed in
these (bytes in wider integers, unsigned integers as signed ones, f64 as its bits) where
[passes](passes.md) have a way, and else by a kernel for the scalar unit, which takes any type.
"""

ELEMENTWISE = """## Elementwise

Each element of the result comes from the same element of the operands. The instructions are those
of the vector unit for a tile of the first type that it takes, operands all arrays; `vcmpsel` is a
comparison and a selection.
"""


def table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows]
    return [*lines, *(f"| {' | '.join(row)} |" for row in cells)]


def signature(record: Operator) -> str:
    """Operands, and attributes in braces."""
    attributes = f" {{{', '.join(record.attributes)}}}" if record.attributes else ""
    return f"`{record.name}({', '.join(record.operands)}){attributes}`"


def types(record: Operator) -> str:
    """Element types in words."""
    return ", ".join(sorted(record.types)) or "any"


def constraints(record: Operator) -> list[str]:
    return [f"C{i}: {c.__doc__}" for i, c in enumerate(record.constraints, 1)]


EXAMPLES = {"predicate": "LT", "part": 1, "zero": 3}
"""Attributes of tile rules, for their instructions."""


def instructions(record: Operator) -> str:
    """The instructions of a tile, and how often there is each."""
    kind = next(t for t in ("f32", "i16", "i32", "i64", *sorted(record.types)) if t in record.types)
    program = VectorProgram()
    boolean = record.name == "select"
    operands = [
        program.input("s8" if boolean and i == 0 else DTYPE_OF[kind])
        for i in range(len(record.operands))
    ]
    element = {"cast": "f16", "quantize": "i8"}.get(record.name, kind)
    record.tile(program, operands, EXAMPLES, element)
    names = [step.name for step in program.steps]
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{name} x {n}" if n > 1 else name for name, n in counts.items())


def section(record: Operator) -> list[str]:
    """Lines that describe an operator which is not elementwise."""
    unit = "a view of its operand, no kernel" if record.unit == NONE else f"{record.unit} unit"
    kinds = "" if record.unit == NONE else f"; element types: {types(record)}"
    lines = [f"### {record.name}", "", signature(record), "", record.doc, ""]
    lines += [f"* {line}" for line in constraints(record)]
    return [*lines, "", f"Unit: {unit}{kinds}.", ""]


def reference() -> str:
    """The whole page."""
    lines = [*INTRODUCTION.splitlines(), "", *ELEMENTWISE.splitlines(), ""]
    records = sorted(OPERATORS.values(), key=lambda r: r.name)
    rows = [
        (signature(r), r.doc, types(r), " ".join(constraints(r)), instructions(r))
        for r in records
        if r.elementwise
    ]
    lines += table(("operator", "meaning", "types", "constraints", "instructions"), rows)
    lines += ["", "## Others", ""]
    for record in records:
        if not record.elementwise:
            lines += section(record)
    return "\n".join(lines).rstrip() + "\n"
