"""Which block size fits, where that of a launch does not: found by compiling with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from davinci.errors import CompileError
from davinci.triton import source as sources
from davinci.triton.peak import LiveBuffer
from davinci.triton.toolchain import NoRoom, to_hivm

LEAST = 16
"""The smallest block size that is proposed."""

TRIES = 6
"""Block sizes that are compiled for each constant, at most."""


def what_fits(kernel: Any, given: Mapping[str, Any], error: NoRoom) -> str:
    """What its author may do about a kernel that does not fit, in words.

    Args:
        kernel: a function with `@triton.jit`.
        given: the values of its parameters and options of the compilers.
        error: what the compiler said.
    """
    ways = []
    for name in block_sizes(kernel, given, error.buffers):
        size = fitting(kernel, given, name, error)
        if size:
            ways.append(f"{name}={size} fits instead of {given[name]}")
            break
    single = dropped(error)
    if single is not None:
        line = single.place.rpartition(":")[0] or "no known line"
        ways.append(f"without the {single.kind} of {line} it fits")
    return ", or ".join(ways) or "no single constant of the launch makes it fit"


def dropped(error: NoRoom) -> LiveBuffer | None:
    """The smallest buffer without which the others fit, None if there is none."""
    enough = [b for b in error.buffers if error.needed - b.size <= error.room]
    return min(enough, key=lambda buffer: buffer.size, default=None)


def block_sizes(
    kernel: Any, given: Mapping[str, Any], buffers: Sequence[LiveBuffer]
) -> Iterator[str]:
    """Names of the constants that may be block sizes, those of the largest buffers first."""
    names = [
        param.name
        for param in kernel.params
        if param.is_constexpr and type(given[param.name]) is int and given[param.name] > LEAST
    ]
    dims = [int(n) for b in buffers for n in b.kind.split("x")[:-1]]
    found = [name for name in names if given[name] in dims]
    yield from sorted(found, key=lambda name: dims.index(given[name]))
    yield from (name for name in names if name not in found)


def fitting(kernel: Any, given: Mapping[str, Any], name: str, error: NoRoom) -> int:
    """The largest power of two that compiles as that constant, 0 if none of a few does."""
    whole = int(given[name])
    size = 1 << (whole - 1).bit_length() - 1
    # Buffers may have the constant twice in their shapes.
    while size > LEAST and size**2 * error.needed > whole**2 * error.room:
        size //= 2
    for _ in range(TRIES):
        if size < LEAST:
            return 0
        changed = {**given, name: size}
        try:
            made = sources.source_of(kernel, changed)
            to_hivm(made.ttir, made.options)
        except NoRoom:
            size //= 2
        except CompileError:
            return 0
        else:
            return size
    return 0
