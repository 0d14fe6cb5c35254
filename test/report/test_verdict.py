"""Losses are found by their rules, each with its share of the time, the largest first."""

from __future__ import annotations

from typing import Any

import pytest

from davinci.report.verdict import RULES, losses, verdict, warnings_of


def kernel(**changes: Any) -> dict[str, Any]:
    row = {
        "label": "add 8 f32",
        "operators": ["/a/Add"],
        "op": "add",
        "unit": "vector",
        "launches": 1,
        "cycles": 100_000,
        "bound_cycles": 90_000,
        "bottleneck": "V 90%",
        "work": {},
    }
    return row | changes


def waiting(found: dict[str, Any]) -> dict[str, Any]:
    """The same with as long again of waiting for weights."""
    found["memory"] = {"link_wait_us": found["time_us"], "streamed_bytes": 1000}
    return {**found, "time_us": 2 * found["time_us"]}


def record(*rows: dict[str, Any], overhead_us: float = 0, **idle: float) -> dict[str, Any]:
    """Of kernels on 32 cores of 1000 MHz that are all at work."""
    total = sum(row["cycles"] for row in rows)
    launches = sum(row["launches"] for row in rows)
    return {
        "kernels": list(rows),
        "clock_mhz": 1000,
        "cores": 32,
        "total_cycles": total,
        "bound_cycles": sum(row["bound_cycles"] for row in rows),
        "launch_overhead_us": overhead_us,
        "time_us": total / 1000 + overhead_us,
        "ops": {"total": launches},
        "idle": {
            **dict.fromkeys(("ratio", "half_idle_ratio", "spared_ratio", "half_spared_ratio"), 0.0),
            **idle,
        },
    }


def test_nothing_is_lost() -> None:
    found = record(kernel())
    assert losses(found) == []
    assert verdict(found) == "No large loss: kernels take 1.1 times the machine's limit."
    assert warnings_of(found) == []


def test_nothing_was_launched() -> None:
    assert verdict(record()) == "Nothing was launched."


@pytest.mark.parametrize(
    ("found", "share", "short", "text", "advice"),
    [
        (
            record(kernel(launches=30), overhead_us=300),
            0.75,
            "launches take 75 % of the time",
            "takes 10 us, 30 times: 75 %",
            "larger batch",
        ),
        (
            record(kernel(unit="scalar", launches=7), kernel()),
            0.5,
            "7 operators on the scalar unit take 50 %",
            "add 8 f32 (/a/Add) 50 %",
            "the vector unit has no kernel for",
        ),
        (
            record(kernel(unit="scalar", label="add 8 i64"), kernel()),
            0.5,
            "1 operator on the scalar unit takes 50 %",
            "add 8 i64 (/a/Add)",
            "use int32",
        ),
        (
            record(kernel(unit="scalar", op="convolution", work={"macs": 9}, bound_cycles=40)),
            1.0,
            "1 operator on the scalar unit takes 100 %",
            "add 8 f32",
            "took 100,000 cycles; the cube's limit for them is 40: write them as MatMul",
        ),
        (
            record(kernel(), ratio=0.6, half_idle_ratio=0.53),
            0.6,
            "half of the cores idle in 53 % of the kernels' time",
            "Of 32 cores 12.8 work on average",
            "larger shapes",
        ),
        (
            record(kernel(), ratio=0.3, half_idle_ratio=0.0),
            0.3,
            "cores idle 30 % of the kernels' time",
            "have nothing to do in 0 % of that time",
            "larger shapes",
        ),
        (
            record(
                kernel(), ratio=0.8, half_idle_ratio=0.9, spared_ratio=0.5, half_spared_ratio=0.7
            ),
            0.3,
            "half of the cores idle in 20 % of the kernels' time",
            "besides the 50 % of their time for which cores were left out because to launch",
            "larger shapes",
        ),
        (
            record(kernel(op="cast"), kernel(), kernel(), kernel()),
            0.25,
            "moving and converting data takes 25 %",
            "layouts, transposes, broadcasts and copies take 25 % of the time: add 8 f32",
            "--precision fp16",
        ),
        (
            waiting(record(kernel())),
            0.5,
            "waiting for weights over the host link takes 50 %",
            "1,000 bytes come in each run",
            "--weights resident",
        ),
        (
            record(kernel(bottleneck="latency, V 20%"), kernel()),
            0.5,
            "kernels that wait for latencies take 50 %",
            "no pipe is busy",
            "fewer cores",
        ),
    ],
)
def test_rules(found: dict[str, Any], share: float, short: str, text: str, advice: str) -> None:
    (loss,) = losses(found)
    assert loss.share == pytest.approx(share)
    assert loss.short == short
    assert text in loss.text and advice in loss.advice


def test_cores_that_were_left_out_by_choice_are_no_loss() -> None:
    found = record(
        kernel(), ratio=0.7, half_idle_ratio=0.9, spared_ratio=0.68, half_spared_ratio=0.9
    )
    assert losses(found) == []


def test_the_largest_loss_comes_first_and_three_are_said() -> None:
    rows = [
        kernel(op="cast", bottleneck="latency, V 3%"),
        kernel(unit="scalar", bottleneck="scalar accesses", cycles=50_000),
    ]
    found = record(*rows, overhead_us=600, ratio=0.5, half_idle_ratio=0.5)
    found["memory"] = {"link_wait_us": 60.0, "streamed_bytes": 1000}
    shares = [loss.share for loss in losses(found)]
    assert len(shares) == len(RULES) and shares == sorted(shares, reverse=True)
    text = verdict(found)
    assert text.startswith("Launches take 80 % of the time; ") and text.count(";") == 2


def test_small_losses_are_left_out() -> None:
    assert losses(record(kernel(), kernel(op="cast", cycles=2_000))) == []


def test_on_one_core_none_idles() -> None:
    assert losses(record(kernel(), ratio=0.4, half_idle_ratio=0.4) | {"cores": 1}) == []


def test_only_scalar_kernels_of_more_than_half_are_warned_of() -> None:
    scalar = kernel(unit="scalar", bottleneck="scalar accesses")
    assert warnings_of(record(scalar, kernel())) == []
    (text,) = warnings_of(record(scalar, kernel(cycles=90_000)))
    assert "takes 53 % of the time: add 8 f32 (/a/Add) 53 %" in text and "Replace" in text


def test_longest_kernels_are_named() -> None:
    rows = [kernel(unit="scalar", label=f"op{i}", cycles=1000 * i) for i in range(1, 7)]
    (loss,) = [x for x in losses(record(*rows)) if "scalar" in x.short]
    assert "op6 (/a/Add) 29 %, op5 (/a/Add) 24 %, op4 (/a/Add) 19 % and 3 kernels more" in loss.text


def test_launches_are_given_over_the_range_of_their_cost() -> None:
    found = record(kernel(launches=30), overhead_us=300)
    found["launch_range"] = [
        {"all_cores_us": 2.5, "launch_overhead_us": 25.0, "time_us": 125.0},
        {"all_cores_us": 10.0, "launch_overhead_us": 300.0, "time_us": 400.0},
    ]
    (launches, *_) = losses(found)
    assert launches.short == (
        "launches take 75 % of the time (20 to 75 % if one on all cores takes 2.5 to 10 us)"
    )
