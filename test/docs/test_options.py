"""Options of npu-run and pages agree: pages name all of them, and no others in its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from davinci import machine
from davinci.placement import ALGORITHMS
from davinci.tools import npu_run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
COMMAND = re.compile(r"\bnpu-run ([^`|&\n]*)")


@pytest.fixture
def usage(capsys: pytest.CaptureFixture[str]) -> str:
    assert npu_run.main(["--help"]) == 0
    return capsys.readouterr().out


def test_each_option_is_on_a_page(usage: str) -> None:
    named = set(OPTION.findall("".join(page.read_text() for page in PAGES)))
    options = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", usage, re.MULTILINE))
    assert len(options) > 50 and options - named == set()


def test_commands_of_pages_have_options_that_exist(usage: str) -> None:
    known = set(OPTION.findall(usage))
    commands = [c for page in PAGES for c in COMMAND.findall(page.read_text())]
    found = {option for command in commands for option in OPTION.findall(command)}
    assert len(found) > 20 and found - known == set()


def test_help_names_machines_and_placements(usage: str) -> None:
    words = set(re.findall(r"[\w:]+", usage))
    assert {*machine.names(), *ALGORITHMS} - words == set()
