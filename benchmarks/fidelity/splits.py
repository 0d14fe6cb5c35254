"""Cuts of networks between a phone and a server, beside those that DNNTune's author measured.

    python benchmarks/fidelity/splits.py [--write]

The source (Xia, dissertation, 2022, tables 3-5 and 3-6) prints what the whole network takes on each
side and what the cut takes that it found; times of single layers it does not print. The script asks
by a linear program whether there are any with which all rows of a network come out at once, takes
of these the ones that differ least from shares by floating-point operations, gives them to the code
behind npu-split as a device's table (CSV), and prints its cuts. --write puts the tables into
docs/placement.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import optimize

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))

from page_section import put_section

from davinci.placement import devices as device_files
from davinci.placement.costs import LayerCosts
from davinci.placement.devices import LINKS
from davinci.placement.layers import LayeredNetwork
from davinci.placement.priced import PricedNetwork, open_network
from davinci.placement.split import NetworkCut, best_split, splits

PAGE = Path(__file__).parents[2] / "docs" / "placement.md"

INPUT, OUTPUT = "input", "output"


@dataclass(frozen=True)
class Printed:
    """A row of the source.

    Attributes:
        phone: which, and its unit and cores.
        whole, split: of the network on the phone, and cut; milliseconds or joules.
        cloud: of the network on the server, with the upload of its input.
        point: the layer behind which the source cuts.
        link: between phone and server.
        wrong: what the row itself contradicts.
    """

    phone: str
    whole: float
    cloud: float
    split: float
    point: str
    link: str = "wifi"
    wrong: str = ""


@dataclass(frozen=True)
class Case:
    """A network of the source.

    Attributes:
        title: as the source calls it.
        network: of the zoo.
        cloud: its milliseconds on the server, without the upload.
        points: the source's layers in their order, each by the scope or layer of the zoo's network
            that ends it.
        latencies: rows of table 3-5.
        energies: rows of table 3-6, and of the text beside it.
        behind: a point, and the server's milliseconds behind it, which the source prints.
    """

    title: str
    network: str
    cloud: float
    points: dict[str, str]
    latencies: tuple[Printed, ...]
    energies: tuple[Printed, ...]
    behind: tuple[str, float] | None = None


BLOCKS = {1: (16, 1), 2: (24, 2), 3: (32, 3), 4: (64, 4), 5: (96, 3), 6: (160, 3), 7: (320, 1)}
"""Channels and blocks of MobileNet-V2's stages."""

CASES = (
    Case(
        "MobileNet-V2",
        "zoo:mobilenet-v2",
        38.0,
        {
            "conv": "Conv_0",
            **{
                f"bottleneck_{stage}_{block + 1}": f"/channels{channels}.{block}/"
                for stage, (channels, count) in BLOCKS.items()
                for block in range(count)
            },
            "pool": "Conv_95",
        },
        (
            Printed("A, 1 big core", 154, 138, 115, "bottleneck_3_3"),
            Printed("A, 1 little core", 381, 138, 138, INPUT),
            Printed("B, 1 big core", 136, 138, 125, "bottleneck_5_2"),
            Printed("B, 1 little core", 181, 138, 138, INPUT, wrong="its 1.09x is 1.0x"),
            Printed("C, 1 core", 358, 138, 138, INPUT),
            Printed("C, 8 cores", 190, 138, 138, INPUT),
            Printed("C, GPU", 152, 138, 83, "bottleneck_4_4"),
        ),
        (Printed("A", 0.182, 0.453, 0.158, "bottleneck_4_4", "4g"),),
        ("bottleneck_3_3", 33.2),
    ),
    Case(
        "ShuffleNet-V2 0.5x",
        "zoo:shufflenet-v2,percent=50",
        5.0,
        {
            "MaxPool": "Conv_0",
            **{f"Stage{stage}": f"/stage{stage}." for stage in (2, 3, 4)},
            "Global Pool": "Conv_182",
        },
        (
            Printed("A, 1 big core", 42, 105, 86, OUTPUT, wrong="its 86 is the 42 of its point"),
            Printed("A, 1 little core", 112, 105, 86, "MaxPool"),
            Printed("B, 1 big core", 33, 105, 33, OUTPUT),
            Printed("B, 1 little core", 65, 105, 65, OUTPUT),
            Printed("C, 1 core", 99, 105, 81, "Stage2"),
            Printed("C, 8 cores", 66, 105, 66, OUTPUT),
            Printed("C, GPU", 100, 105, 64.6, "MaxPool"),
        ),
        (
            Printed("A", 0.088, 0.121, 0.077, "Stage2"),
            Printed("B", 0.099, 0.121, 0.084, "Stage2"),
            Printed("C", 0.055, 0.121, 0.052, "Stage4"),
            Printed(
                *("A", 0.099, 0.252, 0.091, "Global Pool", "4g"),
                wrong="0.252 J: the upload alone takes 0.45",
            ),
        ),
    ),
)


