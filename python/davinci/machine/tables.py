"""Tables of a machine file that have a number for each instruction, or each family of them."""

from __future__ import annotations

from collections.abc import Mapping


def entry_of(table: Mapping[str, int], name: str, type_: str, default: int) -> int:
    """The entry of the instruction `name`.`type_`: of its name and type, its name, or of its
    family, which is its name before the first underscore."""
    for key in (f"{name}.{type_}", name, name.partition("_")[0]):
        if key in table:
            return table[key]
    return default
