"""Networks placed on several devices and run there with data: equal to the unplaced ones.

    python benchmarks/proofs/placed_networks.py [SPEC ...]

Prices small networks of the zoo on the two cores of a 310, and on AI cores and vector cores of a
310P, places them by every algorithm, runs each layer on its device, and compares the outputs with
onnxruntime's. Plans that put all layers where another did are run once. Exit code 1 if any differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from davinci.errors import CheckFailed
from davinci.placement import ALGORITHMS, faults, place
from davinci.placement import devices as device_files
from davinci.placement.priced import price

FOLDER = Path(__file__).parents[1] / "speed" / "devices"
NETWORKS = (
    "mmoe,experts=4,batch=16",
    "lstm,steps=2,hidden=32,features=32,unrolled=1",
    "squeezenet,resolution=64",
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("specs", nargs="*", metavar="SPEC", default=NETWORKS)
    wrong = 0
    for spec in parser.parse_args().specs:
        for file in ("ascend310-cores", "ascend310p-cores"):
            devices = device_files.load(str(FOLDER / f"{file}.toml"))
            priced = price(f"zoo:{spec}", devices)
            done: dict[tuple[int, ...], str] = {}
            for algorithm in ALGORITHMS:
                plan = place(priced.problem, algorithm)
                said = "; ".join(faults(plan))
                if not said and plan.devices in done:
                    said = f"as {done[plan.devices]}"
                elif not said:
                    done[plan.devices] = algorithm
                    errors = priced.compared(priced.run_plan(plan))
                    said = f"cosine {errors['cosine']:.6f}"
                    try:
                        priced.require_close(errors)
                    except CheckFailed as error:
                        wrong += 1
                        said = f"WRONG: {error.message}"
                layers = " + ".join(str(len(queue)) for queue in plan.queues)
                print(f"{spec:48} {file:18} {algorithm:8} {layers:14} {said}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
