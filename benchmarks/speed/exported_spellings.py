"""Networks as PyTorch exports them: what one spelling may take more than another, and cliffs.

    python benchmarks/speed/exported_spellings.py [--machine NAME] [--only TEXT]

Small networks of transformers with random weights, exported by torch.export and simulated without
data on all cores. A line shows the cycles of a network, how many are allowed, as a multiple of what
the same network takes in another element type or another spelling of attention, the cycles in
kernels of the scalar unit, and the kernels that take more than 20,000 cycles and 20 times their
bound, of which none is allowed. Exits with 1 if a network takes more than is allowed. Needs torch
and transformers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from timed import timed

MOST_TIMES, MOST_CYCLES = 20, 20000
"""A kernel above both is a cliff."""

TOKENS, VOCABULARY = 64, 1000

TRANSFORMER = {
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
    "use_cache": False,
}
MAMBA = {
    "hidden_size": 128,
    "num_heads": 4,
    "head_dim": 64,
    "state_size": 64,
    "n_groups": 1,
    "num_hidden_layers": 1,
    "chunk_size": 32,
    "vocab_size": VOCABULARY,
    "use_cache": False,
}


class First(torch.nn.Module):
    """Returns the first tensor of what a network returns."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network.eval()

    def forward(self, *inputs: Any) -> Any:
        return self.network(*inputs)[0]


def of_transformers(name: str, dtype: torch.dtype, attention: str, **sizes: Any) -> First:
    config = getattr(transformers, f"{name}Config")(**sizes)
    config._attn_implementation = attention
    return First(getattr(transformers, f"{name}Model")(config).to(dtype)).eval()


@dataclass(frozen=True)
class Exported:
    """A network and what it may take.

    Attributes:
        times: cycles allowed as a multiple of those of `against`; 0 if only cliffs count.
    """

    name: str
    make: Callable[[], First]
    times: float = 0.0
    against: str = ""


NETWORKS = (
    Exported(
        "Llama of 2 layers in fp16",
        lambda: of_transformers("Llama", torch.float16, "sdpa", **TRANSFORMER),
    ),
    Exported(
        "Llama of 2 layers in bf16",
        lambda: of_transformers("Llama", torch.bfloat16, "sdpa", **TRANSFORMER),
        1.1,
        "Llama of 2 layers in fp16",
    ),
    Exported(
        "BERT of 2 layers, eager",
        lambda: of_transformers("Bert", torch.float32, "eager", **TRANSFORMER),
    ),
    Exported(
        "BERT of 2 layers, SDPA",
        lambda: of_transformers("Bert", torch.float32, "sdpa", **TRANSFORMER),
        1.05,
        "BERT of 2 layers, eager",
    ),
    Exported(
        "Mamba-2, one block", lambda: of_transformers("Mamba2", torch.float32, "eager", **MAMBA)
    ),
)


def cliffs_of(profile: dict[str, Any]) -> list[str]:
    """Names of kernels above the line."""
    return [
        f"{k['name']} ({k['cycles']:,}, bound {k['bound_cycles']:,})"
        for k in profile["kernels"]
        if k["cycles"] > MOST_CYCLES and k["cycles"] > MOST_TIMES * k["bound_cycles"]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--only", default="", help="networks whose names contain this")
    options = parser.parse_args()
    line = "{:<30} {:>10} {:>10} {:>12} {}"
    print(line.format("network", "cycles", "allowed", "scalar unit", "above the line"))
    cycles: dict[str, int] = {}
    over = 0
    for each in (each for each in NETWORKS if options.only in each.name):
        torch.manual_seed(0)
        tokens = (torch.randint(1, VOCABULARY, (1, TOKENS)),)
        profile = timed(
            each.make(), launches="auto", machine=options.machine, example_inputs=tokens
        ).profile
        found = cycles[each.name] = profile["total_cycles"]
        most = int(each.times * cycles.get(each.against, 0))
        above = cliffs_of(profile)
        over += bool(above) or 0 < most < found
        scalar = sum(k["cycles"] for k in profile["kernels"] if k["unit"] == "scalar")
        cells = (f"{n:,}" for n in (found, most, scalar))
        print(line.format(each.name, *cells, "; ".join(above) or "none"), flush=True)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
