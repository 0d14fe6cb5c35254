"""Reductions of rows and their results spread, on simulated machine code against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from davinci import machine as machines
from davinci.isa import INSTRUCTIONS
from davinci.mlir import ir, make_context
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.ascend_to_cce.vector.row_statistics import (
    array,
    build_steps,
    build_table,
    fill_lanes,
    scratch_buffers,
)
from davinci.passes.builder import alloc, op
from davinci.passes.pipeline import runner
from davinci.schedule.vector.row_places import RowPlaces, block_lanes, places_of
from davinci.schedule.vector.row_statistics import best_places, neutral, placing, reduction
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import BLOCK_BYTES
from kernel_support import KernelRun, run_cce

MACHINE = machines.load("ascend910")
NUMPY = {"f32": np.float32, "s32": np.int32, "f16": np.float16}
FUNCTIONS = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}
ROWS = (1, 7, 8, 15, 16, 17, 24, 48, 100)
LANES = (8, 16, 64, 128, 192, 512, 768, 832)

Array = np.ndarray[Any, Any]
Body = Callable[..., None]


def run_kernel(
    body: Body, inputs: Sequence[Array], outputs: Sequence[tuple[tuple[int, ...], str]]
) -> KernelRun:
    """Runs a kernel whose body is built by `body(arguments)`, arguments in GM, outputs last."""
    names = {np.dtype(v): k for k, v in NUMPY.items()}
    types = [(a.shape, names[a.dtype]) for a in inputs] + list(outputs)
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            memrefs = [ir.MemRefType.get(list(s), element_type(t)) for s, t in types]
            attributes = {
                "sym_name": ir.StringAttr.get("k"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(memrefs, [])),
                "ascend.kernel": ir.UnitAttr.get(),
                "ascend.blocks": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1),
            }
            kernel = ir.Operation.create("func.func", attributes=attributes, regions=1)
            block = kernel.regions[0].blocks.append(*memrefs)
        with ir.InsertionPoint(block):
            body(*block.arguments)
            ir.Operation.create("func.return")
        module.operation.verify()
        runner.run(module.operation, "builtin.module(plan-memory,insert-sync)")
        return run_cce(module, inputs, len(outputs), "ascend910")


def loaded(source: Any) -> Any:
    """A buffer in UB that holds all of `source`."""
    kind = ir.MemRefType(source.type)
    buffer = alloc(kind.shape, kind.element_type, "UB")
    op("cce.copy", [source, buffer])
    return buffer


def values(shape: tuple[int, ...], dtype: str, kind: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if dtype == "s32":
        return rng.integers(-(2**31), 2**31, shape).astype(np.int32)
    if kind == "mul":
        return (1 + rng.standard_normal(shape) / 100).astype(NUMPY[dtype])
    return (rng.standard_normal(shape) * 4 + 1).astype(NUMPY[dtype])


def check(kind: str, x: Array, found: Array, axes: tuple[int, ...]) -> None:
    """`found`: a value for each row, in any number of equal lanes behind the rows' dimension."""
    rounded = x.dtype == np.float32 and kind in ("add", "mul")
    wanted = FUNCTIONS[kind].reduce(x, axis=axes, dtype=np.float64 if rounded else x.dtype)
    wanted = wanted.reshape(wanted.shape + (1,) * (found.ndim - wanted.ndim))
    if not rounded:
        np.testing.assert_array_equal(found, np.broadcast_to(wanted, found.shape))
        return
    # Each of a row's products rounds; of a sum's additions, those that a value goes through do.
    count = math.prod(x.shape[axis] for axis in axes)
    roundings = count if kind == "mul" else 8 + math.log2(count)
    scale = wanted if kind == "mul" else np.abs(x).sum(axes).reshape(wanted.shape)
    assert (np.abs(found - wanted) <= scale * roundings * np.finfo(np.float32).eps / 2).all()


