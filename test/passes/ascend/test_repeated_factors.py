"""Decode steps whose heads share keys and values: no copy of them for each head."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci import zoo
from davinci.reference import check


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
@pytest.mark.parametrize(("seq", "batch"), [(1, 1), (3, 2)])
def test_decode_step(machine: str, seq: int, batch: int) -> None:
    model = zoo.build(
        f"llama,layers=1,hidden=64,heads=4,kv_heads=2,intermediate=64,seq={seq},past=13,"
        f"batch={batch}"
    )
    inputs = model.inputs(np.random.default_rng(seq))
    executable = davinci.compile(model.proto, machine=machine)
    found = executable.run(inputs)
    check.require(check.compare(found, check.reference_onnx(model.proto, inputs)), "mixed")
    if seq == 1 or machine == "ascend910b":
        kernels = [kernel["name"] for kernel in executable.profile["kernels"]]
        assert not any(name.startswith("broadcast") for name in kernels)
