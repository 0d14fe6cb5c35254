"""Reads MLIR text or bytecode at any level of the compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from davinci.diagnostics import first_diagnostic
from davinci.errors import InputError
from davinci.frontends.marks import check_marks
from davinci.mlir import MLIRError, ir, symbol_name


def parse(source: str | Path, context: Any) -> Any:
    """Returns the `ir.Module` of a text or file; the entry function is renamed to `main`.

    The entry is the function `main`, or else the only public one. A module without functions, or
    with several public ones (a file of kernels), stays as it is.

    Raises:
        InputError: `source` does not parse or verify; the message has MLIR's first diagnostic.
            Or an attribute that marks kernels and launches is malformed.
    """
    try:
        if isinstance(source, Path):
            module = ir.Module.parseFile(str(source), context)
        else:
            module = ir.Module.parse(source, context)
    except MLIRError as error:
        raise InputError(first_diagnostic(error)) from None
    check_marks(module)
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    if any(symbol_name(op) == "main" for op in functions):
        return module
    public = [op for op in functions if "sym_visibility" not in op.attributes]
    if len(public) == 1 and "ascend.kernel" not in public[0].attributes:
        with context:
            public[0].attributes["sym_name"] = ir.StringAttr.get("main")
    return module
