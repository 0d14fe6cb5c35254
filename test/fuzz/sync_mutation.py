"""Mutation of synchronisation: instruction streams with flags and barriers taken out.

A static mutant lacks one instruction of the kernel's code, in every iteration and on every block; a
dynamic one lacks a single execution of it. Taking out half a flag always leaves the other half, so
flags are also taken out whole: a set with the waits that it answers. Each mutant runs on the
simulator, and `happens_before` says independently whether something is wrong with it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol
from unittest import mock

import numpy as np

from davinci import compiler, frontends
from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.errors import DeviceFault
from davinci.isa.core import LOCATION_SHIFT, Pipe, Records
from davinci.mlir import ir, make_context
from davinci.passes.builder import as_attribute, op
from davinci.passes.pipeline import pipelines
from davinci.runtime.executable import Executable
from davinci.simulator import Device
from davinci.simulator.core.streams import BlockProgram
from fuzz.happens_before import Order
from fuzz.stream_steps import SYNC, Conflicts, Step, decode, matched

LOCATION = np.uint64(LOCATION_SHIFT)


@dataclass
class Kernel:
    """A kernel as it ran.

    Attributes:
        streams: the records of each block.
        statics: for each static synchronisation instruction, by location id, what it is.
        device: where it ran; streams are replayed there.
    """

    name: str
    device: Device
    streams: list[Records]
    statics: dict[int, str] = field(default_factory=dict)


@dataclass
class Mutant:
    """What is left out, for each block the numbers of steps."""

    kind: str
    what: str
    left_out: dict[int, set[int]]


@dataclass
class Outcomes:
    """Of all mutants, by kind.

    Attributes:
        counts: (kind, outcome) -> number. Outcomes: reported, redundant, escaped, false alarm.
        messages: first words of what the simulator said -> number.
        redundant: a line for each static mutant that is.
        wrong: a line for each escape and false alarm, also those of kernels as compiled.
        relays: flags, execution by execution, to a pipe that does nothing but answer them.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    redundant: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    kernels: int = 0
    blocks: int = 0
    instructions: int = 0
    relays: int = 0

    def total(self, outcome: str) -> int:
        return sum(count for (_, name), count in self.counts.items() if name == outcome)


class _Tee:
    """A core that also keeps the records it is given."""

    def __init__(self, core: Any) -> None:
        self._core, self.parts = core, []  # type: ignore[var-annotated]
        self.memory, self.sub_block = core.memory, core.sub_block

    def consume(self, records: Records) -> None:
        self.parts.append(records)
        self._core.consume(records)


class Recordable(Protocol):
    """A network: of the zoo, or of `group_kernels`.

    Attributes:
        proto: what `frontends.load` takes.
    """

    @property
    def proto(self) -> Any: ...

    def inputs(self, seed: int) -> Mapping[str, Any]: ...


def record(
    model: Recordable, cores: int, only: Sequence[str] = (), machine: str = "ascend910"
) -> list[Kernel]:
    """Compiles a network, runs it with every check on, and keeps the streams of each kernel.

    Args:
        only: names of the kernels to keep; none: all.
    """
    module = frontends.load(model.proto, make_context())
    compiler.lower(module, pipelines.Options(machine, cores))
    with module.context, ir.Location.unknown():
        number_synchronisation(module.operation)
    kernels: dict[str, Kernel] = {}
    launch = Device.launch

    def recording(
        device: Device, name: str, programs: Any, arguments: Any, blocks: int,
        locations: Sequence[str], *rest: Any, **more: Any,
    ) -> Any:  # fmt: skip
        if name in kernels or (only and name not in only):
            return launch(device, name, programs, arguments, blocks, locations, *rest, **more)
        program, streams = teed(programs["AICORE"])
        profile = launch(device, name, program, arguments, blocks, locations, *rest, **more)
        kernels[name] = kernel_of(name, device, streams, locations)
        return profile

    with mock.patch.object(Device, "launch", recording):
        Executable(module, machines.load(machine), cores).run(model.inputs(seed=1))
    return list(kernels.values())


def teed(program: BlockProgram) -> tuple[BlockProgram, list[Records]]:
    """The same program, and a list to which the stream of each block that it runs is added."""
    streams: list[Records] = []

    def run(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        tee = _Tee(core)
        program(arguments, block, blocks, tee)
        streams.append(np.concatenate(tee.parts))

    return run, streams


def kernel_of(
    name: str, device: Device, streams: list[Records], locations: Sequence[str]
) -> Kernel:
    """A kernel that ran; its synchronisation has locations of `number_synchronisation`."""
    kernel = Kernel(name, device, streams)
    for stream in kernel.streams:
        for location in (stream[:, 0] >> LOCATION).tolist():
            text = locations[location]
            if text.startswith("sync "):
                kernel.statics[location] = text
    return kernel


def number_synchronisation(root: Any) -> None:
    """Gives every flag and barrier of a module at the llvm level a location of its own."""

    def visit(module: Any) -> Any:
        if module.name != "builtin.module" or "hivm.locations" not in module.attributes:
            return ir.WalkResult.ADVANCE
        texts: list[str] = attribute(module, "hivm.locations", [""])
        for call in _synchronisation(module):
            number = attribute(call.operands[-1].owner, "value", 0)
            text = texts[number >> 32]
            name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
            with ir.InsertionPoint(call):
                i64 = ir.IntegerType.get_signless(64)
                value = ir.IntegerAttr.get(i64, number & 0xFFFFFFFF | len(texts) << 32)
                constant = op("llvm.mlir.constant", [], [i64], value=value)
            call.operands[len(call.operands) - 1] = constant.result
            texts.append(f"sync {len(texts)} {name} {text}")
        module.attributes["hivm.locations"] = as_attribute(texts)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)


