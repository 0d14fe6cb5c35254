"""Random ONNX networks against onnxruntime, in few launches and in many, on 1 to 32 cores.

    python benchmarks/proofs/launches.py [--first SEED] [--count N] [--seconds T]

Each draw (test/random_models.py) is compiled four ways, whose results must all be onnxruntime's:
its launches joined for two numbers of cores, one launch a kernel, and as the compiler thinks best.
Exits with 1 if any is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from random_draws import Draw, search

import random_models


def draw(seed: int) -> Draw:
    """One network and how it is checked."""
    model = random_models.Draw(seed).model()
    return Draw(model.kind, model.text, model.check)


if __name__ == "__main__":
    sys.exit(search(str(__doc__).partition("\n\n")[0], draw, count=300))
