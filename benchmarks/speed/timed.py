"""Runs whose time alone is wanted."""

from __future__ import annotations

from typing import Any

import davinci
from davinci import zoo


def timed(model: Any, launches: str = "many", **options: Any) -> davinci.Executable:
    """Compiles a model and runs it without data: its profile and launches are there then.

    Args:
        launches: "many" for kernels as each of them is alone, "auto" for what a user gets.
        options: further ones of `davinci.compile`.
    """
    executable = davinci.compile(model, timing_only=True, launches=launches, **options)
    executable.run()
    return executable


def timed_network(network: str, launches: str = "auto", **options: Any) -> davinci.Executable:
    """The same for a network of the zoo, by its name."""
    return timed(zoo.build(network).proto, launches, **options)