def _synchronisation(module: Any) -> list[Any]:
    found = []

    def visit(call: Any) -> Any:
        if call.name == "llvm.call":
            callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
            if callee.removeprefix("hivm.") in SYNC:
                found.append(call)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def replay(device: Device, stream: Records, locations: Sequence[str] = ()) -> str:
    """Runs a stream as one block; returns the message of the fault, or ""."""
    try:
        device.launch("k", lambda a, b, n, core: core.consume(stream), [], 1, locations)
    except DeviceFault as fault:
        return str(fault.message)
    return ""


def mutants(kernel: Kernel, blocks: Sequence[Sequence[Step]]) -> Iterator[Mutant]:
    """All mutants of a kernel."""
    statics: dict[int, dict[int, set[int]]] = defaultdict(dict)
    groups: dict[int, int] = {number: number for number in kernel.statics}

    def root(number: int) -> int:
        while groups[number] != number:
            number = groups[number]
        return number

    pairs = []
    for block, stream in enumerate(kernel.streams):
        places = (stream[:, 0] >> LOCATION).tolist()
        for i, place in enumerate(places):
            if place in kernel.statics:
                statics[place].setdefault(block, set()).add(i)
        for first, second in matched(stream.tolist()):
            pairs.append((block, {first, second}))
            groups[root(places[first])] = root(places[second])
    together: dict[int, dict[int, set[int]]] = defaultdict(dict)
    for place, left_out in statics.items():
        yield Mutant("static instruction", kernel.statics[place], left_out)
        if "pipe_barrier" not in kernel.statics[place]:
            for block, numbers in left_out.items():
                together[root(place)].setdefault(block, set()).update(numbers)
    for place, left_out in together.items():
        yield Mutant("static flag", f"the flag of {kernel.statics[place]}", left_out)
    for place, left_out in statics.items():
        for block, numbers in left_out.items():
            for i in sorted(numbers):
                text = f"#{i} of block {block}: {kernel.statics[place]}"
                yield Mutant("dynamic instruction", text, {block: {i}})
    for block, numbers in pairs:
        what = " and ".join(f"#{i} {blocks[block][i].name}" for i in sorted(numbers))
        yield Mutant("dynamic flag", f"{what} of block {block}", {block: numbers})


def judge(kernel: Kernel, sequential: Sequence[Pipe], outcomes: Outcomes, every: int = 1) -> None:
    """Runs a kernel's streams as they are, then all its mutants, or each `every`th of them."""
    blocks = [decode(stream) for stream in kernel.streams]
    conflicts = [Conflicts(steps) for steps in blocks]
    outcomes.kernels += 1
    outcomes.blocks += len(blocks)
    outcomes.instructions += sum(map(len, blocks))
    outcomes.relays += sum(map(relays, blocks))
    for block, (stream, steps) in enumerate(zip(kernel.streams, blocks, strict=True)):
        message = replay(kernel.device, stream)
        sound = Order(steps, sequential).verdict(conflicts[block]).sound
        if message or not sound:
            outcomes.wrong.append(
                f"{kernel.name}, block {block}, as compiled: {message or 'order'}"
            )
    for mutant in islice(mutants(kernel, blocks), 0, None, every):
        message, sound = "", True
        for block, left_out in mutant.left_out.items():
            stream = np.delete(kernel.streams[block], sorted(left_out), axis=0)
            found = replay(kernel.device, stream)
            order = Order(blocks[block], sequential, left_out)
            fine = order.verdict(conflicts[block]).sound
            if bool(found) == fine:
                outcome = "false alarm" if fine else "escaped"
                outcomes.wrong.append(f"{kernel.name}: {mutant.kind} {mutant.what}: {outcome}")
                outcomes.counts[mutant.kind, outcome] += 1
                break
            message, sound = message or found, sound and fine
        else:
            if sound:
                outcomes.counts[mutant.kind, "redundant"] += 1
                if mutant.kind.startswith("static"):
                    outcomes.redundant.append(f"{kernel.name}: {mutant.what}")
            else:
                outcomes.counts[mutant.kind, "reported"] += 1
                outcomes.messages[message.split(":")[0]] += 1


def relays(steps: Sequence[Step]) -> int:
    """Flags to pipes without work: the other pipe gets one back, and knows that it is done."""
    working = {step.pipe for step in steps if step.name not in SYNC}
    sets = [step.values["dst_pipe"] for step in steps if step.name == "set_flag"]
    return sum(Pipe(dst) not in working for dst in sets)


def sequential_pipes(machine: str = "ascend910") -> list[Pipe]:
    """Pipes whose own instructions never overlap, as the machine file lists them."""
    return [Pipe[name] for name in machines.load(machine).sync.sequential_pipes]


def table(outcomes: Mapping[str, Outcomes]) -> str:
    """Numbers of mutants, a line for each kind."""
    names = ("reported", "redundant", "escaped", "false alarm")
    lines = [f"{'':<34}" + "".join(f"{name:>12}" for name in ("mutants", *names))]
    for title, each in outcomes.items():
        lines.append(
            f"{title}: {each.kernels} kernels, {each.blocks} blocks, "
            f"{each.instructions} instructions, {each.relays} relays"
        )
        for kind in dict.fromkeys(kind for kind, _ in each.counts):
            numbers = [each.counts[kind, name] for name in names]
            lines.append(f"  {kind:<32}" + "".join(f"{n:>12}" for n in (sum(numbers), *numbers)))
        numbers = [each.total(name) for name in names]
        lines.append(f"  {'all':<32}" + "".join(f"{n:>12}" for n in (sum(numbers), *numbers)))
    return "\n".join(lines)
