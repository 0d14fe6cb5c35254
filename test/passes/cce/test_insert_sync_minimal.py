"""Every flag and barrier that insert-sync puts is needed: without any one of them, the simulator
finds a race, a deadlock, or a flag set twice. In a straight line that is so for every half of a
flag, and an order worked out independently of the simulator agrees."""

from __future__ import annotations

import re

import numpy as np
import pytest

from davinci import machine as machines
from davinci.errors import DeviceFault
from davinci.mlir import ir, make_context
from davinci.passes.pipeline import runner
from davinci.runtime.jit import KernelLibrary
from davinci.simulator import Device
from fuzz.recorded_kernels import Kernel, kernel_of, number_synchronisation, teed
from fuzz.sync_mutation import Outcomes, judge, sequential_pipes
from kernel_support import fractals, run_cce
from operator_support import kernel_text
from product_support import Case
from sync_kernels import tiles_text

SYNC = re.compile(r'"cce\.(set_flag|wait_flag|pipe_barrier)"\(\) (\{[^}]*\})')

MATMUL = Case(64, 64, 64).text()
N = np.zeros(200_000, np.float32)
ADD = kernel_text("add", [N, N], N.shape, N.dtype)


def synchronised(text: str, options: str) -> str:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        runner.run(module.operation, f"builtin.module(ascend-to-cce{{{options}}})")
        return str(module)


def run(text: str, inputs: list[np.ndarray]) -> np.ndarray:
    with make_context(), ir.Location.unknown():
        return run_cce(ir.Module.parse(text), inputs, 1, "ascend910").outputs[0]


def without_each(text: str) -> dict[str, str]:
    """The text without one flag, with all its sets and waits, or without one barrier."""
    lines = text.splitlines()
    syncs: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if found := SYNC.search(line):
            place = f" in line {number}" if found[1] == "pipe_barrier" else ""
            syncs.setdefault(found[2] + place, []).append(number)
    return {
        name: "\n".join(line for i, line in enumerate(lines) if i not in numbers)
        for name, numbers in syncs.items()
    }


@pytest.mark.parametrize(("strategy", "n"), [("os", 32), ("is", 64), ("ws", 64)])
def test_matmul(strategy: str, n: int) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    text = synchronised(MATMUL, f"cores=1 matmul-strategy={strategy} m=32 n={n} k=32")
    inputs = [fractals(a), fractals(b)]
    expected = fractals(a.astype(np.float32) @ b.astype(np.float32))
    np.testing.assert_allclose(run(text, inputs), expected, rtol=1e-3, atol=1e-2)
    variants = without_each(text)
    assert len(variants) >= 8
    for name, variant in variants.items():
        with pytest.raises(DeviceFault):
            run(variant, inputs)
            pytest.fail(f"nothing is found without {name}")


def test_add() -> None:
    a = np.arange(200000, dtype=np.float32)
    text = synchronised(ADD, "cores=1")
    np.testing.assert_array_equal(run(text, [a, a]), a + a)
    variants = without_each(text)
    assert len(variants) >= 3
    for name, variant in variants.items():
        with pytest.raises(DeviceFault):
            run(variant, [a, a])
            pytest.fail(f"nothing is found without {name}")


def tiles(slots: int, lag: int) -> Kernel:
    """A kernel of unrolled tiles as it ran."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(tiles_text(6, slots=slots, lag=lag))
        steps = "plan-memory,insert-sync,cce-to-hivm,hivm-to-llvm"
        runner.run(module.operation, f"builtin.module({steps})")
        number_synchronisation(module.operation)
        library = KernelLibrary(module.operation)
    device = Device(machines.load("ascend910"), 1 << 20)
    addresses = [device.allocate(1 << 13) for _ in range(2)]
    for address in addresses:
        device.write(address, np.ones(1 << 11, np.float32))
    program, streams = teed(library.programs["k"])
    device.launch("k", program, addresses, locations=library.locations)
    return kernel_of("k", device, streams, library.locations)


@pytest.mark.parametrize(("slots", "lag"), [(2, 2), (3, 3), (6, 3), (4, 8)])
def test_straight_line(slots: int, lag: int) -> None:
    outcomes = Outcomes()
    judge(tiles(slots, lag), sequential_pipes(), outcomes)
    assert outcomes.total("reported") > 60
    assert not outcomes.wrong and not outcomes.redundant
