"""Spaces whose lanes are the rows of an array of short rows, not what lies in these.

Where a reduction goes along rows shorter than a repeat, its instructions have few lanes to work on.
With the rows in lanes it is an elementwise operation of as many arrays as a row has elements:

    softmax 102800x5:  axes (102800, 5 reduced)  ->  (5 reduced, 102800)

    x in GM      r0c0 r0c1 .. r0c4 r1c0 ..       a tile of rows lies together, as it did
    x in UB      c0: r0 r1 r2 ..                 turned once it is loaded (`turned_rows`)
                 c1: r0 r1 r2 ..

An axis **inside** the lanes lies in front of them in the space, and inside them in GM. Tiles have
all of it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from davinci.schedule.vector.space import IterationSpace
from davinci.units import REPEAT_BYTES

LEAST_ITEM_BYTES = 2
"""Bytes of the narrowest elements that are turned."""


def turned_space(space: IterationSpace) -> IterationSpace | None:
    """The same space with the axis of rows as lanes; None if its rows are no shorter than a repeat,
    if no value has a number for each row, or if a value lies in memory in another order."""
    axes = list(space.axes)
    if all(len(axes) - 1 not in order for order in space.order.values()):
        axes.pop()  # the axis that stands for lanes where rows are shorter than a block
    lane = next((i for i in range(len(axes) - 2, -1, -1) if not axes[i].reduced), -1)
    inside = range(lane + 1, len(axes))
    if lane < 0 or math.prod(axes[i].size for i in inside) * LEAST_ITEM_BYTES >= REPEAT_BYTES:
        return None
    orders = space.order.values()
    rows = {i for i in range(lane + 1) if not axes[i].reduced}
    if not any(rows.issubset(order) and not set(inside).issubset(order) for order in orders):
        return None
    if space.windows or any(list(order) != sorted(order) for order in orders):
        return None
    place = {axis: axis - (axis > lane) for axis in range(len(axes))}
    place[lane] = len(axes) - 1
    return replace(
        space,
        axes=(*axes[:lane], *axes[lane + 1 :], axes[lane]),
        order={v: tuple(place[axis] for axis in order) for v, order in space.order.items()},
        inside=frozenset(place[axis] for axis in inside),
    )
