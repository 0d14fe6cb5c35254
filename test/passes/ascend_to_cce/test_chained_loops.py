"""Loops of which one takes rows of the other step by step, in one kernel: layers of recurrent
networks against onnxruntime, loops of StableHLO against NumPy, and which loops are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import davinci
from davinci import zoo
from davinci.operators import Tensor
from davinci.passes.ascend.ascend_outline_loops import LoopKernels
from davinci.passes.ascend_to_cce.loops.left_factors import LOADED_AGAIN
from davinci.reference import check
from davinci.schedule.graph import Graph, Node
from davinci.schedule.loops.cut import joined_sum
from fuzz.group_interleavings import wrong_interleavings
from fuzz.recorded_kernels import record
from fuzz.stream_steps import END_POLL, POLL, SCALAR, decode
from fuzz.talking_kernels import talking
from fuzz.talking_mutation import Tally, judge_compiled


@pytest.fixture
def at_any_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has loops be one kernel wherever they can, as cost would have only longer ones."""
    weighed = LoopKernels.cycles

    def cycles(outliner: LoopKernels, loops: Any) -> float:
        return weighed(outliner, loops) / 1000 ** (len(loops) - 1)

    monkeypatch.setattr(LoopKernels, "cycles", cycles)


def loop_kernels(executable: davinci.Executable) -> list[dict[str, Any]]:
    kernels: list[dict[str, Any]] = executable.profile["kernels"]
    return [kernel for kernel in kernels if kernel["name"].startswith("loop_")]


def launches_of_loops(executable: davinci.Executable) -> int:
    return sum(kernel["launches"] for kernel in loop_kernels(executable))


def run(spec: str, **options: Any) -> davinci.Executable:
    """Asserts that a network is right, twice: counters go on from run to run; its executable."""
    model = zoo.build(spec)
    inputs = model.inputs()
    wanted = check.reference_onnx(model.proto, inputs)
    executable = davinci.compile(model.proto, **options)
    executable.poison = True
    for _ in range(2):
        check.require(check.compare(executable.run(inputs), wanted), "mixed")
    return executable


@pytest.mark.parametrize(
    ("spec", "cores", "kernels"),
    [
        ("lstm,layers=2,steps=3,features=16,hidden=32", 32, 1),
        ("lstm,layers=3,steps=2,features=32,hidden=16,batch=17", 32, 1),
        ("lstm,layers=2,steps=5,features=16,hidden=80", 5, 1),  # five blocks on few cores
        ("gru,layers=3,steps=4,features=16,hidden=48,batch=3", 32, 1),
        ("gru,layers=4,steps=3,features=16,hidden=64", 7, 1),
        ("gru,layers=4,steps=3,features=16,hidden=16", 3, 2),  # two and two
        ("lstm,layers=2,steps=3,features=16,hidden=48", 1, 2),  # on one core there is no other
        ("lstm,layers=2,steps=3,features=16,hidden=40", 32, 2),  # no whole blocks
        ("lstm,layers=2,steps=3,features=16,hidden=32,directions=2", 32, 2),  # not by steps
    ],
)
@pytest.mark.usefixtures("at_any_cost")
def test_layers(spec: str, cores: int, kernels: int) -> None:
    assert launches_of_loops(run(spec, cores=cores)) == kernels


def test_by_cost() -> None:
    """Layers in one kernel take less time than one after the other where steps are long enough;
    short ones do not pay cores that meet."""
    executable = run("lstm,layers=2,steps=4")
    (kernel,) = loop_kernels(executable)
    assert kernel["launches"] == 1 and kernel["blocks"] > 2
    assert executable.profile["memory"]["weights_bytes"] > 4 * 4 * 256 * 256 * 2 - 1
    assert kernel["gm_read_bytes"] < 4 * 4 * 256 * 256 * 2 * 1.5  # three matrices, read once
    assert launches_of_loops(run("lstm,layers=2,steps=4,features=16,hidden=16")) == 2


