"""Runs the lit suite inside pytest: lit once for all files, one result each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TEST = Path(__file__).parent
FILES = sorted(str(path.relative_to(TEST)) for path in TEST.rglob("*.mlir"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Result of each lit test by the path of its file."""
    report = tmp_path_factory.mktemp("lit") / "report.json"
    lit = [sys.executable, "-c", "from lit.main import main; main()"]
    command = [*lit, "-q", "-v", "-o", str(report), str(TEST)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert report.exists(), done.stdout + done.stderr
    tests = json.loads(report.read_text())["tests"]
    return {test["name"].split(" :: ", 1)[1]: test for test in tests}


@pytest.mark.xdist_group("lit")  # one worker, which runs lit once
@pytest.mark.parametrize("path", FILES)
def test_lit(path: str, results: dict[str, Any]) -> None:
    result = results[path]
    assert result["code"] == "PASS", result["output"]
