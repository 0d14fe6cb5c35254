"""Rules over the record that say in plain words where a run lost time, and what to try.

Each rule looks for one loss and says which share of the run's time it is. Losses overlap: an
operator on the scalar unit keeps one core at work and all others idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from davinci.report.names import percent, plural, shortened

Record = dict[str, Any]

WORTH_SAYING = 0.05
"""Losses of a smaller share of the time are left out."""

MOST_NAMED = 3
"""Kernels that a loss names."""

MOSTLY_SCALAR = 0.5
"""Share of the time from which on scalar kernels are warned of."""

MOVES = frozenset(
    [
        *("broadcast", "cast", "concat", "concatenate", "convert", "copy", "defractalize"),
        *("fractalize", "iota", "pad", "reverse", "slice", "transpose"),
    ]
)
"""Operators that move or convert data."""


@dataclass(frozen=True)
class Loss:
    """One thing that time was lost on.

    Attributes:
        share: of the run's time.
        short: a clause of the verdict.
        text: with figures and names.
        advice: what to try.
    """

    share: float
    short: str
    text: str
    advice: str


def verdict(record: Record) -> str:
    """Says in a sentence what the run lost most time on."""
    clauses = [loss.short for loss in losses(record)[:MOST_NAMED]]
    reached = record["bound_cycles"] / max(1, record["total_cycles"])
    if not record["ops"]["total"]:
        return "Nothing was launched."
    if not clauses:
        return (
            f"No large loss: kernels take {1 / max(reached, 1e-9):.1f} times the machine's limit."
        )
    sentence = "; ".join(clauses)
    return f"{sentence[0].upper()}{sentence[1:]}."


def losses(record: Record) -> list[Loss]:
    """Lists what time was lost on, the largest share first."""
    found = [loss for rule in RULES if (loss := rule(record)) is not None]
    worth = [loss for loss in found if loss.share >= WORTH_SAYING]
    return sorted(worth, key=lambda loss: -loss.share)


def warnings_of(record: Record) -> list[str]:
    """Lists what a user must not overlook."""
    loss = scalar_kernels(record)
    if loss is None or loss.share <= MOSTLY_SCALAR:
        return []
    return [f"{loss.text} {loss.advice}"]


def launching(record: Record) -> Loss | None:
    """Finds the time that starting kernels takes, whatever they do."""
    meetings = record.get("meetings", 0)
    count = record.get("launches", record["ops"]["total"]) + meetings
    if not count:
        return None
    share = record["launch_overhead_us"] / record["time_us"]
    each = record["launch_overhead_us"] / count
    started = "start a kernel or have its cores meet" if meetings else "start a kernel"
    return Loss(
        share,
        f"launches take {percent(share)} of the time{_by_launch_cost(record)}",
        f"To {started} takes {each:.3g} us, {plural(count, 'time', 'times')}: "
        f"{percent(share)} of the time{_by_launch_cost(record)}.",
        "Give each launch more to do: the same launches serve a larger batch or a longer sequence. "
        "Merge small operators in the model where one of ONNX does the same.",
    )


def host_link(record: Record) -> Loss | None:
    """Finds the time in which launches wait for weights that the host brings."""
    memory = record.get("memory", {})
    if not (waited := memory.get("link_wait_us", 0.0)):
        return None
    share, size = waited / record["time_us"], memory["streamed_bytes"]
    text = f"waiting for weights over the host link takes {percent(share)}"
    return Loss(
        share,
        text,
        f"{text[0].upper()}{text[1:]} of the time: {size:,} bytes come in each run.",
        "Keep weights in global memory (--weights resident), or give each run more to do: a larger "
        "batch reads the same weights.",
    )


def launch_shares(record: Record) -> list[float]:
    """Shares of the time that launches take for each cost that one may have, the least first."""
    return [
        row["launch_overhead_us"] / max(row["time_us"], 1e-9)
        for row in record.get("launch_range", [])
    ]


def _by_launch_cost(record: Record) -> str:
    """Between which shares that lies, as what a launch takes is known from bounds only."""
    shares, rows = launch_shares(record), record.get("launch_range", [])
    if len(rows) < 2:
        return ""
    least, most = rows[0]["all_cores_us"], rows[-1]["all_cores_us"]
    return (
        f" ({percent(shares[0]).removesuffix(' %')} to {percent(shares[-1])} if one on all cores "
        f"takes {least:.3g} to {most:.3g} us)"
    )


def scalar_kernels(record: Record) -> Loss | None:
    """Finds kernels that load and store element by element."""
    rows = [row for row in record["kernels"] if row["unit"] == "scalar"]
    if not rows:
        return None
    share = _share(record, rows)
    count = plural(sum(row["launches"] for row in rows), "operator", "operators")
    verb = "takes" if count.startswith("1 ") else "take"
    return Loss(
        share,
        f"{count} on the scalar unit {verb} {percent(share)}",
        f"{count} on the scalar unit, which loads and stores single elements, {verb} "
        f"{percent(share)} of the time: {_named(record, rows)}.",
        " ".join(_scalar_advice(rows)),
    )


def _scalar_advice(rows: list[Record]) -> Iterable[str]:
    products = [row for row in rows if row["work"].get("macs")]
    if products:
        limit, cycles = (sum(row[key] for row in products) for key in ("bound_cycles", "cycles"))
        yield (
            f"Products and convolutions took {cycles:,} cycles; the cube's limit for them is "
            f"{limit:,}: write them as MatMul where the model allows."
        )
    if any(word in row["label"].split() for row in rows for word in ("i64", "ui64", "ui32", "i16")):
        yield "The vector unit divides and converts 32-bit integers with signs: use int32 there."
    if any(not row["work"].get("macs") for row in rows):
        yield "Replace what the vector unit has no kernel for, or move it out of the model."


def idle_cores(record: Record) -> Loss | None:
    """Launches with fewer blocks than cores, or blocks of different lengths. Cores that were left
    out because of what a launch on them takes are no loss."""
    idle, cores = record["idle"], record["cores"]
    outside = record["launch_overhead_us"] + record.get("memory", {}).get("link_wait_us", 0.0)
    kernel_share = 1 - outside / max(record["time_us"], 1e-9)
    if cores == 1:
        return None
    half = idle["half_idle_ratio"] - idle["half_spared_ratio"]
    lost = idle["ratio"] - idle["spared_ratio"]
    spared = (
        f", besides the {percent(idle['spared_ratio'])} of their time for which cores were left "
        "out because to launch on them takes longer than they save"
    )
    spared = spared if idle["spared_ratio"] else ""
    working = cores * (1 - idle["ratio"])
    short = (
        f"half of the cores idle in {percent(half)} of the kernels' time"
        if half >= WORTH_SAYING
        else f"cores idle {percent(lost)} of the kernels' time"
    )
    return Loss(
        lost * kernel_share,
        short,
        f"Of {cores} cores {working:.1f} work on average while kernels run; half of them or more "
        f"have nothing to do in {percent(half)} of that time{spared}.",
        "Tensors are too small to be shared by all cores: larger shapes fill them; a batch does, "
        "or heads and channels computed in one operator instead of one after the other.",
    )


def moving(record: Record) -> Loss | None:
    """Finds kernels that compute nothing."""
    rows = [row for row in record["kernels"] if row["op"] in MOVES and row["unit"] != "scalar"]
    if not rows:
        return None
    share = _share(record, rows)
    return Loss(
        share,
        f"moving and converting data takes {percent(share)}",
        f"Casts, layouts, transposes, broadcasts and copies take {percent(share)} of the time: "
        f"{_named(record, rows)}.",
        "Casts go with --precision fp16; layouts are those that the cube wants, and cost least "
        "between products that follow each other; transposes and slices go where the model can do "
        "without.",
    )


def latency(record: Record) -> Loss | None:
    """Finds kernels in which no pipe is busy."""
    rows = [row for row in record["kernels"] if row["bottleneck"].startswith("latency")]
    if not rows:
        return None
    share = _share(record, rows)
    return Loss(
        share,
        f"kernels that wait for latencies take {percent(share)}",
        f"In kernels that take {percent(share)} of the time no pipe is busy: they wait for the "
        "first bytes, and for each other's flags.",
        "More work for each block hides latencies: larger shapes, or fewer cores. "
        "Where cycles were lost, below, names each wait.",
    )


RULES: tuple[Callable[[Record], Loss | None], ...] = (
    launching,
    host_link,
    scalar_kernels,
    idle_cores,
    moving,
    latency,
)


def _share(record: Record, rows: list[Record]) -> float:
    """The share of the run's time that these kernels take, without the overhead of launching
    them."""
    cycles = sum(row["cycles"] for row in rows)
    return float(cycles / record["clock_mhz"] / max(record["time_us"], 1e-9))


def _named(record: Record, rows: list[Record]) -> str:
    """The longest of some kernels, with their nodes and shares."""
    longest = sorted(rows, key=lambda row: -int(row["cycles"]))[:MOST_NAMED]
    texts = []
    for row in longest:
        nodes = shortened(row["operators"])
        where = f" ({nodes})" if nodes else ""
        texts.append(f"{row['label']}{where} {percent(_share(record, [row]))}")
    more = len(rows) - len(longest)
    return ", ".join(texts) + (f" and {plural(more, 'kernel', 'kernels')} more" if more else "")
