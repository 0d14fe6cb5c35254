"""Reads MLIR text or bytecode at any level of the compiler."""

from __future__ import annotations

from pathlib import Path

from davinci.diagnostics import first_diagnostic
from davinci.dialects.short_form import expand
from davinci.errors import InputError
from davinci.frontends import hivm, portable
from davinci.frontends.marks import check_marks
from davinci.frontends.mlir_source import check_source
from davinci.frontends.shardings import has_shardings, read_without
from davinci.mlir import MLIRError, Op, function_type, ir, is_public, symbol_name


def parse(source: str | bytes | Path, context: ir.Context) -> ir.Module:
    """Returns the `ir.Module` of text, bytecode, a portable artifact, or a file of one of these.

    The entry function is `main`, or else the only public one, which is renamed. Other public
    functions beside `main` become private. A module without functions, or a file of kernels, stays
    as it is.

    Raises:
        InputError: `source` does not parse or verify; the message has MLIR's first diagnostic.
            Or an attribute that marks kernels and launches is malformed.
    """
    module = read_module(source, context)
    check_marks(module)
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    public = [op for op in functions if is_public(op) and not KEPT.intersection(op.attributes)]
    main = next((op for op in functions if symbol_name(op) == "main"), None)
    with context:
        if main is None and len(public) == 1:
            main = public[0]
            main.attributes["sym_name"] = ir.StringAttr.get("main")
        for op in public if main is not None else []:
            if op != main and is_on_tensors(op):
                op.attributes["sym_visibility"] = ir.StringAttr.get("private")
    return module


KEPT = frozenset({"ascend.kernel", "ascend.entry"})
"""Attributes of functions that keep their names and visibility."""


def is_on_tensors(function: Op) -> bool:
    """Whether the function is a program of a model, not of a host or a kernel."""
    values = [*function_type(function).inputs, *function_type(function).results]
    return bool(values) and all(isinstance(value, ir.RankedTensorType) for value in values)


def read_module(source: str | bytes | Path, context: ir.Context) -> ir.Module:
    """The module of text, bytecode, a portable artifact, or a file of one of these, as it is.

    Raises:
        InputError: `source` does not parse or verify, or cannot be read.
    """
    kind = "bytes" if isinstance(source, bytes) else "text"
    where = str(source) if isinstance(source, Path) else f"<{kind}>"
    try:
        data = source.read_bytes() if isinstance(source, Path) else source
        if isinstance(data, bytes) and portable.is_bytecode(data):
            return portable.read(data, context, where)
        check_source(data.encode(errors="surrogatepass") if isinstance(data, str) else data, where)
        text = data.decode() if isinstance(data, bytes) else data
        return read_text(text, str(source) if isinstance(source, Path) else "", context)
    except MLIRError as error:
        file = where if isinstance(source, Path) else "<text>"
        raise InputError(first_diagnostic(error, file)) from None
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", where=where) from None


def read_text(text: str, path: str, context: ir.Context) -> ir.Module:
    """The module of a text, which may have short forms.

    Args:
        path: the file it is from, which locations name, "" if it is from none.
    """
    if hivm.is_hivm(text):
        return hivm.marked(hivm.parse(text, context, path or "<text>"))
    if hivm.is_renamed(text):
        context.allow_unregistered_dialects = True
    full = expand(text)
    if has_shardings(full):
        module = read_without(full, path, context)
        if path:
            _name_locations(module, path)
        return module
    if path and full is text:
        return ir.Module.parseFile(path, context)
    module = ir.Module.parse(full, context)
    if path:
        _name_locations(module, path)
    return module


def _name_locations(module: ir.Module, path: str) -> None:
    """Locations say `path` where they say "-", as they do of text that is in no file."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        place = op.location
        if isinstance(place, ir.FileLineColLoc) and place.filename == "-":
            op.location = ir.Location.file(path, place.start_line, place.start_col, op.context)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
