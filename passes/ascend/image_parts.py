"""Channels of several images that are joined where the products that make them write.

    result    [images][blocks of all channels][pixels / 16][16][16]
    operand   [images][its blocks][pixels / 16][16][16], images as far apart as those of the result

A product writes the images of its result one by one, so these need not follow each other. With a
single image an operand is one range of the result's array, and anything may write it (`joining`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, callee_of, ir, root_of
from davinci.operators.tensors import NZ
from davinci.passes.analysis.kernels import known_kernels
from davinci.passes.ascend.kernel_outline import memref_of
from davinci.passes.ascend.layout_support import joins_nz
from davinci.passes.ascend.tensor_ops import defining_op, users_of
from davinci.schedule.graph import Graph
from davinci.schedule.products.group import is_product, read_group
from davinci.schedule.vector.space import NoSpace
from davinci.units import row_major

IMAGE_OUTPUTS = "ascend.image_outputs"
"""Of a kernel: numbers of the outputs whose images it writes one by one, so that they may lie
apart."""

CONCAT = "ascend.concat"


def image_outputs(graph: Graph) -> list[int]:
    """Places of the outputs of a group that are images which its product writes one by one."""
    if sum(map(is_product, graph.nodes)) != 1:
        return []
    try:
        group = read_group(graph)
    except NoSpace:  # said where it is lowered
        return []
    found = []
    for place, value in enumerate(graph.outputs):
        array = graph.arrays[value]
        images = array.layout == NZ and array.rank == 3 and array.bytes_each > 1
        if images and array.count and group.product.batch == array.shape[0] > 1:
            found.append(place)
    return found


def joins_images(op: Op) -> bool:
    """Whether a concatenation is one of channels of several images, all of which are made by
    products that write them into the whole it belongs to."""
    return _may_join(op) and bool(parts_of_images(_whole_of(op)))


def images_of_joined(block: ir.Block) -> dict[ir.Value, tuple[ir.Value, int, ir.MemRefType]]:
    """For each value of which a product writes the images where a concatenation has them: the
    result of that, the offset in it in bytes, and the type of its buffer there."""
    found: dict[ir.Value, tuple[ir.Value, int, ir.MemRefType]] = {}
    for view in block.operations:
        for value, (offset, kind) in parts_of_images(view.operation).items():
            found[value] = view.operation.results[0], offset, kind
    return found


def parts_of_images(concat: Op) -> dict[ir.Value, tuple[int, ir.MemRefType]]:
    """For each value that a concatenation of channels joins, itself or by others that make nothing
    but its operands: where it begins in the result, in bytes, and the type of its buffer there.
    Empty unless products write all of them there."""
    if not _may_join(concat) or _whole_of(concat) is not concat:
        return {}
    whole = memref_of(concat.results[0].type)
    apart = row_major(whole.shape)
    values = list(_operands(concat))
    if len(set(values)) < len(values) or not all(map(_is_written_apart, values)):
        return {}
    found, begin = {}, 0
    for value in values:
        kind = memref_of(value.type)
        layout = ir.StridedLayoutAttr.get(0, list(apart))
        found[value] = begin, ir.MemRefType.get(list(kind.shape), kind.element_type, layout)
        begin += math.prod(kind.shape[1:]) * kind.element_type.width // 8
    return found


def _may_join(op: Op) -> bool:
    if op.name != CONCAT:
        return False
    result = tensor_of(op.results[0].type)
    channels = result.layout == NZ and attribute(op, "dim") == result.rank - 1 and result.rank == 3
    return channels and result.shape[0] > 1 and joins_nz(op)


def _whole_of(concat: Op) -> Op:
    """The last concatenation of channels that nothing but a concatenation is needed for."""
    users = users_of(concat)
    while len(users) == 1 and _may_join(users[0]):
        concat = users[0]
        users = users_of(concat)
    return concat


def _operands(concat: Op) -> Iterator[ir.Value]:
    """What a concatenation joins, in order, also by concatenations that only it needs."""
    for value in concat.operands:
        owner = defining_op(value)
        if owner is not None and _may_join(owner) and len(users_of(owner)) == 1:
            yield from _operands(owner)
        else:
            yield value


def _is_written_apart(value: ir.Value) -> bool:
    """Whether a value is needed once, and made by a kernel that writes its images one by one."""
    owner = defining_op(value)
    if owner is None or owner.name != "func.call" or len(list(value.uses)) != 1:
        return False
    number = ir.OpResult(value).result_number
    return number in attribute(_kernel(owner), IMAGE_OUTPUTS, ())


def _kernel(call: Op) -> Op:
    """The kernel that a call means."""
    return known_kernels(root_of(call)).get(callee_of(call), call)
