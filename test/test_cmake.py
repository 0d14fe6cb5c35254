"""The targets for people who come from MLIR run the commands that they name."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_targets(tmp_path: Path) -> None:
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(tmp_path)], check=True, capture_output=True)

    def commands(target: str) -> str:
        """What a target would run."""
        command = ["cmake", "--build", str(tmp_path), "--target", target, "--", "-n"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert "-m pytest -n auto\n" in commands("check-npu")
    assert """-c "__import__('lit.main').main.main()" -v test\n""" in commands("check-npu-lit")
    assert "-m davinci.tools.reference docs\n" in commands("docs")
    assert "-m sphinx -W --keep-going -c docs/site . build/site\n" in commands("site")
    assert "benchmarks/speed/matmul_strategies.py\n" in commands("bench")
