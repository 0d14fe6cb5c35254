"""Fixtures of programs written by hand, and of devices."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assembler import Assembler
from davinci import machine
from davinci.simulator import Device
from split_support import Split


@pytest.fixture
def asm() -> Assembler:
    return Assembler()


@pytest.fixture
def new_asm() -> Callable[[], Assembler]:
    return Assembler


@pytest.fixture
def device() -> Device:
    return Device(machine.load("ascend910"), 1 << 24)


@pytest.fixture
def split(new_asm: Callable[[], Assembler]) -> Split:
    return Split(new_asm)
