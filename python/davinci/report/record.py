"""The record of a run: what `--json` writes, and what tables and pages are made from.

docs/reports.md explains every key.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from davinci import __version__
from davinci.machine import Machine
from davinci.report.arena import arena_values
from davinci.report.idle import Idle, idle_of
from davinci.report.launching import (
    LAUNCHING,
    cycles_of,
    gaps_and_waits_us,
    launches_of,
    range_of,
)
from davinci.report.limits import limits, times
from davinci.report.names import scope_of
from davinci.report.nodes import drawn_launches, node_cycles
from davinci.report.program import Kernel, ProgramFacts
from davinci.report.seats import kinds_of
from davinci.report.value_range import value_range
from davinci.report.verdict import warnings_of
from davinci.simulator.timing.profile import LaunchProfile

Record = dict[str, Any]

SCHEMA_VERSION = 1
"""Version of the record's form; it grows when a key changes its meaning or goes."""

UNITS = ("cube", "vector", "scalar")
BUSY_SHARE = 0.8
"""A pipe or memory busy for more than this share bounds a kernel (docs/hardware.md e)."""

TENTH_OF_NANOSECOND = 4
"""Digits of times in microseconds."""


def digest_of(machine: Machine) -> str:
    """Tells machine files of one name apart by what they say."""
    return hashlib.sha256(machine.model_dump_json().encode()).hexdigest()[:16]


