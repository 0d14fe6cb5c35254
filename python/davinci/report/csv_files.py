"""CSV files with the names and columns of the vendor's profiler (docs/hardware.md e).

Only columns that the simulator knows are written; what it does not model (the instruction cache) is
left out. A launch has one line for each of its blocks and cores, in the order of the launches, but
`op_summary.csv`, `OpBasicInfo.csv` and `L2Cache.csv` have one line for each launch, and
`ResourceConflictRatio.csv` has lines for blocks whose timeline was kept.

On a split machine columns of cube cores begin with `aic_`, those of vector cores with `aiv_`; the
line of a core leaves the other ones empty.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from davinci.errors import InputError
from davinci.files import write_atomically
from davinci.machine import Machine
from davinci.report.critical import SYNCHRONISATION
from davinci.report.record import Record
from davinci.report.seats import seat
from davinci.simulator.timing.profile import BlockProfile, LaunchProfile

Cell = str | int | float
Line = dict[str, Cell]

PIPES = {
    "cube": "PIPE_M",
    "vec": "PIPE_V",
    "scalar": "PIPE_S",
    "mte1": "PIPE_MTE1",
    "mte2": "PIPE_MTE2",
    "mte3": "PIPE_MTE3",
    "fixpipe": "PIPE_FIX",
}
"""The vendor's names of pipes; they stand behind the prefix of the kind of core."""

PREFIXES = {"AICORE": "aic", "AIC": "aic", "AIV": "aiv"}
SUB_BLOCKS = {"AIC": "cube", "AIV": "vector"}
"""How columns begin, and the vendor's names of the cores of a block, by kind of core."""

CUBE_KINDS = ("cube_fp16", "cube_int8")
VECTOR_KINDS = ("vec_fp32", "vec_fp16", "vec_int32", "vec_int16", "vec_misc")

GM_PATHS = ("GM_to_L1", "GM_to_UB", "UB_to_GM", "L0C_to_GM")
L0_PATHS = ("L1_to_L0A", "L1_to_L0B", "L0C_to_UB")
UB_PATHS = ("L1_to_UB", "UB_to_L1", "UB_to_UB")


@dataclass(frozen=True)
class MeasuredRun:
    """Holds what the files are made from."""

    machine: Machine
    launches: Sequence[LaunchProfile]
    kernels: dict[str, Record]

    def us(self, cycles: int) -> float:
        return round(cycles / self.machine.clock_mhz, 3)

    def kind(self, block: BlockProfile) -> str:
        """The kind of core that a block, or a part of it, ran on."""
        return seat(self.machine, block.core)[1]

    def prefix(self, block: BlockProfile) -> str:
        """Returns what the columns of its core begin with: `aic` or `aiv`."""
        return PREFIXES[self.kind(block)]

    def pipes(self, kind: str) -> dict[str, str]:
        """Pipes that a kind of core has, by the vendor's names."""
        present = self.machine.core_types[kind].pipes
        return {name: pipe for name, pipe in PIPES.items() if pipe[5:] in present}


def csv_files(
    machine: Machine, record: Record, launches: Sequence[LaunchProfile]
) -> dict[str, str]:
    """Returns the text of each file by its name."""
    run = MeasuredRun(machine, launches, {row["name"]: row for row in record["kernels"]})
    return {name: _text(lines(run)) for name, lines in FILES.items()}


def write_csv(
    folder: str, machine: Machine, record: Record, launches: Sequence[LaunchProfile]
) -> None:
    """Writes the files into `folder`, which is made if it does not exist.

    Raises:
        InputError: the folder cannot be made or written to.
    """
    make_folder(folder)
    for name, text in csv_files(machine, record, launches).items():
        write_atomically(Path(folder) / name, text.encode())


def make_folder(folder: str) -> None:
    """Makes the folder of the files; a run makes it before it computes anything.

    Raises:
        InputError: it cannot be made.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder: {error.strerror}", where=folder) from None


def op_summary(run: MeasuredRun) -> Iterator[Line]:
    """One line a launch: the whole network's profile."""
    for launch in run.launches:
        line: Line = {
            "Op Name": launch.name,
            **_meaning(run, launch),
            "OP Type": run.kernels[launch.name]["op"],
            "Task Type": _task_type(run, launch),
            "Task Duration(us)": run.us(launch.cycles),
            "Block Dim": launch.blocks,
        }
        parts: dict[str, list[BlockProfile]] = defaultdict(list)
        for block in launch.per_block:
            parts[run.kind(block)].append(block)
        if run.machine.split:
            line["Mix Block Dim"] = len(parts["AIV"]) if len(parts) > 1 else 0
        for kind, blocks in parts.items():
            line |= _summary(run, kind, blocks)
        yield line


