"""Words of instructions in which whatever stands is legal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from davinci.isa.core import Instruction
from davinci.simulator.core.tables import _free_words

UNCHECKED = Instruction.__dataclass_fields__["check"].default


def field(width: int, least: int = 0, most: int | None = None) -> Any:
    limit = (1 << width) - 1 if most is None else most
    return SimpleNamespace(word=0, width=width, minimum=least, limit=limit)


@pytest.mark.parametrize(
    ("fields", "free"),
    [
        ([field(64)], [1]),
        ([field(40), field(24)], [1]),
        ([field(40)], []),
        ([field(40), field(24, least=1)], []),
        ([field(40), field(24, most=5)], []),
    ],
)
def test_whole_words_without_limits(fields: list[Any], free: list[int]) -> None:
    record: Any = SimpleNamespace(check=UNCHECKED, words=1, fields=fields, operands=())
    assert _free_words(record) == free
