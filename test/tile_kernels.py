"""Kernels of loops over tiles, as text of the cce level: what `multi-buffer` works on."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.mlir import ir, make_context
from davinci.passes.pipeline import runner
from kernel_support import Array, KernelRun, run_cce

PIPELINE = "multi-buffer{{machine={0}}},plan-memory{{machine={0}}},insert-sync{{machine={0}}}"
UNTOUCHED = "plan-memory{{machine={0}}},insert-sync{{machine={0}}}"


def tile_loop(
    body: str,
    count: int,
    size: int,
    unroll: int,
    slots: int = 2,
    temporaries: int = 2,
    inputs: int = 1,
    cores: int = 1,
    dynamic: bool = False,
    before: str = "",
) -> str:
    """A kernel that loops over tiles of arrays of f32.

    Args:
        body: of the loop. It may use `%in0`, `%in1`, .., `%out`, tiles (`!tile`) of the arguments,
            and `!ub`, a buffer of a tile. SLOTS and TEMPORARIES stand for attributes of allocs.
        count, size: number of tiles, elements of each.
        unroll: copies of the body that are asked for.
        slots, temporaries: buffers of what is loaded or stored, and of everything else.
        inputs: how many arrays are read; one is written.
        cores: blocks of the launch.
        dynamic: whether cores take tiles in turn, so that they have different trip counts;
            otherwise each has its equal share.
        before: operations in front of the loop.
    """
    names = [*(f"in{i}" for i in range(inputs)), "out"]
    low, high, step = ("%block", "%count", "%blocks") if dynamic else ("%zero", "%share", "%one")
    lines = [
        f"!gm = memref<{count * size}xf32>",
        f"!tile = memref<{size}xf32, strided<[1], offset: ?>>",
        f'!ub = memref<{size}xf32, #cce.space<"UB">>',
        f"func.func @k({', '.join(f'%{name}_all: !gm' for name in names)})",
        f"    attributes {{ascend.kernel, ascend.blocks = {cores} : i64}} {{",
        "%zero = arith.constant 0 : index",
        "%one = arith.constant 1 : index",
        f"%count = arith.constant {count} : index",
        f"%share = arith.constant {count // cores} : index",
        f"%size = arith.constant {size} : index",
        '%block = "cce.get_block_idx"() : () -> index',
        '%blocks = "cce.get_block_num"() : () -> index',
        f"%first = arith.muli %block, {'%zero' if dynamic else '%share'} : index",
        before,
        f"scf.for %i = {low} to {high} step {step} {{",
        "%number = arith.addi %first, %i : index",
        "%at = arith.muli %number, %size : index",
        *(f"%{n} = memref.subview %{n}_all[%at] [{size}] [1] : !gm to !tile" for n in names),
        body.replace("SLOTS", _slots(slots)).replace("TEMPORARIES", _slots(temporaries)),
        f"}} {{cce.unroll = {unroll} : i64}}",
        "return }",
    ]
    return "\n".join(lines)


def _slots(count: int) -> str:
    return f"{{cce.slots = {count} : i64}}"


def chain(*names: str) -> str:
    """A tile is loaded, goes through operations of one operand, and is stored."""
    ops = "\n".join(f'"cce.{name}"(%b, %b) : (!ub, !ub) -> ()' for name in names[1:])
    return f"""
      %a = memref.alloc() SLOTS : !ub
      %b = memref.alloc() TEMPORARIES : !ub
      "cce.copy"(%in0, %a) : (!tile, !ub) -> ()
      "cce.{names[0]}"(%a, %b) : (!ub, !ub) -> ()
      {ops}
      "cce.copy"(%b, %out) : (!ub, !tile) -> ()"""


def run_tiles(
    text: str, inputs: Sequence[Array], machine: str = "ascend910", pipeline: str = PIPELINE
) -> KernelRun:
    """Lowers a kernel from the cce level and runs it with all checks."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        runner.run(module.operation, f"builtin.module({pipeline.format(machine)})")
        return run_cce(module, inputs, 1, machine)
