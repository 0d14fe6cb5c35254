"""Cycles of known programs, kept in test/golden/cycles.json: a change of speed is a visible diff.

    UPDATE_GOLDEN=1 pytest test/test_golden_cycles.py

writes the file anew.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import davinci
from davinci import arrays, zoo

FILE = Path(__file__).parent / "golden" / "cycles.json"

NZ = '#ascend.layout<"nz">'
A, B = f"tensor<256x256xf16, {NZ}>", f"tensor<256x128xf16, {NZ}>"
C = f"tensor<256x128xf32, {NZ}>"
MATMUL = f"""
func.func @main(%a: {A}, %b: {B}) -> {C} {{
  %c = "ascend.matmul"(%a, %b) : ({A}, {B}) -> {C}
  return %c : {C}
}}
"""
"""256 x 256 by 256 x 128."""

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "mlp": ("zoo:mlp", {"launches": "many"}),
    "bert-tiny": ("zoo:bert-tiny", {"launches": "many"}),
    "bert-tiny in one launch": ("zoo:bert-tiny", {}),
    **{f"matmul {way}": (MATMUL, {"matmul_strategy": way}) for way in ("os", "is", "ws")},
    **{
        f"matmul {way}, 1 core": (MATMUL, {"matmul_strategy": way, "cores": 1})
        for way in ("os", "is", "ws")
    },
}


@cache
def cycles(name: str, timing_only: bool = True) -> dict[str, list[int]]:
    """Cycles of every launch, by kernel."""
    model, options = CASES[name]
    if model.startswith("zoo:"):
        model = zoo.build(model.removeprefix("zoo:")).proto
    executable = davinci.compile(model, timing_only=timing_only, **options)
    executable.run(arrays.random_inputs(executable.inputs, seed=0))
    found: dict[str, list[int]] = {}
    for launch in executable.launches:
        found.setdefault(launch.name, []).append(launch.cycles)
    return found


@pytest.mark.parametrize("name", CASES)
def test_cycles(name: str) -> None:
    found = cycles(name)
    golden = json.loads(FILE.read_text()) if FILE.exists() else {}
    if os.environ.get("UPDATE_GOLDEN"):
        golden[name] = found
        text = json.dumps(golden, indent=1, sort_keys=True)
        FILE.write_text(text + "\n")
        return
    changed = {
        kernel: (golden[name].get(kernel), found.get(kernel))
        for kernel in sorted({*golden[name], *found})
        if golden[name].get(kernel) != found.get(kernel)
    }
    assert not changed, "(golden, now) by kernel; UPDATE_GOLDEN=1 accepts the new ones"


@pytest.mark.parametrize("name", ["mlp", "bert-tiny"])
def test_times_do_not_need_data(name: str) -> None:
    assert cycles(name) == cycles(name, timing_only=False)
