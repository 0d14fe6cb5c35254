"""Estimated durations against those of the simulator, for operations that meet nobody."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import machine as machines
from davinci.isa.core import Pipe
from davinci.mlir import ir, make_context, operations
from davinci.passes.analysis.durations import Duration, Durations
from davinci.units import ceil_div
from tile_kernels import UNTOUCHED, run_tiles, tile_loop

MACHINE = machines.load("ascend910")


def durations(text: str, blocks: int = 32) -> dict[str, Duration]:
    """Of the operations of a kernel, by name; copies by the pipe that moves them."""
    found = {}
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        known = Durations(MACHINE, blocks)
        for op in operations(module.operation, "cce"):
            if op.name == "cce.copy":
                load = op.operands[0].type.memory_space is None
                name = "MTE2" if load else "MTE3"
                found[name] = known.of(op, Pipe[name])
            elif list(op.operands):
                found[op.name] = known.of(op, Pipe.V)
    return found


def kernel(operation: str, operands: str, size: int) -> str:
    types = ", ".join("!ub" for _ in operands.split(","))
    body = f"""
      %a = memref.alloc() : !ub
      %b = memref.alloc() : !ub
      %c = memref.alloc() : !ub
      "cce.copy"(%in0, %a) : (!tile, !ub) -> ()
      "cce.copy"(%in1, %b) : (!tile, !ub) -> ()
      "cce.{operation}"({operands}) : ({types}) -> ()
      "cce.copy"(%c, %out) : (!ub, !tile) -> ()"""
    return tile_loop(body, 1, size, 0, inputs=2)


@pytest.mark.parametrize("size", [8, 64, 1000, 4096, 16384])
@pytest.mark.parametrize("operation", ["vadd", "vmul", "vexp", "vdiv", "vrelu"])
def test_vector_operations(operation: str, size: int) -> None:
    operands = "%a, %c" if operation in ("vexp", "vrelu") else "%a, %b, %c"
    text = kernel(operation, operands, size)
    profile = run_tiles(text, [np.ones(size, np.float32)] * 2, pipeline=UNTOUCHED).profile
    simulated = profile.per_block[0].unit_cycles[f"{operation}.f32"]
    assert durations(text)[f"cce.{operation}"].busy == pytest.approx(simulated, rel=0.03)


@pytest.mark.parametrize("size", [8, 1024, 16384])
def test_transfers(size: int) -> None:
    """One core has the memory for itself; two loads of a tile follow each other."""
    text = kernel("vadd", "%a, %b, %c", size)
    pipes = run_tiles(text, [np.ones(size, np.float32)] * 2, pipeline=UNTOUCHED).profile.pipes
    found = durations(text, blocks=1)
    load, store = found["MTE2"], found["MTE3"]
    assert load.busy + load.result == pytest.approx(pipes["PIPE_MTE2"], rel=0.05)
    assert store.result == pytest.approx(pipes["PIPE_MTE3"], rel=0.05)


def test_cores_share_the_memory() -> None:
    text = kernel("vadd", "%a, %b, %c", 16384)
    size = 16384 * 4
    alone, all_cores = durations(text, 1)["MTE2"], durations(text, 32)["MTE2"]
    assert alone.busy == size / MACHINE.mte2.port_bytes_per_cycle
    assert all_cores.busy == ceil_div(size, MACHINE.l2.read_bytes_per_cycle)
    assert all_cores.of_memory == size / MACHINE.gm.read_bytes_per_cycle == 32 * alone.of_memory
