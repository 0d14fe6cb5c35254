"""The reference page is made from the records; see test/tools/test_reference.py."""

from davinci.isa import INSTRUCTIONS
from davinci.isa.reference import reference


def test_page_has_every_instruction_and_field():
    page = reference()
    for record in INSTRUCTIONS.values():
        assert f"| `{record.mnemonic}` | {record.opcode} |" in page
        assert all(f"| {field.name} | {field.word} |" in page for field in record.fields)