class Cuts:
    """The cuts of a network that the source may choose, and the rows that it prints of them.

    Attributes:
        case: the network of the source.
        network: that of the zoo.
        energy: whether rows are joules of the phone and its radio, not milliseconds of all.
        rows: the source's.
        ends: how many layers of the zoo's network stand in front of each cut, 0 first.
        names: of the cuts.
    """

    def __init__(self, case: Case, network: LayeredNetwork, energy: bool) -> None:
        self.case, self.network, self.energy = case, network, energy
        self.rows = case.energies if energy else case.latencies
        layers = [layer.name for layer in network.layers]
        self.ends = [0]
        for scope in case.points.values():
            self.ends.append(max(i for i, name in enumerate(layers) if name.startswith(scope)) + 1)
        self.ends.append(len(layers))
        self.names = [INPUT, *case.points, OUTPUT]
        flops = np.array([layer.flops for layer in network.layers], dtype=float)
        self.flops = flops / flops.sum()
        steps = zip(self.ends[:-1], self.ends[1:], strict=True)
        self.shares = np.array([self.flops[a:b].sum() for a, b in steps])

    def moved(self, row: Printed) -> list[float]:
        """What the link takes at each cut, in milliseconds or joules."""
        zeros = np.zeros(len(self.network.layers))
        watts = LINKS[row.link].watts
        seconds = [split.link_seconds for split in self.tried(row, zeros, zeros)]
        return [watts * s if self.energy else 1e3 * s for s in seconds]

    def priced(self, phone: np.ndarray, cloud: np.ndarray) -> PricedNetwork:
        """The network with a table of latencies for both sides, as a device file has it.

        Args:
            phone: milliseconds or joules of each layer.
            cloud: milliseconds of each layer.
        """
        lines = ["layer,device,seconds,joules"]
        for layer, here, there in zip(self.network.layers, phone, cloud, strict=True):
            seconds, joules = (0.0, float(here)) if self.energy else (float(here) * 1e-3, "")
            lines.append(f"{layer.name},phone,{seconds!r},{joules}")
            lines.append(f"{layer.name},cloud,{float(there) * 1e-3!r},")
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "table.csv"
            table.write_text("\n".join(lines) + "\n", encoding="utf-8")
            devices = device_files.parse(f"phone={table},cloud={table}")
            costs = LayerCosts(self.network, devices).all()
        return PricedNetwork(self.case.network, self.network, devices, costs)

    def tried(self, row: Printed, phone: np.ndarray, cloud: np.ndarray) -> list[NetworkCut]:
        """The cuts that the source may choose, by npu-split's code."""
        priced = self.priced(phone, cloud)
        found = splits(priced.of_device(0), priced.of_device(1), self.network, LINKS[row.link])
        return [found[end] for end in self.ends]

    def amount(self, split: NetworkCut) -> float:
        """Milliseconds or joules of a cut."""
        return split.joules or 0.0 if self.energy else split.seconds * 1e3

    def spread(self, groups: np.ndarray) -> np.ndarray:
        """Amounts of layers from those of the source's layers, inside of these by FLOPs."""
        found = np.zeros(len(self.network.layers))
        for group, (begin, end) in enumerate(zip(self.ends[:-1], self.ends[1:], strict=True)):
            inside = self.flops[begin:end]
            weights = (
                inside / inside.sum() if inside.sum() else np.full(end - begin, 1 / (end - begin))
            )
            found[begin:end] = groups[group] * weights
        return found


