"""The profile of a network on several devices as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from davinci.placement.costs import LayerCost
from davinci.placement.priced import PricedNetwork
from davinci.report import page as report_page

MOST_REASONS = 5
"""Reasons why layers cannot run on a device that the page lists; each also stands at its cell."""


@dataclass(frozen=True)
class DeviceHead:
    """The heading of a device's columns, and its totals.

    Attributes:
        name: of the device.
        total: of all layers that it can run, with the unit.
        note: how that was found, and how many layers it cannot run.
        columns: titles, the objective's first.
    """

    name: str
    total: str
    note: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class DeviceCell:
    """A layer on a device.

    Attributes:
        texts: of the columns.
        percent: of the bar's length.
        least: whether no other device takes less.
        reason: why the device cannot run the layer.
    """

    texts: tuple[str, ...]
    percent: float
    least: bool
    reason: str


@dataclass(frozen=True)
class LayerLine:
    """A line of the table."""

    name: str
    operators: str
    gflop: str
    megabytes: str
    devices: tuple[DeviceCell, ...]


def as_html(priced: PricedNetwork, objective: str) -> str:
    """The page.

    Args:
        priced: the network, its devices and costs.
        objective: "latency" or "energy": what bars and bold figures compare.
    """
    names = [device.name for device in priced.devices.devices]
    unit = "ms" if objective == "latency" else "mJ"
    columns = [priced.of_device(i) for i in range(len(names))]
    sums = [sum(amount(c, objective) for c in column if not c.reason) for column in columns]
    least = [sum(not c.reason for c in column) for column in columns]
    whole = [i for i, count in enumerate(least) if count == len(priced.costs)]
    verdict = f"{len(priced.costs)} layers on {', '.join(names)}."
    if whole:
        best = min(whole, key=lambda i: sums[i])
        verdict += f" Of the devices that run all of them {names[best]} takes least: "
        verdict += f"{sums[best]:.3f} {unit}, layer by layer."
    heads = [
        DeviceHead(
            name,
            f"{total:.3f} {unit}",
            f"{column[0].how}, {count} of {len(column)} layers",
            (unit, "%", "GFLOPS", *(["mJ"] if objective == "latency" and _powered(column) else [])),
        )
        for name, total, count, column in zip(names, sums, least, columns, strict=True)
    ]
    reasons = [
        f"{name}: {reason}"
        for name, column in zip(names, columns, strict=True)
        for reason in list(dict.fromkeys(c.reason for c in column if c.reason))[:MOST_REASONS]
    ]
    return rendered(
        "page.html.j2",
        title=f"{Path(priced.name).name} layer by layer",
        subtitle="Each layer runs alone, a launch included: the sum is more than the whole network "
        "takes.",
        verdict=verdict,
        devices=heads,
        reasons=reasons,
        rows=_lines(priced, columns, objective),
    )


def rendered(template: str, **values: object) -> str:
    """A page of this folder, with the style of the reports."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    style = (report_page.FOLDER / "page.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(style=style, **values)


def _powered(column: Sequence[LayerCost]) -> bool:
    return any(cost.joules is not None for cost in column)


def _lines(
    priced: PricedNetwork, columns: Sequence[Sequence[LayerCost]], objective: str
) -> list[LayerLine]:
    able = [[amount(c, objective) for c in column if not c.reason] for column in columns]
    longest = [max(values, default=0.0) for values in able]
    totals = [sum(values) for values in able]
    lines = []
    for layer, row in zip(priced.network.layers, priced.costs, strict=True):
        best = min((amount(c, objective) for c in row if not c.reason), default=0.0)
        cells = []
        for device, cost in enumerate(row):
            powered = objective == "latency" and _powered(columns[device])
            if cost.reason:
                cells.append(DeviceCell(("-",) * (4 if powered else 3), 0.0, False, cost.reason))
                continue
            value = amount(cost, objective)
            rate = layer.flops * 1e-9 / cost.seconds if cost.seconds else 0.0
            texts = [f"{value:.3f}", f"{_share(value, totals[device]):.1f}", f"{rate:.1f}"]
            if powered:
                texts.append("-" if cost.joules is None else f"{cost.joules * 1e3:.3f}")
            bar = round(_share(value, longest[device]), 1)
            cells.append(DeviceCell(tuple(texts), bar, value == best and len(row) > 1, ""))
        moved = (layer.read_bytes + layer.write_bytes) * 1e-6
        operators = " ".join(layer.operators)
        gflop = f"{layer.flops * 1e-9:.3f}"
        lines.append(LayerLine(layer.name, operators, gflop, f"{moved:.2f}", tuple(cells)))
    return lines


def _share(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def amount(cost: LayerCost, objective: str) -> float:
    """Milliseconds or millijoules of a layer that the device can run."""
    return cost.seconds * 1e3 if objective == "latency" else (cost.joules or 0.0) * 1e3
