"""Kernels of Triton on the simulated Ascend 910B, as the vendor's open compilers make them.

    import davinci.triton
    report = davinci.triton.run(add_kernel, (8,), x, y, out, n, BLOCK=1024)

    davinci.triton.activate()
    add_kernel[(8,)](x, y, out, n, BLOCK=1024)
    davinci.triton.last.report("k.html")

Needs the extra `triton`: `pip install 'davinci-mlir[triton]'`.
"""

from __future__ import annotations

from davinci.triton.driver import activate, active, last, run
from davinci.triton.launch import LaunchReport
from davinci.triton.ranking import RankedConfig, Ranking

__all__ = ["LaunchReport", "RankedConfig", "Ranking", "activate", "active", "last", "run"]
