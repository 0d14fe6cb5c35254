"""ascend-sink-rearrangements: moves reshapes and transposes of images behind what follows.

before:
    %0 = "ascend.conv"(%x, %v) {..} : (..) -> tensor<1x3136x64xf32>
    %1 = "ascend.reshape"(%0) : (tensor<1x3136x64xf32>) -> tensor<3136x64xf32>
    %2 = "ascend.transpose"(%1) {permutation = array<i64: 1, 0>} : (..) -> tensor<64x3136xf32>
    %3 = "ascend.reshape"(%2) : (tensor<64x3136xf32>) -> tensor<1x64x56x56xf32>
    %4 = "ascend.relu"(%3) : (tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
    ...                                                    and back to tensor<1x3136x64xf32>
    %8 = "ascend.conv"(%7, %w) {..}
after:
    %0 = "ascend.conv"(%x, %v) {..} : (..) -> tensor<1x3136x64xf32>
    %4 = "ascend.relu"(%0) : (tensor<1x3136x64xf32>) -> tensor<1x3136x64xf32>
    %8 = "ascend.conv"(%4, %w) {..}

Convolutions and reductions over windows take and give pixels by channels, models have channels
first. An elementwise operator on a result of one is done before it is rearranged, to what its other
operands are when rearranged likewise: for other such results, numbers, and values that repeat along
all pixels or channels that is nothing. A reduction of whole dimensions, too, and a concatenation of
channels. A reduction over pixels and groups of channels, as group normalisation has, is one over
pixels first; what repeats for the channels of a group is repeated for these, then for all pixels.
Where the rearrangements of two of them meet they cancel.

A product of matrices takes the rows of several sequences as those of one matrix; what follows it is
done before they are parted again, so that it shares the product's kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators.layouts import Factor, Factors, normal
from davinci.operators.tensors import Tensor
from davinci.passes import builder
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.rearrangement import Rearrangement, rearrangement, traces
from davinci.passes.ascend.tensor_ops import (
    OF_WINDOWS,
    TensorOps,
    defining_op,
    is_elementwise,
    merge_equal,
    tensor_functions,
    users_of,
)
from davinci.passes.pipeline.base import Pass, register_pass

SOURCES = (*OF_WINDOWS, "ascend.matmul")
"""What results are sunk of."""


@register_pass
@dataclass(frozen=True)
class AscendSinkRearrangementsPass(Pass):
    """Move rearrangements of images behind elementwise operators."""

    NAME = "ascend-sink-rearrangements"

    def run(self, op: Op) -> None:
        count = 0
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            operations = [operation.operation for operation in block.operations]
            if any(operation.name in SOURCES for operation in operations):
                sinking = Sinking()
                sinking.sink(operations)
                count += sinking.count
                merge_equal(block)
        note(op, "sink-rearrangements", count)


@dataclass(frozen=True)
class Rearranged:
    """A value that is a rearrangement of an image.

    Attributes:
        image: [n, pixels, channels], a result of a convolution or computed from one; or, of one
            pixel each, [n, channels]; of a part of the value, that of the value.
        lies: where the elements of the value lie in the image.
        shape: of the value.
        sizes: shape of the image.
    """

    image: ir.Value
    lies: Factors
    shape: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def how(self) -> Rearrangement:
        return rearrangement(self.lies)

    def is_like(self, other: Rearranged) -> bool:
        """Whether it is the same rearrangement of another image."""
        return (self.lies, self.sizes) == (other.lies, other.sizes)

    @property
    def channels(self) -> int | None:
        """The dimension of the value that is the image's channels; None if there is none."""
        if not self.sizes:
            return None
        whole = [Factor(self.sizes[-1], 1)]
        return self.lies.index(whole) if whole in self.lies else None

    def with_channels(self, count: int) -> Rearranged:
        """The same rearrangement of an image that has `count` channels."""
        dim, before = self.channels, self.sizes[-1]
        assert dim is not None, "only rearrangements that keep channels together are asked"
        lies = [
            [replace(factor, stride=factor.stride // before * count) for factor in factors]
            for factors in self.lies
        ]
        lies[dim] = normal([Factor(count, 1)])
        shape = (*self.shape[:dim], count, *self.shape[dim + 1 :])
        return Rearranged(self.image, lies, shape, (*self.sizes[:-1], count))

    def undone(self, value: ir.Value, ops: TensorOps) -> ir.Value:
        """A value of that shape rearranged as the image is."""
        split, order = self._split()
        made = ops.transpose(ops.reshape(value, split), order)
        return ops.reshape(made, self.sizes)

    @property
    def has_rows_apart(self) -> bool:
        """Whether rows are those of several matrices, and otherwise as they are in the image."""
        in_order = list(self.how.permutation) == sorted(self.how.permutation)
        rows = [math.prod(shape[-2:-1]) for shape in (self.shape, self.sizes)]  # 1 of a vector
        return in_order and self.channels == len(self.shape) - 1 and rows[0] != rows[1]

    def part(self, dims: Sequence[int]) -> ImageOperand | None:
        """The value along those dimensions of the image in which some of its own dimensions lie,
        at one place of the image's others; None where a factor of the value cuts through dimensions
        of the image.

        Args:
            dims: those of the value.
        """
        lies = self._cut()
        if lies is None:
            return None
        kept = sorted({dim for i in dims for dim, _ in lies[i]})
        left = [dim for dim in range(len(self.sizes)) if dim not in kept]

        def nearer(factor: Factor) -> Factor:
            inner = (i for i in left if math.prod(self.sizes[i + 1 :]) < factor.stride)
            return replace(factor, stride=factor.stride // math.prod(self.sizes[i] for i in inner))

        found = [
            normal([nearer(factor) for dim, factor in factors if dim in kept]) for factors in lies
        ]
        shape = tuple(math.prod(factor.size for factor in factors) for factors in found)
        sizes = tuple(self.sizes[dim] for dim in kept)
        return ImageOperand(Rearranged(self.image, found, shape, sizes), kept)

    def _cut(self) -> list[list[tuple[int, Factor]]] | None:
        """The factors of each dimension of the value, each of one of the image's, which stands in
        front of it; None where one goes over parts of several."""
        found = []
        for factors in self.lies:
            cut: list[tuple[int, Factor]] = []
            for factor in factors:
                inner: list[tuple[int, Factor]] = []
                begin, end = factor.stride, factor.stride * factor.size
                for dim in reversed(range(len(self.sizes))):
                    first = max(begin, step := math.prod(self.sizes[dim + 1 :]))
                    last = min(end, step * self.sizes[dim])
                    if first >= last:
                        continue
                    if last % first:
                        return None
                    inner.insert(0, (dim, Factor(last // first, first)))
                cut += inner
            found.append(cut)
        return found

    def _split(self) -> tuple[list[int], list[int]]:
        """The dimensions in between in the value's order, and the order of the image's."""
        how = self.how
        order = sorted(range(len(how.permutation)), key=how.permutation.__getitem__)
        return [how.shape[i] for i in how.permutation], order


@dataclass(frozen=True)
class ImageOperand:
    """An operand with one value a pixel, one a channel or one for several: it is the same along the
    image's other dimensions.

    Attributes:
        value: as a rearrangement of an array that has the dimensions `kept` of the image; of as
            many dimensions as the whole value, with what is kept of each.
        kept: in order.
    """

    value: Rearranged
    kept: list[int]


class Sinking:
    """Goes through the operations of a block in order.

    Attributes:
        count: operations that are now in front of a rearrangement.
    """

    def __init__(self) -> None:
        self._images: set[ir.Value] = set()
        self._products: set[ir.Value] = set()
        self.count = 0

    def sink(self, operations: Sequence[Op]) -> None:
        for op in operations:
            if op.name in OF_WINDOWS:
                self._straighten(op)
                self._images.add(op.results[0])
            elif is_elementwise(op):
                self._elementwise(op)
            elif is_of_pixels(op):
                self._images.add(op.results[0])
            elif op.name == "ascend.matmul":
                self._products.add(op.results[0])
            elif op.name == "ascend.reduce":
                self._reduction(op)
            elif op.name == "ascend.concat":
                self._concat(op)

    def _rearranged(self, value: ir.Value) -> Rearranged | None:
        image, lies = traces(value)[-1]
        if image == value or not (image in self._images or image in self._products):
            return None
        shape, sizes = tensor_of(value.type).shape, tensor_of(image.type).shape
        found = Rearranged(image, lies, shape, sizes)
        return found if image in self._images or found.has_rows_apart else None

    def _kind_of(self, image: ir.Value) -> set[ir.Value]:
        return self._images if image in self._images else self._products

    def _straighten(self, conv: Op) -> None:
        """The image that a convolution takes, if it comes from rearrangements that cancel."""
        value = conv.operands[0]
        source, lies = traces(value)[-1]
        permutation = rearrangement(lies).permutation
        if source != value and list(permutation) == sorted(permutation):
            with conv.location, ir.InsertionPoint(conv):
                conv.operands[0] = TensorOps().reshape(source, tensor_of(value.type).shape)

    def _elementwise(self, op: Op) -> None:
        found = next(filter(None, map(self._rearranged, op.operands)), None)
        if found is None:
            for kind in (self._images, self._products):
                if op.results[0].type.rank and any(v in kind for v in op.operands):
                    kind.add(op.results[0])
            return
        result = tensor_of(op.results[0].type)
        shape = tensor_of(found.image.type).shape
        with op.location, ir.InsertionPoint(op):
            ops = TensorOps()
            operands = [self._alike(value, found, ops) for value in op.operands]
            attributes = {key: op.attributes[key] for key in op.attributes}
            made_type = tensor_type(replace(result, shape=shape))
            made = builder.op(op.name, operands, [made_type], **attributes).result
            back = found.how.emit(made, result.shape, ops)
        self._kind_of(found.image).add(made)
        op.results[0].replace_all_uses_with(back)
        op.erase()
        self.count += 1

    def _concat(self, op: Op) -> None:
        """Sinks what was done to an image behind a concatenation of channels to which it goes."""
        parts = [self._rearranged(value) for value in op.operands]
        found, dim = next(filter(None, parts), None), attribute(op, "dim")
        if found is None or found.channels != dim:
            return
        if any(value in self._images or value in self._products for value in op.operands):
            return  # joined as an image already
        result = tensor_of(op.results[0].type)
        with op.location, ir.InsertionPoint(op):
            ops = TensorOps()
            images = []
            for value, part in zip(op.operands, parts, strict=True):
                wanted = found.with_channels(tensor_of(value.type).shape[dim])
                images.append(
                    part.image if part and part.is_like(wanted) else wanted.undone(value, ops)
                )
            joined = found.with_channels(result.shape[dim])
            kind = Tensor(joined.sizes, result.element)
            made = ops.emit("concat", images, kind, dim=len(joined.sizes) - 1)
            back = joined.how.emit(made, result.shape, ops)
        self._kind_of(found.image).add(made)
        op.results[0].replace_all_uses_with(back)
        op.erase()
        self.count += 1

    def _alike(self, value: ir.Value, found: Rearranged, ops: TensorOps) -> ir.Value:
        """An operand, rearranged as the image is."""
        other = self._rearranged(value)
        if other is not None and other.is_like(found):
            return other.image
        owner = defining_op(value)
        if owner is not None and owner.name == "ascend.broadcast":
            source = tensor_of(owner.operands[0].type)
            dims = [
                dim
                for dim, size in zip(attribute(owner, "dims"), source.shape, strict=True)
                if size != 1
            ]
            part = found.part(dims)
            if part is not None and dims == sorted(dims) and len(part.kept) < len(found.sizes):
                few = ops.reshape(owner.operands[0], [part.value.shape[dim] for dim in dims])
                if [dim for dim, size in enumerate(part.value.shape) if size != 1] == dims:
                    few = ops.reshape(few, part.value.shape)
                else:
                    few = ops.broadcast(few, part.value.shape, dims)
                row = self._alike(few, part.value, ops)
                return ops.broadcast(row, found.sizes, part.kept)
        return found.undone(value, ops)

    def _reduction(self, op: Op) -> None:
        """Reduces pixels by channels instead of what a rearrangement makes of them, and rearranges
        the result, where the reduced dimensions are whole ones of the image."""
        found = self._rearranged(op.operands[0])
        if found is None:
            return
        reduced, kind = set(attribute(op, "dims")), attribute(op, "kind")
        part = found.part([i for i in range(len(found.shape)) if i not in reduced])
        if part is None or len(part.kept) == len(found.sizes):
            return
        others = [i for i in range(len(found.sizes)) if i not in part.kept]
        rest = [dim for dim in sorted(reduced) if part.value.shape[dim] > 1]
        with op.location, ir.InsertionPoint(op):
            ops = TensorOps()
            made = ops.reduce(found.image, kind, others)
            back = part.value.how.emit(made, part.value.shape, ops)
            if rest:
                back = ops.reduce(back, kind, rest)
            back = ops.reshape(back, tensor_of(op.results[0].type).shape)
        self._kind_of(found.image).add(made)
        op.results[0].replace_all_uses_with(back)
        op.erase()
        self.count += 1


def is_of_pixels(op: Op) -> bool:
    """Whether an operation is a product whose rows are taken for images of one pixel."""
    if op.name != "ascend.matmul":
        return False
    n, channels = tensor_of(op.results[0].type).shape
    users = users_of(op)
    return all(
        user.name == "ascend.reshape"
        and len(shape := tensor_of(user.results[0].type).shape) > 2
        and [size for size in shape[1:] if size != 1] == [channels]
        and shape[0] == n
        for user in users
    )
