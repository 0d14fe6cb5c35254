"""JAX functions: lowered by `jax.jit(f).lower(..)` to StableHLO.

Inputs and outputs are the leaves of arguments and results, in JAX's order (dictionaries by sorted
key), named by their places: `params.w`, `x`; `out0`, `y`, `z.0`. JAX leaves out arguments that the
function does not use.
"""

from __future__ import annotations

import re
import sys
import types
from typing import Any

from davinci.errors import CompileError, InputError
from davinci.frontends import mlir_text
from davinci.frontends.trees import arguments, place_name
from davinci.mlir import Op, ir, symbol_name

STEP = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(\d+))\]|\.(\w+)")
"""A step into a tree, as JAX prints it: `['w']`, `[0]`, `.weight`."""

RESULT = "jax.result_info"


def takes(model: Any) -> bool:
    """Whether `model` is a traced or lowered function of JAX, or any function."""
    jax = sys.modules.get("jax")
    if jax is not None and hasattr(jax, "stages") and isinstance(model, jax.stages.Lowered):
        return True
    return callable(model) and not isinstance(model, type)


def import_model(model: Any, example_inputs: Any, context: ir.Context) -> ir.Module:
    """The function as an `ir.Module` in `context`.

    Args:
        model: a `jax.stages.Lowered` or `jax.stages.Traced`, a function under `jax.jit`, or a plain
            one.
        example_inputs: a tuple of arguments, a dictionary of keyword arguments, or the only one;
            shapes (`jax.ShapeDtypeStruct`) will do.
        context: an `ir.Context` from `davinci.mlir.make_context`.

    Raises:
        InputError: no example inputs.
        CompileError: JAX cannot lower the function.
    """
    if example_inputs is None and isinstance(model, types.FunctionType):
        arguments(None, "a function of JAX", name_of(model))  # JAX need not be there to say so
    try:
        import jax
    except ImportError:
        raise InputError(
            "functions are lowered by JAX, which is not installed",
            where=name_of(model),
            hint="pip install 'davinci-mlir[jax]'",
        ) from None
    if isinstance(model, jax.stages.Traced):
        model = model.lower()
    elif not isinstance(model, jax.stages.Lowered):
        model = _lowered(model, example_inputs)
    module = mlir_text.parse(model.as_text(debug_info=True), context)
    _name(next(op for op in module.body.operations if symbol_name(op) == "main"))
    return module


def name_of(model: Any) -> str:
    """What reports call the model: the function's name."""
    return str(getattr(model, "__name__", type(model).__name__))


def _lowered(function: Op, example_inputs: Any) -> Any:
    import jax

    where = name_of(function)
    args, kwargs = arguments(example_inputs, "a function of JAX", where)
    jitted = function if isinstance(function, jax.stages.Wrapped) else jax.jit(function)
    try:
        return jitted.lower(*args, **kwargs)
    except Exception as error:  # of many kinds, from anywhere in the function
        lines = str(error).splitlines() or [""]
        raise CompileError(
            "JAX cannot lower the function",
            where=where,
            found=f"{type(error).__name__}: {lines[0]}",
            hint="jax.jit(f).lower(...) shows all of it",
        ) from None


def _name(main: Any) -> None:
    """Names arguments by their locations, results by what JAX says of them."""
    with main.context:
        block = main.regions[0].blocks[0]
        arguments = [_location_name(argument.location) for argument in block.arguments]
        infos = [
            ir.StringAttr(marks[RESULT]).value if RESULT in marks else ""
            for marks in main.attributes.get("res_attrs", [])
        ]
        results = [place_name(_steps(info.removeprefix("result"))) for info in infos]
        for key, names in (("arg_attrs", arguments), ("res_attrs", results)):
            if all(names) and len(set(names)) == len(names):
                main.attributes[key] = _with_names(main.attributes.get(key), names)


def _with_names(given: Any, names: list[str]) -> ir.Attribute:
    marks = (
        [{mark.name: mark.attr for mark in item} for item in given] if given else [{}] * len(names)
    )
    return ir.ArrayAttr.get(
        [
            ir.DictAttr.get({"ascend.name": ir.StringAttr.get(name), **mark})
            for name, mark in zip(names, marks, strict=True)
        ]
    )


def _location_name(location: ir.Location) -> str:
    """`params['w']` of an argument's location, as `params.w`."""
    text = str(location).removeprefix("loc(")
    found = re.match(r'"((?:[^"\\]|\\.)*)"', text)
    if found is None:
        return ""
    first, _, rest = re.sub(r"[\[.]", r" \g<0>", found[1].replace("\\", ""), count=1).partition(" ")
    return ".".join([first, *map(str, _steps(rest))])


def _steps(path: str) -> list[str | int]:
    groups = STEP.findall(path)
    return [int(index) if index else key or text or name for key, text, index, name in groups]
