"""GroupQueryAttention and rotary embeddings of onnxruntime, step by step, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.errors import CompileError
from onnx_support import means, node_model, run

HEADS, KEPT, SIZE, MOST = 4, 2, 16, 24
MS = {"domain": "com.microsoft"}
GROUPS = {**MS, "num_heads": HEADS, "kv_num_heads": KEPT}


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32) * np.float32(
        0.7
    )


def tables(angles: int = SIZE // 2) -> list[Any]:
    found = np.outer(np.arange(MOST), 1 / 100 ** (np.arange(angles) / angles)).astype(np.float32)
    return [np.cos(found), np.sin(found)]


def operands(
    batch: int, tokens: int, old: int | None, lengths: list[int], total: int, *more: Any
) -> list[Any]:
    """Of one step: queries, keys, values, caches of `old` tokens, and what tells of their use."""
    caches = [None, None]
    if old is not None:
        caches = [random(batch, KEPT, old, SIZE), random(batch, KEPT, old, SIZE) * 2]
    new = [random(batch, tokens, heads * SIZE) for heads in (HEADS, KEPT, KEPT)]
    new[2] = new[2] + 1
    return [*new, *caches, np.array(lengths, np.int32) - 1, np.array(total, np.int32), *more]


def stepped(step: list[Any], known: list[int], **attributes: Any) -> Any:
    """A model of one step; without caches as results onnxruntime looks at none."""
    options = {"outputs": 3, "known": known, **attributes, **GROUPS}
    return node_model("GroupQueryAttention", *step, **options)


@pytest.mark.parametrize("known", [[5, 6], [6]], ids=["known lengths", "computed lengths"])
@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize(
    ("batch", "tokens", "old", "lengths", "total"),
    [
        (2, 6, None, [6, 6], 6),
        (2, 6, 0, [6, 6], 6),
        (2, 1, 7, [8, 8], 8),
        (1, 3, 7, [10], 10),
    ],
    ids=["prompt", "prompt with an empty cache", "next token", "next tokens"],
)
def test_steps(
    known: list[int],
    rotary: int,
    batch: int,
    tokens: int,
    old: int | None,
    lengths: Any,
    total: int,
) -> None:
    more = tables() if rotary else []
    step = operands(batch, tokens, old, lengths, total, *more)
    means(*stepped(step, known, do_rotary=rotary))


@pytest.mark.parametrize("known", [[5, 6], [6]], ids=["known lengths", "computed lengths"])
def test_a_cache_with_room(known: list[int]) -> None:
    """Sequences of unlike lengths; what is behind their ends in the caches is not looked at."""
    step = operands(2, 1, 12, [9, 5], 9, *tables())
    model, inputs = stepped(step, known, do_rotary=1)
    del model.graph.output[1:]
    means(model, inputs)


@pytest.mark.parametrize(
    "attributes",
    [
        {"local_window_size": 3},
        {"softcap": 2.0},
        {"smooth_softmax": 1},
        {"scale": 0.3},
        {"do_rotary": 1, "rotary_interleaved": 1},
        {"causal": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("tokens", [1, 8])
def test_attributes(attributes: dict[str, Any], tokens: int) -> None:
    step = operands(1, tokens, 8 - tokens, [8], 8, *tables())
    means(*stepped(step, [6], **attributes))


def test_packed_projections_with_bias_and_sinks() -> None:
    new = random(2, 5, (HEADS + 2 * KEPT) * SIZE)
    lengths, total = np.array([4, 4], np.int32), np.array(5, np.int32)
    step = [new, None, None, None, None, lengths, total, *tables(), None]
    step += [random(2, 1, 5, 5), random(HEADS)]
    means(*stepped(step, [5, 6], do_rotary=1))


def test_given_positions() -> None:
    step = operands(2, 1, 7, [8, 8], 8, *tables(), np.array([[3], [5]]))
    means(*stepped(step, [6], do_rotary=1))


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({"k_quant_type": "PER_TENSOR"}, "k_quant_type='PER_TENSOR' is not supported"),
        ({"sliding_window_cache": 1, "local_window_size": 4}, "attribute 'sliding_window_cache'"),
        ({"qk_output": 1}, "attribute 'qk_output' is not supported"),
    ],
)
def test_refused(attributes: dict[str, Any], named: str) -> None:
    step = operands(1, 1, 7, [8], 8)
    model, inputs = stepped(step, [5, 6], **attributes)
    with pytest.raises(CompileError, match=named):
        run(model, inputs)


def test_a_length_that_is_not_known_is_refused_by_name() -> None:
    model, inputs = stepped(operands(1, 1, 7, [8], 8), [])
    with pytest.raises(CompileError, match=r"input 6 \(total_sequence_length\) is computed"):
        run(model, inputs)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    "positions", [np.array([4]), np.array([[1, 2, 3, 4], [5, 0, 7, 8]])], ids=str
)
@pytest.mark.parametrize("part", [SIZE, SIZE // 2])
@pytest.mark.parametrize("upright", [True, False])
def test_rotary_embedding(interleaved: int, positions: Any, part: int, upright: bool) -> None:
    x = random(2, HEADS, 4, SIZE) if upright else random(2, 4, HEADS * SIZE)
    more = {"num_heads": HEADS, "rotary_embedding_dim": part} if part < SIZE else {}
    model, inputs = node_model(
        "RotaryEmbedding",
        *(x, positions.astype(np.int64), *tables(part // 2)),
        known=[2, 3],
        interleaved=interleaved,
        **more,
        **MS,
    )
    means(model, inputs)
