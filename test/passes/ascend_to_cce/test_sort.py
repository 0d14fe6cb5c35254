"""Sorts on the vector unit against NumPy, see `davinci.schedule.sorts`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import davinci
from davinci.machine import Machine, load
from davinci.passes.stablehlo_to_ascend import sort as sort_conversion
from davinci.schedule.sorts.first_keys import (
    EXTREMES,
    GROUPS,
    PARTS,
    ROWS,
    FirstKeys,
    SortWay,
    way_of,
)
from davinci.schedule.sorts.keys import Keys, KeySteps
from davinci.schedule.sorts.network import SortTile
from davinci.schedule.sorts.schedule import shares_of, tiles_of
from pairs import all_pairs
from random_sorts import ALIKE, PLAIN, TOTAL, Sort, differs, random_keys, random_sort, sort_of

CASES = [
    # shape, dimension, what goes along, kept
    ((8, 100), 1, "alone", 100),
    ((1, 1), 1, "places", 1),
    ((17, 16), 0, "places", 17),
    ((2, 1500), 1, "places", 40),
    ((1, 3000), 1, "alone", 2),
    ((3, 15), 1, "others", 15),
    ((0, 5), 1, "places", 5),
    ((9, 130), 1, "places", 1),
    ((3, 1000), 1, "places", 5),
    ((16, 70), 1, "alone", 6),
    ((1, 2100), 1, "places", 100),
    ((3, 301), 1, "places", 301),
    ((2, 321), 1, "others", 130),
    ((2, 90), 1, "alone", 90),
]


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("kept", [1, 2, 9, 64])
def test_the_first_keys_take_less(rows: int, planes: int, kept: int) -> None:
    whole = SortTile(8192, rows, planes, ("-1",))
    keys = [
        sum(math.prod(step.operands[-1].shape) for step in tile.steps())
        for tile in (replace(whole, kept=kept), whole)
    ]
    assert keys[0] < 0.75 * keys[1]


@pytest.mark.parametrize(
    ("kind", "form", "kept"),
    [
        ("i64", "alone", 70),
        ("ui32", "places", 9),
        ("ui64", "others", 70),
        ("f32", "keys", 40),
        ("i16", "places", 70),
        ("ui16", "alone", 9),
    ],
)
def test_keys_of_several_words(kind: str, form: str, kept: int) -> None:
    """Several keys, and integers of 16 or 64 bits or without a sign, are no scalar unit's work."""
    rng = np.random.default_rng(3)
    keys = random_keys(rng, [2, 70], kind)
    keys[0, :35] = keys[1, :35]
    keys = np.where(keys != keys, np.float32(1), keys).astype(keys.dtype)
    sort = sort_of(keys, 1, PLAIN, kind == "ui32", form, kept, rng)
    executable = davinci.compile(sort.text, cores=2)
    assert not differs(sort, list(executable.run(*sort.inputs).values()))
    assert {k["unit"] for k in executable.profile["kernels"] if "sort" in k["op"]} == {"vector"}


def test_an_argsort_of_places_sorts_them_as_they_were() -> None:
    """Keys that were made wider are sorted as narrow ones, in one go."""
    text = """func.func @main(%x: tensor<3x40xi32>) -> tensor<3x40xi64> {
      %w = stablehlo.convert %x : (tensor<3x40xi32>) -> tensor<3x40xi64>
      %r = "stablehlo.sort"(%w) ({
      ^bb0(%a: tensor<i64>, %b: tensor<i64>):
        %c = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }) {dimension = 1 : i64} : (tensor<3x40xi64>) -> tensor<3x40xi64>
      return %r : tensor<3x40xi64> }"""
    executable = davinci.compile(text)
    x = np.random.default_rng(1).integers(-(2**31), 2**31, (3, 40)).astype(np.int32)
    (found,) = executable.run(x).values()
    np.testing.assert_array_equal(found, np.sort(x, 1))
    assert sum("sort" in k["op"] for k in executable.profile["kernels"]) == 1


def sort_named(shape: tuple[int, ...], dim: int, form: str, kept: int) -> Sort:
    rng = np.random.default_rng(1)
    keys = np.rint(4 * rng.standard_normal(shape)).astype(np.float32)
    odd = np.array([np.nan, -np.nan, -0.0, np.inf], np.float32)[: keys.size]
    keys.ravel()[: odd.size] = odd
    return sort_of(keys, dim, ALIKE, True, form, kept, rng)


@pytest.mark.parametrize(("shape", "dim", "form", "kept"), CASES)
def test_on_the_vector_unit(shape: tuple[int, ...], dim: int, form: str, kept: int) -> None:
    sort = sort_named(shape, dim, form, kept)
    executable = davinci.compile(sort.text)
    assert not differs(sort, list(executable.run(*sort.inputs).values()))
    sorts = [k for k in executable.profile["kernels"] if "sort" in k["op"]]
    assert all(k["unit"] == "vector" for k in sorts)
    first_only = form == "places" and kept == 1  # found by a reduction
    assert bool(sorts) == (sort.inputs[0].size > 1 and not first_only)


