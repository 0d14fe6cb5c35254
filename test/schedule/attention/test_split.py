"""Schedules of attention for cube and vector cores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from davinci import machine as machines
from davinci.operators.vector_program import Value
from davinci.schedule.attention import split, split_cost
from davinci.schedule.attention.attention import Attention, ScoreChain
from davinci.schedule.attention.fold import FIRST, fold_in_place
from davinci.schedule.attention.split_loads import SplitAttentionLoads
from davinci.schedule.attention.turn import MatrixTurn
from davinci.schedule.products.product import ProductOperand, ProductResult
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.steps import RESULT, SOURCE, View

MACHINE = machines.load("ascend910b")


def attention(
    rows: int, keys: int, depth: int = 128, batch: int = 1, dtype: str = "f32"
) -> Attention:
    chain = ScoreChain(Value(0, dtype), (), (), ())
    q, k, v = (ProductOperand(False, 2, k_rows) for k_rows in (False, False, True))
    turn = MatrixTurn(1, batch)
    out = ProductResult(False, 2)
    return Attention(batch, rows, keys, depth, depth, q, k, v, out, turn, turn, turn, 0.125, chain)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(("rows", "keys", "depth"), [(1, 1, 16), (4096, 4096, 128), (77, 600, 64)])
def test_schedules_fit(rows: int, keys: int, depth: int, dtype: str) -> None:
    given = attention(rows, keys, depth, dtype=dtype)
    found = split_cost.ranked(given, MACHINE, 24)
    assert found
    for each in found:
        assert split.fits(given, each, MACHINE)
        assert each.tiles(given) * each.tile >= given.fractals.keys
        assert sum(split.chunks(each)) == each.rows
    cycles = [split_cost.beside_others(given, each, MACHINE, 24) for each in found]
    assert cycles == sorted(cycles)


def test_more_cores_take_less_time() -> None:
    given = attention(4096, 4096, batch=4)
    few, many = (
        split_cost.estimate(given, split_cost.ranked(given, MACHINE, cores)[0], MACHINE, cores)
        for cores in (6, 24)
    )
    assert 3 < few / many < 5


def test_scores_wait_for_weights_where_they_are_one_tile_ahead() -> None:
    """A place of a ring is taken again when all cores are done with what was in it: simulated,
    1 x 4096 x 128 in units of 192 rows takes 83,404 cycles two tiles of 256 keys ahead, and 151,202
    one ahead."""
    given = attention(4096, 4096)
    made = split.SplitAttentionSchedule(3, 8, 2, 2, 3, 1, rounded=True)
    one, two = (
        split_cost.estimate(given, replace(made, ahead=ahead), MACHINE, 24) for ahead in (1, 2)
    )
    assert one > 1.5 * two


def test_a_run_of_few_steps_pays_for_each_crossing_once() -> None:
    """Scores, weights and products of the first and the last steps cross with nothing beside them:
    simulated, 12 x 512 x 64 in units of 128 rows takes 840 cycles more where a flag between cores
    takes 280 more, as its four steps never wait for places of the ring."""
    flags = MACHINE.cross_core
    assert flags is not None
    flags = flags.model_copy(update={"flag_cycles": flags.flag_cycles + 280})
    dearer = MACHINE.model_copy(update={"cross_core": flags})
    given, made = (
        attention(512, 512, 64, batch=12),
        split.SplitAttentionSchedule(2, 8, 2, 2, 2, 3, rounded=True),
    )
    usual, dear = (split_cost.estimate(given, made, machine, 24) for machine in (MACHINE, dearer))
    assert dear - usual == pytest.approx(3 * 280, rel=0.25)


def test_blocks_that_read_the_same_keys_wait_for_each_other() -> None:
    """Lines of the L2 serve one of them after the other."""
    made = split.SplitAttentionSchedule(2, 8, 2, 2, 2, 3, rounded=True)
    one, many = (
        SplitAttentionLoads(given, made, MACHINE, 24)
        for given in (attention(128, 4096, batch=24), attention(24 * 128, 4096))
    )
    assert one.readers(one.attention.of_k) == 1 and many.readers(many.attention.of_k) == 24
    assert many.of_k(0.0) > 1.3 * one.of_k(0.0)


def test_what_no_schedule_has() -> None:
    given = attention(64, 64)
    for other, reason in (
        (replace(given, depth=40), "whole fractals"),
        (replace(given, depth=40, q=ProductOperand(True, 2, False)), "whole fractals"),
        (replace(given, k=ProductOperand(False, 4, False)), "matrices of f16"),
        (replace(given, scale=-1.0), "turns the order"),
        (replace(given, depth=4096), "no schedule fits"),
    ):
        with pytest.raises(NoSpace, match=reason):
            split_cost.ranked(other, MACHINE, 24)


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
    """Those that schedules choose fit the memories, and none of them could be one more."""
    given = attention(rows, keys, depth, batch=4)
    sizes = given.fractals
    room = {name: MACHINE.buffer(name).bytes // 512 for name in ("L0A", "L0B", "L0C")}
    for each in split_cost.ranked(given, MACHINE, 24):
        slots = split.factor_slots(given, each, MACHINE)
        own = each.part // slots.cuts
        k, p = each.part * sizes.depth, 2 * each.rows * own
        q, v = each.rows * sizes.depth, own * (sizes.columns + 1)
        assert slots.k * k + slots.p * p <= room["L0A"]
        assert slots.q * q + slots.v * v <= room["L0B"]
        for count, size, used, name in (
            (slots.k, k, slots.k * k + slots.p * p, "L0A"),
            (slots.q, q, slots.q * q + slots.v * v, "L0B"),
        ):
            assert count == 2 or used + size > room[name]
        scores = split.ways_of_scores(given, each, MACHINE)[0]
        held = 2 * each.rows * each.part // scores.cuts * scores.count
        assert held + 4 * each.rows * (sizes.columns + 1) <= room["L0C"]
        assert each.quarters * each.parts * scores.cuts % scores.count != 1
