"""Records that sum up scalar accesses: the form of one is made from that of another one."""

from __future__ import annotations

import pytest

from davinci import machine
from davinci.isa import INSTRUCTIONS, Registers, Space
from davinci.simulator.core.forms import Decoder, InstructionForm
from davinci.simulator.core.problems import UnplacedFault

RECORD = INSTRUCTIONS["scalar_access"]
NONE = {"loads": 0, "stores": 0, "load_low": 0, "load_high": 0, "store_low": 0, "store_high": 0}
LOADED = {**NONE, "loads": 1, "load_low": 64, "load_high": 68}
STORED = {**NONE, "stores": 2, "store_low": 96, "store_high": 104}


def words_of(values: dict[str, int], space: Space) -> list[int]:
    return [RECORD.opcode, *RECORD.encode({**values, "space": space}), 0]


def touched(form: InstructionForm, words: list[int]) -> object:
    places = [
        (port.space, words[port.word] + port.offset, port.region.size_bytes, port.region.low)
        for ports in (form.reads, form.writes, *form.chip_ports, *form.far_ports)
        for port in ports
    ]
    return places, form.moves_gm, form.gm_word, len(form.gm_ports)


@pytest.mark.parametrize("space", [Space.GM, Space.UB])
def test_it_is_what_decoding_gives(space: Space) -> None:
    decoder = Decoder(machine.load("ascend910b"), "AIV")
    loaded = words_of(LOADED, Space.GM)
    first, _ = decoder.form(loaded, Registers())
    before = touched(first, loaded)
    for values in (STORED, {**LOADED, "load_low": 4096, "load_high": 5000}, STORED):
        words = words_of(values, space)
        expected, _ = decoder.form(words, Registers())
        assert touched(decoder.summary(first, words), words) == touched(expected, words)
    assert touched(first, loaded) == before


def test_the_same_bytes_elsewhere_are_the_same_form() -> None:
    decoder = Decoder(machine.load("ascend910b"), "AIV")
    first, *others = (
        words_of({**LOADED, "load_low": at, "load_high": at + 4}, Space.GM)
        for at in (64, 4096, 8192)
    )
    form, _ = decoder.form(first, Registers())
    one, other = (decoder.summary(form, words) for words in others)
    assert one is other


def test_each_record_is_checked() -> None:
    decoder = Decoder(machine.load("ascend910b"), "AIV")
    words = words_of(LOADED, Space.GM)
    form, _ = decoder.form(words, Registers())
    decoder.summary(form, words_of(NONE, Space.GM))
    low, high = form.entry.summed[0].low, form.entry.summed[0].high
    words[low], words[high] = 64, 64
    with pytest.raises(UnplacedFault, match=r"load range is empty: found 64\.\.64"):
        decoder.summary(form, words)
