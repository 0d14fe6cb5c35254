"""PyTorch models by way of `torch.export` and ONNX; PyTorch is imported only once it is in use.

A module is exported as in evaluation: dropout passes through, batch normalisation uses its running
statistics. Its parameters and buffers become constants, and arguments that are no tensors too;
buffers and arguments that it changes in place become states (`pytorch_states`).
Inputs have the names of `forward`'s parameters, outputs those of their places in what it returns:
`out0` for a tensor, `out0` and `out1` for a pair, `y` and `z.0` for `{"y": .., "z": (.., ..)}`.
"""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import onnx

from davinci.errors import CompileError, InputError
from davinci.frontends.own_kernels import OwnKernel
from davinci.frontends.pytorch_attention import translations
from davinci.frontends.pytorch_attributes import without_kept_values
from davinci.frontends.pytorch_caches import register_caches, with_lists
from davinci.frontends.pytorch_experts import expert_translations
from davinci.frontends.pytorch_kernels import calls_of
from davinci.frontends.pytorch_states import (
    Changes,
    States,
    changes_of,
    functional,
    in_training,
    own_name,
    signed_changes,
    states_of,
    written_by,
)
from davinci.frontends.trees import arguments, place_name

LARGEST_MODEL_BYTES = (1 << 31) - (1 << 20)
"""Bytes of weights that fit a protobuf message, which an ONNX model is, with room for the rest of
it."""

PLAIN = "torch.onnx._internal.exporter._registration"
"""Logs at every first export which operators of packages it does not know that are not there."""

FOLDING = "onnxscript.optimizer._constant_folding"
"""Logger of the exporter's constant folding."""

MUTABLE_HINT = "return what changes as an output, and call model.eval() if it is in training"


@dataclass(frozen=True)
class Exported:
    """A model as ONNX, and what of its results ONNX has not.

    Attributes:
        proto: its inputs and outputs are the tensors among the arguments and results, in order.
        results: number of leaves of what the model returns.
        constants: those that are no tensors, by their number.
        states: what the model changes in place; the next values are the last outputs of `proto`.
    """

    proto: onnx.ModelProto
    results: int
    constants: dict[int, Any]
    states: States = field(default_factory=States)


