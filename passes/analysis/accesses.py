"""Which bytes an operation of a kernel touches, and whether two of them can be the same bytes.

Buffers on chip are ranges of their memory (`plan-memory` has run); a GM buffer is a memory of its
own, since kernel arguments never overlap. Offsets are affine forms of loop variables, so that the
iterations of a loop that works on different tiles are seen to be independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from davinci.dialects.cce.buffers import space_name
from davinci.mlir import Op, ir
from davinci.passes.analysis.affine import AffineForm, Forms
from davinci.passes.pipeline.base import fail
from davinci.units import BLOCK_BYTES, round_up

ANY_GM = "GM"
"""Memory of an access that may be to any buffer in GM."""

_EVERYTHING = 1 << 62
"""More bytes than any memory has."""

FORWARD = -1
"""Relation of two accesses in the same iteration of every loop around both."""


Dims = tuple[tuple[int, int], ...]
"""(count, stride in bytes) of strided dimensions."""


@dataclass(frozen=True)
class ByteAccess:
    """Bytes offset + any combination of `dims`, each the start of `run` bytes.

    Attributes:
        memory: what can overlap at all: the name of an on-chip memory, or a GM buffer.
        offset: bytes; from the memory's start on chip, from the buffer's start in GM.
        dims: (count, stride in bytes) of the strided dimensions.
        run: contiguous bytes.
        low, high: the buffer's own range of bytes, high None for GM.
    """

    memory: ir.Value | str
    offset: AffineForm
    dims: Dims
    run: int
    low: int
    high: int | None

    @property
    def span(self) -> int:
        """Bytes from the first to one past the last, at a fixed offset."""
        return _span(self.dims, self.run)


def _apart_on_chip(first: ByteAccess, second: ByteAccess) -> bool:
    """Whether two accesses are to buffers in different places of an on-chip memory."""
    if first.high is None or second.high is None:
        return False
    return first.high <= second.low or second.high <= first.low


def may_meet(first: ByteAccess, second: ByteAccess) -> bool:
    """Whether two accesses are to the same memory."""
    if ANY_GM in (first.memory, second.memory):
        return first.high is None and second.high is None
    return bool(first.memory == second.memory)


def hull(accesses: Sequence[ByteAccess]) -> ByteAccess:
    """An access to everything between the buffers of `accesses`, all on one chip memory or GM."""
    first = accesses[0]
    if first.high is not None:
        low = min(access.low for access in accesses)
        high = max(access.high for access in accesses if access.high is not None)
        return ByteAccess(first.memory, AffineForm(low), (), high - low, low, high)
    same = all(access.memory == first.memory for access in accesses)
    return ByteAccess(first.memory if same else ANY_GM, AffineForm(0), (), _EVERYTHING, 0, None)


@dataclass(frozen=True)
class _Place:
    """Where a memref value begins."""

    memory: ir.Value | str
    offset: AffineForm
    base: AffineForm
    low: int
    high: int | None


class Accesses:
    """Accesses of one kernel and their overlaps.

    Args:
        forms: of the kernel's indices.
        planned: whether buffers on chip have addresses; if not, each is a memory of its own.
    """

    def __init__(self, forms: Forms, planned: bool = True) -> None:
        self._forms = forms
        self._planned = planned
        self._places: dict[ir.Value, _Place] = {}
        self._elements: dict[ir.Value, ByteAccess] = {}

    def of_view(self, value: ir.Value, user: Op) -> ByteAccess:
        """The access to all of a memref value, by `user`."""
        access = self.of_elements(value, user)
        whole = round_up(access.run, BLOCK_BYTES)
        if whole == access.run or (access.high is None and "round_up" not in user.attributes):
            return access
        return replace(access, run=whole)

    def of_elements(self, value: ir.Value, user: Op) -> ByteAccess:
        """The same without what lies between the last element of a run and the next block."""
        if value not in self._elements:
            self._elements[value] = self._find_elements(value, user)
        return self._elements[value]

    def _find_elements(self, value: ir.Value, user: Op) -> ByteAccess:
        place = self._place(value, user)
        item = value.type.element_type.width // 8
        strides, _ = value.type.get_strides_and_offset()
        dims, run = _regions(value.type.shape, [s * item for s in strides], item)
        return ByteAccess(place.memory, place.offset, dims, run, place.low, place.high)

    def of_element(self, value: ir.Value, indices: Sequence[ir.Value], user: Op) -> ByteAccess:
        """The access to one element of a memref value."""
        place = self._place(value, user)
        item = value.type.element_type.width // 8
        strides, _ = value.type.get_strides_and_offset()
        offset = place.offset
        for index, stride in zip(indices, strides, strict=True):
            offset = offset.plus(self._forms.of(index).times(stride * item))
        return ByteAccess(place.memory, offset, (), item, place.low, place.high)

    def of_operand(self, value: ir.Value, user: Op) -> ByteAccess:
        """The access of `user` to a memref that it reads or writes: to one element for loads and
        stores of the scalar unit, else to all of it."""
        if user.name == "memref.load":
            return self.of_element(value, list(user.operands)[1:], user)
        if user.name == "memref.store":
            return self.of_element(value, list(user.operands)[2:], user)
        return self.of_view(value, user)

    def _place(self, value: ir.Value, user: Op) -> _Place:
        if value not in self._places:
            self._places[value] = self._find(value, user)
        return self._places[value]

    def _find(self, value: ir.Value, user: Op) -> _Place:
        owner = value.owner
        start = AffineForm(0)
        if isinstance(owner, ir.Block):
            return _Place(value, start, start, 0, None)
        owner = owner.operation  # get_global has an attribute called name
        if owner.name == "memref.get_global":
            name = ir.FlatSymbolRefAttr(owner.attributes["name"]).value
            return _Place(f"@{name}", start, start, 0, None)
        if owner.name == "memref.alloc":
            memory = space_name(value.type)
            if memory == "GM":
                return _Place(value, start, start, 0, None)
            size = math.prod(value.type.shape) * value.type.element_type.width // 8
            size = round_up(size, BLOCK_BYTES)
            if not self._planned:
                return _Place(value, start, start, 0, size)
            if "cce.address" not in owner.attributes:
                fail(owner, "has no address", hint="run plan-memory before insert-sync")
            low = int(owner.attributes["cce.address"].value)
            high = low + size
            return _Place(memory, AffineForm(low), AffineForm(low), low, high)
        if owner.name not in _OFFSETS:
            fail(user, "uses a buffer whose origin is unknown", found=f"a result of {owner.name}")
        source = self._place(owner.operands[0], user)
        offset = _OFFSETS[owner.name](owner, source, self._forms)
        base = offset if owner.name == "memref.view" else source.base
        return _Place(source.memory, offset, base, source.low, source.high)

    def may_overlap(
        self, first: ByteAccess, second: ByteAccess, carrier: int, loops: Sequence[Op]
    ) -> bool:
        """Whether two accesses can touch the same byte.

        Args:
            first, second: the accesses.
            carrier: index into `loops` of the outermost loop whose iterations differ, the second
                access being in a later one; FORWARD if all are the same.
            loops: `scf.for` operations around both, outermost first.
        """
        if not may_meet(first, second) or not first.run or not second.run:
            return False
        if ANY_GM in (first.memory, second.memory):
            return True
        if _apart_on_chip(first, second):
            return False
        inner = list(loops[carrier:]) if carrier != FORWARD else []
        first_rest, second_rest = _different(first.offset, second.offset, inner)
        if self._apart(first, first_rest, second, second_rest):
            return False
        if self._interleaved(first, first_rest, second, second_rest):
            return False
        if inner and self._moves_past(first, first_rest, second, second_rest, inner[0]):
            return False
        coefficients = dict(first_rest.terms)
        variables = [loop.regions[0].blocks[0].arguments[0] for loop in inner]
        if coefficients != dict(second_rest.terms):
            return True
        if any(self._forms.origin(value) not in variables for value in coefficients):
            return True
        return not self._injective(first, second, variables, coefficients)

    def _apart(self, first: ByteAccess, a: AffineForm, second: ByteAccess, b: AffineForm) -> bool:
        """Whether the whole ranges are disjoint, given what is left of the offsets."""
        a_low, a_high = self._forms.range_of(a)
        b_low, b_high = self._forms.range_of(b)
        if a_high is not None and b_low is not None and a_high + first.span <= b_low:
            return True
        return b_high is not None and a_low is not None and b_high + second.span <= a_low

    @staticmethod
    def _interleaved(first: ByteAccess, a: AffineForm, second: ByteAccess, b: AffineForm) -> bool:
        """Whether runs lie between each other's: columns of the same rows, say.

        Their distance is known but for multiples of the coefficients.
        """
        unknown = math.gcd(*(coefficient for _, coefficient in (*a.terms, *b.terms)))
        distance = b.constant - a.constant
        return lie_between(first.dims, first.run, second.dims, second.run, distance, unknown)

    def _moves_past(
        self, first: ByteAccess, a: AffineForm, second: ByteAccess, b: AffineForm, loop: Op
    ) -> bool:
        """Whether in any later iteration of `loop` the second access lies past the first."""
        variable = loop.regions[0].blocks[0].arguments[0]
        coefficient = dict(a.terms).get(variable, 0)
        if not coefficient or dict(b.terms).get(variable) != coefficient:
            return False
        moved = coefficient * self._forms.loops[variable].step
        still = AffineForm(0, ((variable, -coefficient),))
        a_low, a_high = self._forms.range_of(a.plus(still))
        b_low, b_high = self._forms.range_of(b.plus(still))
        if moved > 0:
            return a_high is not None and b_low is not None and a_high + first.span <= b_low + moved
        if a_low is None or b_high is None:
            return False
        return b_high + moved + second.span <= a_low

    def _injective(
        self,
        first: ByteAccess,
        second: ByteAccess,
        variables: Sequence[ir.Value],
        coefficients: dict[ir.Value, int],
    ) -> bool:
        """Whether different iterations touch different bytes, all strides read as digits.

        With strides sorted, if each is at least the extent of all smaller ones together, an address
        determines all indices. The accesses then differ in the iteration of the first variable, or
        in the constant distance between them, which counts as one more digit. Quotient and
        remainder of a variable are two digits that together determine it.
        """
        if [s for _, s in first.dims] != [s for _, s in second.dims]:
            return False
        distance = second.offset.constant - first.offset.constant
        if not distance and not (variables and self._forms.determine(coefficients, variables[0])):
            return False
        digits: list[tuple[int, float]] = [
            (stride, max(n, m)) for (n, stride), (m, _) in zip(first.dims, second.dims, strict=True)
        ]
        digits += [(abs(distance), 2)] if distance else []
        for value, coefficient in coefficients.items():
            step, count = self._values_of(value)
            digits.append((abs(coefficient) * step, count))
        extent: float = max(first.run, second.run)
        for stride, count in sorted(digits):
            if stride < extent:
                return False
            extent += (count - 1) * stride
        return True

    def _values_of(self, variable: ir.Value) -> tuple[int, float]:
        """Distance of two values of a loop variable, or of a part of one, and their number."""
        bounds = self._forms.loops.get(variable)
        if bounds and bounds.trips is not None:
            return bounds.step, bounds.trips
        step = bounds.step if bounds else 1
        low, high = self._forms.range_of(AffineForm(0, ((variable, 1),)))
        return step, math.inf if low is None or high is None else (high - low) // step + 1


def lie_between(
    first: Dims, first_run: int, second: Dims, second_run: int, distance: int, unknown: int
) -> bool:
    """Whether strided runs lie between each other's.

    Counted modulo a step, dimensions whose strides are multiples of it are one place. The others
    make a shorter pattern each, which repeats: either these lie apart, or, where none is longer
    than the step, a pattern of one meets at most two of the other's, as if there were no more.

    Args:
        distance: from the start of the first to that of the second, but for multiples of `unknown`.
    """
    strides = {stride for _, stride in (*first, *second)}
    for step in sorted({*strides, math.gcd(unknown, *strides)} - {0}, reverse=True):
        if unknown % step:
            continue
        inner, other = (tuple(d for d in dims if d[1] % step) for dims in (first, second))
        size, length = _span(inner, first_run), _span(other, second_run)
        place = distance % step
        if size <= place and place + length <= step:
            return True
        if max(size, length) > step or (unknown, inner, other) == (0, first, second):
            continue
        if all(
            at <= -length or at >= size or lie_between(inner, first_run, other, second_run, at, 0)
            for at in (place, place - step)
        ):
            return True
    return False


def _span(dims: Dims, run: int) -> int:
    """Bytes from the first to one past the last."""
    return sum((count - 1) * stride for count, stride in dims) + run


def _different(
    first: AffineForm, second: AffineForm, inner: Sequence[Op]
) -> tuple[AffineForm, AffineForm]:
    """Two offsets without the terms that are equal in both.

    A term is equal if the coefficient is, and the value does not change within `inner[0]`.
    """
    others = dict(second.terms)
    equal = {
        value
        for value, coefficient in first.terms
        if others.get(value) == coefficient and not (inner and defined_in(value, inner[0]))
    }

    def rest(form: AffineForm) -> AffineForm:
        return AffineForm(form.constant, tuple((v, c) for v, c in form.terms if v not in equal))

    return rest(first), rest(second)


def defined_in(value: ir.Value, loop: Op) -> bool:
    """Whether an SSA value is defined in (the body of) a loop."""
    owner = value.owner
    parent = owner.owner if isinstance(owner, ir.Block) else owner.parent
    while parent is not None:
        if parent.operation == loop:
            return True
        parent = parent.operation.parent
    return False


def _regions(shape: Sequence[int], strides: Sequence[int], item: int) -> tuple[Dims, int]:
    """Strided dimensions and contiguous run, in bytes, of an array."""
    run = item
    dims: list[tuple[int, int]] = []
    for count, stride in sorted(zip(shape, strides, strict=True), key=lambda d: d[1]):
        if count == 1 or stride == 0:
            continue
        if stride == run and not dims:
            run *= count
        elif dims and stride == dims[-1][0] * dims[-1][1]:
            dims[-1] = (dims[-1][0] * count, dims[-1][1])
        else:
            dims.append((count, stride))
    return tuple(dims), run if 0 not in shape else 0


def _subview_offset(op: Op, source: _Place, forms: Forms) -> AffineForm:
    source_type = op.operands[0].type
    item = source_type.element_type.width // 8
    strides, _ = source_type.get_strides_and_offset()
    dynamic = iter(list(op.operands)[1:])
    offset = source.offset
    for static, stride in zip(list(op.attributes["static_offsets"]), strides, strict=True):
        known = static != ir.ShapedType.get_dynamic_size()
        index = AffineForm(static) if known else forms.of(next(dynamic))
        offset = offset.plus(index.times(stride * item))
    return offset


def _recast_offset(op: Op, source: _Place, forms: Forms) -> AffineForm:
    """A reinterpret_cast counts its offset from the start of the buffer, not of its operand."""
    item = op.result.type.element_type.width // 8
    (static,) = op.attributes["static_offsets"]
    known = static != ir.ShapedType.get_dynamic_size()
    index = AffineForm(static) if known else forms.of(op.operands[1])
    return source.base.plus(index.times(item))


_OFFSETS: dict[str, Callable[[Op, _Place, Forms], AffineForm]] = {
    "memref.subview": _subview_offset,
    "memref.reinterpret_cast": _recast_offset,
    "memref.collapse_shape": lambda op, source, forms: source.offset,
    "memref.expand_shape": lambda op, source, forms: source.offset,
    "memref.cast": lambda op, source, forms: source.offset,
    "memref.view": lambda op, source, forms: source.offset.plus(forms.of(op.operands[1])),
}
"""Offset of a view's first byte, by operation."""
