"""What proofs by random draws share: seeds, and what came of them."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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


AT_ONCE = 50
"""Draws of one process: what a process has compiled is never given back whole."""


def search(description: str, draw: Callable[[int], Draw], count: int) -> int:
    """Checks what is drawn for each of a row of seeds, in processes of `AT_ONCE` draws each; prints
    what fails, and how many of what kind there were. Reads the command line; returns the exit code.

    Args:
        count: how many seeds there are unless the command line says something else.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after them")
    parser.add_argument("--record", type=Path, metavar="F", help=argparse.SUPPRESS)
    options = parser.parse_args()
    began, found = time.monotonic(), Counter[str]()
    seeds = range(options.first, options.first + options.count)
    if options.record:
        found = walk(draw, seeds, began + options.seconds)
        options.record.write_text(json.dumps(found), encoding="utf-8")
        return 0
    for first in seeds[::AT_ONCE]:
        left = options.seconds - (time.monotonic() - began)
        if left <= 0:
            break
        found += in_a_process(first, min(AT_ONCE, seeds.stop - first), left)
    print(", ".join(f"{count} {name}" for name, count in found.items() if count))
    return int(any(found[kind] for kind in BAD))


def in_a_process(first: int, count: int, seconds: float) -> Counter[str]:
    """What a process of its own counts for some seeds; one that dies is an internal error."""
    with tempfile.TemporaryDirectory(prefix="davinci-") as folder:
        record = Path(folder) / "counts.json"
        options = {"first": first, "count": count, "seconds": seconds, "record": record}
        line = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        code = subprocess.run([sys.executable, sys.argv[0], *line], check=False).returncode
        if record.exists():
            return Counter(json.loads(record.read_text(encoding="utf-8")))
    print(f"internal errors: seeds {first} to {first + count - 1}: exit code {code}", flush=True)
    return Counter({"internal errors": 1})


def walk(draw: Callable[[int], Draw], seeds: Iterable[int], until: float) -> Counter[str]:
    """Checks what is drawn for some seeds, none begun after a time of `time.monotonic`."""
    found = Counter[str]()
    for seed in seeds:
        if time.monotonic() > until:
            break
        drawn = draw(seed)
        found[drawn.kind] += 1
        try:
            found["not compared"] += drawn.check() is False
        except Exception as error:  # of any kind: each is counted, and the walk goes on
            kind = outcome(error)
            found[kind] += 1
            print(f"{kind}: seed {seed}, {drawn.text}: {error}", flush=True)
    return found


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
