"""The tables that npu-run prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from davinci.report.launching import HOST, QUEUED
from davinci.report.names import percent, plural, shortened
from davinci.report.record import UNITS, Record, waits_of_busiest
from davinci.report.terminal import Heading, lines_of, table_of
from davinci.report.value_range import range_summary, scaling_summary
from davinci.report.verdict import verdict

LAUNCHED = {QUEUED: "queued on the device", HOST: "each by the host"}

SCALAR_KERNELS = 6
"""Scalar kernels named in the summary."""

MOST_NODE_LINES = 10
"""Nodes of a kernel that the terminal shows."""

WHOLE_NODE = 48
"""Letters of a node's name where it has a line of its own."""

NO_NODE = "all its nodes together"
"""What stands for instructions that serve all nodes of a kernel, or none."""


def sharing_text(record: Record) -> str:
    """In how many launches kernels were started, where some share one, and how often cores meet."""
    count, meetings = record.get("launches", record["ops"]["total"]), record.get("meetings", 0)
    if count == record["ops"]["total"]:
        return ""
    meet = f", whose cores meet {plural(meetings, 'time', 'times')}" if meetings else ""
    return f" in {plural(count, 'launch', 'launches')}{meet}"


def link_text(record: Record) -> str:
    """How long launches wait for weights that the host brings."""
    waited = record["memory"].get("link_wait_us", 0.0)
    return f", + {waited:,.1f} us of waiting for the host link" if waited else ""


def summary_rows(record: Record) -> list[tuple[str, str]]:
    """Name and value of each line above the kernel table."""
    ops, memory = record["ops"], record["memory"]
    rows = [
        ("model", str(record.get("model", ""))),
        ("machine", f"{record['machine']}, {record['cores']} cores, {record['clock_mhz']} MHz"),
        ("precision", str(record.get("precision", ""))),
        (
            "time",
            f"{record['time_us']:,.1f} us = {record['total_cycles']:,} cycles"
            f" + {record['launch_overhead_us']:,.1f} us to launch {ops['total']} "
            f"kernel{'s' * (ops['total'] != 1)}{sharing_text(record)}, "
            f"{LAUNCHED[record['launching']]}{link_text(record)}",
        ),
        ("limit", limit_summary(record)),
        ("cores", idle_summary(record)),
        ("operators", ", ".join(f"{ops[unit]} {unit}" for unit in UNITS)),
        ("scalar", scalar_summary(record)),
        (
            "memory",
            f"weights {megabytes(memory['weights_bytes'])}, values "
            f"{megabytes(memory['arena_bytes'])} ({megabytes(memory['arena_unplanned_bytes'])} "
            "without reuse)",
        ),
        ("pipes", ", ".join(f"{n[5:]} {p['ratio']:.1%}" for n, p in record["pipes"].items())),
    ]
    if remedies := memory.get("remedies"):
        rows.append(("fits", f"{megabytes(memory['limit_bytes'])}; {remedies[-1]}"))
    if size := memory.get("streamed_bytes"):
        rows.append(("streamed", f"{megabytes(size)} of the weights, over the host link"))
    if short := sync_text(record):
        rows.append(("event ids", short))
    if quantization := record.get("quantization"):
        rows.append(("quantized", quantized_text(quantization)))
    if rewritten := record.get("rewrites"):
        rows.append(("rewrites", ", ".join(f"{n} {count:,}" for n, count in rewritten.items())))
    if tuned := record.get("tuned"):
        rows.append(("tuned", tuned_text(tuned)))
    elif given := record.get("given_schedules"):
        rows.append(("schedules", given_text(given)))
    if scaled := scaling_summary(record):
        rows.append(("scaling", scaled))
    if checked := record.get("checked_launches"):
        rows.append(("checked", "\n".join(checked)))
    if lost := range_summary(record):
        rows.append(("range", lost))
    if "compile_seconds" in record:
        seconds = (record["compile_seconds"], record["simulate_seconds"])
        compiled = compiled_text(record.get("cache", ""))
        took = f"{seconds[0]:.1f} s to {compiled}, {seconds[1]:.1f} s to simulate"
        rows.append(("took", took))
        rows.append(("speed", speed_summary(record)))
    if record.get("timing_only"):
        rows.append(("check", "none: without data (--timing-only)"))
    if check := record.get("check"):
        rows.append(("check", check_summary(check)))
    return rows


