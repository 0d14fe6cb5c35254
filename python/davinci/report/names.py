"""Names, counts and shares, as a reader can take them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LONGEST = 24
"""Letters of a node's name that a line of a table has room for."""


def shortened(names: Sequence[str], longest: int = LONGEST) -> str:
    """The first name, without outer scopes if it is long, and how many there are besides."""
    if not names:
        return ""
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return tail(names[0], longest) + more


def tail(name: str, longest: int = LONGEST) -> str:
    """The end of a name, cut where a scope begins if there is such a place."""
    if len(name) <= longest:
        return name
    cut = name[1 - longest :]
    inner = cut.find("/")
    return "\u2026" + (cut[inner:] if 0 <= inner < len(cut) - 1 else cut)


def plural(count: int, one: str, many: str) -> str:
    """`1 kernel`, `1,042 kernels`."""
    return f"{count:,} {one if count == 1 else many}"


def percent(share: float) -> str:
    """`81 %`; `< 1 %` of what is not nothing."""
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def scope_of(operators: Sequence[str], scopes: Mapping[str, str]) -> str:
    """The scope of the first of some nodes: `encoder/layer.0` of `/encoder/layer.0/MatMul`.

    Args:
        operators: names of nodes.
        scopes: of nodes whose names do not tell theirs.
    """
    if not operators:
        return ""
    name = operators[0]
    return scopes.get(name, "") or "/".join([part for part in name.split("/") if part][:-1])
