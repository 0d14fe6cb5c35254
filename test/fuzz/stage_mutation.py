"""Puts launches together that are apart: does the simulator find those that may not be?

Each mutant makes one launch of two calls of kernels. Which pairs race is worked out here from the
bytes that each kernel touched when it ran alone, byte by byte; the compiler's graph of launches and
the simulator's ranges take no part. An *escape* is a pair that shares a byte, one of them writing
it, and is let be; a *false alarm* is a pair that shares none and is reported.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import davinci
from davinci.arrays import random_inputs
from davinci.errors import DeviceFault
from davinci.runtime.executable import Executable
from davinci.simulator.core.core import Core
from davinci.simulator.core.launch import JoinedKernels, KernelCall

OUTCOMES = ("found", "let be", "escaped", "false alarm")

ROWS = 32


def model(chance: random.Random, size: int = 6) -> str:
    """A network of that many products and sums of squares, each of any values before it."""
    kind = f"tensor<{ROWS}x{ROWS}xf32>"
    values = ["%a", "%b"]
    lines = []
    for number in range(size):
        one, other = chance.choice(values), chance.choice(values)
        made = f"%v{number}"
        if chance.random() < 0.7:
            lines.append(
                f"{made} = stablehlo.dot_general {one}, {other}, contracting_dims = [1] x [0] "
                f": ({kind}, {kind}) -> {kind}"
            )
        else:
            lines.append(f"{made} = stablehlo.tanh {one} : {kind}")
        values.append(made)
    results = ", ".join(values[2:])
    types = ", ".join([kind] * size)
    body = "\n  ".join(lines)
    return (
        f"func.func @main(%a: {kind}, %b: {kind}) -> ({types}) {{\n  {body}\n"
        f"  return {results} : {types}\n}}"
    )


def judge(seed: int, models: int) -> Counter[str]:
    """Mutants of so many networks, by outcome."""
    chance = random.Random(seed)
    counts = Counter(dict.fromkeys(OUTCOMES, 0))
    for _ in range(models):
        executable = davinci.compile(model(chance), plan="sequential", launches="many")
        inputs = random_inputs(executable.inputs, seed=1)
        touched = bytes_of_calls(executable, inputs)
        calls = [launch.kernels[0] for launch in executable._host.launches]
        for first in range(len(calls)):
            for second in range(first + 1, len(calls)):
                races = any(map(shares, (0, 1, 1), (1, 0, 1), [touched[first]] * 3,
                                [touched[second]] * 3))  # fmt: skip
                found = reported(executable, calls, first, second, inputs)
                counts[outcome(races, found)] += 1
    return counts


def outcome(races: bool, found: bool) -> str:
    if races:
        return "found" if found else "escaped"
    return "false alarm" if found else "let be"


def shares(mine: int, its: int, first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether both touched a byte, the first as `mine` and the second as `its` (1: writing)."""
    return bool((first[mine] & second[its]).any())


def bytes_of_calls(executable: Executable, inputs: Any) -> list[tuple[Any, Any]]:
    """Of each call, which bytes of global memory it read and wrote."""
    device = executable._host.device
    found = []
    taken: list[Core] = []
    take = device.cores.take

    def watched(kind: str) -> Core:
        core = take(kind)
        taken.append(core)
        return core

    device.cores.take = watched  # type: ignore[method-assign]
    try:
        executable._host._prepare(prepared(executable, inputs))
        for launch in executable._host.launches:
            reads, writes = (np.zeros(len(device._gm.data), dtype=bool) for _ in range(2))
            for block in range(launch.blocks):
                taken.clear()
                (call,) = launch.kernels
                one = replace(call, programs=dict.fromkeys(call.programs, only(call, block)))
                device.profile_of(JoinedKernels((replace(one, blocks=1),)), [0])
                for marks, log in ((reads, taken[0].gm_reads), (writes, taken[0].gm_writes)):
                    for access in log:
                        mark(marks, access)
            found.append((reads, writes))
    finally:
        device.cores.take = take  # type: ignore[method-assign]
    return found


def only(call: KernelCall, block: int) -> Any:
    """The program of one block of a call."""
    (program,) = call.programs.values()
    return lambda arguments, _, __, core: program(arguments, block, call.blocks, core)


def mark(marks: Any, access: Any) -> None:
    starts, lengths = access.region.runs
    for start, length in zip(starts + access.address, lengths, strict=True):
        marks[start : start + length] = True


def prepared(executable: Executable, inputs: Any) -> list[Any]:
    return [inputs[spec.name] for spec in executable.inputs]


def reported(
    executable: Executable, calls: Sequence[KernelCall], first: int, second: int, inputs: Any
) -> bool:
    """Whether the simulator reports a launch of two calls; those between them are left out of the
    launch but have run before it, so that all that is read was written."""
    host, device = executable._host, executable._host.device
    host._prepare(prepared(executable, inputs))
    for call in calls:
        device.profile_of(JoinedKernels((call,)), [0])
    try:
        device.profile_of(JoinedKernels((calls[first], calls[second])), [0, 0])
    except DeviceFault as fault:
        if "race between blocks" not in str(fault):
            raise
        return True
    return False
