"""Attention as onnxruntime's optimizer writes it, in its forms, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import davinci
from davinci.errors import CompileError
from davinci.reference import check
from onnx_support import means, model_of, node_model, run

BATCH, HEADS, TOKENS, SIZE = 2, 2, 6, 8
HIDDEN = HEADS * SIZE
MS = {"domain": "com.microsoft", "num_heads": HEADS}


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32) * np.float32(
        0.7
    )


def ones_but(*shape: int, last: int = 2) -> Any:
    """A mask that hides some of the last keys of the second of a batch."""
    mask = np.ones(shape, np.int32)
    mask[-1, ..., -last:] = 0
    return mask


MASKS: dict[str, Any] = {
    "none": None,
    "keys": ones_but(BATCH, TOKENS),
    "scores": ones_but(BATCH, TOKENS, TOKENS),
    "ends": np.array([6, 3], np.int32),
    "ends and starts": np.array([6, 5, 1, 2], np.int32),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_masks(mask: str, causal: int) -> None:
    model, inputs = node_model(
        "Attention",
        random(BATCH, TOKENS, HIDDEN),
        random(HIDDEN, 3 * HIDDEN),
        random(3 * HIDDEN),
        MASKS[mask],
        known=[1, 2],
        unidirectional=causal,
        **MS,
    )
    means(model, inputs)


def test_attention_with_a_cache() -> None:
    old = 5
    model, inputs = node_model(
        "Attention",
        random(BATCH, TOKENS, 12),
        random(12, 3 * HIDDEN),
        random(3 * HIDDEN),
        ones_but(BATCH, old + TOKENS),
        random(2, BATCH, HEADS, old, SIZE),
        outputs=2,
        known=[1, 2],
        unidirectional=1,
        scale=0.4,
        mask_filter_value=-5.0,
        **MS,
    )
    means(model, inputs)


def test_attention_with_a_bias_of_scores() -> None:
    operands = random(BATCH, TOKENS, 12), random(12, 3 * HIDDEN), random(3 * HIDDEN), None, None
    means(*node_model("Attention", *operands, random(1, HEADS, TOKENS, TOKENS), **MS))


def test_attention_with_values_of_another_size_and_computed_weights() -> None:
    sizes = [HIDDEN, HIDDEN, 2 * HIDDEN]
    operands = random(1, TOKENS, 12), random(12, sum(sizes)), random(sum(sizes))
    means(*node_model("Attention", *operands, qkv_hidden_sizes=sizes, **MS))


def quantized_operands(rng: Any, per_column: bool) -> list[Any]:
    columns = 3 * HIDDEN if per_column else 1
    shape = (columns,) if per_column else ()
    return [
        rng.integers(0, 256, (BATCH, TOKENS, 32), dtype=np.uint8),
        rng.integers(-127, 128, (32, 3 * HIDDEN), dtype=np.int8),
        random(3 * HIDDEN),
        np.float32(0.02),
        (rng.random(shape) * 0.01 + 0.002).astype(np.float32),
        None,
        np.uint8(128),
        np.zeros(shape, np.int8),
    ]


@pytest.mark.parametrize("per_column", [True, False])
def test_quantized_attention(per_column: bool) -> None:
    operands = quantized_operands(np.random.default_rng(0), per_column)
    model, inputs = node_model(
        "QAttention", *operands, known=[1, 2, 3, 4, 6, 7], unidirectional=1, **MS
    )
    means(model, inputs)


KEYS = 9
FORMS: dict[str, list[Any]] = {
    "plain": [
        random(BATCH, TOKENS, HIDDEN),
        random(BATCH, KEYS, HIDDEN),
        random(BATCH, KEYS, HIDDEN),
    ],
    "bias": [
        random(BATCH, TOKENS, HIDDEN),
        random(BATCH, KEYS, HIDDEN),
        random(BATCH, KEYS, 2 * HIDDEN),
        random(4 * HIDDEN),
    ],
    "padded": [
        random(BATCH, TOKENS, HIDDEN),
        random(BATCH, KEYS, HIDDEN),
        random(BATCH, KEYS, HIDDEN),
        None,
        ones_but(BATCH, KEYS),
        random(1, HEADS, TOKENS, KEYS),
    ],
    "lengths": [
        random(BATCH, TOKENS, HIDDEN),
        random(BATCH, KEYS, HIDDEN),
        random(BATCH, KEYS, HIDDEN),
        None,
        np.array([9, 4], np.int32),
    ],
    "cross attention": [
        random(BATCH, TOKENS, HIDDEN),
        random(BATCH, HEADS, KEYS, SIZE),
        random(BATCH, HEADS, KEYS, SIZE),
        random(3 * HIDDEN),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_multi_head_attention(form: str) -> None:
    means(*node_model("MultiHeadAttention", *FORMS[form], **MS))


@pytest.mark.parametrize("tokens", [1, TOKENS])
def test_multi_head_attention_with_a_cache(tokens: int) -> None:
    new, old = random(BATCH, tokens, HIDDEN), random(BATCH, HEADS, 5, SIZE)
    model, inputs = node_model(
        "MultiHeadAttention",
        *(new, new * 2, new * 3, None, None, None, old, old + 1),
        outputs=3,
        unidirectional=1,
        **MS,
    )
    means(model, inputs)


@pytest.mark.parametrize("parts", [2, 3])
def test_packed_projections_are_those_given_apart(parts: int) -> None:
    """onnxruntime has these on GPUs only."""
    apart = [random(BATCH, TOKENS, HIDDEN) * (i + 1) for i in range(3)]
    shape = (BATCH, TOKENS, HEADS, SIZE)
    packed = np.stack([x.reshape(shape) for x in apart[3 - parts :]], 3)
    operands = [*apart[: 3 - parts], packed]
    model, inputs = node_model("MultiHeadAttention", *operands, **MS)
    wanted = run(*node_model("MultiHeadAttention", *apart, **MS))
    np.testing.assert_allclose(run(model, inputs)["y"], wanted["y"], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({"do_rotary": 1}, "attribute 'do_rotary'"),
        ({"rotary_embedding_dim": 32}, "attribute 'rotary_embedding_dim'"),
    ],
)
def test_refused(attributes: dict[str, Any], named: str) -> None:
    operands = random(BATCH, TOKENS, HIDDEN), random(HIDDEN, 3 * HIDDEN), random(3 * HIDDEN)
    model, inputs = node_model("Attention", *operands, **MS, **attributes)
    with pytest.raises(CompileError, match=named):
        run(model, inputs)


def test_inputs_are_refused_by_name() -> None:
    new, old = random(BATCH, 1, HIDDEN), random(BATCH, HEADS, 5, SIZE)
    operands = [new, new, new, None, None, None, old, old, np.array([2], np.int32)]
    model, inputs = node_model("MultiHeadAttention", *operands, **MS)
    with pytest.raises(CompileError, match=r"input 8 \(past_sequence_length\) is not supported"):
        run(model, inputs)
    mask = np.ones((BATCH, 1, TOKENS, TOKENS), np.int32)
    x = random(BATCH, TOKENS, HIDDEN)
    model, inputs = node_model("MultiHeadAttention", x, x, x, None, mask, **MS)
    with pytest.raises(CompileError, match=r"a mask of shape \[2, 1, 6, 6\]"):
        run(model, inputs)


def test_a_fused_layer_takes_no_longer_than_its_spelling() -> None:
    """Attention with its projections, a residual and a layer normalization."""
    tokens, hidden = 32, 64
    constants = {"w": random(hidden, 3 * hidden) / 8, "b": random(3 * hidden), "g": random(hidden)}
    inputs = {"x": random(1, tokens, hidden)}
    fused = [
        helper.make_node("Attention", ["x", "w", "b"], ["a"], num_heads=2, domain="com.microsoft"),
        helper.make_node(
            "SkipLayerNormalization", ["a", "x", "g"], ["y"], domain="com.microsoft", epsilon=1e-5
        ),
    ]
    spelt = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Split", ["q"], ["q0", "k0", "v0"], axis=2, num_outputs=3),
        *(helper.make_node("Reshape", [f"{n}0", "parts"], [f"{n}1"]) for n in "qkv"),
        *(
            helper.make_node("Transpose", [f"{n}1"], [f"{n}2"], perm=[0, *perm])
            for n, perm in zip("qkv", ([2, 1, 3], [2, 3, 1], [2, 1, 3]), strict=True)
        ),
        helper.make_node("MatMul", ["q2", "k2"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["t"]),
        helper.make_node("Softmax", ["t"], ["u"]),
        helper.make_node("MatMul", ["u", "v2"], ["o"]),
        helper.make_node("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["o1", "whole"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "g"], ["y"], epsilon=1e-5),
    ]
    spelling = {
        "parts": np.array([1, tokens, 2, hidden // 2]),
        "whole": np.array([1, tokens, hidden]),
        "scale": np.float32((hidden // 2) ** -0.5),
    }
    model = model_of(fused, inputs, constants=constants)
    (wanted,) = check.reference_onnx(model, inputs).values()
    cycles = []
    for each in (model, model_of(spelt, inputs, constants=constants | spelling)):
        executable = davinci.compile(each, cores=2)
        (found,) = executable.run(inputs).values()
        np.testing.assert_allclose(found, wanted, atol=0.02)
        assert any("attention" in kernel["op"] for kernel in executable.profile["kernels"])
        cycles.append(executable.profile["total_cycles"])
    assert cycles[0] <= 1.02 * cycles[1], cycles
