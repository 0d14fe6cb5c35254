"""What the benchmarks of whole networks of the zoo share: their arguments, and their pages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import davinci

NETWORKS = (
    "mlp",
    "bert-tiny",
    "bert,layers=2,hidden=768,heads=12,seq=128",
    "bert-base,seq=512",
    "lstm",
    "lstm,batch=16",
    "lstm,directions=2",
    "gru",
    "resnet18",
    "resnet50",
    "resnext50",
    "vgg16",
    "mobilenet-v1",
    "mobilenet-v2",
    "mobilenet-v3",
    "shufflenet-v2",
    "squeezenet",
    "googlenet",
    "inception-v3",
    "inception-v4",
    "nasnet-mobile,cells=1",
    "pnasnet-mobile,cells=1",
    "randwire",
    "densenet",
    "efficientnet",
    "xception,middle=2",
    "convnext,resolution=64",
    "vit,depth=2",
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
)
"""Every network of the zoo, some in two sizes, some smaller than they are used."""

NAME_WIDTH = max(map(len, NETWORKS))


def parser_of_networks(description: str, default: str) -> argparse.ArgumentParser:
    """Arguments of a benchmark that prints a table of networks, and writes it to a page.

    Args:
        description: what the benchmark is for, in one line.
        default: which networks it takes where none are named.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "networks", nargs="*", metavar="network", help=f"of the zoo; default: {default}"
    )
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--cores", type=int, default=0, help="0: all of the machine")
    parser.add_argument("--write", action="store_true")
    return parser


def write_page(
    page: Path, introduction: str, lines: Sequence[str], options: argparse.Namespace
) -> None:
    """Writes a table under an introduction that names the machine and the price of a launch."""
    machine = davinci.machine.load(options.machine)
    cores = options.cores or machine.cores
    head = introduction.format(
        machine=f"{machine.name}, {cores} cores", overhead=machine.launch.overhead_us
    )
    table = "\n".join(lines)
    page.write_text(f"{head}\n```\n{table}\n```\n", encoding="utf-8")