@dataclass(frozen=True)
class Tables:
    """Latencies or energies with which the rows of a network come out.

    Attributes:
        phones: of the source's layers, a row for each of its rows.
        cloud: of the source's layers.
        apart: for each row, the largest difference of a layer's share of the whole from its share
            of the floating-point operations.
    """

    phones: np.ndarray
    cloud: np.ndarray
    apart: np.ndarray


def tables(cuts: Cuts) -> Tables:
    """The tables that differ least from shares by FLOPs, with all printed cuts the best ones.

    Variables are each phone's shares of the source's layers, the server's shares, which are the
    same in all rows, and the largest difference from FLOPs in each row and at the server.

    Raises:
        ValueError: there are none: the rows contradict each other.
    """
    count, rows = len(cuts.shares), cuts.rows
    server = len(rows) * count
    width = server + count + len(rows) + 1
    below: list[tuple[np.ndarray, float]] = []
    equal: list[tuple[np.ndarray, float]] = []

    def unit(columns: range | Sequence[int], value: float = 1.0) -> np.ndarray:
        row = np.zeros(width)
        row[list(columns)] = value
        return row

    for part in range(len(rows) + 1):
        first = part * count
        equal.append((unit(range(first, first + count)), 1.0))
        for group, share in enumerate(cuts.shares):
            slack = unit([server + count + part])
            below.append((unit([first + group]) - slack, share))
            below.append((-unit([first + group]) - slack, -share))
    cloud = 0.0 if cuts.energy else cuts.case.cloud
    if cuts.case.behind is not None and not cuts.energy:
        point, rest = cuts.case.behind
        at = cuts.names.index(point)
        equal.append((unit(range(server + at, server + count)), rest / cloud))
    for number, row in enumerate(rows):
        moved = cuts.moved(row)

        def total(cut: int, first: int = number * count, row: Printed = row) -> np.ndarray:
            here = unit(range(first, first + cut), row.whole)
            return here + unit(range(server + cut, server + count), cloud)

        chosen = cuts.names.index(row.point)
        if 0 < chosen < count:
            equal.append((total(chosen), row.split - moved[chosen]))
        for cut in range(count + 1):
            if cut != chosen:
                below.append((total(chosen) - total(cut), moved[cut] - moved[chosen]))
    cost = unit(range(server + count, width))
    solved = optimize.linprog(
        cost,
        A_ub=np.array([row for row, _ in below]),
        b_ub=np.array([bound for _, bound in below]),
        A_eq=np.array([row for row, _ in equal]),
        b_eq=np.array([value for _, value in equal]),
        bounds=(0, None),
    )
    if not solved.success:
        raise ValueError(f"{cuts.case.title}: no latencies give all rows: {solved.message}")
    phones = solved.x[:server].reshape(len(rows), count)
    whole = np.array([row.whole for row in rows])[:, None]
    return Tables(
        phones * whole,
        solved.x[server : server + count] * cuts.case.cloud,
        solved.x[server + count :],
    )


def lines(cuts: Cuts) -> tuple[list[str], int]:
    """Rows of the page, and how many of them come out as printed."""
    digits = 3 if cuts.energy else 1
    objective = "energy" if cuts.energy else "latency"
    found = tables(cuts)
    cloud = cuts.spread(found.cloud)
    shown, same = [], 0
    for number, row in enumerate(cuts.rows):
        tried = cuts.tried(row, cuts.spread(found.phones[number]), cloud)
        best = best_split(tried, objective)
        chosen = tried[cuts.names.index(row.point)]
        # A cut that is as good as another, but for rounding, is the same.
        if cuts.amount(chosen) <= cuts.amount(best) * (1 + 1e-6):
            best = chosen
        plain = cuts.tried(row, cuts.flops * row.whole, cuts.flops * cuts.case.cloud)
        first = best_split(plain, objective)
        same += best is chosen
        cells = (
            f"{cuts.case.title} on {row.phone}",
            row.link,
            *(f"{amount:g}" for amount in (row.whole, row.cloud, row.split)),
            row.point,
            *(f"{cuts.amount(s):.{digits}f}" for s in (tried[-1], tried[0], best)),
            cuts.names[tried.index(best)],
            f"{100 * found.apart[number]:.0f}",
            f"{cuts.amount(plain[tried.index(chosen)]):.{digits}f}",
            f"{cuts.amount(first):.{digits}f} {cuts.names[plain.index(first)]}",
            row.wrong,
        )
        shown.append(f"| {' | '.join(cells)} |")
    return shown, same


