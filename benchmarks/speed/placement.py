"""Networks placed on several devices: every algorithm, beside what HOPE's author measured.

    python benchmarks/speed/placement.py [--tables FOLDER] [--networks NAME ...] [--write]

Prices each layer of seven networks on three device files (benchmarks/speed/devices), simulated or
measured on this processor, and places them. Pricing takes an hour or so; --tables keeps its results
as CSV files, and takes those that are there. --write puts the tables into docs/placement.md.

Seconds are of this process, so that they mean the same on a busy machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from page_section import put_section

from davinci.placement import Placement, PlacementProblem, faults
from davinci.placement import devices as device_files
from davinci.placement.baselines import queued, serial, single
from davinci.placement.costs import LayerCosts
from davinci.placement.devices import DeviceFile
from davinci.placement.greedy import heft, top_k
from davinci.placement.hope import integer_parts
from davinci.placement.layers import LayeredNetwork
from davinci.placement.merging import merge_short
from davinci.placement.priced import PricedNetwork, open_network, price

PAGE = Path(__file__).parents[2] / "docs" / "placement.md"
DEVICES = Path(__file__).parent / "devices"
FILES = ("ascend310-cores", "ascend310p-cores", "ascend310-host")

NETWORKS = {
    "inception-v3": "InceptionV3",
    "inception-v4": "InceptionV4",
    "pnasnet-mobile": "PNASNet-5 mobile",
    "pnasnet-large": "PNASNet-5 large",
    "nasnet-large": "NASNet-A large",
    "squeezenet": "SqueezeNet",
    "lstm": "LSTM",
}
SPECS = {"lstm": "lstm,steps=10,hidden=1024,features=1024,unrolled=1"}
"""Parameters of a network of the zoo, where the source's are others than those of its name."""

SOURCE = {
    "inception-v3": (23.4, 13.7, 8.2),
    "inception-v4": (24.1, 9.1, 3.2),
    "pnasnet-mobile": (2.9, 2.9, 0.5),
    "pnasnet-large": (29.4, 17.9, 12.9),
    "nasnet-large": (31.1, 18.0, 11.7),
    "squeezenet": (21.3, 10.0, 0.0),
    "lstm": (23.3, 0.0, 0.0),
}
"""Percent of latency that HOPE:LP saves over MOSAIC and over StarPU, and HOPE:GS over StarPU, means
of three phones (Xia, dissertation, 2022, chapter 3)."""

MOST_TOGETHER = 4


@dataclass(frozen=True)
class Placed:
    """A network placed on the devices of a file.

    Attributes:
        problem: the graph with its costs.
        merged: tasks behind the merging of short ones.
        plans: by algorithm.
        seconds: of this process, by algorithm.
        together: latencies of the greedy search by how many tasks it places at once, from 1.
    """

    problem: PlacementProblem
    merged: int
    plans: dict[str, Placement]
    seconds: dict[str, float]
    together: tuple[float, ...]

    def saved(self, algorithm: str, over: str) -> float:
        """Percent of latency that an algorithm saves over another."""
        return 100 * (1 - self.plans[algorithm].latency / self.plans[over].latency)


ALGORITHMS: dict[str, Callable[[PlacementProblem], Placement]] = {
    "single": single,
    "serial": serial,
    "dmdar": queued,
    "heft": heft,
    "hope:gs": top_k,
    "hope:lp": integer_parts,
}


def placed(problem: PlacementProblem) -> Placed:
    """The network by all algorithms, each plan checked.

    Raises:
        ValueError: a plan is wrong.
    """
    plans, seconds = {}, {}
    for name, algorithm in ALGORITHMS.items():
        began = time.process_time()
        plans[name] = algorithm(problem)
        seconds[name] = time.process_time() - began
    together = [top_k(problem, count) for count in range(1, MOST_TOGETHER + 1)]
    for plan in (*plans.values(), *together):
        if wrong := faults(plan):
            raise ValueError(f"{plan.algorithm}: {wrong[0]}")
    latencies = tuple(plan.latency for plan in together)
    return Placed(problem, len(merge_short(problem).problem.tasks), plans, seconds, latencies)


def problem_of(
    name: str, network: LayeredNetwork, file: str, folder: Path | None
) -> PlacementProblem:
    """The problem of placing a network on the devices of a file.

    Args:
        name: of the network.
        network: its layers.
        file: of `FILES`.
        folder: of tables that are priced already, and for new ones; None to price.
    """
    devices = device_files.load(str(DEVICES / f"{file}.toml"))
    spec = f"zoo:{SPECS.get(name, name)}"
    table = None if folder is None else folder / f"{name}.{file}.csv"
    if table is None or not table.exists():
        priced = price(spec, devices, clock=time.process_time)
        if table is not None:
            table.write_text(priced.csv(), encoding="utf-8")
        return priced.problem
    changes = {"kind": "table", "table": str(table)}
    looked_up = DeviceFile(
        devices=tuple(device.model_copy(update=changes) for device in devices.devices),
        links=devices.links,
    )
    return PricedNetwork(spec, network, looked_up, LayerCosts(network, looked_up).all()).problem


Results = dict[tuple[str, str], Placed]
"""By network and file."""


