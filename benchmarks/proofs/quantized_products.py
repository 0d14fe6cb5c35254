"""Random products and convolutions of bytes against onnxruntime, to the last bit.

    python benchmarks/proofs/quantized_products.py [--first SEED] [--count N] [--seconds T]

MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv in turn (test/random_quantized.py), of any
zero points and scales, on each machine in turn, with all checks. Exits with 1 if any is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from random_draws import search_layers

import random_quantized

if __name__ == "__main__":
    sys.exit(search_layers(str(__doc__).partition("\n\n")[0], random_quantized, count=400))
