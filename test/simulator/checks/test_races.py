"""The race check against an oracle that knows the whole order: no false alarm, no escape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device

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


def test_against_oracle(new_asm: Callable[[], Any], device: Device) -> None:
    rng = np.random.default_rng(11)
    gm = device.allocate(2 * SPACE_BYTES)
    device.write(gm, np.zeros(2 * SPACE_BYTES, dtype=np.uint8))
    clean = 0
    for _ in range(400):
        asm = new_asm()
        first = random_program(rng, asm, gm)
        if first is None:
            asm.run(device)
            clean += 1
        else:
            with pytest.raises(DeviceFault, match=f"instruction #{first} .*(race: it|set again)"):
                asm.run(device)
    assert 20 < clean < 380


def test_many_accesses_in_flight(new_asm: Callable[[], Any], device: Device) -> None:
    """More than are compared one by one."""
    x = device.allocate(4096)
    device.write(x, np.zeros(4096, dtype=np.uint8))
    asm = new_asm()
    for i in range(100):
        asm.emit("copy_gm_to_ubuf", dst=32 * i, src=x, n_burst=1, len_burst=1)
    asm.run(device)
    asm.emit("copy_gm_to_ubuf", dst=32 * 7, src=x, n_burst=1, len_burst=1)
    with pytest.raises(DeviceFault, match="which #7 copy_gm_to_ubuf"):
        asm.run(device)


PAIR = "PIPE_MTE2, PIPE_V"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            "load copy",
            f"put set_flag({PAIR}, id) after the first and wait_flag({PAIR}, id) before this",
        ),
        ("load set0 copy", f"; put wait_flag({PAIR}, 0) before this, for the flag of #1"),
        (
            "load wait0 copy",
            "wait_flag #1 waits for event 0 from PIPE_MTE2 to PIPE_V, which no set_flag has set; "
            "so race: it reads UB",
        ),
        ("load wait0 copy", f"; put set_flag({PAIR}, 0) after the first"),
        (
            "load set1 wait0 copy",
            "give set_flag #1 and wait_flag #2 one event id: they have 1 and 0",
        ),
        ("set0 load wait0 copy", "; put set_flag #0 after the first"),
        (
            "set0 load copy",
            f"put set_flag #0 after the first and put wait_flag({PAIR}, 0) before this, for the",
        ),
        # The second load is unordered with the first one too, which a barrier would mend.
        ("load set0 wait0 copy load", "put set_flag(PIPE_V, PIPE_MTE2, id) after the first"),
        ("load set0 wait0 copy load", "which #3 copy_ubuf_to_ubuf of PIPE_V"),
        ("load set0 wait0 copy copy", "put pipe_barrier(PIPE_V) between them"),
        (
            "load set0 wait0 other copy copy",
            "wait_flag #3 waits for event 0 from PIPE_MTE3 to PIPE_V, which no set_flag has set",
        ),
        (
            "load set0 wait0 other copy copy",
            "; put set_flag(PIPE_MTE3, PIPE_V, 0) before that wait_flag, or remove it",
        ),
    ],
)
def test_message_says_what_is_missing(
    steps: str, message: str, new_asm: Callable[[], Any], device: Device
) -> None:
    x = device.allocate(64)
    device.write(x, np.zeros(64, dtype=np.uint8))
    asm = new_asm()
    actions: dict[str, Callable[[], None]] = {
        "load": lambda: asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=1),
        "copy": lambda: asm.emit("copy_ubuf_to_ubuf", dst=64, src=0, n_burst=1, len_burst=1),
        "set0": lambda: asm.set(Pipe.MTE2, Pipe.V, 0),
        "set1": lambda: asm.set(Pipe.MTE2, Pipe.V, 1),
        "wait0": lambda: asm.wait(Pipe.MTE2, Pipe.V, 0),
        "other": lambda: asm.wait(Pipe.MTE3, Pipe.V, 0),
    }
    for step in steps.split():
        actions[step]()
    with pytest.raises(DeviceFault) as caught:
        asm.run(device)
    assert message in str(caught.value)
