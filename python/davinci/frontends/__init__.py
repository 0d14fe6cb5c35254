"""Frontends: every way a model comes in, each ending in an MLIR module with a `@main`.

`load(model)` takes the path of an `.onnx` or `.mlir` file, MLIR text, an ONNX `ModelProto`, MLIR
bytecode and StableHLO's portable artifacts, as bytes or in a file of any name, networks of the zoo,
modules and exported programs of PyTorch, and functions of JAX.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from davinci.errors import InputError
from davinci.frontends import own_kernels
from davinci.frontends.states import mark_states, set_initial
from davinci.mlir import ir, make_context

SUFFIXES = (".onnx", ".mlir", ".mlirbc")


def is_recipe(model: Any) -> bool:
    """Whether a model is made when its `proto` is asked for, and known before by its `identity`:
    networks of the zoo."""
    return all(hasattr(type(model), name) for name in ("identity", "proto", "sketch"))


def load(
    model: Any,
    context: ir.Context | None = None,
    example_inputs: Any = None,
    values: bool = True,
    kernels: own_kernels.Given = (),
) -> Any:
    """Returns `model` as an `ir.Module` in `context`, or in a new one.

    Args:
        model: path of an `.onnx`, `.mlir` or `.mlirbc` file, MLIR text, MLIR bytecode or a portable
            artifact of StableHLO (bytes, or the path of a file), an `onnx.ModelProto`, a network
            of the zoo, a PyTorch module or exported program, or a function of JAX.
        context: an `ir.Context` from `davinci.mlir.make_context`.
        example_inputs: arguments of a PyTorch module or a function of JAX, see their frontends.
        values: False for runs that find times only: weights of ONNX models are neither made nor
            read, other arrays stand in for them.
        kernels: of the user's own, which compute the operators that are called like them.

    Raises:
        InputError: no such file, a file of another kind, or one that cannot be read.
        CompileError: a model that uses something outside what can be compiled or exported.
    """
    own = own_kernels.read_all(kernels)
    module = _loaded(model, context or make_context(), example_inputs, values, own)
    own_kernels.link(module, own)
    return module


def _loaded(
    model: Any,
    context: ir.Context,
    example_inputs: Any,
    values: bool,
    kernels: Sequence[own_kernels.OwnKernel],
) -> Any:
    """The module, in which operators that kernels compute are custom calls."""
    from davinci.frontends import jax_functions, mlir_text, portable, pytorch
    from davinci.frontends import onnx as onnx_frontend

    if isinstance(model, ir.Module):
        return model
    if is_recipe(model):
        model = model.proto if values else model.sketch
    if isinstance(model, bytes):
        return mlir_text.parse(model, context)
    if pytorch.takes(model):
        exported = pytorch.export(model, example_inputs, kernels=kernels)
        name = pytorch.name_of(model)
        module = onnx_frontend.import_model(exported.proto, context, name, values, kernels)
        if exported.states.outputs:
            mark_states(module, exported.states.outputs, name)
            set_initial(module, exported.states.initial)
        return module
    if jax_functions.takes(model):
        return jax_functions.import_model(model, example_inputs, context)
    if example_inputs is not None:
        raise InputError(
            "example inputs are for PyTorch modules and JAX functions",
            found=f"an object of type {type(model).__name__}",
        )
    if not isinstance(model, (str, os.PathLike)):
        if type(model).__name__ != "ModelProto":
            raise InputError(
                "not a model",
                found=f"an object of type {type(model).__name__}",
                expected="a path, MLIR text or bytecode, an onnx.ModelProto, a PyTorch module or "
                "exported program, or a function of JAX",
            )
        return onnx_frontend.import_model(model, context, "<ModelProto>", values, kernels)
    if isinstance(model, str) and ("\n" in model or "func.func" in model):
        return mlir_text.parse(model, context)
    path = Path(model)
    if path.suffix not in SUFFIXES and not portable.is_bytecode_file(path):
        raise InputError(
            "not a model file",
            where=str(path),
            hint="davinci.load takes saved executables" if path.suffix == ".davinci" else "",
            expected="a file name that ends in .onnx or .mlir, or MLIR bytecode",
        )
    if not path.is_file():
        raise InputError("no such file", where=str(path))
    if path.suffix == ".onnx":
        proto = onnx_frontend.read(path, values)
        return onnx_frontend.import_model(proto, context, str(path), values, kernels)
    return mlir_text.parse(path, context)
