"""Replay: the instruction streams of all generated kernels, so that two commits can be compared.

    python benchmarks/proofs/streams.py --save before.json     # on one commit
    python benchmarks/proofs/streams.py --against before.json  # on another

Compiles networks of the zoo at small sizes and hashes the encoded records that every block of every
kernel issues. A change that only moves code leaves all of them as they are; any other one shows
here which kernels it touches. Exit code 1 if a stream differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

from davinci import compiler, frontends, zoo
from davinci.errors import CompileError, DeviceFault
from davinci.mlir import make_context
from davinci.runtime.jit import KernelLibrary
from davinci.runtime.listing import ListingCore, kernel_modules, record_stream

NETWORKS = (
    "mlp",
    "bert-tiny",
    "bert,layers=1,hidden=192,heads=3,seq=48,vocab=500",
)
VARIANTS: tuple[dict[str, object], ...] = (
    {},
    {"cores": 1},
    {"machine": "ascend310"},
    {"precision": "fp16"},
    {"precision": "fp32"},
    {"matmul_strategy": "is"},
    {"matmul_strategy": "ws", "fractalize": "naive"},
)
"""Options of the compiler that choose other kernels."""

Streams = dict[str, str]


def streams(network: str, options: dict[str, object]) -> Streams:
    """Hashes of the kernels of one network by their names."""
    module = frontends.load(zoo.build(network).proto, make_context(), None)
    try:
        compiler.lower(module, compiler.pipelines.Options(**options))
    except CompileError as error:
        return {"no kernels": str(error)}
    core = ListingCore()
    found: Streams = {}
    for owner, kernels in kernel_modules(module.operation):
        library = KernelLibrary(owner)
        for name, blocks in kernels.items():
            digest = hashlib.sha256()
            for block in range(blocks):
                try:
                    records = record_stream(library.programs[name], core, block, blocks)
                except DeviceFault:  # needs real data: what it issued until then
                    records = core.records()
                digest.update(records.tobytes())
            found[name] = f"{blocks}:{digest.hexdigest()[:24]}"
    return found


def everything() -> dict[str, Streams]:
    """The streams of all networks in all variants."""
    found = {}
    for network in NETWORKS:
        for options in VARIANTS:
            title = " ".join([network, *(f"{key}={value}" for key, value in options.items())])
            found[title] = streams(network, options)
    return found


def differences(before: dict[str, Streams], after: dict[str, Streams]) -> list[str]:
    """Lines that name the kernels whose streams are not the same."""
    lines = []
    for title in {**before, **after}:
        old, new = before.get(title, {}), after.get(title, {})
        changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        if changed:
            lines.append(f"{title}: {len(changed)} of {len(new)} kernels: {', '.join(changed)}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--save", type=Path, help="write the hashes to this file")
    parser.add_argument("--against", type=Path, help="compare with the hashes of this file")
    options = parser.parse_args()
    found = everything()
    print(f"{sum(map(len, found.values()))} kernels in {len(found)} compilations")
    if options.save:
        options.save.write_text(json.dumps(found, indent=1))
    if not options.against:
        return 0
    lines = differences(json.loads(options.against.read_text()), found)
    print("\n".join(lines) or "all streams are the same")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
