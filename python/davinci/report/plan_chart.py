"""Time against memory: the plans that were compared when a network was compiled, as a chart.

The plan that ran took as long as was simulated; the others take more or less by what was estimated.
"""

from __future__ import annotations

import itertools

from davinci.report.drawing import Chart, PlotLine, PlotPoint, Roof, labelled
from davinci.report.record import Record

MARGIN = 0.08
"""Room around the points, in parts of what they span."""

RADIUS = 5.0

TICKS = 5


def plan_chart(record: Record) -> Chart | None:
    """The chart of a record, time from left to right and bytes from bottom to top; None where all
    plans are one."""
    plans = record["memory"].get("plans", ())
    if len(plans) < 2:
        return None
    chart = Chart("Plans", "time, us", "arena, KB")
    times = [record["time_us"] + plan["more_cycles"] / record["clock_mhz"] for plan in plans]
    sizes = [plan["arena_bytes"] / 1024 for plan in plans]
    (left, right), (low, high) = _spanned(times), _spanned(sizes)

    def across(time: float) -> float:
        return round(chart.left + (time - left) / (right - left) * (chart.right - chart.left), 1)

    def up(size: float) -> float:
        return round(chart.bottom - (size - low) / (high - low) * (chart.bottom - chart.top), 1)

    for step in range(TICKS):
        part = (step + 0.5) / TICKS
        time, size = left + part * (right - left), low + part * (high - low)
        x, y = across(time), up(size)
        chart.columns.append(PlotLine(x, chart.top, x, chart.bottom, f"{time:,.0f}"))
        chart.lines.append(PlotLine(chart.left, y, chart.right, y, f"{size:,.0f}"))
    points: list[PlotPoint] = []
    for plan, time, size in reversed(list(zip(plans, times, sizes, strict=True))):
        taken = not points
        how = "simulated, the plan that ran" if taken else "estimated"
        hint = (
            f"{plan['plan']}: {time:,.1f} us ({how}), {plan['arena_bytes']:,} bytes, "
            f"{plan['launches']:,} launches"
        )
        place = across(time), up(size)
        points.append(PlotPoint("taken" if taken else "", plan["plan"], *place, RADIUS, hint, None))
    chart.roofs.extend(
        Roof(one.x, one.y, other.x, other.y) for one, other in itertools.pairwise(points[1:])
    )
    named_first = [points[0], points[-1], *points[1:-1]]
    chart.points.extend(labelled(named_first, [], chart.roofs))
    return chart


def _spanned(values: list[float]) -> tuple[float, float]:
    """Ends of an axis on which all values have room."""
    low, high = min(values), max(values)
    room = MARGIN * (high - low) or max(MARGIN * high, 1.0)
    return low - room, high + room