def machine_values(machine: Machine) -> Record:
    """Keys of a machine file, `gm.read_bytes_per_cycle` and so on, with their values."""
    found: Record = {}

    def add(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                add(f"{prefix}.{name}" if prefix else name, inner)
        elif value is not None:
            found[prefix] = value

    add("", machine.model_dump(mode="json"))
    return found


def build(
    launches: Sequence[LaunchProfile],
    program: ProgramFacts,
    machine: Machine,
    cores: int,
    launching: str = LAUNCHING[0],
) -> Record:
    """The record of all launches of a run; compile times and checks are added by the caller."""
    kernels: dict[str, Record] = {}
    shared = launches_of(launches)
    for sharing in shared:
        useful = [program.kernels[launch.name].useful_cores for launch in sharing]
        most = sum(count or x.cores for count, x in zip(useful, sharing, strict=True))
        idle = idle_of(sharing, machine, cores, most if any(useful) else 0)
        for launch, own in zip(sharing, idle, strict=True):
            kernel = program.kernels[launch.name]
            row = kernels.setdefault(launch.name, _empty_row(launch, kernel))
            _add(row, launch, kernel, own, machine, cores)
    rows = sorted(kernels.values(), key=lambda row: -int(row["cycles"]))
    drawn = drawn_launches(launches)
    for row in rows:
        row["bottleneck"] = bottleneck(row)
        if row["name"] in drawn:
            kernel = program.kernels[row["name"]]
            row["node_cycles"] = node_cycles(drawn[row["name"]], kernel, row["cycles"])
    total = sum(map(cycles_of, shared))
    gaps, waits = gaps_and_waits_us(machine, launches, launching)
    overhead, waited = sum(gaps), sum(waits)
    fronts = [gap + wait for gap, wait in zip(gaps, waits, strict=True)]
    record = {
        "schema_version": SCHEMA_VERSION,
        "davinci_version": __version__,
        "machine": machine.name,
        "machine_digest": digest_of(machine),
        "machine_file": machine_values(machine),
        "clock_mhz": machine.clock_mhz,
        "cores": cores,
        "limits": limits(machine, cores),
        "total_cycles": total,
        "time_us": total / machine.clock_mhz + overhead + waited,
        "launching": launching,
        "launch_overhead_us": overhead,
        "launch_range": [
            {
                **row,
                "time_us": total / machine.clock_mhz
                + row["launch_overhead_us"]
                + row.get("link_wait_us", 0.0),
            }
            for row in range_of(machine, launches, launching)
        ],
        "bound_cycles": sum(row["bound_cycles"] for row in rows),
        "launches": sum(not sharing[0].continues for sharing in shared),
        "meetings": sum(launch.meeting is not None for launch in launches),
        "meeting_cycles": sum(x.meeting.cycles for x in launches if x.meeting is not None),
        "ops": {
            "total": len(launches),
            **{unit: sum(r["launches"] for r in rows if r["unit"] == unit) for unit in UNITS},
        },
        "idle": idle_summary(rows, total),
        "pipes": pipe_summary(rows, machine),
        "sync": sync_summary(rows),
        "kernels": rows,
        "launches_list": list(launch_times(launches, fronts, program.scopes, machine)),
        "range": value_range(launches, program),
        "memory": {
            "weights_bytes": program.weights_bytes,
            "arena_bytes": program.arena_bytes,
            "arena_unplanned_bytes": program.arena_unplanned_bytes,
            "lower_bound_bytes": program.arena_lower_bound_bytes,
            **limited(program),
            **streamed(launches, waited),
            "plans": [
                {
                    "plan": point.name,
                    "launches": point.launches,
                    "arena_bytes": point.arena_bytes,
                    "more_cycles": point.more_cycles,
                }
                for point in program.plans
            ],
            "arena": arena_values(launches, program),
        },
    }
    return {**record, "warnings": warnings_of(record)}


def limited(program: ProgramFacts) -> Record:
    """The record's entries about a limit of memory; empty where none was given."""
    if not program.arena_limit_bytes:
        return {}
    return {
        "limit_bytes": program.arena_limit_bytes,
        "remedies": list(program.arena_remedies),
    }


def streamed(launches: Sequence[LaunchProfile], waited: float) -> Record:
    """The record's entries about weights that the host brings; empty where it brings none.

    Args:
        waited: microseconds that launches wait for them.
    """
    nbytes = sum(fetch.nbytes for launch in launches for fetch in launch.fetches)
    return {"streamed_bytes": nbytes, "link_wait_us": waited} if nbytes else {}


def launch_times(
    launches: Sequence[LaunchProfile],
    gaps: Sequence[float],
    scopes: Mapping[str, str],
    machine: Machine,
) -> Iterator[Record]:
    """Yields the entries of `launches_list`: when each kernel computes, behind the overhead of its
    launch, from the start of the run. Kernels that share a launch have its number in common."""
    begin_us = 0.0
    for number, (sharing, gap) in enumerate(zip(launches_of(launches), gaps, strict=True)):
        begin_us += gap
        for launch in sharing:
            end_us = begin_us + launch.cycles / machine.clock_mhz
            yield {
                "kernel": launch.name,
                "launch": number,
                "start_us": round(begin_us, TENTH_OF_NANOSECOND),
                "end_us": round(end_us, TENTH_OF_NANOSECOND),
                "operators": list(launch.operators),
                "gm_read_bytes": launch.gm_read_bytes,
                "gm_write_bytes": launch.gm_write_bytes,
                "scope": scope_of(launch.operators, scopes),
            }
        begin_us += cycles_of(sharing) / machine.clock_mhz


def idle_summary(rows: Sequence[Record], total_cycles: int) -> Record:
    """Idle cores of all launches together; the overhead of launching is not counted."""
    names = (field.name for field in fields(Idle))
    idle = Idle(*(sum(row[name] for row in rows) for name in names))
    return {
        **asdict(idle),
        "ratio": idle.ratio,
        "half_idle_ratio": idle.half_idle_cycles / max(1, total_cycles),
        "spared_ratio": idle.spared_core_cycles / max(1, idle.core_cycles),
        "half_spared_ratio": idle.half_spared_cycles / max(1, total_cycles),
    }


def pipe_summary(rows: Sequence[Record], machine: Machine) -> Record:
    """Busy cycles of each pipe, and their share of the cycles of the cores that have it."""
    pipes = {f"PIPE_{pipe}" for core in machine.core_types.values() for pipe in core.pipes}
    found = {}
    for name in sorted(pipes):
        busy = sum(row["pipes"].get(name, 0) for row in rows)
        owned = sum(row["pipe_cycles"].get(name, 0) for row in rows)
        found[name] = {"busy_cycles": busy, "ratio": busy / max(1, owned)}
    return found


def _add(
    row: Record, launch: LaunchProfile, kernel: Kernel, idle: Idle, machine: Machine, cores: int
) -> None:
    """Adds a launch to the row of its kernel."""
    needed = times(launch, kernel, machine, cores)
    row["launches"] += 1
    row["cycles"] += launch.cycles
    row["bound_cycles"] += math.ceil(max(needed.values()))
    row["bound_by"] = max(needed, key=lambda part: needed[part])
    row["gm_read_bytes"] += launch.gm_read_bytes
    row["gm_write_bytes"] += launch.gm_write_bytes
    row["instructions"] += sum(launch.instructions.values())
    row["scalar_accesses"] += launch.scalar_accesses
    row["macs"] += launch.macs
    row["vector_repeats"] += launch.vector_repeats
    for name, cycles in asdict(idle).items():
        row[name] += cycles
    row["operators"] += [name for name in launch.operators if name not in row["operators"]]
    owners = pipe_owners(machine, launch)
    for name in ("flag_cycles", "barrier_cycles"):
        for pipe, cycles in getattr(launch, name).items():
            row[name][pipe] = row[name].get(pipe, 0) + cycles
    for pipe, cycles in launch.pipes.items():
        row["pipes"][pipe] = row["pipes"].get(pipe, 0) + cycles
        all_cycles = launch.cycles * owners.get(pipe, 0)
        row["pipe_cycles"][pipe] = row["pipe_cycles"].get(pipe, 0) + all_cycles


def pipe_owners(machine: Machine, launch: LaunchProfile) -> dict[str, int]:
    """Counts by pipe the cores that took part in a launch and have it."""
    kinds = sorted(kinds_of(machine, (block.core for block in launch.per_block)))
    types = {kind: machine.core_types[kind] for kind in kinds}
    groups = launch.cores // max(1, sum(core.count for core in types.values()))
    alone = len(kinds) == 1
    counts = {kind: launch.cores if alone else groups * types[kind].count for kind in kinds}
    owners: dict[str, int] = defaultdict(int)
    for kind, core in types.items():
        for pipe in core.pipes:
            owners[f"PIPE_{pipe}"] += counts[kind]
    return owners


def bottleneck(row: Record) -> str:
    """The busiest pipe of a kernel with its share, or that it waits for latencies."""
    if row["unit"] == "scalar":
        return "scalar accesses"
    name = busiest_pipe(row)
    if not name:
        return "nothing to do"
    busy = row["pipes"][name] / max(1, row["pipe_cycles"][name])
    share = f"{name.removeprefix('PIPE_')} {busy:.0%}"
    # Rounded as it is printed: 80 % never stands beside "latency".
    return share if round(busy, 2) >= BUSY_SHARE else f"latency, {share}"


def busiest_pipe(row: Record) -> str:
    """The pipe of a kernel that has something under way for the largest share; "" if none."""
    owned = row["pipe_cycles"]
    return max(row["pipes"], key=lambda pipe: row["pipes"][pipe] / max(1, owned[pipe]), default="")


def waits_of_busiest(row: Record) -> dict[str, float]:
    """Shares of the time in which flags and barriers hold the busiest pipe with nothing under
    way."""
    name = busiest_pipe(row)
    owned = max(1, row["pipe_cycles"].get(name, 0))
    waits = {"flags": row["flag_cycles"], "barriers": row["barrier_cycles"]}
    return {kind: cycles.get(name, 0) / owned for kind, cycles in waits.items()}


def sync_summary(rows: Sequence[Record]) -> Record:
    """Flags that are not what they would be with more event ids, in all kernels."""
    names = ("sync_merged", "sync_degraded")
    short = [row for row in rows if any(row[name] for name in names)]
    return {**{n[5:]: sum(row[n] for row in rows) for n in names}, "kernels": len(short)}


def _empty_row(launch: LaunchProfile, kernel: Kernel) -> Record:
    return {
        "name": launch.name,
        "label": kernel.label or launch.name,
        "operators": [],
        "op": kernel.op,
        "unit": kernel.unit,
        "launches": 0,
        "blocks": launch.blocks,
        "cycles": 0,
        "bound_cycles": 0,
        "bound_by": "",
        "gm_read_bytes": 0,
        "gm_write_bytes": 0,
        "instructions": 0,
        "scalar_accesses": 0,
        "macs": 0,
        "vector_repeats": 0,
        "work": dict(kernel.work),
        "core_cycles": 0,
        "idle_core_cycles": 0,
        "half_idle_cycles": 0,
        "spared_core_cycles": 0,
        "half_spared_cycles": 0,
        "schedule": kernel.schedule,
        "key": kernel.key,
        "choices": list(kernel.choices),
        "sync_merged": kernel.sync_merged,
        "sync_degraded": kernel.sync_degraded,
        "pipes": {},
        "pipe_cycles": {},
        "flag_cycles": {},
        "barrier_cycles": {},
        "node_cycles": [],
    }
