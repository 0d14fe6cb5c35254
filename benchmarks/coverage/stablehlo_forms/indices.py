"""Forms of `gather`, `scatter` and dynamic slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from stablehlo_forms import ALL, FEW, INTEGERS, array, reducer, region, simple


def clamped(indices: Any, last: int) -> Any:
    """Indices between 0 and `last`; the interpreter takes large unsigned ones for negative."""
    return np.asarray(np.clip(np.asarray(indices).astype(object), 0, last)).astype(int)


def window(i: Any, j: Any) -> tuple[slice, slice]:
    """The 2 x 3 elements of 7 x 9 that begin at (i, j), moved inside."""
    row, column = int(clamped(i, 5)), int(clamped(j, 6))
    return slice(row, row + 2), slice(column, column + 3)


def updated(x: Any, update: Any, i: Any, j: Any) -> list[Any]:
    result = x.copy()
    result[window(i, j)] = update
    return [result]


def added(x: Any, indices: Any, updates: Any) -> list[Any]:
    """Rows of updates added to those of `x` that are there."""
    result = x.copy()
    for (index,), update in zip(indices.tolist(), updates, strict=True):
        if 0 <= index < len(x):
            result[index] += update
    return [result]


_rows = (
    "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
    "index_vector_dim = 1>"
)
simple(
    "gather",
    "rows",
    ["tensor<7x3xT>", "tensor<5x1xi32>"],
    "tensor<5x3xT>",
    f"{{dimension_numbers = {_rows}, slice_sizes = array<i64: 1, 3>}}",
    types=ALL,
    small=True,
)
for _index in INTEGERS:
    simple(
        "gather",
        f"indices {_index}",
        ["tensor<7x3xf32>", f"tensor<5x1x{_index}>"],
        "tensor<5x3xf32>",
        f"{{dimension_numbers = {_rows}, slice_sizes = array<i64: 1, 3>}}",
        expected=lambda x, i: [x[clamped(i[:, 0], 6)]],
    )
_gathers = {
    "slices": (
        "7x9",
        "4x2",
        "4x2x3",
        "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1",
        (2, 3),
    ),
    "points": (
        "7x9",
        "4x2",
        "4",
        "collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1",
        (1, 1),
    ),
    "index vector first": (
        "7x9",
        "2x4",
        "4x2x3",
        "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 0",
        (2, 3),
    ),
    "index vector implicit": (
        "7x9",
        "4",
        "9x4",
        "offset_dims = [0], collapsed_slice_dims = [0], "
        "start_index_map = [0], index_vector_dim = 1",
        (1, 9),
    ),
    "batching": (
        "2x7x3",
        "2x4x1",
        "2x4x3",
        "offset_dims = [2], collapsed_slice_dims = [1], "
        "operand_batching_dims = [0], start_indices_batching_dims = [0], "
        "start_index_map = [1], index_vector_dim = 2",
        (1, 1, 3),
    ),
    "batching moved": (
        "7x2x3",
        "4x2x1",
        "4x2x3",
        "offset_dims = [2], collapsed_slice_dims = [0], "
        "operand_batching_dims = [1], start_indices_batching_dims = [1], "
        "start_index_map = [0], index_vector_dim = 2",
        (1, 1, 3),
    ),
    "no indices": (
        "7x9",
        "0x1",
        "0x9",
        "offset_dims = [1], collapsed_slice_dims = [0], "
        "start_index_map = [0], index_vector_dim = 1",
        (1, 9),
    ),
}
for _name, (_from, _at, _to, _numbers, _sizes) in _gathers.items():
    simple(
        "gather",
        _name,
        [f"tensor<{_from}xT>", f"tensor<{_at}xi32>"],
        f"tensor<{_to}xT>",
        f"{{dimension_numbers = #stablehlo.gather<{_numbers}>, slice_sizes = {array(*_sizes)}}}",
        types=FEW,
        small=True,
    )
_scatters = {
    "rows": (
        "7x3",
        "5x1",
        "5x3",
        "update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    ),
    "points": (
        "7x9",
        "4x2",
        "4",
        "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = "
        "[1, 0], index_vector_dim = 1",
    ),
    "windows": (
        "7x9",
        "4x2",
        "4x2x3",
        "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
    ),
    "index vector first": (
        "7x9",
        "2x4",
        "2x3x4",
        "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 0",
    ),
    "index vector implicit": (
        "7x3",
        "5",
        "3x5",
        "update_window_dims = [0], inserted_window_dims "
        "= [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    ),
    "batching": (
        "2x7x3",
        "2x4x1",
        "2x4x3",
        "update_window_dims = [2], inserted_window_dims = "
        "[1], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
        "scatter_dims_to_operand_dims = [1], index_vector_dim = 2",
    ),
    "no updates": (
        "7x3",
        "0x1",
        "0x3",
        "update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    ),
}
_second = region(2, ["T"], "stablehlo.return %p1 : tensor<T>")
for _name, (_from, _at, _with, _numbers) in _scatters.items():
    for _body, _text in (("add", reducer("add")), ("set", _second), ("max", reducer("maximum"))):
        # Which of the elements set at one place stays is open, and the interpreter goes through
        # windows that lie before their places element by element.
        _updates = "1x1x4" if (_name, _body) == ("index vector first", "set") else _with
        _kinds = [f"tensor<{_from}xT>", f"tensor<{_at}xi32>", f"tensor<{_updates}xT>"]
        simple(
            "scatter",
            f"{_name} {_body}",
            _kinds,
            _kinds[0],
            f"{_text} {{scatter_dimension_numbers = #stablehlo.scatter<{_numbers}>}}",
            types=ALL if _name == "rows" else FEW,
            small=True,
        )
_both = region(
    4,
    ["T"],
    """%m = stablehlo.add %p0, %p2 : tensor<T>
    %s = stablehlo.maximum %p1, %p3 : tensor<T>
    stablehlo.return %m, %s : tensor<T>, tensor<T>""",
)
simple(
    "scatter",
    "two operands",
    ["tensor<7x3xT>", "tensor<7x3xT>", "tensor<5x1xi64>", "tensor<5x3xT>", "tensor<5x3xT>"],
    "tensor<7x3xT>, tensor<7x3xT>",
    f"{_both} {{scatter_dimension_numbers = #stablehlo.scatter<{_scatters['rows'][3]}>}}",
    types=FEW,
    small=True,
)
for _index in INTEGERS:
    simple(
        "scatter",
        f"indices {_index}",
        ["tensor<7x3xf32>", f"tensor<5x1x{_index}>", "tensor<5x3xf32>"],
        "tensor<7x3xf32>",
        f"{reducer('add', 'f32')} "
        f"{{scatter_dimension_numbers = #stablehlo.scatter<{_scatters['rows'][3]}>}}",
        expected=added,
    )
    simple(
        "dynamic_slice",
        f"indices {_index}",
        ["tensor<7x9xf32>", f"tensor<{_index}>", f"tensor<{_index}>"],
        "tensor<2x3xf32>",
        "{slice_sizes = array<i64: 2, 3>}",
        expected=lambda x, i, j: [x[window(i, j)]],
    )
    simple(
        "dynamic_update_slice",
        f"indices {_index}",
        ["tensor<7x9xf32>", "tensor<2x3xf32>", f"tensor<{_index}>", f"tensor<{_index}>"],
        "tensor<7x9xf32>",
        "",
        expected=updated,
    )
simple(
    "dynamic_slice",
    "",
    ["tensor<7x9xT>", "tensor<i32>", "tensor<i32>"],
    "tensor<2x3xT>",
    "{slice_sizes = array<i64: 2, 3>}",
    types=ALL,
    small=True,
)
simple(
    "dynamic_update_slice",
    "",
    ["tensor<7x9xT>", "tensor<2x3xT>", "tensor<i32>", "tensor<i32>"],
    "tensor<7x9xT>",
    "",
    types=ALL,
    small=True,
)
