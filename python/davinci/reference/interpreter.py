"""StableHLO's reference interpreter: in this process, or in one of its own.

Where the interpreter gives up, on an empty contraction for example, it aborts its process. So a
check of a user's program calls `reference`, which runs this module on a folder, as a program, and
reads what is left in the folder; `evaluate` is for programs that it is known to take.
"""

from __future__ import annotations

import ctypes
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from davinci import elements, files
from davinci.arrays import Arrays
from davinci.elements import Array
from davinci.errors import DavinciError, InputError
from davinci.mlir import MLIRError, function_type, ir, make_context, operations, stablehlo, symbols
from davinci.narrow import to_stored
from davinci.passes import builder
from davinci.passes.pipeline import runner

MODULE, INPUTS, OUTPUTS = "module.mlirbc", "inputs", "outputs"
"""Files: MLIR bytecode, the arguments and names of the results, and the results by name."""

PREPARATION = (
    "builtin.module(stablehlo-custom-calls-to-chlo,func.func(chlo-legalize-to-stablehlo),"
    "stablehlo-widen-half)"
)
"""Passes that replace what the interpreter does not know, and its sums of f16, which stop growing
at 2,048, by those of f32."""

CANNOT_RUN = "StableHLO's interpreter cannot run the module: "
SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""
LLVM_ERROR = "LLVM ERROR: "
"""What LLVM's last words before an abort begin with."""


def evaluate(module: ir.Module, inputs: Arrays, names: Sequence[str]) -> Arrays:
    """Outputs of a StableHLO `ir.Module` by name, computed in this process.

    Args:
        module: StableHLO with `@main`.
        inputs: arrays in the order of the arguments.
        names: of the results, in order.

    Raises:
        InputError: the interpreter cannot run the module, and said so without aborting.
    """
    main = dict(symbols(module.operation))["main"]
    with module.context:
        arguments = [
            dense_attribute(array, kind)
            for array, kind in zip(inputs.values(), function_type(main).inputs, strict=True)
        ]
        try:
            results = stablehlo.eval_module(module, arguments)
        except (MLIRError, RuntimeError, ValueError) as error:
            raise InputError(f"{CANNOT_RUN}{error}", hint="run without --check") from None
        return {n: elements.to_array(r).copy() for n, r in zip(names, results, strict=True)}


def reference(module: ir.Module, inputs: Arrays, names: Sequence[str]) -> Arrays:
    """What `evaluate` returns, computed in a process of its own.

    Raises:
        InputError: the interpreter cannot run the module, or it aborted.
    """
    with files.temporary_folder() as folder:
        with (folder / MODULE).open("wb") as file:
            module.operation.write_bytecode(file)
        (folder / INPUTS).write_bytes(pickle.dumps((dict(inputs), list(names))))
        command = [sys.executable, "-m", "davinci.reference.interpreter", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            outputs: Arrays = pickle.loads((folder / OUTPUTS).read_bytes())
            return outputs
    reason = f"it ended with status {done.returncode}"
    if done.returncode < 0:
        reason = f"it ended with signal {signal.Signals(-done.returncode).name}"
        if -done.returncode == signal.SIGFPE:
            reason += ", at a division of integers by zero"
    for line in done.stderr.splitlines():
        if line.startswith((LLVM_ERROR, CANNOT_RUN)):
            reason = line.removeprefix(LLVM_ERROR).removeprefix(CANNOT_RUN)
            break
    raise InputError(f"{CANNOT_RUN}{reason}", hint="run without --check")


def prepare(module: ir.Module) -> None:
    """Brings `module` to what the interpreter knows: no CHLO, no arith, no resources."""
    runner.run(module.operation, PREPARATION)
    spell_out_constants(module)


def spell_out_constants(module: ir.Module) -> None:
    """Makes `stablehlo.constant` of constant tensors of arith, which the interpreter lacks.

    And gives them their data: the interpreter reads other bytes where they are resources.
    """
    for op in operations(module.operation, "arith.constant", "stablehlo.constant"):
        value = op.attributes["value"]
        dense = isinstance(value, ir.DenseElementsAttr)
        if not isinstance(op.result.type, ir.RankedTensorType) or (
            dense and op.name == "stablehlo.constant"
        ):
            continue
        with op.location, ir.InsertionPoint(op):
            if not dense:
                value = dense_attribute(elements.to_array(value), value.type)
            built = builder.op("stablehlo.constant", [], [op.result.type], value=value)
        op.result.replace_all_uses_with(built.result)
        op.erase()


def dense_attribute(array: Array, kind: Any) -> ir.DenseElementsAttr:
    """`array` as an elements attribute of the tensor type `kind` that holds its data."""
    array = np.ascontiguousarray(to_stored(array)).reshape(array.shape)
    return ir.DenseElementsAttr.get(array, type=kind.element_type, shape=list(kind.shape))


def end_with_parent() -> None:
    """Lets Ctrl-C, and on Linux the end of the parent, end this process.

    A program may loop for ever, in native code, where Python handles no signals.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def main(folder: Path) -> int:
    """Runs the module in `folder`; returns the exit status."""
    end_with_parent()
    inputs, names = pickle.loads((folder / INPUTS).read_bytes())
    with make_context():
        module = ir.Module.parse((folder / MODULE).read_bytes())
    try:
        prepare(module)
        outputs = evaluate(module, inputs, names)
    except DavinciError as error:
        print(error.message, file=sys.stderr)
        return 1
    (folder / OUTPUTS).write_bytes(pickle.dumps(outputs))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
