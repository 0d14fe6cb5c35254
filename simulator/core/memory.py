"""The memories of the machine, byte by byte.

Every memory has its bytes and, beside them, a shadow that says which were ever written: a read of
a byte that nobody wrote is a fault of the program.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from davinci.errors import DeviceFault, InputError
from davinci.isa.core import Array, Space
from davinci.machine import Machine
from davinci.simulator.core.regions import Region, union
from davinci.units import BLOCK_BYTES, round_up

SLACK_BYTES = 1 << 25
"""Room behind the end of a memory that the host maps but never fills: a region whose last lanes are
masked may end inside the memory while its NumPy view reaches past it. Longer than any such tail."""


MOST_KEPT = 1 << 16
"""Regions of global memory that are known to be written; with more, all are forgotten."""

WRITTEN: dict[int, tuple[Any, int]] = {
    1: (np.uint8, 0x01),
    2: (np.uint16, 0x0101),
    4: (np.uint32, 0x01010101),
    8: (np.uint64, 0x0101010101010101),
}
"""How the shadow of a written element looks, by its size in bytes."""


class WrittenRegion:
    """A region to be written.

    Args:
        view: of the memory.
        mask: elements that are written, None if all are.
    """

    __slots__ = ("_mask", "_view")

    def __init__(self, view: Array, mask: Array | None) -> None:
        self._view, self._mask = view, mask

    def store(self, values: Array) -> None:
        """Writes what broadcasts to the shape of the region, but for what its mask leaves out."""
        if self._mask is None:
            self._view[...] = values
        else:
            np.copyto(self._view, values, where=self._mask, casting="unsafe")


def private_zeros(count: int) -> npt.NDArray[np.uint8]:
    """Bytes; those that nothing touches cost no host memory."""
    return np.zeros(count, dtype=np.uint8)


def shared_zeros(count: int) -> npt.NDArray[np.uint8]:
    """As `private_zeros`; a process that is forked later has the same bytes, not copies of them."""
    return np.frombuffer(mmap.mmap(-1, count), dtype=np.uint8)


class Memory:
    """One memory. Regions of instructions lie at a base address.

    Attributes:
        space: which one.
        size: capacity in bytes.
        align_bytes: granularity of the addresses that instructions may name.
        data: uint8[size], the bytes.
        written: bool[size], whether a byte holds anything; bool[0] where all of them count as
            written, and nothing is noted.
        backing, shadow: the same with `SLACK_BYTES` behind, to make views from.
    """

    def __init__(
        self,
        space: Space,
        size: int,
        align_bytes: int,
        shadowed: bool = True,
        zeros: Callable[[int], npt.NDArray[np.uint8]] = private_zeros,
    ) -> None:
        self.space, self.size, self.align_bytes = space, size, align_bytes
        shadow_bytes = size + SLACK_BYTES if shadowed else 0
        self.backing, self.shadow = zeros(size + SLACK_BYTES), zeros(shadow_bytes).view(np.bool_)
        self.data, self.written = self.backing[:size], self.shadow[:size]

    def part(self, start: int, size: int) -> Memory:
        """Some of its bytes as a memory of their own, whose addresses begin at 0."""
        found = copy(self)
        found.size = size
        found.backing, found.shadow = self.backing[start:], self.shadow[start:]
        found.data, found.written = found.backing[:size], found.shadow[:size]
        return found

    def view(self, region: Region, base: int) -> Array:
        """The elements of a region as an array of its shape, which shares the bytes."""
        if region.empty:
            return np.zeros(region.shape, region.dtype)
        return np.ndarray(region.shape, region.dtype, self.backing, base, region.strides)

    def place(self, region: Region, base: int) -> WrittenRegion:
        """A region to be written; that it was is marked by others."""
        return WrittenRegion(self.view(region, base), None if region.empty else region.mask)

    def mark(self, region: Region, base: int) -> None:
        """Marks a region as written."""
        if region.empty:
            return
        if region.contiguous:
            self.shadow[base : base + region.run_bytes] = True
        elif region.mask is None:
            shape, strides = region.byte_shape, region.byte_strides
            np.ndarray(shape, np.bool_, self.shadow, base, strides)[...] = True
        else:
            kind, full = WRITTEN[region.dtype.itemsize]
            marks: Array = np.ndarray(region.shape, kind, self.shadow, base, region.strides)
            np.copyto(marks, full, where=region.mask)

    def marks(self, places: Iterable[tuple[Region, int]]) -> list[npt.NDArray[np.bool_]]:
        """The parts of the shadow that say that these regions were written."""
        starts, ends = union(places)
        return [self.shadow[i:j] for i, j in zip(starts.tolist(), ends.tolist(), strict=True)]

    def first_unwritten(self, region: Region, base: int) -> int | None:
        """Address of the first byte of a region that nobody wrote, None if there is none."""
        if region.empty:
            return None
        shadow = self.shadow
        if region.contiguous:
            whole = shadow[base : base + region.run_bytes].all()
        elif region.mask is None:
            shape, strides = region.byte_shape, region.byte_strides
            whole = np.ndarray(shape, np.bool_, shadow, base, strides).all()
        else:
            kind, full = WRITTEN[region.dtype.itemsize]
            marks: Array = np.ndarray(region.shape, kind, shadow, base, region.strides)
            whole = np.logical_or(marks == full, ~region.mask).all()
        if whole:
            return None
        starts, lengths = region.runs
        for start, length in zip((starts + base).tolist(), lengths.tolist(), strict=True):
            run = shadow[start : start + length]
            if not run.all():
                return int(start + np.argmin(run))
        raise AssertionError("the marks of elements and those of bytes differ")

    def forget(self) -> None:
        """Marks every byte as unwritten, as at the start of a block."""
        self.written.fill(False)


def on_chip(machine: Machine, core: str, shadowed: bool = True) -> dict[Space, Memory]:
    """The memories on the chip of one core of a kind; a memory that it lacks has a size of 0.

    Args:
        core: the kind, as in `core_types` of the machine file.
        shadowed: whether they know which of their bytes were written.
    """
    there = machine.core_types[core].memories
    found = {}
    for space in list(Space)[1:]:
        buffer = machine.buffers.of(space.name)
        size, align = (0, 1) if buffer is None else (buffer.bytes, buffer.align_bytes)
        found[space] = Memory(space, size if space.name in there else 0, align, shadowed)
    return found


class NearMemories(NamedTuple):
    """The memories of a core.

    Attributes:
        chip: by space.
        shared: which of them other cores of its group reach too, and where in the group's memory
            its own one begins.
    """

    chip: Mapping[Space, Memory]
    shared: Mapping[Space, int]


def of_group(machine: Machine, shadowed: bool = True) -> list[NearMemories]:
    """The memories of a cube core and of each of its vector cores, which reach some of each other.

    The cube core sees the same memory of all its vector cores as one, in their order.
    """
    types = machine.core_types
    cube = on_chip(machine, "AIC", shadowed)
    vectors = [on_chip(machine, "AIV", shadowed) for _ in range(types["AIV"].count)]
    for name in types["AIC"].reaches:
        space, buffer = Space[name], machine.buffer(name)
        whole = Memory(space, buffer.bytes * len(vectors), buffer.align_bytes, shadowed)
        cube[space] = whole
        for i, vector in enumerate(vectors):
            vector[space] = whole.part(i * buffer.bytes, buffer.bytes)
    for name in types["AIV"].reaches:
        for vector in vectors:
            vector[Space[name]] = cube[Space[name]]
    spaces = [Space[name] for kind in ("AIC", "AIV") for name in types[kind].reaches]
    found = [NearMemories(cube, dict.fromkeys(spaces, 0))]
    for i, vector in enumerate(vectors):
        own = {s: i * vector[s].size for s in spaces if s.name in types["AIV"].memories}
        found.append(NearMemories(vector, {**dict.fromkeys(spaces, 0), **own}))
    return found


class GlobalMemory(Memory):
    """GM with an allocator. With a shadow, its bytes are those of processes forked later, too.

    Raises:
        InputError: more bytes than the machine has.
    """

    def __init__(self, machine: Machine, size: int, shadowed: bool = True) -> None:
        if size > machine.gm.bytes:
            raise InputError(
                "global memory too small",
                where=machine.name,
                found=f"{size} bytes asked for",
                expected=f"at most {machine.gm.bytes} bytes (gm.bytes of the machine file)",
                hint="use a smaller model or batch, or a machine with more memory",
            )
        zeros = shared_zeros if shadowed else private_zeros
        super().__init__(Space.GM, size, machine.gm.align_bytes, shadowed, zeros)
        self._next = self._line_bytes = machine.gm.line_bytes
        self._whole: set[tuple[Region, int]] = set()

    def allocate(self, nbytes: int) -> int:
        """Returns the address of `nbytes` new bytes, the start of a line.

        The size is rounded up to whole blocks; the padding is zero and counts as written.

        Raises:
            DeviceFault: GM is full.
        """
        address = self._next
        end = address + round_up(nbytes, BLOCK_BYTES)
        if end > self.size:
            raise DeviceFault(
                "global memory is full",
                where="GM",
                found=f"{nbytes} bytes asked for, {self.size - address} of {self.size} left",
                hint="create the Device with more gm_bytes",
            )
        self.data[address + nbytes : end] = 0
        self.written[address + nbytes : end] = True
        self._next = round_up(max(end, address + 1), self._line_bytes)
        return address

    def write(self, address: int, array: Array) -> None:
        """Copies an array into GM.

        Raises:
            DeviceFault: the bytes are not all inside GM.
        """
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._inside(address, flat.size)
        self.data[address : address + flat.size] = flat
        self.written[address : address + flat.size] = True

    def read(self, address: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """Returns a copy of an array in GM, see `array`."""
        return self.array(address, dtype, shape).copy()

    def array(self, address: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """An array in GM, as a view that may not be written.

        Raises:
            DeviceFault: the bytes are not all inside GM, or some were never written.
        """
        kind = np.dtype(dtype)
        end = address + int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        self._inside(address, end - address)
        if not self.written[address:end].all():
            first = address + int(np.argmin(self.written[address:end]))
            raise DeviceFault(
                "the host reads bytes that nobody wrote",
                where="GM",
                found=f"byte {first:#x} of [{address:#x}, {end:#x})",
                hint="the kernels launched so far leave a hole in this buffer",
            )
        found = self.data[address:end].view(kind).reshape(shape)
        found.flags.writeable = False
        return found

    def first_unwritten(self, region: Region, base: int) -> int | None:
        """Address of the first byte of a region that nobody wrote, None if there is none.

        Regions that were found whole are kept until the host discards bytes, for cores read the
        same ones over and over.
        """
        if (region, base) in self._whole:
            return None
        found = super().first_unwritten(region, base)
        if found is None:
            if len(self._whole) >= MOST_KEPT:
                self._whole.clear()
            self._whole.add((region, base))
        return found

    def discard(self, address: int, nbytes: int) -> None:
        """Marks a buffer's bytes as unwritten, so that the next run cannot read the last one's.

        Its padding stays zero and readable.

        Raises:
            DeviceFault: the bytes are not all inside GM.
        """
        self._inside(address, nbytes)
        self.written[address : address + nbytes] = False
        self._whole.clear()
        end = address + round_up(nbytes, BLOCK_BYTES)
        self.data[address + nbytes : end] = 0

    def _inside(self, address: int, nbytes: int) -> None:
        if address < 0 or address + nbytes > self.size:
            raise DeviceFault(
                "out of bounds",
                where="GM",
                found=f"[{address:#x}, {address + nbytes:#x})",
                expected=f"addresses below {self.size:#x}",
            )
