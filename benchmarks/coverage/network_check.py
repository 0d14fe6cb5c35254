"""Every network of the zoo and the light networks of the onnx package against onnxruntime.

    python benchmarks/coverage/network_check.py [network ...] [--machine NAME] [--poison]
                                                [--write | --quantize]

Each is compiled, simulated with data and all checks, and compared as `npu-run --check` does; beside
that the share of its cycles that kernels on the scalar unit take. Networks are named as npu-run
names them. --write writes the rows into the section of the machine in docs/network-check.md, in
place of those of the same networks. Takes half an hour for all. With --poison bytes of
the arena that no value needs are filled with 0xFF before each launch (`Executable.poison`).

--quantize has the networks of the zoo with products of bytes instead, calibrated with two random
samples: bytes may be the neighbours of onnxruntime's (docs/quantization.md), so that errors are
held against what fp16 may have.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx

import davinci
from davinci import job
from davinci.errors import DavinciError
from davinci.reference import check

PAGE = Path(__file__).parents[2] / "docs" / "network-check.md"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

ZOO = (
    "mlp",
    "bert-tiny",
    "bert,layers=1,hidden=256,heads=4,seq=64",
    "resnet18,resolution=64",
    "resnet50,resolution=64",
    "resnext50,resolution=32",
    "resnext101,resolution=32",
    "vgg16,resolution=32",
    "mobilenet-v1,resolution=64",
    "mobilenet-v2,resolution=64",
    "mobilenet-v3,resolution=64",
    "shufflenet-v2,resolution=64",
    "squeezenet,resolution=64",
    "googlenet,resolution=64",
    "inception-v3,resolution=79",
    "inception-v4,resolution=79",
    "nasnet-mobile,resolution=64,cells=1",
    "nasnet-large,resolution=64,filters=44,cells=2",
    "pnasnet-mobile,resolution=64,cells=2",
    "pnasnet-large,resolution=64,filters=54,cells=1",
    "randwire,resolution=64,nodes=12",
    "xception,resolution=64,middle=2",
    "densenet,resolution=32",
    "efficientnet,resolution=64",
    "convnext,resolution=64",
    "vit,resolution=64,depth=2",
    "swin,resolution=64,window=2",
    "unet,resolution=64,width=16",
    "deeplab-v3,resolution=65",
    "yolo,resolution=64,width=16",
    "gpt2,layers=1,vocab=1000",
    "gpt2-decode,layers=1,vocab=1000",
    "llama",
    "llama,seq=1,past=127",
    "mixtral,hidden=256,heads=4,kv_heads=2,intermediate=256",
    "mmoe",
    "lstm",
    "lstm,directions=2,batch=16",
    "gru",
)
"""All networks, small where that leaves their operators as they are."""

PAST_F16 = ("alexnet", "inception_v1", "resnet50", "squeezenet", "vgg19", "zfnet512")
"""Light networks whose weights, 0.02 all of them, make values of up to 1e31: no fp16 holds them."""

INTRODUCTION = """# Networks against onnxruntime

Made by `python benchmarks/coverage/network_check.py --machine NAME --write`; do not edit. Each
network is compiled, simulated with data and all checks, and compared with onnxruntime on random
inputs, as `npu-run --check` does.

* `precision`: of the light networks of the onnx package those are computed in fp32 whose weights,
  which are all 0.02, make values that fp16 does not hold, up to 1e31. Channels of these networks
  are all the same, and so are most outputs: they show that graphs compile and run, and little more.
* `check`: the least cosine and the largest error, as a share of the largest value, of all outputs.
* `kernels`: launches; `scalar`: share of the cycles that kernels on the scalar unit take.
* `seconds`: to compile and to simulate, on a processor that others use, too.
"""

HEAD = """| network | precision | check | cosine | largest error | kernels | scalar | seconds |
|---|---|---|---:|---:|---:|---:|---:|
"""


def page_with(text: str, machine: str, rows: Sequence[str]) -> str:
    """The page `text` with rows of a machine: new ones, and where there is no new one the old."""
    sections = {}
    for section in text.split("\n## ")[1:]:
        name, _, table = section.partition("\n")
        lines = [line for line in table.splitlines() if line.startswith("| ")]
        sections[name] = {network_of(line): line for line in lines[1:]}
    sections.setdefault(machine, {}).update({network_of(row): row for row in rows})
    tables = (
        f"\n## {name}\n\n{HEAD}" + "\n".join(found.values()) for name, found in sections.items()
    )
    return INTRODUCTION + "\n".join(tables) + "\n"


def network_of(row: str) -> str:
    return row.split("|")[1].strip()


SAMPLES = 2
"""That networks are calibrated with."""


def quantized(source: job.Source) -> job.Source:
    """A network of the zoo of bytes."""
    proto = source.proto()
    assert proto is not None and source.example is not None, "networks of the zoo are both"
    samples = [source.example(seed) for seed in range(SAMPLES)]
    return replace(source, model=davinci.quantize(proto, samples, layers="all").model)


def row_of(network: str, machine: str, of_bytes: bool = False, poison: bool = False) -> str:
    """The row of a network, which says what is wrong where it does not pass."""
    start = time.perf_counter()
    name = network if network.endswith(".onnx") else f"zoo:{network}"
    title = Path(network).stem if network.endswith(".onnx") else network
    precision = "fp32" if title.endswith(PAST_F16) else "mixed"
    try:
        source = job.open_source(name)
        source = quantized(source) if of_bytes else source
        result = job.run(
            source,
            inputs=None,
            seed=0,
            reference=job.reference_of(source),
            timeline="none",
            progress=lambda text: None,
            machine=machine,
            precision=precision,
            poison=poison,
        )
    except DavinciError as error:
        return f"| {title} | {precision} | fails: {error} | | | | | |"
    record = result.record
    try:
        check.require(record["check"], "fp16" if of_bytes else record["precision"])
        verdict = "passes"
    except DavinciError as error:
        verdict = f"fails: {error}"
    scalar = sum(row["cycles"] for row in record["kernels"] if row["unit"] == "scalar")
    cells = (
        title,
        precision,
        verdict,
        f"{record['check']['cosine']:.7f}",
        f"{record['check']['max_rel_err']:.2g}",
        f"{record['ops']['total']:,}",
        f"{scalar / max(1, record['total_cycles']):.1%}",
        f"{time.perf_counter() - start:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", nargs="*", metavar="network", help="default: all")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--poison", action="store_true", help="spoil bytes that no value needs")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--write", action="store_true")
    ways.add_argument("--quantize", action="store_true")
    options = parser.parse_args()
    light = [] if options.quantize else sorted(map(str, LIGHT.glob("light_*.onnx")))
    rows = []
    for network in options.networks or [*ZOO, *light]:
        rows.append(row_of(network, options.machine, options.quantize, options.poison))
        print(rows[-1], flush=True)
    if options.write:
        text = page_with(PAGE.read_text(encoding="utf-8"), options.machine, rows)
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