def reduced(
    kind: str, x: Array, dtype: str, first: bool = False, **options: Any
) -> tuple[Array, bool, KernelRun]:
    """The result [rows, lanes of a block] of a reduction, and whether it is in lane 0 only."""
    *slices, rows, lanes = x.shape
    how = reduction(
        kind, rows, lanes, dtype, MACHINE, slices=(*slices, 1)[0], first=first, **options
    )

    def body(source: Any, result: Any) -> None:
        held = loaded(source)
        kept = alloc([rows, block_lanes(dtype)], element_type(dtype), "UB")
        build_steps(how.work, {SOURCE: held, RESULT: kept, **scratch_buffers(how.work)})
        op("cce.copy", [kept, result])

    run = run_kernel(body, [x], [((rows, block_lanes(dtype)), dtype)])
    return run.outputs[0], how.first, run


KINDS = [
    *((kind, dtype) for kind in FUNCTIONS for dtype in ("f32", "s32")),
    ("max", "f16"),
    ("min", "f16"),
]


CASES = [
    *(
        (rows, lanes, ("max", "add")[(i + j) % 2], "f32")
        for i, rows in enumerate(ROWS)
        for j, lanes in enumerate(LANES)
    ),
    *(
        (rows, lanes, kind, dtype)
        for kind, dtype in KINDS
        for rows, lanes in [(1, 64), (7, 8), (15, 192), (16, 512), (17, 832), (24, 16), (100, 128)]
        if (kind, dtype) not in (("max", "f32"), ("add", "f32"))
    ),
]


@pytest.mark.parametrize(("rows", "lanes", "kind", "dtype"), CASES)
def test_reduction(rows: int, lanes: int, kind: str, dtype: str) -> None:
    lanes = max(lanes, block_lanes(dtype))
    if rows * lanes * np.dtype(NUMPY[dtype]).itemsize > 100 << 10:
        lanes = 192
    x = values((rows, lanes), dtype, kind, rows + lanes)
    found, first, _ = reduced(kind, x, dtype)
    assert not first
    check(kind, x, found, (1,))


@pytest.mark.parametrize(
    ("rows", "lanes"), [(1, 8), (7, 32), (8, 832), (17, 512), (24, 64), (100, 192)]
)
def test_sum_in_lane_0(rows: int, lanes: int) -> None:
    x = values((rows, lanes), "f32", "add")
    found, first, _ = reduced("add", x, "f32", first=True)
    check("add", x, found[:, 0] if first else found, (1,))


