"""Listings of encoded instructions, and instructions read from text."""

import numpy as np
import pytest

from davinci.errors import InputError
from davinci.isa import INSTRUCTIONS, header
from davinci.isa.assembly import (
    encode_record,
    format_instruction,
    format_record,
    listing,
    parse_instruction,
)

COPY = "copy_gm_to_ubuf dst=UB[0x40] src=GM[0x201] n_burst=1 len_burst=8 src_gap=0 dst_gap=0"
FLAG = "set_flag src_pipe=PIPE_MTE2 dst_pipe=PIPE_V event=EVENT_ID1"
MASK = "set_vector_mask low=0xffffffffffffffff high=0x0"


@pytest.mark.parametrize("text", [COPY, FLAG, MASK])
def test_text_round_trip(text):
    assert format_instruction(*parse_instruction(text)) == text


def test_listing():
    program = [parse_instruction(text) for text in (COPY, FLAG, MASK)]
    rows = [encode_record(record, values, location=1) for record, values in program]
    rows[1] = encode_record(*program[1], location=9, scalar_ops=5)
    records = np.array(rows, dtype=np.uint64)
    assert list(listing(records, ["", "kernel.mlir:3:5"])) == [
        "000000  PIPE_MTE2 copy_gm_to_ubuf          "
        "dst=UB[0x40] src=GM[0x201] n_burst=1 len_burst=8 src_gap=0 dst_gap=0"
        "  ; kernel.mlir:3:5",
        "000040  PIPE_MTE2 set_flag                 "
        "src_pipe=PIPE_MTE2 dst_pipe=PIPE_V event=EVENT_ID1  ; after 5 scalar operations",
        "000080  PIPE_S    set_vector_mask          low=0xffffffffffffffff high=0x0"
        "  ; kernel.mlir:3:5",
    ]


def test_assembled_words():
    record, values = parse_instruction(COPY)
    words = encode_record(record, values, location=3, scalar_ops=2)
    head = header(record.opcode, scalar_ops=2, location=3)
    assert words == [head, 0x40, 0x201, 1 << 4 | 8 << 16, 0, 0, 0, 0]


def test_unknown_opcode_is_shown():
    assert format_record([0xFFFF, 1, 2, 0, 0, 0, 0, 0]).split() == (
        ["?", ".unknown", "opcode=65535", "0x1", "0x2", "0x0", "0x0", "0x0", "0x0", "0x0"]
    )


def test_illegal_fields_are_shown():
    line = format_record([INSTRUCTIONS["pipe_barrier"].opcode, 9, 0, 0, 0, 0, 0, 0])
    assert "pipe=9  ; illegal: pipe_barrier: no such pipe: found 9" in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vaddd.f32", "no such instruction; found 'vaddd.f32'"),
        (COPY.replace("len_burst=8", "len=8"), "unknown or repeated value; found 'len=8'"),
        (COPY + " n_burst=2", "unknown or repeated value; found 'n_burst=2'"),
        (COPY.replace("UB[", "L1["), "wrong memory; found 'dst=L1[0x40]'; expected UB"),
        (COPY.replace("UB[0x40]", "64"), "wrong memory; found 'dst=64'; expected UB"),
        (COPY.replace("=8", "=x"), "not a value; found 'len_burst=x'"),
        (FLAG.replace("PIPE_V", "PIPE_X"), "not a value; found 'dst_pipe=PIPE_X'"),
        (FLAG.replace("EVENT_ID1", "EVENT_IDx"), "not a value; found 'event=EVENT_IDx'"),
        (FLAG.replace(" event=EVENT_ID1", ""), "missing value; expected event"),
    ],
)
def test_malformed_text(text, message):
    with pytest.raises(InputError) as caught:
        parse_instruction(text)
    assert message in str(caught.value)


def test_illegal_instruction_is_not_assembled():
    record, values = parse_instruction(FLAG)
    with pytest.raises(InputError, match="two pipes"):
        encode_record(record, values | {"dst_pipe": values["src_pipe"]})
