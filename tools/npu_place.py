"""`npu-run --devices F.toml --place ALGORITHM`: a network's layers on several unlike devices."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from davinci import errors
from davinci.tools.command import refuse_others
from davinci.tools.npu_split import print_errors

if TYPE_CHECKING:
    from davinci.placement.player import PlacementTimeline
    from davinci.placement.priced import PricedNetwork
    from davinci.placement.problem import Placement

TAKEN = frozenset(
    (
        *("model", "devices", "place", "seed", "timing_only", "check"),
        *("outputs", "json", "trace", "report"),
    )
)
"""Options of npu-run that mean something for several devices."""


def require_options(options: Any, defaults: Any) -> None:
    """Raises an `InputError` for an option that means nothing where there are several devices."""
    hint = "machine, cores and precision of each device stand in the .toml file"
    refuse_others(options, defaults, TAKEN, "not together with --devices", hint=hint)


def execute(options: Any) -> int:
    """Prices the layers on all devices, places them, runs them where they were placed."""
    from davinci import arrays
    from davinci.files import write_atomically, write_json
    from davinci.placement import faults, place, play
    from davinci.placement.placed_page import as_html
    from davinci.placement.priced import devices_of, price, require_runnable
    from davinci.placement.trace import trace_json
    from davinci.tools.progress import Progress

    results = (options.json, options.trace, options.report, options.outputs)
    devices = devices_of(options.devices, options.model, results)
    runs = not options.timing_only
    if runs:
        require_runnable(devices, "--devices", "add --timing-only")
    with Progress() as progress:
        priced = price(options.model, devices, options.seed, progress)
        problem = priced.problem
        progress("placing layers")
        plan = place(problem, options.place)
        wrong = faults(plan)
        assert not wrong, wrong[0]
        timeline = play(problem, plan.devices, plan.queues, plan.algorithm)
        outputs = priced.run_plan(plan, progress) if runs else {}
    checked = priced.compared(outputs) if options.check else None
    single = place(problem, "single")
    if options.outputs is not None:
        arrays.save_npz(options.outputs, outputs)
    if options.trace is not None:
        write_atomically(options.trace, trace_json(timeline).encode())
    if options.report is not None:
        page = as_html(options.model, timeline, single)
        write_atomically(options.report, page.encode())
    if options.json is not None:
        write_json(options.json, record_of(options, priced, timeline, single, checked))
    show(plan, timeline, single)
    if checked is not None:
        print_errors(checked)
        priced.require_close(checked)
    return errors.EXIT_OK


def record_of(
    options: Any,
    priced: PricedNetwork,
    timeline: PlacementTimeline,
    single: Placement,
    checked: dict[str, float] | None,
) -> dict[str, Any]:
    """The placed run as data; times are in milliseconds from its beginning."""
    from davinci.placement.priced import milliseconds

    plan, devices = timeline.plan, priced.devices
    names = plan.problem.devices
    return {
        "schema_version": 1,
        "model": options.model,
        "algorithm": options.place,
        "devices": [device.model_dump() for device in devices.devices],
        "links": [link.model_dump() for link in devices.links],
        "milliseconds": milliseconds(plan.latency),
        "single_milliseconds": milliseconds(single.latency),
        "busy_milliseconds": dict(zip(names, map(milliseconds, plan.busy()), strict=True)),
        "layers": [
            {
                **priced.layer_record(i),
                "device": names[plan.devices[i]],
                "start_milliseconds": plan.starts[i] * 1e3,
                "end_milliseconds": plan.ends[i] * 1e3,
            }
            for i in range(len(plan.starts))
        ],
        "moves": [
            {
                "producer": priced.network.layers[plan.problem.tensors[move.tensor].producer].name,
                "from": names[move.source],
                "to": names[move.target],
                "start_milliseconds": move.start * 1e3,
                "end_milliseconds": move.end * 1e3,
            }
            for move in timeline.moves
        ],
        "check": checked,
    }


def show(plan: Placement, timeline: PlacementTimeline, single: Placement) -> None:
    """Prints a lane for each device, and what placing has gained."""
    from rich.console import Console

    from davinci.report.terminal import PADDING, Heading, table_of

    numbers = (Heading(title, worth=1) for title in ("layers", "busy ms", "%"))
    headings = (Heading("device", True, 3), *numbers, Heading("when it computes", True, 2))
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    whole = max(plan.latency, 1e-30)
    rows = []
    for device, (name, busy) in enumerate(zip(plan.problem.devices, plan.busy(), strict=True)):
        queue = plan.queues[device]
        share = f"{100 * busy / whole:.1f}"
        rows.append([name, str(len(queue)), f"{busy * 1e3:.3f}", share])
    widest = [
        max(len(text) for text in (heading.title, *(row[number] for row in rows)))
        for number, heading in enumerate(headings[:-1])
    ]
    room = console.width - sum(size + PADDING for size in widest) - PADDING - 1
    cells = max(LEAST_CELLS, min(CELLS, room))
    rows = [[*row, lane(plan, device, cells)] for device, row in enumerate(rows)]
    console.print(table_of(headings, rows, console.width))
    console.print(f"{plan.algorithm}: {plan.latency * 1e3:.3f} ms, {len(timeline.moves)} moves")
    ratio = single.latency / whole
    most = max(single.queues, key=len)
    name = plan.problem.devices[single.queues.index(most)]
    console.print(f"all on {name}: {single.latency * 1e3:.3f} ms, {ratio:.2f} x as long")
    if plan.remark:
        console.print(plan.remark)


CELLS, LEAST_CELLS = 60, 20
"""Characters of a lane, at most and at least."""


def lane(plan: Placement, device: int, count: int = CELLS) -> str:
    """A line of a device's time in `count` cells: a full block where the device computes for half
    of the cell's time or more."""
    cells = [0.0] * count
    width = max(plan.latency, 1e-30) / count
    for task in plan.queues[device]:
        first, last = plan.starts[task] / width, plan.ends[task] / width
        for cell in range(int(first), min(count, int(last) + 1)):
            cells[cell] += max(0.0, min(last, cell + 1) - max(first, cell))
    return "".join("█" if filled >= 0.5 else "░" if filled > 0.05 else "·" for filled in cells)
