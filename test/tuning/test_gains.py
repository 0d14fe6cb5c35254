"""What could be won at most, and when tuning leaves off."""

from __future__ import annotations

from typing import Any

import pytest

import davinci
from davinci.errors import InputError
from davinci.tuning.gains import Account, Prospect, has_patience, least_cycles

pytest.importorskip("optuna")

PRODUCT = """func.func @main(%x: tensor<96x200xf32>, %y: tensor<200x64xf32>) -> tensor<96x64xf32> {
  %a = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<96x200xf32>, tensor<200x64xf32>) -> tensor<96x64xf32>
  %b = stablehlo.tanh %a : tensor<96x64xf32>
  %c = stablehlo.dot_general %b, %b, contracting_dims = [0] x [0]
      : (tensor<96x64xf32>, tensor<96x64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.slice %c [0:64, 0:64] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = stablehlo.dot_general %a, %d, contracting_dims = [1] x [0]
      : (tensor<96x64xf32>, tensor<64x64xf32>) -> tensor<96x64xf32>
  return %e : tensor<96x64xf32>
}"""


def test_the_limit_is_a_limit() -> None:
    """No way of any kernel takes fewer cycles; what is said is what was measured."""
    said: list[str] = []
    tuned = davinci.tune(PRODUCT, trials=6, worth=0, say=said.append)
    account = tuned.account
    assert len(tuned.kernels) > 1
    won = sum(u - k.cycles for u, k in zip(tuned.untuned, tuned.kernels, strict=True))
    assert account.total == sum(tuned.untuned) and account.won == won
    assert 0 <= account.won <= account.most < account.total
    assert said[0].startswith(f"{len(tuned.kernels)} kernels that can be computed in several ways")
    assert said[1] == f"{account.total:,} -> {account.total - won:,} cycles"
    assert tuned.stopped == ""


def test_nothing_is_tried_where_little_can_be_won() -> None:
    """Half of the cycles or more would have to be won: each kernel is simulated once."""
    said: list[str] = []
    tuned = davinci.tune(PRODUCT, worth=0.99, say=said.append)
    assert set(tuned.measured) == {1}
    assert "were left as they are: what is left can win" in tuned.stopped
    assert said[1].endswith(tuned.stopped)
    with pytest.raises(InputError, match="worth"):
        davinci.tune(PRODUCT, worth=1.5)


def test_cycles_of_work() -> None:
    machine = davinci.machine.load("ascend910")
    ends = machine.mte2.start_cycles + machine.mte3.start_cycles
    assert least_cycles({"macs": 4096 * 1000, "read_bytes": 2, "write_bytes": 2}, machine, 1) == (
        1000 + ends
    )
    halves = {"macs": 4096 * 1000, "factor_bits": 16}
    assert least_cycles(halves, machine, 2) == 500 + machine.mte3.start_cycles


@pytest.mark.parametrize(
    ("cycles", "more"),
    [
        ([100], True),
        ([100, 101, 102, 103], True),
        ([100, 101, 102, 103, 104], False),
        ([100, 99.9, 99.8, 99.7, 99.6], False),
        ([100, 101, 102, 103, 90, 91], True),
        ([None, None, 100, None], True),
    ],
)
def test_patience(cycles: list[Any], more: bool) -> None:
    assert has_patience(dict(enumerate(cycles)), 0.005) == more


def test_what_was_won_tells_what_is_to_be_expected() -> None:
    account = Account(total=1000, most=500, worth=0.01)
    assert account.reason_to_stop() == ""
    account.tuned(Prospect(launches=2, cycles=100, least=0), 100)
    assert "won 0.0%" in account.reason_to_stop()
    account.tuned(Prospect(launches=1, cycles=100, least=0), 60)
    assert account.reason_to_stop() == ""  # 40 of 300: as much of 200 is 27, more than 10
    account.tuned(Prospect(launches=1, cycles=195, least=0), 195)
    assert "what is left can win 0.5% at most" in account.reason_to_stop()
