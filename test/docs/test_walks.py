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

WALKS = {"python/davinci/operators/diagonal.py": DIAGONAL}
"""What is run once a file of a walk is there."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds a copy of the package."""
    folder = tmp_path_factory.mktemp("clone") / "python"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python" / "davinci", folder / "davinci", ignore=ignored)
    return folder


def code_of(path: str) -> str:
    """The first block of Python behind the name of a file in CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    block = re.search(rf"`{re.escape(path)}`.*?```python\n(.*?)```", text, re.DOTALL)
    assert block is not None, f"no walk has {path}"
    lines = block[1].splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "".join(f"{line[indent:]}\n" for line in lines)


@pytest.mark.parametrize("path", WALKS)
def test_walk(path: str, package: Path) -> None:
    file = package.parent / path
    assert not file.exists(), "nobody asked for what a walk adds"
    file.write_text(code_of(path))
    try:
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + WALKS[path]],
            env={**os.environ, "PYTHONPATH": str(package)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        file.unlink()
    assert done.returncode == 0, done.stderr
