"""Random kernels through plan-memory and insert-sync: the simulator finds no race, no flag set
twice or left set, and no deadlock."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from davinci import machine as machines
from davinci.mlir import ir, make_context
from davinci.passes.cce.insert_sync import InsertSyncPass
from davinci.passes.cce.plan_memory import PlanMemoryPass
from davinci.passes.cce_to_hivm.convert_cce_to_hivm import ConvertCceToHivmPass
from davinci.passes.hivm_to_llvm.convert_hivm_to_llvm import ConvertHivmToLlvmPass
from davinci.runtime.jit import KernelLibrary
from davinci.simulator import Device

TILE = 256
GM_SIZE = 4096
BOUNDS = [
    *(("%c0", "%c1"), ("%c0", "%c2"), ("%c0", "%c3"), ("%c2", "%c2"), ("%c0", "%blocks")),
    *(("%block", "%blocks"), ("%blocks", "%c3"), ("%block", "%block")),
]
"""Loop bounds: static and dynamic, of no, one and more iterations."""

GM = f"memref<{GM_SIZE}xf32>"


class RandomKernel:
    """Text of a kernel of copies, vector operations and scalar accesses in loops and branches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.values = 0
        self.variables: list[str] = []
        self.buffers: list[tuple[str, str]] = []

    def value(self) -> str:
        self.values += 1
        return f"%v{self.values}"

    def text(self) -> str:
        self.lines += [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 512, 1024)]
        self.lines += ["%f = arith.constant 0.5 : f32"]
        self.lines += ['%block = "cce.get_block_idx"() : () -> index']
        self.lines += ['%blocks = "cce.get_block_num"() : () -> index']
        for space in ["UB"] * self.random.randint(1, 4) + ["L1"] * self.random.randint(0, 2):
            name, kind = self.value(), f'memref<{TILE}xf32, #cce.space<"{space}">>'
            self.lines.append(f"{name} = memref.alloc() : {kind}")
            self.buffers.append((name, space))
        for name, space in self.buffers:
            self.copy(self.gm_view(), (name, self.kind(space)))
        self.statements(0, self.random.randint(1, 4))
        body = "\n".join(self.lines)
        arguments = ", ".join(f"%g{i}: {GM}" for i in range(3))
        return f"func.func @k({arguments}) attributes {{ascend.kernel}} {{\n{body}\nreturn\n}}"

    def kind(self, space: str) -> str:
        return f'memref<{TILE}xf32, #cce.space<"{space}">>'

    def statements(self, depth: int, count: int) -> None:
        for _ in range(count):
            choice = self.random.random()
            if depth < 3 and choice < 0.25:
                self.loop(depth)
            elif depth < 3 and choice < 0.32:
                self.branch(depth)
            else:
                self.operation()

    def loop(self, depth: int) -> None:
        variable = self.value()
        low, high = self.random.choice(BOUNDS)
        self.lines.append(f"scf.for {variable} = {low} to {high} step %c1 {{")
        self.variables.append(variable)
        self.statements(depth + 1, self.random.randint(1, 4))
        self.variables.pop()
        self.lines.append("}")

    def branch(self, depth: int) -> None:
        condition = self.value()
        left = self.random.choice(["%block", "%blocks", *self.variables])
        self.lines.append(f"{condition} = arith.cmpi eq, {left}, %c1 : index")
        self.lines.append(f"scf.if {condition} {{")
        self.statements(depth + 1, self.random.randint(1, 3))
        if self.random.random() < 0.5:
            self.lines.append("} else {")
            self.statements(depth + 1, self.random.randint(1, 3))
        self.lines.append("}")

    def operation(self) -> None:
        ub = [(name, self.kind(space)) for name, space in self.buffers if space == "UB"]
        l1 = [(name, self.kind(space)) for name, space in self.buffers if space == "L1"]
        pick = self.random.choice
        kind = pick(["load", "load", "store", "store", "unary", "unary", "binary", "scalar", "l1"])
        if kind == "load":
            self.copy(self.gm_view(), pick(ub + l1))
        elif kind == "store":
            self.copy(pick(ub), self.gm_view())
        elif kind == "unary":
            self.vector("vexp", [pick(ub), pick(ub)])
        elif kind == "binary":
            self.vector("vmax", [pick(ub), pick(ub), pick(ub)])
        elif kind == "scalar" and self.random.random() < 0.5:
            name, space = pick(ub)
            self.lines.append(f"memref.store %f, {name}[%c{pick([0, 1, 2, 3])}] : {space}")
        elif kind == "scalar":
            value, (name, space) = self.value(), pick(ub)
            self.lines.append(f"{value} = memref.load {name}[%c{pick([0, 1, 3])}] : {space}")
            self.lines.append(f"memref.store {value}, %g{pick([0, 1, 2])}[%c3] : {GM}")
        elif l1:
            self.copy(*pick([(pick(ub), pick(l1)), (pick(l1), pick(ub))]))

    def vector(self, name: str, operands: list[tuple[str, str]]) -> None:
        half = self.random.randint(0, 2)
        if half < 2:
            operands = [self.half_view(*operand, 128 * half) for operand in operands]
        values = ", ".join(value for value, _ in operands)
        types = ", ".join(kind for _, kind in operands)
        self.lines.append(f'"cce.{name}"({values}) : ({types}) -> ()')

    def half_view(self, value: str, kind: str, offset: int) -> tuple[str, str]:
        name = self.value()
        half = f'memref<128xf32, strided<[1], offset: {offset}>, #cce.space<"UB">>'
        self.lines.append(f"{name} = memref.subview {value}[{offset}] [128] [1] : {kind} to {half}")
        return name, half

    def gm_view(self) -> tuple[str, str]:
        """A tile of an argument, at an offset that may depend on loop variables."""
        name, argument = self.value(), f"%g{self.random.randint(0, 2)}"
        offset = self.random.choice(["%c0", "%c512", "%c1024"])
        for variable in self.variables:
            if self.random.random() < 0.6:
                scaled, total = self.value(), self.value()
                factor = self.random.choice(["%c512", "%c512", "%c1"])
                self.lines.append(f"{scaled} = arith.muli {variable}, {factor} : index")
                self.lines.append(f"{total} = arith.addi {offset}, {scaled} : index")
                offset = total
        kind = f"memref<{TILE}xf32, strided<[1], offset: ?>>"
        self.lines.append(
            f"{name} = memref.subview {argument}[{offset}] [{TILE}] [1] : {GM} to {kind}"
        )
        return name, kind

    def copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        crossing = '"UB"' in source[1] and '"L1"' in target[1]
        name = "copy_l1" if crossing else "copy"
        self.lines.append(
            f'"cce.{name}"({source[0]}, {target[0]}) : ({source[1]}, {target[1]}) -> ()'
        )