def _summary(run: MeasuredRun, kind: str, blocks: Sequence[BlockProfile]) -> Line:
    """Columns of one kind of core: means over the parts of the launch that ran on one."""
    prefix = PREFIXES[kind]
    total = sum(block.cycles for block in blocks)
    time = "aiv_time(us)" if kind == "AIV" else "aicore_time(us)"
    cycles = f"{prefix}_total_cycles" if run.machine.split else "total_cycles"
    line: Line = {time: run.us(_mean(total, len(blocks))), cycles: total}
    for name, pipe in run.pipes(kind).items():
        busy = sum(block.pipes.get(pipe, 0) for block in blocks)
        shown = "mac" if name == "cube" else name
        line[f"{prefix}_{shown}_time(us)"] = run.us(_mean(busy, len(blocks)))
        line[f"{prefix}_{shown}_ratio"] = _ratio(busy, total)
    return line


def op_basic_info(run: MeasuredRun) -> Iterator[Line]:
    for launch in run.launches:
        yield {
            "Op Name": launch.name,
            **_meaning(run, launch),
            "Op Type": _task_type(run, launch),
            "Task Duration(us)": run.us(launch.cycles),
            "Block Dim": launch.blocks,
            "Current Freq": run.machine.clock_mhz,
        }


def pipe_utilization(run: MeasuredRun) -> Iterator[Line]:
    for launch, block in _blocks(run):
        line = _head(run, launch, block)
        prefix = run.prefix(block)
        for name, pipe in run.pipes(run.kind(block)).items():
            busy = block.pipes.get(pipe, 0)
            line[f"{prefix}_{name}_time(us)"] = run.us(busy)
            line[f"{prefix}_{name}_ratio"] = _ratio(busy, block.cycles)
        yield line


def arithmetic_utilization(run: MeasuredRun) -> Iterator[Line]:
    """Shares of a block's cycles in which cube or vector unit worked on a type."""
    for launch, block in _blocks(run):
        line = _head(run, launch, block)
        pipes = run.pipes(run.kind(block))
        kinds = dict.fromkeys(CUBE_KINDS if "cube" in pipes else (), 0)
        kinds |= dict.fromkeys(VECTOR_KINDS if "vec" in pipes else (), 0)
        for mnemonic, cycles in block.unit_cycles.items():
            kinds[_kind(mnemonic)] += cycles
        for kind, cycles in kinds.items():
            line[f"{run.prefix(block)}_{kind}_ratio"] = _ratio(cycles, block.cycles)
        yield line


def resource_conflict_ratio(run: MeasuredRun) -> Iterator[Line]:
    """Shares of a block's cycles in which a `wait_flag` or barrier kept a pipe."""
    for launch in run.launches:
        waiting: dict[tuple[int, int, str], int] = defaultdict(int)
        for row in launch.rows:
            if row.mnemonic in SYNCHRONISATION:
                waiting[row.core, row.block, row.pipe] += row.free - row.start
        drawn = {(row.core, row.block) for row in launch.rows}
        for block in launch.per_block:
            if (block.core, block.block) not in drawn:
                continue
            line = _head(run, launch, block)
            for name, pipe in run.pipes(run.kind(block)).items():
                if name != "scalar":
                    waited = waiting[block.core, block.block, pipe]
                    line[f"{run.prefix(block)}_{name}_wait_ratio"] = _ratio(waited, block.cycles)
            yield line


def l2_cache(run: MeasuredRun) -> Iterator[Line]:
    """Share of what a launch's transfers read that the L2 had."""
    for launch in run.launches:
        rate = round(100 * launch.traffic.read_hit_rate, 2)
        yield {"Op Name": launch.name, "aic_read_hit_rate(%)": rate}