LOOP = """
  %r{i}:3 = stablehlo.while(%i = %zero, %h = %h0, %ys = %none)
      : tensor<i32>, tensor<{b}x{n}xf32>, tensor<{t}x{b}x{n}xf32>
   cond {{
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %at = {at} : tensor<i32>
    %x1 = stablehlo.dynamic_slice {x}, %at, %zero, %zero, sizes = [1, {b}, {n}]
      : (tensor<{t}x{b}x{n}xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x{b}x{n}xf32>
    %x = stablehlo.reshape %x1 : (tensor<1x{b}x{n}xf32>) -> tensor<{b}x{n}xf32>
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<{b}x{n}xf32>, tensor<{n}x{n}xf32>) -> tensor<{b}x{n}xf32>
    %q = stablehlo.dot_general %h, %u, contracting_dims = [1] x [0]
      : (tensor<{b}x{n}xf32>, tensor<{n}x{n}xf32>) -> tensor<{b}x{n}xf32>
    %s = stablehlo.add %p, %q : tensor<{b}x{n}xf32>
    %m = stablehlo.tanh %s : tensor<{b}x{n}xf32>
    %row = stablehlo.reshape %m : (tensor<{b}x{n}xf32>) -> tensor<1x{b}x{n}xf32>
    %zs = stablehlo.dynamic_update_slice %ys, %row, %at, %zero, %zero : (tensor<{t}x{b}x{n}xf32>,
        tensor<1x{b}x{n}xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<{t}x{b}x{n}xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %m, %zs : tensor<i32>, tensor<{b}x{n}xf32>, tensor<{t}x{b}x{n}xf32>
  }}
"""

MAIN = """
func.func @main(%xs: tensor<{t}x{b}x{n}xf32>, %w: tensor<{n}x{n}xf32>, %u: tensor<{n}x{n}xf32>,
    %h0: tensor<{b}x{n}xf32>) -> ({types}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<{t}> : tensor<i32>
  %last = stablehlo.constant dense<{last}> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<{t}x{b}x{n}xf32>
{loops}
  return {results} : {types}
}}
"""

FORWARDS = "stablehlo.add %i, %zero"
BACKWARDS = "stablehlo.subtract %last, %i"


def stacked(layers: int, t: int, b: int, n: int, orders: str, between: str = "") -> str:
    """The same layer several times, forwards (f) or backwards (b); all rows and states are results.

    Args:
        between: what `{y}` is made of `{x}` before the next layer reads it.
    """
    loops, results, types, x = "", [], [], "%xs"
    for i, order in zip(range(layers), orders, strict=True):
        at = FORWARDS if order == "f" else BACKWARDS
        if i and between:
            loops += between.format(x=x, y=f"%y{i}", t=t, b=b, n=n)
            x = f"%y{i}"
        loops += LOOP.format(i=i, at=at, x=x, t=t, b=b, n=n)
        x = f"%r{i}#2"
        results += [f"%r{i}#1", x]
        types += [f"tensor<{b}x{n}xf32>", f"tensor<{t}x{b}x{n}xf32>"]
    given = {"loops": loops, "results": ", ".join(results), "types": ", ".join(types)}
    return MAIN.format(t=t, b=b, n=n, last=t - 1, **given)


def computed(
    given: list[npt.NDArray[Any]], layers: int, orders: str, between: Any
) -> list[npt.NDArray[Any]]:
    xs, w, u, h0 = given
    found = []
    for layer, order in zip(range(layers), orders, strict=True):
        xs = between(xs) if layer else xs
        h, ys = h0, np.zeros_like(xs)
        for t in range(len(xs)) if order == "f" else reversed(range(len(xs))):
            h = np.tanh(xs[t] @ w + h @ u)
            ys[t] = h
        found += [h, ys]
        xs = ys
    return found


TWICE = """
  {y}d = stablehlo.add {x}, {x} : tensor<{t}x{b}x{n}xf32>
  {y} = stablehlo.add {y}d, %xs : tensor<{t}x{b}x{n}xf32>
"""
SUMMED = """
  {y}r = stablehlo.reverse {x}, dims = [0] : tensor<{t}x{b}x{n}xf32>
  {y} = stablehlo.add {x}, {y}r : tensor<{t}x{b}x{n}xf32>
"""


