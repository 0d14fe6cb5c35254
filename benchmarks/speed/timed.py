"""Runs whose time alone is wanted."""

from __future__ import annotations

from typing import Any

import davinci
from davinci import zoo


def timed(model: Any, **options: Any) -> davinci.Executable:
    """Compiles a model and runs it without data: its profile and launches are there then.

    Args:
        options: of `davinci.compile`.
    """
    executable = davinci.compile(model, timing_only=True, **options)
    executable.run()
    return executable


def timed_network(network: str, **options: Any) -> davinci.Executable:
    """The same for a network of the zoo, by its name."""
    return timed(zoo.build(network).proto, **options)
