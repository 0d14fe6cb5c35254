"""What tests of kernels and networks share: compile and run a module in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import davinci

Arrays = dict[str, npt.NDArray[Any]]


def compile_text(text: str, **options: Any) -> Any:
    """Compiles MLIR text at any level; `options` are those of `davinci.compile`."""
    return davinci.compile(text, **options)


def run_text(text: str, *inputs: npt.ArrayLike, **options: Any) -> list[npt.NDArray[Any]]:
    """Compiles and runs MLIR text on the simulator; returns its outputs in order."""
    executable = compile_text(text, **options)
    arrays = dict(zip(executable.input_names, map(np.asarray, inputs), strict=True))
    return list(executable.run(arrays).values())
