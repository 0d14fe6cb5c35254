"""Flags and barriers of compiled kernels: without any of them a check fires, or none is needed.

`benchmarks/proofs/check_mutations.py` does the same for every kernel of bert-tiny.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import zoo
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.isa.core import Space
from davinci.simulator import Device
from fuzz import cores_mutation
from fuzz.group_kernels import group_models
from fuzz.happens_before import Order
from fuzz.recorded_kernels import Kernel, record
from fuzz.stream_steps import Conflicts, decode
from fuzz.sync_mutation import Outcomes, judge, sequential_pipes


def test_kernels_of_a_network() -> None:
    outcomes = Outcomes()
    for kernel in record(zoo.build("mlp,batch=16,features=32,hidden=48,layers=3"), cores=1):
        judge(kernel, sequential_pipes(), outcomes)
    assert outcomes.wrong == []
    assert outcomes.kernels >= 2
    assert outcomes.counts["static instruction", "reported"] > 40
    assert outcomes.counts["static flag", "reported"] > 15
    assert outcomes.counts["static instruction", "redundant"] == 0, "each leaves half a flag over"


def test_kernels_of_groups() -> None:
    """Some mutants of kernels whose tiles take turns, ordered by relays on the vector pipe too."""
    outcomes, models = Outcomes(), group_models()
    for name, every in (
        ("softmax", 29),
        ("layer_norm", 29),
        ("rotary_embedding", 3),
        ("ragged rows added in memory", 1),
        ("rows that a core owns", 3),
        ("a row sorted in eighths", 5),
    ):
        for kernel in record(models[name], cores=1):
            judge(kernel, sequential_pipes(), outcomes, every)
    assert outcomes.wrong == []
    assert outcomes.relays > 50
    assert outcomes.counts["static instruction", "reported"] > 30


def test_programs_for_several_cores() -> None:
    counts = cores_mutation.judge(seed=5, programs=28)
    assert counts["escaped"] == counts["false alarm"] == 0
    assert counts["reported"] > 100


def test_what_is_not_needed_is_redundant(new_asm: Callable[[], Any], device: Device) -> None:
    x = device.allocate(4096)
    device.write(x, np.zeros(4096, dtype=np.uint8))
    asm = new_asm()
    asm.emit("copy_gm_to_ubuf", location=1, dst=0, src=x, n_burst=1, len_burst=8)
    asm.emit("set_flag", location=2, src_pipe=Pipe.MTE2, dst_pipe=Pipe.V, event=0)
    asm.emit("wait_flag", location=3, src_pipe=Pipe.MTE2, dst_pipe=Pipe.V, event=0)
    asm.emit("vadd.f32", location=1, dst=512, src0=0, src1=0, repeat=1)
    asm.emit("pipe_barrier", location=4, pipe=Pipe.V)
    asm.emit("vadd.f32", location=1, dst=1024, src0=0, src1=0, repeat=1)
    statics = {2: "set_flag", 3: "wait_flag", 4: "pipe_barrier"}
    outcomes = Outcomes()
    judge(Kernel("test", device, [asm.array()], statics), sequential_pipes(), outcomes)
    assert outcomes.wrong == []
    assert outcomes.redundant == ["test: pipe_barrier"]
    assert outcomes.total("reported") == 2 * 2 + 2, "each half of the flag, and both, twice"


@pytest.mark.parametrize(
    ("without", "sound", "unordered"),
    [((), True, []), ((1, 2), False, [(0, 3)]), ((4,), False, [(3, 5)]), ((1,), False, [(0, 3)])],
)
def test_the_order_itself(
    new_asm: Callable[[], Any],
    without: tuple[int, ...],
    sound: bool,
    unordered: list[tuple[int, int]],
) -> None:
    asm = new_asm()
    asm.emit("copy_gm_to_ubuf", dst=0, src=512, n_burst=1, len_burst=8)
    asm.flag(Pipe.MTE2, Pipe.V)
    asm.emit("vadd.f32", dst=512, src0=0, src1=0, repeat=1)
    asm.barrier(Pipe.V)
    asm.emit("vadd.f32", dst=0, src0=512, src1=512, repeat=1)
    steps = decode(asm.array())
    verdict = Order(steps, sequential_pipes(), without).verdict(Conflicts(steps))
    assert verdict.sound == sound
    assert set(unordered) <= set(verdict.unordered)


def test_scalar_accesses_are_ordered_by_a_flag_of_the_scalar_unit_only(
    new_asm: Callable[[], Any], device: Device
) -> None:
    """Not by a wait of it, nor by a register that it sets before: simulator and order agree."""
    x = device.allocate(4096)
    device.write(x, np.zeros(4096, dtype=np.uint8))
    for ordered in (False, True):
        asm = new_asm()
        asm.emit("scalar_access", loads=1, load_low=x, load_high=x + 4, space=1)
        asm.emit("set_va_reg")
        asm.flag(Pipe.V, Pipe.S)
        if ordered:
            asm.flag(Pipe.S, Pipe.MTE3)
        asm.emit("copy_ubuf_to_gm", dst=x, src=0, n_burst=1, len_burst=1)
        steps = decode(asm.array())
        assert Order(steps, sequential_pipes()).verdict(Conflicts(steps)).sound == ordered

        def program(arguments: Any, block: int, blocks: int, core: Any, asm: Any = asm) -> None:
            core.memory(Space.UB).written[:32] = True
            core.consume(asm.array())

        if ordered:
            device.launch("k", program, [], 1)
        else:
            with pytest.raises(DeviceFault, match="race: it writes GM"):
                device.launch("k", program, [], 1)
