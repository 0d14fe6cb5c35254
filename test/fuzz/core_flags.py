"""Kernels whose cube and vector cores have flags for each other, as plain data that can be changed.

    kernel -> programs of cube and vector cores -> what stands before a loop, in it, and behind it

Cores store rows of a buffer, load them, send on what they have loaded, and set and wait for flags.
`check-meetings` judges a kernel by its operations, the simulator as it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.errors import DeviceFault
from davinci.mlir import ir, make_context, operations, symbols
from davinci.passes.cce.check_meetings import checked_launches
from davinci.passes.pipeline import runner
from davinci.runtime.jit import KernelLibrary
from davinci.simulator.core.device import Device

MACHINE = "ascend910b"
TO_LLVM = f"cce-to-hivm{{machine={MACHINE}}},hivm-to-llvm{{machine={MACHINE}}}"
BARRIER = 15
"""A wait for this flag stands for a barrier until `insert-sync` has run, which leaves kernels with
barriers as they are."""

ROWS, ROW_BYTES = 128, 512
VECTOR_CORES = 2
KINDS = ("AIC", "AIV")
STORES = {"AIC": "FIX", "AIV": "MTE3"}
OTHER_PIPES = {"AIC": ("MTE1", "MTE2", "FIX"), "AIV": ("V", "MTE2", "MTE3")}
"""Pipes on which flags are set, by kind of core."""


class Row(NamedTuple):
    """Which row: first + block * ((number + shift) % blocks) + sub * number of the vector core
    + wide * (turn % slots); a program outside of the loop is in turn 0."""

    first: int
    block: int = 0
    shift: int = 0
    sub: int = 0
    wide: int = 0
    slots: int = 1


class Step(NamedTuple):
    """What a core does: store, load and send (row), set (pipe, flag, of all), wait (flag), barrier
    ()."""

    name: str
    args: tuple[object, ...]


Part = tuple[Step, ...]


@dataclass(frozen=True)
class Kernel:
    """Programs by kind of core: what they do before, in and behind a loop of so many turns."""

    blocks: int
    turns: int
    programs: tuple[tuple[str, tuple[Part, Part, Part]], ...]

    @property
    def cores(self) -> int:
        """Cores that run it."""
        return self.blocks * sum(VECTOR_CORES if kind == "AIV" else 1 for kind, _ in self.programs)

    def text(self, name: str) -> str:
        """The functions of the kernel."""
        return "".join(self._program(kind, parts, name) for kind, parts in self.programs)

    def names(self, name: str) -> dict[str, str]:
        """Names of the functions, by kind of core."""
        return {kind: f"{name}_{kind.lower()}" for kind, _ in self.programs}

    def _program(self, kind: str, parts: tuple[Part, Part, Part], name: str) -> str:
        cube = kind == "AIC"
        writer = _Writer(cube, self.blocks)
        before, inside, behind = (writer.lines(part, turn) for part, turn in zip(
            parts, ("%c0", "%turn", "%c0"), strict=True
        ))  # fmt: skip
        marks = f'ascend.core = "{kind.lower()}", ascend.unit = "{"cube" if cube else "vector"}"'
        return f"""
    func.func @{name}_{kind.lower()}(%x: {MANY})
        attributes {{ascend.kernel, ascend.blocks = {self.blocks} : i64, {marks}}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %turns = arith.constant {self.turns} : index
      %blocks = arith.constant {self.blocks} : index
      %block = "cce.get_block_idx"() : () -> index
      {CUBE_BEGIN if cube else VECTOR_BEGIN}
      {before}
      scf.for %turn = %c0 to %turns step %c1 {{
        {inside}
      }}
      {behind}
      return
    }}"""


def _space(name: str) -> str:
    return f'#cce.space<"{name}">'


MANY = f"memref<{ROWS}x16x16xf16>"
ROW = "memref<1x16x16xf16, strided<[256, 16, 1], offset: ?>>"
FLAT = "memref<256xf16, strided<[1], offset: ?>>"
ON_UB = f"memref<256xf16, {_space('UB')}>"
L0A, L0B = (f"memref<1x1x16x16xf16, {_space(name)}>" for name in ("L0A", "L0B"))
IN_L1 = f"memref<1x256xf16, {_space('L1')}>"
L1 = f"memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, {_space('L1')}>"
CAST = "memref.reinterpret_cast"
FORM = "offset: [0], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1]"
L0C = f"memref<1x1x16x16xf32, {_space('L0C')}>"

VECTOR_BEGIN = f"""
      %own = "cce.get_sub_block_idx"() : () -> index
      %one = arith.constant 1.0 : f16
      %made = memref.alloc() {{cce.address = 0 : i64}} : {ON_UB}
      %seen = memref.alloc() {{cce.address = 512 : i64}} : {ON_UB}
      "cce.vector_dup"(%one, %made) : (f16, {ON_UB}) -> ()
      "cce.vector_dup"(%one, %seen) : (f16, {ON_UB}) -> ()"""

CUBE_BEGIN = f"""
      %own = arith.constant 0 : index
      %true = arith.constant true
      %first = memref.alloc() {{cce.address = 0 : i64}} : {IN_L1}
      %second = memref.alloc() {{cce.address = 512 : i64}} : {IN_L1}
      %seen = {CAST} %first to {FORM} : {IN_L1} to {L1}
      %none = {CAST} %second to {FORM} : {IN_L1} to {L1}
      %a = memref.alloc() {{cce.address = 0 : i64}} : {L0A}
      %b = memref.alloc() {{cce.address = 0 : i64}} : {L0B}
      %made = memref.alloc() {{cce.address = 0 : i64}} : {L0C}
      %sent = memref.alloc() {{cce.address = 1024 : i64}} : {L0C}
      "cce.clear_l1"(%first) : ({IN_L1}) -> ()
      "cce.clear_l1"(%second) : ({IN_L1}) -> ()
      "cce.load2d"(%none, %a) : ({L1}, {L0A}) -> ()
      "cce.load2d"(%none, %b) : ({L1}, {L0B}) -> ()
      "cce.mad"(%a, %b, %made, %true) : ({L0A}, {L0B}, {L0C}, i1) -> ()"""


class _Writer:
    """Writes the steps of a program."""

    def __init__(self, cube: bool, blocks: int) -> None:
        self._cube, self._blocks, self._count = cube, blocks, 0

    def lines(self, part: Part, turn: str) -> str:
        return "\n      ".join(line for step in part for line in self._step(step, turn))

    def _new(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _step(self, step: Step, turn: str) -> Iterator[str]:
        if step.name == "barrier":
            yield f'"cce.wait_core_flag"() {{flag = {BARRIER} : i64}} : () -> ()'
        elif step.name == "set":
            pipe, flag, of_all = step.args
            more = ", of_all" if of_all else ""
            yield f'"cce.set_core_flag"() {{flag = {flag} : i64, pipe = "{pipe}"{more}}} : () -> ()'
        elif step.name == "wait":
            yield f'"cce.wait_core_flag"() {{flag = {step.args[0]} : i64}} : () -> ()'
        else:
            (row,) = step.args
            assert isinstance(row, Row)
            lines, place = self._row(row, turn)
            yield from lines
            yield from self._moved(step.name, place)

    def _row(self, row: Row, turn: str) -> tuple[list[str], str]:
        """Lines that find a row, and its view."""
        lines: list[str] = []

        def number(value: int) -> str:
            name = self._new()
            lines.append(f"{name} = arith.constant {value} : index")
            return name

        def op(kind: str, one: str, other: str) -> str:
            name = self._new()
            lines.append(f"{name} = arith.{kind} {one}, {other} : index")
            return name

        moved = op("remui", op("addi", "%block", number(row.shift)), "%blocks")
        slot = op("remui", turn, number(row.slots))
        place = number(row.first)
        for value, factor in ((moved, row.block), ("%own", row.sub), (slot, row.wide)):
            if factor:
                place = op("addi", place, op("muli", value, number(factor)))
        view = self._new()
        lines.append(
            f"{view} = memref.subview %x[{place}, 0, 0] [1, 16, 16] [1, 1, 1] : {MANY} to {ROW}"
        )
        return lines, view

    def _moved(self, name: str, row: str) -> Iterator[str]:
        if self._cube:
            if name == "load":
                whole = self._new()
                wide = "memref<1x1x16x16xf16, strided<[256, 256, 16, 1], offset: ?>>"
                yield (
                    f"{whole} = memref.expand_shape {row} [[0, 1], [2], [3]] "
                    f"output_shape [1, 1, 16, 16] : {ROW} into {wide}"
                )
                yield f'"cce.copy"({whole}, %seen) : ({wide}, {L1}) -> ()'
                return
            if name == "send":
                yield f'"cce.load2d"(%seen, %a) : ({L1}, {L0A}) -> ()'
                yield f'"cce.mad"(%a, %b, %sent, %true) : ({L0A}, {L0B}, {L0C}, i1) -> ()'
            source = "%sent" if name == "send" else "%made"
            yield f'"cce.fixpipe"({source}, {row}) : ({L0C}, {ROW}) -> ()'
            return
        flat = self._new()
        yield f"{flat} = memref.collapse_shape {row} [[0, 1, 2]] : {ROW} into {FLAT}"
        if name == "load":
            yield f'"cce.copy"({flat}, %seen) : ({FLAT}, {ON_UB}) -> ()'
        else:
            source = "%seen" if name == "send" else "%made"
            yield f'"cce.copy"({source}, {flat}) : ({ON_UB}, {FLAT}) -> ()'


def step(name: str, *args: object) -> Step:
    """A step with what it is about."""
    return Step(name, args)


def random_kernel(rng: np.random.Generator) -> Kernel:
    """A kernel without faults: a ring, weights that go back and forth, phases between which all
    meet, or vector cores that meet."""
    made = (ring, exchange, phases, vector_cores_meet)
    return made[rng.choice(4, p=[0.4, 0.25, 0.2, 0.15])](rng)


def ring(rng: np.random.Generator) -> Kernel:
    """Cube cores leave rows in the slots of a ring, vector cores take them; or the other way."""
    blocks, slots = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    turns, source = int(rng.integers(1, 6)), KINDS[rng.integers(2)]
    target = KINDS[1 - KINDS.index(source)]
    places = slots * VECTOR_CORES
    sub = slots if source == "AIV" else 0
    slot = Row(0, places, 0, sub, 1, slots)
    seen = slot._replace(first=sub * int(rng.integers(2)), sub=0)
    taken = step("set", "MTE2", 2, False)
    out = Row(32, 2 * turns, 0, turns, 1, turns)
    sends = (step("send", out),) if rng.integers(2) else ()
    primed = bool(rng.integers(2))
    makes = (step("wait", 2), step("store", slot), step("set", STORES[source], 1, False))
    takes = (step("wait", 1), step("load", seen), taken, *sends)
    ends = (step("wait", 2),) * slots
    if not primed:  # One behind the other.
        makes, takes, ends = (*makes[1:], makes[0]), (*takes[:2], *sends, taken), ()
    programs = {
        source: ((), makes, ends),
        target: ((taken,) * (slots if primed else 0), takes, ()),
    }
    return _kernel(blocks, turns, programs)


def exchange(rng: np.random.Generator) -> Kernel:
    """Scores go to vector cores, weights come back: that they are there says that scores have been
    loaded."""
    blocks, turns = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    scores = Row(0, 1)
    weights = Row(8, 2, 0, 1)
    slots = int(rng.integers(1, 3))
    if slots > 1:
        scores = Row(0, 2, 0, 0, 1, 2)
    cube = (
        step("store", scores),
        step("set", "FIX", 1, False),
        step("wait", 2),
        step("load", weights._replace(sub=0, first=8 + int(rng.integers(2)))),
        *((step("send", Row(64, turns, 0, 0, 1, turns)),) if rng.integers(2) else ()),
        step("set", "MTE2", 3, False),
    )
    vector = (
        step("wait", 1),
        step("load", scores),
        step("wait", 3),
        step("send", weights),
        step("set", "MTE3", 2, False),
    )
    first = (step("set", "MTE2", 3, False),)
    return _kernel(
        blocks, turns, {"AIC": (first, cube, ()), "AIV": ((), vector, (step("wait", 3),))}
    )


def phases(rng: np.random.Generator) -> Kernel:
    """All store rows, all meet, all load rows of others; then they may meet and store again."""
    blocks, turns = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    parts: dict[str, list[Step]] = {kind: [] for kind in KINDS}
    of = {"AIC": Row(0, 1), "AIV": Row(16, 2, 0, 1)}
    for phase in range(int(rng.integers(1, 4))):
        for kind in KINDS:
            row = of[kind]._replace(first=of[kind].first + 64 * (phase % 2))
            parts[kind].append(step("store", row))
            parts[kind] += MEETING[kind]
            other = of[KINDS[rng.integers(2)]]
            other = other._replace(first=other.first + 64 * (phase % 2), shift=int(rng.integers(3)))
            parts[kind].append(step("load", other._replace(sub=other.sub if kind == "AIV" else 0)))
    scratch = {
        "AIC": Row(32, turns, 0, 0, 1, turns),
        "AIV": Row(96, 2 * turns, 0, turns, 1, turns),
    }
    quiet = {kind: (step("store", scratch[kind]),) for kind in KINDS}
    return _kernel(blocks, turns, {k: (tuple(parts[k]), quiet[k], ()) for k in KINDS})


MEETING = {
    "AIC": [
        step("barrier"),
        step("wait", 0),
        step("set", "FIX", 4, True),
        step("wait", 4),
        step("set", "FIX", 5, False),
    ],
    "AIV": [step("barrier"), step("set", "MTE3", 0, False), step("wait", 5)],
}
"""All cores meet, as `davinci.passes.cce.meeting_kernels` has it."""


def vector_cores_meet(rng: np.random.Generator) -> Kernel:
    """Vector cores store rows, meet, and load those of others, in turn."""
    blocks, turns, slots = (int(rng.integers(low, 5)) for low in (2, 1, 2))
    row = Row(0, 1, 0, 0, blocks, slots)
    meet = (step("set", "MTE3", 1, True), step("wait", 1))
    again = (step("set", "MTE2", 2, True), step("wait", 2)) if slots < min(3, turns) else ()
    body = (step("store", row), *meet, step("load", row._replace(shift=int(rng.integers(3)))))
    return _kernel(blocks, turns, {"AIV": ((), (*body, *again), ())})


def _kernel(blocks: int, turns: int, programs: dict[str, tuple[Part, Part, Part]]) -> Kernel:
    return Kernel(blocks, turns, tuple(programs.items()))


def mutants(kernel: Kernel, rng: np.random.Generator) -> Iterator[tuple[str, Kernel]]:
    """A kernel with each thing changed in turn, and the kind of the change; places to which
    something moves are random."""
    yield "count", replace(kernel, turns=kernel.turns + 1)
    yield "count", replace(kernel, blocks=kernel.blocks + 1)
    for number, (kind, parts) in enumerate(kernel.programs):

        def put(place: int, part: Sequence[Step], number: int = number) -> Kernel:
            programs = list(kernel.programs)
            kind, (before, inside, behind) = programs[number]
            new = tuple(part)
            programs[number] = (
                kind,
                [(new, inside, behind), (before, new, behind), (before, inside, new)][place],
            )
            return replace(kernel, programs=tuple(programs))

        for place, part in enumerate(parts):
            for i, own in enumerate(part):
                before, after = part[:i], part[i + 1 :]
                for change, args in changes(kind, own, rng):
                    yield change, put(place, (*before, Step(own.name, args), *after))
                flags = own.name in ("set", "wait", "barrier")
                yield "flag" if flags else "order", put(place, (*before, *after))
                yield "flag" if flags else "order", put(place, (*before, own, own, *after))
                others = [*before, *after]
                others.insert(int(rng.integers(len(others) + 1)), own)
                yield "order", put(place, others)


def changes(
    kind: str, own: Step, rng: np.random.Generator
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yields each change of a step: its kind, and what the step is about then."""
    if own.name == "set":
        pipe, flag, of_all = own.args
        yield "number", (pipe, int(rng.integers(6)), of_all)
        yield "core set", (pipe, flag, not of_all)
        yield from (("flag", (p, flag, of_all)) for p in OTHER_PIPES[kind] if p != pipe)
    elif own.name == "wait":
        yield "number", (int(rng.integers(6)),)
    elif own.name != "barrier":
        (row,) = own.args
        assert isinstance(row, Row)
        yield "placement", (row._replace(first=int(rng.integers(12))),)
        yield "placement", (row._replace(shift=row.shift + 1),)
        yield "placement", (row._replace(sub=1 - min(row.sub, 1)),)
        yield "placement", (row._replace(slots=row.slots + 1, wide=max(row.wide, 1)),)
        if row.slots > 1:
            yield "placement", (row._replace(slots=row.slots - 1),)


