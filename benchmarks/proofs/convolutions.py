"""Random convolutions and pools against onnxruntime, on every machine, with all checks.

    python benchmarks/proofs/convolutions.py [--first SEED] [--count N] [--seconds T]

Each draw (test/random_convolutions.py) is a layer of random parameters on small images of whole
numbers, whose results are exact; it runs on each machine in turn. Exits with 1 if any is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from random_draws import search_layers

import random_convolutions

if __name__ == "__main__":
    sys.exit(search_layers(str(__doc__).partition("\n\n")[0], random_convolutions, count=2000))