def heading(unit: str) -> list[str]:
    """The head of a table."""
    titles = (
        "network and phone",
        "link",
        f"phone, {unit}",
        "cloud",
        "cut",
        "behind",
        "our phone",
        "our cloud",
        "our cut",
        "behind",
        "from FLOPs, points",
        "by FLOPs, there",
        "by FLOPs, best",
        "wrong in the row",
    )
    words = {0, 1, 5, 9, 12, 13}
    marks = "|".join("---" if i in words else "---:" for i in range(len(titles)))
    return [f"| {' | '.join(titles)} |", f"|{marks}|"]


TEXT = """\
Written by `python benchmarks/fidelity/splits.py --write`. What [1] prints (tables 3-5 and 3-6, and
the 4G energies of its text) stands left, what `npu-split` finds right. The link `wifi` has the
latency and rate that follow from the two transfers which [1] times (100.7 ms for the image, 20.3 ms
for 28 x 28 x 32 floats: {latency:.2f} ms and {rate:.2f} MB/s); `4g` has no latency, since only its
upload is printed. Cuts are those between the layers of [1]: blocks of MobileNet-V2, stages of
ShuffleNet-V2.

[1] prints the whole network on either side, and the best cut, but not the layers. *Determined* are
thus the phone alone, the cloud alone (38 and 5 ms and the upload: 138.7 and 105.7 ms, printed as
138 and 105), and that 33.2 of the cloud's 38 ms for MobileNet-V2 come behind bottleneck_3_3.
*Assumed* is all else, and fitted openly: a linear program looks for latencies of the layers, the
cloud's the same in all rows, with which every printed cut takes the printed time and no other cut
takes less. There are such latencies for all rows at once; those that differ least from shares by
floating-point operations are used, and `from FLOPs` says by how many points of the whole a layer's
share differs at most. They go through a CSV file and the code behind `npu-split`: **{same} of
{rows} rows come out with the printed cut and its time**.

The last two columns are without the fit, each layer with its share of floating-point operations on
both sides: what the printed cut takes, and the best cut. Such shares give too little time to the
first layers, which are bound by memory on a phone.

{latencies}

{energies}

What is wrong in the source: where a column says so, and in the first row, whose own figures do not
add up: 154 - 104.1 ms on the phone, 20.3 ms of transfer and 33.2 ms in the cloud are 103.4 ms, not
115. (The fit takes the 115 and leaves out the 104.1.) Behind bottleneck_3_1, 3_2 and 3_3 equally
many bytes cross, so that the first of them is the better cut unless 3_2 and 3_3 take no longer on
the phone than in the cloud, which is what the fit has to make of them.
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    options = parser.parse_args()
    shown: dict[bool, list[str]] = {False: heading("ms"), True: heading("J")}
    same = rows = 0
    for case in CASES:
        network = open_network(case.network, 0)
        for energy in shown:
            cuts = Cuts(case, network, energy)
            found, right = lines(cuts)
            shown[energy] += found
            same, rows = same + right, rows + len(found)
    link = LINKS["wifi"]
    text = TEXT.format(
        latency=link.latency_us * 1e-3,
        rate=link.bytes_per_second * 1e-6,
        same=same,
        rows=rows,
        latencies="\n".join(shown[False]),
        energies="\n".join(shown[True]),
    ).strip()
    print(text)
    if options.write:
        put_section(PAGE, "cuts", text)
    return int(same < rows)


if __name__ == "__main__":
    sys.exit(main())
