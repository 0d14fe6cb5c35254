"""Records of operators: NumPy values, windows, kernels and StableHLO's interpreter say the same."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from davinci.element_types import DTYPES
from davinci.operators import OPERATORS, Operator, VectorProgram
from davinci.operators.comparison import PREDICATES
from davinci.operators.core import NONE, SCALAR
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.vector_program import DTYPE_OF
from davinci.operators.windows import PARALLEL, Window, WindowDim, Windows
from operator_cases import BYTE_PRODUCTS, CASES, ELEMENTWISE, Array, Case, resized, tensor_of
from operator_forms import by_kernel, by_stablehlo, defined, stablehlo_text
from support import run_text

SIZES = (0, 1, 17, 127, 70001)
"""Nothing, around a block and a repeat, and a prime that UB does not hold in any type."""

POINTS = 40
"""Points of the axes that windows are tried at."""

SAMPLE = random.Random(0)


def of(case: Case) -> Operator:
    return OPERATORS[case.name]


def values(case: Case, *inputs: Array) -> Array:
    return of(case).values(inputs or case.inputs, case.result, case.attributes)


def assert_same(case: Case, found: Array, wanted: Array, where: Any = True) -> None:
    """The same bits, NaN and padding apart, or within the errors of a series."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    where = np.broadcast_to(where, found.shape)
    if case.rtol:
        compared = (x[where].astype(float) for x in (found, wanted))
        np.testing.assert_allclose(*compared, case.rtol, case.atol)
        return
    np.testing.assert_array_equal(found[where], wanted[where])
    if found.dtype.kind == "f":
        numbers = ~np.isnan(wanted) & where
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_calls_are_legal_and_have_a_unit(case: Case) -> None:
    call = case.call
    if case.name == "constant":
        call = replace(call, typed={"value": case.result})
    if case.name == "full":
        call = replace(call, typed={"value": replace(case.result, shape=())})
    of(case).check(call)
    work = of(case).work(call)
    assert work.write_bytes <= sum(x.size_bytes for x in call.outputs)
    assert (work.macs > 0) == (of(case).unit == "cube")


def has_kernel(case: Case) -> bool:
    """Not constants and views; a relayout of `@main` is one of rows, kernels are on tensors."""
    no_kernel = (*(n for n, r in OPERATORS.items() if r.unit == NONE), "relayout")
    # Products of transposed operands are made together with their layouts.
    turned = any(name.startswith("transpose_") for name in case.attributes)
    if case.name in no_kernel or turned or any(case is x for x in BYTE_PRODUCTS):
        return False
    return of(case).unit_of(case.call) != SCALAR


@cache
def kernel_result(number: int, machine: str = "ascend910") -> Array:
    """The result of a case's kernel on the simulated machine, computed once for several tests."""
    return by_kernel(CASES[number], machine)


KERNELS = [i for i, case in enumerate(CASES) if has_kernel(case)]


@pytest.mark.parametrize("number", KERNELS, ids=lambda i: str(CASES[i]))
def test_kernel(number: int) -> None:
    case = CASES[number]
    assert_same(case, values(case), kernel_result(number))


ON_VECTOR_CORES = {
    CASES[i].name: i for i in reversed(KERNELS) if of(CASES[i]).unit_of(CASES[i].call) != "cube"
}
"""One case of each operator that needs no cube."""


@pytest.mark.parametrize("name", ON_VECTOR_CORES)
def test_kernel_on_the_vector_cores_of_a_split_machine(name: str) -> None:
    number = ON_VECTOR_CORES[name]
    assert_same(CASES[number], values(CASES[number]), kernel_result(number, "ascend910b"))


PROGRAMS = [case for case in CASES if stablehlo_text(case)]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_stablehlo(case: Case) -> None:
    found, wanted = values(case), by_stablehlo(case)
    assert_same(case, found, wanted, defined(case, found, wanted))


def test_what_stablehlo_has_not() -> None:
    without = {case.name for case in CASES} - {case.name for case in PROGRAMS}
    assert without == {
        *("cube_scale", "copy", "view", "relayout", "constant", "sort", "sort_pairs", "scale_sums"),
        *("gather_blocks", "gather_elements", "update_blocks", "combine_blocks", "band"),
    }


FIRST = {case.name: case for case in reversed(ELEMENTWISE)}
"""One case of each elementwise operator."""


