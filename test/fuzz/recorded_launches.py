"""Launches of a split machine as they ran with every check on, and what each core issued."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from davinci.isa.core import Records, Space
from davinci.simulator import Device, JoinedKernels, LaunchProfile
from fuzz.interleaving import Bytes
from fuzz.random_cores import VECTOR_CORES, Seat, seats

Core = tuple[str, int, int]
"""Kind, number of the cube core that it is or belongs to, and which of its vector cores it is."""


@dataclass(frozen=True)
class RecordedLaunch:
    """A launch as it ran, all of its phases.

    Attributes:
        blocks: of the launch; of one in phases, its cores.
        streams: what each core issued, one phase after the other.
        foreign: whether it is code of AscendNPU-IR, with what that relies on.
        gm: global memory as the launch found it.
    """

    name: str
    device: Device
    blocks: int
    streams: Mapping[Seat, Records]
    foreign: bool
    gm: Bytes


class RecordingCore:
    """A core that also keeps the records it is given."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.parts: list[Records] = []
        self.memory, self.sub_block = core.memory, core.sub_block
        self.most_turns = core.most_turns

    def consume(self, records: Records) -> None:
        self.parts.append(records.copy())
        self._core.consume(records)


class _Recording:
    """A launch whose phases are running."""

    def __init__(self, device: Device, launch: JoinedKernels) -> None:
        (call,) = launch.kernels
        self._device, self._names = device, [call.name]
        self._kinds = tuple(launch.launch_kinds or call.programs)
        self._foreign, self._blocks = call.foreign, launch.launch_cores or call.blocks
        self._parts: dict[Core, list[Records]] = {}
        self._gm: Bytes | None = None

    def phase(self, launch: JoinedKernels) -> JoinedKernels:
        """A phase of it that keeps what its cores issue; its blocks run one after the other."""
        (call,) = launch.kernels
        if call.name not in self._names and not launch.meets:
            self._names.append(call.name)

        def teed(kind: str) -> Any:
            program = call.programs[kind]

            def issue(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
                if self._gm is None:
                    self._gm = core.memory(Space.GM).data.copy()
                tee = RecordingCore(core)
                program(arguments, block, blocks, tee)
                place = core_of(kind, block, core.sub_block, call.programs)
                self._parts.setdefault(place, []).extend(tee.parts)

            return issue

        programs = {kind: teed(kind) for kind in call.programs}
        return replace(launch, kernels=(replace(call, programs=programs, alone=True),))

    def recorded(self, name: str) -> RecordedLaunch:
        """What was kept; cores that had no block in any phase issued nothing."""
        assert self._gm is not None, "a launch without blocks"
        nothing = next(iter(self._parts.values()))[0][:0]
        streams = {
            seat: np.concatenate([nothing, *self._parts.get(_core(seat, self._kinds), [])])
            for seat in seats(self._kinds, self._blocks)
        }
        names = " ".join([name, *self._names])
        return RecordedLaunch(names, self._device, self._blocks, streams, self._foreign, self._gm)


def core_of(kind: str, block: int, sub_block: int, kinds: Iterable[str]) -> Core:
    """The core of a block of a launch of these kinds of cores."""
    if "AIC" in kinds:
        return kind, block, sub_block
    return kind, block // VECTOR_CORES, block % VECTOR_CORES


def _core(seat: Seat, kinds: Iterable[str]) -> Core:
    return core_of(seat.kind, seat.block, seat.sub_block, kinds)


def record_launches(name: str, run: Callable[[], object]) -> list[RecordedLaunch]:
    """Runs something that launches kernels on a split machine, and keeps what their cores issue."""
    found: list[_Recording] = []
    profile_of = Device.profile_of

    def recording(
        device: Device, launch: JoinedKernels, kept: Sequence[int]
    ) -> list[LaunchProfile]:
        if not launch.continues:
            found.append(_Recording(device, launch))
        return profile_of(device, found[-1].phase(launch), kept)

    with mock.patch.object(Device, "profile_of", recording):
        run()
    return [launch.recorded(name) for launch in found]
