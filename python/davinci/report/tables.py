"""The tables that npu-run prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from davinci.report.launching import HOST, QUEUED
from davinci.report.names import percent, plural, shortened
from davinci.report.record import UNITS, Record, waits_of_busiest
from davinci.report.value_range import range_summary
from davinci.report.verdict import verdict

LAUNCHED = {QUEUED: "queued on the device", HOST: "each by the host"}

SCALAR_KERNELS = 6
"""Scalar kernels named in the summary."""


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
            f"kernel{'s' * (ops['total'] != 1)}, {LAUNCHED[record['launching']]}",
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
    if short := sync_text(record):
        rows.append(("event ids", short))
    if quantization := record.get("quantization"):
        rows.append(("quantized", quantized_text(quantization)))
    if tuned := record.get("tuned"):
        rows.append(("tuned", tuned_text(tuned)))
    if lost := range_summary(record):
        rows.append(("range", lost))
    if "compile_seconds" in record:
        seconds = (record["compile_seconds"], record["simulate_seconds"])
        cache = f" (cache: {record['cache']})" if "cache" in record else ""
        took = f"{seconds[0]:.1f} s to compile{cache}, {seconds[1]:.1f} s to simulate"
        rows.append(("took", took))
        rows.append(("speed", speed_summary(record)))
    if record.get("timing_only"):
        rows.append(("check", "none: without data (--timing-only)"))
    if check := record.get("check"):
        rows.append(("check", check_summary(check)))
    return rows


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
    """What the machine could do at best, for what the operators mean."""
    share = record["bound_cycles"] / max(1, record["total_cycles"])
    return f"{record['bound_cycles']:,} cycles, {percent(share)} of those that kernels take"


def idle_summary(record: Record) -> str:
    """How many of the cores had nothing to do."""
    idle = record["idle"]
    return (
        f"idle {percent(idle['ratio'])} of the kernels' time; half of the {record['cores']} or "
        f"more in {percent(idle['half_idle_ratio'])} of it"
    )


def sync_text(record: Record) -> str:
    """What became of flags for want of event ids; empty if nothing did."""
    sync = record["sync"]
    parts = [
        *([f"{plural(sync['merged'], 'flag', 'flags')} merged"] * bool(sync["merged"])),
        *([f"{sync['degraded']} became barriers of all pipes"] * bool(sync["degraded"])),
    ]
    return f"{', '.join(parts)}, in {plural(sync['kernels'], 'kernel', 'kernels')}" * bool(parts)


def tuned_text(tuned: Record) -> str:
    """What tuning did."""
    text = (
        f"{plural(tuned['candidates'], 'way', 'ways')} to compute "
        f"{plural(tuned['kernels'], 'kernel', 'kernels')}; {tuned['faster']} got faster"
    )
    if not tuned["faster"]:
        return text
    return f"{text}, {tuned['cycles_before']:,} cycles -> {tuned['cycles_after']:,}"


def quantized_text(quantization: Record) -> str:
    """What was quantized, and what onnxruntime found of it."""
    layers = quantization["layers"]
    kept = sum(layer["kept"] for layer in layers)
    return (
        f"{len(layers) - kept} of {plural(len(layers), 'layer', 'layers')} to int8 by "
        f"{quantization['method']}; against floats outputs have cosine "
        f"{quantization['cosine']:.7f}, {quantization['output_db']:.1f} dB, over "
        f"{plural(quantization['samples'], 'sample', 'samples')}"
    )


def quantization_table(quantization: Record, most: int) -> Any:
    """Errors of layers, the largest first, as a table of `rich`."""
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for title in ("layer", "operator", "as", "alone", "in the model", "cosine"):
        text = title in ("layer", "operator", "as")
        table.add_column(title, justify="left" if text else "right", overflow="fold")
    layers = sorted(quantization["layers"], key=lambda layer: layer["own_db"])
    for layer in layers[:most]:
        table.add_row(
            escape(layer["layer"]),
            layer["operator"],
            "float" if layer["kept"] else "int8",
            *(f"{layer[name]:.1f} dB" for name in ("own_db", "total_db")),
            f"{layer['cosine']:.7f}",
        )
    return table


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
class Column:
    """A column of the table of kernels.

    Attributes:
        title: above it.
        value: of a kernel's row in a record, what the page sorts by.
        shown: the text of a value.
        widest: letters on the terminal; 0 as many as it takes, None to leave it to the page.
    """

    title: str
    value: Callable[[Record, Record], Any]
    shown: Callable[[Any], str] = str
    widest: int | None = 0


COLUMNS = (
    Column("kernel", lambda record, row: row["label"], widest=40),
    Column("nodes", lambda record, row: shortened(row["operators"]), widest=26),
    Column("unit", lambda record, row: row["unit"], widest=None),
    Column("launches", lambda record, row: row["launches"]),
    Column("blocks", lambda record, row: row["blocks"]),
    Column("cycles", lambda record, row: row["cycles"], "{:,}".format),
    Column(
        "share",
        lambda record, row: row["cycles"] / max(1, record["total_cycles"]),
        "{:.1%}".format,
    ),
    Column("limit", lambda _, row: row["bound_cycles"] / max(1, row["cycles"]), "{:.0%}".format),
    Column("of", lambda record, row: row["bound_by"]),
    Column(
        "idle",
        lambda _, row: row["idle_core_cycles"] / max(1, row["core_cycles"]),
        "{:.0%}".format,
    ),
    Column("bottleneck", lambda record, row: row["bottleneck"]),
    Column("held by", lambda record, row: waits_text(row), widest=12),
    Column("GM read", lambda record, row: row["gm_read_bytes"], kilobytes_or_more, widest=None),
    Column("GM written", lambda record, row: row["gm_write_bytes"], kilobytes_or_more, widest=None),
    Column("instructions", lambda record, row: row["instructions"], "{:,}".format, widest=None),
    Column("schedule", lambda record, row: row["schedule"], widest=None),
)


def schedules(rows: list[Record]) -> Any:
    """How each kernel is computed, a line each, as a table of `rich`."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, show_header=False)
    for row in rows:
        if row["schedule"]:
            table.add_row(f"[dim]{escape(row['label'])}", f"[dim]{escape(row['schedule'])}")
    return table


