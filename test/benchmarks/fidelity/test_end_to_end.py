"""Figures of networks beside boards, made of times that others found."""

from __future__ import annotations

from typing import Any

import pytest


def test_scores_apart_are_added_once_a_layer(
    benchmark_script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = benchmark_script("end_to_end")
    times = {"all,-attention": 13.0, "all": 10.0}
    monkeypatch.setattr(script, "layer_us", lambda anchor, rewrites: times[rewrites])
    anchor = script.Anchor("ascend310p", "a network", "n", 2, 10_000, scores_apart=True)
    found = script.Found(anchor, 150.0, 10.0, 1, {}, 160.0)
    assert script.scores_apart(found) == ("| a network | 2 | 200 | 160 | -20.0% | 196 | -2.0% |")


def test_scores_are_apart_where_the_vendor_has_one_kernel(benchmark_script: Any) -> None:
    """In networks whose rewrites leave attention whole."""
    script = benchmark_script("end_to_end")
    shown = [anchor for anchor in script.ANCHORS if anchor.scores_apart]
    assert [anchor.batch for anchor in shown] == [16, 4]
    assert all(anchor.rewrites == "all" for anchor in shown)
