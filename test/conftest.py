"""Settings of all tests."""

import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# What was compiled before must not answer for what is tested, in processes that tests start either.
os.environ["DAVINCI_CACHE"] = ""

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

STATES: dict[ModuleType, list[tuple[np.random.Generator, Any]]] = {}
"""The random generators of each module of tests, with what they were when it was imported."""

YOUNG_OBJECTS = 200_000
"""New objects from which on garbage is looked for: a compilation makes fewer, nearly all of which
die without that. Searches took a twentieth of all tests."""

# Simulated kernels take tens of milliseconds, and the same examples must run everywhere.
settings.register_profile("davinci", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("davinci")


def pytest_configure(config: pytest.Config) -> None:
    """A name that cannot be found, which users are only warned of, fails a test."""
    config.addinivalue_line("filterwarnings", "error::davinci.for_readers.NamingWarning")


def pytest_collection_finish() -> None:
    """What is there now stays to the end: the collector, which goes through all that it knows each
    time the number of objects has grown by a quarter, need not go through it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


@pytest.fixture(scope="module")
def benchmark_script(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Any]]:
    """Imports a script, by name, of the room of benchmarks that mirrors the folder of the test."""
    room = str(BENCHMARKS / request.path.parent.name)
    sys.path.insert(0, room)
    yield importlib.import_module
    sys.path.remove(room)


@pytest.fixture(autouse=True)
def same_numbers(request: pytest.FixtureRequest) -> None:
    """Lets the generators of a module draw for each test what they would draw were it run alone, so
    that no test depends on which others its worker ran before."""
    module = request.module
    if module not in STATES:
        made = (value for value in vars(module).values() if isinstance(value, np.random.Generator))
        STATES[module] = [(random, random.bit_generator.state) for random in made]
    for random, state in STATES[module]:
        random.bit_generator.state = state
