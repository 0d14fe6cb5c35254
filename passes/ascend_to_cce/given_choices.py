"""Choices of kernels that were given, and those that were made: attributes of the kernel.

`ascend.choices` holds what `davinci.schedule.choices` says. A kernel that has them when it is
lowered is computed so, else as a file says that has its key, else as the cost model chooses.
"""

from __future__ import annotations

from typing import NoReturn

from davinci.dialects.base import as_attribute, attribute
from davinci.errors import InputError
from davinci.mlir import Op, parent_of, symbol_name
from davinci.passes.ascend_to_cce import Target
from davinci.passes.pipeline.base import fail
from davinci.schedule.choices import Choices, key_of, of_data, to_data
from davinci.schedule.graph import Graph
from davinci.schedule.vector.space import NoSpace

CHOICES, KEY = "ascend.choices", "ascend.key"


def given_choices(kernel: Op, graph: Graph, target: Target) -> Choices | None:
    """The choices for a kernel's group, None if the cost model chooses.

    Raises:
        CompileError: the kernel's attribute cannot be read.
    """
    return choices_given(kernel, key_of(graph, target.machine, target.cores), target)


def choices_given(kernel: Op, key: str, target: Target) -> Choices | None:
    """The choices on a kernel, or else those that the file of schedules has for `key`; the key is
    written on the kernel.

    Raises:
        CompileError: the kernel's attribute cannot be read.
    """
    data = attribute(kernel, CHOICES, None)
    if data is not None:
        try:
            return of_data(data)
        except NoSpace as error:
            fail(kernel, f"has {CHOICES} that are none", found=str(error))
    kernel.attributes[KEY] = as_attribute(key)
    return target.given.get(key)


def refuse(operation: Op, reason: str, given: Choices | None, target: Target) -> NoReturn:
    """Raises the error of a kernel that cannot be built: of its group where the cost model chose,
    else of the choices that were given for it.

    Args:
        operation: the last operator of the group.
        given: what `given_choices` found.
    """
    kernel = parent_of(operation)
    if given is None:
        fail(operation, "cannot be computed together with its group", found=reason)
    key = attribute(kernel, KEY, "")
    if target.given.get(key) is not given:
        fail(operation, f"cannot be computed as {CHOICES} of its kernel say", found=reason)
    raise InputError(
        "the kernel cannot be computed by this schedule",
        where=f"{target.schedules}: kernel {symbol_name(kernel)}, key {key}",
        found=reason,
        hint="change it, or take the kernel out of the file: the cost model chooses then",
    )


def note_choices(kernel: Op, choices: Choices) -> None:
    """Writes what was chosen on the kernel."""
    kernel.attributes[CHOICES] = as_attribute(to_data(choices))
