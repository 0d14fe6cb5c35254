"""npu-split: where to cut a network between two devices, and what that gives."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from davinci import errors
from davinci.tools.command import Parser, guarded
from davinci.tools.npu_profile import DEVICES, OBJECTIVES, milliseconds, network_of, require_energy

if TYPE_CHECKING:
    from davinci.placement.devices import Device, DeviceFile, Link
    from davinci.placement.layers import Network
    from davinci.placement.split import Split

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
    add("--check", action="store_true", help="run the best cut, and compare with onnxruntime")
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
    from davinci.files import check_distinct, check_writable, write_json
    from davinci.placement import devices as device_files
    from davinci.placement.costs import Costs
    from davinci.placement.split import splits
    from davinci.tools.progress import Progress

    if options.json is not None:
        check_writable(options.json)
        check_distinct([options.json], [options.model])
    devices = device_files.parse(options.devices)
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
        network = network_of(options.model, options.seed)
        costs = Costs(network, devices, progress).all()
        require_energy(options.objective, costs)
        here, there = zip(*costs, strict=True)
        tried = splits(here, there, network, link)
        best = best_of(tried, options.objective)
        if options.check:
            checked = errors_of(network, best, devices.devices, progress)
    if options.json is not None:
        record = record_of(options, devices, link, tried, best, checked)
        write_json(options.json, record)
    show(devices, tried, best, options.objective)
    if checked is not None:
        require_close(checked, devices)
    return errors.EXIT_OK


def require_close(checked: dict[str, float], devices: DeviceFile) -> None:
    """Prints the errors of outputs.

    Raises:
        CheckFailed: they are larger than the precision of the devices allows.
    """
    from davinci.reference import check

    print(f"check: cosine {checked['cosine']:.6f}, largest error {checked['max_rel_err']:.2e}")
    check.require(checked, precision_of(devices))


def link_of(name: str | None, devices: DeviceFile) -> Link:
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


def require_runnable(devices: DeviceFile, where: str, hint: str) -> None:
    """Raises an `InputError` if a device only says how long layers take."""
    for device in devices.devices:
        if device.kind == "table":
            raise errors.InputError(
                "a table of latencies cannot run layers",
                where=where,
                found=device.name,
                hint=hint,
            )


def best_of(tried: list[Split], objective: str) -> Split:
    """The cut of the least latency or energy that both devices can run.

    Raises:
        CompileError: there is none.
    """
    able = [split for split in tried if split.seconds != float("inf")]
    if not able:
        raise errors.CompileError(
            "no cut can run", where="npu-split", hint="npu-profile says which layers cannot run"
        )
    if objective == "energy":
        return min(able, key=lambda split: (split.joules or 0.0, split.seconds))
    return min(able, key=lambda split: split.seconds)


def errors_of(
    network: Network, best: Split, devices: tuple[Device, ...], progress: Any
) -> dict[str, float]:
    """Errors of the network's outputs when its two parts run on their devices, against
    onnxruntime's."""
    from davinci.placement.parts import Parts
    from davinci.reference import check

    count = len(network.layers)
    parts = ((range(best.here), devices[0]), (range(best.here, count), devices[1]))
    inputs = {name: network.values[name] for name in network.inputs}
    found = Parts(network, parts, progress).run(inputs)
    return check.compare(found, {name: network.values[name] for name in network.results})


def precision_of(devices: DeviceFile) -> str:
    """The loosest precision of the devices that are simulated."""
    names = [d.precision for d in devices.devices if d.kind == "simulated"]
    return next((name for name in ("fp16", "mixed") if name in names), "fp32")


def record_of(
    options: Any,
    devices: DeviceFile,
    link: Link,
    tried: list[Split],
    best: Split,
    checked: dict[str, float] | None,
) -> dict[str, Any]:
    """All cuts as data."""

    def data(split: Split) -> dict[str, Any]:
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
        "check": checked,
    }


def show(devices: DeviceFile, tried: list[Split], best: Split, objective: str) -> None:
    """Prints the curve, the two ways without a cut, and the best one."""
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
    where = {0: f"all on {second}", len(tried) - 1: f"all on {first}"}
    cut = where.get(best.here, f"cut behind {best.last}")
    single = min(tried[0].seconds, tried[-1].seconds)
    ratio = f", {single / best.seconds:.2f} x the better single device" if best.seconds else ""
    joules = "" if best.joules is None else f", {best.joules * 1e3:.3f} mJ"
    console.print(f"best by {objective}: {cut}, {_ms(best.seconds)} ms{joules}{ratio}")


BAR = 20
"""Characters of the longest bar of the curve."""


def _ms(seconds: float) -> str:
    return "-" if seconds == float("inf") else f"{seconds * 1e3:.3f}"


if __name__ == "__main__":
    sys.exit(main())
