"""Caches of transformers among the arguments and results of PyTorch modules.

PyTorch exports a module with such an argument, but then cannot decompose the program, for it makes
the cache anew outside of the program. So the argument is given as lists of tensors, by the same
names, and the cache is made of them inside.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any


def register_caches() -> None:
    """Has PyTorch look into caches among arguments and results, if transformers is in use."""
    if "transformers" not in sys.modules:
        return
    from transformers import DynamicCache
    from transformers.integrations import executorch

    register: Any = executorch.register_dynamic_cache_export_support
    if DynamicCache not in sys.modules["torch"].utils._pytree.SUPPORTED_NODES:
        register()


def with_lists(
    model: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A module that takes and returns lists of tensors for caches, and its arguments; the module
    itself if it has nothing to do with them."""
    given = [*args, *kwargs.values()]
    caches = {place: value for place, value in enumerate(given) if is_cache(value)}
    transformers = sys.modules.get("transformers")
    may_return = transformers is not None and isinstance(model, transformers.PreTrainedModel)
    if not caches and not may_return:
        return model, tuple(args), kwargs
    import torch

    pytree = torch.utils._pytree
    specs = {place: pytree.tree_flatten(value)[1] for place, value in caches.items()}
    call = model.forward

    @functools.wraps(call)
    def forward(*own_args: Any, **own_kwargs: Any) -> Any:
        values = [*own_args, *own_kwargs.values()]
        for place, spec in specs.items():
            values[place] = pytree.tree_unflatten(pytree.tree_leaves(values[place]), spec)
        named = dict(zip(own_kwargs, values[len(own_args) :], strict=True))
        result = call(*values[: len(own_args)], **named)
        plain = pytree.tree_map(
            lambda v: lists_of(v) if is_cache(v) else v, result, is_leaf=is_cache
        )
        return plain

    outer = torch.nn.Module()
    outer.model, outer.forward = model, forward
    outer.training = model.training
    plain = [lists_of(value) if place in caches else value for place, value in enumerate(given)]
    return outer, tuple(plain[: len(args)]), dict(zip(kwargs, plain[len(args) :], strict=True))


def is_cache(value: Any) -> bool:
    """Whether a value is a cache that PyTorch can look into."""
    transformers = sys.modules.get("transformers")
    if transformers is None or not isinstance(value, transformers.Cache):
        return False
    return type(value) in sys.modules["torch"].utils._pytree.SUPPORTED_NODES


def lists_of(cache: Any) -> dict[str, list[Any]]:
    """The tensors of a cache by the names of its lists."""
    found: dict[str, list[Any]] = {}
    for path, leaf in sys.modules["torch"].utils._pytree.tree_flatten_with_path(cache)[0]:
        found.setdefault(str(path[0].key), []).append(leaf)
    return found
