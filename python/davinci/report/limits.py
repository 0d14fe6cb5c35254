"""Lower bounds of a kernel's time by the machine's peak rates.

The limit of a launch is the largest of three times: of the cube (multiply-accumulates over the peak
of all cores used), of memory (bytes that must move at least once over the bandwidth of the L2, and
those of them that the L2 did not have over that of global memory) and of the vector unit (repeats
at one a cycle over all cores used). It counts the work that the operator means
(`Kernel.work`): a convolution on the scalar unit has the limit of the cube.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from davinci.machine import Machine
from davinci.report.program import Kernel
from davinci.simulator.timing.profile import LaunchProfile

FACTOR_BITS = {"s82s32": 8, "u8s82s32": 8, "f322f32": 32}
"""Bits of a factor, by the type of a mad, where they are not 16."""


def limits(machine: Machine, cores: int) -> dict[str, Any]:
    """Returns the most that `cores` cores can do in a cycle: the roofs of the roofline.

    Memory is shared: few cores get as much of its bandwidth as they can take.
    """
    cube, gm, l2 = machine.cube, machine.gm, machine.l2
    ports = cores * sum(core.count for core in machine.core_types.values())
    inward = ports * max(machine.mte2.port_bytes_per_cycle, machine.mte2.l1_port_bytes_per_cycle)
    outward = ports * machine.mte3.port_bytes_per_cycle
    return {
        "macs_f16": cores * cube.m * cube.n * cube.k_b16,
        "macs_i8": cores * cube.m * cube.n * cube.k_b8,
        **({"macs_f32": cores * cube.m * cube.n * cube.k_b32} if cube.k_b32 else {}),
        "vector_repeats": cores * machine.vector_units,
        "gm_read_bytes": min(inward, machine.cores * gm.read_bytes_per_cycle),
        "gm_write_bytes": min(outward, machine.cores * gm.write_bytes_per_cycle),
        "l2_read_bytes": min(inward, machine.cores * l2.read_bytes_per_cycle),
        "l2_write_bytes": min(outward, machine.cores * l2.write_bytes_per_cycle),
    }


def macs_of(best: Mapping[str, float], work: Mapping[str, int]) -> float:
    """Multiply-accumulates a cycle, of what `limits` gives, of factors as a kernel's work has them.

    Args:
        work: as `ascend.work` has it.
    """
    return best[{8: "macs_i8", 32: "macs_f32"}.get(work.get("factor_bits", 16), "macs_f16")]


def bound_cycles(launch: LaunchProfile, kernel: Kernel, machine: Machine, cores: int) -> int:
    """The machine's limit for one launch on `cores` cores, in cycles."""
    return math.ceil(max(times(launch, kernel, machine, cores).values()))


def times(launch: LaunchProfile, kernel: Kernel, machine: Machine, cores: int) -> dict[str, float]:
    """Cycles that each part of the machine needs at least for one launch."""
    best, traffic = limits(machine, cores), launch.traffic
    work = kernel.work or measured(launch, kernel)
    read, written = work.get("read_bytes", 0), work.get("write_bytes", 0)
    return {
        "cube": work.get("macs", 0) / macs_of(best, work),
        "vector": work.get("vector_repeats", 0) / best["vector_repeats"],
        "memory": max(
            read / best["l2_read_bytes"],
            written / best["l2_write_bytes"],
            min(read, traffic.filled_bytes) / best["gm_read_bytes"],
            min(written, traffic.written_back_bytes) / best["gm_write_bytes"],
        ),
    }


def measured(launch: LaunchProfile, kernel: Kernel) -> dict[str, int]:
    """The work of a kernel that does not say what it means: what its instructions do.

    Arguments are taken to be read and written once, the last one being the output.
    """
    types = (name.partition(".")[2] for name in launch.instructions if name.startswith("mad"))
    *inputs, output = kernel.argument_bytes or (0,)
    return {
        "macs": launch.macs,
        "factor_bits": max((FACTOR_BITS.get(name, 16) for name in types), default=16),
        "vector_repeats": launch.vector_repeats,
        "read_bytes": int(min(sum(inputs), launch.traffic.read_bytes)),
        "write_bytes": output,
    }
