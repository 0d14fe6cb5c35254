"""Random programs of copies, flags and barriers, and an oracle that knows the whole order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from davinci.isa import Pipe

SPACE_BYTES = 1024
PIPES = (Pipe.V, Pipe.MTE2, Pipe.MTE3)


@dataclass
class Node:
    """An instruction of the oracle: what it touches."""

    pipe: Pipe
    reads: set[tuple[str, int]] = field(default_factory=set)
    writes: set[tuple[str, int]] = field(default_factory=set)


def touched(address: int, count: int, length: int, gap: int) -> list[int]:
    return [
        address + 32 * (i * (length + gap)) + byte
        for i in range(count)
        for byte in range(32 * length)
    ]


class Oracle:
    """Transitive order by sets of instructions: `known[p]` is complete before the next on p."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.known: dict[Pipe, set[int]] = {pipe: set() for pipe in PIPES}
        self.sent: dict[tuple[Pipe, Pipe, int], set[int]] = {}
        self.waited: dict[tuple[Pipe, Pipe, int], int] = {}

    def issued(self, pipe: Pipe) -> set[int]:
        return {i for i, node in enumerate(self.nodes) if node.pipe == pipe}

    def race(self, node: Node) -> bool:
        for i, old in enumerate(self.nodes):
            if i in self.known[node.pipe]:
                continue
            after_read = old.reads & node.writes if old.pipe != node.pipe else set()
            if old.writes & (node.reads | node.writes) or after_read:
                return True
        return False


def random_program(rng: Any, asm: Any, gm: int) -> int | None:
    """Fills `asm`; returns the index of the first racing instruction, or None."""
    oracle = Oracle()
    asm.emit("copy_gm_to_ubuf", dst=0, src=gm, n_burst=1, len_burst=SPACE_BYTES // 32)
    asm.barrier(Pipe.ALL)
    while len(asm.rows) < 40:
        kind = rng.integers(10)
        if kind < 6:
            pipe = PIPES[rng.integers(3)]
            count, length = int(rng.integers(1, 4)), int(rng.integers(1, 3))
            gaps = rng.integers(0, 4, 2).tolist()
            src, dst = (32 * rng.integers(0, 12, 2)).tolist()
            node = Node(pipe)
            name, s, d = {
                Pipe.V: ("copy_ubuf_to_ubuf", "UB", "UB"),
                Pipe.MTE2: ("copy_gm_to_ubuf", "GM", "UB"),
                Pipe.MTE3: ("copy_ubuf_to_gm", "UB", "GM"),
            }[pipe]
            node.reads = {(s, b) for b in touched(src, count, length, gaps[0])}
            node.writes = {(d, b) for b in touched(dst, count, length, gaps[1])}
            races = oracle.race(node)
            if races and rng.integers(50):
                continue
            offset = {"UB": 0, "GM": gm}
            asm.emit(
                name, dst=dst + offset[d], src=src + offset[s], n_burst=count, len_burst=length,
                src_gap=gaps[0], dst_gap=gaps[1],
            )  # fmt: skip
            if races:
                return len(asm.rows) - 1
            oracle.nodes.append(node)
        elif kind < 9:
            a, b = (PIPES[i] for i in rng.permutation(3)[:2])
            event = (a, b, int(rng.integers(2)))
            if event in oracle.sent:
                asm.wait(*event)
                oracle.known[b] |= oracle.sent.pop(event)
                oracle.waited[event] = len(oracle.nodes)
                oracle.nodes.append(Node(b))
            else:
                again = event in oracle.waited and oracle.waited[event] not in oracle.known[a]
                if again and rng.integers(50):
                    continue
                asm.set(*event)
                if again:
                    return len(asm.rows) - 1
                oracle.sent[event] = oracle.known[a] | oracle.issued(a)
        else:
            pipe = (*PIPES, Pipe.ALL)[rng.integers(4)]
            asm.barrier(pipe)
            everything = set(range(len(oracle.nodes)))
            for each in PIPES:
                if pipe == Pipe.ALL:
                    oracle.known[each] |= everything
                elif pipe == each:
                    oracle.known[each] |= oracle.issued(each)
    for event in oracle.sent:
        asm.wait(*event)
    return None
