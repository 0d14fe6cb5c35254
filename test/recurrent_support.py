"""Recurrent layers of ONNX with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from onnx_support import node_model

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layer(
    kind: str, steps: int, batch: int, hidden: int, size: int = 5, **more: Any
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A layer whose weights are constants.

    Args:
        more: `directions`; `states`, whether initial ones are given; `lengths` of sequences;
            other attributes.
    """
    directions = more.pop("directions", 1)
    rng, gates = np.random.default_rng(steps * batch + hidden), GATES[kind]

    def random(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=np.float32) / np.float32(hidden**0.5)

    given = [
        random(steps, batch, size),
        random(directions, gates * hidden, size),
        random(directions, gates * hidden, hidden),
        random(directions, 2 * gates * hidden),
        more.pop("lengths", None),
    ]
    if more.pop("states", False):
        given += [random(directions, batch, hidden) for _ in range(1 + (kind == "LSTM"))]
    direction = "bidirectional" if directions == 2 else more.pop("direction", "forward")
    return node_model(
        kind,
        *given,
        outputs=3 if kind == "LSTM" else 2,
        known=(1, 2, 3),
        hidden_size=hidden,
        direction=direction,
        **more,
    )
