"""The only door to MLIR's Python bindings.

Every module that needs the bindings imports them from here. A plain ``mlir`` package is preferred
where one is installed; otherwise the one inside the ``torch-mlir`` wheel is used. A context made by
`make_context` has all dialects of this project, StableHLO and the upstream ones loaded.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Container
from functools import cache
from typing import TYPE_CHECKING, Any

PACKAGE = "mlir" if importlib.util.find_spec("mlir") else "torch_mlir"


def _load(name: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.{name}")


ext = _load("dialects.ext")
if TYPE_CHECKING:  # the bindings come without types: stubs/ has those of what is used
    from torch_mlir import execution_engine as execution_engine
    from torch_mlir import ir as ir
    from torch_mlir import passmanager as passmanager
    from torch_mlir._mlir_libs import _stablehlo as _stablehlo
    from torch_mlir.dialects import arith as arith
    from torch_mlir.dialects import func as func
    from torch_mlir.dialects import llvm as llvm
    from torch_mlir.dialects import memref as memref
    from torch_mlir.dialects import scf as scf
    from torch_mlir.dialects import tensor as tensor

    stablehlo = _stablehlo
else:
    ir = _load("ir")
    passmanager = _load("passmanager")
    execution_engine = _load("execution_engine")
    arith = _load("dialects.arith")
    func = _load("dialects.func")
    llvm = _load("dialects.llvm")
    memref = _load("dialects.memref")
    scf = _load("dialects.scf")
    tensor = _load("dialects.tensor")
    stablehlo = _load("_mlir_libs._stablehlo")

MLIRError = ir.MLIRError

Op = ir._OperationBase
"""An operation, `ir.Operation`, or a view of one that knows its kind, `ir.OpView`."""

if TYPE_CHECKING:
    NumberType = ir._Number
else:
    NumberType = ir.Type
"""The type of an element that is an integer or a float, which has a width."""

_PROCESS_STATE = threading.RLock()
"""Held while the process's tables of dialects, operations and passes change: a dialect defined in
Python keeps its module in its class while a context loads it."""


BUILT = ("arith", "bufferization", "func", "irdl", "llvm", "math", "memref", "scf", "tensor")
"""Upstream dialects whose operations are built. Others are loaded where text or a pass has them:
to load all of them takes longer than to compile a small kernel."""


def make_context() -> ir.Context:
    """Returns a new `ir.Context` with StableHLO, ascend, cce and hivm, and all upstream dialects
    known."""
    from davinci import dialects

    with _PROCESS_STATE:
        context = ir.Context(load_on_create_dialects=BUILT)
        # Verifiers written in Python need the interpreter's lock, which the waiting thread holds.
        context.enable_multithreading(False)
        stablehlo.register_dialect(context)
        with context, ir.Location.unknown():
            dialects.load_all()
        # For every operation it wraps, MLIR tries to import the Python module of the operation's
        # namespace from its own package until that succeeds; a failed import costs 0.1 ms each.
        for namespace in ("ascend", "cce", "hivm", "stablehlo", "chlo"):
            sys.modules.setdefault(f"{PACKAGE}.dialects.{namespace}", dialects)
        _load_chlo(context)
    return context


def _load_chlo(context: ir.Context) -> None:
    """Makes the text of CHLO operations known: a pass that depends on a dialect loads it."""
    register_passes()
    if importlib.util.find_spec(f"{PACKAGE}.dialects.torch"):
        with context, ir.Location.unknown():
            run_pipeline(ir.Module.create().operation, "func.func(convert-torch-to-stablehlo)")


def register_passes() -> None:
    """Makes StableHLO's passes known to MLIR's pipeline parser; the upstream ones already are."""
    with _PROCESS_STATE:
        _register_passes_once()


@cache
def _register_passes_once() -> None:
    stablehlo.register_stablehlo_passes()
    if importlib.util.find_spec(f"{PACKAGE}._mlir_libs._torchMlir"):
        # Some StableHLO passes are registered only together with those of the torch dialect.
        _load("_mlir_libs._torchMlir")


def symbol_name(operation: Op) -> str:
    """The name of a function, module or global."""
    return str(ir.StringAttr(operation.attributes["sym_name"]).value)


def callee_of(call: Op) -> str:
    """The name of the function that a `func.call` or `llvm.call` calls."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def root_of(op: Op) -> ir.Operation:
    """The outermost operation around `op`, which may be itself."""
    root = op.operation
    while root.parent is not None:
        root = root.parent.operation
    return root


