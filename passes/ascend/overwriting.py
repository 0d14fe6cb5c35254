"""Values in GM that take the bytes of others: a declared dependence instead of a copy.

before:
    copy(%cache, %copied)              %cache is not needed any more
    update(%copied, %new, %copied)     writes some rows, leaves the others
after:
    update(%cache, %new, %cache)       the copied storage is part of the other one

A launch says which of its outputs may *share* the bytes of which of its inputs: a copy, all of
whose work that saves; a kernel that leaves a part of the input as it is, and so wants both to be
the same bytes; a kernel that reads each tile before it writes it. They do if no later launch needs
those bytes of the input, and no earlier one has touched the output. What lies before and behind
them in the input's storage is given back when its last reader has run (`Storage.pieces`).
An output that is the next value of an argument (`Storage.state`) has that argument's bytes under
the same conditions: the old value is read no more when the new one is written.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from davinci.mlir import Op, ir
from davinci.passes.ascend.host_function import (
    Launch,
    Place,
    Storage,
    Touch,
    bytes_of,
    range_of,
)
from davinci.passes.ascend.kernel_group import group_of_kernel
from davinci.passes.ascend.staging import needs_of
from davinci.schedule.in_place import shareable

Buffer = tuple[Place, ir.MemRefType]
"""A place and the memref type that it is seen as."""

Use = tuple[int, Touch]
"""The number of a launch, and what it touches."""

OVERWRITES = "ascend.overwrites"
"""Of a kernel: pairs of the number of an output and that of an input, each counted from 0. Where
the kernel writes nothing of the output, it has what the input has, for both are the same bytes."""


def shared_by(kernel: Op, inputs: int) -> list[tuple[int, int]]:
    """Outputs of a kernel that may be the same bytes as an input, whatever its schedule: numbers
    of the output and of the input.

    Args:
        inputs: arguments that are read, the first ones.
    """
    group = group_of_kernel(kernel)
    if group is None:
        return []
    return [
        (group.outputs[output] - inputs, group.inputs[source])
        for output, source in shareable(group.graph)
    ]


def in_place(launches: Sequence[Launch]) -> list[Launch]:
    """The launches with outputs in the bytes of inputs wherever they may be; copies of what is not
    needed any more are left out."""
    return _Sharing(launches).result()


class _Sharing:
    """What touches each storage, while storages become parts of others.

    Where a storage that has become a part of another one lies is in `_moved`, until `result` makes
    launches of it.
    """

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._launches = launches
        self._moved: dict[Storage, Place] = {}
        self._waits = _all_needs(launches)
        self._touches: dict[Storage, list[Use]] = {}
        for number, launch in enumerate(launches):
            for touch in launch.touches:
                self._touches.setdefault(touch.storage, []).append((number, touch))

    def result(self) -> list[Launch]:
        sharing = {n: launch for n, launch in enumerate(self._launches) if launch.shares}
        gone: set[int] = set()
        found = True
        while found:  # what has become a state's may let others become it
            found = False
            for number, launch in list(sharing.items()):
                inputs = len(launch.buffers) - launch.outputs
                shared = [
                    self._share(number, launch.buffers[source], launch.buffers[inputs + output])
                    for output, source in launch.shares
                ]
                if all(shared):
                    del sharing[number]
                    found = True
                    gone |= {number} if launch.is_copy else set()
        self._keep_states(gone)
        left = [launch for n, launch in enumerate(self._launches) if n not in gone]
        return [self._renewed(launch) for launch in left]

    def _keep_states(self, gone: Set[int]) -> None:
        """Has outputs that are states have the bytes of their arguments where nothing needs the old
        value any more when the new one is made.

        Args:
            gone: copies that are left out.
        """
        outputs = [s for s in self._touches if s.state is not None and s not in self._moved]
        for output in outputs:
            assert output.state is not None, "outputs are those that have a state"
            state = output.state
            first = min((n for n, _ in self._touches[output] if n not in gone), default=None)
            last = max((n for n, _ in self._touches.get(state, ()) if n not in gone), default=-1)
            if first is not None and last < first:
                self._move(output, Place(state))

    def _renewed(self, launch: Launch) -> Launch:
        buffers = [(self._found(place), kind) for place, kind in launch.buffers]
        return replace(launch, buffers=buffers)

    def _found(self, place: Place) -> Place:
        """Where a place is now."""
        while (base := self._moved.get(place.storage)) is not None:
            place = Place(base.storage, base.offset + place.offset)
        return place

    def _reads_once(self, number: int, place: Place, read: tuple[int, int]) -> bool:
        """Whether a launch reads bytes by one of its inputs only, and waits for all others that
        touch them anyway, so that none has to wait because they are overwritten."""
        same = [
            touch
            for touch in self._launches[number].touches
            if (moved := self._found(Place(touch.storage, touch.begin))).storage is place.storage
            and moved.offset < read[1]
            and read[0] < moved.offset + touch.end - touch.begin
        ]
        before, _ = self._others(number, place.storage, read)
        return len(same) == 1 and all(self._waits[number] >> n & 1 for n, _ in before)

    def _share(self, number: int, source: Buffer, result: Buffer) -> bool:
        """Has an input and an output of a launch be the same bytes, if that is allowed."""
        (place, kind), (made, made_kind) = source, result
        place, made = self._found(place), self._found(made)
        if place == made:
            return True
        alike = kind.element_type == made_kind.element_type and bytes_of(kind) == bytes_of(
            made_kind
        )
        if not alike or place.storage is made.storage:
            return False
        read, written = range_of(place, kind), range_of(made, made_kind)
        before, behind_made = self._others(number, made.storage, written)
        _, behind = self._others(number, place.storage, read)
        if before:
            return False
        if self._launches[number].is_copy:  # both have the same values until one is written
            if any(touch.writes for _, touch in behind) and behind_made:
                return False
            if any(touch.writes for _, touch in behind_made) and behind:
                return False
        elif behind or not self._reads_once(number, place, read):
            return False
        if made.storage.state is place.storage and _is_whole(made, written):
            return self._move(made.storage, place)
        if place.storage.kind == "arena" and _is_whole(place, read):
            return self._move(place.storage, made)
        if made.storage.kind == "arena" == place.storage.kind and _is_whole(made, written):
            return self._move(made.storage, place)
        return False

    def _others(
        self, number: int, storage: Storage, touched: tuple[int, int]
    ) -> tuple[list[Use], list[Use]]:
        """What launches before a launch, and those behind it, do to a range of a storage."""
        found = [(n, touch) for n, touch in self._touches[storage] if touch.meets(*touched)]
        return [use for use in found if use[0] < number], [use for use in found if use[0] > number]

    def _move(self, storage: Storage, to: Place) -> bool:
        """Makes a storage a part of another one, unless that is an output or a state, which kernels
        get as a whole."""
        parted = to.offset or any(touch.begin for _, touch in self._touches[storage])
        own = to.storage.kind == "output" or storage.state is to.storage
        if to.storage.kind != "arena" and (parted or not own):
            return False
        self._moved[storage] = to
        self._touches.setdefault(to.storage, [])
        self._touches[to.storage] += [
            (n, Touch(to.storage, t.begin + to.offset, t.end + to.offset, t.writes))
            for n, t in self._touches[storage]
        ]
        return True


def _all_needs(launches: Sequence[Launch]) -> list[int]:
    """The launches that each waits for, also those that these wait for, as the bits of a number."""
    found: list[int] = []
    for needs in needs_of(launches):
        bits = 0
        for need in needs:
            bits |= found[need] | 1 << need
        found.append(bits)
    return found


def _is_whole(place: Place, touched: tuple[int, int]) -> bool:
    """Whether a range is all of its storage."""
    return touched == (0, place.storage.size)