class StraightKernel(RandomKernel):
    """Many operations in a row, a loop or branch now and then, so that event ids run out."""

    def statements(self, depth: int, count: int) -> None:
        for _ in range(self.random.randint(10, 60) if depth == 0 else count):
            choice = self.random.random()
            if depth == 0 and choice < 0.03:
                self.loop(depth)
            elif depth == 0 and choice < 0.05:
                self.branch(depth)
            else:
                self.operation()


def launch(text: str, machine: str) -> None:
    """Plans, synchronises, compiles and runs a kernel, with all checks."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for one in (
            PlanMemoryPass(machine=machine),
            InsertSyncPass(machine=machine),
            ConvertCceToHivmPass(),
            ConvertHivmToLlvmPass(),
        ):
            one.run(module.operation)
        library = KernelLibrary(module.operation)
    device = Device(machines.load(machine), 1 << 20)
    addresses = [device.allocate(4 * GM_SIZE) for _ in range(3)]
    for address in addresses:
        device.write(address, np.zeros(GM_SIZE, np.float32))
    device.launch("k", library.programs["k"], addresses, locations=library.locations)


@pytest.fixture
def one_event_id(tmp_path: Path) -> str:
    """A machine file with one event id for each pair of pipes."""
    source = (machines.DIRECTORY / "ascend910.toml").read_text()
    machine = tmp_path / "one.toml"
    machine.write_text(source.replace("event_ids = 4", "event_ids = 1"))
    return str(machine)


@pytest.mark.parametrize("seed", range(40))
def test_random_kernel(seed: int) -> None:
    launch(RandomKernel(seed).text(), "ascend910")


ANSWER_NEEDED = 76
"""The kernel in which an answer finds no event id either, and what it says is needed."""


@pytest.mark.parametrize("seed", [*range(40), ANSWER_NEEDED])
def test_random_kernel_with_one_event_id(seed: int, one_event_id: str) -> None:
    launch(RandomKernel(seed).text(), one_event_id)


@pytest.mark.parametrize("seed", range(20))
def test_straight_kernel(seed: int) -> None:
    launch(StraightKernel(seed).text(), "ascend910")


@pytest.mark.parametrize("seed", range(20))
def test_straight_kernel_with_one_event_id(seed: int, one_event_id: str) -> None:
    launch(StraightKernel(seed).text(), one_event_id)


NESTED = """
!gm = memref<4096xf32>
!tile = memref<256xf32, strided<[1]>>
!ub = memref<256xf32, #cce.space<"UB">>
func.func @k(%x: !gm, %y: !gm, %z: !gm) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = "cce.get_block_num"() : () -> index
  %a = memref.alloc() : !ub
  %b = memref.alloc() : !ub
  %tile = memref.subview %x[0] [256] [1] : !gm to !tile
  "cce.copy"(%tile, %a) : (!tile, !ub) -> ()
  scf.for %i = %c0 to %n step %c1 {
    "cce.copy"(%tile, %b) : (!tile, !ub) -> ()
    "cce.vexp"(%b, %b) : (!ub, !ub) -> ()
  }
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  return
}
"""


def test_no_event_id_left(one_event_id: str) -> None:
    """The flag for %a is set all through the loop, whose own flags find no id: the scalar unit
    waits for what they would order."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(NESTED)
        PlanMemoryPass(machine=one_event_id).run(module.operation)
        InsertSyncPass(machine=one_event_id).run(module.operation)
        text = str(module)
    assert "degraded" not in text and 'pipe = "ALL"' not in text
    assert text.count('wait_flag"() {dst = "S", event = 0 : i64, src = "MTE2"}') == 1
    launch(NESTED, one_event_id)


