"""Machine files edited at random compile networks right, or are refused by name.

    python benchmarks/proofs/machine_edits.py [--first SEED] [--count N] [--machine NAME]
                                              [--networks TEXT ...] [--keep DIR]

Each edit (test/random_machines.py) changes one to three values of a machine file within its schema.
With it networks of the zoo compile, run with all checks and agree with onnxruntime, or the file is
refused before their compilation begins. Prints each edit and what became of it; --keep writes files
that failed. Exits with 1 if any did.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from random_draws import outcome

from davinci import machine as machines
from davinci import zoo
from random_machines import edited, toml, try_machine

NETWORKS = ("bert-tiny", "resnet18,resolution=64")


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="edits of each file")
    parser.add_argument("--machine", choices=machines.names(), help="default: all of them")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="TEXT")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    options = parser.parse_args()
    networks = {text: zoo.build(text) for text in options.networks}
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="davinci-") as folder:
        for name in [options.machine] if options.machine else machines.names():
            for seed in range(options.first, options.first + options.count):
                data, words = edited(name, seed)
                path = Path(folder) / f"{name}_{seed}.toml"
                path.write_text(toml(data), encoding="utf-8")
                found = {}
                for text, network in networks.items():
                    try:
                        found[text] = try_machine(path, network)
                    except Exception as error:  # of any kind: each is counted
                        kind = outcome(error)
                        found[text] = f"{kind}: {type(error).__name__}: {error}"
                        if options.keep:
                            options.keep.mkdir(parents=True, exist_ok=True)
                            (options.keep / path.name).write_text(toml(data), encoding="utf-8")
                    counts[found[text].partition(":")[0]] += 1
                said = "; ".join(dict.fromkeys(found.values()))
                print(f"{name} {seed}: {words}: {said}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return int(any(kind not in ("right", "refused") for kind in counts))


if __name__ == "__main__":
    sys.exit(main())