def memory(run: MeasuredRun) -> Iterator[Line]:
    """Traffic with GM: KB by path, and the rates while the block ran, in GB/s."""
    for launch, block in _blocks(run):
        line = _head(run, launch, block)
        read = sum(block.copied_bytes.get(path, 0) for path in GM_PATHS[:2])
        written = sum(block.copied_bytes.get(path, 0) for path in GM_PATHS[2:])
        prefix = run.prefix(block)
        line[f"{prefix}_main_mem_read_bw(GB/s)"] = _bandwidth(run, read, block.cycles)
        line[f"{prefix}_main_mem_write_bw(GB/s)"] = _bandwidth(run, written, block.cycles)
        yield line | _datas(block, GM_PATHS)


def memory_l0(run: MeasuredRun) -> Iterator[Line]:
    return _on_chip(run, L0_PATHS)


def memory_ub(run: MeasuredRun) -> Iterator[Line]:
    return _on_chip(run, UB_PATHS)


def _on_chip(run: MeasuredRun, paths: Sequence[str]) -> Iterator[Line]:
    """Returns the KB that went along each path between on-chip memories, and the rates."""
    for launch, block in _blocks(run):
        line = _head(run, launch, block)
        for path in paths:
            moved = block.copied_bytes.get(path, 0)
            line[f"{path}_bw(GB/s)"] = _bandwidth(run, moved, block.cycles)
        yield line | _datas(block, paths)


FILES: dict[str, Callable[[MeasuredRun], Iterable[Line]]] = {
    "op_summary.csv": op_summary,
    "OpBasicInfo.csv": op_basic_info,
    "PipeUtilization.csv": pipe_utilization,
    "ArithmeticUtilization.csv": arithmetic_utilization,
    "ResourceConflictRatio.csv": resource_conflict_ratio,
    "L2Cache.csv": l2_cache,
    "Memory.csv": memory,
    "MemoryL0.csv": memory_l0,
    "MemoryUB.csv": memory_ub,
}


def _text(lines: Iterable[Line]) -> str:
    """CSV with the columns of all lines, in the order in which they first appear."""
    rows = list(lines)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _blocks(run: MeasuredRun) -> Iterator[tuple[LaunchProfile, BlockProfile]]:
    for launch in run.launches:
        for block in launch.per_block:
            yield launch, block


def _meaning(run: MeasuredRun, launch: LaunchProfile) -> Line:
    """The simulator's own columns: what a launch computes, and which nodes of the model."""
    label = run.kernels[launch.name]["label"]
    return {"label": label, "operators": ";".join(launch.operators)}


def _head(run: MeasuredRun, launch: LaunchProfile, block: BlockProfile) -> Line:
    """The vendor's files are about one operator; these are about all, so its name comes first."""
    prefix = run.prefix(block)
    line: Line = {"Op Name": launch.name, "block_id": block.block}
    if run.machine.split:
        _, kind, which = seat(run.machine, block.core)
        line["sub_block_id"] = f"{SUB_BLOCKS[kind]}{which}"
    line["core_id"] = block.core
    line[f"{prefix}_time(us)"] = run.us(block.cycles)
    line[f"{prefix}_total_cycles"] = block.cycles
    return line


def _task_type(run: MeasuredRun, launch: LaunchProfile) -> str:
    """The vendor profiler's name for the kind of core that a launch ran on."""
    kinds = {run.kind(block) for block in launch.per_block}
    if len(kinds) > 1:
        return "MIX_AIC"
    return "AI_VECTOR_CORE" if kinds == {"AIV"} else "AI_CORE"


def _kind(mnemonic: str) -> str:
    """The type a cube or vector instruction works on, from the type in its name."""
    name, _, types = mnemonic.partition(".")
    if name == "mad":
        return "cube_int8" if types.startswith(("s8", "u8", "s32")) else "cube_fp16"
    known = {"f32": "vec_fp32", "f16": "vec_fp16", "s32": "vec_int32", "s16": "vec_int16"}
    return known.get(types, "vec_misc")


def _datas(block: BlockProfile, paths: Sequence[str]) -> Line:
    return {f"{path}_datas(KB)": round(block.copied_bytes.get(path, 0) / 1024, 3) for path in paths}


def _bandwidth(run: MeasuredRun, moved: int, cycles: int) -> float:
    return round(moved / max(1, cycles) * run.machine.clock_mhz / 1000, 3)


def _ratio(part: int, whole: int) -> float:
    return round(part / max(1, whole), 4)


def _mean(total: int, count: int) -> int:
    return round(total / max(1, count))
