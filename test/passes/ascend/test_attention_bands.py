"""Masks of attention that are known at compile time."""

from __future__ import annotations

import numpy as np
import pytest

from attention_support import Attention
from davinci.mlir import ir, make_context
from davinci.passes.ascend.attention_bands import ends_of_added, ends_of_mask
from davinci.passes.pipeline import pipelines, runner


def test_flags_side_by_side() -> None:
    flags = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0]], np.bool_)
    found = ends_of_mask(flags, -1e30)
    assert found is not None
    assert found.runs == [2, 0, 1, 2, 1, 1, 0, 0, 0, 0]
    assert found.fill == -1e30
    assert ends_of_mask(np.array([[True, False, True]]), 0.0) is None


@pytest.mark.parametrize(
    ("mask", "runs"),
    [
        ([[0, -np.inf], [-np.inf, 0]], [2, 0, 1, 1, 1]),
        ([[5, -30000], [-30000, -30000]], [2, 0, 0, 1, 1]),
        ([[0, -20000]], None),
        ([[0, 1]], None),
        ([[-np.inf, -np.inf]], None),
        ([[0, np.nan]], None),
        ([[np.inf, 0]], None),
    ],
)
def test_numbers_that_are_added(mask: list[list[float]], runs: list[int] | None) -> None:
    """The largest of a row changes no weight, what is far less leaves none; nothing else is a
    band."""
    found = ends_of_added(np.array(mask, np.float16))
    assert (None if found is None else found.runs) == runs


@pytest.mark.parametrize(
    ("machine", "options", "banded"),
    [
        ("ascend910b", {"mask": "causal", "flags": True}, True),
        ("ascend910b", {"mask": "causal", "low": -3e4}, True),
        ("ascend910b", {"mask": "causal"}, False),  # numbers that do not hide enough
        ("ascend910b", {"mask": "causal+key", "flags": True}, False),
        ("ascend910", {"mask": "causal", "flags": True}, False),
    ],
    ids=str,
)
def test_which_masks_are_bands(machine: str, options: dict[str, object], banded: bool) -> None:
    """A band leaves no operand besides Q, K and V."""
    made = Attention(rows=40, keys=40, known=True, **options)  # type: ignore[arg-type]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(made.text())
        options = pipelines.Options(machine=machine)
        runner.run(module.operation, pipelines.text("ascend-to-memref", options))
        assert ("ascend.band" in str(module)) == banded
