"""Kernels are made from operators' windows, or checked against them: wrong ones are noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from davinci import compiler, frontends
from davinci.mlir import make_context
from davinci.operators import OPERATORS, Call
from davinci.operators.core import SCALAR
from davinci.operators.tensors import Tensor
from davinci.operators.windows import Window, WindowAxis, WindowDim, Windows
from davinci.passes.pipeline import pipelines
from davinci.schedule.graph import Graph, Node, Operand, Scalar
from davinci.schedule.node_windows import WrongWindows, windows_of
from davinci.schedule.window_checks import check_windows
from operator_cases import CASES, tensor_of
from operator_forms import ascend_text

NO_KERNELS = {"band", "constant", "full", "iota", "reinterpret", "view"}
"""What no kernel computes alone: data, which is folded or is a number, another view of a buffer,
and what is a selection outside of attention."""

ONLY_WITH_OTHERS = {"dequantize", "scale_sums", "relayout", "reshape"}
"""What has a kernel only together with other operators, whose graph is asked here."""

FIRST = {
    case.name: case
    for case in reversed(CASES)
    if case.result.count > 1
    and case.name not in NO_KERNELS
    and OPERATORS[case.name].unit_of(case.call) != SCALAR
}
"""A case of each operator."""


def moved(windows: Windows) -> Windows:
    """Every operand is read one place further."""

    def further(window: Window) -> Window:
        return window and tuple(replace(dim, offset=dim.offset + 1) for dim in window)

    return replace(windows, operands=tuple(map(further, windows.operands)))


def longer(windows: Windows) -> Windows:
    """There is one point more along each axis."""
    axes = (WindowAxis(axis.size + 1, axis.kind) for axis in windows.axes)
    return replace(windows, axes=tuple(axes))


def exchanged(windows: Windows) -> Windows:
    """The result lies on other axes."""
    return replace(windows, result=(*windows.result[:-1], WindowDim(None)))


def lower(name: str) -> None:
    """A kernel of the operator, down to cce."""
    if name in ONLY_WITH_OTHERS:
        case = FIRST[name]
        values = [*map(tensor_of, case.inputs), case.result]
        *operands, result = range(len(values))
        node = Node(name, tuple(operands), result, case.attributes)
        check_windows(Graph(values, [node], operands, [result]))
        return
    text = ascend_text(FIRST[name])
    module = frontends.load(text, make_context(), None)
    stages = pipelines.STAGES[: 1 + pipelines.STAGES.index("ascend-to-cce")]
    compiler.lower(module, pipelines.Options(cores=1), stages=stages)


def replaced(name: str, wrong: Callable[[Windows], Windows], patch: pytest.MonkeyPatch) -> None:
    record = OPERATORS[name]

    def windows(call: Call) -> Windows:
        return wrong(record.windows(call))

    patch.setitem(OPERATORS, name, replace(record, windows=windows))


def test_every_operator_has_a_case() -> None:
    """All others are computed by the scalar unit, whose kernels come from StableHLO."""
    others = OPERATORS.keys() - FIRST.keys() - NO_KERNELS
    calls = {case.name: case.call for case in CASES}
    assert all(OPERATORS[name].unit_of(calls[name]) == SCALAR for name in others)


@pytest.mark.parametrize("wrong", [moved, longer, exchanged])
@pytest.mark.parametrize("name", FIRST)
def test_wrong_windows_are_noticed(
    name: str, wrong: Callable[[Windows], Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(name, wrong, monkeypatch)
    with pytest.raises(WrongWindows, match=name):
        lower(name)


@pytest.mark.parametrize("name", ["add", "matmul", "transpose", "sort", "pool", "reshape"])
def test_right_windows_are_taken(name: str) -> None:
    lower(name)


@pytest.mark.parametrize("number", [0, 1])
def test_windows_of_a_number_that_is_joined(number: int) -> None:
    """It has what the result has beside the other operand."""
    values = [Tensor((4, 6), "f32"), Tensor((4, 9), "f32")]
    operands: list[Operand] = [0, 0]
    operands[number] = Scalar(2.5)
    node = Node("concat", tuple(operands), 1, {"dim": 1})
    windows = windows_of(node, Graph(values, [node], [0], [1]))
    starts = [-window[1].offset for window in windows.operands if window]
    assert starts == [0, 3 if number == 0 else 6]
    check_windows(Graph(values, [node], [0], [1]))
