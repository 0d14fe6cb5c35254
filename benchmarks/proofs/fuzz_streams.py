"""Random bytes, instructions at their limits and damaged kernels as streams of instructions.

    python benchmarks/proofs/fuzz_streams.py [launches] [seed] [--write]

Every launch must end by itself or with a fault of the device: anything else (an exception of
another kind, a warning, a launch that does not end) stops this program with its traceback. Prints
the numbers; --write puts them into docs/checks.md.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import numpy as np
from checks_page import parser_of_figures, put

from davinci import machine as machines
from davinci import zoo
from davinci.isa.core import INSTRUCTIONS
from davinci.simulator import Device
from fuzz.damaged_streams import (
    EDGES,
    add,
    at_the_limits,
    damaged,
    damaged_team,
    launch,
    random_words,
)
from fuzz.interleaving_fuzz import SHAPES
from fuzz.random_cores import CoresPool, seats
from fuzz.recorded_kernels import record

CORES = [("ascend310", "AICORE"), ("ascend910", "AICORE"), ("ascend910b", "AIC")]
CORES += [("ascend910b", "AIV")]
NETWORK = "bert-tiny"
MOST_NAMED = 8


def main() -> None:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument("launches", type=int, nargs="?", default=20000, metavar="LAUNCHES")
    parser.add_argument("seed", type=int, nargs="?", default=1, metavar="SEED")
    options = parser.parse_args()
    launches, seed = options.launches, options.seed
    start = time.process_time()
    rng = np.random.default_rng(seed)
    devices = [(kind, Device(machines.load(name), 1 << 16)) for name, kind in CORES]
    kernels = record(zoo.build(NETWORK), cores=1)
    pool = CoresPool(rng, tries=16)
    records = list(INSTRUCTIONS.values())
    titles = ("random words", "instructions at their limits", f"damaged kernels of {NETWORK}")
    counts = {title: Counter[str]() for title in (*titles, "damaged programs for several cores")}
    words, limits, streams, teams = counts.values()
    for i in range(launches // 4):
        kind, device = devices[i % len(devices)]
        add(words, launch(device, {kind: random_words(rng, int(rng.integers(1, 4)), EDGES)}))
        blocks = int(rng.integers(1, 3))
        add(limits, launch(device, {kind: at_the_limits(rng, records[i % len(records)])}, blocks))
        kernel = kernels[i % len(kernels)]
        add(streams, launch(kernel.device, {"AICORE": damaged(rng, kernel.streams[0])}))
        add(teams, damaged_team(rng, pool, list(seats(*SHAPES[rng.integers(len(SHAPES))]))))
    lines = [f"{'':<36}{'launches':>10}{'ran':>8}{'fault':>8}"]
    for title, each in counts.items():
        total, ran = each.total(), each["ran"]
        lines.append(f"{title:<36}{total:>10}{ran:>8}{total - ran:>8}")
    faults = sum(counts.values(), Counter[str]())
    del faults["ran"]
    said = [f"{text} {count}" for text, count in faults.most_common(MOST_NAMED)]
    lines.append(f"faults: {', '.join(said)}, and {len(faults) - len(said)} other messages")
    command = f"fuzz_streams.py {launches} {seed}"
    put("STREAMS", command, lines, time.process_time() - start, options.write)


if __name__ == "__main__":
    main()
