"""What `check-meetings` says of kernels whose blocks meet, against what the simulator says of them.

Each mutant of a kernel differs in one thing: where a block stores or loads, at which meetings it
comes and with which number, whom it waits for. The pass reads its operations, the simulator runs
it; what one calls wrong the other must.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import frontends, zoo
from davinci import machine as machines
from davinci.compiler import lower
from davinci.errors import DeviceFault
from davinci.mlir import ir, make_context, operations, symbols
from davinci.passes.cce.check_meetings import CheckedLaunch, checked_launches
from davinci.passes.pipeline import runner
from davinci.passes.pipeline.pipelines import STAGES, Options
from davinci.runtime.jit import KernelLibrary
from davinci.simulator.core.device import Device
from kernel_support import TO_LLVM

ROWS = 64
ROW_BYTES = 128


@dataclass(frozen=True)
class Ring:
    """A kernel in which blocks write rows of x, meet, and read those of others.

    In turn i block b writes row (b + first) + wide (i % slots), and reads that of block
    (b + shift) % blocks. Numbers of meetings are what the first one is and `more` in each.

    Attributes:
        before, after: whether blocks meet between the two, and behind them.
        absent: a block that does not come to the meeting between them.
        late: by how much the number of a block is higher than that of the one before.
        seen: first line and number of lines that blocks wait for.
        own: by how many lines a block counts behind its own.
        only: the only block that writes; -1 for all.
    """

    blocks: int = 3
    turns: int = 3
    slots: int = 3
    wide: int = 3
    first: int = 0
    shift: int = 1
    before: bool = True
    after: bool = False
    absent: int = -1
    more: int = 1
    offset: int = 1
    late: int = 0
    seen: tuple[int, int] = (0, 3)
    own: int = 0
    only: int = -1

    @property
    def lines(self) -> int:
        """Lines of counters, one to spare."""
        return self.blocks + 1

    def text(self, name: str) -> str:
        """The kernel; x has ROWS rows, y one for each block."""
        lines, scratch = f"memref<{self.lines}x8xi32>", f"memref<{self.seen[1] + 1}x8xi32, {UB}>"
        marks = f"{{own = {self.own} : i64, seen = array<i64: {self.seen[0]}, {self.seen[1]}>}}"
        types = f"({lines}, i32, {scratch}) -> ()"
        each = self.before + self.after

        def meet(place: int) -> str:
            return f"""
        %more{place} = arith.constant {self.offset + place * self.more} : i32
        %number{place} = arith.addi %counted, %more{place} : i32
        "cce.sync_cores"(%lines, %number{place}, %scratch) {marks} : {types}"""

        comes = f"arith.cmpi ne, %block, %absent : index\n scf.if %comes {{{meet(0)}\n }}"
        before = (f"%comes = {comes}" if self.absent >= 0 else meet(0)) if self.before else ""
        writes = f"{'ne' if self.only < 0 else 'eq'}, %block, %only"
        constants = {
            "c0": 0,
            "c1": 1,
            "turns": self.turns,
            "slots": self.slots,
            "wide": self.wide,
            "first": self.first,
            "shift": self.shift,
            "absent": self.absent,
            "blocks": self.blocks,
            "late": self.late,
            "only": self.only,
            "each": each * self.more,
        }
        known = "\n".join(
            f"      %{key} = arith.constant {value} : index" for key, value in constants.items()
        )
        return f"""
    func.func @{name}(%x: {MANY}, %y: {MANY}, %lines: {lines})
        attributes {{ascend.kernel, ascend.blocks = {self.blocks} : i64}} {{
{known}
      %block = "cce.get_block_idx"() : () -> index
      %tile = memref.alloc() {{cce.address = 0 : i64}} : {TILE}
      %seen = memref.alloc() {{cce.address = 128 : i64}} : {TILE}
      %scratch = memref.alloc() {{cce.address = 256 : i64}} : {scratch}
      %base = "cce.read_counter"(%lines, %scratch) {marks} : ({lines}, {scratch}) -> i32
      %value = arith.constant 1.0 : f32
      "cce.vector_dup"(%value, %tile) : (f32, {TILE}) -> ()
      %next = arith.addi %block, %shift : index
      %other = arith.remui %next, %blocks : index
      %higher = arith.muli %block, %late : index
      %own = arith.addi %block, %first : index
      %last = memref.subview %y[%block, 0] [1, 32] [1, 1] : {MANY} to {ROW}
      scf.for %i = %c0 to %turns step %c1 {{
        %turn = arith.muli %i, %each : index
        %sum = arith.addi %turn, %higher : index
        %count = arith.index_cast %sum : index to i32
        %counted = arith.addi %base, %count : i32
        %slot = arith.remui %i, %slots : index
        %begin = arith.muli %slot, %wide : index
        %mine = arith.addi %begin, %own : index
        %theirs = arith.addi %begin, %other : index
        %to = memref.subview %x[%mine, 0] [1, 32] [1, 1] : {MANY} to {ROW}
        %from = memref.subview %x[%theirs, 0] [1, 32] [1, 1] : {MANY} to {ROW}
        %writes = arith.cmpi {writes} : index
        scf.if %writes {{
          "cce.copy"(%tile, %to) : ({TILE}, {ROW}) -> ()
        }}
        {before}
        "cce.copy"(%from, %seen) : ({ROW}, {TILE}) -> ()
        {meet(1 if self.before else 0) if self.after else ""}
      }}
      "cce.copy"(%seen, %last) : ({TILE}, {ROW}) -> ()
      return
    }}"""


UB = '#cce.space<"UB">'
TILE = f"memref<32xf32, {UB}>"
MANY = f"memref<{ROWS}x32xf32>"
ROW = "memref<32xf32, strided<[1], offset: ?>>"


def bases() -> Iterator[Ring]:
    """Kernels without faults: a slot for each turn, two in turn, one with two meetings a turn, and
    one block that the others wait for."""
    yield Ring()
    yield Ring(slots=2, turns=4)
    yield Ring(slots=1, after=True)
    yield Ring(blocks=4, wide=4, seen=(0, 4), turns=2)
    yield Ring(only=1, seen=(1, 1), shift=0, first=0)


def mutants(ring: Ring) -> Iterator[Ring]:
    """A kernel, and all that differ in one thing."""
    yield ring
    yield from (replace(ring, wide=wide) for wide in (0, 1, 2, 5))
    yield from (replace(ring, slots=slots) for slots in (1, 2, 4))
    yield from (replace(ring, first=first) for first in (1, 3))
    yield from (replace(ring, shift=shift) for shift in (0, 2))
    yield replace(ring, before=False)
    yield replace(ring, after=not ring.after)
    yield from (replace(ring, absent=block) for block in (0, ring.blocks - 1))
    yield from (replace(ring, more=more) for more in (0, 2))
    yield replace(ring, offset=3)
    yield replace(ring, late=1)
    yield from (replace(ring, seen=seen) for seen in ((0, 1), (1, 2), (1, 3)))
    yield replace(ring, own=1)


def test_mutants() -> None:
    rings = list(dict.fromkeys(mutant for ring in bases() for mutant in mutants(ring)))
    text = module_text(rings)
    found = Counter[tuple[bool, bool]]()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        main = dict(symbols(module.operation))["main"]
        machine = machines.load("ascend910")
        launches = list(checked_launches(module.operation, main, machine))
        verdicts = [launch.verdict for launch in launches]
        assert not any(verdict.open for verdict in verdicts)
        kernels = dict(symbols(module.operation))["kernels"]
        runner.run(kernels, f"builtin.module(insert-sync,{TO_LLVM.format(machine='ascend910')})")
        library = KernelLibrary(kernels)
        wrong = []
        for number, (ring, verdict) in enumerate(zip(rings, verdicts, strict=True)):
            fault = fault_of(library, f"k{number}", ring)
            found[bool(verdict.faults), bool(fault)] += 1
            if bool(verdict.faults) != bool(fault):
                wrong.append(f"{ring}: {verdict.faults}, the simulator {fault!r}")
    assert not wrong, "\n".join(wrong)
    assert found[True, True] >= 40
    assert found[False, False] >= 20


def module_text(rings: list[Ring]) -> str:
    """A module that launches a kernel for each of some rings."""
    declared, calls, kernels = "", "", ""
    for number, ring in enumerate(rings):
        lines, name = f"memref<{ring.lines}x8xi32>", f"k{number}"
        types = f"({MANY}, {MANY}, {lines})"
        declared += f"\n  func.func private @{name}{types}"
        declared += f" attributes {{ascend.launch = @kernels::@{name}}}"
        declared += f'\n  memref.global "private" @lines{number} : {lines} = dense<0>'
        calls += f"\n    %l{number} = memref.get_global @lines{number} : {lines}"
        calls += f"\n    call @{name}(%x, %y, %l{number}) {{ascend.blocks = {ring.blocks} : i64}}"
        calls += f" : {types} -> ()"
        kernels += ring.text(name)
    main = f"func.func @main(%x: {MANY}, %y: {MANY}) attributes {{ascend.entry}}"
    return (
        f"module {{\n  {main} {{{calls}\n    return\n  }}{declared}\n"
        f"  module @kernels {{{kernels}\n  }}\n}}"
    )


def fault_of(library: KernelLibrary, name: str, ring: Ring) -> str:
    """Runs a kernel on a new device; what the simulator finds, or ""."""
    device = Device(machines.load("ascend910"), 1 << 16)
    x, y, lines = (device.allocate(size) for size in (ROWS * ROW_BYTES, ROWS * ROW_BYTES, 256))
    for place, size in ((x, ROWS * ROW_BYTES), (lines, 256)):
        device.write(place, np.zeros(size, np.uint8))
    program = library.programs[name]
    try:
        device.launch(
            name, program, [x, y, lines], ring.blocks, library.locations, talks=program.talks
        )
    except DeviceFault as error:
        return str(error.message)
    return ""


def launches_of(model: str, **options: Any) -> list[CheckedLaunch]:
    """What is found of the launches of a network."""
    context = make_context()
    module = frontends.load(zoo.build(model), context, None, False, [])
    lower(module, Options(launches="joined", **options), stages=STAGES[:3])
    main = dict(symbols(module.operation))["main"]
    return list(checked_launches(module.operation, main, machines.load("ascend910")))


@pytest.mark.parametrize(
    ("model", "phases", "cores"),
    [("lstm,steps=3,features=16,hidden=256", 1, 8)],
)
def test_launches_of_networks_are_proven(model: str, phases: int, cores: int) -> None:
    (launch,) = launches_of(model)
    assert (launch.phases, launch.cores) == (phases, cores)
    assert launch.verdict.meetings
    assert not launch.verdict.open
    assert not launch.verdict.faults


def test_phases_without_a_meeting_race() -> None:
    """A kernel that is called as a meeting but has none, which the simulator, whose phases run one
    after the other, does not see."""
    context = make_context()
    module = frontends.load(zoo.build("mlp"), context, None, False, [])
    lower(module, Options(launches="joined"), stages=STAGES[:3])
    for meeting in operations(module.operation, "cce.sync_cores"):
        meeting.erase()
    main = dict(symbols(module.operation))["main"]
    (launch,) = checked_launches(module.operation, main, machines.load("ascend910"))
    assert launch.verdict.faults[0].startswith("a race: block")


def test_compile_notes_what_is_proven() -> None:
    made = davinci.compile(zoo.build("mlp"), check_launches=True, timing_only=True)
    (line,) = made.details["checked_launches"]
    assert line.startswith("launch 1 at @matmul_add_relu_f16_16x512: 3 phases, 8 cores, 2 meetings")
    assert line.endswith(": proven")
