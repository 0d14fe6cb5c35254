"""Random scans of JAX against JAX, with all checks of the machine.

    python benchmarks/proofs/loops.py [--first SEED] [--count N]

Each draw (test/random_loops.py) is a loop whose new states and outputs are any values of a step.
Exits with 1 if any is wrong. Needs JAX (`pip install '.[jax]'`).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from davinci.errors import DavinciError
from random_loops import RandomLoop


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    found = Counter[str]()
    for seed in range(options.first, options.first + options.count):
        loop = RandomLoop(seed)
        try:
            found["right" if loop.check(cores=2) else "too large"] += 1
        except (AssertionError, DavinciError) as error:
            found["wrong"] += 1
            print(f"seed {seed}: {loop.text}: {error}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in sorted(found.items())))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
