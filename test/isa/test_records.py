"""Every record is complete: nobody has to ask elsewhere about an instruction."""

import numpy as np
import pytest

from davinci import machine as machines
from davinci.isa import (
    BY_NAME,
    BY_OPCODE,
    INSTRUCTIONS,
    RECORD_WORDS,
    TIMING_RULES,
    Pipe,
    Registers,
    Space,
)

ALL = list(INSTRUCTIONS.values())


def smallest(record):
    """Legal values of a record: the least of every field, distinct pipes for flags."""
    values = {operand.name: 0 for operand in record.operands}
    values |= {field.name: field.minimum for field in record.fields}
    if record.timing == "flag":
        values["dst_pipe"] = Pipe.V.value
    if record.timing == "scalar_access":
        values["space"] = 1
    return values


@pytest.mark.parametrize("record", ALL, ids=lambda r: r.mnemonic)
def test_record_is_complete(record):
    assert record.doc.endswith(".")
    assert record.source
    assert record.timing in TIMING_RULES
    assert all(field.doc for field in record.fields)
    # Only what sets a register to a number of its own needs neither.
    assert record.fields or record.operands or record.name.startswith("set_atomic_")
    assert len(record.operands) + record.words < RECORD_WORDS
    assert record.illegal(smallest(record)) == ""


@pytest.mark.parametrize("record", ALL, ids=lambda r: r.mnemonic)
def test_fields_do_not_overlap(record):
    used = {}
    for field in record.fields:
        assert 0 <= field.lo <= field.hi < 64
        assert 0 <= field.minimum <= field.limit < 1 << field.width
        for bit in range(field.lo, field.hi + 1):
            other = used.setdefault((field.word, bit), field.name)
            assert other == field.name
    names = [x.name for x in (*record.operands, *record.fields)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("record", ALL, ids=lambda r: r.mnemonic)
def test_accesses_match_operands_and_compute(record):
    values = smallest(record) | {f.name: 1 for f in record.fields if f.name in ("repeat", "init")}
    registers = Registers()
    reads, writes = record.accesses(values, registers)
    if record.operands:
        assert {a.space for a in writes} <= {o.space for o in record.operands if o.writes}
        # Where words of columns lie in FB a register says.
        beside = {Space.FB} if record.name.startswith("fixpipe") else set()
        assert {a.space for a in reads} <= {o.space for o in record.operands} | beside
    if record.timing == "scalar_access":
        return
    results = compute(record, values, registers, reads)
    assert len(results) == len(writes)
    for access, result in zip(writes, results, strict=True):
        assert result.dtype == access.dtype
        np.broadcast_to(result, access.shape)


COUNTS = ("repeat", "n_burst", "m")
COUNTED = [r for r in ALL if any(r.field_named(name) for name in COUNTS)]
UNMASKED = ("vbrcb", "vreducev2", "vgatherb")
MASKED = [r for r in ALL if r.timing == "vector" and r.name not in UNMASKED]


def compute(record, values, registers, reads):
    """What a record makes of zeros."""
    arrays = [np.zeros(a.shape, a.dtype) for a in reads]
    found = record.finds(values, registers, arrays)
    arrays += [np.zeros(a.shape, a.dtype) for a in found]
    with np.errstate(all="ignore"):
        return record.compute(values, registers, arrays)


@pytest.mark.parametrize("record", COUNTED, ids=lambda r: r.mnemonic)
def test_no_operation_touches_nothing(record):
    values = smallest(record) | {"k": 16, "n": 16, "len_burst": 4}
    values |= dict.fromkeys(COUNTS, 0)
    reads, writes = record.accesses(values, Registers())
    assert all(a.size_bytes == 0 for a in (*reads, *writes))
    results = compute(record, values, Registers(), reads)
    for access, result in zip(writes, results, strict=True):
        np.broadcast_to(result, access.shape)


@pytest.mark.parametrize("record", MASKED, ids=lambda r: r.mnemonic)
def test_empty_mask_touches_nothing(record):
    registers = Registers(mask_low=0, mask_high=0)
    values = smallest(record) | {"repeat": 1}
    reads, writes = record.accesses(values, registers)
    assert all(a.size_bytes == 0 for a in (*reads, *writes))
    results = compute(record, values, registers, reads)
    for access, result in zip(writes, results, strict=True):
        np.broadcast_to(result, access.shape)


def test_opcodes():
    assert 0 not in BY_OPCODE
    assert [r.opcode for r in ALL] == list(range(1, len(ALL) + 1))
    assert all(BY_OPCODE[r.opcode] is r for r in ALL)
    assert all(BY_NAME[r.name][r.type] is r for r in ALL)


def test_types_of_a_name_have_equal_operands():
    """The operations of the hivm dialect have one operand list for all types of a name."""
    for types in BY_NAME.values():
        lists = {tuple((o.name, o.space) for o in r.operands) for r in types.values()}
        assert len(lists) == 1


@pytest.mark.parametrize("name", machines.names())
def test_rates_of_machine_files_name_instructions(name):
    known = {*INSTRUCTIONS, *BY_NAME, *(name.partition("_")[0] for name in BY_NAME)}
    later = {"scatter_vnchwconv.b8"}
    unit = machines.load(name).vector
    assert set(unit.cycles_per_repeat) <= known | later
    assert set(unit.fixed_cycles_of) <= known
