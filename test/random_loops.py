"""Random scans of JAX: states, parts of arrays and fixed values, combined at random in each step.

New states and outputs are any values of a step, old states among them; several may be the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax import lax
from jax import numpy as jnp

import davinci

Array = npt.NDArray[Any]

LARGEST = 1e4
"""Numbers beyond it say more of the draw than of the machine."""

PRODUCT = "product"

STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y * 0.5,
    "maximum": jnp.maximum,
    "tanh": lambda x, y: jnp.tanh(x),
    "sigmoid": lambda x, y: jax.nn.sigmoid(x),
    "scale": lambda x, y: x * 0.7 + 0.1,
    "view": lambda x, y: x.reshape(-1).reshape(x.shape),
    "turn": lambda x, y: jnp.roll(x, x.shape[-1] // 2, axis=-1),
    "join": lambda x, y: _joined(*jnp.broadcast_arrays(x, y)),
    "centre": lambda x, y: x - jnp.mean(x, -1, keepdims=True),
    "select": lambda x, y: jnp.where(x > 0, x, y),
}
"""What a step may do with two of its values."""


def _joined(x: Any, y: Any) -> Any:
    half = x.shape[-1] // 2
    return jnp.concatenate([x[..., :half], y[..., half:]], -1)


class RandomLoop:
    """A scan drawn from a seed.

    Attributes:
        text: what was drawn, in a line.
    """

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        rows = int(random.choice([0, 0, 1, 2, 3, 7, 17]))
        width = int(random.choice([1, 2, 5, 8, 15, 16, 17, 33, 64, 100]))
        self.shape = (rows, width) if rows else (width,)
        self.steps = int(random.choice([1, 2, 3, 5, 8, 20, 40]))
        states, parts, fixed = (int(random.integers(*most)) for most in ((1, 4), (0, 3), (0, 3)))

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        self.states = tuple(normal(*self.shape) for _ in range(states))
        self.parts = tuple(normal(self.steps, *self.shape) for _ in range(parts))
        self.fixed = tuple(
            normal(*(self.shape if random.random() < 0.6 else (width,))) for _ in range(fixed)
        )
        self.weights: list[Array] = []
        self.work: list[tuple[str, int, int]] = []
        known = states + parts + fixed
        names = [*STEPS, PRODUCT] if rows else list(STEPS)
        for _ in range(int(random.integers(1, 9))):
            name = str(random.choice(names))
            first, second = (int(random.integers(known)) for _ in range(2))
            if name == PRODUCT:
                second = len(self.weights)
                self.weights.append(normal(width, width) / np.float32(width**0.5))
            self.work.append((name, first, second))
            known += 1
        self.following = [int(random.integers(known)) for _ in range(states)]
        self.outputs = [int(random.integers(known)) for _ in range(int(random.integers(0, 4)))]
        self.reverse, self.bounded = bool(random.random() < 0.4), bool(random.random() < 0.7)
        self.text = (
            f"{self.steps} steps of {self.shape}, {states} states, {parts} parts, {fixed} fixed, "
            f"{self.work}, states {self.following}, outputs {self.outputs}, {self.reverse=}"
        )

    def __call__(self, states: Any, parts: Any, fixed: Any, weights: Any) -> Any:
        def step(held: Any, now: Any) -> Any:
            values = [*held, *now, *fixed]
            for name, first, second in self.work:
                if name == PRODUCT:
                    made = jnp.broadcast_to(values[first], self.shape) @ weights[second]
                else:
                    made = STEPS[name](values[first], values[second])
                values.append(made)
            following = [jnp.broadcast_to(values[i], self.shape) for i in self.following]
            if self.bounded:
                following = [jnp.clip(value, -4, 4) for value in following]
            return tuple(following), tuple(values[i] for i in self.outputs)

        return lax.scan(step, states, parts, length=self.steps, reverse=self.reverse)

    def check(self, **options: Any) -> bool:
        """Compares the machine's results with JAX's; False if these are too large to say anything.

        Factors of products are rounded to f16, in each step anew.

        Args:
            options: of `davinci.compile`.
        """
        arguments = (self.states, self.parts, self.fixed, self.weights)
        lowered = jax.jit(self.__call__).lower(*arguments)
        wanted = [np.asarray(x) for x in jax.tree.leaves(lowered.compile()(*arguments))]
        if any(x.size and not np.abs(x).max() < LARGEST for x in wanted):
            return False
        executable = davinci.compile(lowered.as_text(), **options)
        # What no step reads is no argument of the text.
        kept = lowered._lowering.compile_args["kept_var_idx"]
        given = [x for i, x in enumerate(jax.tree.leaves(arguments)) if i in kept]
        found = executable.run(dict(zip(executable.input_names, given, strict=True)))
        for array, reference in zip(found.values(), wanted, strict=True):
            largest = max(1.0, float(np.abs(reference).max(initial=0)))
            limit = (3e-2 if self.weights else 1e-4) * largest
            np.testing.assert_allclose(array, reference, rtol=0, atol=limit, err_msg=self.text)
        return True
