"""Records that sum up scalar accesses: the form of one is made from that of another one."""

from __future__ import annotations

import pytest

from davinci import machine
from davinci.isa import INSTRUCTIONS, Registers, Space
from davinci.simulator.core.forms import Decoder, InstructionForm

RECORD = INSTRUCTIONS["scalar_access"]
NONE = {"loads": 0, "stores": 0, "load_low": 0, "load_high": 0, "store_low": 0, "store_high": 0}
LOADED = {**NONE, "loads": 1, "load_low": 64, "load_high": 68}
STORED = {**NONE, "stores": 2, "store_low": 96, "store_high": 104}


def words_of(values: dict[str, int], space: Space) -> list[int]:
    return [RECORD.opcode, *RECORD.encode({**values, "space": space}), 0]


def touched(form: InstructionForm) -> object:
    places = [
        (port.space, port.word, port.offset, port.region.size_bytes, port.region.low)
        for ports in (form.reads, form.writes, *form.chip_ports, *form.far_ports)
        for port in ports
    ]
    return places, form.values, form.moves_gm, form.gm_offset, len(form.gm_ports)


@pytest.mark.parametrize("space", [Space.GM, Space.UB])
def test_it_is_what_decoding_gives(space: Space) -> None:
    decoder = Decoder(machine.load("ascend910b"), "AIV")
    first, _ = decoder.form(words_of(LOADED, Space.GM), Registers())
    for values in (STORED, {**LOADED, "load_low": 4096, "load_high": 5000}, STORED):
        words = words_of(values, space)
        expected, _ = decoder.form(words, Registers())
        assert touched(decoder.summary(first, words)) == touched(expected)
    assert touched(first) == touched(decoder.form(words_of(LOADED, Space.GM), Registers())[0])
