"""Mixtures of experts of PyTorch: products of groups of rows, and how many rows a group has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import CompileError

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")


class Grouped(torch.nn.Module):  # type: ignore[name-defined,misc]
    """Rows, sorted by their experts, times the experts' matrices."""

    def __init__(self, experts: int, depth: int, width: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.weights = torch.randn(experts, depth, width, generator=generator) / depth**0.5

    def forward(self, rows: Any, ends: Any) -> Any:
        rows, weights = rows.bfloat16(), self.weights.bfloat16()  # no other type has it on a CPU
        return torch._grouped_mm(rows, weights, offs=ends).float()


@pytest.mark.parametrize(
    ("ends", "rows"),
    [((3, 3, 20, 32, 40), 40), ((5, 9, 17), 24), ((0, *[1] * 8, 3, *[3] * 6), 4)],
    ids=["an empty group", "rows behind the last group", "few rows"],
)
def test_each_row_takes_the_matrix_of_its_group(ends: tuple[int, ...], rows: int) -> None:
    model, limits = Grouped(len(ends), 32, 48), torch.tensor(ends, dtype=torch.int32)
    x = torch.randn(rows, 32, generator=torch.Generator().manual_seed(0))
    executable = davinci.compile(model, example_inputs=(x, limits), cache=False)
    (found,) = executable.run(x.numpy(), limits.numpy()).values()
    groups = np.searchsorted(ends, np.arange(rows), side="right")
    weights = np.concatenate([model.weights.numpy(), np.zeros((1, 32, 48), np.float32)])
    wanted = np.einsum("rk,rkn->rn", x.numpy(), weights[groups])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-2)


class Counted(torch.nn.Module):  # type: ignore[name-defined,misc]
    def forward(self, x: Any) -> Any:
        return torch.histc(x.float(), bins=7, min=1, max=9)


@pytest.mark.parametrize("element", [torch.int64, torch.int32, torch.float32])
def test_values_are_counted_in_equal_parts(element: Any) -> None:
    """As PyTorch counts them: the last part has its upper end, what lies outside counts nowhere."""
    x = (torch.rand(90, generator=torch.Generator().manual_seed(2)) * 12 - 1).to(element)
    x[:4] = torch.tensor([0, 1, 9, 10])
    executable = davinci.compile(Counted(), example_inputs=(x,), cache=False)
    (found,) = executable.run(x.numpy()).values()
    np.testing.assert_array_equal(found, Counted()(x).numpy())


def test_a_range_that_only_the_values_tell_is_refused() -> None:
    class Open(torch.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any) -> Any:
            return torch.histc(x, bins=4)

    with pytest.raises(CompileError, match="histc without a range"):
        davinci.compile(Open(), example_inputs=(torch.rand(8),), cache=False)
