"""npu-profile: what each layer of a network takes on several devices."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from davinci import errors
from davinci.tools.command import Parser, guarded

if TYPE_CHECKING:
    from davinci.placement.costs import Cost
    from davinci.placement.devices import DeviceFile
    from davinci.placement.layers import Layer, Network

DEVICES = """\
MODEL is an .onnx file or zoo:NAME[,key=value...].

DEVICES is a .toml file with [[devices]] and [[links]], or names with commas between:
  ascend310, ...      that machine, simulated
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
    from davinci.files import check_distinct, check_writable, write_atomically, write_json
    from davinci.placement import devices as device_files
    from davinci.placement.costs import Costs
    from davinci.tools.progress import Progress

    written = [path for path in (options.json, options.csv) if path is not None]
    for path in written:
        check_writable(path)
    check_distinct(written, [options.model])
    devices = device_files.parse(options.devices)
    with Progress() as progress:
        network = network_of(options.model, options.seed)
        costs = Costs(network, devices, progress).all()
    require_energy(options.objective, costs)
    if options.json is not None:
        record = record_of(options.model, network, devices, costs)
        write_json(options.json, record)
    if options.csv is not None:
        write_atomically(options.csv, csv_of(network, devices, costs).encode())
    show(network, devices, costs, options.objective)
    return errors.EXIT_OK


def network_of(name: str, seed: int) -> Network:
    """The layers of a model that is ONNX, with random inputs.

    Raises:
        InputError: it is not ONNX, or onnxruntime cannot run it.
    """
    from davinci import job
    from davinci.placement.layers import Network, random_inputs_of

    source = job.open_source(name)
    proto = source.proto()
    if proto is None:
        raise errors.InputError(
            "only ONNX models have layers to place", where=name, expected="an .onnx file or zoo:"
        )
    example = (
        random_inputs_of(proto, seed, name) if source.example is None else source.example(seed)
    )
    return Network(proto, example, name)


def require_energy(objective: str, costs: list[list[Cost]]) -> None:
    """Raises an `InputError` if energy is asked for and not known."""
    if objective == "energy" and any(c.joules is None and not c.reason for r in costs for c in r):
        raise errors.InputError(
            "the power of a device is not known",
            where="--objective energy",
            hint="give idle_watts and active_watts in a .toml file, or joules in a table",
        )


def milliseconds(seconds: float) -> float | None:
    """Times of records; None where a device cannot run a layer."""
    return None if seconds == float("inf") else seconds * 1e3


def layer_record(layer: Layer, row: list[Cost], devices: DeviceFile) -> dict[str, Any]:
    """A layer, and what it takes on each device."""
    return {
        "name": layer.name,
        "operators": list(layer.operators),
        "gflop": layer.flops * 1e-9,
        "read_bytes": layer.read_bytes,
        "write_bytes": layer.write_bytes,
        "devices": {
            device.name: {
                "milliseconds": milliseconds(cost.seconds),
                "joules": cost.joules,
                "how": cost.how,
                "reason": cost.reason,
            }
            for device, cost in zip(devices.devices, row, strict=True)
        },
    }


def record_of(
    model: str, network: Network, devices: DeviceFile, costs: list[list[Cost]]
) -> dict[str, Any]:
    """The profile as data."""
    return {
        "schema_version": 1,
        "model": model,
        "devices": [device.model_dump() for device in devices.devices],
        "layers": [
            layer_record(layer, row, devices)
            for layer, row in zip(network.layers, costs, strict=True)
        ],
    }


def csv_of(network: Network, devices: DeviceFile, costs: list[list[Cost]]) -> str:
    """The profile as a table that `--devices NAME=F.csv` reads."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("layer", "device", "seconds", "joules"))
    for layer, row in zip(network.layers, costs, strict=True):
        for device, cost in zip(devices.devices, row, strict=True):
            joules = "" if cost.joules is None else repr(cost.joules)
            writer.writerow((layer.name, device.name, repr(cost.seconds), joules))
    return text.getvalue()


def show(network: Network, devices: DeviceFile, costs: list[list[Cost]], objective: str) -> None:
    """Prints the layers with their share of each device's sum, and the sums."""
    from rich.console import Console

    from davinci.report.terminal import Heading, table_of

    headings = [Heading("layer", True, 5), Heading("operators", True, 2)]
    headings += [Heading("GFLOP", worth=1), Heading("MB", worth=1)]
    unit = "ms" if objective == "latency" else "mJ"
    for device in devices.devices:
        headings += [Heading(f"{device.name} {unit}", worth=4), Heading("%", worth=3)]
        if objective == "latency":
            headings.append(Heading("GFLOPS"))
    values = [[amount(cost, objective) for cost in row] for row in costs]
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


def amount(cost: Cost, objective: str) -> float | None:
    """Milliseconds or millijoules; None where the device cannot run the layer."""
    if cost.reason:
        return None
    return cost.seconds * 1e3 if objective == "latency" else (cost.joules or 0.0) * 1e3


if __name__ == "__main__":
    sys.exit(main())
