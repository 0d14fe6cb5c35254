"""`select_and_scatter`, the gradient of a maximum over windows, by positions in windows.

    phases                           elements of the operand a stride apart, put together
    k-th elements of all windows     a slice of one phase for each position k
    number of the selected one       comparisons of one position after the other
    where the source goes            for each k, select(number == k, source, 0)

What goes to an element comes from positions k = q s + r with the same r, s being the stride: those
are summed, read q windows back, and the sums of all r lie beside each other in the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import Op, ir
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.elementwise_regions import sole_operation
from davinci.passes.stablehlo_to_ascend.padding import edges_of
from davinci.passes.stablehlo_to_ascend.transposed_convolution import padded
from davinci.units import ceil_div

MOST_POSITIONS = 64
"""Elements of a window, each of which is a slice and a comparison."""

Place = tuple[int, ...]


@dataclass(frozen=True)
class WindowSelection:
    """Windows on an array, for each of its dimensions.

    Attributes:
        shape: of the array.
        windows: how many there are.
        low: elements of padding in front.
    """

    shape: Place
    windows: Place
    sizes: Place
    strides: Place
    low: Place

    @property
    def positions(self) -> list[Place]:
        """Places in a window, the last dimension fastest."""
        return list(itertools.product(*map(range, self.sizes)))

    @property
    def residues(self) -> list[Place]:
        """Distances from an element to the first one that a window may begin at."""
        return list(itertools.product(*map(range, self.strides)))

    @property
    def reach(self) -> Place:
        """Windows that an element may be in."""
        return tuple(map(ceil_div, self.sizes, self.strides))

    def inside(self, position: Place) -> Array:
        """Whether the element at a position lies in the array, for all windows."""
        found = np.ones(self.windows, np.bool_)
        for dim, (count, stride, low, size) in enumerate(
            zip(self.windows, self.strides, self.low, self.shape, strict=True)
        ):
            at = np.arange(count) * stride + position[dim] - low
            lies = [1] * len(self.shape)
            lies[dim] = count
            found &= ((at >= 0) & (at < size)).reshape(lies)
        return found


def expand_select_and_scatter(op: Op) -> list[ir.Value] | None:
    """The result of a `stablehlo.select_and_scatter` that selects by a comparison and adds up
    floats; None of others, and of large windows."""
    x, source, start = op.operands
    rank, element = x.type.rank, x.type.element_type
    window, strides = (
        attribute(op, name) or [1] * rank for name in ("window_dimensions", "window_strides")
    )
    edges = edges_of(op, rank)
    found = WindowSelection(
        *map(places, (x.type.shape, source.type.shape, window, strides, edges[:, 0]))
    )
    compare = only_operation(op.regions[0], "stablehlo.compare")
    plain = compare is not None and only_operation(op.regions[1], "stablehlo.add") is not None
    small = len(found.positions) <= MOST_POSITIONS and len(found.residues) <= MOST_POSITIONS
    floats = isinstance(element, (ir.F16Type, ir.F32Type))
    if not plain or not small or not floats or 0 in (*found.shape, *found.windows):
        return None
    number = numbers_of_selected(found, x, compare)
    single = ir.RankedTensorType.get(source.type.shape, ir.F32Type.get())
    given = source if source.type == single else t.op("convert", [source], single)
    around = [reach - 1 for reach in found.reach]
    number = t.add(number, t.full(single, 1))  # 0 is none then, as what is padded has
    number, given = (padded(each, around, around, [0] * rank) for each in (number, given))
    sums = [sum_of(found, residue, number, given) for residue in found.residues]
    made = beside(found, sums)
    if made.type != x.type:
        made = t.op("convert", [made], x.type)
    return [t.add(made, t.broadcast(start, x.type, []))]


def places(numbers: Sequence[int]) -> Place:
    return tuple(int(n) for n in numbers)


def only_operation(region: ir.Region, name: str) -> Op | None:
    """The operation of a region that does no more than it, on both of its arguments."""
    found = sole_operation(region)
    return found if found is not None and found.name == name else None


def numbers_of_selected(found: WindowSelection, x: ir.Value, compare: Op | None) -> ir.Value:
    """The number of the position that each window selects, f32; -1 where a window has none."""
    assert compare is not None, "selected by a comparison"
    turned = compare.operands[0] != compare.block.arguments[0]
    image = phases(found, x)
    truths = ir.RankedTensorType.get(found.windows, ir.IntegerType.get_signless(1))
    single = ir.RankedTensorType.get(found.windows, ir.F32Type.get())
    met = found.inside(found.positions[0])
    best = position_of(found, image, found.positions[0])
    number = t.constant(np.where(met, 0, -1).astype(np.float32), single.element_type)
    for count, position in enumerate(found.positions[1:], 1):
        candidate, lies = position_of(found, image, position), found.inside(position)
        pair = [candidate, best] if turned else [best, candidate]
        direction = compare.attributes["comparison_direction"]
        stays = t.op("compare", pair, truths, comparison_direction=direction)
        if not met.all():
            stays = t.op("and", [stays, t.constant(met, truths.element_type)], truths)
        if not lies.all():
            stays = t.op("or", [stays, t.constant(~lies, truths.element_type)], truths)
        best = t.op("select", [stays, best, candidate], best.type)
        number = t.op("select", [stays, number, t.full(single, count)], single)
        met = met | lies
    return number


def phases(found: WindowSelection, x: ir.Value) -> ir.Value:
    """The array, with what is around it, as [strides, grid]: elements a stride apart together."""
    grid = [count + reach - 1 for count, reach in zip(found.windows, found.reach, strict=True)]
    behind = [
        count * stride - low - size
        for count, stride, low, size in zip(
            grid, found.strides, found.low, found.shape, strict=True
        )
    ]
    image = padded(x, list(found.low), behind, [0] * len(grid))
    split = [n for pair in zip(grid, found.strides, strict=True) for n in pair]
    order = [*range(1, 2 * len(grid), 2), *range(0, 2 * len(grid), 2)]
    return t.transpose(t.reshape(image, split), order)


def position_of(found: WindowSelection, image: ir.Value, position: Place) -> ir.Value:
    """The elements of all windows at a position, of an array in phases."""
    rank, element = len(found.shape), image.type.element_type
    places = [divmod(first, stride) for first, stride in zip(position, found.strides, strict=True)]
    starts = [phase for _, phase in places] + [first for first, _ in places]
    limits = [phase + 1 for _, phase in places]
    limits += [first + n for (first, _), n in zip(places, found.windows, strict=True)]
    kind = ir.RankedTensorType.get([1] * rank + list(found.windows), element)
    cut = {"start_indices": starts, "limit_indices": limits, "strides": [1] * (2 * rank)}
    return t.reshape(t.op("slice", [image], kind, **cut), list(found.windows))


def sum_of(found: WindowSelection, residue: Place, number: ir.Value, source: ir.Value) -> ir.Value:
    """What goes to the elements at a distance from where windows begin: [windows + reach - 1]."""
    around = [reach - 1 for reach in found.reach]
    grid = [count + more for count, more in zip(found.windows, around, strict=True)]
    kind = ir.RankedTensorType.get(grid, source.type.element_type)
    nothing, total = t.full(kind, 0), None
    for moved in itertools.product(*map(range, found.reach)):
        position = tuple(
            q * stride + r for q, stride, r in zip(moved, found.strides, residue, strict=True)
        )
        if any(p >= size for p, size in zip(position, found.sizes, strict=True)):
            continue
        first = [more - q for more, q in zip(around, moved, strict=True)]
        limits = [f + n for f, n in zip(first, grid, strict=True)]
        cut = {"start_indices": first, "limit_indices": limits, "strides": [1] * len(grid)}
        own, part = (t.op("slice", [each], kind, **cut) for each in (number, source))
        here = t.compare("EQ", own, t.full(kind, found.positions.index(position) + 1))
        part = t.op("select", [here, part, nothing], kind)
        total = part if total is None else t.add(total, part)
    return nothing if total is None else total


def beside(found: WindowSelection, sums: Sequence[ir.Value]) -> ir.Value:
    """Sums of all distances put beside each other, and cut to the shape of the array."""
    rank = len(found.shape)
    grid = list(sums[0].type.shape)
    made = sums[0]
    if len(sums) > 1:
        element = made.type.element_type
        parts = [t.reshape(each, [1, *grid]) for each in sums]
        joined = ir.RankedTensorType.get([len(sums), *grid], element)
        made = t.op("concatenate", parts, joined, dimension=0)
        made = t.reshape(made, [*found.strides, *grid])
        made = t.transpose(made, [d for dim in range(rank) for d in (rank + dim, dim)])
        grid = [count * stride for count, stride in zip(grid, found.strides, strict=True)]
        made = t.reshape(made, grid)
    behind = [low + size - n for low, size, n in zip(found.low, found.shape, grid, strict=True)]
    return padded(made, [-low for low in found.low], behind, [0] * rank)
