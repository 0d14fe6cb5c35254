"""`torch.compile(model, backend="davinci")`: PyTorch's graphs on the simulated machine.

PyTorch finds `backend` by the entry point of the package. A graph is compiled when it first runs,
and once more for other shapes; parameters and buffers are constants of what is compiled, so it is
also compiled again when their values have changed. Options are those of `davinci.compile`:
`torch.compile(model, backend="davinci", options={"machine": "ascend310"})`.
"""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import torch

from davinci.compiler import compile, files_named
from davinci.errors import InputError, did_you_mean
from davinci.frontends import pytorch
from davinci.runtime.executable import Executable

FIXED = ("model", "example_inputs")
"""Arguments of `davinci.compile` that PyTorch gives."""

STATIC = "_dynamo_static_input_type"
"""Attribute by which PyTorch marks the parameters and buffers among a graph's arguments."""


def backend(
    graph: Any, example_inputs: Sequence[Any], options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """What PyTorch calls for each graph of a model.

    Args:
        graph: a `torch.fx.GraphModule`.
        example_inputs: of its placeholders; a run has its own.
        options: of `davinci.compile`.

    Returns:
        A function that takes what the graph takes and returns what it returns, as tensors.
    """
    return CompiledGraph(graph, options or {})


@dataclass(frozen=True)
class Compiled:
    """A graph for one set of shapes.

    Attributes:
        weights: digest of the parameters and buffers that are constants of `executable`.
        exported: says which results are tensors.
    """

    weights: str
    executable: Executable
    exported: pytorch.Exported

    def run(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        outputs = iter(self.executable.run(*tensors).values())
        constants = self.exported.constants
        return tuple(
            constants[number] if number in constants else to_tensor(next(outputs))
            for number in range(self.exported.results)
        )


class CompiledGraph:
    """One graph of a model, as the function that PyTorch calls instead.

    Attributes:
        compiled: what it was compiled to, by types, shapes and numbers of the arguments, and by
            what the files say that options name.
    """

    def __init__(self, graph: Any, options: dict[str, Any]) -> None:
        self.compiled: dict[tuple[Any, ...], Compiled] = {}
        self._graph, self._options = graph, options
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        # Not before: what is raised while PyTorch traces, it wraps into an error of its own.
        require_whole(self._graph)
        require_known(self._options)
        weights = [isinstance(a, torch.nn.Parameter) or hasattr(a, STATIC) for a in arguments]
        digest = digest_of([a for a, weight in zip(arguments, weights, strict=True) if weight])
        shapes = ((a.dtype, *a.shape) if isinstance(a, torch.Tensor) else a for a in arguments)
        key = (*shapes, *files_named(**self._options))
        with self._lock:
            if key not in self.compiled or self.compiled[key].weights != digest:
                model, inputs = with_constants(self._graph, arguments, weights)
                exported = pytorch.export(model, inputs, stateful=False)
                executable = compile(exported.proto, **self._options)
                self.compiled[key] = Compiled(digest, executable, exported)
            compiled = self.compiled[key]
        tensors = [
            argument
            for argument, weight in zip(arguments, weights, strict=True)
            if isinstance(argument, torch.Tensor) and not weight
        ]
        return Inference.apply(lambda: compiled.run(tensors), *arguments)


class Inference(torch.autograd.Function):
    """A run, as an operation without derivative: training fails instead of standing still."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[], tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        return run()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise InputError(
            "there are no gradients",
            where='torch.compile(.., backend="davinci")',
            hint="models are compiled for inference: run them under torch.no_grad()",
        )


def require_known(options: dict[str, Any]) -> None:
    """Raises an `InputError` for an option that `davinci.compile` has not."""
    known = [name for name in inspect.signature(compile).parameters if name not in FIXED]
    for name in options:
        if name not in known:
            raise InputError(
                "unknown option",
                where='torch.compile(.., backend="davinci")',
                found=repr(name),
                hint=did_you_mean(name, known) or f"there are {', '.join(known)}",
            )


def require_whole(graph: Any) -> None:
    """Raises an `InputError` if PyTorch cut the graph off where it could not follow the model."""
    reason = getattr(graph, "compile_subgraph_reason", None)
    if reason is None or not reason.graph_break:
        return
    place = reason.user_stack[-1] if reason.user_stack else None
    raise InputError(
        "PyTorch breaks the model into several graphs, and what is between them would run on the "
        "host",
        where=f"{place.filename}:{place.lineno}" if place else "",
        found=reason.reason.partition("\n")[0],
        expected="a model that torch.compile(model, fullgraph=True) takes",
    )


def with_constants(
    graph: Any, arguments: Sequence[Any], weights: Sequence[bool]
) -> tuple[Any, tuple[Any, ...]]:
    """A copy of the graph whose weights are buffers, which shares their memory, and its arguments.

    Args:
        graph: a `torch.fx.GraphModule`.
        arguments: of all its placeholders.
        weights: which of them become buffers.
    """
    copy = torch.fx.Graph()
    copy.output(copy.graph_copy(graph.graph, {}))
    module = torch.fx.GraphModule(graph, copy)
    placeholders = [node for node in copy.nodes if node.op == "placeholder"]
    for node, argument, weight in zip(placeholders, arguments, weights, strict=True):
        if weight:
            module.register_buffer(node.name, argument.detach())
            with copy.inserting_before(node):
                node.replace_all_uses_with(copy.get_attr(node.name))
            copy.erase_node(node)
    module.recompile()
    left = (a for a, weight in zip(arguments, weights, strict=True) if not weight)
    return module, tuple(left)


def digest_of(tensors: Sequence[Any]) -> str:
    """A digest of the tensors' bytes; their version counters miss what is written by way of
    `.data`."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def to_tensor(array: np.ndarray[Any, Any]) -> Any:
    """A tensor over the memory of an array."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
