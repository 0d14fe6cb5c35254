"""Random convolutions and pools against onnxruntime, on every machine, with all checks.

    python benchmarks/proofs/convolutions.py [--first SEED] [--count N] [--seconds T]

Each draw (test/random_convolutions.py) is a layer of random parameters on small images of whole
numbers, whose results are exact; it runs on each machine in turn. Exits with 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from davinci.errors import DavinciError
from random_convolutions import WAYS, Draw


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    began, found = time.monotonic(), Counter[str]()
    for seed in range(options.first, options.first + options.count):
        if time.monotonic() - began > options.seconds:
            break
        draw = Draw(seed)
        layer, way = draw.layer(), WAYS[seed % len(WAYS)]
        found[draw.kind] += 1
        try:
            layer.check(**way)
        except (AssertionError, DavinciError) as error:
            found["wrong" if isinstance(error, AssertionError) else "faults"] += 1
            print(f"seed {seed}, {way}: {layer.text}: {error}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in found.items()))
    return 1 if found["wrong"] or found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
