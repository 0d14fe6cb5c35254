"""The instruction reference page, made from the records.

python -m davinci.isa.reference > docs/instructions.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from davinci.isa import BY_NAME, INSTRUCTIONS, TIMING_RULES
from davinci.isa.core import Field, Instruction, Operand

INTRODUCTION = """# Instructions

Made from the records in `davinci.isa` by `python -m davinci.isa.reference`; do not edit.

An encoded instruction is a header and up to seven 64-bit words: the address operands, one a word,
then the configuration words. The header holds the opcode (bits 0..15), the number of scalar
operations issued before it (16..31) and a source location (32..63). All sources are read before
anything is written. Field values are unsigned; a repeat count of 0 means no operation.
"""

LONGEST_TITLE = 8
"""Instructions a heading names one by one; longer lists are abbreviated."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return [*lines, *(f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows)]


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def layout(record: Instruction) -> tuple[object, ...]:
    """What instructions of one section have in common."""
    return (record.pipe, record.timing, record.operands, record.fields, record.source)


def title(records: Sequence[Instruction]) -> str:
    """Names of the instructions of a section."""
    names = list(dict.fromkeys(record.name for record in records))
    if len(names) > LONGEST_TITLE:
        return f"{names[0]} .. {names[-1]}"
    found = ", ".join(names)
    whole = len(records) == sum(len(BY_NAME[name]) for name in names)
    return found if whole else f"{found} ({', '.join(record.type for record in records)})"


def operand_row(operand: Operand) -> tuple[str, ...]:
    align = f"{operand.align_bytes} bytes" if operand.align_bytes else "of the memory"
    access = "written" if operand.writes else "read"
    return (operand.name, operand.space.name, access, align, operand.doc)


def field_row(field: Field) -> tuple[str, ...]:
    bits = f"{field.lo}..{field.hi}" if field.width > 1 else str(field.lo)
    legal = f"{field.minimum}..{field.limit}" if field.width < 64 else "any"
    return (field.name, str(field.word), bits, legal, field.doc)


def section(records: Sequence[Instruction]) -> list[str]:
    """Lines that describe instructions of one layout."""
    first = records[0]
    lines = [f"## {title(records)}", ""]
    lines += table(
        ("instruction", "opcode", "meaning"),
        ((f"`{r.mnemonic}`", str(r.opcode), r.doc) for r in records),
    )
    pipe = (
        "the pipe named in its fields" if first.timing in ("flag", "barrier") else first.pipe.name
    )
    lines += ["", f"Pipe: {pipe}. Time: {first.timing}. Source: {first.source}.", ""]
    if first.operands:
        columns = ("operand", "memory", "access", "alignment", "meaning")
        lines += [*table(columns, map(operand_row, first.operands)), ""]
    if first.fields:
        columns = ("field", "word", "bits", "legal", "meaning")
        lines += [*table(columns, map(field_row, first.fields)), ""]
    return lines


def reference() -> str:
    """The whole page."""
    groups: dict[tuple[object, ...], list[Instruction]] = {}
    for record in INSTRUCTIONS.values():
        groups.setdefault(layout(record), []).append(record)
    lines = [*INTRODUCTION.splitlines(), ""]
    lines += ["## Timing rules", "", *table(("rule", "time of"), TIMING_RULES.items()), ""]
    for records in groups.values():
        lines += section(records)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(reference(), end="")
