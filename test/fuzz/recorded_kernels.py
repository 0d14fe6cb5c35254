"""Kernels as they ran with every check on, and the instructions that each block of them issued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from unittest import mock

import numpy as np

from davinci import compiler, frontends
from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.isa.core import LOCATION_SHIFT, Records
from davinci.machine import Machine
from davinci.mlir import ir, make_context
from davinci.passes.builder import as_attribute, op
from davinci.passes.pipeline import pipelines
from davinci.runtime.executable import Executable
from davinci.simulator import Device, JoinedKernels, KernelCall, LaunchProfile
from davinci.simulator.core.program import BlockProgram
from fuzz.recorded_launches import RecordingCore
from fuzz.stream_steps import SYNC

LOCATION = np.uint64(LOCATION_SHIFT)


@dataclass
class Kernel:
    """A kernel as it ran.

    Attributes:
        streams: the records of each block.
        statics: for each static synchronisation instruction, by location id, what it is.
        device: where it ran.
    """

    name: str
    device: Device
    streams: list[Records]
    statics: dict[int, str] = field(default_factory=dict)

    @property
    def machine(self) -> Machine:
        """That it was compiled for."""
        return self.device.machine


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
    compiler.lower(module, pipelines.Options(machine, cores, launches="many"))
    with module.context, ir.Location.unknown():
        number_synchronisation(module.operation)
    kernels: dict[str, Kernel] = {}
    profile_of = Device.profile_of

    def recording(
        device: Device, launch: JoinedKernels, kept: Sequence[int]
    ) -> list[LaunchProfile]:
        calls: list[KernelCall] = []
        teeds: dict[str, tuple[KernelCall, list[Records]]] = {}
        for call in launch.kernels:
            wanted = call.name in only if only else True
            if wanted and call.name not in kernels and call.name not in teeds:
                program, streams = teed(call.programs["AICORE"])
                teeds[call.name] = call, streams
                call = replace(call, programs={"AICORE": program})
            calls.append(call)
        profiles = profile_of(device, replace(launch, kernels=tuple(calls)), kept)
        for name, (call, streams) in teeds.items():
            kernels[name] = kernel_of(name, device, streams, call.locations)
        return profiles

    with mock.patch.object(Device, "profile_of", recording):
        Executable(module, machines.load(machine), cores).run(model.inputs(seed=1))
    return list(kernels.values())


def teed(program: BlockProgram) -> tuple[BlockProgram, list[Records]]:
    """The same program, and a list to which the stream of each block that it runs is added."""
    streams: list[Records] = []

    def run(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        tee = RecordingCore(core)
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
