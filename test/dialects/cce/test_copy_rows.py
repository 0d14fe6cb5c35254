"""What `cce.copy_rows` refuses."""

from __future__ import annotations

import pytest

from davinci.mlir import MLIRError, ir, make_context
from legal_operations import memref, ub

REFUSED = [
    ([ub("300"), ub("4x8")], "rows copied; found UB to UB"),
    ([memref("9", "f32"), ub("4x8", "f16")], "element types differ; found f16; expected f32"),
    ([memref("3x9", "f32"), ub("4x8")], "rank of the array in GM; found 2; expected 1"),
    ([memref("9", "f32", layout="[2]"), ub("4x8")], "array in GM is not contiguous"),
    ([memref("9", "f32"), ub("32")], "rank of the tile; found 1; expected 2"),
    ([memref("9", "f32"), ub("4x9")], "strides of the tile"),
    ([ub("4x8", layout="[16, 2]"), memref("9", "f32")], "strides of the tile"),
]


@pytest.mark.parametrize(("types", "message"), REFUSED)
def test_refused(types: list[str], message: str) -> None:
    types = [*types, *["index"] * 4]
    arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(types))
    text = f"""func.func @f({arguments}) {{
      "cce.copy_rows"(%a0, %a1, %a2, %a3, %a4, %a5) : ({", ".join(types)}) -> ()
      return
    }}"""
    with make_context(), ir.Location.unknown(), pytest.raises(MLIRError, match=message):
        ir.Module.parse(text)
