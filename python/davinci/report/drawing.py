"""Roofline plots: operational intensity against achieved work per cycle, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from davinci.report.record import Record

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 76, 16, 16, 44
LABELLED = 5
"""Points that may have a name beside them: the kernels that take longest."""

LETTER_WIDTH, LABEL_HEIGHT = 6.4, 14.0
"""Room that names are given, a little more than they take."""

ALONG = (1.0, 0.6, 0.35, 0.8, 0.2)
"""Where on a roof its name may stand, as shares of its length, the best first."""

SMALLEST, LARGEST = 3.0, 11.0
"""Radius of a point in pixels; its area grows with the kernel's share of the time."""


@dataclass(frozen=True)
class PlotPoint:
    """A kernel in the plot, in pixels; `text` stands beside it if there is room."""

    name: str
    text: str
    x: float
    y: float
    radius: float
    hint: str
    label: Label | None


@dataclass(frozen=True)
class Label:
    """The place of a name beside its point: where its baseline begins, ends or has its middle."""

    x: float
    y: float
    anchor: str


Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels."""


@dataclass(frozen=True)
class PlotLine:
    """A roof or a grid line, in pixels, with its text."""

    x1: float
    y1: float
    x2: float
    y2: float
    text: str = ""


@dataclass(frozen=True)
class Roof(PlotLine):
    """A limit of the machine; `label` is where its name stands, if there is room."""

    label: Label | None = None


@dataclass
class Chart:
    """One roofline plot, laid out for the template."""

    title: str
    x_title: str
    y_title: str
    points: list[PlotPoint] = field(default_factory=list)
    roofs: list[Roof] = field(default_factory=list)
    columns: list[PlotLine] = field(default_factory=list)
    lines: list[PlotLine] = field(default_factory=list)
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    bottom: int = HEIGHT - BOTTOM
    right: int = WIDTH - RIGHT
    top: int = TOP


def rooflines(record: Record) -> list[Chart]:
    """A plot for the cube and one for the vector unit; a unit that did nothing has none."""
    limits = record["limits"]
    keys = {"f16": "macs_f16", "i8": "macs_i8", "f32": "macs_f32"}
    tops = {name: limits[key] for name, key in keys.items() if key in limits}
    charts = [
        _chart(
            record,
            "Cube",
            "multiply-accumulates per byte of GM traffic",
            "multiply-accumulates per cycle",
            lambda row: float(row["macs"]),
            tops,
        ),
        _chart(
            record,
            "Vector unit",
            "vector repeats per KB of GM traffic",
            "vector repeats per cycle",
            lambda row: float(row["vector_repeats"]) if not row["macs"] else 0.0,
            {"one repeat a cycle and vector unit": limits["vector_repeats"]},
            1024,
        ),
    ]
    return [chart for chart in charts if chart.points]


def _chart(
    record: Record,
    title: str,
    x_title: str,
    y_title: str,
    work: Callable[[Record], float],
    tops: dict[str, int],
    per_bytes: int = 1,
) -> Chart:
    chart = Chart(title, x_title, y_title)
    kernels = []
    for row in record["kernels"]:
        traffic = row["gm_read_bytes"] + row["gm_write_bytes"]
        if work(row) and traffic and row["cycles"]:
            kernels.append((row, work(row) / traffic * per_bytes, work(row) / row["cycles"]))
    if not kernels:
        return chart
    limits = record["limits"]
    rates = {
        "L2 bandwidth": limits["l2_read_bytes"] / per_bytes,
        "GM bandwidth": limits["gm_read_bytes"] / per_bytes,
    }
    ridge = max(tops.values()) / min(rates.values())
    low_x, high_x = _decades([x for _, x, _ in kernels] + [ridge])
    low_y, high_y = _decades([y for _, _, y in kernels] + [float(v) for v in tops.values()])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low_x) / (high_x - low_x)
        up = (math.log10(y) - low_y) / (high_y - low_y)
        return (
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM), 1),
        )

    for power in range(low_x, high_x + 1):
        x, _ = at(10.0**power, 10.0**low_y)
        chart.columns.append(PlotLine(x, TOP, x, HEIGHT - BOTTOM, _power(power)))
    for power in range(low_y, high_y + 1):
        _, y = at(10.0**low_x, 10.0**power)
        chart.lines.append(PlotLine(LEFT, y, WIDTH - RIGHT, y, _power(power)))
    chart.roofs.extend(_roofs(at, rates, tops, (low_x, high_x, low_y)))
    total = max(1, record["total_cycles"])
    points = []
    for row, x, y in kernels:
        radius = max(SMALLEST, LARGEST * math.sqrt(row["cycles"] / total))
        reached = row["bound_cycles"] / row["cycles"]
        hint = (
            f"{row['label']}: {x:,.3g} {x_title}, {y:,.3g} {y_title}, "
            f"{reached:.0%} of the machine's limit"
        )
        points.append(PlotPoint(row["name"], row["label"], *at(x, y), round(radius, 1), hint, None))
    names: list[Box] = []
    circles = [circle(point) for point in points]
    chart.roofs[:] = [named(roof, i, circles, names) for i, roof in enumerate(chart.roofs)]
    chart.points.extend(labelled(points, names, chart.roofs))
    return chart


def circle(point: PlotPoint) -> Box:
    """The square around a point."""
    x, y, radius = point.x, point.y, point.radius
    return x - radius, y - radius, x + radius, y + radius


def named(roof: Roof, number: int, circles: Sequence[Box], names: list[Box]) -> Roof:
    """A roof with its name at the first place where it covers no point, or else no other name.

    Args:
        circles: of the points.
        names: boxes of names that have their place; that of the roof's joins them.
    """
    places = [
        (any(overlap(box, other) for other in circles), rank, label, box)
        for rank, (label, box) in enumerate(roof_places(roof, number))
        if inside(box) and not any(overlap(box, other) for other in names)
    ]
    if not places:
        return roof
    *_, label, box = min(places, key=lambda place: place[:2])
    names.append(box)
    return replace(roof, label=label)


def roof_places(roof: Roof, number: int) -> Iterator[tuple[Label, Box]]:
    """Where the name of a roof may stand: above what is flat, at its right end or left of that; to
    the left of the first slope and to the right of the others, higher or lower."""
    wide = LETTER_WIDTH * len(roof.text)
    for part in ALONG:
        x, y = (1 - part) * roof.x1 + part * roof.x2, (1 - part) * roof.y1 + part * roof.y2
        if roof.y1 == roof.y2:
            label = Label(x - 4, y - 5, "end")
        elif part == 1:
            continue
        elif number == 0:
            label = Label(x - 6, y - 4, "end")
        else:
            label = Label(x + 8, y + 12, "start")
        left = label.x - wide if label.anchor == "end" else label.x
        yield label, (left, label.y - LABEL_HEIGHT + 3, left + wide, label.y + 3)


def labelled(
    points: Sequence[PlotPoint], taken: Sequence[Box], roofs: Sequence[PlotLine]
) -> list[PlotPoint]:
    """Points with names beside the first few, where they cover nothing: right, left, above or below
    of their point. A place that a roof does not cross is taken first.

    Args:
        taken: boxes of other texts.
    """
    circles = [circle(point) for point in points]
    boxes, found = list(taken), []
    for number, point in enumerate(points):
        others = [*boxes, *circles[:number], *circles[number + 1 :]]
        places = [
            (any(crosses(roof, box) for roof in roofs), rank, label, box)
            for rank, (label, box) in enumerate(places_of(point) if number < LABELLED else ())
            if inside(box) and not any(overlap(box, other) for other in others)
        ]
        label = None
        if places:
            *_, label, box = min(places, key=lambda place: place[:2])
            boxes.append(box)
        found.append(replace(point, label=label))
    return found


def places_of(point: PlotPoint) -> Iterator[tuple[Label, Box]]:
    """Where the name of a point may stand, the best place first."""
    wide, away, up = LETTER_WIDTH * len(point.text), point.radius + 4, LABEL_HEIGHT / 2
    x, y = point.x, point.y
    yield Label(x + away, y + 4, "start"), (x + away, y - up, x + away + wide, y + up)
    yield Label(x - away, y + 4, "end"), (x - away - wide, y - up, x - away, y + up)
    for middle in (y - away - up, y + away + up):
        yield Label(x, middle + 4, "middle"), (x - wide / 2, middle - up, x + wide / 2, middle + up)
        yield Label(x, middle + 4, "start"), (x, middle - up, x + wide, middle + up)
        yield Label(x, middle + 4, "end"), (x - wide, middle - up, x, middle + up)


def inside(box: Box) -> bool:
    """True if a text lies within the frame of the plot, to its left edge and above its axis."""
    return LEFT <= box[0] and box[2] <= WIDTH and 0 <= box[1] and box[3] <= HEIGHT - BOTTOM


def crosses(line: PlotLine, box: Box) -> bool:
    """Says whether a line that goes to the right passes through a box."""
    left, right = max(line.x1, box[0]), min(line.x2, box[2])
    if left >= right:
        return False
    slope = (line.y2 - line.y1) / (line.x2 - line.x1)
    ends = sorted(line.y1 + slope * (x - line.x1) for x in (left, right))
    return ends[0] < box[3] and box[1] < ends[1]


def overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _roofs(
    at: Callable[[float, float], tuple[float, float]],
    rates: dict[str, float],
    tops: dict[str, int],
    bounds: tuple[int, int, int],
) -> Iterator[Roof]:
    """A slope for the bandwidth of each memory, and a flat roof for each rate of the unit."""
    low_x, high_x, low_y = bounds
    top = max(tops.values())
    for name, rate in rates.items():
        begin = max(10.0**low_x, 10.0**low_y / rate)
        yield Roof(*at(begin, begin * rate), *at(top / rate, top), name)
    for name, height in tops.items():
        yield Roof(*at(height / max(rates.values()), height), *at(10.0**high_x, height), name)


def _decades(values: list[float]) -> tuple[int, int]:
    """Returns the exponents of the powers of ten below and above some values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.05))
    return low, max(high, low + 1)


def _power(power: int) -> str:
    """A power of ten as the axis shows it: 0.01, 100, 10 k, 1 M."""
    for digits, unit in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if power >= digits:
            return f"{10 ** (power - digits)} {unit}"
    return f"{10.0**power:g}"
