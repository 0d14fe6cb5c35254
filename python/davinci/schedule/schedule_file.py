"""Files of schedules: how the kernels of a network are computed, written by a user or the tuner.

    {"schema_version": 1, "machine": "ascend910",
     "kernels": [{"key": "0b5f..", "kernel": "softmax_f32_6144x512", "cycles": 21988,
                  "choices": [{"cores": 32, "choice": {"form": "tiles", ..}}]}, ..]}

A kernel is found again by its key: the same group, machine and number of cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pydantic

from davinci.errors import InputError
from davinci.schedule.choices import Choices
from davinci.schedule.plain_data import CONFIG


@dataclass(frozen=True)
class KernelChoices:
    """The choices of a kernel.

    Attributes:
        key: see `choices.key_of`.
        kernel: its name, for readers.
        cycles: of a launch; 0 where nobody has measured them.
    """

    __pydantic_config__ = CONFIG

    key: str
    kernel: str
    cycles: int
    choices: Choices


@dataclass(frozen=True)
class ScheduleFile:
    """What a file holds; `machine` is the name of the machine file, for readers."""

    __pydantic_config__ = CONFIG

    schema_version: Literal[1]
    machine: str
    kernels: tuple[KernelChoices, ...]

    def by_key(self) -> Mapping[str, Choices]:
        return {kernel.key: kernel.choices for kernel in self.kernels}


FILE: pydantic.TypeAdapter[ScheduleFile] = pydantic.TypeAdapter(ScheduleFile)


def text(path: str) -> str:
    """What is in a file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return Path(path).read_bytes().decode(errors="replace")
    except OSError as error:
        raise InputError(
            "cannot read the schedules", where=path, found=error.strerror or ""
        ) from None


def text_of(machine: str, kernels: Sequence[KernelChoices]) -> str:
    """The text of a file."""
    made = ScheduleFile(1, machine, tuple(kernels))
    return FILE.dump_json(made, indent=1).decode() + "\n"


def read(path: str, machine: str = "") -> ScheduleFile:
    """Reads a file.

    Args:
        machine: name of the machine that it is used for; "" for any.

    Raises:
        InputError: it cannot be read, is no such file, is for another machine, or has two schedules
            for one kernel; says where and what was expected.
    """
    found = _parsed(path)
    if machine not in ("", found.machine):
        raise InputError(
            "schedules for another machine", where=path, found=found.machine, expected=machine
        )
    known: dict[str, KernelChoices] = {}
    for kernel in found.kernels:
        if known.setdefault(kernel.key, kernel).choices != kernel.choices:
            raise InputError(
                "two schedules for one kernel",
                where=path,
                found=f"the key {kernel.key} twice, of {kernel.kernel}",
                hint="keep one of them",
            )
    return found


def _parsed(path: str) -> ScheduleFile:
    """The file of schedules at a path.

    Raises:
        InputError: it is not one; the first place that is wrong is named.
    """
    try:
        return FILE.validate_json(text(path))
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"not a file of schedules: {f'{place}: ' * bool(place)}{first['msg']}",
            where=path,
            expected="what --save-schedules writes",
        ) from None
