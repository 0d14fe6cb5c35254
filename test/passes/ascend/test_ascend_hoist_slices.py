"""Slices in front of all operators: values, on random graphs, and what is computed then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_values import build, values
from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import ir
from davinci.operators import Tensor
from davinci.operators.conv import Geometry, weight_rows
from davinci.operators.pool import has_pixels
from davinci.passes.ascend import boxes
from davinci.passes.ascend.ascend_hoist_slices import Narrowing, demands
from davinci.passes.ascend.tensor_ops import TensorOps, erase_unused
from davinci.passes.pipeline.rewrites import REWRITES

ALL = frozenset(REWRITES)
SHAPE = (2, 6, 8)


def hoisted(module: ir.Module) -> int:
    """Moves all slices as far as they go; how many operators compute less."""
    block = module.body.operations[0].regions[0].blocks[0]
    with module.context:
        found = demands(block, ALL)
        Narrowing(found).rebuild([operation.operation for operation in block.operations])
        erase_unused(block)
    module.operation.verify()
    return len(found)


class Steps:
    """Random operators, one behind the other, with a slice at the end."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, ops: TensorOps, inputs: list[Any]) -> list[Any]:
        known = list(inputs)
        moves = [self.reshape, self.transpose, self.broadcast, self.concat, self.pad, self.slice]
        others = [self.unary, self.binary, self.reduce, self.gather]
        steps: list[Any] = [*moves, *others, self.product, self.conv, self.pool]
        for _ in range(self.rng.integers(3, 9)):
            step = steps[self.pick(len(steps))]
            value = known[-1] if self.rng.random() < 0.7 else known[self.pick(len(known))]
            made = step(ops, value, known)
            if made is not None and 0 < tensor_of(made.type).count < 20_000:
                known.append(made)
        ends = [known[-1], known[self.pick(len(known))]][: self.rng.integers(1, 3)]
        return [self.slice(ops, end, known) for end in ends]

    def pick(self, count: int) -> int:
        return int(self.rng.integers(count))

    def unary(self, ops: TensorOps, x: Any, _: Any) -> Any:
        return ops.unary(str(self.rng.choice(["neg", "abs", "relu", "tanh"])), x)

    def binary(self, ops: TensorOps, x: Any, known: list[Any]) -> Any:
        others = [value for value in known if value.type == x.type]
        return ops.binary(str(self.rng.choice(["add", "max"])), x, others[self.pick(len(others))])

    def reshape(self, ops: TensorOps, x: Any, _: Any) -> Any:
        shape = list(tensor_of(x.type).shape)
        i = self.pick(len(shape)) if shape else 0
        if shape and self.rng.random() < 0.5:
            divisors = [d for d in range(1, shape[i] + 1) if shape[i] % d == 0]
            d = divisors[self.pick(len(divisors))]
            shape[i : i + 1] = [d, shape[i] // d]
        elif len(shape) > 1:
            i = self.pick(len(shape) - 1)
            shape[i : i + 2] = [shape[i] * shape[i + 1]]
        return ops.reshape(x, shape)

    def transpose(self, ops: TensorOps, x: Any, _: Any) -> Any:
        return ops.transpose(x, [int(i) for i in self.rng.permutation(tensor_of(x.type).rank)])

    def reduce(self, ops: TensorOps, x: Any, _: Any) -> Any:
        rank = tensor_of(x.type).rank
        if rank < 2:
            return None
        return ops.reduce(x, str(self.rng.choice(["max", "add"])), [self.pick(rank)])

    def broadcast(self, ops: TensorOps, x: Any, _: Any) -> Any:
        shape = list(tensor_of(x.type).shape)
        at = self.pick(len(shape) + 1)
        dims = [i + (i >= at) for i in range(len(shape))]
        shape.insert(at, int(self.rng.integers(2, 5)))
        return ops.broadcast(x, shape, dims)

    def concat(self, ops: TensorOps, x: Any, known: list[Any]) -> Any:
        found = tensor_of(x.type)
        others = [value for value in known if value.type == x.type]
        if not found.rank:
            return None
        return ops.concat([x, others[self.pick(len(others))]], self.pick(found.rank))

    def pad(self, ops: TensorOps, x: Any, _: Any) -> Any:
        found = tensor_of(x.type)
        low, high = (self.rng.integers(-1, 3, found.rank).tolist() for _ in range(2))
        shape = tuple(n + a + b for n, a, b in zip(found.shape, low, high, strict=True))
        if min(shape, default=0) < 1:
            return None
        number, none = ops.full((), "f32", 3.0), [0] * found.rank
        return ops.emit("pad", [x, number], Tensor(shape, "f32"), low=low, high=high, interior=none)

    def product(self, ops: TensorOps, x: Any, _: Any) -> Any:
        shape = tensor_of(x.type).shape
        if len(shape) not in (2, 3):
            return None
        n, turned = int(self.rng.integers(1, 9)), self.rng.random(2) < 0.5
        *batch, a, b = shape
        m, k = (b, a) if turned[0] else (a, b)
        right = self.array(ops, (*batch, n, k) if turned[1] else (*batch, k, n))
        names = ("transpose_a", "transpose_b")
        flags = {name: True for name, on in zip(names, turned, strict=True) if on}
        name = "batch_matmul" if batch else "matmul"
        return ops.emit(name, [x, right], Tensor((*batch, m, n), "f32"), **flags)

    def image(self, x: Any) -> Geometry | None:
        shape = tensor_of(x.type).shape
        if len(shape) != 3:
            return None
        sides = [d for d in range(1, shape[1] + 1) if shape[1] % d == 0]
        h = sides[self.pick(len(sides))]
        pair: Any = lambda low, high: tuple(self.rng.integers(low, high, 2).tolist())  # noqa: E731
        pads = tuple(self.rng.integers(0, 2, 4).tolist())
        found = Geometry((h, shape[1] // h), pair(1, 4), pair(1, 3), pair(1, 3), pads)
        return found if min(found.windows) > 0 else None

    def conv(self, ops: TensorOps, x: Any, _: Any) -> Any:
        found, shape = self.image(x), tensor_of(x.type).shape
        if found is None:
            return None
        outputs = int(self.rng.integers(1, 20))
        weights = self.array(ops, (1, weight_rows(shape[2], found), outputs))
        rows, columns = found.windows
        made = Tensor((shape[0], rows * columns, outputs), "f32")
        return ops.emit("conv", [x, weights], made, **vars(found), groups=1)

    def pool(self, ops: TensorOps, x: Any, _: Any) -> Any:
        found, shape = self.image(x), tensor_of(x.type).shape
        if found is None or not has_pixels(found):
            return None
        rows, columns = found.windows
        made = Tensor((shape[0], rows * columns, shape[2]), "f32")
        return ops.emit("pool", [x], made, **vars(found), kind="max")

    def slice(self, ops: TensorOps, x: Any, _: Any) -> Any:
        starts, limits, strides = [], [], []
        for size in tensor_of(x.type).shape:
            whole = self.rng.random() < 0.4
            start = 0 if whole else self.pick(size)
            limit = size if whole else int(self.rng.integers(start + 1, size + 1))
            starts.append(start)
            limits.append(limit)
            strides.append(1 if whole or self.rng.random() < 0.6 else int(self.rng.integers(1, 4)))
        return ops.cut(x, starts, limits, strides)

    def gather(self, ops: TensorOps, x: Any, _: Any) -> Any:
        shape = tensor_of(x.type).shape
        if not shape:
            return None
        rows = self.rng.integers(0, shape[0], self.rng.integers(1, 5)).astype(np.int64)
        indices = ops.array(rows, Tensor(rows.shape, "i64"))
        return ops.emit("gather", [x, indices], Tensor((len(rows), *shape[1:]), "f32"))

    def array(self, ops: TensorOps, shape: tuple[int, ...]) -> Any:
        numbers = self.rng.integers(-3, 4, shape).astype(np.float32)
        return ops.array(numbers, Tensor(shape, "f32"))


@pytest.mark.parametrize("seeds", [range(i, i + 40) for i in range(0, 320, 40)])
def test_parts_of_random_graphs_have_the_values_of_the_whole(seeds: range) -> None:
    narrowed = 0
    for seed in seeds:
        module = build([SHAPE, SHAPE], Steps(seed))
        rng = np.random.default_rng(seed)
        inputs = [rng.standard_normal(SHAPE).astype(np.float32) for _ in range(2)]
        before = values(module, inputs)
        text = str(module)
        narrowed += hoisted(module)
        for a, b in zip(before, values(module, inputs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4, err_msg=text)
    assert narrowed > len(seeds)


def test_the_window_of_a_crop_has_a_halo() -> None:
    """Of 64 x 64 pixels 8 x 8 behind a 3 x 3 convolution: 10 x 10 are convolved."""

    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        weights = ops.array(np.ones((1, 144, 16), np.float32), Tensor((1, 144, 16), "f32"))
        geometry = Geometry((64, 64), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
        made = ops.emit(
            "conv", [inputs[0], weights], Tensor((1, 4096, 16), "f32"), **vars(geometry), groups=1
        )
        image = ops.reshape(made, (1, 64, 64, 16))
        return [ops.cut(image, [0, 8, 56, 0], [1, 16, 64, 16])]

    module = build([(1, 4096, 16)], body)
    assert hoisted(module)
    (conv,) = [
        op
        for op in module.body.operations[0].regions[0].blocks[0].operations
        if op.operation.name == "ascend.conv"
    ]
    found = call_of(conv.operation)
    assert found.attributes["image"] == [10, 9]
    assert found.attributes["pads"] == [0, 0, 0, 1]
    assert found.outputs[0].shape == (1, 64, 16)


@pytest.mark.parametrize("groups", [1, 2])
def test_channels_of_several_groups_are_all_computed(groups: int) -> None:
    """The channels of one group are columns of its weights; those of several lie one behind the
    other."""

    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        shape = (groups, 32 // groups, 32 // groups)
        weights = ops.array(np.ones(shape, np.float32), Tensor(shape, "f32"))
        geometry = Geometry((4, 4), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0))
        made = ops.emit(
            "conv",
            [inputs[0], weights],
            Tensor((1, 16, 32), "f32"),
            **vars(geometry),
            groups=groups,
        )
        return [ops.cut(made, [0, 0, 8], [1, 16, 16])]

    assert bool(hoisted(build([(1, 16, 32)], body))) == (groups == 1)


def test_boxes_through_reshapes() -> None:
    box = (boxes.all_of(2), *boxes.whole((56, 56)))
    rows = (box[0], (boxes.TakenIndices(56, range(2, 5)),), box[2])
    columns = (box[0], box[1], (boxes.TakenIndices(56, range(2, 5)),))
    assert boxes.reshaped(rows, (2, 3136)) == (box[0], (boxes.TakenIndices(3136, range(112, 280)),))
    flat = boxes.reshaped(columns, (2, 3136))
    assert flat is not None and len(flat[1]) == 2
    assert boxes.reshaped(flat, (2, 56, 56)) == columns
    assert boxes.reshaped(((boxes.TakenIndices(12, range(1, 8)),),), (3, 4)) is None
