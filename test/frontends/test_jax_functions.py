"""Functions of JAX, against JAX itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import CompileError, InputError

jax = pytest.importorskip("jax")
jnp = jax.numpy

PARAMS = {
    "w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3),
    "b": [np.ones(3, np.float32)],
}
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def mlp(params: Any, x: Any, unused: Any = None) -> dict[str, Any]:
    y = jnp.tanh(x @ params["w"] + params["b"][0])
    return {"y": y, "parts": (y.argmax(-1), x)}


def softmax_attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.T / 2, axis=-1) @ v


def rnn(w: Any, xs: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        state = jnp.tanh(x @ w + state)
        return state, state

    return jax.lax.scan(step, jnp.zeros(4), xs)


def close(found: np.ndarray, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=8 * 2.0**-11)


@pytest.mark.parametrize(
    "model",
    [mlp, jax.jit(mlp), jax.jit(mlp).lower(PARAMS, X)],
    ids=["function", "jitted", "lowered"],
)
def test_inputs_and_outputs_follow_the_trees(model: Any) -> None:
    exe = davinci.compile(model, example_inputs=None if hasattr(model, "as_text") else (PARAMS, X))
    assert exe.input_names == ["params.b.0", "params.w", "x"]
    assert exe.output_names == ["parts.0", "parts.1", "y"]
    wanted = mlp(PARAMS, X)
    for found in (
        exe.run(PARAMS, X),
        exe.run(PARAMS["b"][0], jnp.asarray(PARAMS["w"]), X),
        exe.run({"params": PARAMS, "x": X}),
        exe.run({"params.b.0": PARAMS["b"][0], "params.w": PARAMS["w"]}, x=X),
    ):
        close(found["y"], wanted["y"])
        np.testing.assert_array_equal(found["parts.0"], wanted["parts"][0])
        np.testing.assert_array_equal(found["parts.1"], X)


def test_only_a_tree() -> None:
    exe = davinci.compile(lambda p: p["w"] * 2, example_inputs=(PARAMS,))
    assert exe.input_names == ["p.w"]
    np.testing.assert_array_equal(exe.run(PARAMS["w"])["out0"], 2 * PARAMS["w"])
    np.testing.assert_array_equal(exe.run({"w": PARAMS["w"]})["out0"], 2 * PARAMS["w"])


def test_shapes_are_enough_and_names_are_kept() -> None:
    shape = jax.ShapeDtypeStruct((16, 16), jnp.float32)
    exe = davinci.compile(softmax_attention, example_inputs=(shape,) * 3)
    assert (exe.profile["model"], exe.input_names) == ("softmax_attention", ["q", "k", "v"])
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((16, 16), np.float32) for _ in "qkv")
    close(exe.run(q, k, v)["out0"], softmax_attention(q, k, v))


def test_scan() -> None:
    w, xs = np.eye(4, dtype=np.float32), np.ones((3, 4), np.float32)
    found = davinci.compile(jax.jit(rnn), example_inputs=(w, xs)).run(w, xs)
    state, states = rnn(w, xs)
    close(found["out0"], state)
    close(found["out1"], states)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((PARAMS,), "found w, b; expected params.b.0: float32[3], params.w: "),
        (({"w": X}, X), "wrong input names; found params.w, x; expected "),
        ((PARAMS, X, X, X), "too many inputs; found dict, float32[2, 4], "),
    ],
)
def test_wrong_calls(arrays: tuple[Any, ...], message: str) -> None:
    exe = davinci.compile(mlp, example_inputs=(PARAMS, X))
    with pytest.raises(InputError) as error:
        exe.run(*arrays)
    assert message in str(error.value)


def test_what_cannot_be_lowered() -> None:
    with pytest.raises(InputError, match="mlp: a function of JAX needs example inputs"):
        davinci.compile(mlp)
    with pytest.raises(CompileError, match="mlp: JAX cannot lower the function; found TypeError: "):
        davinci.compile(mlp, example_inputs=(PARAMS, X[:, :3]))


def test_a_function_needs_no_jax_to_be_told_what_it_lacks() -> None:
    script = "import davinci, sys\ntry: davinci.compile(lambda x: x)\n"
    script += "except davinci.InputError as error: print(error)\nassert 'jax' not in sys.modules"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.startswith("<lambda>: a function of JAX needs example inputs; expected")


def test_a_trace() -> None:
    def double(x: Any) -> Any:
        return x + x

    executable = davinci.compile(jax.jit(double).trace(X))
    (y,) = executable.run(X).values()
    np.testing.assert_array_equal(y, X + X)
