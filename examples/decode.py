"""Decodes with a causal model of Hugging Face and its static cache, token by token, with one
compilation; compares the tokens with those of the model's own `generate`."""

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.integrations.executorch import convert_and_export_with_cache

import davinci

TOKENS, LONGEST = 32, 48

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=97, n_positions=64, n_embd=64, n_layer=2, n_head=2, initializer_range=0.4
)
config.bos_token_id = config.eos_token_id = None
model = GPT2LMHeadModel(config).eval()
prompt = [5, 17, 3]
with torch.no_grad():
    wanted = model.generate(
        torch.tensor([prompt]), max_new_tokens=TOKENS, do_sample=False, pad_token_id=0
    )[0].tolist()

# A cache of the longest length: a token's keys and values are written at its position.
model.generation_config.use_cache = True
model.generation_config.cache_implementation = "static"
model.generation_config.cache_config = {
    "batch_size": 1,
    "max_cache_len": LONGEST,
    "device": "cpu",
}
executable = davinci.compile(convert_and_export_with_cache(model))

tokens = list(prompt)
for position in range(len(prompt) + TOKENS - 1):
    token, place = np.array([[tokens[position]]]), np.array([position])
    (logits,) = executable.step(input_ids=token, cache_position=place).values()
    if position + 1 == len(tokens):
        tokens.append(int(logits[0, -1].argmax()))

differing = sum(a != b for a, b in zip(tokens, wanted, strict=True))
record = executable.profile
copies = sum(kernel["launches"] for kernel in record["kernels"] if kernel["op"] == "copy")
print(
    f"differing tokens: {differing} of {TOKENS}, {record['total_cycles']} cycles each, "
    f"{copies} launches that copy"
)
for state in record["state"]:
    how = "in place" if state["in_place"] else "by a copy"
    print(f"{state['input']:20} {state['bytes']:6} bytes, updated {how}")
