"""Every benchmark says what it does and what it takes, and starts no work to say so."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
OPTIONAL = {
    "hivm_mutations": "triton",
    "vendor_kernels": "triton",
    "both_compilers": "triton",
    "nnsmith_coverage": "nnsmith",
    "op_db_coverage": "expecttest",
}
"""Packages that a script needs and that are no dependency of the tests."""

SCRIPTS = sorted(p for p in FOLDER.glob("*/*.py") if '__name__ == "__main__"' in p.read_text())


def call(script: Path, argument: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code of a script that is called with one argument."""
    needed = OPTIONAL.get(script.stem)
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    monkeypatch.setattr(sys, "argv", [str(script), argument])
    monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_help(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(script, "--help", monkeypatch) == 0
    said = "".join(capsys.readouterr().out.split())
    first = script.read_text().split('"""')[1].partition("\n\n")[0]
    assert said.startswith(f"usage:{script.name}")
    assert "".join(first.split()) in said
    assert call(script, "--no-such-option", monkeypatch) == 2


def test_scripts_are_found() -> None:
    assert len(SCRIPTS) >= 30
