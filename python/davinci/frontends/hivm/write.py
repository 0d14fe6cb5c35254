"""Kernels as text of AscendNPU-IR, in generic form: the way back from `text`.

What `convert-cce-to-hir` leaves, `hir.vadd` on `memref<64xf32, "ub">`, is written as the vendor's
compilers read it: `hivm.hir.vadd` on `memref<64xf32, #hivm.address_space<ub>>`.
"""

from __future__ import annotations

import re

from davinci.dialects.base import attribute
from davinci.frontends.hivm.text import DIALECT, FOREIGN
from davinci.mlir import Op, attribute_names, ir

SPACE = re.compile(r', "(gm|ub|cbuf|cc)">')
MARKS = ("hacc.entry", "hacc.function_kind = #hacc.function_kind<DEVICE>")
"""What functions that are kernels have there."""


def written(kernel: Op) -> str:
    """The text of a module with a kernel of cores of one kind.

    Args:
        kernel: a function whose operations are those of `hir`, which stays as it is.
    """
    with kernel.context, ir.Location.unknown():
        module = ir.Module.create()
        copy = kernel.clone(ir.InsertionPoint(module.body))
        kind = str(attribute(kernel, "ascend.core")).upper()
        for name in attribute_names(copy.operation):
            if name not in ("sym_name", "function_type"):
                del copy.operation.attributes[name]
        copy.operation.attributes["hivm.func_core_type"] = ir.StringAttr.get(kind)
        text = str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True))
    text = SPACE.sub(r", #hivm.address_space<\1>>", text)
    text = text.replace(f'"{DIALECT}.', f'"{FOREIGN}').replace(f"#{DIALECT}.", "#hivm.")
    core = f"hivm.func_core_type = #hivm.func_core_type<{kind}>"
    return text.replace(f'hivm.func_core_type = "{kind}"', ", ".join((*MARKS, core)))
