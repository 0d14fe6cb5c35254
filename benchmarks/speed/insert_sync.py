"""Seconds that insert-sync takes, and what it puts in: on generated kernels and those of a network.

    python benchmarks/speed/insert_sync.py [--most LEAVES] [--network NAME]

A leaf is an operation that touches memory. Generated kernels are interleaved tiles
(test/sync_kernels.py) in straight line, and as the body of a loop of unknown length, with three and
with six buffers for loads; the latter need more flags at a time than there are event ids.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from davinci import frontends, zoo
from davinci.dialects.base import attribute
from davinci.dialects.cce.effects import effects_of
from davinci.mlir import Op, ir, make_context, operations
from davinci.passes.analysis.kernels import kernels
from davinci.passes.cce.insert_sync import InsertSyncPass
from davinci.passes.cce.plan_memory import PlanMemoryPass
from davinci.passes.pipeline import pipelines, runner
from davinci.passes.pipeline.pipeline_text import ROOT
from sync_kernels import LEAVES, tiles_text

SIZES = (64, 128, 256, 512, 1000, 2000, 4000)
SLOTS = (3, 6)
DIALECTS = ("cce", "memref")
COLUMNS = ("leaves", "seconds", "flags", "barriers", "relays", "merged", "degraded")


def synchronise(kernel: Op) -> Counter[str]:
    """Runs insert-sync on one planned kernel; the columns of the table.

    Flags and relays are counted by the sets in the text. A relay sets a flag for a pipe without any
    operations.
    """
    leaves = [effects for op in operations(kernel, *DIALECTS) if (effects := effects_of(op))]
    pipes = {effects.pipe for effects in leaves}
    start = time.perf_counter()
    InsertSyncPass().run(kernel)
    seconds = time.perf_counter() - start
    count = Counter({"leaves": len(leaves), "seconds": seconds})
    for op in operations(kernel, *DIALECTS):
        if op.name == "cce.set_flag":
            ends = {attribute(op, "src"), attribute(op, "dst")}
            count["flags"] += ends <= pipes
            count["relays"] += attribute(op, "dst") not in pipes
        count["barriers"] += op.name == "cce.pipe_barrier"
    for name in ("merged", "degraded"):
        count[name] = attribute(kernel, f"cce.sync_{name}", 0)
    return count


def generated(leaves: int, loop: bool, slots: int) -> Counter[str]:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(tiles_text(-(-leaves // LEAVES), loop, slots))
        PlanMemoryPass().run(module.operation)
        return synchronise(kernels(module.operation)[0])


def of_network(name: str) -> Counter[str]:
    """The sums over its kernels."""
    module = frontends.load(zoo.build(name).proto, make_context())
    options = pipelines.Options()
    total: Counter[str] = Counter()
    with module.context, ir.Location.unknown():
        for stage in ("stablehlo-to-ascend", "ascend-to-memref", "ascend-to-cce"):
            steps = pipelines.PIPELINES[stage](options)
            before = [step for step in steps if not step.startswith(InsertSyncPass.NAME)]
            runner.run(module.operation, f"{ROOT}({','.join(before)})")
        for kernel in kernels(module.operation):
            total.update(synchronise(kernel))
    return total


def row(title: str, count: Counter[str]) -> str:
    cells = [f"{count[c]:>10.2f}" if c == "seconds" else f"{count[c]:>10}" for c in COLUMNS]
    return f"{title:<24}" + "".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--most", type=int, default=SIZES[-1], help="leaves of a generated kernel")
    parser.add_argument("--network", default="bert-tiny", help="of the zoo")
    arguments = parser.parse_args()
    sizes = [size for size in SIZES if size <= arguments.most]
    print(f"{'':<24}" + "".join(f"{name:>10}" for name in COLUMNS))
    for loop, name in ((False, "straight line"), (True, "in a loop")):
        for slots in SLOTS:
            for size in sizes:
                title = f"{name}, {slots} buffers"
                print(row(title, generated(size, loop, slots)), flush=True)
    print(row(arguments.network, of_network(arguments.network)))


if __name__ == "__main__":
    main()
