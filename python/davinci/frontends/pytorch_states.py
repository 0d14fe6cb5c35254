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
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.errors import InputError

HELD = ("BUFFER", "PARAMETER", "CONSTANT_TENSOR")
"""Kinds of inputs of a program's graph that the program holds, as its signature calls them."""

TRAINING, STATISTICS = ("training", "train", "use_input_stats"), ("running_mean", "running_var")
"""Names of arguments of normalisations: that they are in training, and what they update then."""

NEXT = "_next"
"""How the name of an output ends that is the next value of an input or buffer."""


@dataclass(frozen=True)
class Changes:
    """What a program changes in place.

    Attributes:
        buffers: names of what a program holds: buffers, parameters, and tensors that are neither,
            which PyTorch calls constants (attributes that are plain tensors, caches of a model).
        inputs: names of inputs, as the program's signature has them.
    """

    buffers: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The first of them in words, "" if there is none."""
        kinds = (("input", self.inputs), ("buffer", self.buffers))
        return next((f"{kind} {names[0]!r}" for kind, names in kinds if names), "")

    def joined(self, other: Changes) -> Changes:
        """The changes of both, each once."""
        return Changes(
            tuple(dict.fromkeys((*self.buffers, *other.buffers))),
            tuple(dict.fromkeys((*self.inputs, *other.inputs))),
        )


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
    write. Tensors that the program makes itself are nobody else's."""
    signed = signed_changes(program)
    buffers, inputs = dict.fromkeys(signed.buffers), dict.fromkeys(signed.inputs)
    signature = program.graph_signature
    targets = {spec.arg.name: spec for spec in signature.input_specs if hasattr(spec.arg, "name")}
    for node in program.graph.nodes:
        for written in written_by(node):
            spec = targets.get(base_of(written).name)
            if spec is not None and spec.kind.name in HELD:
                buffers[spec.target] = None
            elif spec is not None and spec.kind.name == "USER_INPUT":
                inputs[spec.arg.name] = None
    return Changes(tuple(buffers), tuple(inputs))


def signed_changes(program: Any) -> Changes:
    """The changes that the signature of a program states. That of a decomposed program has all of
    them, also those that no schema tells: running statistics of normalisations in training."""
    signature = program.graph_signature
    parameters = getattr(signature, "parameters_to_mutate", {})
    held = (*signature.buffers_to_mutate.values(), *parameters.values())
    return Changes(held, tuple(signature.user_inputs_to_mutate.values()))


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
    """The operands that an operation writes: those that its schema tells, and the running
    statistics of a normalisation in training, which it does not tell."""
    found: list[Any] = []
    training = in_training(node)
    for argument, value in arguments_of(node):
        told = argument.alias_info is not None and argument.alias_info.is_write
        if told or (training and argument.name in STATISTICS):
            found += value if isinstance(value, (list, tuple)) else [value]
    return [value for value in found if hasattr(value, "op")]


def in_training(node: Any) -> bool:
    """Whether an operation is a normalisation by statistics of the batch."""
    given = {argument.name: value for argument, value in arguments_of(node)}
    return "momentum" in given and any(given.get(name) is True for name in TRAINING)


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

    model = module_of(program, changes)
    call, pytree = model.forward, torch.utils._pytree
    held = held_by(model)
    keys = input_names(program, changes)
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


def module_of(program: Any, changes: Changes) -> Any:
    """The module of a program, in which constants that change are buffers.

    Raises:
        InputError: what changes shares memory with something else that the program holds, so that
            it is no buffer of its own.
    """
    import torch

    model = program.module()
    for name in changes.buffers:
        owner, _, attribute = name.rpartition(".")
        part = model.get_submodule(owner)
        value = getattr(part, attribute)
        if attribute not in part._buffers and attribute not in part._parameters:
            delattr(part, attribute)
            part.register_buffer(attribute, value, persistent=False)
    tensors = {**held_by(model), **program.constants}
    places: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            places.setdefault(tensor.untyped_storage().data_ptr(), []).append(name)
    for name in changes.buffers:
        others = places.get(tensors[name].untyped_storage().data_ptr(), [])
        if len(others) > 1:
            raise InputError(
                "a tensor that the model changes shares its memory with another one",
                where=f"{type(program).__name__}: buffer {name!r}",
                found=", ".join(map(repr, others)),
                expected="tensors of their own",
                hint="register one buffer, and take views of it in forward",
            )
    return model


def held_by(model: Any) -> dict[str, Any]:
    """Buffers and parameters of a module by their names."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def states_of(program: Any, changes: Changes) -> States:
    """The names of a program's states, and what its buffers hold."""
    keys = input_names(program, changes)
    held = held_by(module_of(program, changes)) if changes.buffers else {}
    initial = {
        key: np.ascontiguousarray(held[name].detach().cpu().numpy()) for name, key in keys.items()
    }
    names = [*keys.values(), *changes.inputs]
    return States({name: name + NEXT for name in names}, initial)


def input_names(program: Any, changes: Changes) -> dict[str, str]:
    """The names of the inputs that buffers become: as PyTorch names inputs, in small letters, and
    unlike those that the program has."""
    taken = {str(name).lower() for name in program.graph_signature.user_inputs}
    taken |= {name.lower() for name in inspect.signature(program.module().forward).parameters}
    found: dict[str, str] = {}
    for name in changes.buffers:
        key = re.sub(r"\W", "_", name).lower()
        while key in taken:
            key += "_"
        taken.add(key)
        found[name] = key
    return found


def own_name(name: str, held: Container[str]) -> str:
    """The name that a program has for what modules around it, each with one `model`, hold."""
    while name not in held and name.startswith("model."):
        name = name.removeprefix("model.")
    return name