@pytest.mark.parametrize(
    ("shape", "orders", "between", "cores", "kernels"),
    [
        ((4, 1, 32), "ff", "", 32, 1),
        ((5, 3, 16), "bbb", "", 32, 1),
        ((3, 18, 48), "ff", "", 4, 1),
        ((4, 2, 16), "fb", "", 32, 2),
        ((4, 2, 16), "ffbb", "", 32, 2),
        ((4, 2, 16), "ff", SUMMED, 32, 2),
        ((4, 2, 16), "ff", TWICE, 32, 2),  # not a product of the row itself
    ],
)
@pytest.mark.usefixtures("at_any_cost")
def test_loops_of_stablehlo(
    shape: tuple[int, int, int], orders: str, between: str, cores: int, kernels: int
) -> None:
    t, b, n = shape
    rng = np.random.default_rng(t + b + n)
    given = [
        (rng.standard_normal(size) / scale).astype(np.float32)
        for size, scale in (((t, b, n), 1), ((n, n), n**0.5), ((n, n), n**0.5), ((b, n), 1))
    ]
    layers = len(orders)
    text = stacked(layers, t, b, n, orders, between)
    executable = davinci.compile(text, cores=cores)
    found = list(executable.run({f"arg{i}": x for i, x in enumerate(given)}).values())
    assert launches_of_loops(executable) == kernels
    before = {"": lambda x: x, TWICE: lambda x: 2 * x + given[0], SUMMED: lambda x: x + x[::-1]}
    for value, wanted in zip(found, computed(given, layers, orders, before[between]), strict=True):
        np.testing.assert_allclose(value, wanted, atol=4e-3)


def sums(*pairs: tuple[int, int]) -> Graph:
    """Sums of pairs of the values 0 to 3 and of sums before."""
    graph = Graph()
    for _ in range(4 + len(pairs)):
        graph.add(Tensor((1, 16), "f32"))
    graph.nodes = [Node("add", pair, 4 + i) for i, pair in enumerate(pairs)]
    graph.inputs, graph.outputs = [0, 1, 2, 3], [3 + len(pairs)]
    return graph


def test_products_that_are_summed_up_are_one_sum() -> None:
    """Behind other summands too, but not where a part of the sum is needed by itself."""
    graph = sums((0, 2), (4, 1))
    assert joined_sum(graph, graph.nodes, 0, [1]) == (1, [Node("add", (2, 1), 5)])
    graph = sums((0, 1), (4, 2))
    assert joined_sum(graph, graph.nodes, 0, [1]) == (1, [Node("add", (1, 2), 5)])
    graph = sums((0, 2), (4, 1), (5, 4))
    assert joined_sum(graph, graph.nodes, 0, [1]) is None
    graph = sums((0, 2), (1, 3))
    assert joined_sum(graph, graph.nodes, 0, [1]) is None


@pytest.mark.usefixtures("at_any_cost")
def test_the_last_core_of_a_loop_looks_longer_in_its_steps() -> None:
    """Five blocks of lanes on two cores and on three: the last core of both computes some of
    another's lanes, and loads counters again in each look of a step, but not before or behind."""
    model = zoo.build("lstm,layers=2,steps=2,features=16,hidden=80")
    (kernel,) = (each for each in record(model, 5) if each.name.startswith("loop_"))
    again = []
    for block, records in enumerate(kernel.streams):
        steps = decode(records, block)
        polls = [i for i, step in enumerate(steps) if step.name == POLL]
        ends = [i for i, step in enumerate(steps) if step.name == END_POLL]
        loads = [
            sum(step.values["loads"] for step in steps[first:last] if step.name == SCALAR)
            - steps[first].values["looks"]
            for first, last in zip(polls, ends, strict=True)
        ]
        again.append((min(loads), max(loads)))
    assert sorted(again) == [(0, 0)] * 3 + [(0, LOADED_AGAIN)] * 2


@pytest.mark.usefixtures("at_any_cost")
def test_order_of_cores_is_proven_and_needed() -> None:
    """The static check accepts the kernel and refuses the same flags left out as the dynamic one;
    any interleaving of the cores gives the same bytes."""
    model = zoo.build("lstm,layers=2,steps=2,features=16,hidden=16")
    (kernel,) = talking(model, 2)
    tally = Tally()
    judge_compiled(kernel, tally, every=20)
    assert not tally.wrong
    assert tally.counts["unchanged", "safe, accepted"] == 1
    assert tally.counts["flag", "unsafe, refused"] > 0
    (recorded,) = [k for k in record(model, 2) if k.name == kernel.name]
    assert not list(wrong_interleavings(recorded, 10, 1))