def test_enough_event_ids() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(NESTED)
        PlanMemoryPass().run(module.operation)
        InsertSyncPass().run(module.operation)
        assert "degraded" not in str(module) and 'pipe = "ALL"' not in str(module)


def loops_in_a_row(count: int) -> str:
    """Each loads, computes and stores, so each needs a flag from V to MTE2 for its next iteration;
    none knows whether the one before did anything."""
    loop = """
  scf.for %i{0} = %c0 to %n step %c1 {{
    "cce.copy"(%in, %a) : (!tile, !ub) -> ()
    "cce.vexp"(%a, %b) : (!ub, !ub) -> ()
    "cce.copy"(%b, %out) : (!ub, !tile) -> ()
  }}"""
    head, _, _ = NESTED.partition("  %tile")
    places = [
        f"  %{name} = memref.subview %{gm}[0] [256] [1] : !gm to !tile\n"
        for name, gm in (("in", "x"), ("out", "y"))
    ]
    loops = "".join(loop.format(i) for i in range(count))
    return f"{head}{''.join(places)}{loops}\n  return\n}}\n"


def test_flags_of_loops_before_are_clear() -> None:
    """So a loop has event ids, however many came before."""
    text = loops_in_a_row(7)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        PlanMemoryPass().run(module.operation)
        InsertSyncPass().run(module.operation)
        assert "degraded" not in str(module) and 'pipe = "ALL"' not in str(module)
    launch(text, "ascend910")
