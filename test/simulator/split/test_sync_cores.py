"""`cce.sync_cores` from text to the simulated machine: data, time, and every flag of it needed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci.errors import CompileError, DeviceFault
from davinci.tools import npu_opt

EXAMPLE = Path(__file__).parents[3] / "examples" / "meeting_cores.mlir"
PASSES = "--pass-pipeline=builtin.module(plan-memory,insert-sync,convert-cce-to-hivm)"
PAIR = re.compile(r" *hivm\.set_flag (\{.*\})\n *hivm\.wait_flag \1\n")

MEETINGS = """
module {{
  memref.global "private" @counters : memref<{blocks}x8xi32> = dense<0>
  func.func @main(%y: memref<{blocks}x8xi32> {{ascend.name = "y", ascend.output}}) attributes {{ascend.entry}} {{
    %lines = memref.get_global @counters : memref<{blocks}x8xi32>
    call @meet(%lines, %y) {{ascend.blocks = {blocks} : i64}} : (memref<{blocks}x8xi32>, memref<{blocks}x8xi32>) -> ()
    return
  }}
  func.func private @meet(memref<{blocks}x8xi32>, memref<{blocks}x8xi32>) attributes {{ascend.launch = @kernels::@meet}}
  module @kernels {{
    func.func @meet(%lines: memref<{blocks}x8xi32>, %y: memref<{blocks}x8xi32>) attributes {{ascend.kernel}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %times = arith.constant {times} : index
      %one = arith.constant 1 : i32
      %block = cce.get_block_idx -> index
      %scratch = memref.alloc() : UB<{lines}x8xi32>
      %sum = memref.alloc() : UB<1x8xi32>
      %own = memref.subview %y[%block, 0] [1, 8] [1, 1] : memref<{blocks}x8xi32> to memref<1x8xi32, strided<[8, 1], offset: ?>>
      %base = cce.read_counter %lines, %scratch : memref<{blocks}x8xi32>, UB<{lines}x8xi32> -> i32
      scf.for %i = %c0 to %times step %c1 {{
        %turn = arith.index_cast %i : index to i32
        %next = arith.addi %turn, %one : i32
        %number = arith.addi %base, %next : i32
        cce.sync_cores %lines, %number, %scratch : memref<{blocks}x8xi32>, i32, UB<{lines}x8xi32>
      }}
      %value = arith.index_cast %block : index to i32
      cce.vector_dup %value, %sum : i32, UB<1x8xi32>
      cce.copy %sum, %own : UB<1x8xi32>, memref<1x8xi32, strided<[8, 1], offset: ?>>
      return
    }}
  }}
}}
"""  # noqa: E501


def meetings(blocks: int, times: int) -> str:
    """A kernel whose blocks do nothing but wait for each other, so many times."""
    return MEETINGS.format(blocks=blocks, times=times, lines=blocks + 1)


def cycles(text: str, data: bool = True) -> int:
    """That a program takes."""
    executable = davinci.compile(text, timing_only=not data)
    executable.run()
    return int(executable.profile["total_cycles"])


def hivm_text(capfd: pytest.CaptureFixture[str]) -> str:
    """The example in exact instructions."""
    assert npu_opt.main([str(EXAMPLE), PASSES]) == 0
    return capfd.readouterr().out


def test_example() -> None:
    executable = davinci.compile(EXAMPLE)
    x = np.random.default_rng(0).random(65536, dtype=np.float32)
    for _ in range(2):  # the second run counts on from what the first one left
        y = executable.run(x=x)["y"]
        np.testing.assert_allclose(y, x / x.astype(np.float64).sum(), rtol=1e-6)


@pytest.mark.parametrize("machine", ["ascend910", "ascend310p", "ascend310"])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 8, 9, 21, 31])
def test_any_number_of_blocks(machine: str, blocks: int) -> None:
    if blocks > machines.load(machine).cores:
        pytest.skip("fewer cores")
    executable = davinci.compile(meetings(blocks, 3), machine=machine)
    np.testing.assert_array_equal(executable.run()["y"][:, 0], range(blocks))


def test_what_a_meeting_of_32_cores_takes() -> None:
    """The hardware's own instructions, one after the other: 780 cycles at most."""
    few, many = (cycles(meetings(32, times)) for times in (2, 12))
    assert 500 < (many - few) / 10 <= 780


def test_times_without_data_are_the_same() -> None:
    assert cycles(meetings(32, 4), data=False) == cycles(meetings(32, 4))


def test_every_flag_and_record_is_needed(capfd: pytest.CaptureFixture[str]) -> None:
    """Without one of them the program fails, is a race, or never ends."""
    text = hivm_text(capfd)
    begin = text.rindex("\n", 0, text.index("hivm.st ")) + 1  # what it loaded nobody overwrites
    end = text.index("\n", text.index("hivm.end_poll")) + 1
    inside = text[begin:end]
    mutants = {m.group(): inside[: m.start()] + inside[m.end() :] for m in PAIR.finditer(inside)}
    for name in ("copy_ubuf_to_gm", "post_counter", "poll_counters", "copy_gm_to_ubuf", "end_poll"):
        mutants[name] = re.sub(rf" *hivm\.{name} .*\n", "", inside, count=1)
    mutants["barrier"] = re.sub(r" *hivm\.pipe_barrier .*\n", "", inside, count=1)
    assert len(mutants) == 10
    for name, mutant in mutants.items():
        executable = davinci.compile(text[:begin] + mutant + text[end:])
        executable.instruction_limit = 2000
        with pytest.raises(DeviceFault):
            executable.run(x=np.ones(65536, np.float32))
            pytest.fail(f"{name} is not missed")


def test_one_event_id_is_too_few(tmp_path: Path) -> None:
    source = (Path(machines.__file__).parent / "files" / "ascend910.toml").read_text()
    path = tmp_path / "one.toml"
    path.write_text(re.sub(r"event_ids = \d+", "event_ids = 1", source))
    with pytest.raises(CompileError, match=r"needs an event id of its own; found sync\.event_ids"):
        davinci.compile(meetings(2, 1), machine=str(path))
