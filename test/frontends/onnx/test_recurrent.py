"""RNN, GRU and LSTM, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_support import against_onnxruntime, against_reference, means, node_model
from pairs import all_pairs

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, SIZE, HIDDEN = 4, 3, 5, 6


def operands(kind: str, directions: int, lengths: bool = False, states: bool = False) -> list[Any]:
    """X, W, R, B and, as asked for, sequence_lens and initial states."""
    rng, gates = np.random.default_rng(3), GATES[kind]

    def random(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(0.4)

    found: list[Any] = [
        random(STEPS, BATCH, SIZE),
        random(directions, gates * HIDDEN, SIZE),
        random(directions, gates * HIDDEN, HIDDEN),
        random(directions, 2 * gates * HIDDEN),
        np.array([4, 1, 3], np.int32) if lengths else None,
    ]
    initial = 2 if kind == "LSTM" else 1
    if states:
        found += [random(directions, BATCH, HIDDEN) for _ in range(initial)]
    return found


def outputs_of(kind: str) -> int:
    return 3 if kind == "LSTM" else 2


@pytest.mark.parametrize(
    ("kind", "direction", "rest"),
    all_pairs(GATES, ["forward", "reverse", "bidirectional"], [False, True]),
)
def test_layer(kind: str, direction: str, rest: bool) -> None:
    directions = 2 if direction == "bidirectional" else 1
    model, inputs = node_model(
        kind,
        *operands(kind, directions, rest, rest),
        outputs=outputs_of(kind),
        known=(1, 2, 3),
        hidden_size=HIDDEN,
        direction=direction,
    )
    against_onnxruntime(model, inputs)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("GRU", {"linear_before_reset": 1}),
        ("GRU", {"clip": 0.3}),
        ("LSTM", {"clip": 0.3}),
        ("LSTM", {"input_forget": 1}),
        ("RNN", {"activations": ["Relu"]}),
        ("RNN", {"activations": ["LeakyRelu"], "activation_alpha": [0.3]}),
        ("RNN", {"activations": ["Affine"], "activation_alpha": [0.3], "activation_beta": [0.1]}),
        ("RNN", {"activations": ["HardSigmoid"]}),
        (
            "RNN",
            {"activations": ["ScaledTanh"], "activation_alpha": [0.5], "activation_beta": [2.0]},
        ),
        ("LSTM", {"activations": ["HardSigmoid", "Softsign", "Relu"]}),
        ("GRU", {"activations": ["Sigmoid", "Softplus"]}),
    ],
    ids=str,
)
def test_attributes(kind: str, attributes: dict[str, Any]) -> None:
    model, inputs = node_model(
        kind, *operands(kind, 1), outputs=outputs_of(kind), hidden_size=HIDDEN, **attributes
    )
    means(model, inputs)
    if len(attributes.get("activations", ())) > 1:  # one that is no record's, in a gate
        against_onnxruntime(model, inputs)


def test_peepholes() -> None:
    rng = np.random.default_rng(1)
    given = operands("LSTM", 1, states=True)
    peepholes = rng.standard_normal((1, 3 * HIDDEN), dtype=np.float32)
    model, inputs = node_model("LSTM", *given, peepholes, outputs=3, hidden_size=HIDDEN)
    against_onnxruntime(model, inputs)


@pytest.mark.parametrize("kind", GATES)
def test_batch_first(kind: str) -> None:
    given = operands(kind, 1)
    given[0] = np.ascontiguousarray(given[0].transpose(1, 0, 2))
    model, inputs = node_model(kind, *given, outputs=outputs_of(kind), hidden_size=HIDDEN, layout=1)
    against_reference(model, inputs)


def test_a_long_sequence_is_a_loop() -> None:
    given = operands("RNN", 1)
    rng = np.random.default_rng(5)
    given[0] = rng.standard_normal((131, 1, SIZE), dtype=np.float32)
    model, inputs = node_model("RNN", *given, outputs=2, hidden_size=HIDDEN)
    against_onnxruntime(model, inputs)
