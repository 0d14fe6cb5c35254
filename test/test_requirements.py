"""CI's versions are all there, and within the ranges that pyproject.toml promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_IN_CI = ("triton",)
"""Extras that CI does not install: those of the vendor's compilers take 700 MB."""

EXTRAS = PROJECT["optional-dependencies"]
LISTS = [PROJECT["dependencies"], *EXTRAS.values()]
REQUIREMENTS = [Requirement(text) for given in LISTS for text in given]
LEFT_OUT = {Requirement(text).name for name in NOT_IN_CI for text in EXTRAS[name]}
LOCKED = {
    canonicalize_name(line.partition("==")[0]): line.partition("==")[2]
    for line in (ROOT / "requirements" / "ci.txt").read_text().splitlines()
    if not line.startswith("#")
}
CI_PYTHON = {"python_version": "3.11", "python_full_version": "3.11.0"}


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_locked_version_is_in_range(requirement: Requirement) -> None:
    if requirement.name in LEFT_OUT:
        return
    if requirement.marker is None or requirement.marker.evaluate(CI_PYTHON):
        assert requirement.specifier.contains(LOCKED[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_only_mlir_is_one_version(requirement: Requirement) -> None:
    operators = {part.operator for part in requirement.specifier}
    assert operators == ({"=="} if requirement.name == "torch-mlir" else operators - {"=="})
    assert operators & {"==", ">="}
