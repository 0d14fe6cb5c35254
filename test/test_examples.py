"""The examples run as they are, and the hand-written kernel is checked as it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci.errors import DeviceFault

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[2]) < 0.01


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(1024, dtype=np.float32) for name in "xy"}


def test_hand_written_kernel() -> None:
    arrays = inputs()
    out = davinci.compile(EXAMPLES / "hand_written.mlir").run(arrays)["z"]
    np.testing.assert_array_equal(out, np.maximum(arrays["x"] + arrays["y"], 0))


def test_hand_written_kernel_without_its_barrier() -> None:
    text = (EXAMPLES / "hand_written.mlir").read_text()
    without = "\n".join(line for line in text.splitlines() if "pipe_barrier" not in line)
    with pytest.raises(DeviceFault, match="vadd"):
        davinci.compile(without).run(inputs())
