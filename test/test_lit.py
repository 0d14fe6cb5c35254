"""Runs the lit suite inside pytest: lit itself on the files of the command line tools, whose lines
have all that others have, and print what only a process of its own catches; the lines of the others
in this process. `check-npu-lit` runs lit on all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from run_lines import run_lines

TEST = Path(__file__).parent
TOOLS = TEST / "tools"
FILES = sorted(str(path.relative_to(TEST)) for path in TEST.rglob("*.mlir") if path.parent != TOOLS)


@pytest.mark.parametrize("path", FILES)
def test_run_lines(path: str, tmp_path: Path) -> None:
    run_lines(TEST / path, tmp_path / "output")


def test_lit() -> None:
    lit = [sys.executable, "-c", "from lit.main import main; main()"]
    command = [*lit, "-q", "-v", str(TOOLS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_line_that_fails_is_found(tmp_path: Path) -> None:
    file = tmp_path / "a.mlir"
    for line in (
        "npu-opt %s --no-such-pass",
        "npu-opt %s | FileCheck %s",
        "not npu-opt %s",
        "npu-opt %s > %t",
        "npu-opt %s && npu-opt %s",
    ):
        file.write_text(f"// RUN: {line}\n// CHECK: nothing like it\nmodule {{}}\n")
        with pytest.raises(AssertionError, match=r"exit code|not known"):
            run_lines(file, tmp_path / "output")
    file.write_text("module {}\n")
    with pytest.raises(AssertionError, match="no RUN line"):
        run_lines(file, tmp_path / "output")
