"""Makes one launch of any two calls of kernels of random networks: which races are found?

    python benchmarks/proofs/check_stages.py [networks] [seed] [--write]

Which pairs race is worked out byte by byte from what each kernel touches alone
(test/fuzz/stage_mutation.py). Prints the numbers; --write puts them into docs/checks.md. Exits with
1 if a race escapes, or if the simulator reports kernels that share no byte.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

from fuzz import stage_mutation

NETWORKS, SEED = 40, 1


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", type=int, nargs="?", default=NETWORKS, metavar="NETWORKS")
    parser.add_argument("seed", type=int, nargs="?", default=SEED, metavar="SEED")
    options = parser.parse_args()
    start = time.process_time()
    counts = stage_mutation.judge(options.seed, options.networks)
    said = ", ".join(f"{kind} {counts[kind]}" for kind in stage_mutation.OUTCOMES)
    pairs = sum(counts.values())
    lines = [f"{options.networks} networks, {pairs} pairs of kernels in one launch: {said}"]
    command = f"check_stages.py {options.networks} {options.seed}"
    put("STAGES", command, lines, time.process_time() - start, options.write)
    return int(bool(counts["escaped"] or counts["false alarm"]))


if __name__ == "__main__":
    sys.exit(main())
