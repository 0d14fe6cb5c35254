"""Small random networks of transformers, timm and diffusers, exported by PyTorch, against f32.

    python benchmarks/coverage/exported_networks.py [--only REGEX] [--precision P] [--cores N]

Needs torch, and transformers, timm (with torchvision) and diffusers for the networks of each; what
is not installed is named and left out, nothing is loaded from the network. Each network is built
from a small configuration with random weights, those of transformers with attention in sdpa and in
eager spelling, exported by torch.export, compiled, simulated, and compared with what torch computes
in f32, by the tolerance of the precision policy. Prints a line for each; exits with 1 if one is
wrong, refused, or ends in an error.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import davinci
from davinci.errors import CheckFailed, DavinciError
from davinci.reference import check
from davinci.report.value_range import range_summary

TOKENS, VOCABULARY = 16, 99

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
}
GPT = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY, "n_positions": 64}
IMAGES = {**{k: v for k, v in SIZES.items() if k[0] in "hin"}, "image_size": 32, "patch_size": 8}
CAUSAL = {**SIZES, "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0}
EXPERTS = {
    **CAUSAL,
    **dict.fromkeys(("num_local_experts", "num_experts"), 4),
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}

TEXT_MODELS = {
    **dict.fromkeys(("Bert", "Roberta", "Electra", "DistilBert", "Albert", "MPNet"), SIZES),
    **dict.fromkeys(("Camembert", "XLMRoberta", "Ernie", "GPTNeoX"), SIZES),
    **dict.fromkeys(("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma"), CAUSAL),
    **dict.fromkeys(("Mixtral", "Qwen3Moe", "GptOss"), EXPERTS),
    "GPT2": GPT,
    "GPTNeo": {**SIZES, "num_layers": 2, "num_heads": 4, "attention_types": [[["global"], 2]]},
    "Mpt": {
        "d_model": 64,
        "n_heads": 4,
        "n_layers": 2,
        "max_seq_len": 64,
        "vocab_size": VOCABULARY,
    },
}
IMAGE_MODELS = dict.fromkeys(("ViT", "DeiT", "Dinov2", "Beit"), IMAGES)
OWN_SIZES: dict[str, dict[str, Any]] = {
    "DistilBert": {"dim": 64, "hidden_dim": 128, "n_layers": 2, "n_heads": 4},
    "Albert": {"embedding_size": 32},
    "Electra": {"embedding_size": 32},
}

TIMM_MODELS = (
    *("resnet10t", "mobilenetv3_small_050", "efficientnet_b0", "regnetx_002", "convnext_atto"),
    *("vit_tiny_patch16_224", "deit_tiny_patch16_224", "mixer_s32_224", "resmlp_12_224"),
    *("ghostnet_050", "mnasnet_small", "lcnet_050", "tinynet_e", "fbnetc_100", "hardcorenas_a"),
    *("edgenext_xx_small", "mobilevit_xxs", "poolformerv2_s12", "gmlp_ti16_224"),
)
SIDE = 64
"""Pixels along an image of timm's networks."""

Case = tuple[str, Callable[[], tuple[Any, tuple[Any, ...]]]]


def missing(package: str) -> bool:
    """Whether a package is not there; says so."""
    absent = importlib.util.find_spec(package) is None
    if absent:
        print(f"{package} is not installed: its networks are left out", file=sys.stderr)
    return absent


