"""Random networks, fused and not, on all machines that kernels are made for, against StableHLO's
interpreter."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import davinci
from davinci import frontends
from davinci import machine as machines
from davinci.errors import DavinciError
from davinci.mlir import make_context
from davinci.reference import interpreter
from random_graph_steps import STEPS
from random_graphs import INFINITY, MINUS_INFINITY, Graph, Step

Outputs = Mapping[str, npt.NDArray[Any]]

MACHINES = ("ascend910", "small", "ascend310", "ascend910b")

SMALLER = (
    ("UB  = { bytes = 262144,", "UB  = { bytes = 65536,"),
    ("L1  = { bytes = 1048576,", "L1  = { bytes = 131072,"),
    ("event_ids = 4 ", "event_ids = 3 "),
)
"""What `small_machine` has instead of ascend910."""

CORES = (1, 2, 3, 8, 31, 32)
"""That a network may use; more than a machine has are all of its."""

LAUNCHES = ("many", "joined")
"""Values of `--launches` that networks are compiled with."""

EXACT, ROUNDED = 1e-5, 2e-3
"""Errors as a share of an output's largest value that are always allowed, without and with f16:
some roundings more than the reference makes."""

OWN = 8
"""Times the reference's own error that is allowed: computed as the policy `mixed` says, factors of
products rounded to f16 and all else in f32, against f64. A difference of nearly equal values has
lost most of its digits in any computation."""

PRODUCT = re.compile(
    r"(%v\d+) = stablehlo.dot_general (%\w+), (%\w+),(.*) : "
    r"\(tensor<(\S+)xf32>, tensor<(\S+)xf32>\) -> (.*)"
)


@dataclass(frozen=True)
class Way:
    """How a network is compiled."""

    machine: str
    cores: int
    fusion: str = "all"
    rewrites: str = "all"
    launches: str = "many"

    def __str__(self) -> str:
        choices = f"fusion {self.fusion}, rewrites {self.rewrites}, launches {self.launches}"
        return f"{self.machine}, {self.cores} cores, {choices}"


@dataclass(frozen=True)
class Finding:
    """What went wrong.

    Attributes:
        what: the first words of the error, or of the difference.
        text: of the network.
    """

    seed: int
    way: Way
    what: str
    text: str


@cache
def small_machine() -> str:
    """An ascend910 with little room and few event ids, as the path of its file: tiles are small,
    long rows come in pieces, flags are merged."""
    text = (machines.DIRECTORY / "ascend910.toml").read_text(encoding="utf-8")
    for old, new in SMALLER:
        assert old in text, f"ascend910 has no {old!r}"
        text = text.replace(old, new)
    path = Path(FOLDER.name) / "small.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


FOLDER = tempfile.TemporaryDirectory(prefix="davinci-")


def ways(seed: int, count: int, allowed: Sequence[str] = MACHINES) -> list[Way]:
    """`count` fused and as many unfused ways, each on another of the machines with cores at random,
    half of them with launches in phases."""
    rng = np.random.default_rng([seed, 1])
    found = []
    for number in range(count):
        machine = allowed[(seed + number) % len(allowed)]
        machine = small_machine() if machine == "small" else machine
        most = machines.load(machine).cores
        for place, fusion in enumerate(("all", "none")):
            cores = min(most, int(rng.choice(CORES)))
            launches = LAUNCHES[(seed // len(allowed) + number + place) % len(LAUNCHES)]
            found.append(Way(machine, cores, fusion, launches=launches))
    return found


def evaluated(graph: Graph, text: str, inputs: Sequence[npt.NDArray[Any]]) -> Outputs:
    """What StableHLO's interpreter says."""
    module = frontends.load(text, make_context())
    names = [value.name for value in graph.results]
    given = dict(zip((v.name for v in graph.arguments), inputs, strict=True))
    return interpreter.evaluate(module, given, names)


def in_f64(graph: Graph) -> Outputs:
    text = graph.text.replace("f32>", "f64>")
    text = text.replace(INFINITY, "0x7FF0000000000000")
    text = text.replace(MINUS_INFINITY, "0xFFF0000000000000")
    return evaluated(graph, text, [x.astype(np.float64) for x in graph.inputs])


def in_mixed_precision(graph: Graph) -> Outputs:
    def rounded(match: re.Match[str]) -> str:
        result, a, b, how, left, right, kind = match.groups()
        lines = [
            f"{result}_{i} = stablehlo.convert {name} : (tensor<{shape}xf32>) -> "
            f"tensor<{shape}xf16>"
            for i, (name, shape) in enumerate(((a, left), (b, right)))
        ]
        types = f"(tensor<{left}xf16>, tensor<{right}xf16>) -> {kind}"
        product = f"{result} = stablehlo.dot_general {result}_0, {result}_1,{how} : {types}"
        return "\n  ".join([*lines, product])

    return evaluated(graph, PRODUCT.sub(rounded, graph.text), graph.inputs)


def limits_of(graph: Graph, wanted: Outputs) -> dict[str, float]:
    """The largest error of each output that is allowed."""
    share = ROUNDED if graph.f16 else EXACT
    own = in_mixed_precision(graph)
    return {
        name: max(share * largest(values), OWN * largest(own[name] - values))
        for name, values in wanted.items()
    }


def largest(values: npt.NDArray[Any]) -> float:
    return float(np.abs(values).max(initial=0.0))


def findings(
    seed: int,
    length: int,
    most_elements: int,
    count: int,
    steps: Mapping[Step, int] = STEPS,
    allowed: Sequence[str] = MACHINES,
) -> Iterator[Finding]:
    """Faults, errors and differences of one network, in `count` pairs of ways, on some of the
    allowed machines."""
    graph = Graph(seed, most_elements)
    graph.walk(length, steps)
    yield from differences(graph, seed, ways(seed, count, allowed))


def differences(graph: Graph, seed: int, chosen: Sequence[Way]) -> Iterator[Finding]:
    """Faults, errors and differences of a network that is compiled in these ways. What no value in
    GM needs is poisoned between launches."""
    wanted = in_f64(graph)
    limits = limits_of(graph, wanted)
    for way in chosen:
        try:
            executable = davinci.compile(graph.text, **asdict(way))
            executable.poison = True
            found = executable.run(dict(zip(executable.input_names, graph.inputs, strict=True)))
        except DavinciError as failed:
            yield Finding(seed, way, f"{type(failed).__name__}: {failed}", graph.text)
            continue
        for (name, limit), values in zip(limits.items(), found.values(), strict=True):
            error = largest(values - wanted[name])
            if not error <= limit:
                what = f"{name} is off by {error:.3g} of {largest(wanted[name]):.3g}, "
                yield Finding(seed, way, f"{what}allowed {limit:.3g}", graph.text)
