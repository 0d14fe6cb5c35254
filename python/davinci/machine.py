"""Machine files: the one place for sizes, rates and limits, read by compiler and simulator.

`load("ascend910")` reads the file of that name in `davinci/machines`; `load("my.toml")` reads a
user's own. The schema is strict: an unknown key is an error that names the nearest known one.
"""

from __future__ import annotations

import difflib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pydantic

from davinci.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DIRECTORY = Path(__file__).parent / "machines"


class Section(pydantic.BaseModel):
    """A table of a machine file: frozen, no unknown keys, no silent conversion of types."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


Positive = pydantic.PositiveInt
Cycles = pydantic.NonNegativeInt


class Buffer(Section):
    bytes: Positive
    align_bytes: Positive


class Buffers(Section):
    L1: Buffer
    L0A: Buffer
    L0B: Buffer
    L0C: Buffer
    UB: Buffer


class GlobalMemory(Section):
    bytes: Positive
    align_bytes: Positive
    read_bytes_per_cycle: Positive
    write_bytes_per_cycle: Positive
    line_bytes: Positive


class L2(Section):
    bytes: Positive
    read_bytes_per_cycle: Positive
    write_bytes_per_cycle: Positive


class Sync(Section):
    event_ids: Positive
    queue_depth: Positive
    flag_cycles: Cycles
    barrier_cycles: Cycles
    sequential_pipes: list[str]


class Scalar(Section):
    issue_cycles: Positive
    gm_access_cycles: Positive


class Vector(Section):
    block_bytes: Positive
    repeat_bytes: Positive
    max_repeat: Positive
    fixed_cycles: Cycles
    bank_groups: Positive
    banks: Positive
    cycles_per_repeat: dict[str, Positive]


class Cube(Section):
    m: Positive
    n: Positive
    k_b16: Positive
    k_b8: Positive
    occupancy_cycles: Cycles
    latency_cycles: Cycles


class Mte1(Section):
    fixed_cycles: Cycles
    l0a_bytes_per_cycle: Positive
    l0b_bytes_per_cycle: Positive
    l1_to_ub_bytes_per_cycle: Positive


class Mte2(Section):
    start_cycles: Cycles
    issue_cycles: Cycles
    port_bytes_per_cycle: Positive


class Mte3(Section):
    start_cycles: Cycles
    issue_cycles: Cycles
    on_chip_start_cycles: Cycles
    port_bytes_per_cycle: Positive
    ub_to_l1_bytes_per_cycle: Positive


class L0C(Section):
    to_ub_bytes_per_cycle: Positive


class Launch(Section):
    overhead_us: pydantic.NonNegativeInt


class Machine(Section):
    """One NPU. Fields carry their unit; see the comments of the file for the source of a number."""

    name: str
    cores: Positive
    clock_mhz: Positive
    buffers: Buffers
    gm: GlobalMemory
    l2: L2
    sync: Sync
    scalar: Scalar
    vector: Vector
    cube: Cube
    mte1: Mte1
    mte2: Mte2
    mte3: Mte3
    l0c: L0C
    launch: Launch

    def buffer(self, space: str) -> Buffer:
        """Capacity and alignment of the on-chip memory `space` ("L1", "L0A", ..., "UB")."""
        found: Buffer = getattr(self.buffers, space)
        return found


def names() -> list[str]:
    """Names of the machines that come with the package."""
    return sorted(path.stem for path in DIRECTORY.glob("*.toml"))


@cache
def load(name: str) -> Machine:
    """Returns the machine called `name`, or the one described by the TOML file at that path.

    Raises:
        InputError: no such machine or file, malformed TOML, an unknown, missing or mistyped key.
    """
    path = Path(name) if name.endswith(".toml") else DIRECTORY / f"{name}.toml"
    if not path.is_file():
        near = difflib.get_close_matches(name, names(), n=1)
        raise InputError(
            "no such machine",
            where="--machine",
            found=repr(name),
            expected=f"one of {', '.join(names())}, or the path of a .toml file",
            hint=f"did you mean {near[0]!r}?" if near else "",
        )
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a TOML file: {error}", where=str(path)) from None
    return parse(data, str(path))


def parse(data: dict[str, Any], where: str) -> Machine:
    """Checks a machine file's tables against the schema; `where` names the file in messages."""
    try:
        return Machine.model_validate(data)
    except pydantic.ValidationError as error:
        # A misspelt key is also a missing one; the misspelling says more.
        first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(str(first["loc"][-1]), _known_keys(), n=1)
            raise InputError(
                "unknown key",
                where=where,
                found=repr(key),
                hint=f"did you mean {near[0]!r}?" if near else "remove it",
            ) from None
        if first["type"] == "missing":
            raise InputError("missing key", where=where, expected=repr(key)) from None
        raise InputError(
            f"bad value of {key!r}",
            where=where,
            found=repr(first["input"]),
            expected=first["msg"],
        ) from None


def _known_keys() -> list[str]:
    sections: list[type[Section]] = [Machine, *Section.__subclasses__()]
    return sorted({key for section in sections for key in section.model_fields})
