"""Random scans of JAX against JAX, with all checks of the machine.

    python benchmarks/proofs/loops.py [--first SEED] [--count N] [--seconds T]

Each draw (test/random_loops.py) is a loop whose new states and outputs are any values of a step;
those whose results are too large to say anything are not held against JAX's. Exits with 1 if any is
wrong. Needs JAX (`pip install '.[jax]'`).
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from random_draws import Draw, search

from random_loops import RandomLoop


def draw(seed: int) -> Draw:
    loop = RandomLoop(seed)
    return Draw("loops", loop.text, partial(loop.check, cores=2))


if __name__ == "__main__":
    sys.exit(search(str(__doc__).partition("\n\n")[0], draw, count=200))
