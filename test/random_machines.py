"""Machine files of the package, edited at random within their schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import davinci
from davinci import machine as machines
from davinci.errors import CompileError, InputError
from davinci.reference import check
from davinci.zoo import ZooModel

FACTORS = (0, 1 / 1024, 1 / 64, 1 / 16, 1 / 4, 1 / 2, 3 / 4, 1.5, 2, 4, 16, 1024)
"""What a number is multiplied by."""

Path_ = tuple[str | int, ...]
NAMES = ("name", "kind")
"""Words that say what a file is; with another kind it is another machine."""


def edited(name: str, seed: int) -> tuple[dict[str, Any], str]:
    """The tables of the machine `name` with one to three of their values changed, and what was
    changed in words: numbers are multiplied, replaced by 1 or shifted by 1; entries of lists and
    tables are left out."""
    random = np.random.default_rng([seed, *name.encode()])
    data = machines.read(machines.DIRECTORY / f"{name}.toml")
    words = []
    for _ in range(int(random.integers(1, 4))):
        places = [place for place in leaves(data) if place[0] not in NAMES]
        # A table with many entries is as likely as one number of another.
        tables = sorted({place[0] for place in places}, key=str)
        table = tables[int(random.integers(len(tables)))]
        places = [place for place in places if place[0] == table]
        words.append(change(data, places[int(random.integers(len(places)))], random))
    return data, ", ".join(words)


def leaves(data: Any, place: Path_ = ()) -> list[Path_]:
    """Where the values in nested tables and lists are."""
    if not isinstance(data, (dict, list)):
        return [place]
    items = data.items() if isinstance(data, dict) else enumerate(data)
    return [leaf for key, value in items for leaf in leaves(value, (*place, key))]


def change(data: Any, place: Path_, random: np.random.Generator) -> str:
    """Changes the value at `place` in `data`; returns what was done."""
    owner = data
    for key in place[:-1]:
        owner = owner[key]
    last, text = place[-1], ".".join(map(str, place))
    value = owner[last]
    if isinstance(value, str) or random.random() < 0.1:
        del owner[last]
        return f"{text} without {value!r}" if isinstance(last, int) else f"{text} removed"
    if isinstance(value, bool):
        owner[last] = not value
    elif random.random() < 0.2:
        owner[last] = int((1, value + 1, max(0, value - 1))[int(random.integers(3))])
    else:
        made = value * FACTORS[int(random.integers(len(FACTORS)))]
        owner[last] = int(made) if isinstance(value, int) else made
    return f"{text} = {owner[last]}"


def toml(data: Mapping[str, Any], name: str = "") -> str:
    """The text of tables of numbers, words, lists and tables."""
    tables = {key: value for key, value in data.items() if isinstance(value, dict)}
    lines = [f"[{name}]"] if name else []
    lines += [f"{json.dumps(k)} = {json.dumps(v)}" for k, v in data.items() if k not in tables]
    inner = [toml(table, f"{name}.{key}" if name else key) for key, table in tables.items()]
    return "\n".join([*lines, *inner])


def try_machine(path: Path, network: ZooModel, cores: int = 0) -> str:
    """Compiles and runs a network on the machine of the file at `path`: "right", or "refused: .."
    where the file or the machine is refused before compilation begins.

    Raises:
        AssertionError: a wrong result, or an error after compilation began.
    """
    stages: list[str] = []
    try:
        executable = davinci.compile(
            network.proto, machine=str(path), cores=cores, progress=stages.append
        )
    except (InputError, CompileError) as error:
        assert not stages[1:], f"refused in {stages[-1]}: {error}"
        return f"refused: {error}"
    inputs = network.inputs(0)
    outputs = executable.run(inputs)
    check.require(check.compare(outputs, check.reference_onnx(network.proto, inputs)), "mixed")
    return "right"