def compiled_text(cache: str) -> str:
    """What the time to compile was spent on: `compile (kept in the cache for the next time)`.

    Args:
        cache: the key `cache` of the record; "" without one.
    """
    if cache == "hit":
        return "load what an earlier run compiled, from the cache"
    damaged = "its file in the cache was damaged" if cache.startswith("damaged") else ""
    kept = "could not be kept" if cache.endswith("not kept") else "kept in the cache"
    notes = "; ".join(filter(None, [damaged, kept])) if cache else ""
    return f"compile ({notes})" if notes else "compile"


def speed_summary(record: Record) -> str:
    """Instructions and multiply-accumulates of the cube simulated in a second."""
    seconds = max(record["simulate_seconds"], 1e-9)
    instructions = sum(row["instructions"] for row in record["kernels"]) / seconds
    macs = sum(row["macs"] for row in record["kernels"]) / seconds
    return f"{instructions:,.0f} instructions and {macs / 1e6:,.1f} million MACs a second"


def check_summary(check: Record) -> str:
    return (
        f"cosine {check['cosine']:.7f}, largest error {check['max_abs_err']:.3g}, "
        f"{check['max_rel_err']:.3g} of the largest value, against {check['reference']}"
    )


def limit_summary(record: Record) -> str:
    """The machine's lower bound for the work that the operators mean, in words."""
    share = record["bound_cycles"] / max(1, record["total_cycles"])
    return f"{record['bound_cycles']:,} cycles, {percent(share)} of those that kernels take"


def idle_summary(record: Record) -> str:
    """Says how many of the cores had nothing to do."""
    idle = record["idle"]
    chosen = f" ({percent(idle['spared_ratio'])} by choice: launches on more cores take longer)"
    chosen = chosen if idle["spared_ratio"] else ""
    half = f"; at least half of the {record['cores']} in {percent(idle['half_idle_ratio'])} of it"
    half = half if record["cores"] > 1 else ""
    return f"idle {percent(idle['ratio'])} of the kernels' time{chosen}{half}"


def sync_text(record: Record) -> str:
    """Flags that were merged or made barriers for want of event ids, in words; empty if none."""
    sync = record["sync"]
    parts = [
        *([f"{plural(sync['merged'], 'flag', 'flags')} merged"] * bool(sync["merged"])),
        *([f"{sync['degraded']} became barriers of all pipes"] * bool(sync["degraded"])),
    ]
    return f"{', '.join(parts)}, in {plural(sync['kernels'], 'kernel', 'kernels')}" * bool(parts)


def given_text(given: Record) -> str:
    """Says for how many kernels a file of schedules was used."""
    text = f"{given['used']} of {given['kernels']} in {given['file']}"
    if given["used"] == given["kernels"]:
        return text
    return f"{text}; the others are for no kernel of this model"


def tuned_text(tuned: Record) -> str:
    """Says how many ways to compute kernels were tried, and what became faster."""
    text = (
        f"{plural(tuned['candidates'], 'way', 'ways')} to compute "
        f"{plural(tuned['kernels'], 'kernel', 'kernels')}; {tuned['faster']} got faster"
    )
    if tuned["faster"]:
        text += f", {tuned['cycles_before']:,} cycles -> {tuned['cycles_after']:,}"
    before, won = tuned["total_cycles"], tuned["won_cycles"]
    text += (
        f"; all launches of them {before:,} -> {before - won:,}, at most "
        f"{percent(tuned['most_cycles'] / max(1, before))} could be won"
    )
    return f"{text}; {tuned['stopped']}" if tuned["stopped"] else text


def quantized_text(quantization: Record) -> str:
    """The layers that were quantized and their errors by onnxruntime, in words."""
    layers = quantization["layers"]
    kind = "random " if quantization.get("data") == "random" else ""
    kept = sum(layer["kept"] for layer in layers)
    text = (
        f"{len(layers) - kept} of {plural(len(layers), 'layer', 'layers')} to int8 by "
        f"{quantization['method']}; against floats outputs have cosine "
        f"{quantization['cosine']:.7f}, {quantization['output_db']:.1f} dB, over "
        f"{plural(quantization['samples'], f'{kind}sample', f'{kind}samples')}"
    )
    for why, reason in (("accuracy", "for accuracy"), ("time", "where int8 takes longer")):
        if count := sum(layer["why"] == why for layer in layers):
            text += f"; {count} left in floats {reason}"
    if quantization.get("floats_time_us") is None:
        return text
    before, after = quantization["floats_time_us"], quantization["time_us"]
    gain = "slower than" if after > before else "instead of"
    return f"{text}; {after:,.1f} us, {gain} {before:,.1f} us of the model of floats"


