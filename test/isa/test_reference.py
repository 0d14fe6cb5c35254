"""The reference page is made from the records."""

from pathlib import Path

from davinci.isa import INSTRUCTIONS
from davinci.isa.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "instructions.md"


def test_page_is_up_to_date():
    hint = "run: python -m davinci.isa.reference > docs/instructions.md"
    assert PAGE.read_text(encoding="utf-8") == reference(), hint


def test_page_has_every_instruction_and_field():
    page = reference()
    for record in INSTRUCTIONS.values():
        assert f"| `{record.mnemonic}` | {record.opcode} |" in page
        assert all(f"| {field.name} | {field.word} |" in page for field in record.fields)