@pytest.mark.parametrize("kind", ["max", "min", "add"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_infinities_and_nan(kind: str, dtype: str) -> None:
    """NaN anywhere in a row gives NaN, as in NumPy."""
    if kind == "add" and dtype == "f16":
        dtype = "f32"
    x = values((6, 256), dtype, kind)
    x[0, 77] = np.inf
    x[1, 3] = -np.inf
    x[2, 255] = np.nan
    x[3] = -np.inf
    x[4, 0], x[4, 200] = np.inf, np.nan
    x[5] = 0.0
    x[5, ::2] = -0.0
    found, _, _ = reduced(kind, x, dtype)
    with np.errstate(invalid="ignore"):
        wanted = FUNCTIONS[kind].reduce(x, axis=1)
    special = [0, 1, 2, 3, 4]
    if kind != "add":
        np.testing.assert_array_equal(found[:, 0], wanted)
    np.testing.assert_array_equal(np.isnan(found[special, 0]), np.isnan(wanted[special]))


@pytest.mark.parametrize(("kind", "dtype"), [("max", "f32"), ("add", "f32"), ("min", "f16")])
@pytest.mark.parametrize(("slices", "rows"), [(2, 16), (3, 15), (7, 1), (12, 48)])
def test_reduction_of_fractals(kind: str, dtype: str, slices: int, rows: int) -> None:
    """Nz: rows of 16 lanes, [slices, rows, 16]."""
    x = values((slices, rows, 16), dtype, kind)
    found, _, _ = reduced(kind, x, dtype)
    check(kind, x, found, (0, 2))


def combined(x: Array, dtype: str, kind: str, places: RowPlaces, first: bool) -> KernelRun:
    """x - statistic, the statistic put to `places` from a block a row."""
    rows, lanes = x.shape
    how = reduction(kind, rows, lanes, dtype, MACHINE, first=first)
    put = placing(dtype, places, MACHINE, first=how.first)
    block = block_lanes(dtype)

    def body(source: Any, result: Any) -> None:
        held = loaded(source)
        kept = alloc([rows, block], element_type(dtype), "UB")
        build_steps(how.work, {SOURCE: held, RESULT: kept, **scratch_buffers(how.work)})
        wide = alloc([places.blocks * block], element_type(dtype), "UB")
        build_steps(put, {SOURCE: kept, RESULT: wide, **scratch_buffers(put)})
        views = places.operands(lanes // block, dtype, "rows", "wide")
        buffers = {"rows": held, "wide": wide}
        x_view, statistic = (array(buffers, view) for view in views)
        op("cce.vsub", [x_view, statistic, x_view])
        op("cce.copy", [held, result])

    return run_kernel(body, [x], [(x.shape, dtype)])


PLACES = [
    (rows, lanes, dtype, places)
    for rows, lanes, dtype in [
        (1, 512, "f32"),
        (7, 192, "f32"),
        (8, 768, "f32"),
        (16, 128, "s32"),
        (17, 832, "f32"),
        (24, 512, "f32"),
        (24, 512, "f16"),
        (100, 16, "f32"),
    ]
    for places in places_of(rows, lanes // block_lanes(dtype))
    if rows * lanes * 4 + places.blocks * BLOCK_BYTES < 200 << 10
]


@pytest.mark.parametrize(("rows", "lanes", "dtype", "places"), PLACES)
@pytest.mark.parametrize("kind", ["max", "add"])
def test_places(rows: int, lanes: int, dtype: str, places: RowPlaces, kind: str) -> None:
    """Exact: the values are small whole numbers."""
    if kind == "add" and dtype == "f16":
        kind = "min"
    x = np.random.default_rng(rows).integers(-100, 100, (rows, lanes)).astype(NUMPY[dtype])
    run = combined(x, dtype, kind, places, first=kind == "add")
    wanted = x - FUNCTIONS[kind].reduce(x, axis=1, keepdims=True)
    np.testing.assert_array_equal(run.outputs[0], wanted)


def test_statistics_of_fractals_over_their_rows() -> None:
    """Nz: x [slices, rows, 16] - its maximum, which lies in the 16 lanes of each row once."""
    slices, rows = 5, 16
    x = values((slices, rows, 16), "f32", "max")
    places = RowPlaces(rows, 2, unit=1)
    work = reduction("max", rows, 16, "f32", MACHINE, places=places, slices=slices).work

    def body(source: Any, result: Any) -> None:
        held = loaded(source)
        kept = alloc([rows, 16], element_type("f32"), "UB")
        build_steps(work, {SOURCE: held, RESULT: kept, **scratch_buffers(work)})
        views = places.operands(2, "f32", "rows", "kept", slices)
        rows_view, statistic = (array({"rows": held, "kept": kept}, v) for v in views)
        op("cce.vsub", [rows_view, statistic, rows_view])
        op("cce.copy", [held, result])

    found = run_kernel(body, [x], [(x.shape, "f32")]).outputs[0]
    np.testing.assert_array_equal(found, x - x.max((0, 2))[:, None])


@pytest.mark.parametrize(
    ("dtype", "lanes", "first", "last"),
    [("f32", 64, 0, 64), ("f32", 192, 100, 192), ("f32", 128, 3, 5), ("f16", 256, 77, 250)],
)
@pytest.mark.parametrize("rows", [1, 17])
def test_fill_of_lanes(dtype: str, lanes: int, first: int, last: int, rows: int) -> None:
    x = values((rows, lanes), dtype, "add")

    def body(source: Any, result: Any) -> None:
        held = loaded(source)
        fill_lanes(dtype, held, first, last, -math.inf)
        op("cce.copy", [held, result])

    found = run_kernel(body, [x], [(x.shape, dtype)])
    x[:, first:last] = -np.inf
    np.testing.assert_array_equal(found.outputs[0], x)
    assert found.profile.instructions[f"vector_dup.{dtype}"] <= -(-(last - first) // 64) + 1


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_lanes_of_the_neutral_value(kind: str, dtype: str) -> None:
    """Padding that is filled with it does not count."""
    rows, lanes, first = 9, 192, 101
    x = values((rows, lanes), dtype, kind)
    work = reduction(kind, rows, lanes, dtype, MACHINE).work

    def body(source: Any, result: Any) -> None:
        held = loaded(source)
        fill_lanes(dtype, held, first, lanes, neutral(kind, dtype))
        kept = alloc([rows, block_lanes(dtype)], element_type(dtype), "UB")
        build_steps(work, {SOURCE: held, RESULT: kept, **scratch_buffers(work)})
        op("cce.copy", [kept, result])

    found = run_kernel(body, [x], [((rows, block_lanes(dtype)), dtype)]).outputs[0]
    check(kind, x[:, :first], found, (1,))


@pytest.mark.parametrize(
    ("rows", "length", "lanes"), [(1, 64, 64), (8, 768, 768), (7, 100, 128), (130, 16, 16)]
)
@pytest.mark.parametrize("dtype", ["f32", "s32", "f16"])
@pytest.mark.parametrize("moved", [False, True])
def test_table(rows: int, length: int, lanes: int, dtype: str, moved: bool) -> None:
    row = values((length,), dtype, "add")

    def body(source: Any, result: Any) -> None:
        held = alloc([rows, lanes], element_type(dtype), "UB")
        build_table(dtype, source, held, moved)
        op("cce.copy", [held, result])

    found = run_kernel(body, [row], [((rows, lanes), dtype)]).outputs[0]
    np.testing.assert_array_equal(found[:, :length], np.tile(row, (rows, 1)))
    assert (found[:, length:] == 0).all()


@pytest.mark.parametrize(
    ("kind", "rows", "lanes", "links", "cycles"),
    [
        ("max", 24, 512, 11, 470),
        ("add", 24, 512, 6, 497),
        ("add", 8, 768, 7, 325),
        ("max", 100, 16, 6, 365),
    ],
)
def test_estimate(kind: str, rows: int, lanes: int, links: int, cycles: int) -> None:
    """The instructions are counted exactly; their time lacks what banks cost."""
    x = values((rows, lanes), "f32", kind)
    how = reduction(kind, rows, lanes, "f32", MACHINE).work
    estimate = how.estimate(MACHINE)
    assert (estimate.links, estimate.cycles) == (links, cycles)
    profile = reduced(kind, x, "f32")[2].profile
    issued = sum(n for name, n in profile.instructions.items() if record_pipe(name) == "V")
    assert issued == estimate.instructions
    assert cycles <= profile.pipes["PIPE_V"] <= 1.5 * cycles


def test_choice_of_places() -> None:
    """Copies where a row has many units; gaps where there is room; neither for a single unit."""

    def best(rows: int, lanes: int, room: int, first: bool = False, uses: int = 1) -> RowPlaces:
        return best_places(rows, lanes // 8, "f32", MACHINE, first=first, room=room, uses=uses)

    assert best(24, 512, 0) == RowPlaces(24)
    assert best(24, 512, 1 << 20) == RowPlaces(24, 8)
    assert best(24, 512, 24 << 10, first=True, uses=4) == RowPlaces(24, 8, pitch=8, groups=2)
    assert best(24, 64, 1 << 20) == RowPlaces(24)
    assert best(100, 16, 1 << 20) == RowPlaces(100, 1, unit=2)
    assert best(100, 16, 1 << 20, uses=4) == RowPlaces(100, 2, unit=1)


def record_pipe(mnemonic: str) -> str:
    return INSTRUCTIONS[mnemonic].pipe.name if mnemonic[0] in "vs" else ""