def quantization_table(quantization: Record, most: int, width: int) -> Any:
    """Errors of layers, the largest first, as a table of `rich`."""
    headings = (
        Heading("layer", True, 6),
        Heading("operator", True, 2),
        Heading("as", True, 5),
        Heading("alone", worth=3),
        Heading("in the model", worth=4),
        Heading("cosine", worth=1),
    )
    layers = sorted(quantization["layers"], key=lambda layer: layer["own_db"])
    rows = [
        (
            layer["layer"],
            layer["operator"],
            f"float: {layer['why']}" if layer["kept"] else "int8",
            *(f"{layer[name]:.1f} dB" for name in ("own_db", "total_db")),
            f"{layer['cosine']:.7f}",
        )
        for layer in layers[:most]
    ]
    return table_of(headings, rows, width)


def waits_text(row: Record) -> str:
    """`flags 31%, barriers 12%`: what holds the busiest pipe."""
    shares = waits_of_busiest(row)
    return ", ".join(f"{kind} {share:.0%}" for kind, share in shares.items() if share >= 0.005)


def scalar_summary(record: Record) -> str:
    """The kernels on the scalar unit, which are slow, with the longest first."""
    launches: Counter[str] = Counter()
    for row in record["kernels"]:
        if row["unit"] == "scalar":
            launches[row["label"]] += row["launches"]
    named = [f"{label} x{count}" for label, count in [*launches.items()][:SCALAR_KERNELS]]
    more = len(launches) - len(named)
    return ", ".join(named + [f"{more} more"] * (more > 0)) or "none"


def kilobytes_or_more(count: int) -> str:
    """`12.3 KB`, `1.50 MB`: what a column has room for."""
    return f"{count / 1e3:,.1f} KB" if count < 1e6 else megabytes(count)


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.2f} MB"


@dataclass(frozen=True)
class KernelColumn:
    """A column of the table of kernels.

    Attributes:
        title: above it.
        value: of a kernel's row in a record, what the page sorts by.
        shown: the text of a value.
        worth: to have it on the terminal, see `terminal.Heading`; 0 leaves it to the page.
        text: whether its cells are words.
    """

    title: str
    value: Callable[[Record, Record], Any]
    shown: Callable[[Any], str] = str
    worth: int = 0
    text: bool = False


def quotient(part: str, whole: str) -> Callable[[Record, Record], float]:
    """Makes a function that divides one key of a kernel's row by another one."""
    return lambda _, row: float(row[part] / max(1, row[whole]))


COLUMNS = (
    KernelColumn("kernel", lambda record, row: row["label"], worth=11, text=True),
    KernelColumn("nodes", lambda record, row: shortened(row["operators"]), worth=5, text=True),
    KernelColumn("unit", lambda record, row: row["unit"]),
    KernelColumn("launches", lambda record, row: row["launches"], worth=8),
    KernelColumn("blocks", lambda record, row: row["blocks"], worth=2),
    KernelColumn("cycles", lambda record, row: row["cycles"], "{:,}".format, worth=10),
    KernelColumn(
        "share",
        lambda record, row: row["cycles"] / max(1, record["total_cycles"]),
        "{:.1%}".format,
        worth=9,
    ),
    KernelColumn("limit", quotient("bound_cycles", "cycles"), "{:.0%}".format, worth=6),
    KernelColumn("of", lambda record, row: row["bound_by"], worth=3, text=True),
    KernelColumn("idle", quotient("idle_core_cycles", "core_cycles"), "{:.0%}".format, worth=4),
    KernelColumn("bottleneck", lambda record, row: row["bottleneck"], worth=7, text=True),
    KernelColumn("held by", lambda record, row: waits_text(row), worth=1, text=True),
    KernelColumn("GM read", lambda record, row: row["gm_read_bytes"], kilobytes_or_more),
    KernelColumn("GM written", lambda record, row: row["gm_write_bytes"], kilobytes_or_more),
    KernelColumn("instructions", lambda record, row: row["instructions"], "{:,}".format),
)


