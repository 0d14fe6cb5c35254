"""Schedules of attention for cube and vector cores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from davinci import machine as machines
from davinci.operators.vector_program import Value
from davinci.schedule.attention import split
from davinci.schedule.attention.attention import Attention, Chain
from davinci.schedule.attention.fold import FIRST, fold_in_place
from davinci.schedule.attention.turn import Turn
from davinci.schedule.products.product import Operand, Result
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.steps import RESULT, SOURCE, View

MACHINE = machines.load("ascend910b")


def attention(
    rows: int, keys: int, depth: int = 128, batch: int = 1, dtype: str = "f32"
) -> Attention:
    chain = Chain(Value(0, dtype), (), (), ())
    q, k, v = (Operand(False, 2, k_rows) for k_rows in (False, False, True))
    turn = Turn(1, batch)
    out = Result(False, 2)
    return Attention(batch, rows, keys, depth, depth, q, k, v, out, turn, turn, turn, 0.125, chain)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(("rows", "keys", "depth"), [(1, 1, 16), (4096, 4096, 128), (77, 600, 64)])
def test_schedules_fit(rows: int, keys: int, depth: int, dtype: str) -> None:
    given = attention(rows, keys, depth, dtype=dtype)
    found = split.ranked(given, MACHINE, 24)
    assert found
    for each in found:
        assert split.fits(given, each, MACHINE)
        assert each.tiles(given) * each.tile >= given.fractals.keys
        assert sum(split.chunks(each)) == each.rows
    cycles = [split.estimate(given, each, MACHINE, 24) for each in found]
    assert cycles == sorted(cycles)


def test_more_cores_take_less_time() -> None:
    given = attention(4096, 4096, batch=4)
    few, many = (
        split.estimate(given, split.ranked(given, MACHINE, cores)[0], MACHINE, cores)
        for cores in (6, 24)
    )
    assert 3 < few / many < 5


def test_what_no_schedule_has() -> None:
    given = attention(64, 64)
    for other, reason in (
        (replace(given, depth=40), "whole fractals"),
        (replace(given, q=Operand(True, 2, False)), "rows of f16"),
        (replace(given, k=Operand(False, 4, False)), "rows of f16"),
        (replace(given, scale=-1.0), "turns the order"),
        (replace(given, depth=4096), "no schedule fits"),
    ):
        with pytest.raises(NoSpace, match=reason):
            split.ranked(other, MACHINE, 24)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(("rows", "keys"), [(1, 16), (2, 48), (3, 512), (1, 640)])
def test_maxima_in_place(rows: int, keys: int, dtype: str) -> None:
    """Both copies of the result are the maxima over keys, whatever was in the scratch buffer."""
    kind = np.dtype(np.float16 if dtype == "f16" else np.float32)
    scores = np.random.default_rng(0).standard_normal((rows, keys, 16)).astype(kind)
    work = fold_in_place(rows, keys, dtype)
    lanes = 256 // kind.itemsize
    buffers = {
        SOURCE: scores.reshape(-1).copy(),
        FIRST: np.full(work.scratch[FIRST], np.nan, kind),
        RESULT: np.full(rows * 2 * lanes, np.nan, kind),
    }

    def seen(view: View) -> np.ndarray:
        base = buffers[view.buffer][view.offset :]
        strides = [stride * kind.itemsize for stride in view.strides]
        return np.lib.stride_tricks.as_strided(base, view.shape, strides)

    for step in work.steps:
        a, b, result = map(seen, step.operands)
        result[...] = np.maximum(a.copy(), b.copy())
    assert np.array_equal(buffers[SOURCE], scores.reshape(-1))
    found = buffers[RESULT].reshape(rows, 2, lanes)[:, :, :16]
    assert np.array_equal(found, np.repeat(scores.max(1)[:, None], 2, 1))


@pytest.mark.parametrize(("rows", "keys", "depth"), [(512, 512, 64), (4096, 4096, 128)])
def test_buffers_fill_the_room_there_is(rows: int, keys: int, depth: int) -> None:
    """More buffers than schedules ask for fit, and no more do; all are used alike in a step."""
    given = attention(rows, keys, depth, batch=4)
    for each in split.ranked(given, MACHINE, 24):
        slots, count = (
            split.factor_slots(given, each, MACHINE),
            split.l0c_slots(given, each, MACHINE),
        )
        sizes = given.fractals
        room = {name: MACHINE.buffer(name).bytes // 512 for name in ("L0A", "L0B", "L0C")}
        k, p = each.part * sizes.depth, 2 * each.rows * each.part
        assert slots.k * k + slots.p * p <= room["L0A"]
        assert slots.k + slots.p == 4 or (slots.k + 1) * k + slots.p * p > room["L0A"]
        q, v = 2 * each.rows * sizes.depth, each.part * (sizes.columns + 1)
        assert q + slots.v * v <= room["L0B"]
        assert slots.v == 2 or q + 2 * v > room["L0B"]
        held = 2 * (count * each.rows * each.part + 2 * each.rows * (sizes.columns + 1))
        assert held <= room["L0C"]
        assert 4 * each.parts % count == 0
