"""Causal models of Hugging Face with their caches, token by token, against `generate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
transformers = pytest.importorskip("transformers")

TOKENS, LONGEST, LAYERS = 20, 40, 2
"""The last token is behind a fractal of rows; examples/decode.py, which is a test, goes further."""
PROMPT = [5, 17, 3]


def random_gpt2(layers: int) -> Any:
    """A small random network whose tokens differ from each other."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=97, n_positions=64, n_embd=32, n_layer=layers, n_head=2, initializer_range=0.5
    )
    config.bos_token_id = config.eos_token_id = None
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def gpt2() -> Any:
    return random_gpt2(LAYERS)


def generated(model: Any) -> list[int]:
    with torch.no_grad():
        given = torch.tensor([PROMPT])
        found = model.generate(given, max_new_tokens=TOKENS, do_sample=False, pad_token_id=0)
    return list(found[0].tolist())


def test_static_cache(gpt2: Any) -> None:
    """Token by token with one compilation; the cache is updated in place, without a copy."""
    from transformers.integrations.executorch import convert_and_export_with_cache

    wanted = generated(gpt2)
    assert len(set(wanted)) > 8
    settings = gpt2.generation_config
    settings.use_cache, settings.cache_implementation = True, "static"
    settings.cache_config = {"batch_size": 1, "max_cache_len": LONGEST, "device": "cpu"}
    # Rounded products move logits further than the two largest are apart in a random network.
    program = convert_and_export_with_cache(gpt2)
    executable = davinci.compile(program, precision="fp32")
    assert len(executable.inputs) - len(executable.states) == 2
    tokens = list(PROMPT)
    for position in range(len(PROMPT) + TOKENS - 1):
        token, place = np.array([[tokens[position]]]), np.array([position])
        (logits,) = executable.step(input_ids=token, cache_position=place).values()
        if position + 1 == len(tokens):
            tokens.append(int(logits[0, -1].argmax()))
    assert tokens == wanted
    record = executable.profile
    assert len(record["state"]) == 3 * LAYERS  # keys, values, and the length so far
    assert all(state["in_place"] for state in record["state"])
    assert not [k for k in record["kernels"] if k["op"] == "copy"]
    updates = [k for k in record["kernels"] if k["op"] == "update_blocks"]
    assert sum(k["launches"] for k in updates) == 2 * LAYERS
    assert all(k["cycles"] / k["launches"] < 4000 for k in updates)


class WithStaticCache(torch.nn.Module):
    """A model whose cache is an attribute, which torch.export takes for constants."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.cache = transformers.StaticCache(model.config, max_cache_len=8)
        self.cache.early_initialization(1, 2, 16, torch.float32, "cpu")

    def forward(self, token: Any, position: Any) -> Any:
        cache = {"past_key_values": self.cache, "cache_position": position}
        return self.model(token, **cache).logits


@pytest.mark.parametrize("strict", [False, True])
def test_static_cache_that_was_exported_by_hand(strict: bool) -> None:
    tokens, gpt2 = [5, 17, 3], random_gpt2(1)
    with torch.no_grad():
        wanted = gpt2(torch.tensor([tokens])).logits[0].numpy()
        example = (torch.tensor([[3]]), torch.tensor([0]))
        module = WithStaticCache(gpt2)
        program = torch.export.export(module, example, strict=strict)
    module.cache.reset()  # PyTorch counts the call that it traces, in tensors that the program has
    executable = davinci.compile(program, precision="fp32")
    # Keys and values, and how many each layer has.
    assert len(executable.states) == 3
    for position, token in enumerate(tokens):
        given = {"token": np.array([[token]]), "position": np.array([position])}
        (logits,) = executable.step(given).values()
        np.testing.assert_allclose(logits[0, -1], wanted[position], atol=1e-3)


def test_dynamic_cache_of_a_fixed_length(gpt2: Any) -> None:
    """A cache of 8 tokens goes in, one of 9 comes out."""
    past = 8
    random = np.random.default_rng(0)
    shape = (1, 2, past, 16)
    arrays = [random.standard_normal(shape, dtype=np.float32) for _ in range(2 * LAYERS)]

    def cache() -> Any:
        made = transformers.DynamicCache(config=gpt2.config)
        for layer in range(LAYERS):
            keys, values = map(torch.from_numpy, arrays[2 * layer : 2 * layer + 2])
            made.update(keys.clone(), values.clone(), layer)
        return made

    token = torch.tensor([[7]])
    with torch.no_grad():
        wanted = gpt2(token, past_key_values=cache())
    example = {"input_ids": token, "past_key_values": cache()}
    executable = davinci.compile(gpt2, example_inputs=example)
    assert not executable.states
    given = dict(zip(executable.input_names[1:], [*arrays[::2], *arrays[1::2]], strict=True))
    found = executable.run({"input_ids": token, **given})
    logits = wanted.logits.numpy()
    np.testing.assert_allclose(found["logits"], logits, atol=0.02 * np.abs(logits).max())
    kept = {name: array for name, array in found.items() if name != "logits"}
    assert len(kept) == 2 * LAYERS
    assert {array.shape for array in kept.values()} == {(1, 2, past + 1, 16)}
    keys = wanted.past_key_values.layers[0].keys.numpy()
    np.testing.assert_allclose(next(iter(kept.values())), keys, atol=0.02)


def test_a_cache_that_is_returned(gpt2: Any) -> None:
    """The keys and values of each layer for a prompt are outputs of the model."""
    prompt = torch.tensor([PROMPT])
    with torch.no_grad():
        wanted = gpt2(prompt, use_cache=True).past_key_values.layers
    found = davinci.compile(gpt2, example_inputs={"input_ids": prompt}).run(prompt)
    assert len(found) == 1 + 2 * LAYERS
    name = list(found)[1].partition(".")[0]  # `cache` of new versions, else `past_key_values`
    for layer in range(LAYERS):
        for part, array in (("key", wanted[layer].keys), ("value", wanted[layer].values)):
            one = found[f"{name}.{part}_cache.{layer}"]
            np.testing.assert_allclose(one, array.numpy(), atol=0.02)
