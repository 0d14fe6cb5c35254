"""Random programs of all instruction families on buffers so small that they conflict often.

Synchronisation is put in where `happens_before` says that it is missing, most of the time, at
random places and with random flags; then some programs are damaged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci import machine as machines
from davinci.errors import DeviceFault
from davinci.isa.assembly import encode_record
from davinci.isa.atomic import SET_ATOMIC
from davinci.isa.core import INSTRUCTIONS, RECORD_WORDS, Pipe, Space, finds_nothing
from davinci.simulator import Device
from fuzz.happens_before import Order
from fuzz.interleaving import SLACK_BYTES, Window
from fuzz.stream_steps import FLAGS, SYNC, Conflicts, Step, decode, opcode_of

GM_ORIGIN = 512
WINDOW_BYTES = {
    Space.GM: 8192,
    Space.L1: 2048,
    Space.L0A: 1024,
    Space.L0B: 1024,
    Space.L0C: 2048,
    Space.UB: 2048,
    Space.BT: 1024,
    Space.FB: 2048,
}
VA_BLOCKS = 40
IMAGE = "set_fmatrix"
SCALES = "set_deqscale"
TABLE = "set_fpc"
SCALES_BLOCK = 32
EVENT_BIT = 8
CARE = (1.0, 1.0, 1.0, 0.97, 0.8)
"""How likely missing synchronisation is put in; one of these for each program."""

DAMAGES = {"move": 4, "remove the flag": 5, "remove": 1, "rename the flag": 2}
"""What happens to a flag or barrier that is damaged, by weight. "remove" takes half a flag."""

Row = list[int]


def pick(rng: np.random.Generator, weights: Mapping[str, int]) -> str:
    """One of the names, as often as its weight says."""
    names = [name for name, weight in weights.items() for _ in range(weight)]
    return names[rng.integers(len(names))]


def ranges() -> dict[str, tuple[int, int]]:
    """Small values of fields by name; others are drawn from the whole field."""
    small = {"repeat": (0, 3), "n_burst": (1, 3), "len_burst": (1, 3), "src_gap": (0, 3)}
    small |= {"dst_gap": (0, 3), "m": (1, 20), "k": (1, 20), "n": (1, 20), "start_index": (0, 2)}
    small |= {"src_stride": (0, 2), "dst_stride": (0, 8), "n_size": (1, 2), "m_size": (1, 20)}
    small |= {"dst_blk_stride": (1, 2), "src_d_value": (1, 40), "nd_num": (1, 2)}
    small |= {"n_value": (1, 6), "d_value": (1, 20), "src_nd_matrix_stride": (1, 40)}
    small |= {f"dst_nz_{name}_stride": (1, 20) for name in ("c0", "n", "matrix")}
    small |= {"c1_index": (0, 1), "filter_w": (1, 3)}
    small |= {"filter_h": (1, 3), "fetch_w": (0, 2), "fetch_h": (0, 2), "stride_w": (1, 2)}
    small |= {"stride_h": (1, 2), "dilation_w": (1, 2), "dilation_h": (1, 2)}
    small |= {"left_top_w": (0, 2), "left_top_h": (0, 2), "jump_stride": (1, 2)}
    # Far enough from the end of UB for every repeat.
    small |= {f"address{i}": (0, VA_BLOCKS - 1) for i in range(4)}
    small |= {"lists": (15, 15)} | {f"n{i}": (0, 6) for i in range(4)}
    small |= {f"{name}_blk_stride": (0, 2) for name in ("src", "src0", "src1")}
    small |= {f"{name}_rep_stride": (0, 9) for name in ("dst", "src", "src0", "src1")}
    return small


def contents(rng: np.random.Generator, size: int) -> npt.NDArray[np.uint8]:
    """Random bytes that are numbers below 2 both as f16 and as f32: few NaNs come of them."""
    halves = rng.integers(0, 1 << 16, size // 2, dtype=np.uint16) & np.uint16(0xBFFF)
    return halves.view(np.uint8)


class Pool:
    """Instructions that are legal by themselves, by pipe.

    Attributes:
        device: a simulated machine whose memories hold random bytes, all of them written.
        prefix: instructions that programs start with: they load the VA registers, FMATRIX,
            DEQSCALE and FPC.
        sequential, depth: of the machine.
        memories: contents at the start of a program.
    """

    def __init__(
        self,
        machine: str,
        kind: str,
        rng: np.random.Generator,
        tries: int = 100,
        gm_bytes: int = WINDOW_BYTES[Space.GM],
    ) -> None:
        """Draws instructions.

        Args:
            kind: of the cores that they are for: "AICORE"; "AIC" or "AIV" of a split machine.
            tries: so many of each record.
            gm_bytes: addresses in GM lie in so much of it: fewer bytes make more conflicts.
        """
        description = machines.load(machine)
        self._gm_bytes = gm_bytes
        self._kind = kind
        self.sequential = frozenset(Pipe[name] for name in description.sync.sequential_pipes)
        self.depth, self.events = description.sync.queue_depth, description.sync.event_ids
        self.device = Device(description, 1 << 16)
        self.rng, self._small = rng, ranges()
        self.memories = {
            space: Window(
                GM_ORIGIN if space == Space.GM else 0,
                contents(rng, size + SLACK_BYTES),
            )
            for space, size in WINDOW_BYTES.items()
            if space.name in ("GM", *description.core_types[kind].memories)
        }
        halves = [(va, half) for va in range(8) for half in range(2)]
        self.prefix = [self._va(*each) for each in halves] if Space.UB in self.memories else []
        if IMAGE in description.intrinsics:
            sizes = {"l1_w": 5, "l1_h": 3, "pad_left": 1, "pad_right": 2}
            sizes |= {"pad_top": 0, "pad_bottom": 0}
            self.prefix.append(self.row(INSTRUCTIONS[IMAGE], sizes))
        if SCALES in description.intrinsics:
            self.prefix.append(self.row(INSTRUCTIONS[SCALES], {"bits": SCALES_BLOCK}))
        if TABLE in description.intrinsics:
            self.prefix.append(self.row(INSTRUCTIONS[TABLE], {"bits": 0}))
        self.rows: dict[Pipe, list[Row]] = defaultdict(list)
        self.names: set[str] = set()
        for record in INSTRUCTIONS.values():
            # What lies inside the window with one image, or scales, may not with others; sums of
            # floats depend on their order (see simulator/checks/test_atomic_adds.py).
            if record.name in (*SYNC, *SET_ATOMIC, IMAGE, SCALES, TABLE):
                continue
            if record.timing == "cross_core_flag":
                continue
            types = description.intrinsics.get(record.name, [])
            if record.type not in types and record.name != "scalar_access":
                continue
            # What gathers read depends on what was computed before.
            if record.finds is not finds_nothing:
                continue
            if any(operand.space not in self.memories for operand in record.operands):
                continue
            # Of the vector pipe there are many records, all of which fit well.
            for _ in range(tries // 8 if record.pipe == Pipe.V and record.operands else tries):
                self._try(record)

    def _va(self, va: int, half: int) -> Row:
        record = INSTRUCTIONS["set_va_reg"]
        blocks = self.rng.permutation(VA_BLOCKS)[:4].tolist()
        values = {f"address{i}": block for i, block in enumerate(blocks)}
        return self.row(record, {"va": va, "half": half, **values})

    @staticmethod
    def row(record: Any, values: dict[str, int]) -> Row:
        return encode_record(record, values)

    def _try(self, record: Any) -> None:
        values = {o.name: self._address(o) for o in record.operands}
        for f in record.fields:
            low, high = self._small.get(f.name, (f.minimum, f.limit))
            values[f.name] = int(self.rng.integers(low, high, endpoint=True, dtype=np.uint64))
        if "n_size" in values:
            values["n_size"] *= 16
        if record.name == "set_vector_mask":
            values["low"] &= int(self.rng.integers(0, 1 << 64, dtype=np.uint64))
        if record.name == "scalar_access":
            values |= self._scalar()
        if record.illegal(values):
            return
        row = self.row(record, values)
        step = decode(np.array([*self.prefix, row], dtype=np.uint64))[-1]
        if not inside(step) or self.simulate([[row]]):
            return
        self.rows[step.pipe].append(row)
        self.names.add(record.mnemonic)

    def _address(self, operand: Any) -> int:
        space = operand.space
        align = operand.align_bytes
        if not align:
            align = 32 if space == Space.GM else self.device.machine.buffer(space.name).align_bytes
        size = self._gm_bytes if space == Space.GM else WINDOW_BYTES[space]
        return self.memories[space].origin + align * int(self.rng.integers(size // align))

    def _scalar(self) -> dict[str, int]:
        space = Space.UB if self.rng.integers(2) and Space.UB in self.memories else Space.GM
        values = {"space": int(space)}
        for kind in ("load", "store"):
            low = self.memories[space].origin + 4 * int(self.rng.integers(0, 400))
            count = int(self.rng.integers(0, 3))
            values |= {f"{kind}s": count, f"{kind}_low": low, f"{kind}_high": low + 4 * count}
        return values

    def steps(self, rows: Sequence[Row], core: int = 0) -> list[Step]:
        """The steps of a program, its prefix before it."""
        return decode(np.array([*self.prefix, *rows], dtype=np.uint64), core)

    def simulate(self, programs: Sequence[Sequence[Row]]) -> str:
        """Runs each program as a block; returns the fault, or "". See `memory` for the bytes."""
        self.device.write(GM_ORIGIN, self.memories[Space.GM].data[: WINDOW_BYTES[Space.GM]])

        def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
            self._core = core
            self.run_on(core, programs[block])

        try:
            self.device.launch("random", {self._kind: program}, [], len(programs))
        except DeviceFault as fault:
            return str(fault)
        return ""

    def run_on(self, core: Any, rows: Sequence[Row]) -> None:
        """Fills the memories of a core and runs a program on it."""
        for space, window in self.memories.items():
            if space != Space.GM:
                size = WINDOW_BYTES[space]
                core.memory(space).data[:size] = window.data[:size]
                core.memory(space).written[:size] = True
        core.consume(np.array([*self.prefix, *rows], dtype=np.uint64).reshape(-1, RECORD_WORDS))

    def memory(self, space: Space) -> npt.NDArray[np.uint8]:
        """The bytes of a memory after `simulate`, of the last block."""
        start, size = self.memories[space].origin, WINDOW_BYTES[space]
        data: npt.NDArray[np.uint8] = self._core.memory(space).data[start : start + size]
        return data


def inside(step: Step) -> bool:
    """Whether everything that a step touches lies in the windows."""
    return all(
        f.ends[-1] <= WINDOW_BYTES[f.space] + (GM_ORIGIN if f.space == Space.GM else 0)
        for f in (*step.reads, *step.writes)
    )


class Writer:
    """Writes one random program."""

    def __init__(self, pool: Pool, rng: np.random.Generator, length: int, scalar: bool) -> None:
        self._pool, self._rng = pool, rng
        self.rows: list[Row] = []
        self._pipes = [p for p in pool.rows if p != Pipe.S or scalar]
        care = CARE[rng.integers(len(CARE))]
        for _ in range(length):
            self._instruction(care)
            if rng.random() < 0.12:
                self._junk()
        while rng.random() < 0.35:
            self._damage()

    def _instruction(self, care: float) -> None:
        rows = self._pool.rows[self._pipes[self._rng.integers(len(self._pipes))]]
        self.rows.append(rows[self._rng.integers(len(rows))])
        for _ in range(20):
            pairs = [pair for pair in self._verdict().unordered if pair[1] == self._last]
            if not pairs or self._rng.random() > care:
                return
            self._order(*pairs[self._rng.integers(len(pairs))])

    @property
    def _last(self) -> int:
        return len(self._pool.prefix) + len(self.rows) - 1

    def _verdict(self) -> Any:
        steps = self._pool.steps(self.rows)
        self._steps = steps
        return Order(steps, self._pool.sequential).verdict(Conflicts(steps))

    def _order(self, i: int, j: int) -> None:
        """Puts a flag or barrier between step i and the last one, j."""
        start, rng = len(self._pool.prefix), self._rng
        first, second = self._steps[i].pipe, self._steps[j].pipe
        before = len(self.rows) - 1
        if first == second or rng.random() < 0.05:
            pipe = second if first == second and rng.random() < 0.8 else Pipe.ALL
            self.rows.insert(before, self._sync("pipe_barrier", pipe=pipe))
            return
        place = int(rng.integers(i + 1 - start, before, endpoint=True))
        for event in rng.permutation(self._pool.events).tolist():
            flag = {"src_pipe": first, "dst_pipe": second, "event": event}
            old = self.rows.copy()
            self.rows.insert(before, self._sync("wait_flag", **flag))
            self.rows.insert(place, self._sync("set_flag", **flag))
            verdict = self._verdict()
            if not (verdict.reused or verdict.stuck or verdict.unmatched):
                return
            self.rows = old
        self.rows.insert(before, self._sync("pipe_barrier", pipe=Pipe.ALL))

    def _sync(self, name: str, **values: int) -> Row:
        return self._pool.row(INSTRUCTIONS[name], {k: int(v) for k, v in values.items()})

    def _junk(self) -> None:
        first, second = (self._pipes[i] for i in self._rng.permutation(len(self._pipes))[:2])
        if self._rng.random() < 0.3 and first != Pipe.S:
            self.rows.append(self._sync("pipe_barrier", pipe=first))
            return
        event = int(self._rng.integers(self._pool.events))
        flag = {"src_pipe": first, "dst_pipe": second, "event": event}
        at = int(self._rng.integers(len(self.rows) + 1))
        self.rows.append(self._sync("wait_flag", **flag))
        self.rows.insert(at, self._sync("set_flag", **flag))
        if self._rng.random() < 0.8 and not self._is_fine():
            self.rows.pop()
            self.rows.pop(at)

    def _is_fine(self) -> bool:
        verdict = self._verdict()
        return not (verdict.reused or verdict.stuck or verdict.unmatched)

    def _damage(self) -> None:
        """Removes a flag, half a flag or a barrier, or moves one."""
        opcodes = {INSTRUCTIONS[name].opcode for name in SYNC}
        places = [i for i, row in enumerate(self.rows) if opcode_of(row) in opcodes]
        if not places:
            return
        i = places[self._rng.integers(len(places))]
        row = self.rows.pop(i)
        damage = pick(self._rng, DAMAGES)
        if damage == "move":
            self.rows.insert(int(self._rng.integers(len(self.rows) + 1)), row)
        elif opcode_of(row) == INSTRUCTIONS["pipe_barrier"].opcode:
            # It has no other half and no event id: it is just gone.
            return
        elif damage == "remove the flag":
            other = [k for k in places if k != i and self.rows[k - (k > i)][1] == row[1]]
            if other:
                k = min(other, key=lambda k: abs(k - i))
                self.rows.pop(k - (k > i))
        elif damage == "rename the flag":
            self.rows.insert(i, row)
            self._rename(row[1])

    def _rename(self, flag: int) -> None:
        """Gives a flag another event id everywhere, so that it is set again sooner."""
        event = int(self._rng.integers(self._pool.events)) << EVENT_BIT
        renamed = flag & (1 << EVENT_BIT) - 1 | event
        opcodes = [INSTRUCTIONS[name].opcode for name in FLAGS]
        for k, (head, word, *rest) in enumerate(self.rows):
            if head in opcodes and word == flag:
                self.rows[k] = [head, renamed, *rest]