@pytest.mark.parametrize("name", FIRST)
def test_tile_rule_on_sizes_that_hurt(name: str) -> None:
    """One program with a kernel of each size."""
    cases = [resized(FIRST[name], size) for size in SIZES]
    arguments, lines, results = [], [], []
    for case in cases:
        kinds = [f"tensor<{tensor_of(x)}>" for x in case.inputs]
        names = [f"%{len(arguments) + i}" for i in range(len(kinds))]
        attributes = ", ".join(
            f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v} : i64"
            for k, v in case.attributes.items()
        )
        lines.append(
            f'%r{len(lines)} = "ascend.{name}"({", ".join(names)}) {{{attributes}}} : '
            f"({', '.join(kinds)}) -> tensor<{case.result}>"
        )
        arguments += [f"{n}: {kind}" for n, kind in zip(names, kinds, strict=True)]
        results.append(f"tensor<{case.result}>")
    returned = ", ".join(f"%r{i}" for i in range(len(cases)))
    body = "\n".join(lines)
    text = (
        f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n{body}\n"
        f"return {returned} : {', '.join(results)}\n}}"
    )
    found = run_text(text, *(x for case in cases for x in case.inputs), fusion="none")
    for case, result in zip(cases, found, strict=True):
        assert_same(case, values(case), result)


def test_booleans_of_bytes_are_0_and_1() -> None:
    """Not seen in results, which hold any byte but 0 for true."""
    text = """func.func @main(%0: tensor<4xi8>) -> tensor<4xf32> {
      %1 = "ascend.cast"(%0) : (tensor<4xi8>) -> tensor<4xi1>
      %2 = "ascend.cast"(%1) : (tensor<4xi1>) -> tensor<4xf32>
      return %2 : tensor<4xf32> }"""
    (found,) = run_text(text, np.array([0, 5, -3, 1], np.int8))
    np.testing.assert_array_equal(found, [0, 1, 1, 1])


RESULT_ONLY = {
    "half_part": "f16",
    "from_bfloat": "f32",
    "to_bfloat": "i16",
    "double_from_single": "i64",
    "double_to_single": "f32",
    "double_to_half": "f16",
}
"""The type that only the result has, of operators whose operand has one type."""


@pytest.mark.parametrize("name", FIRST)
def test_tile_rule_takes_every_type_and_number(name: str) -> None:
    """Each type that the record names; and numbers for all operands but one."""
    record, attributes = OPERATORS[name], FIRST[name].attributes
    for kind in record.types:
        count = len(record.operands)
        for value in range(count):
            program = VectorProgram()
            operands: list[Any] = [1] * count
            condition = name == "select" and value == 0
            operands[value] = program.input("s8" if condition else DTYPE_OF[kind])
            if kind == RESULT_ONLY.get(name):
                continue
            fixed = name in RESULT_ONLY or name == "compare"
            element = FIRST[name].result.element if fixed else kind
            result = record.tile(program, operands, attributes, element)
            assert result.dtype == DTYPE_OF[element]


def parallel_points(windows: Windows) -> list[tuple[int, ...]]:
    """Points of the axes of the result, with 0 for the others: all, or a sample."""
    ranges = [range(axis.size if axis.kind == PARALLEL else 1) for axis in windows.axes]
    count = int(np.prod([len(r) for r in ranges], dtype=np.int64))
    if not count or count <= POINTS:
        return list(itertools.product(*ranges))
    return [tuple(SAMPLE.choice(r) for r in ranges) for _ in range(POINTS)]


def reached(dim: WindowDim, point: tuple[int, ...], windows: Windows, size: int) -> list[int]:
    """Positions of a dimension at a point, over all indices of reduced axes, inside the array."""
    axes, at = set(), dim
    while True:
        if at.axis is not None and windows.axes[at.axis].kind != PARALLEL:
            axes.add(at.axis)
        if at.inner is None:
            break
        at = at.inner
    ranges = [range(axis.size) if i in axes else (point[i],) for i, axis in enumerate(windows.axes)]
    found = {p for place in itertools.product(*ranges) for p in dim.positions(place)}
    return sorted(p for p in found if 0 <= p < size)


def region(
    window: Window, point: tuple[int, ...], windows: Windows, shape: tuple[int, ...]
) -> tuple[Array, ...] | None:
    """What of an array of `shape` belongs to a point, as indices for it; None: all."""
    if window is None:
        return None
    assert len(window) == len(shape)
    places = [reached(dim, point, windows, n) for dim, n in zip(window, shape, strict=True)]
    return np.ix_(*places) if places else ()


def junk(array: Array) -> Array:
    """Other values than those of the array, which no result may depend on."""
    if array.dtype.kind == "f":
        return np.full_like(array, np.nan)
    if array.dtype == np.bool_:
        return ~array
    return np.roll(array, 1).ravel()[::-1].reshape(array.shape) ^ np.array(1, array.dtype)


