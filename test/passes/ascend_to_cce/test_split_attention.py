"""Attention that cube and vector cores of the 910B compute together, against NumPy in double
precision; the simulator checks races, flags and deadlocks of both programs."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from attention_support import Attention
from davinci import machine as machines
from davinci.machine import Machine
from davinci.passes.ascend_to_cce.attention.split import masks
from davinci.schedule.attention import choice, split_cost
from davinci.schedule.attention.attention import Attention as AttentionKind
from davinci.simulator.core.device import Device
from pairs import in_turn
from support import compile_text

MACHINE = "ascend910b"

TOGETHER: list[dict[str, Any]] = [
    {"rows": 1, "keys": 1, "depth": 16},
    {"rows": 17, "keys": 50, "depth": 64, "heads": 1},
    {"rows": 100, "keys": 300, "depth": 48, "columns": 80},
    {"rows": 130, "keys": 130, "depth": 128, "heads": 1, "scores": "f16"},
    {"rows": 64, "keys": 129, "depth": 32, "result": "f32"},
    {"rows": 33, "keys": 64, "heads": 4, "shared": 2, "batch": 2},
    {"rows": 40, "keys": 600, "depth": 64, "scale": 0.11, "spread": 6.0, "rounded": True},
    {"rows": 70, "keys": 70, "scale": 1.0, "by": "div", "spread": 0.0},
    {"rows": 40, "keys": 300, "mask": "key", "batch": 2},
    {"rows": 100, "keys": 200, "mask": "causal", "flags": True},
    {"rows": 150, "keys": 140, "mask": "whole", "batch": 2, "scores": "f16", "depth": 128},
    {"rows": 33, "keys": 90, "mask": "row+whole", "scale": 0.11},
]


@pytest.mark.parametrize(("options", "cores"), in_turn(TOGETHER, [1, 24]), ids=str)
def test_one_launch_of_two_programs(options: dict[str, Any], cores: int) -> None:
    """On one block units follow each other, so that every place of a ring is written again."""
    masked = "mask" in options  # which kernels of their own may make
    executable = Attention(**options).check(None if masked else 1, machine=MACHINE, cores=cores)
    (launch,) = (x for x in executable.launches if x.name.startswith("attention"))
    busy = {pipe for pipe, found in executable.profile["pipes"].items() if found["busy_cycles"]}
    assert {"PIPE_M", "PIPE_FIX", "PIPE_V", "PIPE_MTE3"} <= busy
    assert launch.blocks <= cores


FRACTALS: list[dict[str, Any]] = [
    {"nz": "q", "rows": 150, "keys": 350, "depth": 32},
    {"nz": "k", "rows": 50, "keys": 50, "heads": 8},
    {"nz": "v", "rows": 197, "keys": 197, "heads": 3},
    {"nz": "o", "rows": 197, "keys": 130, "heads": 3, "result": "f32"},
    {"nz": "qkvo", "rows": 50, "keys": 70, "depth": 40},
    {"nz": "qkvo", "rows": 300, "keys": 700, "depth": 32, "scores": "f16"},
    {"nz": "qkvo", "rows": 8, "keys": 2000},
    {"nz": "ko", "rows": 16, "keys": 333, "heads": 3},
    {"nz": "qkvo", "rows": 128, "keys": 128, "mask": "head", "heads": 4},
    {"nz": "qvo", "rows": 256, "keys": 256, "mask": "causal", "known": True, "shared": 2},
]


@pytest.mark.parametrize(("options", "cores"), in_turn(FRACTALS, [24, 2]), ids=str)
def test_factors_and_results_in_fractals(options: dict[str, Any], cores: int) -> None:
    executable = Attention(**options).check(None, machine=MACHINE, cores=cores)
    assert any(launch.name.startswith("attention") for launch in executable.launches)


class InFractals(Attention):
    """Gives O as it lies in fractals."""

    def _write(self) -> None:
        super()._write()
        self.lines.pop()
        shape = (self.batch * self.heads, self.rows, self.columns)
        self.output = f"%v{len(self.lines) - 1}", self.kind(shape, self.result, nz=True)


@pytest.mark.parametrize(("rows", "columns"), [(50, 40), (1, 64), (8, 48)])
def test_what_pads_results_in_fractals_is_zero(rows: int, columns: int) -> None:
    """Those who read fractals multiply what pads them."""
    given = InFractals(rows=rows, keys=70, depth=32, columns=columns, nz="qkvo")
    executable = compile_text(given.text(), machine=MACHINE)
    (found,) = executable.run(*(data for _, data in given.arguments)).values()
    matrices = found.transpose(0, 2, 3, 1, 4).reshape(2, found.shape[2] * 16, -1)
    np.testing.assert_allclose(
        matrices[:, :rows, :columns], given.wanted(), rtol=0, atol=given.tolerance
    )
    assert not matrices[:, rows:].any() and not matrices[:, :, columns:].any()


@pytest.mark.parametrize(("result", "rounded"), [("f16", True), ("f32", False)])
def test_scores_leave_as_f16_for_results_of_f16(result: str, rounded: bool) -> None:
    """Half the bytes leave L0C; a result of f32 is given what its scores tell."""
    options = {"rows": 256, "keys": 512, "depth": 64, "spread": 3.0, "result": result}
    executable = Attention(**options, rounded=rounded).check(machine=MACHINE, cores=4)
    (kernel,) = executable.profile["kernels"]
    assert f"'rounded': {rounded}" in str(kernel["choices"])


KNOWN: list[dict[str, Any]] = [
    {"rows": 200, "keys": 200, "mask": "causal", "flags": True, "depth": 32},
    {"rows": 70, "keys": 333, "mask": "causal", "low": -65504.0, "scale": 0.11, "spread": 3.0},
    {"rows": 333, "keys": 70, "mask": "window", "flags": True, "scores": "f16"},
    {"rows": 600, "keys": 610, "mask": "window", "low": -4e4, "depth": 16, "heads": 1},
    {"rows": 150, "keys": 330, "mask": "blocks", "flags": True, "batch": 2, "depth": 16},
    {"rows": 64, "keys": 64, "mask": "causal", "flags": True, "result": "f32"},
    {"rows": 40, "keys": 90, "mask": "blocks", "low": -6e4, "batch": 2, "empty": True},
]


@pytest.mark.parametrize(("options", "cores"), in_turn(KNOWN, [24, 2]), ids=str)
def test_masks_that_are_known(options: dict[str, Any], cores: int) -> None:
    """Nothing makes a mask, and hidden tiles are left out."""
    Attention(**options, known=True).check(machine=MACHINE, cores=cores)


def test_bounds_without_a_buffer_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come piece by piece to where weights leave from."""
    monkeypatch.setattr(masks, "bounds_apart", lambda *_: False)
    options = {"rows": 300, "keys": 700, "mask": "window", "flags": True, "depth": 32}
    Attention(**options, known=True).check(machine=MACHINE, cores=2)


