"""What `cce.vgather` refuses."""

from __future__ import annotations

import pytest

from davinci.mlir import MLIRError, ir, make_context
from legal_operations import ub

REFUSED = [
    ([ub("9", "i32"), ub("8", "i8"), ub("9", "i8")], "bytes of elements"),
    ([ub("9", "i32"), ub("8"), ub("9", "f16")], "destination"),
    ([ub("9"), ub("8"), ub("9")], "offsets"),
    ([ub("3x3", "i32"), ub("8"), ub("3x3")], "shape of offsets"),
    ([ub("9", "i32"), ub("8", "f32", "[2]"), ub("9")], "source is not contiguous"),
    ([ub("9", "i32"), ub("8"), ub("8")], "length; found 8; expected 9"),
]


@pytest.mark.parametrize(("types", "message"), REFUSED)
def test_refused(types: list[str], message: str) -> None:
    arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(types))
    text = f"""func.func @f({arguments}) {{
      "cce.vgather"(%a0, %a1, %a2) : ({", ".join(types)}) -> ()
      return
    }}"""
    with make_context(), ir.Location.unknown(), pytest.raises(MLIRError, match=message):
        ir.Module.parse(text)
