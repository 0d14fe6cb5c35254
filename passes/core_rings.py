"""Rings of tiles between a cube core and the vector cores beside it, and the flags that count them.

    who makes tiles                        who takes them
                                           `open`: set_core_flag TAKEN, once for each place
    `giving`: wait_core_flag TAKEN
              a tile to the next place
              set_core_flag MADE           `taking`: wait_core_flag MADE
                                                     the tile from its place
                                                     set_core_flag TAKEN
    `close`: wait_core_flag TAKEN, once for each place

Places are in global memory and stay in the L2. Who makes tiles is never more than the number of
places ahead of who takes them: no place is overwritten too early, and no counter of a flag gets
above that number. After `close` all counters are what they were, for the next kernel.

Programs whose rings are used in one common order cannot wait for each other forever: a tile waits
for one that was taken before it in that order, and who takes a tile for that tile to be made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from davinci.dialects.cce import build as cce


@dataclass(frozen=True)
class TileRing:
    """Builds the flags of a ring of tiles.

    Attributes:
        made: the flag that counts tiles that lie in their places.
        taken: the flag that counts places that are free; None if only one tile is ever made.
        places: how many tiles may lie in the ring.
        stores: the pipe by which tiles are made.
        loads: the pipe by which they are taken.
    """

    made: int
    taken: int | None
    places: int
    stores: str
    loads: str

    def open(self) -> None:
        """Who takes tiles says at first that all places are free."""
        self._free(self.places)

    def close(self) -> None:
        """Who makes tiles waits at its end until all are taken."""
        self._wait_free(self.places)

    @contextmanager
    def giving(self) -> Iterator[None]:
        """Builds around what stores a tile to its place."""
        self._wait_free(1)
        yield
        cce.set_core_flag(pipe=self.stores, flag=self.made)

    @contextmanager
    def taking(self) -> Iterator[None]:
        """Builds around what loads a tile from its place."""
        cce.wait_core_flag(flag=self.made)
        yield
        self._free(1)

    def _free(self, places: int) -> None:
        if self.taken is not None:
            for _ in range(places):
                cce.set_core_flag(pipe=self.loads, flag=self.taken)

    def _wait_free(self, places: int) -> None:
        if self.taken is not None:
            for _ in range(places):
                cce.wait_core_flag(flag=self.taken)
