"""The walks of CONTRIBUTING.md: what they add, in a copy of the package, is compiled and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BEGIN = """
import numpy as np
import davinci

def run(text, *arrays):
    executable = davinci.compile(text)
    (found,) = executable.run(*arrays).values()
    return found, executable.profile["kernels"]

random = np.random.default_rng(0)
"""

DIAGONAL = """
for shape in ((1, 1), (3, 33, 33)):
    x = random.standard_normal(shape).astype(np.float32)
    a, b = (f"tensor<{'x'.join(map(str, sizes))}xf32>" for sizes in (shape, shape[:-1]))
    found, kernels = run(f'''func.func @main(%x: {a}) -> {b} {{
      %0 = "ascend.diagonal"(%x) : ({a}) -> {b}
      return %0 : {b}
    }}''', x)
    np.testing.assert_array_equal(found, np.diagonal(x, axis1=-2, axis2=-1))
    assert [kernel["unit"] for kernel in kernels] == ["vector"], kernels

x = random.standard_normal((40, 33)).astype(np.float32)
found, kernels = run('''func.func @main(%x: tensor<40x33xf32>) -> tensor<33xf32> {
  %t = "ascend.transpose"(%x) {permutation = array<i64: 1, 0>}
      : (tensor<40x33xf32>) -> tensor<33x40xf32>
  %s = "ascend.slice"(%t) {
      starts = array<i64: 0, 3>, limits = array<i64: 33, 36>, strides = array<i64: 1, 1>
    } : (tensor<33x40xf32>) -> tensor<33x33xf32>
  %0 = "ascend.diagonal"(%s) : (tensor<33x33xf32>) -> tensor<33xf32>
  return %0 : tensor<33xf32>
}''', x)
np.testing.assert_array_equal(found, np.diagonal(x.T[:, 3:36]))
assert len(kernels) == 1, kernels
"""
"""Alone, and as one kernel with what stands in front of it."""

ROOT_MEAN_SQUARE = """
for shape, element in (((17, 33), "f32"), ((3, 300), "f16")):
    x = random.standard_normal(shape).astype({"f32": np.float32, "f16": np.float16}[element])
    a, b = (f"tensor<{'x'.join(map(str, sizes))}x{element}>" for sizes in (shape, shape[:-1]))
    found, kernels = run(f'''func.func @main(%x: {a}) -> {b} {{
      %0 = "ascend.root_mean_square"(%x) {{dims = array<i64: 1>}} : ({a}) -> {b}
      return %0 : {b}
    }}''', x)
    wanted = np.sqrt(np.mean(np.square(x, dtype=np.float32), axis=1))
    np.testing.assert_allclose(found, wanted, 1e-3 if element == "f16" else 1e-6)
    assert [kernel["unit"] for kernel in kernels] == ["vector"], kernels

x = random.standard_normal((40, 256)).astype(np.float32)
found, kernels = run('''func.func @main(%x: tensor<40x256xf32>) -> tensor<40x256xf32> {
  %s = "ascend.exp"(%x) : (tensor<40x256xf32>) -> tensor<40x256xf32>
  %0 = "ascend.root_mean_square"(%s) {dims = array<i64: 1>}
      : (tensor<40x256xf32>) -> tensor<40xf32>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<40xf32>) -> tensor<40x256xf32>
  %2 = "ascend.div"(%s, %1) : (tensor<40x256xf32>, tensor<40x256xf32>) -> tensor<40x256xf32>
  return %2 : tensor<40x256xf32>
}''', x)
wanted = np.exp(x) / np.sqrt(np.mean(np.square(np.exp(x)), axis=1, keepdims=True))
np.testing.assert_allclose(found, wanted, 1e-5)
assert len(kernels) == 1, kernels
"""
"""Alone, and as one kernel with what stands around it."""

BESIDE = """
from davinci import machine
from davinci.schedule.products.candidates import Candidates, Wanted
from davinci.schedule.products.product import Product, ProductOperand, ProductResult

factors = (ProductOperand(False, 2, b) for b in (False, True))
product = Product(1, 2048, 64, 16, *factors, ProductResult(False, 2))
ways = Candidates(product, machine.load("ascend910"), 1, Wanted()).all()
eight = [way for way in ways if way.beside == (8, 1)]
assert eight

import json, pathlib, tempfile
text = '''func.func @main(%a: tensor<2048x64xf16>, %b: tensor<64x16xf16>) -> tensor<2048x16xf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<2048x64xf16>, tensor<64x16xf16>) -> tensor<2048x16xf16>
  return %0 : tensor<2048x16xf16>
}'''
from davinci.schedule.products import choice
choice.fastest = lambda product, ways, machine, cores: eight[0]
choice.MOST_WRITTEN = 1 << 20
a, b = (random.standard_normal(s).astype(np.float16) for s in ((2048, 64), (64, 16)))
executable = davinci.compile(text, cores=1)
(found,) = executable.run(a, b).values()
np.testing.assert_allclose(found, np.float32(a) @ np.float32(b), 1e-2, 1e-2)
assert "8x1 by turns" in executable.profile["kernels"][0]["schedule"]
"""
"""A schedule that only the rule offers computes the product."""

WALKS = {
    "python/davinci/operators/diagonal.py": DIAGONAL,
    "python/davinci/operators/root_mean_square.py": ROOT_MEAN_SQUARE,
    "python/davinci/schedule/products/rough.py": BESIDE,
}
"""What is run once the file of a walk is there, or has its lines."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds a copy of the package."""
    folder = tmp_path_factory.mktemp("clone") / "python"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python" / "davinci", folder / "davinci", ignore=ignored)
    return folder


def changed(path: str, now: str) -> str:
    """A file as its walk in CONTRIBUTING.md leaves it: the first block behind its name is all of
    it, or the lines that it loses and those that it has instead.

    Args:
        now: what it is.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text()
    block = re.search(rf"`{re.escape(path)}`.*?```(python|diff)\n(.*?)```", text, re.DOTALL)
    assert block is not None, f"no walk has {path}"
    kind, body = block.groups()
    if kind == "python":
        assert not now, "nobody asked for what a walk adds"
        return body
    lines = body.splitlines()
    old, new = ("\n".join(x[1:] for x in lines if x[0] == sign) for sign in "-+")
    assert now.count(f"\n{old}\n") == 1, f"{path} has not these lines:\n{old}"
    return now.replace(f"\n{old}\n", f"\n{new}\n")


@pytest.mark.parametrize("path", WALKS)
def test_walk(path: str, package: Path) -> None:
    file = package.parent / path
    now = file.read_text() if file.exists() else ""
    file.write_text(changed(path, now))
    try:
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + WALKS[path]],
            env={**os.environ, "PYTHONPATH": str(package)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        if now:
            file.write_text(now)
        else:
            file.unlink()
    assert done.returncode == 0, done.stderr
