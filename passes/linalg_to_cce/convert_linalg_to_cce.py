"""convert-linalg-to-cce: kernels of upstream dialects become cce operations on tiles in UB.

before:
    func.func @k(%x: memref<3000xf32>, %n: index) attributes {ascend.kernel, ascend.upstream} {
      %part = memref.reinterpret_cast %x to offset: [%n], sizes: [1024], strides: [1] : ..
      %buffer = memref.alloc() : memref<1024xf32>
      memref.copy %part, %buffer : ..
      %a = bufferization.to_tensor %buffer restrict writable : ..
      %b = math.exp %a : tensor<1024xf32>
      bufferization.materialize_in_destination %b in writable %part : ..
after:
    func.func @k(%x: memref<3000xf32>, %n: index) attributes {ascend.kernel} {
      %a = memref.alloc() : memref<1024xf32, #cce.space<"UB">>
      "cce.copy_rows"(%x, %a, %n, %c1024, %c1, %c1024) : ..
      %b = memref.alloc() : memref<1024xf32, #cce.space<"UB">>
      "cce.vexp"(%a, %b) : ..
      "cce.copy_rows"(%b, %x, %n, %c1024, %c1, %c1024) : ..

Only kernels with `ascend.upstream` are changed. Values have no addresses and pipes no flags:
`plan-memory` and `insert-sync` come after it. Operations without a lowering are one error that
lists them all, with counts; forms that a lowering does not take are an error each.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from dataclasses import dataclass

from davinci import machine as machines
from davinci.errors import CompileError
from davinci.mlir import Op, ir, location_text, run_unverified
from davinci.passes import linalg_to_cce
from davinci.passes.analysis.kernels import kernels, seen_by
from davinci.passes.linalg_to_cce import HINT, LINALG_LOWERINGS
from davinci.passes.linalg_to_cce.translator import KernelTranslator
from davinci.passes.pipeline.base import Pass, option, register_pass

UPSTREAM = "ascend.upstream"
"""Attribute of a kernel of upstream dialects, on tensors, that this pass lowers."""

STAY = ("scf.for", "scf.if", "scf.yield", "func.return", "linalg.yield", "linalg.index")
SCALARS = ("arith", "math", "cce")
CLEAN_UP = "func.func(canonicalize,cse)"


@register_pass
@dataclass(frozen=True)
class ConvertLinalgToCcePass(Pass):
    """Lower kernels of upstream dialects on tensors to cce operations on tiles in UB."""

    NAME = "convert-linalg-to-cce"

    machine: str = option("ascend910", "machine file that gives sizes and costs")

    def run(self, op: Op) -> None:
        for module in pkgutil.iter_modules(linalg_to_cce.__path__):
            importlib.import_module(f"{linalg_to_cce.__name__}.{module.name}")
        machine = machines.load(self.machine)
        for kernel in kernels(op):
            if UPSTREAM not in kernel.attributes:
                continue
            refuse_unknown(kernel)
            translator = KernelTranslator(kernel, seen_by(kernel, machine))
            translator.block(kernel.regions[0].blocks[0])
            for dead in reversed(translator.dead):
                dead.operation.erase()
            del kernel.attributes[UPSTREAM]
            run_unverified(kernel, CLEAN_UP)


def refuse_unknown(kernel: Op) -> None:
    """Fails with all operations of a kernel that no lowering takes.

    Raises:
        CompileError: there are some; at the first one.
    """
    found: Counter[str] = Counter()
    places: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        dialect = op.name.partition(".")[0]
        scalar = dialect in SCALARS and not any(
            isinstance(result.type, ir.ShapedType) for result in op.results
        )
        if op.name == "func.func" or scalar or op.name in STAY or op.name in LINALG_LOWERINGS:
            return ir.WalkResult.ADVANCE
        found[op.name] += 1
        places.append(location_text(op.location))
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    if found:
        raise CompileError(
            "operations of upstream dialects that our passes do not lower",
            where=places[0],
            found=", ".join(f"{name} ({count}x)" for name, count in found.most_common()),
            hint=HINT,
        )
