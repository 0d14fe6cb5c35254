"""convert-ascend-to-cce: turns ascend operators in kernels into tiled loops of cce operations.

before:
    %x = bufferization.to_tensor %a restrict : memref<300xf32> to tensor<300xf32>
    %y = bufferization.to_tensor %b restrict : memref<300xf32> to tensor<300xf32>
    %z = "ascend.add"(%x, %y) : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
    bufferization.materialize_in_destination %z in restrict writable %r
      : (tensor<300xf32>, memref<300xf32>) -> ()
after:
    %u = memref.alloc() : memref<300xf32, #cce.space<"UB">>
    %v = memref.alloc() : memref<300xf32, #cce.space<"UB">>
    "cce.copy"(%a, %u) {round_up} : (memref<300xf32>, memref<300xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%b, %v) {round_up} : (memref<300xf32>, memref<300xf32, #cce.space<"UB">>) -> ()
    "cce.vadd"(%u, %v, %u) : (memref<300xf32, #cce.space<"UB">>,
      memref<300xf32, #cce.space<"UB">>, memref<300xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%u, %r) {round_up} : (memref<300xf32, #cce.space<"UB">>, memref<300xf32>) -> ()

A kernel of more than UB holds, or on several cores, is loops over tiles around such operations.
Needs kernels on memrefs (`ascend-bufferize`). The lowering of each operator lies in
`davinci.passes.ascend_to_cce`. Sets `ascend.blocks` on kernels and on their launches.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import space_name
from davinci.errors import InputError
from davinci.mlir import Op, callee_of, ir, operations, symbol_name
from davinci.passes import builder
from davinci.passes.analysis.kernels import (
    BLOCKS,
    CORE,
    UNIT,
    kernels,
    launched_kernels,
)
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.given_choices import KEY
from davinci.passes.ascend_to_cce.groups import is_group, lower_group
from davinci.passes.ascend_to_cce.joined_cores import seen, with_shared_cores
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import (
    AUTO,
    CORE_CHOICES,
    FRACTALIZE,
    LAUNCHES,
    MANY,
    STRATEGIES,
)
from davinci.schedule import schedule_file


@register_pass
@dataclass(frozen=True)
class ConvertAscendToCcePass(Pass):
    """Lower ascend operators in kernels to tiled loops of cce operations."""

    NAME = "convert-ascend-to-cce"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")
    core_choice: str = option("cost", "cores of a kernel: by its cost, or all", CORE_CHOICES)
    matmul_strategy: str = option("os", "output, input or weight stationary", STRATEGIES)
    m: int = option(0, "rows of A and C a matmul tile holds; 0: chosen")
    n: int = option(0, "columns of B and C a matmul tile holds; 0: chosen")
    k: int = option(0, "columns of A, rows of B a matmul tile holds; 0: chosen")
    fractalize: str = option("improved", "the algorithm of fractalisation", FRACTALIZE)
    schedules: str = option("", "a file of schedules for kernels; the others are chosen")
    launches: str = option(MANY, "whether kernels will be phases of one launch", LAUNCHES)

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        machines.check_cores(machine, self.cores)
        file = schedule_file.read(self.schedules) if self.schedules else None
        target = Target(
            machine,
            self.cores or machine.cores,
            self.matmul_strategy,
            (self.m, self.n, self.k),
            self.fractalize,
            all_cores=self.core_choice == "all",
            given=file.by_key() if file is not None else {},
            schedules=self.schedules,
        )
        if self.launches != MANY:
            target = with_shared_cores(op, target, weigh_many=self.launches == AUTO)
        blocks: dict[str, int] = {}
        for kernel in kernels(op):
            group = is_group(kernel)
            if group:
                count = lower_group(kernel, seen(kernel, target))
                kernel.attributes[BLOCKS] = builder.as_attribute(count)
                blocks[symbol_name(kernel)] = count
            if machine.split and (group or attribute(kernel, UNIT, "") == "scalar"):
                kernel.attributes[CORE] = ir.StringAttr.get(core_of(kernel))
        if blocks:
            update_launches(op, blocks)
        if file is not None:
            require_used(op, file, self.schedules)


def core_of(kernel: Op) -> str:
    """The kind of core of a split machine that has the memories of a kernel."""
    buffers = (space_name(alloc.result.type) for alloc in operations(kernel, "memref.alloc"))
    return "aic" if any(space not in ("GM", "UB") for space in buffers) else "aiv"


def require_used(root: Op, file: schedule_file.ScheduleFile, path: str) -> None:
    """Raises an `InputError` unless a kernel has a schedule in the file."""
    keys = {attribute(kernel, KEY, "") for kernel in kernels(root)}
    if not keys & file.by_key().keys():
        raise InputError(
            "no kernel of this model has a schedule in the file",
            where=path,
            found=f"schedules of {len(file.kernels)} kernels",
            expected="what --save-schedules wrote for this model, machine, precision and number of "
            "cores",
        )


def update_launches(root: Op, blocks: dict[str, int]) -> None:
    """Sets `ascend.blocks` on every launch of the kernels named in `blocks`."""
    kernels_of = launched_kernels(root)
    for call in operations(root, "func.call"):
        if BLOCKS in call.attributes:
            kernel = kernels_of.get(callee_of(call))
            if kernel in blocks:
                call.attributes[BLOCKS] = builder.as_attribute(blocks[kernel])
