"""Long kernels of unrolled tiles: insert-sync is quick, and does with the event ids there are."""

from __future__ import annotations

import time

import numpy as np
import pytest

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.mlir import ir, make_context
from davinci.passes.analysis.kernels import kernels
from davinci.passes.cce import insert_sync
from davinci.passes.cce.insert_sync import InsertSyncPass
from davinci.passes.cce.plan_memory import PlanMemoryPass
from davinci.passes.pipeline import runner
from davinci.runtime.jit import KernelLibrary
from davinci.simulator import Device
from sync_kernels import ELEMENTS, LEAVES, tiles_text

MOST_SECONDS = 3
"""Of the processor, for 1,000 operations; it takes less than one."""


@pytest.mark.parametrize("loop", [False, True])
def test_thousand_operations(loop: bool) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(tiles_text(1000 // LEAVES, loop))
        PlanMemoryPass().run(module.operation)
        start = time.process_time()
        InsertSyncPass().run(module.operation)
        assert time.process_time() - start < MOST_SECONDS


def counts(text: str, tiles: int) -> tuple[int, int, int]:
    """Runs a kernel with all checks: cycles, merged and degraded flags."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        runner.run(module.operation, "builtin.module(plan-memory,insert-sync)")
        (kernel,) = kernels(module.operation)
        merged = attribute(kernel, "cce.sync_merged", 0)
        degraded = attribute(kernel, "cce.sync_degraded", 0)
        runner.run(module.operation, "builtin.module(cce-to-hivm,hivm-to-llvm)")
        library = KernelLibrary(module.operation)
    device = Device(machines.load("ascend910"), 1 << 22)
    elements = 8 * tiles * ELEMENTS
    addresses = [device.allocate(4 * elements) for _ in range(2)]
    for address in addresses:
        device.write(address, np.ones(elements, np.float32))
    program = library.programs["k"]
    profile = device.launch("k", program, addresses, locations=library.locations)
    return profile.cycles, merged, degraded


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize(("slots", "lag"), [(3, 3), (6, 3), (8, 3), (12, 1), (5, 9)])
def test_more_buffers_than_event_ids(slots: int, lag: int, loop: bool) -> None:
    """Flags share ids by being late or answered: no barrier of all pipes."""
    _, merged, degraded = counts(tiles_text(24, loop, slots, lag), 24)
    assert (merged > 0) == (slots > 4)
    assert degraded == 0


def test_more_buffers_are_no_slower() -> None:
    """Six buffers need more flags at a time than there are ids; they pay all the same."""
    few, many = (counts(tiles_text(24, slots=slots), 24)[0] for slots in (3, 6))
    assert many < few


def test_relays_fill_the_time_of_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chains alternate: each works while the other's results are under way."""
    with_relays, *_ = counts(tiles_text(24), 24)
    monkeypatch.setattr(insert_sync, "RELAYS", ())
    assert with_relays < 0.95 * counts(tiles_text(24), 24)[0]