def owner_of(value: ir.Value) -> ir.OpView:
    """The operation whose result `value` is, which is not an argument of a block."""
    op: ir.OpView = value.owner
    return op


def parent_of(op: Op) -> ir.Operation:
    """The operation around `op`, which is not the outermost one."""
    parent = op.operation.parent
    assert parent is not None, "only a module has no parent"
    return parent


def symbols(module: Op) -> list[tuple[str, ir.Operation]]:
    """Names and operations of the symbols directly in `module`."""
    found = [op.operation for op in module.regions[0].blocks[0].operations]
    return [(symbol_name(op), op) for op in found if "sym_name" in op.attributes]


def unique(base: str, taken: Container[str]) -> str:
    """`base`, or `base_1`, `base_2`, ... if it is taken."""
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def kernels_module(root: Op) -> ir.Operation:
    """The module `@kernels` of `root`, made now if there is none."""
    found = dict(symbols(root)).get("kernels")
    if found is not None:
        return found
    with ir.InsertionPoint(root.regions[0].blocks[0]), ir.Location.unknown(root.context):
        module = ir.Operation.create("builtin.module", regions=1)
    module.regions[0].blocks.append()
    module.attributes["sym_name"] = ir.StringAttr.get("kernels", root.context)
    return module


def is_public(function: Op) -> bool:
    """Whether others than its module may call the function: MLIR's default, also spelt out."""
    visibility = function.attributes.get("sym_visibility")
    return visibility is None or ir.StringAttr(visibility).value == "public"


_FLOATS: dict[Any, str] = {
    ir.F16Type: "f16",
    ir.F32Type: "f32",
    ir.F64Type: "f64",
    ir.BF16Type: "bf16",
}


def type_text(kind: ir.Type) -> str:
    """`str(kind)`; of numbers it is known without MLIR's printer, which takes 20 times as long."""
    if (name := _FLOATS.get(type(kind))) is not None:
        return name
    if isinstance(kind, ir.IntegerType):
        prefix = "" if kind.is_signless else "s" if kind.is_signed else "u"
        return f"{prefix}i{kind.width}"
    return str(kind)


def function_type(function: Op) -> ir.FunctionType:
    """The `ir.FunctionType` of a function on tensors or buffers."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def attribute_names(op: Op) -> list[str]:
    """Names of an operation's attributes, whose iterator gives these or named attributes."""
    return [found if isinstance(found, str) else found.name for found in op.attributes]


def operations(root: Op, *names: str) -> list[ir.Operation]:
    """The operations of these names at or below `root`, those inside a region before its owner.

    A list, because errors must not cross MLIR's `walk`, and what it visits must not be erased.

    Args:
        names: `stablehlo.add`, or a whole dialect, `stablehlo`; none for all operations.
    """
    found: list[ir.Operation] = []
    dialects = tuple(f"{name}." for name in names if "." not in name)

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not names or (name := op.name) in names or name.startswith(dialects):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def location_text(location: ir.Location) -> str:
    """`loc("a.mlir":3:5)` as `a.mlir:3:5`, `loc(fused["Add_1", "Add_2"])` as `Add_1, Add_2`."""
    if isinstance(location, ir.FusedLoc):
        parts = dict.fromkeys(location_text(part) for part in location.locations)
        return ", ".join(part for part in parts if part != "unknown") or "unknown"
    return str(location).removeprefix("loc(").removesuffix(")").replace('"', "")


def run_pipeline(operation: Op, text: str) -> None:
    """Runs upstream passes, `func.func(cse),canonicalize`, on a module; `MLIRError` on failure."""
    register_passes()
    with operation.context:
        passmanager.PassManager.parse(f"builtin.module({text})").run(operation)


def run_unverified(operation: Op, text: str) -> None:
    """Runs upstream passes, `func.func(cse,canonicalize)`, on an operation in a current context.

    Does not verify between them: verifiers in Python take longer than the passes. Whoever calls
    this verifies after the last one.
    """
    manager = passmanager.PassManager.parse(text)
    manager.enable_verifier(False)
    manager.run(operation)
