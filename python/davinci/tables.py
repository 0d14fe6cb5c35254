"""The one way to register: a table whose entries are made by a decorator, each key once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")


class Table(dict[Key, Entry]):
    """What is registered, by key.

    LOWERINGS: Table[str, Lowering] = Table("a lowering")
    lowering = LOWERINGS.register

    @lowering("add", "sub")
    def lower_binary(op): ...
    """

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def register(self, *keys: Key) -> Callable[[Entry], Entry]:
        """A decorator that enters a function or class under `keys`.

        Raises:
            ValueError: a key that the table has.
        """

        def enter(entry: Entry) -> Entry:
            for key in keys:
                if key in self:
                    raise ValueError(f"{key} has {self._what} already")
                self[key] = entry
            return entry

        return enter
