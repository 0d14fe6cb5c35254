"""npu-split: where to cut a network between two devices, and what that gives."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from davinci import errors
from davinci.tools.command import Parser, guarded
from davinci.tools.npu_profile import DEVICES, OBJECTIVES

if TYPE_CHECKING:
    from davinci.placement.devices import DeviceFile, DeviceLink
    from davinci.placement.split import NetworkCut

EPILOG = f"""\
{DEVICES}
The layers up to the cut run on the first device, the others on the second. LINK is one of 3g, 4g,
wifi and pcie3x4, or left out where a .toml file of devices has one.

exit codes: 0 good, 1 check failed, 2 bad usage or input, 3 cannot compile, 4 device fault
"""


def make_parser() -> Parser:
    parser = Parser(
        prog="npu-split",
        usage="npu-split MODEL --devices A,B --link LINK [options]",
        description="Finds where to cut a network between two devices; tries every place.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help="an ONNX network, see below")
    add("--devices", metavar="A,B", help="the first has the input; see below")
    add("--link", metavar="LINK", help="between them, see below")
    add(
        "--objective",
        choices=OBJECTIVES,
        default="latency",
        help="what the best cut has least of: latency (default), or energy of A and the link",
    )
    add("--cut", metavar="LAYER", help="take the cut behind this layer instead of the best one")
    add("--check", action="store_true", help="run the cut, and compare with onnxruntime")
    add("--seed", type=int, default=0, metavar="N", help="of random inputs")
    add("--json", metavar="F", help="write all cuts and the best one")
    parser.add_help_and_version()
    return parser


@guarded
def main(argv: list[str] | None = None) -> int:
    """The command; returns the exit code of the contract in `davinci.errors`."""
    parser = make_parser()
    options = parser.options(argv)
    if options is None:
        return errors.EXIT_OK
    parser.require(options, model="MODEL", devices="--devices")
    return execute(options)


def execute(options: Any) -> int:
    from davinci.files import write_json
    from davinci.placement.priced import devices_of, price, require_runnable
    from davinci.placement.split import best_split, splits
    from davinci.tools.progress import Progress

    devices = devices_of(options.devices, options.model, [options.json])
    if len(devices.devices) != 2:
        raise errors.InputError(
            "a network is cut between two devices",
            where="--devices",
            found=str(len(devices.devices)),
            expected="2",
        )
    link = link_of(options.link, devices)
    if options.check:
        require_runnable(devices, "--check", "leave out --check")
    checked = None
    with Progress() as progress:
        priced = price(options.model, devices, options.seed, progress)
        if options.objective == "energy":
            priced.require_energy()
        tried = splits(priced.of_device(0), priced.of_device(1), priced.network, link)
        best = best_split(tried, options.objective)
        chosen = best if options.cut is None else cut_named(tried, options.cut)
        if options.check:
            first, second = devices.devices
            parts = ((range(chosen.here), first), (range(chosen.here, len(tried) - 1), second))
            checked = priced.compared(priced.run(parts, progress))
    if options.json is not None:
        write_json(options.json, record_of(options, devices, link, tried, best, chosen, checked))
    show(devices, tried, best, chosen, options.objective)
    if checked is not None:
        print_errors(checked)
        priced.require_close(checked)
    return errors.EXIT_OK


def print_errors(checked: dict[str, float]) -> None:
    """Prints how far outputs are from those of onnxruntime."""
    print(f"check: cosine {checked['cosine']:.6f}, largest error {checked['max_rel_err']:.2e}")


def cut_named(tried: list[NetworkCut], name: str) -> NetworkCut:
    """The cut behind the layer of that name; "input" in front of all.

    Raises:
        InputError: there is no such layer.
    """
    names = [split.last for split in tried]
    if name not in names:
        raise errors.InputError(
            "no such layer to cut behind",
            where="--cut",
            found=repr(name),
            expected="a name in the first column of the table",
            hint=errors.did_you_mean(name, names),
        )
    return tried[names.index(name)]


def link_of(name: str | None, devices: DeviceFile) -> DeviceLink:
    """The link between the two devices.

    Raises:
        InputError: it is not known, or neither the command nor the file has one.
    """
    from davinci.placement.devices import LINKS

    if name is not None:
        if name not in LINKS:
            raise errors.InputError(
                "no such link",
                where="--link",
                found=repr(name),
                expected=", ".join(LINKS),
                hint=errors.did_you_mean(name, list(LINKS)),
            )
        return LINKS[name]
    first, second = (device.name for device in devices.devices)
    link = devices.link(first, second)
    if link is None:
        raise errors.InputError(
            f"{first} and {second} are not linked",
            where="--link",
            expected=f"one of {', '.join(LINKS)}, or a [[links]] entry of a .toml file",
        )
    return link


def record_of(
    options: Any,
    devices: DeviceFile,
    link: DeviceLink,
    tried: list[NetworkCut],
    best: NetworkCut,
    chosen: NetworkCut,
    checked: dict[str, float] | None,
) -> dict[str, Any]:
    """All cuts as data, the best one, and the one that was asked for or else is the best."""
    from davinci.placement.priced import milliseconds

    def data(split: NetworkCut) -> dict[str, Any]:
        return {
            "layers": split.here,
            "behind": split.last,
            "moved_bytes": split.moved_bytes,
            "milliseconds": milliseconds(split.seconds),
            "parts_milliseconds": [
                milliseconds(part)
                for part in (split.here_seconds, split.link_seconds, split.there_seconds)
            ],
            "joules": split.joules,
        }

    return {
        "schema_version": 1,
        "model": options.model,
        "objective": options.objective,
        "devices": [device.model_dump() for device in devices.devices],
        "link": link.model_dump(),
        "cuts": [data(split) for split in tried],
        "best": data(best),
        "chosen": data(chosen),
        "check": checked,
    }


def show(
    devices: DeviceFile,
    tried: list[NetworkCut],
    best: NetworkCut,
    chosen: NetworkCut,
    objective: str,
) -> None:
    """Prints the curve, the two ways without a cut, the best one, and the one asked for."""
    from rich.console import Console

    from davinci.report.terminal import Heading, table_of

    first, second = (device.name for device in devices.devices)
    energy = any(split.joules is not None for split in tried)
    headings = [
        Heading("cut behind", True, 3),
        Heading("KB moved", worth=1),
        *(Heading(f"{part} ms", worth=2) for part in (first, "link", second)),
        Heading("ms", worth=3),
        *([Heading("mJ", worth=3)] if energy else []),
        Heading("bar of ms", True),
    ]
    rows = []
    longest = max((s.seconds for s in tried if s.seconds != float("inf")), default=0.0)
    for split in tried:
        times = (split.here_seconds, split.link_seconds, split.there_seconds, split.seconds)
        cells = [split.last, f"{split.moved_bytes / 1e3:,.1f}", *(_ms(t) for t in times)]
        if energy:
            cells.append("-" if split.joules is None else f"{split.joules * 1e3:.3f}")
        known = split.seconds != float("inf")
        bar = "█" * max(1, round(BAR * split.seconds / longest)) if known and longest else ""
        rows.append([*cells, bar])
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    strong = {number for number, split in enumerate(tried) if split is best}
    console.print(table_of(headings, rows, console.width, strong=strong))
    console.print(f"all on {second}: {_ms(tried[0].seconds)} ms")
    console.print(f"all on {first}: {_ms(tried[-1].seconds)} ms")
    single = min(tried[0].seconds, tried[-1].seconds)
    for title, split in {f"best by {objective}": best, "chosen": chosen}.items():
        if title == "chosen" and chosen is best:
            continue
        where = {0: f"all on {second}", len(tried) - 1: f"all on {first}"}
        cut = where.get(split.here, f"cut behind {split.last}")
        ratio = f", {single / split.seconds:.2f} x the better single device"
        joules = "" if split.joules is None else f", {split.joules * 1e3:.3f} mJ"
        rate = ratio if split.seconds else ""
        console.print(f"{title}: {cut}, {_ms(split.seconds)} ms{joules}{rate}")


BAR = 20
"""Characters of the longest bar of the curve."""


def _ms(seconds: float) -> str:
    return "-" if seconds == float("inf") else f"{seconds * 1e3:.3f}"


if __name__ == "__main__":
    sys.exit(main())
