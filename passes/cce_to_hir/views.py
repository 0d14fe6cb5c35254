"""Views of buffers: as another type, with one element where several lie at the same place, as whole
blocks."""

from __future__ import annotations

import math

from davinci.dialects.cce.buffers import buffer_of
from davinci.mlir import Op, attribute_names, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hir.operations import NoCounterpart
from davinci.units import ceil_div

VIEWS = ("memref.reinterpret_cast", "memref.subview")


def seen_as(value: ir.Value, element: ir.Type) -> ir.Value:
    """A view of UB with elements of another type of the same size.

    Raises:
        NoCounterpart: it is made by something else than views of a buffer at an address.
    """
    kind = ir.MemRefType(value.type)
    if kind.element_type == element:
        return value
    owner = value.owner
    if isinstance(owner, ir.Block):
        raise NoCounterpart("bits of an argument")
    changed = ir.MemRefType.get(kind.shape, element, kind.layout, kind.memory_space)
    if owner.name in ("hir.pointer_cast", "memref.view"):
        attributes = {name: owner.attributes[name] for name in attribute_names(owner)}
        return ir.Operation.create(owner.name, [changed], list(owner.operands), attributes).result
    if owner.name not in (*VIEWS, "memref.cast"):
        raise NoCounterpart(f"bits of what {owner.name} makes")
    source, *others = owner.operands
    attributes = {name: owner.attributes[name] for name in attribute_names(owner)}
    operands = [seen_as(source, element), *others]
    return ir.Operation.create(owner.name, [changed], operands, attributes).result


def without_repeats(value: ir.Value) -> tuple[ir.Value, set[int]]:
    """A view with one element where it has several at the same place, and these dimensions.

    Raises:
        NoCounterpart: it is made by something else than `memref.reinterpret_cast` and parts of one.
    """
    kind = ir.MemRefType(value.type)
    steps, offset = kind.get_strides_and_offset()
    dims = {i for i, step in enumerate(steps) if step == 0}
    if not dims:
        return value, dims
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.name == "memref.subview":
        return part_without_repeats(owner), dims
    if isinstance(owner, ir.Block) or owner.name != "memref.reinterpret_cast":
        raise NoCounterpart("a view with repeats")
    sizes = [1 if i in dims else size for i, size in enumerate(kind.shape)]
    steps = [1 if i in dims else step for i, step in enumerate(steps)]
    attributes = {name: owner.attributes[name] for name in attribute_names(owner)}
    attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(sizes)
    attributes["static_strides"] = ir.DenseI64ArrayAttr.get(steps)
    layout = ir.StridedLayoutAttr.get(offset, steps)
    narrow = ir.MemRefType.get(sizes, kind.element_type, layout, kind.memory_space)
    made = ir.Operation.create(owner.name, [narrow], list(owner.operands), attributes)
    return made.result, dims


def part_without_repeats(view: Op) -> ir.Value:
    """A part of a view with one element where that has several at the same place."""
    source, *others = view.operands
    narrow, dims = without_repeats(source)
    dynamic, given = ir.ShapedType.get_dynamic_size(), iter(others)
    static = view.attributes["static_offsets"]
    offsets = [next(given) if offset == dynamic else offset for offset in static]
    offsets = [0 if i in dims else offset for i, offset in enumerate(offsets)]
    sizes = [1 if i in dims else n for i, n in enumerate(view.attributes["static_sizes"])]
    return builder.subview(
        narrow, offsets, sizes, list(view.attributes["static_strides"]), dropped(view)
    )


def dropped(view: Op) -> list[int]:
    """Dimensions of one element that a `memref.subview` leaves out."""
    kept = list(ir.MemRefType(view.results[0].type).shape)
    found = []
    for i, size in reversed(list(enumerate(view.attributes["static_sizes"]))):
        if kept and kept[-1] == size:
            kept.pop()
        else:
            found.append(i)
    return found


def whole_blocks(value: ir.Value) -> ir.Value:
    """The part of a buffer that a copy of whole blocks moves.

    Raises:
        NoCounterpart: one of several rows does not end in whole blocks.
    """
    view = buffer_of(value)
    *rows, wide = view.shape
    size = ceil_div(wide, view.block) * view.block
    if size == wide:
        return value
    if math.prod(rows) > 1:
        raise NoCounterpart("cce.copy of whole blocks")
    base, place = base_and_place(value)
    return builder.restride(base, [*rows, size], view.strides, place)


def base_and_place(value: ir.Value) -> tuple[ir.Value, IndexLike]:
    """The array that a view is a part of, and its first element in there.

    Raises:
        NoCounterpart: other operations make the view than subviews and a change of shape.
    """
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in VIEWS:
        if buffer_of(value).offset != 0:
            raise NoCounterpart("a view at a place that is not known")
        return value, 0
    source, *given = owner.operands
    dynamic, left = ir.ShapedType.get_dynamic_size(), iter(given)
    offsets = [next(left) if n == dynamic else n for n in owner.attributes["static_offsets"]]
    if owner.name == "memref.reinterpret_cast":
        (offset,) = offsets
        return source, offset
    base, place = base_and_place(source)
    for offset, step in zip(offsets, buffer_of(source).strides, strict=True):
        place = builder.add(place, builder.mul(offset, step))
    return base, place


def is_dense(value: ir.Value) -> bool:
    """Whether the elements of an array lie one behind the other, in its order."""
    view, expected = buffer_of(value), 1
    for size, step in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size > 1 and step != expected:
            return False
        expected *= size
    return True
