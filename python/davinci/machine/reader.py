"""Machine files: the one place for sizes, rates and limits, read by compiler and simulator.

`load("ascend910")` reads the file of that name in `machine/files`; `load("my.toml")` reads a
user's own. `:vector` behind either stands for the vector cores beside its AI cores.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

import pydantic

from davinci.errors import InputError, did_you_mean
from davinci.machine.checks import check
from davinci.machine.schema import Machine, known_keys
from davinci.machine.vector_cores import SUFFIX, machine_of_vector_cores

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DIRECTORY = Path(__file__).parent / "files"


def names() -> list[str]:
    """Names of the machines that come with the package."""
    return sorted(path.stem for path in DIRECTORY.glob("*.toml"))


_BY_NAME: ContextVar[dict[str, Machine] | None] = ContextVar("machines by name", default=None)
"""What `load` has returned inside of `read_once`."""


@contextmanager
def read_once(instead: Mapping[str, Machine] | None = None) -> Iterator[None]:
    """Inside the block each machine file is read once, by its first `load`: all passes of a
    compilation see the same machine, also where its file is edited meanwhile.

    Args:
        instead: machines that `load` gives for these names in place of what their files say.
    """
    known = _BY_NAME.get()
    if known is not None and not instead:
        yield
        return
    token = _BY_NAME.set({**(known or {}), **(instead or {})})
    try:
        yield
    finally:
        _BY_NAME.reset(token)


def load(name: str) -> Machine:
    """Returns the machine called `name`, or the one described by the TOML file at that path, as
    the file is now; the same object for the same text.

    Raises:
        InputError: no such machine or file, malformed TOML, an unknown, missing or mistyped key.
    """
    known = _BY_NAME.get()
    if known is not None and name in known:
        return known[name]
    of_vector_cores = name.endswith(SUFFIX)
    chip = name.removesuffix(SUFFIX)
    path = Path(chip) if chip.endswith(".toml") else DIRECTORY / f"{chip}.toml"
    if not path.is_file():
        raise InputError(
            "no such machine",
            where="--machine",
            found=repr(name),
            expected=f"one of {', '.join(names())}, or the path of a .toml file",
            hint=did_you_mean(name, names()),
        )
    machine = _machine(_text(path), str(path))
    if of_vector_cores:
        machine = _vector_cores(machine)
    if known is not None:
        known[name] = machine
    return machine


@lru_cache(maxsize=64)
def _machine(text: str, where: str) -> Machine:
    return parse(_tables(text, where), where)


@lru_cache(maxsize=64)
def _vector_cores(machine: Machine) -> Machine:
    return machine_of_vector_cores(machine)


def read(path: Path) -> dict[str, Any]:
    """The tables of a machine file, unchecked.

    Raises:
        InputError: the file cannot be read, or is no TOML.
    """
    return _tables(_text(path), str(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not a TOML file: {error}", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", where=str(path)) from None


def _tables(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not a TOML file: {error}", where=where) from None


def parse(data: dict[str, Any], where: str) -> Machine:
    """Checks a machine file's tables against the schema; `where` names the file in messages."""
    try:
        machine = Machine.model_validate(data)
    except pydantic.ValidationError as error:
        # A misspelt key is also a missing one; the misspelling says more.
        first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise InputError(
                "unknown key",
                where=where,
                found=repr(key),
                hint=did_you_mean(str(first["loc"][-1]), known_keys()) or "remove it",
            ) from None
        if first["type"] == "missing":
            raise InputError("missing key", where=where, expected=repr(key)) from None
        raise InputError(
            f"bad value of {key!r}",
            where=where,
            found=repr(first["input"]),
            expected=first["msg"].removeprefix("Input should be "),
        ) from None
    check(machine, where)
    return machine


def check_cores(machine: Machine, cores: int) -> None:
    """Raises an `InputError` unless `machine` has that many cores; 0 stands for all."""
    if not 0 <= cores <= machine.cores:
        raise InputError(
            "no such number of cores",
            where="cores",
            found=str(cores),
            expected=f"1 to {machine.cores}, or 0 for all of {machine.name}",
        )


def check_host_link(machine: Machine) -> None:
    """Raises an `InputError` unless the host can bring weights to `machine` while kernels run."""
    if machine.host_link is None:
        raise InputError(
            f"{machine.name} has no link to the host",
            where="option weights",
            found="streamed",
            expected="a machine file with the section [host_link]",
            hint="ascend310 has one: gigabytes_per_second and latency_us",
        )
