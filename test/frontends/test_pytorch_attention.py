"""PyTorch's attention comes out as PyTorch computes it, also of rows of which a mask leaves
nothing, and small numbers that are added are not dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

SIZES = (1, 4, 17, 32)


class Attention(torch.nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(q, k, v, attn_mask=mask, **self.options)


def runs_right(model: Any, *inputs: Any) -> davinci.Executable:
    """The executable of a model, which gives what PyTorch computes."""
    executable = davinci.compile(model.eval(), example_inputs=inputs, cache=False)
    arrays = dict(zip(executable.input_names, (x.numpy() for x in inputs), strict=True))
    (found,) = executable.run(arrays).values()
    wanted = model(*inputs).numpy()
    np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=5e-3, atol=5e-3)
    return executable


def tensors(*shapes: tuple[int, ...], half: bool = False) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(shape, generator=generator) for shape in shapes]
    return [x.half() for x in made] if half else made


def mask_of(kind: str) -> Any:
    """Flags for scores [1, 4, 17, 17], of which the row 5 has none that is true."""
    flags = torch.arange(17 * 17).reshape(1, 1, 17, 17) % 3 != 0
    flags[:, :, 5] = False
    if kind == "flags":
        return flags
    low = -torch.inf if kind == "infinities" else torch.finfo(torch.float32).min
    return torch.where(flags, 0.0, low)


@pytest.mark.parametrize("kind", ["flags", "infinities", "lowest"])
def test_a_row_without_a_key_is_zero_or_the_mean(kind: str) -> None:
    executable = runs_right(Attention(), *tensors(SIZES, SIZES, SIZES), mask_of(kind))
    assert executable.profile["kernels"][0]["op"] == "attention"


def test_attention_of_halves_with_flags() -> None:
    runs_right(Attention(), *tensors(SIZES, SIZES, SIZES, half=True), mask_of("flags"))


@pytest.mark.parametrize(
    ("options", "shapes"),
    [
        ({"is_causal": True}, [(1, 2, 9, 16), (1, 2, 17, 16), (1, 2, 17, 16)]),
        ({"is_causal": True, "enable_gqa": True}, [(2, 4, 9, 16), (2, 2, 9, 16), (2, 2, 9, 16)]),
        ({"scale": -0.3}, [(3, 17, 16), (3, 9, 16), (3, 9, 8)]),
        ({"scale": 0.0}, [(9, 16), (9, 16), (9, 16)]),
    ],
)
def test_options_of_attention(options: dict[str, Any], shapes: list[tuple[int, ...]]) -> None:
    runs_right(Attention(**options), *tensors(*shapes))


class Weights(torch.nn.Module):  # type: ignore[name-defined,misc]
    """Weights of rows, with a number that keeps empty ones from a division of 0 by 0."""

    def forward(self, x: Any, flags: Any) -> Any:
        kept = x.abs() * flags
        return kept / (kept.sum(-1, keepdim=True) + 1e-9)


def test_a_small_number_that_is_added_stays() -> None:
    flags = torch.ones(5, 33)
    flags[2] = 0
    runs_right(Weights(), *tensors((5, 33)), flags)


class SplitHeads(torch.nn.Module):  # type: ignore[name-defined,misc]
    """Attention of four heads that are split behind a product."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.Linear(256, 768)

    def forward(self, x: Any) -> Any:
        heads = self.inner(x).reshape(1, -1, 3, 4, 64).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind(0)
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return found.transpose(1, 2).reshape(1, -1, 256)


@pytest.mark.parametrize("rows", [50, 256, 600])
def test_heads_split_on_a_split_machine(rows: int) -> None:
    """A product and attention, between which heads are not moved."""
    x = torch.randn(1, rows, 256, generator=torch.Generator().manual_seed(1))
    model = SplitHeads().eval()
    made = davinci.compile(model, example_inputs=(x,), machine="ascend910b", precision="mixed")
    (found,) = made.run(x.numpy()).values()
    with torch.no_grad():
        np.testing.assert_allclose(found, model(x).numpy(), rtol=0, atol=2e-3)
    kinds = [kernel["label"].split()[0] for kernel in made.profile["kernels"]]
    assert "attention" in kinds and "transpose" not in kinds, kinds
