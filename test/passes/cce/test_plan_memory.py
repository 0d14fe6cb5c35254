"""Addresses: no two buffers that live at once overlap, sharing costs nothing where it can, and the
operands of a vector instruction do not meet in the banks."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci import machine as machines
from davinci.errors import CompileError
from davinci.machine import checks
from davinci.machine.tables import entry_of
from davinci.mlir import ir, make_context, operations
from davinci.passes.cce.placement import Free, GapSteps, PlacedPiece, place
from davinci.passes.pipeline import runner
from random_tiles import random_inputs, random_kernel
from tile_kernels import run_tiles, tile_loop

PIECES = st.lists(
    st.builds(PlacedPiece, st.integers(0, 20).map(lambda n: 32 * n), st.integers(0, 255)),
    max_size=20,
)
MACHINE = (machines.DIRECTORY / "ascend910.toml").read_text()


@given(PIECES, st.sampled_from([GapSteps(32), GapSteps(64, 256, 2), GapSteps(32, 256, 2, 1024)]))
def test_pieces_that_live_at_once_do_not_overlap(
    pieces: list[PlacedPiece], steps: GapSteps
) -> None:
    found = place(pieces, 4096, steps, Free())
    if found is None:
        assert sum(piece.size for piece in pieces) > 1024
        return
    for (a, at), (b, bt) in combinations(zip(pieces, found, strict=True), 2):
        if a.live & b.live and a.size and b.size:
            assert at + a.size <= bt or bt + b.size <= at
    assert all(at % steps.align == 0 for at in found)
    assert all(at + piece.size <= 4096 for piece, at in zip(pieces, found, strict=True))


def test_pieces_share_what_is_free() -> None:
    pieces = [PlacedPiece(128, 0b0011), PlacedPiece(128, 0b1100), PlacedPiece(64, 0b0110)]
    assert place(pieces, 192, GapSteps(32), Free()) == [0, 0, 128]
    assert place(pieces, 160, GapSteps(32), Free()) is None


def test_a_given_address_stays() -> None:
    pieces = [PlacedPiece(128, 1, 32), PlacedPiece(32, 1), PlacedPiece(64, 1)]
    assert place(pieces, 4096, GapSteps(32), Free()) == [32, 0, 160]


@pytest.fixture(autouse=True)
def any_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine files may name a UB in which whole networks have no room, but these texts do."""
    monkeypatch.setitem(checks.LEAST_BYTES, "UB", 0)


def machine_with(folder: Path, ub_bytes: int) -> str:
    """A 910 with another UB."""
    path = folder / f"ub{ub_bytes}.toml"
    path.write_text(MACHINE.replace("UB  = { bytes = 262144", f"UB  = {{ bytes = {ub_bytes}"))
    return str(path)


def addresses(text: str, machine: str) -> dict[str, tuple[int, int]]:
    """First and last byte of the buffers, by their places in the text: `0`, `1`, ..."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        runner.run(module.operation, f"builtin.module(plan-memory{{machine={machine}}})")
        found = {}
        for number, alloc in enumerate(operations(module.operation, "memref.alloc")):
            start = alloc.attributes["cce.address"].value
            size = int(np.prod(alloc.result.type.shape)) * 4
            found[str(number)] = (start, start + size)
        return found


def overlaps(found: dict[str, tuple[int, int]]) -> set[str]:
    return {
        a + b
        for (a, (low, high)), (b, (start, end)) in combinations(found.items(), 2)
        if low < end and start < high
    }


FOUR = tile_loop(
    """
    %a = memref.alloc() : !ub
    %b = memref.alloc() : !ub
    %c = memref.alloc() : !ub
    %d = memref.alloc() : !ub
    "cce.copy"(%in0, %a) : (!tile, !ub) -> ()
    "cce.vexp"(%a, %b) : (!ub, !ub) -> ()
    "cce.vexp"(%b, %c) : (!ub, !ub) -> ()
    "cce.vexp"(%c, %d) : (!ub, !ub) -> ()
    "cce.copy"(%d, %out) : (!ub, !tile) -> ()
    """,
    count=4,
    size=1024,
    unroll=0,
)
"""A value that is loaded, two of the vector unit, one that is stored; 4 KiB each."""


@pytest.mark.parametrize(
    ("kib", "shared"), [(17, set()), (12, {"13"}), (8, {"02", "13"})], ids=["all", "3", "2"]
)
def test_what_is_transferred_shares_last(kib: int, shared: set[str], tmp_path: Path) -> None:
    """With three places %b shares with %d, since nobody waits long; %a has its own to the end."""
    assert overlaps(addresses(FOUR, machine_with(tmp_path, kib * 1024))) == shared


BRANCH = """
    %a = memref.alloc() : !ub
    %b = memref.alloc() : !ub
    "cce.copy"(%in0, %a) : (!tile, !ub) -> ()
    "cce.vexp"(%a, %b) : (!ub, !ub) -> ()
    "cce.copy"(%b, %out) : (!ub, !tile) -> ()
"""
BRANCHES = tile_loop(
    f"%yes = arith.constant true\nscf.if %yes {{{BRANCH}}} else {{{BRANCH}}}",
    count=4,
    size=1024,
    unroll=0,
)


def test_branches_share_with_each_other_only(tmp_path: Path) -> None:
    assert overlaps(addresses(BRANCHES, machine_with(tmp_path, 20 * 1024))) == set()
    assert overlaps(addresses(BRANCHES, machine_with(tmp_path, 9 * 1024))) <= {
        *("02", "03", "12", "13")
    }


@pytest.mark.parametrize("seed", range(6, 14))
def test_shared_places_change_no_result(seed: int, tmp_path: Path) -> None:
    """Random kernels in the smallest UB that holds them, as the error for a smaller one says."""
    text, inputs = random_kernel(seed), random_inputs(seed)
    with pytest.raises(CompileError, match="do not fit UB") as refused:
        run_tiles(text, inputs, machine_with(tmp_path, 256))
    least = int(re.search(r"(\d+) with gaps", str(refused.value))[1])
    tight = run_tiles(text, inputs, machine_with(tmp_path, least))
    assert np.array_equal(tight.outputs[0], run_tiles(text, inputs).outputs[0])


@pytest.mark.parametrize("operation", ["vadd", "vmul", "vmax"])
@pytest.mark.parametrize("size", [64, 1024, 4096, 5120])
def test_operands_do_not_meet_in_banks(operation: str, size: int) -> None:
    """Buffers of whole rows of bank groups, which one after the other would begin in the same."""
    body = f"""
      %a = memref.alloc() : !ub
      %b = memref.alloc() : !ub
      %c = memref.alloc() : !ub
      "cce.copy"(%in0, %a) : (!tile, !ub) -> ()
      "cce.copy"(%in1, %b) : (!tile, !ub) -> ()
      "cce.{operation}"(%a, %b, %c) : (!ub, !ub, !ub) -> ()
      "cce.{operation}"(%c, %b, %c) : (!ub, !ub, !ub) -> ()
      "cce.copy"(%c, %out) : (!ub, !tile) -> ()"""
    inputs = [np.ones(size, np.float32)] * 2
    block = run_tiles(tile_loop(body, 1, size, 0, inputs=2), inputs).profile.per_block[0]
    unit, repeats = machines.load("ascend910").vector, size // 64
    fixed = entry_of(unit.fixed_cycles_of, operation, "f32", unit.fixed_cycles)
    assert block.unit_cycles[f"{operation}.f32"] <= 2 * fixed + 2.15 * repeats
