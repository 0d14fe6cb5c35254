"""Random 3x3 convolutions by tiles against the bound of their error, on every machine.

    python benchmarks/proofs/winograd.py [--first SEED] [--count N] [--seconds T]

Each draw (test/random_winograd.py) runs in one of both forms on each machine in turn, with all
checks. Exits with 1 if any is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from random_draws import search_layers

import random_winograd

if __name__ == "__main__":
    sys.exit(search_layers(str(__doc__).partition("\n\n")[0], random_winograd, count=500))
