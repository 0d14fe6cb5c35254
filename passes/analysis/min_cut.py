"""The cheapest way to cut a network in two: which nodes stay with the source.

A choice of one of two for each of many things, with a price for each choice and a price for each
pair that chooses differently, is such a cut (Greig, Porteous, Seheult, 1989). Found by the largest
flow along shortest paths (Dinic, 1970).
"""

from __future__ import annotations

from collections import deque

NEVER = 1 << 60
"""A price that is paid only where nothing else is possible."""


class FlowNetwork:
    """Nodes `SOURCE`, `SINK` and those of `node()`; edges with what cutting them costs."""

    SOURCE, SINK = 0, 1

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]
        self._heads: list[int] = []
        self._room: list[int] = []

    def node(self) -> int:
        """A new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, tail: int, head: int, cost: int) -> None:
        """What it costs if `tail` stays with the source and `head` does not; costs add up."""
        for start, end, room in ((tail, head, cost), (head, tail, 0)):
            self._edges[start].append(len(self._heads))
            self._heads.append(end)
            self._room.append(room)

    def source_side(self) -> set[int]:
        """The nodes that stay with the source in the cheapest cut; of equal ones in the fewest."""
        while (distances := self._distances())[self.SOURCE] >= 0:
            places = [0] * len(self._edges)
            while self._push(distances, places):
                pass
        found, waiting = {self.SOURCE}, [self.SOURCE]
        while waiting:
            for edge in self._edges[waiting.pop()]:
                head = self._heads[edge]
                if self._room[edge] and head not in found:
                    found.add(head)
                    waiting.append(head)
        return found

    def _distances(self) -> list[int]:
        """Distances to the sink along edges with room, as far as the source's; -1 where there is
        no way."""
        heads, room = self._heads, self._room
        found = [-1] * len(self._edges)
        found[self.SINK] = 0
        waiting = deque([self.SINK])
        while waiting and found[self.SOURCE] < 0:
            node = waiting.popleft()
            for edge in self._edges[node]:
                head = heads[edge]
                if found[head] < 0 and room[edge ^ 1]:
                    found[head] = found[node] + 1
                    waiting.append(head)
        return found

    def _push(self, distances: list[int], places: list[int]) -> int:
        """Sends what one shortest path holds; `places` are the edges not yet found useless."""
        heads, room = self._heads, self._room
        path: list[int] = []
        node = self.SOURCE
        while node != self.SINK:
            edges, place, next_one = self._edges[node], places[node], distances[node] - 1
            while place < len(edges):
                if distances[heads[edges[place]]] == next_one and room[edges[place]]:
                    break
                place += 1
            places[node] = place
            if place < len(edges):
                path.append(edges[place])
                node = heads[edges[place]]
            elif not path:
                return 0
            else:
                node = heads[path.pop() ^ 1]
                places[node] += 1
        sent = min(self._room[edge] for edge in path)
        for edge in path:
            self._room[edge] -= sent
            self._room[edge ^ 1] += sent
        return sent
