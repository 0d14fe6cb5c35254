"""The record of a run: what `--json` writes, and what tables and pages are made from.

`bound_cycles` of a kernel is the machine's limit for its work, the largest of three times: of the
cube (multiply-accumulates over the peak of all cores used), of memory (bytes of the arguments, each
moved once, over the bandwidth of the L2 in its direction, or bytes that the L2 did not have over
that of global memory) and of the vector unit (repeats at one a cycle over all cores used).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import function_type, ir, symbol_name
from davinci.simulator.profile import LaunchProfile
from davinci.simulator.trace import seat

Record = dict[str, Any]

UNITS = ("cube", "vector", "scalar")
BUSY_SHARE = 0.8
"""A pipe or memory busy for more than this share bounds a kernel (docs/hardware.md e)."""


@dataclass(frozen=True)
class Kernel:
    """What the module says of a kernel: its operator, its unit and its arguments' bytes."""

    op: str
    unit: str
    argument_bytes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Program:
    """What the module says of the whole program.

    Attributes:
        kernels: by name, with the argument sizes of a launch.
        weights_bytes: constants in global memory.
        arena_bytes: intermediate values.
        arena_unplanned_bytes: what they would take if no two shared memory.
    """

    kernels: dict[str, Kernel]
    weights_bytes: int
    arena_bytes: int
    arena_unplanned_bytes: int


def describe(module: Any) -> Program:
    """Reads the facts of a report off a module whose kernels are outlined."""
    kernels: dict[str, Kernel] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    weights = arena = unplanned = 0

    def visit(view: Any) -> Any:
        nonlocal weights, arena, unplanned
        op = view.operation
        if op.name == "memref.global":
            weights += memref_bytes(ir.TypeAttr(op.attributes["type"]).value)
        elif op.name == "func.func" and "ascend.launch" in op.attributes:
            name = kernel_names(op.attributes["ascend.launch"])[0][-1]
            inputs = function_type(op).inputs
            sizes[name] = tuple(memref_bytes(argument) for argument in inputs)
        elif op.name in ("func.func", "llvm.func"):
            arena += attribute(op, "ascend.arena_bytes", 0)
            unplanned += attribute(op, "ascend.arena_unplanned_bytes", 0)
            if "ascend.kernel" in op.attributes:
                name = symbol_name(op)
                kernels[name] = Kernel(
                    attribute(op, "ascend.op", name), attribute(op, "ascend.unit", "vector")
                )
                return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    joined = {
        name: Kernel(kernel.op, kernel.unit, sizes.get(name, ()))
        for name, kernel in kernels.items()
    }
    return Program(joined, weights, arena, unplanned)


def kernel_names(launch: Any) -> list[list[str]]:
    """Symbol paths in an attribute `ascend.launch`: a kernel, or the ones of two kinds of cores."""
    parts = list(launch) if isinstance(launch, ir.ArrayAttr) else [launch]
    return [list(ir.SymbolRefAttr(part).value) for part in parts]


def memref_bytes(memref_type: Any) -> int:
    """Bytes of a memref with a static shape."""
    typed = ir.MemRefType(memref_type)
    element = typed.element_type
    width = 64 if isinstance(element, ir.IndexType) else element.width
    return int(math.prod(typed.shape)) * max(8, int(width)) // 8


def limits(machine: Machine, cores: int) -> Record:
    """What `cores` cores can do in a cycle at most: the roofs of the roofline."""
    cube, gm, l2 = machine.cube, machine.gm, machine.l2
    return {
        "macs_f16": cores * cube.m * cube.n * cube.k_b16,
        "macs_i8": cores * cube.m * cube.n * cube.k_b8,
        "vector_repeats": cores * machine.vector_units,
        "gm_read_bytes": cores * gm.read_bytes_per_cycle,
        "gm_write_bytes": cores * gm.write_bytes_per_cycle,
        "l2_read_bytes": cores * l2.read_bytes_per_cycle,
    }


def bound_cycles(launch: LaunchProfile, kernel: Kernel, machine: Machine, cores: int) -> int:
    """The machine's limit for one launch on `cores` cores, in cycles."""
    cube, gm, l2, traffic = machine.cube, machine.gm, machine.l2, launch.traffic
    k = cube.k_b8 if any(name.startswith("mad.s32") for name in launch.instructions) else cube.k_b16
    *inputs, output = kernel.argument_bytes or (0,)
    return math.ceil(
        max(
            launch.macs / (cores * cube.m * cube.n * k),
            min(sum(inputs), traffic.read_bytes) / (cores * l2.read_bytes_per_cycle),
            output / (cores * l2.write_bytes_per_cycle),
            traffic.filled_bytes / (cores * gm.read_bytes_per_cycle),
            traffic.written_back_bytes / (cores * gm.write_bytes_per_cycle),
            launch.vector_repeats / (cores * machine.vector_units),
        )
    )


