"""Convolutions as products of unfolded windows give what convolutions do."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from convolution_support import Conv
from davinci import frontends
from davinci.hivm_out import STAGES, stage_text
from davinci.mlir import make_context
from davinci.passes.pipeline import pipelines, runner

CASES = {
    "padding": Conv(1, 20, (7, 9), 5, (3, 3), pads=((1, 1), (1, 1))),
    "steps": Conv(2, 16, (9, 8), 17, (3, 2), strides=(2, 3), pads=((1, 0), (0, 2))),
    "windows that lie apart": Conv(1, 3, (11, 9), 4, (2, 3), dilations=(3, 2)),
    "a step alone": Conv(1, 33, (7, 7), 16, (1, 1), strides=(2, 2)),
    "groups": Conv(2, 32, (6, 5), 64, (3, 3), groups=2, pads=((1, 1), (1, 1))),
    "a kernel for each channel": Conv(1, 20, (6, 7), 20, (3, 3), groups=20),
    "a ragged last group": Conv(2, 56, (5, 6), 56, (3, 3), (2, 1), groups=7, pads=((1, 1), (0, 1))),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    conv = CASES[name]
    module = frontends.load(conv.text(), make_context())
    options = pipelines.Options(machine="ascend910b")
    for stage in STAGES[:-1]:
        runner.run(module.operation, stage_text(stage, options), runner.AT_THE_END)
    text = str(module)
    assert "ascend.conv" not in text
    x, w = conv.arrays()
    (found,) = davinci.compile(text, machine="ascend910b").run(x, w).values()
    np.testing.assert_array_equal(found, conv.values(x, w))