def schedules(rows: list[Record], width: int) -> Any:
    """How each kernel is computed, a line each, as a table of `rich`."""
    lines = [(row["label"], row["schedule"]) for row in rows if row["schedule"]]
    return table_of((Heading("", True, 1), Heading("", True)), lines, width, header=False)


def nodes_table(rows: list[Record], width: int) -> Any:
    """Cycles of the model's nodes inside kernels that hold several, as a table of `rich`.

    Args:
        rows: of kernels in a record.
        width: of the table, in letters.
    """
    headings = (
        Heading("kernel", True, 2),
        Heading("node", True, 5),
        Heading("operators", True, 1),
        Heading("cycles", worth=4),
        Heading("of the kernel", worth=3),
        Heading("mostly on", True, 1),
    )
    lines: list[tuple[str, ...]] = []
    sections = []
    for row in rows:
        of_row = node_cells(row) if len(row["node_cycles"]) > 1 else []
        shown, others = of_row[:MOST_NODE_LINES], of_row[MOST_NODE_LINES:]
        if shown:
            sections.append(len(lines))
            lines += ((row["label"] if i == 0 else "", *cells) for i, cells in enumerate(shown))
        if others:
            lines.append(("", f"{len(others)} more (--json has all)", "", "", "", ""))
    return table_of(headings, lines, width, sections=sections[1:])


def node_cells(row: Record) -> list[tuple[str, str, str, str, str]]:
    """Of each line of a kernel's `node_cycles`: node, operators, cycles, share of the kernel's, and
    the pipe that works for it longest."""
    return [
        (
            shortened(line["nodes"], WHOLE_NODE) or (NO_NODE if not line["operators"] else ""),
            ", ".join(line["operators"]),
            f"{line['cycles']:,}",
            f"{line['cycles'] / max(1, row['cycles']):.1%}",
            max(line["pipes"], key=lambda pipe: line["pipes"][pipe], default="")[5:],
        )
        for line in row["node_cycles"]
    ]


def gains_table(gains: list[Record], most: int, width: int) -> Any:
    """The gains of changes of the machine, as a table of `rich`."""
    titles = ("saves", "of the time", "cycles")
    headings = (Heading("what if", True, 4), *(Heading(title, worth=1) for title in titles))
    return table_of(headings, [gain_cells(row) for row in gains[:most]], width)


def gain_cells(row: Record) -> tuple[str, str, str, str]:
    """A change, what it saves in us, its share of the time, the cycles with it."""
    saved = f"{row['saved_us']:,.1f} us"
    return row["change"], saved, f"{row['saved_ratio']:.1%}", f"{row['cycles']:,}"


def print_tables(record: Record, console: Any, most: int, nodes: bool = False) -> None:
    """Prints the summary and the `most` longest kernels to a `rich.console.Console`.

    Args:
        nodes: whether it also prints what each node of the model takes inside its kernel.
    """
    width = console.width
    columns = [column for column in COLUMNS if column.worth]
    headings = [Heading(column.title, column.text, column.worth) for column in columns]
    rows = [
        [column.shown(column.value(record, row)) for column in columns]
        for row in record["kernels"][:most]
    ]
    console.print(table_of(headings, rows, width))
    if len(record["kernels"]) > most:
        console.print(f"... and {len(record['kernels']) - most} shorter kernels (--json has all)")
    console.print(schedules(record["kernels"][:most], width), style="dim")
    if nodes:
        console.print(nodes_table(record["kernels"][:most], width))
    if quantization := record.get("quantization"):
        console.print(quantization_table(quantization, most, width))
    summary = [*summary_rows(record), ("verdict", verdict(record))]
    console.print(table_of((Heading("", True, 1), Heading("", True)), summary, width, header=False))
    if gains := record.get("what_if"):
        console.print(gains_table(gains, most, width))
    for warning in record["warnings"]:
        text = "\n".join(lines_of(f"warning: {warning}", width))
        console.print(text, style="yellow", markup=False)