def takes(model: Any) -> bool:
    """Whether `model` is a `torch.nn.Module` or a `torch.export.ExportedProgram`."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return False
    return isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))


def export(
    model: Any,
    example_inputs: Any = None,
    stateful: bool = True,
    kernels: Sequence[OwnKernel] = (),
) -> Exported:
    """The model as ONNX.

    Args:
        model: a `torch.nn.Module` or a `torch.export.ExportedProgram`.
        example_inputs: of a module: a tuple of arguments, a dictionary of keyword arguments, or the
            only argument.
        stateful: whether the model may change buffers and arguments in place, which become states.
        kernels: of the user's own; operators of other libraries than PyTorch's that are called like
            one are exported by that name.

    Raises:
        InputError: no example inputs, dynamic shapes, changes in place that may not be, too much
            for ONNX.
        CompileError: PyTorch cannot export the model.
    """
    import torch

    where = name_of(model)
    with torch.no_grad(), quiet():
        if isinstance(model, torch.export.ExportedProgram):
            program = model
        else:
            args, kwargs = arguments(example_inputs, "a PyTorch module", where)
            program = without_kept_values(
                model, lambda: _exported(model, args, kwargs, where), where
            )
        _check(program, where)
        changes = changes_of(program)
        exported, missed = _without_changes(program, changes, stateful, kernels, where)
        if str(missed):  # what operations change and only their decompositions tell
            changes = changes.joined(missed)
            exported, missed = _without_changes(program, changes, stateful, kernels, where)
            assert not str(missed), "what is changed is an argument now, of which there is a copy"
    return exported


def _without_changes(
    program: Any, changes: Changes, stateful: bool, kernels: Sequence[OwnKernel], where: str
) -> tuple[Exported, Changes]:
    """A program as ONNX, what it changes as states, and what it was found to change besides."""
    if str(changes) and not stateful:
        raise InputError(
            "the model changes a tensor in place",
            where=where,
            found=str(changes),
            hint=MUTABLE_HINT,
        )
    held = {*program.state_dict, *program.constants}
    results, states = _result_names(program), states_of(program, changes)
    if str(changes):
        outer, args, kwargs = functional(program, changes)
        program = _exported(outer, args, kwargs, where)
    specs = program.graph_signature.output_specs
    # A program that is decomposed already has what it changes among its outputs.
    specs = [spec for spec in specs if spec.kind.name == "USER_OUTPUT"]
    kinds = [type(spec.arg).__name__ for spec in specs]
    tensors = [number for number, kind in enumerate(kinds) if kind == "TensorArgument"]
    constants = {n: getattr(s.arg, "value", None) for n, s in enumerate(specs) if n not in tensors}
    names = [*results, *states.outputs.values()]
    if constants:
        program = _with_results(program, tensors, where)
    proto, signed = _as_onnx(program, [names[number] for number in tensors], kernels, where)
    missed = Changes(tuple(own_name(name, held) for name in signed.buffers), signed.inputs)
    return Exported(proto, len(results), constants, states), missed


def name_of(model: Any) -> str:
    """What reports call the model: its class."""
    return type(model).__name__


def _exported(model: Any, args: Sequence[Any], kwargs: dict[str, Any], where: str) -> Any:
    """The program of a module in evaluation; its parts stay in the modes that they are in."""
    import torch

    register_caches()
    model, args, kwargs = with_lists(model, args, kwargs)
    training = [part for part in model.modules() if part.training]
    for part in training:  # not model.eval(), which models override
        part.training = False
    try:
        return torch.export.export(model, tuple(args), kwargs)
    except Exception as error:  # of many kinds, from anywhere in the model
        raise _failed(error, where) from None
    finally:
        for part in training:
            part.training = True


UNKNOWN_TYPE = "not a known type"
"""What PyTorch says of an object among the inputs or outputs that it cannot look into."""

UNKNOWN_TYPE_HINT = (
    "return tensors, tuples or dictionaries: of a model that returns its cache, call it with "
    "use_cache=False, or return its keys and values one by one; torch.compile(model, "
    "backend='davinci') takes any type"
)


def _with_results(program: Any, kept: list[int], where: str) -> Any:
    """The program that returns only these leaves of the results of `program`, as a tuple."""
    import torch

    model = program.module()
    call = model.forward

    @functools.wraps(call)
    def forward(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        leaves = torch.utils._pytree.tree_leaves(call(*args, **kwargs), is_leaf=lambda x: x is None)
        return tuple(leaves[number] for number in kept)

    outer = torch.nn.Module()
    outer.model, outer.forward = model, forward
    args, kwargs = program.example_inputs
    return _exported(outer, args, kwargs, where)


def _check(program: Any, where: str) -> None:
    """Raises an error for what a program of static shapes cannot do."""
    import torch

    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            if any(not isinstance(size, int) for size in value.shape):
                raise InputError(
                    "dynamic shapes",
                    where=f"{where}: input {node.name!r}",
                    found=str(list(value.shape)),
                    expected="static shapes",
                    hint="export without dynamic_shapes, once for each shape",
                )
        elif str(node.target) == "aten.dropout.default" and node.args[1] and node.args[2]:
            raise InputError(
                "dropout of a model in training",
                where=where,
                hint="call model.eval() before it is exported",
            )
        elif str(node.target) == "aten.instance_norm.default" and any(written_by(node)):
            raise InputError(
                "running statistics of an instance normalisation in training, which PyTorch does "
                "not decompose",
                where=f"{where}: {node.name!r}",
                hint="call model.eval() before it is exported, or track_running_stats=False",
            )
    weights = [*program.state_dict.values(), *program.constants.values()]
    tensors = {id(t): t for t in weights if isinstance(t, torch.Tensor)}.values()
    size = sum(t.numel() * t.element_size() for t in tensors)
    if size > LARGEST_MODEL_BYTES:
        raise InputError(
            "the weights do not fit into an ONNX model",
            where=where,
            found=f"{size:,} bytes",
            expected=f"at most {LARGEST_MODEL_BYTES:,}",
            hint="compile parts of the model, or convert it with model.half()",
        )


def _result_names(program: Any) -> list[str]:
    """The names of the leaves of what the program returns, by their places."""
    import torch

    spec = program.call_spec.out_spec
    pytree = torch.utils._pytree
    if spec is None:
        return [f"out{n}" for n in range(len(program.graph_signature.output_specs))]
    # Some containers look at the shapes of what they hold.
    leaves = pytree.tree_unflatten([torch.zeros(1, 1, 1, 1)] * spec.num_leaves, spec)
    paths = [path for path, _ in pytree.tree_flatten_with_path(leaves)[0]]
    return [place_name([_part(key) for key in path]) for path in paths]


def _part(key: Any) -> str | int:
    """The key, index or attribute of one step into a tree."""
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            part = getattr(key, attribute)
            return part if isinstance(part, int) else str(part)
    return str(key)


def _as_onnx(
    program: Any, results: Sequence[str], kernels: Sequence[OwnKernel], where: str
) -> tuple[onnx.ModelProto, Changes]:
    """A program as ONNX, and what its decomposed form says that it changes."""
    import torch

    try:
        import onnxscript  # noqa: F401
        from onnx_ir.passes.common import OutputFixPass
    except ImportError:
        raise InputError(
            "onnxscript is not installed, which PyTorch exports with",
            where=where,
            hint="pip install 'davinci-mlir[torch]'",
        ) from None
    try:
        # The exporter takes such normalisations for those of evaluation.
        if any(in_training(node) for node in program.graph.nodes):
            legit = torch.ops.aten._native_batch_norm_legit_functional.default
            table = torch._decomp.get_decompositions([legit])
            program = program.run_decompositions(table)
        # Its optimizer takes x + 1e-9 for x; what it folds, passes of this compiler do.
        exported = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            optimize=False,
            custom_translation_table=translations()
            | expert_translations()
            | calls_of(program, kernels),
        )
    except Exception as error:
        raise _failed(error, where) from None
    OutputFixPass()(exported.model)  # a value that is returned twice, or is an input
    graph = exported.model.graph
    inputs = [
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT" and type(spec.arg).__name__ == "TensorArgument"
    ]
    _rename(
        graph, [*zip(graph.inputs, inputs, strict=True), *zip(graph.outputs, results, strict=True)]
    )
    graph.name = where
    proto: onnx.ModelProto = exported.model_proto
    return proto, signed_changes(exported.exported_program)


def _rename(graph: Any, wanted: Sequence[tuple[Any, str]]) -> None:
    """Gives values their names; others that have such a name get another one."""
    names: dict[str, Any] = {}
    for value, name in wanted:
        while name in names and names[name] is not value:
            name += "_"
        names[name] = value
    others = [value for node in graph for value in node.outputs] + list(graph.initializers.values())
    for value in others:
        if names.get(value.name, value) is not value:
            value.name += "_inner"
    for name, value in names.items():
        value.name = name


def _failed(error: Exception, where: str) -> CompileError:
    """What PyTorch says, from the innermost of its errors."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    found = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    if UNKNOWN_TYPE in found:
        found = found.partition(". ")[0]
    return CompileError(
        "PyTorch cannot export the model",
        where=where,
        found=f"{type(cause).__name__}: {found}" if found else type(cause).__name__,
        hint=UNKNOWN_TYPE_HINT
        if UNKNOWN_TYPE in found
        else "torch.export.export and torch.onnx.export(dynamo=True) show all of it",
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings about PyTorch's own code, and of what its exporter cannot fold: such nodes
    stay, and are imported."""
    logs = [logging.getLogger(name) for name in (PLAIN, FOLDING)]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for log, level in zip(logs, levels, strict=True):
                log.setLevel(level)
