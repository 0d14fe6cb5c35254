"""What proofs by random draws share: seeds, and what came of them."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from davinci.errors import DavinciError


@dataclass(frozen=True)
class Draw:
    """Something drawn that can be held against a reference.

    Attributes:
        kind: under which it is counted.
        text: that says what it is.
        check: raises AssertionError where results are wrong; False where nothing can be said.
    """

    kind: str
    text: str
    check: Callable[[], bool | None]


def search(description: str, draw: Callable[[int], Draw], count: int) -> int:
    """Checks what is drawn for each of a row of seeds; prints what fails, and how many of what kind
    there were. Reads the command line; returns the exit code.

    Args:
        count: how many seeds there are unless the command line says something else.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after them")
    options = parser.parse_args()
    began, found = time.monotonic(), Counter[str]()
    for seed in range(options.first, options.first + options.count):
        if time.monotonic() - began > options.seconds:
            break
        drawn = draw(seed)
        found[drawn.kind] += 1
        try:
            found["not compared"] += drawn.check() is False
        except Exception as error:  # of any kind: each is counted, and the walk goes on
            kind = outcome(error)
            found[kind] += 1
            print(f"{kind}: seed {seed}, {drawn.text}: {error}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in found.items() if count))
    return int(any(found[kind] for kind in BAD))


BAD = ("wrong", "faults", "internal errors")


def outcome(error: Exception) -> str:
    """Under which of `BAD` what a check raised is counted."""
    if isinstance(error, AssertionError) and error.args:
        return "wrong"
    return "faults" if isinstance(error, DavinciError) else "internal errors"


def search_layers(description: str, module: Any, count: int) -> int:
    """The same of layers that a module of the tests draws, each in one of its `WAYS` in turn."""

    def draw(seed: int) -> Draw:
        drawn = module.Draw(seed)
        layer, way = drawn.layer(), module.WAYS[seed % len(module.WAYS)]
        return Draw(drawn.kind, f"{way}: {layer.text}", partial(layer.check, **way))

    return search(description, draw, count)
