"""Regions, and the registry of records."""

import numpy as np
import pytest

from davinci.isa import INSTRUCTIONS, Access, Field, Instruction, Operand, Pipe, Space
from davinci.isa.core import define, no_compute, no_regions

HALF = np.dtype(np.float16)


def test_shape_and_strides_of_a_region():
    access = Access(Space.UB, 64, ((3, 256), (2, 64)), 16, HALF)
    assert access.shape == (3, 2, 16)
    assert access.strides == (256, 64, 2)
    assert access.span_bytes == 2 * 256 + 64 + 32
    assert access.size_bytes == 3 * 2 * 32


@pytest.mark.parametrize(("dims", "run"), [(((0, 32),), 16), (((4, 32),), 0), ((), 0)])
def test_empty_region(dims, run):
    access = Access(Space.UB, 64, dims, run, HALF)
    assert (access.span_bytes, access.size_bytes) == (0, 0)


def test_limits_of_fields():
    assert Field("a", 4, 7).limit == 15
    assert Field("a", 4, 7, maximum=9).limit == 9
    assert Field("a", 0, 63).limit == 2**64 - 1


def record(**changes):
    parts = {
        "name": "nop",
        "type": "",
        "pipe": Pipe.S,
        "operands": (),
        "fields": (Field("a", 0, 7),),
        "accesses": no_regions,
        "compute": no_compute,
        "timing": "scalar",
        "doc": "Nothing.",
        "source": "assumed",
    }
    return Instruction(**(parts | changes))


def test_no_two_records_of_a_mnemonic():
    with pytest.raises(ValueError, match=r"vadd\.f32 is defined twice"):
        define(record(name="vadd", type="f32"))


def test_record_must_fit_the_stream():
    operands = tuple(Operand(f"p{i}", Space.UB, False) for i in range(7))
    before = dict(INSTRUCTIONS)
    with pytest.raises(ValueError, match="does not fit"):
        define(record(operands=operands))
    assert before == INSTRUCTIONS


def test_words_follow_the_addresses():
    found = record(
        operands=(Operand("dst", Space.UB, True),),
        fields=(Field("a", 0, 7), Field("b", 60, 63, word=1)),
    )
    assert found.words == 2
    assert found.encode({"dst": 0x40, "a": 3, "b": 15}) == [0x40, 3, 15 << 60]
