"""Kernels of Triton in upstream dialects, as triton-ascend's adapter makes them, for our passes.

`launch(text, grid, arguments)` makes a module that runs a kernel: its programs are a loop that the
blocks share. `convert-linalg-to-cce` lowers its operations.
"""

from __future__ import annotations

from davinci.frontends.linalg.launch import launch, parameters_of

__all__ = ["launch", "parameters_of"]
