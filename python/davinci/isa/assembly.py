"""Text form of encoded instructions: a listing of a stream, and one instruction back from text.

vadd.f32 dst=UB[0x1000] src0=UB[0x0] src1=UB[0x400] dst_blk_stride=1 ... repeat=8
set_flag src_pipe=PIPE_MTE2 dst_pipe=PIPE_V event=EVENT_ID0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from davinci.errors import InputError
from davinci.isa.core import (
    BY_OPCODE,
    INSTRUCTIONS,
    LOCATION_SHIFT,
    MOST_SCALAR_OPS,
    OPCODE_MASK,
    PIPE_FIELDS,
    RECORD_WORDS,
    SCALAR_OPS_SHIFT,
    Field,
    Instruction,
    Pipe,
    Records,
    Space,
    Values,
    header,
)

RECORD_BYTES = 8 * RECORD_WORDS
HEX_WIDTH = 32
"""Fields of this many bits and more hold addresses, masks or raw values: shown in hexadecimal."""


def format_field(field: Field, value: int) -> str:
    """The value of a field: a name for pipes and events, otherwise a number."""
    if field.name in PIPE_FIELDS and value in list(Pipe):
        return f"{field.name}=PIPE_{Pipe(value).name}"
    if field.name == "event":
        return f"event=EVENT_ID{value}"
    return f"{field.name}={value:#x}" if field.width >= HEX_WIDTH else f"{field.name}={value}"


def format_operands(record: Instruction, values: Values) -> str:
    """Operands and fields by name, in the order of the record."""
    operands = [f"{o.name}={o.space.name}[{values[o.name]:#x}]" for o in record.operands]
    return " ".join([*operands, *(format_field(f, values[f.name]) for f in record.fields)])


def format_instruction(record: Instruction, values: Values) -> str:
    """One instruction as a line of text; `parse_instruction` reads it back."""
    return f"{record.mnemonic} {format_operands(record, values)}".rstrip()


def parse_value(text: str) -> int:
    """A number in any base, a pipe's or an event's name, or an address with its memory.

    Raises:
        ValueError: it is none of these.
    """
    if text.startswith("PIPE_"):
        name = text.removeprefix("PIPE_")
        if name not in Pipe.__members__:
            raise ValueError(text)
        return Pipe[name].value
    if text.startswith("EVENT_ID"):
        return int(text.removeprefix("EVENT_ID"))
    if text.endswith("]"):
        space, _, address = text[:-1].partition("[")
        if space not in Space.__members__:
            raise ValueError(text)
        return int(address, 0)
    return int(text, 0)


def parse_instruction(text: str) -> tuple[Instruction, dict[str, int]]:
    """Reads what `format_instruction` writes.

    Raises:
        InputError: unknown mnemonic, a malformed or unknown value, a wrong memory, a missing value.
    """
    mnemonic, *items = text.split()
    record = INSTRUCTIONS.get(mnemonic)
    if record is None:
        raise InputError("no such instruction", found=repr(mnemonic))
    spaces = {operand.name: operand.space.name for operand in record.operands}
    known = [*spaces, *(f.name for f in record.fields)]
    values: dict[str, int] = {}
    for item in items:
        name, _, value = item.partition("=")
        if name not in known or name in values:
            raise InputError(
                "unknown or repeated value", where=mnemonic, found=repr(item), expected=str(known)
            )
        space = value.partition("[")[0]
        if name in spaces and space != spaces[name]:
            raise InputError(
                "wrong memory", where=mnemonic, found=repr(item), expected=spaces[name]
            )
        try:
            values[name] = parse_value(value)
        except ValueError:
            raise InputError("not a value", where=mnemonic, found=repr(item)) from None
    if missing := [name for name in known if name not in values]:
        raise InputError("missing value", where=mnemonic, expected=", ".join(missing))
    return record, values


def encode_record(
    record: Instruction, values: Values, location: int = 0, scalar_ops: int = 0
) -> list[int]:
    """The eight words of one instruction.

    Raises:
        InputError: a value is missing or outside its field.
    """
    words = record.encode(values)
    return [
        header(record.opcode, scalar_ops, location),
        *words,
        *[0] * (RECORD_WORDS - 1 - len(words)),
    ]


def format_record(words: Sequence[int], locations: Sequence[str] = ()) -> str:
    """One record as a line of a listing: pipe, instruction, and where it comes from."""
    opcode, location = words[0] & OPCODE_MASK, words[0] >> LOCATION_SHIFT
    scalar_ops = words[0] >> SCALAR_OPS_SHIFT & MOST_SCALAR_OPS
    notes = [f"after {scalar_ops} scalar operations"] if scalar_ops else []
    if 0 < location < len(locations):
        notes.append(locations[location])
    record = BY_OPCODE.get(opcode)
    if record is None:
        body = " ".join(f"{word:#x}" for word in words[1:])
        line = f"{'?':9} .unknown opcode={opcode} {body}"
    else:
        values = record.decode(words[1:])
        message = record.illegal(values)
        notes += [f"illegal: {message}"] if message else []
        # The pipe of an illegal flag or barrier may not exist.
        pipe = "?" if message else f"PIPE_{record.pipe_of(values).name}"
        line = f"{pipe:9} {record.mnemonic:24} {format_operands(record, values)}".rstrip()
    return f"{line}  ; {', '.join(notes)}" if notes else line


def listing(records: Records, locations: Sequence[str] = ()) -> Iterator[str]:
    """Lines of the disassembly of records of shape [n, 8], each with its byte offset in the stream.

    Args:
        records: uint64 array of shape [n, 8].
        locations: source locations by id.
    """
    for i, words in enumerate(records.tolist()):
        yield f"{i * RECORD_BYTES:06x}  {format_record(words, locations)}"
