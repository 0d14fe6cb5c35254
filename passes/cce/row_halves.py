"""Shares the vector work of a kernel between two vector cores: each does half of every operation.

An operation is cut in two along one dimension of its operands. Both cores have buffers of the same
shapes and use their own half of the elements: each byte of a buffer belongs to one of them, or to
both, as a row of biases that each loads for itself. Cuts fit together if a core reads only what
belongs to it, and what belongs to it is written by it whenever it is written:

    copy_l0c %c, %t        rows 0..31 | 32..63        cut along dimension 2
    copy %bias, %b         everything | everything    not cut
    vadd %t, %b, %t        rows 0..31 | 32..63        of %b both read all
    copy %t, %out          rows 0..31 | 32..63

`find_cuts` goes from operation to operation by the buffers that they share. The first cut of each
chain is free, the next ones follow from what belongs to whom; where they do not, it tries another
first cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.cce.effects import effects_of
from davinci.dialects.cce.instructions import ELEMENTWISE
from davinci.mlir import Op, ir
from davinci.passes.analysis.accesses import Accesses
from davinci.passes.analysis.affine import Forms
from davinci.passes.analysis.lifetimes import viewed_buffer
from davinci.passes.builder import IndexLike, share_in_two, subview
from davinci.passes.cce.crossings import TO_CUBE, TO_VECTOR
from davinci.units import BLOCK_BYTES

Owners = npt.NDArray[np.int8]
"""Of each byte of a buffer: 0 of nobody yet, 1 and 2 of the first and second core, 3 of both."""

FIRST, SECOND, BOTH = 1, 2, 3

MOST_TRIES = 2000
"""Cuts of operations that are looked at before a kernel counts as one that has none."""

ALL_DIMENSIONS = (
    *(f"cce.{name}" for name in ELEMENTWISE),
    *(f"cce.{name}" for name in ("copy", "copy_l0c", "copy_l1", "vconv", "vcmpsel")),
)
"""Operations that treat each element by itself; their operands have one shape."""

FIRST_DIMENSION = tuple(
    f"cce.{name}" for name in ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vbrcb")
)
"""Operations that treat each row by itself."""


@dataclass(frozen=True)
class WorkCut:
    """The first core takes indices of a dimension up to `at`, the second one the others."""

    dimension: int
    at: int


Owned = Mapping[ir.Value, Owners]
"""By buffer."""

Cuts = Mapping[Op, WorkCut | None]
"""The cut of each operation between both vector cores; None where both do all of it."""

Build = Callable[[Sequence[ir.Value]], None]
"""Builds an operation on parts of its operands."""


def build_part(cut: WorkCut | None, operands: Sequence[ir.Value], build: Build) -> None:
    """Builds what the vector core that runs this does of an operation.

    Args:
        operands: of the operation; those that are no arrays stay as they are.
    """
    if cut is None:
        build(operands)
        return
    size = next(v.type.shape[cut.dimension] for v in operands if isinstance(v.type, ir.MemRefType))
    dimension = cut.dimension

    def build_on(start: IndexLike, count: int) -> None:
        build([_part(v, dimension, start, count) for v in operands])

    share_in_two(cce.get_sub_block_idx(), cut.at, size, build_on)


def _part(value: ir.Value, dimension: int, start: IndexLike, count: int) -> ir.Value:
    if not isinstance(value.type, ir.MemRefType):
        return value
    sizes = list(value.type.shape)
    at: list[IndexLike] = [0] * len(sizes)
    at[dimension], sizes[dimension] = start, count
    return subview(value, at, sizes)


class NotHalved(Exception):
    """The vector work of a kernel cannot be shared by two cores.

    Attributes:
        op: at which that is seen.
        why: what is in the way.
    """

    def __init__(self, op: Op, why: str) -> None:
        super().__init__(why)
        self.op, self.why = op, why


@dataclass(frozen=True)
class _OwnedView:
    """An array of an operation in UB: which bytes of its buffer each of its elements has.

    Attributes:
        buffer: the allocation.
        bytes: their numbers, in the shape of the array and one dimension for an element's bytes.
    """

    view: BufferView
    buffer: ir.Value
    bytes: npt.NDArray[np.int64]
    read: bool
    written: bool


@dataclass
class _VectorWork:
    """A vector operation.

    Attributes:
        stores: whether it writes global memory, which only one core may do.
    """

    op: Op
    operands: list[_OwnedView]
    stores: bool
    dimensions: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.dimensions = ()
        name = self.op.name
        inside = any(attribute(self.op, key, False) for key in ("exact", "round_up"))
        if name in FIRST_DIMENSION:
            self.dimensions = (0,)
        elif name in ALL_DIMENSIONS and not inside and attribute(self.op, "lanes") is None:
            self.dimensions = tuple(range(len(self.operands[0].view.shape)))

    def cuts(self, owners: Owned) -> Iterator[WorkCut | None]:
        """The cuts that may fit to what belongs to whom, those into halves first."""
        places = {d: self._place(d, owners) for d in self.dimensions}
        found = [WorkCut(dimension, at) for dimension, at in places.items() if at is not None]
        shape = self.operands[0].view.shape
        for cut in sorted(found, key=lambda cut: abs(1 - 2 * cut.at / shape[cut.dimension])):
            if all(_is_whole(o.view, cut.dimension, cut.at) for o in self.operands):
                yield cut
        if not self.stores:
            yield None

    def _place(self, dimension: int, owners: Owned) -> int | None:
        """Where the part of the first core ends along a dimension; None if nowhere. It may be empty
        only if the other core has all."""
        size = self.operands[0].view.shape[dimension]
        sides = np.zeros(size, np.int8)
        for operand in self.operands:
            owned = owners[operand.buffer][operand.bytes]
            rows = np.moveaxis(owned, dimension, 0).reshape(size, -1)
            sides |= (rows == FIRST).any(1) * np.int8(FIRST)
            sides |= (rows == SECOND).any(1) * np.int8(SECOND)
        if (sides == BOTH).any():
            return None
        first, second = np.flatnonzero(sides == FIRST), np.flatnonzero(sides == SECOND)
        if not len(first) and not len(second):
            return size // 2 or None
        low = int(first[-1]) + 1 if len(first) else 0
        high = int(second[0]) if len(second) else size
        if low > high:
            return None
        return min(max(size // 2, low), high)

    def owners_after(self, cut: WorkCut | None, owners: Owned) -> dict[ir.Value, Owners] | None:
        """To whom bytes belong if it is cut so; None if that does not fit."""
        found = dict(owners)
        for operand in self.operands:
            wanted = np.zeros_like(found[operand.buffer])
            if cut is None:
                wanted[operand.bytes] = BOTH
            else:
                rows = np.moveaxis(operand.bytes, cut.dimension, 0)
                wanted[rows[: cut.at]] |= FIRST
                wanted[rows[cut.at :]] |= SECOND
            own = found[operand.buffer]
            known = (own > 0) & (wanted > 0)
            lost = (own & ~wanted if operand.written else 0) | (
                wanted & ~own if operand.read else 0
            )
            if (np.asarray(lost)[known] if np.ndim(lost) else np.zeros(0)).any():
                return None
            found[operand.buffer] = np.where(own > 0, own, wanted)
        return found


def _is_whole(view: BufferView, dimension: int, at: int) -> bool:
    """Whether a part that begins at an index of a dimension begins with a block."""
    return at * view.strides[dimension] * view.itemsize % BLOCK_BYTES == 0


def find_cuts(ops: Sequence[Op]) -> Cuts:
    """The cut in two of each vector operation of a kernel.

    Args:
        ops: all that access UB.

    Raises:
        NotHalved: there is no way, or none was found in `MOST_TRIES` tries.
    """
    forms = Forms()
    accesses = Accesses(forms, planned=False)
    works = [_work(op, accesses) for op in ops]
    _require_no_exchange(works)
    buffers = {operand.buffer for work in works for operand in work.operands}
    owners = {buffer: np.zeros(_bytes(buffer), np.int8) for buffer in buffers}
    search = [_SearchStep.on(works, owners)]
    stuck, deepest, tries = search[0].work.op, 0, 0
    while search:
        if len(search) > deepest:
            stuck, deepest = search[-1].work.op, len(search)
        after = next(search[-1].fits, None)
        tries += 1
        if after is None or tries > MOST_TRIES:
            search.pop()
        elif not search[-1].rest:
            return {step.work.op: step.cut for step in search}
        else:
            search.append(_SearchStep.on(search[-1].rest, after))
    raise NotHalved(stuck, "its elements are not parts of what one vector core has")


@dataclass
class _SearchStep:
    """One operation of a search, and its cuts that are still to be tried.

    Attributes:
        rest: the operations behind it.
        fits: to whom bytes belong after each cut that fits.
        cut: the last of these.
    """

    work: _VectorWork
    rest: list[_VectorWork]
    fits: Iterator[Owned] = field(init=False)
    cut: WorkCut | None = None

    @classmethod
    def on(cls, works: Sequence[_VectorWork], owners: Owned) -> _SearchStep:
        """A step that begins with what belongs to whom."""
        work = _next(works, owners)
        step = cls(work, [other for other in works if other is not work])
        step.fits = step._tried(owners)
        return step

    def _tried(self, owners: Owned) -> Iterator[Owned]:
        for cut in self.work.cuts(owners):
            after = self.work.owners_after(cut, owners)
            if after is not None:
                self.cut = cut
                yield after


def _next(works: Sequence[_VectorWork], owners: Owned) -> _VectorWork:
    """The first operation on a buffer of which bytes belong to somebody, else the first that stores
    or takes a tile that crosses, else the first."""

    def known(work: _VectorWork) -> bool:
        return any(owners[operand.buffer].any() for operand in work.operands)

    def crosses(work: _VectorWork) -> bool:
        return work.stores or work.op.name == TO_VECTOR

    chosen = [work for work in works if known(work)] or [work for work in works if crosses(work)]
    return chosen[0] if chosen else works[0]


def _work(op: Op, accesses: Accesses) -> _VectorWork:
    """Raises `NotHalved` if the operation belongs to one core alone."""
    if op.name in ("memref.load", "memref.store"):
        memory = "global" if op.name == "memref.store" and _in_gm(op, writes=True) else "vector"
        raise NotHalved(op, f"the scalar unit accesses {memory} memory")
    effects = effects_of(op)
    assert effects is not None, "all operations on UB touch memory"
    operands = []
    for value in dict.fromkeys([*effects.reads, *effects.writes]):
        view = buffer_of(value)
        if view.space != "UB":
            continue
        place = accesses.of_elements(value, op)
        if place.offset.terms or isinstance(place.memory, str):
            raise NotHalved(op, "which part of a buffer it accesses changes")
        numbers = _element_bytes(view, place.offset.constant)
        operands.append(
            _OwnedView(view, place.memory, numbers, value in effects.reads, value in effects.writes)
        )
    stores = op.name == TO_CUBE or any(buffer_of(v).space == "GM" for v in effects.writes)
    return _VectorWork(op, operands, stores)


def _element_bytes(view: BufferView, start: int) -> npt.NDArray[np.int64]:
    """The bytes of each element of a view that begins at byte `start` of its buffer."""
    numbers = np.full((1,) * len(view.shape), start, np.int64)
    for dimension, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        shape = [1] * len(view.shape)
        shape[dimension] = size
        numbers = numbers + (np.arange(size) * stride * view.itemsize).reshape(shape)
    return numbers[..., None] + np.arange(view.itemsize)


def _bytes(buffer: ir.Value) -> int:
    kind = ir.MemRefType(buffer.type)
    return int(np.prod(kind.shape, dtype=np.int64)) * buffer_of(buffer).itemsize


def _require_no_exchange(works: Sequence[_VectorWork]) -> None:
    """Refuses vector work that reads what it stored to global memory: the other core may have."""
    stored = {viewed_buffer(v): w.op for w in works for v in _in_gm(w.op, writes=True)}
    for work in works:
        for value in _in_gm(work.op, writes=False):
            if viewed_buffer(value) in stored:
                raise NotHalved(work.op, "it loads what vector cores store")


def _in_gm(op: Op, writes: bool) -> list[ir.Value]:
    effects = effects_of(op)
    assert effects is not None, "all operations on UB touch memory"
    return [v for v in (effects.writes if writes else effects.reads) if buffer_of(v).space == "GM"]
