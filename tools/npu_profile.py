"""npu-profile: what each layer of a network takes on several devices."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from davinci import errors
from davinci.tools.command import Parser, guarded

if TYPE_CHECKING:
    from davinci.placement.priced import PricedNetwork

DEVICES = """\
MODEL is an .onnx file or zoo:NAME[,key=value...].

DEVICES is a .toml file with [[devices]] and [[links]], or names with commas between:
  ascend310, ...      that machine, simulated; ascend310p:vector is its vector cores
  host, host:4        this machine's own processor with 1 or 4 threads, measured
  NAME=TABLE.csv      times measured elsewhere: layer,device,seconds and, if known, joules
"""

EPILOG = f"""\
{DEVICES}
exit codes: 0 good, 2 bad usage or input, 3 cannot compile, 4 device fault
"""

OBJECTIVES = ("latency", "energy")


def make_parser() -> Parser:
    parser = Parser(
        prog="npu-profile",
        usage="npu-profile MODEL --devices DEVICES [options]",
        description="Says what each layer of a network takes on each device.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help="an ONNX network, see below")
    add("--devices", metavar="DEVICES", help="which ones, see below")
    add(
        "--objective",
        choices=OBJECTIVES,
        default="latency",
        help="what layers are compared by: latency (default) or energy",
    )
    add("--seed", type=int, default=0, metavar="N", help="of random inputs")
    add("--json", metavar="F", help="write the profile")
    add("--report", metavar="F.html", help="write the profile as a page with bars")
    add("--csv", metavar="F", help="write the profile as layer,device,seconds,joules")
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
    from davinci.files import write_atomically, write_json
    from davinci.placement.page import as_html
    from davinci.placement.priced import devices_of, price
    from davinci.tools.progress import Progress

    results = (options.json, options.csv, options.report)
    devices = devices_of(options.devices, options.model, results)
    with Progress() as progress:
        priced = price(options.model, devices, options.seed, progress)
    if options.objective == "energy":
        priced.require_energy()
    if options.json is not None:
        write_json(options.json, priced.record())
    if options.csv is not None:
        write_atomically(options.csv, priced.csv().encode())
    if options.report is not None:
        write_atomically(options.report, as_html(priced, options.objective).encode())
    show(priced, options.objective)
    return errors.EXIT_OK


def show(priced: PricedNetwork, objective: str) -> None:
    """Prints the layers with their share of each device's sum, and the sums."""
    from rich.console import Console

    from davinci.placement.page import amount
    from davinci.report.terminal import Heading, table_of

    network, devices, costs = priced.network, priced.devices, priced.costs
    headings = [Heading("layer", True, 5), Heading("operators", True, 2)]
    headings += [Heading("GFLOP", worth=1), Heading("MB", worth=1)]
    unit = "ms" if objective == "latency" else "mJ"
    for device in devices.devices:
        headings += [Heading(f"{device.name} {unit}", worth=4), Heading("%", worth=3)]
        if objective == "latency":
            headings.append(Heading("GFLOPS"))
    values = [[None if c.reason else amount(c, objective) for c in row] for row in costs]
    sums = [sum(v for v in column if v is not None) for column in zip(*values, strict=True)]
    rows = []
    for layer, row, cost_row in zip(network.layers, values, costs, strict=True):
        moved = (layer.read_bytes + layer.write_bytes) * 1e-6
        cells = [layer.name, " ".join(layer.operators), f"{layer.flops * 1e-9:.3f}", f"{moved:.2f}"]
        for value, total, cost in zip(row, sums, cost_row, strict=True):
            cells.append("-" if value is None else f"{value:.3f}")
            cells.append("-" if value is None else f"{100 * value / max(total, 1e-30):.1f}")
            if objective == "latency":
                rate = layer.flops * 1e-9 / cost.seconds if cost.seconds else 0.0
                cells.append("-" if value is None else f"{rate:.1f}")
        rows.append(cells)
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(table_of(headings, rows, console.width))
    for device, total, column in zip(devices.devices, sums, zip(*costs, strict=True), strict=True):
        how = column[0].how
        left_out = sum(1 for cost in column if cost.reason)
        note = f"; {left_out} layers cannot run there" if left_out else ""
        console.print(f"{device.name}: {total:.3f} {unit} in all, {how}, layer by layer{note}")
        reasons = dict.fromkeys(cost.reason for cost in column if cost.reason)
        for reason in list(reasons)[:MOST_REASONS]:
            console.print(f"  {reason}")


MOST_REASONS = 3
"""Reasons why layers cannot run on a device that are printed; all are in the record."""


if __name__ == "__main__":
    sys.exit(main())
