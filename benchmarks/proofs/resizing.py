"""Random nodes Resize of ONNX against onnxruntime, and where ONNX's reference differs from both.

    python benchmarks/proofs/resizing.py [--first SEED] [--count N] [--compile]

Draws every mode, coordinate transformation, rounding, size, scale, policy, region, layout and
element type (test/random_resizes.py). StableHLO's interpreter runs what the importer makes of them,
25 nodes in about a second; --compile runs them on the simulated machine instead. Prints each node
that differs from onnxruntime, and for each coordinate transformation how many of its nodes ONNX's
reference implementation computes otherwise than onnxruntime, or not at all; the importer's module
says why. Exits with 1 if any differs from onnxruntime.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from davinci.reference import check
from onnx_support import reference, run
from random_resizes import DrawnResize, difference, differences, draw, imported

BATCH = 25


def reference_differs(drawn: DrawnResize) -> str:
    """How ONNX's reference stands to onnxruntime for a node, as a word of the table."""
    model, inputs = drawn.model()
    try:
        found = reference(model, inputs)["y0"]
    except (ValueError, RuntimeError, IndexError):
        return "refused"
    wanted = check.reference_onnx(model, inputs)["y0"]
    return "other" if difference(found, wanted) else "same"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--compile", action="store_true", help="run compiled kernels")
    options = parser.parse_args()
    failed, words = 0, Counter[tuple[str, str]]()
    end = options.first + options.count
    for first in range(options.first, end, BATCH):
        nodes = [draw(seed) for seed in range(first, min(first + BATCH, end))]
        for line in differences(nodes, run if options.compile else imported):
            failed += 1
            print(line, flush=True)
        for node in nodes:
            way = node.attributes["coordinate_transformation_mode"]
            words[way, reference_differs(node)] += 1
    print(f"{options.count} nodes, {failed} differ from onnxruntime")
    for way in sorted({way for way, _ in words}):
        same, other, refused = (words[way, word] for word in ("same", "other", "refused"))
        total = same + other + refused
        print(f"{way:21} the reference differs in {other} of {total}, refuses {refused}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