class Judged(NamedTuple):
    """What is said of a kernel: by `check-meetings` what is wrong and what is not proven, and what
    the simulator finds; "" for nothing."""

    said: str
    open: str
    found: str


def judge(kernels: Sequence[Kernel]) -> Iterator[Judged]:
    """Judges kernels, which become one module."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(module_text(kernels))
        inner = dict(symbols(module.operation))["kernels"]
        runner.run(inner, f"builtin.module(insert-sync{{machine={MACHINE}}})")
        for wait in operations(inner, "cce.wait_core_flag"):
            if attribute(wait, "flag") == BARRIER:
                with ir.InsertionPoint(wait):
                    cce.pipe_barrier(pipe="ALL")
                wait.erase()
        main = dict(symbols(module.operation))["main"]
        machine = machines.load(MACHINE)
        launches = list(checked_launches(module.operation, main, machine))
        runner.run(inner, f"builtin.module({TO_LLVM})")
        library = KernelLibrary(inner)
        for number, (kernel, launch) in enumerate(zip(kernels, launches, strict=True)):
            verdict = launch.verdict
            said, left = (next(iter(each), "") for each in (verdict.faults, verdict.open))
            yield Judged(said, left, fault(library, f"k{number}", kernel))


def module_text(kernels: Sequence[Kernel]) -> str:
    """A module that launches each kernel once."""
    calls = declared = text = ""
    for number, kernel in enumerate(kernels):
        name = f"k{number}"
        blocks = f"{{ascend.blocks = {kernel.blocks} : i64}}"
        calls += f"\n    call @{name}(%x) {blocks} : ({MANY}) -> ()"
        parts = ", ".join(f"@kernels::@{each}" for each in kernel.names(name).values())
        declared += (
            f"\n  func.func private @{name}({MANY}) attributes {{ascend.launch = [{parts}]}}"
        )
        text += kernel.text(name)
    main = f"func.func @main(%x: {MANY}) attributes {{ascend.entry}}"
    return (
        f"module {{\n  {main} {{{calls}\n    return\n  }}{declared}\n"
        f"  module @kernels {{{text}\n  }}\n}}"
    )


def fault(library: KernelLibrary, name: str, kernel: Kernel) -> str:
    """Runs a kernel on a new device; what the simulator finds, or ""."""
    device = Device(machines.load(MACHINE), 1 << 17)
    x = device.allocate(ROWS * ROW_BYTES)
    device.write(x, np.zeros(ROWS * ROW_BYTES, np.uint8))
    programs = {kind: library.programs[own] for kind, own in kernel.names(name).items()}
    try:
        device.launch(name, programs, [x], kernel.blocks, library.locations)
    except DeviceFault as error:
        return str(error.message)
    return ""