MARKS = {
    "was faster": (" \\*", "a greedy plan was faster than that of the parts, and was taken"),
    "not proven": (
        " \\+",
        "a part took longer than its share of 8 s: the best that was found",
    ),
}
"""Marks of integer programs by what their remarks say, and what they mean."""


def mark(found: Placed) -> str:
    """The marks of a network's integer program."""
    remark = found.plans["hope:lp"].remark
    return "".join(sign for said, (sign, _) in MARKS.items() if said in remark)


def latencies(results: Results) -> list[str]:
    """The table of all plans."""
    rows = [
        "| network | layers (merged) | devices | one device, ms | serial | dmdar | heft | hope:gs "
        "| hope:lp | layers there | lp below serial, % | lp below dmdar, % | gs below dmdar, % "
        "| gs, s | lp, s |",
        "|---|---:|---|" + "---:|" * 6 + "---|" + "---:|" * 5,
    ]
    for (name, file), found in results.items():
        times = (f"{found.plans[a].latency * 1e3:.3f}" for a in ALGORITHMS)
        gains = (
            found.saved("hope:lp", "serial"),
            found.saved("hope:lp", "dmdar"),
            found.saved("hope:gs", "dmdar"),
        )
        cells = (
            NETWORKS[name],
            f"{len(found.problem.tasks)} ({found.merged})",
            f"`{file}`",
            *times,
            " + ".join(str(len(queue)) for queue in found.plans["hope:lp"].queues),
            *(f"{gain:.1f}" for gain in gains),
            f"{found.seconds['hope:gs']:.2f}",
            f"{found.seconds['hope:lp']:.2f}{mark(found)}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def beside(results: Results, networks: Sequence[str]) -> list[str]:
    """Means over the device files, beside the source's over its phones."""
    rows = [
        "| network | lp below serial, % | [1] | lp below dmdar, % | [1] | gs below dmdar, % | [1] "
        "|",
        "|---|" + "---:|" * 6,
    ]
    for name in networks:
        found = [results[name, file] for file in FILES if (name, file) in results]
        pairs = (("hope:lp", "serial"), ("hope:lp", "dmdar"), ("hope:gs", "dmdar"))
        cells = [NETWORKS[name]]
        for pair, printed in zip(pairs, SOURCE[name], strict=True):
            mean = statistics.mean(placed.saved(*pair) for placed in found)
            cells += [f"{mean:.1f}", f"{printed:.1f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def study(results: Results) -> list[str]:
    """The greedy search by how many tasks it places at once."""
    counts = range(1, MOST_TOGETHER + 1)
    rows = [
        f"| network | devices | {' | '.join(f'K = {count}' for count in counts)} |",
        "|---|---|" + "---:|" * MOST_TOGETHER,
    ]
    for (name, file), found in results.items():
        ratios = (f"{latency / found.together[0]:.3f}" for latency in found.together)
        rows.append(f"| {NETWORKS[name]} | `{file}` | {' | '.join(ratios)} |")
    return rows


TEXT = """\
Written by `python benchmarks/speed/placement.py --write`. Layers are priced one by one, a launch
included: simulated on `ascend310-cores` (two AI cores of a 310, each a device) and
`ascend310p-cores` (four and four AI cores and the seven vector cores of a 310P), and on
`ascend310-host` (a 310 beside one thread of this machine's processor, over PCI Express 3.0 x4)
simulated or measured, in seconds of the process. So these are other devices than the phones of [1],
and columns beside each other compare what placing gains, not times. `serial` is MOSAIC's dynamic
program, `dmdar` StarPU's scheduler. `layers there` says how many each device got in the plan of
`hope:lp`, in the order of the file. The last two columns are seconds of the process, for the greedy
search and the integer program; [1] names 0.9 to 1.0 and 1.4 to 4.5 s. Every plan passed the check.

{latencies}

{notes}

Means over the three files beside the means of [1] over three phones:

{beside}

How many ready layers the greedy search places together (K), latencies over that of K = 1; [1] has
1.0 -> 0.64 for SqueezeNet from K = 1 to 2, and little beyond 4:

{study}
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", metavar="FOLDER", type=Path, help="of priced layers, kept")
    parser.add_argument("--networks", nargs="*", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    options = parser.parse_args()
    if options.tables is not None:
        options.tables.mkdir(parents=True, exist_ok=True)
    results: Results = {}
    for name in options.networks:
        network = open_network(f"zoo:{SPECS.get(name, name)}", 0)
        for file in FILES:
            results[name, file] = placed(problem_of(name, network, file, options.tables))
    marks = "".join(mark(found) for found in results.values())
    notes = [f"{sign.strip()}: {meaning}." for sign, meaning in MARKS.values() if sign in marks]
    if missing := [title for name, title in NETWORKS.items() if name not in options.networks]:
        notes.append(f"Not priced for these tables, since that takes long: {', '.join(missing)}.")
    text = TEXT.format(
        latencies="\n".join(latencies(results)),
        beside="\n".join(beside(results, options.networks)),
        study="\n".join(study(results)),
        notes="\n".join(notes),
    ).strip()
    print(text)
    if options.write:
        put_section(PAGE, "placed", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