def first_result(network: Any) -> Any:
    """A module that returns the first tensor of what a network returns."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network.eval()

        def forward(self, *inputs: Any) -> Any:
            result = self.network(*inputs)
            return result if torch.is_tensor(result) else result[0]

    return First().eval()


def transformer(name: str, attention: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    import transformers

    sizes = {**(TEXT_MODELS | IMAGE_MODELS)[name], **OWN_SIZES.get(name, {})}
    if name in TEXT_MODELS:
        sizes["use_cache"] = False
        inputs = (torch.randint(1, VOCABULARY, (1, TOKENS)),)
    else:
        inputs = (torch.randn(1, 3, 32, 32),)
    config = getattr(transformers, f"{name}Config")(**sizes)
    config._attn_implementation = attention
    return first_result(getattr(transformers, f"{name}Model")(config)), inputs


def of_timm(name: str) -> tuple[Any, tuple[Any, ...]]:
    import timm
    import torch

    sized = bool(re.match("vit|deit|mixer|resmlp|gmlp", name))
    network = timm.create_model(name, num_classes=10, **({"img_size": SIDE} if sized else {}))
    return network.eval(), (torch.randn(1, 3, SIDE, SIDE),)


def unet() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from diffusers import UNet2DConditionModel

    network = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=32,
        attention_head_dim=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    return first_result(network), (
        torch.randn(1, 4, 8, 8),
        torch.tensor([7]),
        torch.randn(1, 5, 32),
    )


def dit() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from diffusers import DiTTransformer2DModel

    network = DiTTransformer2DModel(
        num_attention_heads=4, attention_head_dim=16, num_layers=2, sample_size=8, patch_size=2
    )
    inputs = (torch.randn(1, 4, 8, 8), torch.tensor([7]), torch.tensor([3]))

    class Ordered(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network.eval()

        def forward(self, image: Any, time: Any, label: Any) -> Any:
            return self.network(image, timestep=time, class_labels=label, return_dict=False)[0]

    return Ordered().eval(), inputs


def cases() -> Iterator[Case]:
    """Names of networks, and what makes each with its inputs."""
    if not missing("transformers"):
        import transformers

        for name in (*TEXT_MODELS, *IMAGE_MODELS):
            # MPNet has no spelling by scaled_dot_product_attention.
            has_sdpa = getattr(transformers, f"{name}Model")._supports_sdpa
            for attention in ("sdpa", "eager") if has_sdpa else ("eager",):
                yield f"transformers {name} {attention}", partial(transformer, name, attention)
    if not missing("timm"):
        for name in TIMM_MODELS:
            yield f"timm {name}", partial(of_timm, name)
    if not missing("diffusers"):
        yield "diffusers UNet2DConditionModel", unet
        yield "diffusers DiTTransformer2DModel", dit


def differs(errors: Any, precision: str) -> bool:
    """Whether errors are beyond the tolerance of a precision."""
    try:
        check.require(errors, precision)
    except CheckFailed:
        return True
    return False


def outcome(network: Any, inputs: tuple[Any, ...], precision: str, cores: int) -> tuple[bool, str]:
    """Whether a network runs right, and its error or what stopped it. Right is also one of which
    the run says that values left the range of f16, and that comes out with what it advises."""
    import torch

    with torch.no_grad():
        wanted = network(*inputs).numpy()
    try:
        executable = davinci.compile(
            network, example_inputs=inputs, precision=precision, cores=cores
        )
        arrays = (value.numpy() for value in inputs)
        found = executable.run(dict(zip(executable.input_names, arrays, strict=True)))
        errors = check.compare({"y": next(iter(found.values()))}, {"y": wanted})
        lost = range_summary(executable.profile)
        if lost and differs(errors, precision) and precision != "fp32":
            right, text = outcome(network, inputs, "fp32", cores)
            return right, f"{lost} ({text})"
        check.require(errors, precision)
    except DavinciError as error:
        return False, str(error).splitlines()[0][:300]
    except Exception as error:  # an internal error is what this looks for
        return False, f"{type(error).__name__}: {error}"[:300]
    return True, f"relative error {errors['max_rel_err']:.2g}, cosine {errors['cosine']:.6f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="networks to run")
    parser.add_argument("--precision", default="mixed,fp16")
    parser.add_argument("--cores", type=int, default=4)
    options = parser.parse_args()
    if missing("torch"):
        return 2
    import torch

    total = failed = 0
    for name, make in cases():
        if not re.search(options.only, name):
            continue
        torch.manual_seed(0)
        np.random.seed(0)
        try:
            network, inputs = make()
        except Exception as error:  # another version of its package
            total, failed = total + 1, failed + 1
            print(f"{name:38} not made  {type(error).__name__}: {error}"[:300], flush=True)
            continue
        for precision in options.precision.split(","):
            right, text = outcome(network, inputs, precision, options.cores)
            total, failed = total + 1, failed + (not right)
            print(f"{name:38} {precision:6} {'right' if right else 'WRONG'}  {text}", flush=True)
    print(f"{total} runs, {failed} not right")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