def test_hidden_tiles_take_no_time() -> None:
    """Of a causal mask about half of the tiles is left, of a window less."""
    options = {"rows": 1024, "keys": 1024, "heads": 1, "depth": 64, "flags": True, "known": True}

    def cycles(mask: str) -> int:
        made = Attention(**options, mask=mask) if mask else Attention(**options)
        executable = compile_text(made.text(), machine=MACHINE, cores=1, timing_only=True)
        executable.run()
        return int(executable.profile["total_cycles"])

    whole, causal, window = (cycles(mask) for mask in ("", "causal", "window"))
    assert causal < 0.9 * whole
    assert window < 0.9 * whole


NEAR = 0.15
"""The part of the simulated cycles by which an estimate may miss them."""


@pytest.mark.parametrize(
    "options",
    [
        {"rows": 2048, "keys": 2048, "depth": 128, "heads": 1},
        {"rows": 512, "keys": 512, "depth": 64, "heads": 12},
        {"rows": 197, "keys": 197, "depth": 64, "heads": 12},
        {"rows": 16, "keys": 1024, "depth": 64, "heads": 16},
        {"rows": 600, "keys": 600, "depth": 64, "mask": "causal", "known": True},
    ],
    ids=str,
)
def test_estimates_are_near_what_is_simulated(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With K and V in the L2, which a run before has left there."""
    asked: list[AttentionKind] = []

    def ranked(attention: AttentionKind, machine: Machine, cores: int) -> list[Any]:
        asked.append(attention)
        return split_cost.ranked(attention, machine, cores)

    monkeypatch.setattr(choice, "ranked_split", ranked)
    choice._best.cache_clear()
    made = Attention(**options)
    executable = compile_text(made.text(), machine=MACHINE, core_choice="all", timing_only=True)
    monkeypatch.setattr(Device, "flush", lambda *_: None)
    for _ in range(2):
        executable.run()
    (kernel,) = executable.profile["kernels"]
    machine = machines.load(MACHINE)
    chosen = split_cost.ranked(asked[-1], machine, machine.cores)[0]
    estimate = split_cost.estimate(asked[-1], chosen, machine, machine.cores)
    assert estimate == pytest.approx(kernel["cycles"], rel=NEAR)


@pytest.mark.parametrize(
    "options",
    [
        {"turned": True},
        {"mask": "key", "flags": True, "guarded": True},
        {"depth": 40},
        {"nz": "qko", "depth": 64, "columns": 40},
        {"depth": 512},
    ],
    ids=str,
)
def test_others_have_kernels_of_their_own(options: dict[str, Any]) -> None:
    Attention(**options).check(None, machine=MACHINE, cores=4)


def test_schedules_are_kept(tmp_path: Any) -> None:
    """A schedule that was written to a file makes the same kernel."""
    given = Attention(rows=100, keys=200)
    executable = given.check(machine=MACHINE)
    path = tmp_path / "schedules.json"
    path.write_text(executable.schedules())
    again = given.check(machine=MACHINE, schedules=str(path))
    assert again.details["given_schedules"]["used"] == 1
    assert [x.cycles for x in again.launches] == [x.cycles for x in executable.launches]


def test_weights_come_in_front_of_the_last_part_of_v() -> None:
    """They are needed first, and the step before needs the buffer of that part longest."""
    made = Attention(rows=256, keys=1024, depth=64, heads=1)
    executable = compile_text(made.text(), machine=MACHINE, cores=1, timing_only=True)
    executable.run(*(data for _, data in made.arguments), timeline="first")
    (launch,) = executable.launches
    rows = sorted((r for r in launch.rows if r.pipe == "PIPE_MTE2"), key=lambda row: row.index)
    copies = [(row.mnemonic, row.accesses[0][1]) for row in rows if row.core == 0 and row.accesses]
    first_of_v = list(executable._host.input_addresses.values())[2]
    steps, parts = 0, []
    for name, address in copies:
        steps += name == "copy_gm_to_cbuf"
        if name.endswith("nd2nz.b16") and address >= first_of_v:
            parts.append(steps)
    (kernel,) = executable.profile["kernels"]
    last = kernel["choices"][0]["choice"]["schedule"]["parts"] - 1
    assert last > 0 and not any(parts[:last]), "the first parts come before any weights"
    assert parts[last] > 0, "the last one behind the first weights"


def test_one_step_takes_its_operands_once_and_half_of_its_rows_at_a_time() -> None:
    """Nothing is brought for steps that there are not, and the vector cores tell of the weights of
    half of the rows before they wait for scores of the other half."""
    made = Attention(rows=128, keys=128, depth=64, heads=1)
    executable = compile_text(made.text(), machine=MACHINE, cores=1, timing_only=True)
    executable.run(*(data for _, data in made.arguments), timeline="first")
    (launch,) = executable.launches
    rows = sorted(launch.rows, key=lambda row: row.index)
    assert "units of 128 rows, tiles of 128 keys" in str(executable.profile["kernels"])
    brought = [row for row in rows if row.mnemonic == "copy_gm_to_cbuf_multi_nd2nz.b16"]
    sizes = "n_value", "nd_num", "d_value"
    assert sum(prod(row.fields[name] for name in sizes) for row in brought) == 3 * 128 * 64
    told = [
        row.mnemonic
        for row in rows
        if row.core == 1 and row.mnemonic in ("wait_flag_dev", "ffts_cross_core_sync")
    ]
    assert told[:4] == ["wait_flag_dev", "ffts_cross_core_sync"] * 2
