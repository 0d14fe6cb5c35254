"""Tuning: kernels are computed in the best of the ways that timing-only simulation has seen.

    found = davinci.tune("model.onnx", cache="tuned")
    Path("schedules.json").write_text(found.text())
    davinci.compile("model.onnx", schedules="schedules.json")

The cost model lists ways to compute each kernel, the most promising first (`kernels`); some of them
are simulated (`measure`), in this process or in those of a Dask cluster (`workers`); Optuna says
which, and keeps what was measured in a database in the cache's folder (`search`).
"""

from __future__ import annotations

from davinci.tuning.tuner import Tuned, tune

__all__ = ["Tuned", "tune"]