@pytest.mark.parametrize(
    ("compares", "descending", "groups"),
    all_pairs([ALIKE, TOTAL], [False, True], [(7, 8), (2, 64)]),
)
def test_the_first_keys_come_from_groups(
    monkeypatch: pytest.MonkeyPatch, compares: str, descending: bool, groups: tuple[int, int]
) -> None:
    kept, size = groups

    def in_groups(wanted: FirstKeys, keys: Keys, machine: Machine) -> SortWay | None:
        long = wanted.placed and wanted.columns > 300
        return SortWay(GROUPS, size, 0) if long else way_of(wanted, keys, machine)

    monkeypatch.setattr(sort_conversion, "way_of", in_groups)
    rng = np.random.default_rng(size)
    keys = np.rint(rng.standard_normal((3, 501))).astype(np.float32)
    keys[1] = -np.abs(keys[1])
    odd = rng.integers(0, keys.size, 100)
    keys.ravel()[odd] = rng.choice(np.array([np.nan, -np.nan, -0.0, np.inf, -np.inf]), odd.size)
    sort = sort_of(keys, 1, compares, descending, "places", kept, rng)
    executable = davinci.compile(sort.text, cores=2)
    assert not differs(sort, list(executable.run(*sort.inputs).values()))
    assert any(k["op"] == "gather" for k in executable.profile["kernels"])


@pytest.mark.parametrize(
    ("compares", "descending", "form"),
    all_pairs([ALIKE, TOTAL], [False, True], ["places", "alone"]),
)
def test_the_first_keys_are_looked_for_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, compares: str, descending: bool, form: str
) -> None:
    """More of them than there are keys that are not the worst."""
    one_by_one = SortWay(EXTREMES, 1, 0)
    monkeypatch.setattr(sort_conversion, "way_of", lambda wanted, keys, machine: one_by_one)
    rng = np.random.default_rng(5)
    keys = rng.choice(np.array([np.nan, -np.nan, -0.0, 0.0, np.inf, -np.inf, 2], "f4"), (5, 19))
    keys[1], keys[2] = (-np.inf if descending else np.inf), np.nan
    sort = sort_of(keys, 1, compares, descending, form, 6, rng)
    executable = davinci.compile(sort.text, cores=2)
    assert not differs(sort, list(executable.run(*sort.inputs).values()))
    assert not any("sort" in kernel["op"] for kernel in executable.profile["kernels"])


@pytest.mark.parametrize("below", [None, 5, 16383, 16384, 1 << 22])
def test_keys_that_are_alike_are_sorted_by_the_same_steps(below: int | None) -> None:
    keys = Keys("largest", True, below)
    (tile, *_) = tiles_of(300, keys, load("ascend910"))
    made, alike = (KeySteps(each, tile, 9) for each in (keys, keys.alike))
    for part in ("coming", "sorting"):
        assert getattr(made, part)() == getattr(alike, part)()


@pytest.mark.parametrize(
    ("rows", "columns", "kept", "name"),
    [
        (1024, 1024, 16, GROUPS),
        (8, 128256, 50, GROUPS),
        (32, 320, 16, ROWS),
        (1, 8400, 300, PARTS),
        (4, 1000, 1000, ROWS),
        (32, 257, 3, EXTREMES),
        (8, 1 << 23, 2, EXTREMES),
    ],
)
def test_the_way_that_takes_least(rows: int, columns: int, kept: int, name: str) -> None:
    way = way_of(
        FirstKeys(rows, columns, kept, True), Keys("total", True, columns), load("ascend910")
    )
    assert way is not None and way.name == name


@pytest.mark.parametrize("seed", range(100, 112))
def test_random_sorts(seed: int) -> None:
    sort = random_sort(seed, 300)
    machine = ("ascend910", "ascend310", "ascend310p", "ascend910b")[seed % 4]
    executable = davinci.compile(sort.text, machine=machine, cores=min(1 + seed % 3, 2))
    assert not differs(sort, list(executable.run(*sort.inputs).values()))


@pytest.mark.parametrize("columns", [32, 20])
@pytest.mark.parametrize("form", ["alone", "places", "others"])
def test_rows_left_over_are_sorted_in_smaller_tiles(columns: int, form: str) -> None:
    """Two cores sort 320 rows in two tiles of 64 and one of 32 each, not in three and two; the last
    tile of 313 rows has a few."""
    machine, rng = load("ascend310"), np.random.default_rng(columns)
    found = shares_of(320, columns, 16, Keys("total", True, columns), machine, 2, True)
    assert found is not None
    assert [(share.tile.rows, share.rows) for share in found[0]] == [(64, 256), (32, 64)]
    keys = rng.choice(np.array([np.nan, -0.0, 0.0, 1, 2], "f4"), (313, columns))
    sort = sort_of(keys, 1, TOTAL, True, form, 16, rng)
    executable = davinci.compile(sort.text, machine="ascend310", cores=2)
    assert not differs(sort, list(executable.run(*sort.inputs).values()))


@pytest.mark.parametrize(("below", "keys"), [(None, 16384), (100, 8192), (1 << 20, 8192)])
def test_rows_as_long_as_they_fit(below: int | None, keys: int) -> None:
    order, machine = Keys("largest", False, below), load("ascend910")
    assert tiles_of(keys, order, machine) and not tiles_of(2 * keys, order, machine)


def test_other_comparators_and_longer_rows_are_the_scalar_units() -> None:
    text = """func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %r = "stablehlo.sort"(%x) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %p = stablehlo.abs %a : tensor<f32>
        %q = stablehlo.abs %b : tensor<f32>
        %c = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }) {dimension = 1 : i64, is_stable = true} : (tensor<3x4xf32>) -> tensor<3x4xf32>
      return %r : tensor<3x4xf32> }"""
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    executable = davinci.compile(text)
    (found,) = executable.run(x).values()
    np.testing.assert_array_equal(found, np.take_along_axis(x, np.argsort(abs(x)), 1))
    assert [k["unit"] for k in executable.profile["kernels"]] == ["scalar"]