def same(a: Array, b: Array) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_read_outside_its_window(case: Case) -> None:
    windows, wanted = of(case).windows(case.call), values(case)
    for point in parallel_points(windows):
        place = region(windows.result, point, windows, case.result.shape)
        assert place is not None
        given = []
        for array, window in zip(case.inputs, windows.operands, strict=True):
            inside, other = region(window, point, windows, array.shape), junk(array)
            if inside is None:
                other = array
            else:
                other[inside] = array[inside]
            given.append(other)
        assert same(values(case, *given)[place], wanted[place]), point


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_element_of_the_result_belongs_to_one_point(case: Case) -> None:
    windows = of(case).windows(case.call)
    if case.result.count > 20000:
        return
    count = np.zeros(case.result.shape, np.int64)
    ranges = [range(axis.size if axis.kind == PARALLEL else 1) for axis in windows.axes]
    for point in itertools.product(*ranges):
        place = region(windows.result, point, windows, case.result.shape)
        assert place is not None
        count[place] += 1
    assert (count == 1).all()


OPEN = {"view", "gather", "gather_blocks", "update_blocks", "combine_blocks", "sort", "sort_pairs"}
OPEN |= {"band", "gather_elements"}
"""Operators whose windows hold more than is read, because that depends on data, bytes or rows."""

CHANGING = ("reduce", "dequantize", "scale_sums", "reinterpret")
"""Operators besides the elementwise ones whose results are other numbers than their operands."""

NO_COMMON_FACTORS = (20, 51)
"""The shape of which a reshape of 3x20x17 may take any element."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_windows_are_as_small_as_they_can_be(case: Case) -> None:
    """What only moves data takes each element from the first operand that has it."""
    windows = of(case).windows(case.call)
    strided = any(case.attributes.get("interior", ()))
    computes = of(case).elementwise or case.name in (*CHANGING, *COMBINING)
    opaque = case.name in OPEN or case.result.shape == NO_COMMON_FACTORS
    if opaque or strided or computes:
        return
    wanted = values(case)
    for point in parallel_points(windows):
        place = region(windows.result, point, windows, case.result.shape)
        assert place is not None
        if not wanted[place].size:
            continue
        found: list[Array] = []
        for array, window in zip(case.inputs, windows.operands, strict=True):
            inside = region(window, point, windows, array.shape)
            assert inside is not None
            found += [array[inside]] if array[inside].size else []
        if found:
            assert found[0].size == 1
            assert same(found[0].ravel(), wanted[place].ravel())


COMBINING = ("matmul", "batch_matmul", "conv", "pool")


@pytest.mark.parametrize(
    "case", [c for c in CASES if of(c).elementwise or c.name == "reduce"], ids=str
)
def test_each_operand_is_read_where_its_window_is(case: Case) -> None:
    """Somewhere in the window of some point, another value changes the result."""
    windows, wanted = of(case).windows(case.call), values(case)
    for number, array in enumerate(case.inputs):
        changed = False
        for point in parallel_points(windows):
            inside = region(windows.operands[number], point, windows, array.shape)
            place = region(windows.result, point, windows, case.result.shape)
            assert inside is not None and place is not None
            for value in (3, -3, 0):
                other = array.copy()
                other[inside] = not array[inside].any() if array.dtype == np.bool_ else value
                given = [other if i == number else x for i, x in enumerate(case.inputs)]
                changed |= not same(values(case, *given)[place], wanted[place])
        assert changed or not wanted.size


def broken(values: Callable[..., Any]) -> Callable[..., Any]:
    """Values with one of them wrong."""

    def wrong(*arguments: Any, **options: Any) -> Any:
        result = np.array(values(*arguments, **options))
        at = np.unravel_index(np.argmax(np.isfinite(result)), result.shape)
        result[at] = not result[at] if result.dtype == np.bool_ else -2 * result[at] - 1
        return result

    return wrong


TABLES: dict[str, dict[str, Any]] = {
    "": {CASES[i].name: OPERATORS[CASES[i].name] for i in KERNELS},
    "predicate": PREDICATES,
    "kind": REDUCTIONS,
}
"""What computes values, by the attribute that chooses in it; the operator does in the first."""

ENTRIES = [(attribute, key) for attribute, table in TABLES.items() for key in table]


@pytest.mark.parametrize(("attribute", "key"), ENTRIES)
def test_wrong_values_are_noticed(
    attribute: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry of each table has a case that fails without it: a new one needs data."""
    numbers = [
        i
        for i in KERNELS
        if (CASES[i].attributes.get(attribute) if attribute else CASES[i].name) == key
    ]
    table = TABLES[attribute] if attribute else OPERATORS
    found = table[key]
    if attribute == "kind":
        worse = replace(found, combine=SimpleNamespace(reduce=broken(found.combine.reduce)))
    else:
        worse = broken(found) if attribute else replace(found, formula=broken(found.formula))
    monkeypatch.setitem(table, key, worse)
    with pytest.raises(AssertionError):
        for number in numbers:
            case = CASES[number]
            assert_same(case, values(case), kernel_result(number))


def test_every_operator_has_a_case() -> None:
    assert {case.name for case in CASES} == set(OPERATORS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_have_the_type_of_the_result(case: Case) -> None:
    found = values(case)
    assert found.shape == case.result.shape
    assert found.dtype == DTYPES[case.result.element]
