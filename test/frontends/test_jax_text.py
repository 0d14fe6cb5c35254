"""Texts as `jax.jit(f).lower(..).as_text()` writes them, unchanged, against the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import arrays, frontends
from davinci.mlir import make_context
from davinci.reference import check, interpreter

TEXTS = sorted((Path(__file__).parent / "jax").glob("*.txt"))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_a_text_of_jax(path: Path) -> None:
    executable = davinci.compile(path.read_text())
    inputs = arrays.random_inputs(executable.inputs, seed=len(path.stem))
    outputs = executable.run(inputs)
    module = frontends.load(path.read_text(), make_context())
    wanted = interpreter.reference(module, inputs, executable.output_names)
    assert [(x.dtype, x.shape) for x in outputs.values()] == [
        (x.dtype, x.shape) for x in wanted.values()
    ]
    check.require(check.compare(outputs, wanted), "mixed")
    assert any(np.any(x) for x in wanted.values())