def build(
    launches: Sequence[LaunchProfile], program: Program, machine: Machine, cores: int
) -> Record:
    """The record of all launches of a run; compile times and checks are added by the caller."""
    kernels: dict[str, Record] = {}
    for launch in launches:
        kernel = program.kernels[launch.name]
        row = kernels.setdefault(launch.name, _empty_row(launch, kernel))
        row["launches"] += 1
        row["cycles"] += launch.cycles
        row["bound_cycles"] += bound_cycles(launch, kernel, machine, cores)
        row["gm_read_bytes"] += launch.gm_read_bytes
        row["gm_write_bytes"] += launch.gm_write_bytes
        row["instructions"] += sum(launch.instructions.values())
        row["scalar_accesses"] += launch.scalar_accesses
        row["macs"] += launch.macs
        row["vector_repeats"] += launch.vector_repeats
        owners = pipe_owners(machine, launch)
        for pipe, cycles in launch.pipes.items():
            row["pipes"][pipe] = row["pipes"].get(pipe, 0) + cycles
            all_cycles = launch.cycles * owners.get(pipe, 0)
            row["pipe_cycles"][pipe] = row["pipe_cycles"].get(pipe, 0) + all_cycles
    rows = sorted(kernels.values(), key=lambda row: -int(row["cycles"]))
    for row in rows:
        row["bottleneck"] = bottleneck(row)
    total = sum(row["cycles"] for row in rows)
    pipes = {f"PIPE_{pipe}" for core in machine.core_types.values() for pipe in core.pipes}
    busy = {name: sum(row["pipes"].get(name, 0) for row in rows) for name in sorted(pipes)}
    owned = {name: sum(row["pipe_cycles"].get(name, 0) for row in rows) for name in busy}
    counts = {unit: sum(r["launches"] for r in rows if r["unit"] == unit) for unit in UNITS}
    overhead = len(launches) * machine.launch.overhead_us
    return {
        "machine": machine.name,
        "clock_mhz": machine.clock_mhz,
        "cores": cores,
        "limits": limits(machine, cores),
        "total_cycles": total,
        "time_us": total / machine.clock_mhz + overhead,
        "launch_overhead_us": overhead,
        "bound_cycles": sum(row["bound_cycles"] for row in rows),
        "ops": {"total": len(launches), **counts},
        "pipes": {
            name: {"busy_cycles": cycles, "ratio": cycles / max(1, owned[name])}
            for name, cycles in busy.items()
        },
        "kernels": rows,
        "memory": {
            "weights_bytes": program.weights_bytes,
            "arena_bytes": program.arena_bytes,
            "arena_unplanned_bytes": program.arena_unplanned_bytes,
        },
    }


def pipe_owners(machine: Machine, launch: LaunchProfile) -> dict[str, int]:
    """How many of the cores that took part in a launch have each pipe."""
    kinds = sorted({seat(machine, block.core)[1] for block in launch.per_block})
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
    owned = row["pipe_cycles"]
    shares = {name: busy / max(1, owned[name]) for name, busy in row["pipes"].items()}
    name = max(shares, key=lambda pipe: shares[pipe], default="")
    if not name:
        return "nothing to do"
    kind = name.removeprefix("PIPE_")
    share = f"{kind} {shares[name]:.0%}"
    # Rounded as it is printed: 80 % never stands beside "latency".
    return share if round(shares[name], 2) >= BUSY_SHARE else f"latency, {share}"


def _empty_row(launch: LaunchProfile, kernel: Kernel) -> Record:
    return {
        "name": launch.name,
        "op": kernel.op,
        "unit": kernel.unit,
        "launches": 0,
        "blocks": launch.blocks,
        "cycles": 0,
        "bound_cycles": 0,
        "gm_read_bytes": 0,
        "gm_write_bytes": 0,
        "instructions": 0,
        "scalar_accesses": 0,
        "macs": 0,
        "vector_repeats": 0,
        "pipes": {},
        "pipe_cycles": {},
    }
