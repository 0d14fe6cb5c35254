"""What kernels of Triton compute, by NumPy, for both compilers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ELEMENTWISE: list[tuple[str, int, tuple[float, ...], Callable[..., Array]]] = [
    ("add", 2, (), lambda x, y: x + y),
    ("silu", 1, (), lambda x: x * sigmoid(x)),
    ("scale_and_clamp", 1, (2.5, -1.0, 1.5), lambda x: np.clip(x * 2.5, -1, 1.5)),
    ("leaky", 1, (0.1,), lambda x: np.where(x > 0, x, x * np.float32(0.1))),
    ("swiglu", 2, (), lambda x, g: x * g * sigmoid(g)),
    ("roots", 1, (), lambda x: np.sqrt(np.abs(x)) + np.log(np.abs(x) + 1)),
    ("persistent_copy", 1, (), lambda x: 2 * x),
]
"""Name of a kernel, number of its arrays, its scalars, and the function that it computes."""
