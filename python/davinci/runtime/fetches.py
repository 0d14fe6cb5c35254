"""Weights that the host brings to the arena while launches run.

`davinci.passes.ascend.streaming` decides which; the host's function says in front of which launch a
transfer may begin. When the launch that reads them begins follows from the times of the launches
(`davinci.report.launching`): here bytes move, and profiles get what they have to wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from davinci.runtime.arguments import Array
from davinci.simulator import Device, LaunchProfile
from davinci.simulator.timing.profile import Fetch


@dataclass
class _Transfer:
    """Bytes that go to an address of global memory.

    Attributes:
        behind: launches that are over before it begins.
        array: what it brings; None without data.
        reader: the numbers of the launch that reads it, and of the kernel in that.
    """

    name: str
    address: int
    nbytes: int
    behind: int
    value: Callable[[], Array]
    array: Array | None = None
    reader: tuple[int, int] | None = None


class Fetches:
    """The transfers of a program, in order."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._transfers: list[_Transfer] = []
        self._coming: dict[int, _Transfer] = {}

    @property
    def places(self) -> set[int]:
        """Numbers of the launches in front of which a transfer begins."""
        return {transfer.behind for transfer in self._transfers}

    @property
    def nbytes(self) -> int:
        """Bytes that all of them bring."""
        return sum(transfer.nbytes for transfer in self._transfers)

    def add(
        self, name: str, address: int, nbytes: int, behind: int, value: Callable[[], Array]
    ) -> None:
        """Adds a transfer of a constant.

        Args:
            behind: launches before it.
            value: gives the constant; it is not asked for what nobody reads.
        """
        made = _Transfer(name, address, nbytes, behind, value)
        self._transfers.append(made)
        self._coming[address] = made
        if self._device.data:
            made.array = np.array(value())

    def read(
        self, arguments: Sequence[int], loads: Collection[int], reader: tuple[int, int]
    ) -> None:
        """Notes that a kernel reads what came to the addresses of its arguments.

        Args:
            loads: numbers of arguments from which the scalar unit loads, which needs them without
                data too.
            reader: see `_Transfer`.
        """
        for number, address in enumerate(arguments):
            made = self._coming.pop(address, None)
            if made is not None:
                made.reader = reader
                if number in loads and made.array is None:
                    made.array = np.array(made.value())

    def end(self) -> None:
        """Lets go of what only reading a program needs."""
        for transfer in self._transfers:
            assert transfer.reader is not None, "weights that come are read"
            transfer.value = _gone

    def receive(self, launch: int) -> None:
        """Has the bytes arrive whose transfer begins in front of a launch. Nothing reads or writes
        their place before the launch that waits for them."""
        for transfer in self._transfers:
            if transfer.behind == launch:
                self._device.receive(transfer.address, transfer.nbytes, transfer.array)

    def mark(self, profiles: Sequence[Sequence[LaunchProfile]]) -> None:
        """Gives the profiles of launches what is fetched for them."""
        for transfer in self._transfers:
            assert transfer.reader is not None, "weights that come are read"
            launch, kernel = transfer.reader
            profile = profiles[launch][kernel]
            profile.fetches += (Fetch(transfer.nbytes, transfer.behind),)

    def constants(self) -> dict[str, Array]:
        """The bytes of what they bring, by name."""
        return {
            transfer.name: np.frombuffer(transfer.array.tobytes(), dtype=np.uint8)
            for transfer in self._transfers
            if transfer.array is not None
        }


def _gone() -> Array:
    raise AssertionError("the module is gone once it is read")
