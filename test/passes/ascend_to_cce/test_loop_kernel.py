"""Loops that stay on a core: recurrent layers against onnxruntime, loops of StableHLO against its
interpreter, on shapes that hurt."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import davinci
from davinci import zoo
from davinci.passes.ascend_to_cce.loops.turned_results import LaneRun, runs_of
from davinci.reference import check
from onnx_support import agree
from recurrent_support import layer


@pytest.fixture(params=["ascend910", "ascend910b"])
def machine(request: pytest.FixtureRequest) -> str:
    """One whose cores have a cube and a vector unit, and one where these are apart."""
    return str(request.param)


def loops(executable: davinci.Executable) -> int:
    """Launches of kernels of loops; fails unless there are any."""
    kernels = [row["kernel"] for row in executable.profile["launches_list"]]
    assert any(name.startswith("loop_") for name in kernels), kernels
    return len(kernels)


def on_a_core(model: onnx.ModelProto, inputs: dict[str, Any], **options: Any) -> int:
    """Asserts that a layer is right and its loop a kernel; how many launches there are."""
    executable = davinci.compile(model, **options)
    kept = set(executable.input_names)
    found = executable.run({name: x for name, x in inputs.items() if name in kept})
    check.require(check.compare(found, check.reference_onnx(model, inputs)), "mixed")
    return loops(executable)


@pytest.mark.parametrize(
    ("kind", "steps", "batch", "hidden", "cores"),
    [
        ("LSTM", 2, 1, 16, 1),
        ("GRU", 2, 1, 16, 1),
        ("LSTM", 3, 3, 15, 2),
        ("RNN", 7, 3, 15, 2),
        ("GRU", 2, 17, 17, 4),
        ("RNN", 2, 17, 17, 4),
        ("LSTM", 4, 1, 100, 1),
        ("GRU", 4, 1, 100, 1),
        ("RNN", 2, 3, 5, 24),
        ("LSTM", 7, 17, 32, 1),
        ("GRU", 7, 17, 32, 1),
        ("LSTM", 3, 35, 24, 2),
        ("RNN", 3, 35, 24, 2),
    ],
)
def test_layer(kind: str, steps: int, batch: int, hidden: int, cores: int, machine: str) -> None:
    model, inputs = layer(kind, steps, batch, hidden)
    assert on_a_core(model, inputs, cores=cores, machine=machine) <= 3


@pytest.mark.parametrize(
    ("kind", "lengths"), [("LSTM", None), ("GRU", [4, 2, 3]), ("RNN", [4, 2, 3])]
)
def test_both_directions_with_states(kind: str, lengths: Any, machine: str) -> None:
    given = None if lengths is None else np.array(lengths, np.int32)
    model, inputs = layer(kind, 4, 3, 17, directions=2, states=True, lengths=given)
    on_a_core(model, inputs, cores=2, machine=machine)


def test_backwards_over_ragged_rows(machine: str) -> None:
    """Rows end inside blocks, and the next one written lies in front of them."""
    model, inputs = layer("LSTM", 6, 5, 9, direction="reverse", states=True)
    on_a_core(model, inputs, cores=2, machine=machine)


def test_directions_share_a_launch(machine: str) -> None:
    """Of as many cores as both take, or half of those that there are; on one core each has its
    own."""
    for cores, count in ((6, 1), (5, 1), (1, 2)):
        model, inputs = layer("LSTM", 3, 3, 16, directions=2)
        executable = davinci.compile(model, cores=cores, machine=machine)
        found = executable.run(inputs)
        check.require(check.compare(found, check.reference_onnx(model, inputs)), "mixed")
        launches = [row["kernel"] for row in executable.profile["launches_list"]]
        assert sum(name.startswith("loop_") for name in launches) == count


def test_a_product_behind_another(machine: str) -> None:
    model, inputs = layer("GRU", 4, 3, 33, linear_before_reset=1)
    on_a_core(model, inputs, cores=2, machine=machine)


@pytest.mark.parametrize(
    ("kind", "batch", "size", "more", "launches"),
    [
        ("LSTM", 1, 256, {}, 1),  # weights larger than L0B
        ("GRU", 18, 32, {"direction": "reverse"}, 1),
        ("LSTM", 3, 20, {}, 2),  # no whole blocks
    ],
)
def test_product_with_the_inputs(
    kind: str, batch: int, size: int, more: dict[str, Any], launches: int
) -> None:
    """It is one of each step, or a launch in front of the loop."""
    hidden = 256 if size == 256 else 32
    model, inputs = layer(kind, 3, batch, hidden, size=size, **more)
    assert on_a_core(model, inputs) == launches


def test_what_does_not_fit_is_repeated() -> None:
    """Weights of 2 MB, and states of one number."""
    for hidden, batch in ((512, 1), (1, 3)):
        model, inputs = layer("LSTM", 2, batch, hidden)
        agree(model, inputs, check.reference_onnx(model, inputs))


LOOP = """
func.func @main(%h0: tensor<{b}x{n}xf32>, %r: tensor<{n}x{n}xf32>, %s: tensor<{n}xf32>)
    -> (tensor<{b}x{n}xf32>, tensor<4x{b}xf32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<4> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %few = stablehlo.constant dense<0.01> : tensor<{b}x1xf32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x{b}xf32>
  %o:3 = stablehlo.while(%i = %zero, %h = %h0, %ys = %empty)
      : tensor<i32>, tensor<{b}x{n}xf32>, tensor<4x{b}xf32>
   cond {{
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %p = stablehlo.dot_general %h, %r, contracting_dims = [1] x [0]
      : (tensor<{b}x{n}xf32>, tensor<{n}x{n}xf32>) -> tensor<{b}x{n}xf32>
    %q = stablehlo.multiply %p, %p : tensor<{b}x{n}xf32>
    %t = stablehlo.reduce(%q init: %none) applies stablehlo.add across dimensions = [1]
      : (tensor<{b}x{n}xf32>, tensor<f32>) -> tensor<{b}xf32>
    %u = stablehlo.reshape %t : (tensor<{b}xf32>) -> tensor<{b}x1xf32>
    %v = stablehlo.add %u, %few : tensor<{b}x1xf32>
    %w = stablehlo.rsqrt %v : tensor<{b}x1xf32>
    %x = stablehlo.broadcast_in_dim %w, dims = [0, 1]
      : (tensor<{b}x1xf32>) -> tensor<{b}x{n}xf32>
    %y = stablehlo.multiply %p, %x : tensor<{b}x{n}xf32>
    %g = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<{n}xf32>) -> tensor<{b}x{n}xf32>
    %n = stablehlo.add %y, %g : tensor<{b}x{n}xf32>
    %row = stablehlo.reshape %t : (tensor<{b}xf32>) -> tensor<1x{b}xf32>
    %zs = stablehlo.dynamic_update_slice %ys, %row, %i, %zero
      : (tensor<4x{b}xf32>, tensor<1x{b}xf32>, tensor<i32>, tensor<i32>) -> tensor<4x{b}xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %n, %zs : tensor<i32>, tensor<{b}x{n}xf32>, tensor<4x{b}xf32>
  }}
  return %o#1, %o#2 : tensor<{b}x{n}xf32>, tensor<4x{b}xf32>
}}
"""


@pytest.mark.parametrize(("batch", "hidden", "cores"), [(3, 32, 2), (9, 70, 1), (16, 48, 4)])
def test_statistics_of_rows(batch: int, hidden: int, cores: int, machine: str) -> None:
    """A power iteration, whose steps give the squares of rows."""
    rng = np.random.default_rng(batch)
    h, r = (rng.standard_normal(n, np.float32) / 4 for n in ((batch, hidden), (hidden, hidden)))
    s = rng.standard_normal(hidden, np.float32)
    text = LOOP.format(b=batch, n=hidden)
    executable = davinci.compile(text, cores=cores, machine=machine)
    found = list(executable.run({"arg0": h, "arg1": r, "arg2": s}).values())
    loops(executable)
    squares = []
    for _ in range(4):
        p = h @ r
        squares.append((p * p).sum(1))
        h = p / np.sqrt(squares[-1][:, None] + 0.01) + s
    np.testing.assert_allclose(found[0], h, atol=2e-2)
    np.testing.assert_allclose(found[1], np.stack(squares), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_layers_of_the_zoo(name: str, machine: str) -> None:
    """One loop reads what the other gave, turned round."""
    model = zoo.build(f"{name},steps=4,batch=2,features=9,hidden=20,layers=2,directions=2")
    on_a_core(model.proto, model.inputs(), cores=2, machine=machine)


SCAN = """
func.func @main(%xs: tensor<6x3x24xf32>, %w: tensor<24x64xf32>, %u: tensor<16x64xf32>, %b:
    tensor<64xf32>, %k: tensor<40x16xf32>) -> (tensor<3x16xf32>, tensor<6x3x16xf32>,
    tensor<3x16xf32>) {
  %zf = stablehlo.constant dense<0.0> : tensor<f32>
  %h0 = stablehlo.broadcast_in_dim %zf, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
  %ys0 = stablehlo.broadcast_in_dim %zf, dims = [] : (tensor<f32>) -> tensor<6x3x16xf32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %r:6 = stablehlo.while(%a = %xs, %i = %c0, %h = %h0, %c = %h0, %g = %h0, %ys = %ys0) :
      tensor<6x3x24xf32>, tensor<i32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>,
      tensor<6x3x16xf32>
   cond {
    %n = stablehlo.constant dense<6> : tensor<i32>
    %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<6> : tensor<i32>
    %neg = stablehlo.compare LT, %i, %z, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %plus = stablehlo.add %i, %n : tensor<i32>
    %at = stablehlo.select %neg, %plus, %i : tensor<i1>, tensor<i32>
    %x1 = stablehlo.dynamic_slice %a, %at, %z, %z, sizes = [1, 3, 24] : (tensor<6x3x24xf32>,
        tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x24xf32>
    %x = stablehlo.reshape %x1 : (tensor<1x3x24xf32>) -> tensor<3x24xf32>
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x24xf32>,
        tensor<24x64xf32>) -> tensor<3x64xf32>
    %q = stablehlo.dot_general %h, %u, contracting_dims = [1] x [0] : (tensor<3x16xf32>,
        tensor<16x64xf32>) -> tensor<3x64xf32>
    %s = stablehlo.add %p, %q : tensor<3x64xf32>
    %b1 = stablehlo.reshape %b : (tensor<64xf32>) -> tensor<1x64xf32>
    %b2 = stablehlo.broadcast_in_dim %b1, dims = [0, 1] : (tensor<1x64xf32>) -> tensor<3x64xf32>
    %v = stablehlo.add %s, %b2 : tensor<3x64xf32>
    %i0 = stablehlo.slice %v [0:3, 0:16] : (tensor<3x64xf32>) -> tensor<3x16xf32>
    %f0 = stablehlo.slice %v [0:3, 16:32] : (tensor<3x64xf32>) -> tensor<3x16xf32>
    %g0 = stablehlo.slice %v [0:3, 32:48] : (tensor<3x64xf32>) -> tensor<3x16xf32>
    %o0 = stablehlo.slice %v [0:3, 48:64] : (tensor<3x64xf32>) -> tensor<3x16xf32>
    %i1 = stablehlo.logistic %i0 : tensor<3x16xf32>
    %f1 = stablehlo.logistic %f0 : tensor<3x16xf32>
    %g1 = stablehlo.tanh %g0 : tensor<3x16xf32>
    %o1 = stablehlo.logistic %o0 : tensor<3x16xf32>
    %fc = stablehlo.multiply %f1, %c : tensor<3x16xf32>
    %ig = stablehlo.multiply %i1, %g1 : tensor<3x16xf32>
    %cn = stablehlo.add %fc, %ig : tensor<3x16xf32>
    %tc = stablehlo.tanh %cn : tensor<3x16xf32>
    %hn = stablehlo.multiply %o1, %tc : tensor<3x16xf32>
    %xh = stablehlo.concatenate %x, %g, dim = 1 : (tensor<3x24xf32>, tensor<3x16xf32>) ->
        tensor<3x40xf32>
    %gk = stablehlo.dot_general %xh, %k, contracting_dims = [1] x [0] : (tensor<3x40xf32>,
        tensor<40x16xf32>) -> tensor<3x16xf32>
    %gn = stablehlo.tanh %gk : tensor<3x16xf32>
    %y = stablehlo.broadcast_in_dim %hn, dims = [1, 2] : (tensor<3x16xf32>) -> tensor<1x3x16xf32>
    %ysn = stablehlo.dynamic_update_slice %ys, %y, %at, %z, %z : (tensor<6x3x16xf32>,
        tensor<1x3x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x3x16xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %in = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %a, %in, %hn, %cn, %gn, %ysn : tensor<6x3x24xf32>, tensor<i32>,
        tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<6x3x16xf32>
  }
  return %r#2, %r#5, %r#4 : tensor<3x16xf32>, tensor<6x3x16xf32>, tensor<3x16xf32>
}
"""


def test_a_scan_as_jax_writes_it() -> None:
    """Places that may be counted from the end, an array that is carried along, a bias of one row;
    two cells in a step, one on inputs and states side by side."""
    executable = davinci.compile(SCAN, cores=2)
    rng = np.random.default_rng(1)
    shapes = ((6, 3, 24), (24, 64), (16, 64), (64,), (40, 16))
    xs, w, u, b, k = (rng.standard_normal(n, np.float32) / 4 for n in shapes)
    given = {f"arg{i}": array for i, array in enumerate((xs, w, u, b, k))}
    found = list(executable.run(given).values())
    loops(executable)
    h = c = g = np.zeros((3, 16), np.float32)
    ys = []
    for x in xs:
        i, f, n, o = np.split(x @ w + h @ u + b, 4, 1)
        c = c / (1 + np.exp(-f)) + np.tanh(n) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        g = np.tanh(np.concatenate([x, g], 1) @ k)
        ys.append(h)
    for array, wanted in zip(found, (h, np.stack(ys), g), strict=True):
        np.testing.assert_allclose(array, wanted, atol=1e-2)


@pytest.mark.parametrize(
    ("kind", "steps", "batch", "hidden"),
    [
        ("LSTM", 3, 1, 256),  # one row: whole sections of 128 lanes at once
        ("LSTM", 2, 5, 240),  # the last section has 112 lanes
        ("GRU", 2, 8, 272),  # half a line
        ("RNN", 2, 11, 512),  # both halves
    ],
)
def test_weights_on_the_left_of_the_cube(kind: str, steps: int, batch: int, hidden: int) -> None:
    """Weights that do not stay in L0B take the wider path to L0A, and columns become rows."""
    model, inputs = layer(kind, steps, batch, hidden, size=16)
    executable = davinci.compile(model, cores=1)
    found = executable.run({name: inputs[name] for name in executable.input_names})
    check.require(check.compare(found, check.reference_onnx(model, inputs)), "mixed")
    (loop,) = [k for k in executable.profile["kernels"] if k["name"].startswith("loop_")]
    assert "on the left of the cube" in loop["schedule"]


@pytest.mark.parametrize(
    ("kind", "hidden", "more"),
    [
        ("LSTM", 256, {}),  # a fractal
        ("GRU", 272, {"states": True}),  # a part of the second one, and two of them in a step
        ("RNN", 384, {"size": 32}),  # beside rows of inputs, which are fractals
    ],
)
def test_a_state_of_one_row_is_a_vector(kind: str, hidden: int, more: dict[str, Any]) -> None:
    """Cores that share its lanes load it to L0A; with more rows it goes through L1."""
    for batch in (1, 2):
        model, inputs = layer(kind, 3, batch, hidden, **more)
        executable = davinci.compile(model)
        found = executable.run({name: inputs[name] for name in executable.input_names})
        check.require(check.compare(found, check.reference_onnx(model, inputs)), "mixed")
        (loop,) = [k for k in executable.profile["kernels"] if k["name"].startswith("loop_")]
        assert ("rows as vectors" in loop["schedule"]) == (batch == 1)


def test_runs_of_lanes_that_follow_each_other_are_one() -> None:
    runs = [LaneRun(0, 32, 0), LaneRun(32, 32, 32), LaneRun(64, 32, 128)]
    assert runs_of(runs) == [LaneRun(0, 64, 0), LaneRun(64, 32, 128)]


@pytest.mark.parametrize(
    ("kind", "batch", "hidden", "size"),
    [("LSTM", 1, 128, 5), ("GRU", 1, 150, 5), ("RNN", 1, 300, 5), ("LSTM", 2, 256, 32)],
)
def test_a_part_of_the_weights_stays_in_l0b(kind: str, batch: int, hidden: int, size: int) -> None:
    """Of those that L0B has no room for all of: whole products, and columns of one."""
    model, inputs = layer(kind, 3, batch, hidden, size=size)
    executable = davinci.compile(model, cores=1)
    check.require(
        check.compare(executable.run(inputs), check.reference_onnx(model, inputs)), "mixed"
    )
    schedules = [str(kernel.get("schedule")) for kernel in executable.profile["kernels"]]
    assert any("columns on the right and in L0B" in text for text in schedules), schedules
