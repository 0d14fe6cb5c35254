"""Kernels of AscendNPU-IR, the vendor's open compiler: text of its dialect `hivm.hir` in and out.

`launch(text, grid, arguments)` makes a module that runs a kernel; `convert-hir-to-hivm` lowers its
operations. `written` prints a kernel of ours, after `convert-cce-to-hir`.
"""

from __future__ import annotations

from davinci.frontends.hivm.kernel import Argument, HivmKernel, kernels_of
from davinci.frontends.hivm.launch import Given, launch, marked
from davinci.frontends.hivm.text import is_hivm, is_renamed, parse
from davinci.frontends.hivm.write import written

__all__ = [
    "Argument",
    "Given",
    "HivmKernel",
    "is_hivm",
    "is_renamed",
    "kernels_of",
    "launch",
    "marked",
    "parse",
    "written",
]