def gains_table(gains: list[Record], most: int) -> Any:
    """What changes of the machine would gain, as a table of `rich`."""
    from rich.table import Table

    table = Table()
    for title in ("what if", "saves", "of the time", "cycles"):
        table.add_column(title, justify="left" if title == "what if" else "right", overflow="fold")
    for row in gains[:most]:
        table.add_row(*gain_cells(row))
    return table


def gain_cells(row: Record) -> tuple[str, str, str, str]:
    """A change, what it saves in us, its share of the time, the cycles with it."""
    saved = f"{row['saved_us']:,.1f} us"
    return row["change"], saved, f"{row['saved_ratio']:.1%}", f"{row['cycles']:,}"


def print_tables(record: Record, console: Any, most: int) -> None:
    """Prints the summary and the `most` longest kernels to a `rich.console.Console`."""
    from rich.markup import escape
    from rich.table import Table

    summary = Table(show_header=False, box=None)
    for name, value in [*summary_rows(record), ("verdict", verdict(record))]:
        summary.add_row(f"[bold]{name}", escape(value))
    table = Table()
    columns = [column for column in COLUMNS if column.widest is not None]
    for column in columns:
        text = column.title in ("kernel", "nodes", "of", "bottleneck", "held by")
        justify: Literal["left", "right"] = "left" if text else "right"
        table.add_column(
            column.title, justify=justify, overflow="fold", max_width=column.widest or None
        )
    for row in record["kernels"][:most]:
        table.add_row(*(escape(column.shown(column.value(record, row))) for column in columns))
    console.print(table)
    if len(record["kernels"]) > most:
        console.print(f"... and {len(record['kernels']) - most} shorter kernels (--json has all)")
    console.print(schedules(record["kernels"][:most]))
    if quantization := record.get("quantization"):
        console.print(quantization_table(quantization, most))
    console.print(summary)
    if gains := record.get("what_if"):
        console.print(gains_table(gains, most))
    for warning in record["warnings"]:
        console.print(f"[bold yellow]warning:[/] {escape(warning)}")
