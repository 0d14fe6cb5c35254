"""Names and labels of kernels are for readers: no program depends on them.

    @for_readers(lambda graph: ["group"])
    def parts_of(graph: Graph) -> list[str]: ...

Where finding one fails, the compiler goes on with a plain one and warns. Whatever only says what a
kernel is called, or what its operators mean, is marked so; tests turn the warning into an error.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class NamingWarning(RuntimeWarning):
    """A name, a label or an amount of work in reports that could not be found."""


def for_readers(plain: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Marks a function that makes what only reports show.

    Args:
        plain: what is shown where it fails, of the same arguments.
    """

    def mark(made: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(made)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return made(*args, **kwargs)
            except Exception as error:  # of any kind: the program is right without it
                shown = plain(*args, **kwargs)
                warnings.warn(
                    f"{made.__name__}: {type(error).__name__}: {error}; reports show {shown!r}, "
                    "the program is not affected; please report it",
                    NamingWarning,
                    stacklevel=2,
                )
                return shown

        return guarded

    return mark
