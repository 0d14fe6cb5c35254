"""Buffers and arguments that a PyTorch program changes in place, as inputs and outputs.

before:
    def forward(self, x, position):      self.keys is changed
        self.keys.index_copy_(1, position, x)
        return self.keys.sum(1)
after:
    def forward(x, position, keys):      keys and keys_next are a state
        ...
        return sums, keys_next

`TorchExportableModuleWithStaticCache` of transformers has its caches as such buffers.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

NEXT = "_next"
"""How the name of an output ends that is the next value of an input or buffer."""


@dataclass(frozen=True)
class Changes:
    """What a program changes in place.

    Attributes:
        buffers: names of buffers, as `named_buffers` has them.
        inputs: names of inputs, as the program's signature has them.
    """

    buffers: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The first of them in words, "" if there is none."""
        kinds = (("input", self.inputs), ("buffer", self.buffers))
        return next((f"{kind} {names[0]!r}" for kind, names in kinds if names), "")


@dataclass(frozen=True)
class States:
    """States of a program, by names of its inputs.

    Attributes:
        outputs: the name of the output that is each one's next value.
        initial: what buffers hold.
    """

    outputs: Mapping[str, str] = field(default_factory=dict)
    initial: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


def changes_of(program: Any) -> Changes:
    """What an exported program changes in place: what its signature says, and what its operations
    write. Tensors that the program makes itself, and constants of it, are nobody else's."""
    signature = program.graph_signature
    buffers = dict.fromkeys(signature.buffers_to_mutate.values())
    inputs = dict.fromkeys(signature.user_inputs_to_mutate.values())
    targets = {spec.arg.name: spec for spec in signature.input_specs if hasattr(spec.arg, "name")}
    for node in program.graph.nodes:
        for written in written_by(node):
            spec = targets.get(base_of(written).name)
            if spec is not None and spec.kind.name == "BUFFER":
                buffers[spec.target] = None
            elif spec is not None and spec.kind.name == "USER_INPUT":
                inputs[spec.arg.name] = None
    return Changes(tuple(buffers), tuple(inputs))


def arguments_of(node: Any) -> list[tuple[Any, Any]]:
    """The arguments of an operation that are given, each with what its schema says of it."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return []
    found = []
    for number, argument in enumerate(schema.arguments):
        value = node.args[number] if number < len(node.args) else node.kwargs.get(argument.name)
        if value is not None:
            found.append((argument, value))
    return found


def written_by(node: Any) -> list[Any]:
    """The operands that an operation writes."""
    found: list[Any] = []
    for argument, value in arguments_of(node):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found += value if isinstance(value, (list, tuple)) else [value]
    return [value for value in found if hasattr(value, "op")]


def base_of(node: Any) -> Any:
    """The value whose memory a value has: what a view is of, as schemas tell it."""
    while node.op == "call_function":
        if getattr(node.target, "__name__", "") == "getitem":
            node = node.args[0]
            continue
        returned = getattr(node.target, "_schema", None)
        results = returned.returns if returned is not None else []
        shared = [
            value
            for argument, value in arguments_of(node)
            if argument.alias_info is not None and hasattr(value, "op")
        ]
        if not shared or all(result.alias_info is None for result in results):
            return node
        node = shared[0]
    return node


def functional(program: Any, changes: Changes) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A module that computes what a program does and changes nothing, and its arguments.

    It takes buffers that the program changes as further keyword arguments, and returns the
    program's result and, behind it, the new values of these buffers and of inputs that change.
    """
    import torch

    model = program.module()
    call, pytree = model.forward, torch.utils._pytree
    held = dict(model.named_buffers())
    keys = {name: input_name(name) for name in changes.buffers}
    places = [list(program.graph_signature.user_inputs).index(name) for name in changes.inputs]

    def forward(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        buffers = {name: kwargs.pop(key).clone() for name, key in keys.items()}
        leaves, spec = pytree.tree_flatten((args, kwargs))
        for place in places:
            leaves[place] = leaves[place].clone()
        own_args, own_kwargs = pytree.tree_unflatten(leaves, spec)
        result = torch.func.functional_call(model, buffers, own_args, own_kwargs)
        return (result, *buffers.values(), *(leaves[place] for place in places))

    signature = inspect.signature(call)
    parameters = list(signature.parameters.values())
    more = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY) for key in keys.values()]
    last = (
        parameters[-1:] if parameters and parameters[-1].kind is parameters[-1].VAR_KEYWORD else []
    )
    first = parameters[: len(parameters) - len(last)]
    forward.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*first, *more, *last], return_annotation=inspect.Signature.empty
    )
    outer = torch.nn.Module()
    outer.model, outer.forward = model, forward
    args, kwargs = program.example_inputs
    buffers = {key: held[name].detach().clone() for name, key in keys.items()}
    return outer, tuple(args), {**kwargs, **buffers}


def states_of(program: Any, changes: Changes) -> States:
    """The names of a program's states, and what its buffers hold."""
    names = [*map(input_name, changes.buffers), *changes.inputs]
    held = dict(program.module().named_buffers()) if changes.buffers else {}
    initial = {
        input_name(name): np.ascontiguousarray(held[name].detach().cpu().numpy())
        for name in changes.buffers
    }
    return States({name: name + NEXT for name in names}, initial)


def input_name(buffer: str) -> str:
    """The name of the input that a buffer becomes."""
    return buffer.replace(".", "_")
