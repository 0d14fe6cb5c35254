"""Choices of kernels that were given, and those that were made: attributes of the kernel.

`ascend.choices` holds what `davinci.schedule.choices` says. A kernel that has them when it is
lowered is computed so, else as a file says that has its key, else as the cost model chooses.
"""

from __future__ import annotations

from typing import Any

from davinci.dialects.base import as_attribute, attribute
from davinci.passes.ascend_to_cce import Target
from davinci.schedule.choices import Choices, key_of, of_data, to_data
from davinci.schedule.graph import Graph

CHOICES, KEY = "ascend.choices", "ascend.key"


def given_choices(kernel: Any, graph: Graph, target: Target) -> Choices | None:
    """The choices for a kernel's group, None if the cost model chooses.

    Raises:
        NoSpace: the kernel's attribute cannot be read.
    """
    data = attribute(kernel, CHOICES, None)
    if data is not None:
        return of_data(data)
    key = key_of(graph, target.machine, target.cores)
    kernel.attributes[KEY] = as_attribute(key)
    return target.given.get(key)


def note_choices(kernel: Any, choices: Choices) -> None:
    """Writes what was chosen on the kernel."""
    kernel.attributes[CHOICES] = as_attribute(to_data(choices))
