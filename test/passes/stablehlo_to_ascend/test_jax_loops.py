"""What JAX makes of scans, loops, conditions and sorts, as its text has it, on the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import davinci

jax = pytest.importorskip("jax", reason="JAX is an optional dependency")
jnp, lax = jax.numpy, jax.lax

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return (RANDOM.normal(size=shape) * 0.5).astype(np.float32)


def rnn(x: Any, h: Any, w: Any, u: Any) -> Any:
    def step(state: Any, now: Any) -> Any:
        state = jnp.tanh(now @ w + state @ u)
        return state, state

    return lax.scan(step, h, x)


def branches(p: Any, x: Any) -> Any:
    return lax.switch(p, [lambda y: y * 2, lambda y: y @ y, lambda y: -y], x)


CASES: dict[str, tuple[Callable[..., Any], list[Any], bool]] = {
    "scan": (rnn, [normal(7, 2, 8), normal(2, 16), normal(8, 16), normal(16, 16)], True),
    "gradient of a scan": (
        jax.grad(lambda w, x, h, u: jnp.sum(rnn(x, h, w, u)[0])),
        [normal(8, 16), normal(5, 2, 8), normal(2, 16), normal(16, 16)],
        True,
    ),
    "while_loop": (
        lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 1.5 + 1, x),
        [np.abs(normal(5))],
        False,
    ),
    "fori_loop": (
        lambda x, n: lax.fori_loop(0, n, lambda i, c: c + i * x, x),
        [normal(5, 3), np.int32(6)],
        False,
    ),
    "long scan": (
        lambda x: lax.scan(lambda c, t: (c * 0.9 + t, c), x[0], x),
        [normal(3000, 2)],
        False,
    ),
    "an output of ones": (
        lambda x: lax.scan(lambda c, t: (jnp.abs(c) * 0.5 + t, jnp.ones(3)), x[0], x),
        [normal(5, 3)],
        False,
    ),
    "states that change places": (
        lambda x: lax.scan(
            lambda c, t: ((c[1].reshape(2), c[0] * 0.5 + t), (c[1], t, c[0])), (x[0], x[1]), x
        ),
        [normal(40, 2)],
        False,
    ),
    "cond": (
        lambda p, x: lax.cond(p > 0, lambda y: y @ y, lambda y: y + 1, x),
        [np.float32(1), normal(4, 4)],
        True,
    ),
    "switch": (branches, [np.int32(1), normal(4, 4)], True),
    "sort": (jnp.sort, [normal(3, 17)], False),
    "argsort": (lambda x: jnp.argsort(x, axis=0), [normal(9, 3)], False),
    "unique": (lambda x: jnp.unique(x, size=5), [np.array([3, 1, 3, 2, 2, 7], np.int32)], False),
    "add at indices": (
        lambda x, i, u: x.at[i].add(u),
        [normal(8, 3), np.array([1, 3, 1, 9], np.int32), normal(4, 3)],
        False,
    ),
    "top_k": (lambda x: lax.top_k(x, 3), [normal(4, 9)], False),
    "gradient of a maximum over windows": (
        jax.grad(
            lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2)
        ),
        [normal(6, 6)],
        False,
    ),
    "cumulative sum": (lambda x: jnp.cumsum(x, axis=1), [normal(4, 9)], False),
    "random bits": (
        lambda key: jax.random.bits(jax.random.wrap_key_data(key), (3, 5)),
        [np.array([1, 2], np.uint32)],
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_jax(name: str) -> None:
    function, arguments, products = CASES[name]
    lowered = jax.jit(function).lower(*arguments)
    wanted = jax.tree.leaves(lowered.compile()(*arguments))
    executable = davinci.compile(lowered.as_text(), cores=2)
    found = executable.run(dict(zip(executable.input_names, arguments, strict=True))).values()
    for array, reference in zip(found, map(np.asarray, wanted), strict=True):
        # Factors of products are rounded to f16, a few times in a chain.
        limit = (1e-2 if products else 1e-5) * max(1.0, float(np.abs(reference).max()))
        np.testing.assert_allclose(array, reference, rtol=0, atol=limit)
    units = executable.profile["ops"]
    assert units["cube"] > 0 or not products


def test_a_scan_has_no_kernel_of_the_scalar_unit() -> None:
    function, arguments, _ = CASES["scan"]
    executable = davinci.compile(jax.jit(function).lower(*arguments).as_text(), cores=2)
    executable.run(dict(zip(executable.input_names, arguments, strict=True)))
    assert executable.profile["ops"]["scalar"] == 0


def scanned(step: Callable[..., Any], states: int, **options: Any) -> Callable[..., Any]:
    """A scan over x whose states begin as its first rows; `step` takes what else is given."""

    def scan(x: Any, *more: Any) -> Any:
        first = tuple(x[i] for i in range(states))
        return lax.scan(lambda c, t: step(c, t, *more), first, x, **options)

    return scan


BEFORE: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "before": (scanned(lambda c, t: ((c[0] * 0.9 + t,), c), 1), [normal(12, 5, 20)]),
    "before and after": (
        scanned(lambda c, t: ((d := jnp.tanh(c[0]) + t,), (c[0], d, c[0])), 1, reverse=True),
        [normal(9, 20)],
    ),
    "of statistics": (
        lambda x: lax.scan(
            lambda c, t: ((c[0] * 0.5 + t.sum(1), c[1] * 0.5 + t), c), (x[0, :, 0], x[1]), x
        ),
        [normal(6, 5, 20)],
    ),
    "of two, one of the other": (
        scanned(lambda c, t: ((c[0] * 0.5 + t, jnp.tanh(c[0])), (c, c[1])), 2),
        [normal(6, 5, 20)],
    ),
    "with products": (
        scanned(lambda c, t, u: ((c[0] @ u, jnp.tanh(t + (p := c[1] @ u))), (c, p)), 2),
        [normal(6, 5, 16), normal(16, 16)],
    ),
}


@pytest.mark.parametrize("name", BEFORE)
def test_states_before_a_step(name: str) -> None:
    """They are outputs, and steps write over them on the core."""
    function, arguments = BEFORE[name]
    lowered = jax.jit(function).lower(*arguments)
    wanted = jax.tree.leaves(lowered.compile()(*arguments))
    executable = davinci.compile(lowered.as_text(), cores=2)
    found = executable.run(dict(zip(executable.input_names, arguments, strict=True))).values()
    for array, reference in zip(found, wanted, strict=True):
        limit = (1e-2 if "products" in name else 1e-5) * max(1.0, float(np.abs(reference).max()))
        np.testing.assert_allclose(array, reference, rtol=0, atol=limit)
    kernels = [row["kernel"] for row in executable.profile["launches_list"]]
    assert sum(kernel.startswith("loop_") for kernel in kernels) == 1
