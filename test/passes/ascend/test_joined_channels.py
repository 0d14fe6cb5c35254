"""Channels of images joined: between convolutions in nz, in place where the arrays allow it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from convolution_support import Array, Conv
from pairs import all_pairs
from support import compile_text

PADDED = ((1, 1), (1, 1))


def network(batch: int, channels: tuple[int, int], twice: bool) -> tuple[str, Conv, Conv, Conv]:
    """Two convolutions beside each other; a third one of both, of the first again if `twice`."""
    image = (5, 7)
    first, second = (Conv(batch, 16, image, c, (3, 3), pads=PADDED) for c in channels)
    total = sum(channels) + twice * channels[0]
    last = Conv(batch, total, image, 16, (1, 1))
    x, v, w, u = (
        f"tensor<{'x'.join(map(str, shape))}xf32>"
        for shape in (*first.shapes, second.shapes[1], last.shapes[1])
    )
    a, b, joined, all_ = (f"tensor<{batch}x{c}x5x7xf32>" for c in (*channels, sum(channels), total))
    more = f"%4 = stablehlo.concatenate %2, %0, dim = 1 : ({joined}, {a}) -> {all_}"
    y = f"tensor<{'x'.join(map(str, last.result))}xf32>"
    text = f"""
    func.func @main(%x: {x}, %v: {v}, %w: {w}, %u: {u}) -> {y} {{
      %0 = {first.call("%x", "%v")}
      %1 = {second.call("%x", "%w")}
      %2 = stablehlo.concatenate %0, %1, dim = 1 : ({a}, {b}) -> {joined}
      {more if twice else ""}
      %3 = {last.call("%4" if twice else "%2", "%u")}
      return %3 : {y}
    }}"""
    return text, first, second, last


def sparse(w: Array, seed: int) -> Array:
    """Few small numbers, so that what is made of them is whole in f16."""
    kept = np.random.default_rng(seed).random(w.shape) < 0.1
    return (np.sign(w) * kept).astype(np.float32)


def run(text: str, convs: list[Conv], twice: bool, **options: Any) -> Any:
    x, _ = convs[0].arrays()
    weights = [sparse(c.arrays()[1], i) for i, c in enumerate(convs)]
    executable = compile_text(text, **options)
    given = {"arg0": x, **{f"arg{i + 1}": w for i, w in enumerate(weights)}}
    (found,) = executable.run(given).values()
    parts = [convs[0].values(x, weights[0]), convs[1].values(x, weights[1])]
    joined = np.concatenate([*parts, *parts[: int(twice)]], 1)
    np.testing.assert_array_equal(found, convs[2].values(joined, weights[2]))
    return [one["kernel"] for one in executable.profile["launches_list"]]


@pytest.mark.parametrize(
    ("batch", "channels", "twice", "options"),
    all_pairs(
        [1, 2],
        [(16, 32), (32, 17), (20, 16), (1, 1)],
        [False, True],
        [{}, {"fusion": "none"}, {"precision": "fp16"}],
    ),
    ids=str,
)
def test_joined(
    batch: int, channels: tuple[int, int], twice: bool, options: dict[str, Any]
) -> None:
    text, *convs = network(batch, channels, twice)
    run(text, convs, twice, **options)


def test_in_place() -> None:
    """Whole blocks: no kernel joins them; of one image what is joined twice is copied once."""
    for batch, twice, more in ((1, False, 0), (1, True, 1), (3, False, 0)):
        text, *convs = network(batch, (16, 32), twice)
        names = run(text, convs, twice)
        places = [i for i, name in enumerate(names) if "conv" in name]
        assert len(places) == 3 and places[2] - places[0] == 2 + more, names
        assert sum("copy" in name for name in names) == more
