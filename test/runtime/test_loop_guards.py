"""Loops of scalar programs: those that end are let alone, those that never do are left."""

from __future__ import annotations

import time

import numpy as np
import pytest

from davinci import machine as machines
from davinci.errors import DeviceFault
from davinci.mlir import ir, make_context
from davinci.runtime.jit import KernelLibrary
from davinci.runtime.loop_guards import backward_edges
from davinci.simulator import Device

HELPERS = """
llvm.func @hivm.ld.i32(!llvm.ptr<1>, i64) -> i32
llvm.func @hivm.st.i32(!llvm.ptr<1>, i32, i64)
llvm.func @hivm.pipe_barrier(i64, i64)
"""

ENDLESS = {
    "nothing": "^a:\nllvm.br ^a",
    "both ways": "^a:\nllvm.cond_br %t, ^a, ^a",
    "carried": "^a:\nllvm.br ^b(%zero : i32)\n^b(%i: i32):\n%j = llvm.add %i, %one : i32\n"
    "llvm.br ^b(%j : i32)",
    "two blocks": "^a:\nllvm.br ^b\n^b:\nllvm.br ^a",
    "nested": "^a:\nllvm.br ^b\n^b:\nllvm.cond_br %t, ^b, ^a",
    "switch": "^a:\nllvm.br ^b(%zero : i32)\n^b(%i: i32):\nllvm.switch %i : i32, ^c [\n"
    "0: ^b(%i : i32),\n1: ^a\n]\n^c:\nllvm.br ^a",
    "stores": "^a:\nllvm.call @hivm.st.i32(%x, %one, %tag) : (!llvm.ptr<1>, i32, i64) -> ()\n"
    "llvm.br ^a",
    "a function's": "^a:\n%v = llvm.call @g(%t) : (i1) -> i32\nllvm.br ^a",
}
"""Bodies of kernels, with a pointer %x, a true %t, numbers %zero, %one."""


def library(body: str) -> KernelLibrary:
    text = f"""
      llvm.func @k(%x: !llvm.ptr<1>) attributes {{ascend.kernel}} {{
        %t = llvm.mlir.constant(true) : i1
        %zero = llvm.mlir.constant(0 : i32) : i32
        %one = llvm.mlir.constant(1 : i32) : i32
        %tag = llvm.mlir.constant(0 : i64) : i64
        %pipe = llvm.mlir.constant(1 : i64) : i64
        llvm.br ^a
        {body}
      }}
      llvm.func @g(%t: i1) -> i32 {{
        %one = llvm.mlir.constant(1 : i32) : i32
        llvm.br ^a
      ^a:
        llvm.cond_br %t, ^a, ^b
      ^b:
        llvm.return %one : i32
      }}
      {HELPERS}"""
    with make_context(), ir.Location.unknown():
        return KernelLibrary(ir.Module.parse(text).operation)


def launch(body: str, most: int, data: bool = True) -> int:
    """The first number in the kernel's buffer behind a run, with so many instructions allowed."""
    kernels = library(body)
    device = Device(machines.load("ascend910"), 1 << 16, data=data, most_instructions=most)
    address = device.allocate(64)
    device.write(address, np.zeros(16, np.int32))
    device.launch("k", kernels.programs["k"], [address], locations=kernels.locations)
    return int(device.read(address, np.int32, (16,))[0])


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("data", [False, True])
def test_a_loop_without_an_end_is_left(name: str, data: bool) -> None:
    start = time.process_time()
    with pytest.raises(DeviceFault, match="too many turns of loops") as fault:
        launch(ENDLESS[name], 100, data)
    assert "at most 5,000 in a block" in str(fault.value)
    assert time.process_time() - start < 10, "and soon"


def test_so_is_one_that_issues_instructions() -> None:
    barrier = "llvm.call @hivm.pipe_barrier(%pipe, %tag) : (i64, i64) -> ()"
    with pytest.raises(DeviceFault, match="too many instructions"):
        launch(f"^a:\n{barrier}\nllvm.br ^a", 5000)


COUNT = """
^a:
  llvm.br ^b(%zero : i32)
^b(%i: i32):
  %n = llvm.mlir.constant(TURNS : i32) : i32
  %j = llvm.add %i, %one : i32
  llvm.call @hivm.st.i32(%x, %j, %tag) : (!llvm.ptr<1>, i32, i64) -> ()
  %more = llvm.icmp "slt" %j, %n : i32
  llvm.cond_br %more, ^b(%j : i32), ^c
^c:
  llvm.return
"""


def test_a_loop_may_take_all_its_turns() -> None:
    assert launch(COUNT.replace("TURNS", "501"), 10) == 501
    with pytest.raises(DeviceFault, match="too many turns"):
        launch(COUNT.replace("TURNS", "502"), 10)


def test_each_block_has_its_own_turns() -> None:
    kernels = library(COUNT.replace("TURNS", "400"))
    device = Device(machines.load("ascend910"), 1 << 16, data=False, most_instructions=10)
    device.launch("k", kernels.programs["k"], [device.allocate(64)], blocks=3)


def test_edges_that_close_a_circle() -> None:
    text = """llvm.func @f(%t: i1) {
      llvm.cond_br %t, ^a, ^b
    ^a:
      llvm.cond_br %t, ^c, ^a
    ^b:
      llvm.br ^c
    ^c:
      llvm.cond_br %t, ^d, ^a
    ^d:
      llvm.return
    }"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        function = module.body.operations[0].operation
        blocks = list(function.regions[0].blocks)
        found = [(blocks.index(block), number) for block, number in backward_edges(function)]
    assert sorted(found) == [(1, 1), (3, 1)], "^b to ^c, which is met twice, is no such edge"
