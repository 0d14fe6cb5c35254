"""Kernels as text of AscendNPU-IR, in generic form: the way back from `text`.

What `convert-cce-to-hir` leaves, `hir.vadd` on `memref<64xf32, "ub">`, is written as the vendor's
compilers read it: `hivm.hir.vadd` on `memref<64xf32, #hivm.address_space<ub>>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from davinci.dialects.base import attribute
from davinci.frontends.hivm.kernel import PARTS
from davinci.frontends.hivm.text import DIALECT, FOREIGN
from davinci.mlir import Op, attribute_names, ir, operations

SPACE = re.compile(r', "(gm|ub|cbuf|cc)">')
MARKS = ("hacc.entry", "hacc.function_kind = #hacc.function_kind<DEVICE>")
"""What functions that are kernels have there."""


BASE = {"hacc.arg_type": "ffts_base_address"}
"""What the first argument of a program is whose cores have flags for each other."""


def written(programs: Sequence[Op], name: str = "") -> str:
    """The text of a module with a kernel.

    Args:
        programs: a function of vector or cube cores, or one of each, whose operations are those of
            `hir`; they stay as they are.
        name: of the kernel of two programs.
    """
    with programs[0].context, ir.Location.unknown():
        module = ir.Module.create()
        for program in programs:
            copy = program.clone(ir.InsertionPoint(module.body)).operation
            kind = str(attribute(program, "ascend.core")).upper()
            for each in attribute_names(copy):
                if each not in ("sym_name", "function_type"):
                    del copy.attributes[each]
            copy.attributes["hivm.func_core_type"] = ir.StringAttr.get(kind)
            if len(programs) > 1:
                copy.attributes["hivm.part_of_mix"] = ir.UnitAttr.get()
                ending = next(end for end, core in PARTS.items() if core.upper() == kind)
                copy.attributes["sym_name"] = ir.StringAttr.get(name + ending)
            if operations(program, f"{DIALECT}.set_ffts_base_addr"):
                mark_base(copy)
        text = str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True))
    text = SPACE.sub(r", #hivm.address_space<\1>>", text)
    text = text.replace(f'"{DIALECT}.', f'"{FOREIGN}').replace(f"#{DIALECT}.", "#hivm.")
    for key, value in BASE.items():
        text = text.replace(f'{key} = "{value}"', f"{key} = #{key}<{value}>")
    for kind in ("AIC", "AIV"):
        core = f"hivm.func_core_type = #hivm.func_core_type<{kind}>"
        text = text.replace(f'hivm.func_core_type = "{kind}"', ", ".join((*MARKS, core)))
    return text


def mark_base(function: Op) -> None:
    """Marks the first argument as what flags between cores are at."""
    (block,) = function.regions[0].blocks
    base = {key: ir.StringAttr.get(value) for key, value in BASE.items()}
    others = len(list(block.arguments)) - 1
    marks = [ir.DictAttr.get(base), *[ir.DictAttr.get({})] * others]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)
