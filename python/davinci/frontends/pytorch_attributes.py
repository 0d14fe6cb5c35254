"""Attributes of a PyTorch module that carry a value from one call to the next.

PyTorch exports what one call computes. Buffers that `forward` changes in place are found in the
exported program (`pytorch_states`); a value that it *assigns* to an attribute leaves no trace in
it, and every call of the program computes what the first call did:

    def forward(self, x):
        self.calls += 1             a number: the program multiplies by 1 for ever
        self.last = self.last + x   a tensor: the program adds the one of before the export
        return x * self.calls + self.last

Many modules assign what no later call reads (sizes of an input, weights of an attention that are
looked at afterwards). So a module that assigns anything is exported a second time, as the first
call leaves it; it keeps a state where the second program differs, or reads a tensor that the first
call has assigned.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from davinci.errors import CompileError, InputError

DEEPEST = 4
"""Steps from a module into lists, dictionaries and plain objects among its attributes."""

MISSING = object()
"""Value of an attribute that is not there."""


@dataclass(frozen=True)
class Assignment:
    """An attribute, or an entry of a list or dictionary, that a call assigned.

    Attributes:
        path: as it is written in the module.
        holder, key: the dictionary or list, and where in it.
        old, new: the values before and behind the call.
    """

    path: str
    holder: Any
    key: Any
    old: Any
    new: Any

    def put(self, value: Any) -> None:
        """Gives the attribute a value."""
        if isinstance(self.holder, list):
            self.holder[self.key : self.key + 1] = [] if value is MISSING else [value]
        elif value is not MISSING:
            self.holder[self.key] = value
        else:
            self.holder.pop(self.key, None)


def without_kept_values(model: Any, export: Callable[[], Any], where: str) -> Any:
    """The program that `export` makes of a module, which keeps nothing in attributes.

    Raises:
        InputError: the module computes something else at its second call.
    """
    assigned: list[Assignment] = []
    own = model.__dict__.get("forward", MISSING)
    call = model.forward

    @functools.wraps(call)
    def forward(*args: Any, **kwargs: Any) -> Any:
        before = values_of(model)
        result = call(*args, **kwargs)
        assigned.extend(assignments(before, values_of(model)))
        return result

    holders = {id(part): dict(vars(part)) for part in model.modules()}

    def undo() -> None:
        """PyTorch puts copies of lists and dictionaries into the attributes of modules."""
        for part in model.modules():
            vars(part).update(holders.get(id(part), {}))
        for each in reversed(assigned):
            each.put(each.old)

    try:
        model.forward = forward
        program = export()
        undo()
        first = list(assigned)
        if not first:
            return program
        for each in first:
            each.put(filled(each.new))
        fresh = {id(each.holder[each.key]): each for each in first if is_tensor(each.new)}
        try:
            again = export()
        except CompileError:
            differs, read = True, []
        else:
            differs = str(again.graph) != str(program.graph)
            read = [fresh[id(value)] for value in again.constants.values() if id(value) in fresh]
    finally:
        undo()
        model.__dict__.pop("forward", None)
        if own is not MISSING:
            model.forward = own
    if differs or read:
        blamed = (read or first)[0]
        raise InputError(
            "the model keeps a value in an attribute from one call to the next, which PyTorch does "
            "not export",
            where=f"{where}: {blamed.path}",
            found=f"{shown(blamed.old)} before a call, {shown(blamed.new)} behind it",
            expected="a buffer",
            hint="register it with register_buffer and change it in place "
            f"({blamed.path}.copy_(..)), or take it as an input and return it",
        )
    return program


def assignments(
    before: dict[str, tuple[Any, Any, Any]], after: dict[str, tuple[Any, Any, Any]]
) -> Iterator[Assignment]:
    """What is a number or a tensor behind a call, and was another one before it."""
    for path, (holder, key, new) in after.items():
        old = before[path][2] if path in before else MISSING
        if not (is_tensor(new) or isinstance(new, (int, float, str))) or new is old:
            continue
        if is_tensor(new) or is_tensor(old) or old != new:
            yield Assignment(path, holder, key, old, new)


def values_of(model: Any) -> dict[str, tuple[Any, Any, Any]]:
    """The attributes of a module and its parts that are no parameters, buffers or modules, and what
    lists, dictionaries and plain objects among them hold: where each is, and its value."""
    import torch

    standard = {*vars(torch.nn.Module()), "forward"}
    seen: set[int] = set()
    found: dict[str, tuple[Any, Any, Any]] = {}

    def walk(path: str, holder: Any, key: Any, value: Any, depth: int) -> None:
        found[path] = (holder, key, value)
        if depth == 0 or id(value) in seen or is_tensor(value):
            return
        entries: list[tuple[str, Any, Any, Any]] = []
        if isinstance(value, dict):
            entries = [(f"{path}[{k!r}]", value, k, v) for k, v in value.items()]
        elif isinstance(value, list):
            entries = [(f"{path}[{k}]", value, k, v) for k, v in enumerate(value)]
        elif is_plain(value):
            own = vars(value)
            entries = [(f"{path}.{k}", own, k, v) for k, v in own.items()]
        if entries:
            seen.add(id(value))
        for entry in entries:
            walk(*entry, depth - 1)

    for name, part in model.named_modules():
        prefix = ".".join(filter(None, ("self", name)))
        for key in [key for key in vars(part) if key not in standard]:
            walk(f"{prefix}.{key}", vars(part), key, vars(part)[key], DEEPEST)
    return found


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch."""
    import torch

    return isinstance(value, torch.Tensor)


def is_plain(value: Any) -> bool:
    """Whether a value is an object of a class of the model's own, like a cache."""
    import torch

    kind = type(value)
    foreign = kind.__module__.partition(".")[0] in ("torch", "builtins", "collections", "functools")
    modules = isinstance(value, (type, torch.nn.Module))
    return hasattr(value, "__dict__") and not (foreign or modules or callable(value))


def filled(value: Any) -> Any:
    """A value that a second export can begin with: zeros for a tensor without data."""
    import torch

    return torch.zeros(value.shape, dtype=value.dtype) if is_tensor(value) else value


def shown(value: Any) -> str:
    """A value in a message."""
    if value is MISSING:
        return "nothing"
    return f"a tensor of shape {list(value.shape)}" if is_tensor(value) else repr(value)
