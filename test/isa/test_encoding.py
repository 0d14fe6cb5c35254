"""Encode and decode are inverse, and illegal values are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.errors import InputError
from davinci.isa import INSTRUCTIONS, RECORD_WORDS, header
from davinci.isa.assembly import encode_record, format_instruction, parse_instruction

ALL = list(INSTRUCTIONS.values())


def legal_values(record):
    """Random values of a record, all legal."""
    addresses = {operand.name: st.integers(0, 2**48 - 1) for operand in record.operands}
    fields = {f.name: st.integers(f.minimum, f.limit) for f in record.fields}
    if "lists" in fields:  # most others are illegal
        fields |= {"lists": st.sampled_from([3, 7, 15]), "repeat": st.integers(0, 1)}
    if "core_stride" in fields:  # halves of fractals
        fields |= {"n_size": st.integers(0, 127).map(lambda pairs: 32 * pairs)}
        fields |= {"m_size": st.integers(0, 512).map(lambda pairs: 2 * pairs)}
    bytes_by_fixpipe = record.name == "fixpipe" and record.type.removesuffix("v").endswith("b8")
    if record.name == "fixpipe_to_l1" or bytes_by_fixpipe:  # whole blocks, which do not overlap
        fields["n_size"] = st.integers(0, 127).map(lambda blocks: 32 * blocks)
        fields["m_size"] = st.integers(0, 4095)
        fields |= {name: st.integers(4095, 65535) for name in ("src_stride", "dst_stride")}
    for name in {"k_extension", "m_extension", "k_start", "m_start"} & set(fields):
        fields[name] = st.integers(0, 4095).map(lambda fractals: 16 * fractals)
    return st.fixed_dictionaries(addresses | fields).filter(lambda v: not record.check(v))


@st.composite
def instructions(draw):
    record = draw(st.sampled_from(ALL))
    return record, draw(legal_values(record))


@pytest.mark.parametrize("record", ALL, ids=lambda r: r.mnemonic)
@given(data=st.data())
def test_decode_inverts_encode(record, data):
    if record.timing == "scalar_access":
        values = {f.name: data.draw(st.integers(0, 2**64 - 1)) for f in record.fields}
        values |= {"space": 6, "load_low": 0, "load_high": 8, "store_low": 0, "store_high": 8}
    else:
        values = data.draw(legal_values(record))
    words = record.encode(values)
    assert all(0 <= word < 1 << 64 for word in words)
    assert len(words) == len(record.operands) + record.words < RECORD_WORDS
    assert record.decode(words) == values
    assert record.decode([*words, 0, 0]) == values
    again = INSTRUCTIONS[record.mnemonic].decode(encode_record(record, values)[1:])
    assert again == values
    assert parse_instruction(format_instruction(record, values)) == (record, values)


@given(data=st.data())
def test_any_word_decodes_into_the_bits_of_the_fields(data):
    record = data.draw(st.sampled_from(ALL))
    words = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=7, max_size=7))
    values = record.decode(words)
    for field in record.fields:
        assert 0 <= values[field.name] < 1 << field.width


@pytest.mark.parametrize("record", ALL, ids=lambda r: r.mnemonic)
def test_illegal_fields_are_refused(record):
    values = {operand.name: 0 for operand in record.operands}
    values |= {f.name: f.minimum for f in record.fields}
    for field in record.fields:
        for bad in (field.minimum - 1, field.limit + 1):
            with pytest.raises(InputError) as caught:
                record.encode(values | {field.name: bad})
            message = str(caught.value)
            for part in (record.mnemonic, field.name, f"found {bad}", f"{field.limit}"):
                assert part in message


def test_missing_value_is_named():
    with pytest.raises(InputError, match=r"missing value.*expected repeat"):
        record = INSTRUCTIONS["vector_dup.f32"]
        record.encode({"dst": 0, "dst_blk_stride": 1, "dst_rep_stride": 8, "value": 0})


@pytest.mark.parametrize("name", ["set_flag", "wait_flag"])
def test_flag_inside_one_pipe_is_refused(name):
    with pytest.raises(InputError, match="two pipes: found V twice"):
        INSTRUCTIONS[name].encode({"src_pipe": 1, "dst_pipe": 1, "event": 0})


@pytest.mark.parametrize("dtype", ["s8", "u8", "f32"])
def test_transpose_of_other_than_16_bits_is_refused(dtype):
    values = {"dst": 0, "src": 0, "start_index": 0, "src_stride": 1, "transpose": 1, "repeat": 1}
    with pytest.raises(InputError, match=r"transpose is out of range: found 1, expected 0\.\.0"):
        INSTRUCTIONS[f"load_cbuf_to_ca.{dtype}"].encode(values)


def test_barrier_of_the_scalar_pipe_is_refused():
    with pytest.raises(InputError, match=r"pipe is out of range: found 0, expected 1\.\.10"):
        INSTRUCTIONS["pipe_barrier"].encode({"pipe": 0})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": 2}, "no scalar access to memory 2"),
        ({"loads": 1, "load_low": 8, "load_high": 8}, "load range is empty"),
        ({"stores": 1, "store_low": 8, "store_high": 4}, "store range is empty"),
    ],
)
def test_scalar_access_ranges(changes, message):
    record = INSTRUCTIONS["scalar_access"]
    values = dict.fromkeys((f.name for f in record.fields), 0) | {"space": 1}
    assert not record.illegal(values)
    assert message in record.illegal(values | changes)


def test_header_packs_three_fields():
    word = header(3, scalar_ops=5, location=7)
    assert (word & 0xFFFF, word >> 16 & 0xFFFF, word >> 32) == (3, 5, 7)
    assert header(1, scalar_ops=1 << 20) >> 16 & 0xFFFF == 0xFFFF


REPEATED = [r for r in ALL if r.field_named("dst_rep_stride")]


@pytest.mark.parametrize("record", REPEATED, ids=lambda r: r.mnemonic)
def test_repeats_that_write_one_place_are_refused(record):
    values = {operand.name: 0 for operand in record.operands}
    values |= {f.name: 1 for f in record.fields}
    assert record.illegal(values | {"dst_rep_stride": 0}) == ""
    message = record.illegal(values | {"repeat": 2, "dst_rep_stride": 0})
    assert message == f"{record.mnemonic}: 2 repeats write the same blocks: found dst_rep_stride 0"
