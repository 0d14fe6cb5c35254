"""What pages of the documentation show is what happens: all their commands and snippets are run.

`page_support` says how. A page is run when it is listed in `PAGES`, with the number of its blocks
that are not run.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from page_support import (
    agrees,
    commands,
    missing_packages,
    refresh,
    run_page,
    steps,
    with_numbers_of,
)

ROOT = Path(__file__).parents[2]
PAGES = {
    "docs/kernels.md": 0,
    "docs/tutorial.md": 0,
    "docs/cookbook.md": 1,
    "docs/placement.md": 0,
    "docs/split-machines.md": 0,
    "docs/triton.md": 0,
}
FIGURE = re.compile(r"(\d[\d,]*[.,]\d+)(?= (?:cycles|microseconds|to \S+ microseconds))")


@pytest.mark.parametrize("name", PAGES)
def test_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / name
    missing = missing_packages(page.read_text())
    if missing:
        pytest.skip(f"{name} needs {', '.join(missing)}")
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DAVINCI_CACHE", str(tmp_path / "cache"))  # as readers have one
    assert run_page(page, folder) == sum(step.runs for step in steps(page.read_text())) > 2


@pytest.mark.parametrize(("name", "left_out"), PAGES.items())
def test_few_blocks_are_not_run(name: str, left_out: int) -> None:
    blocks = steps((ROOT / name).read_text())
    assert [step.line for step in blocks if not step.language] == [], "blocks need a language"
    not_run = [step for step in blocks if step.not_run]
    assert len(not_run) == left_out
    assert left_out <= sum(step.runs for step in blocks) / 4
    assert [step.line for step in not_run if len(step.not_run.split()) < 3] == [], "say why"
    console = [step for step in blocks if step.language == "console" and step.runs]
    assert [step.line for step in console if not commands(step.text)] == []


@pytest.mark.parametrize("name", PAGES)
def test_figures_in_sentences_are_those_of_outputs(name: str) -> None:
    """Cycles and microseconds that a sentence names are shown in an output of the page."""
    page = (ROOT / name).read_text()
    blocks = "".join(step.text + (step.output or "") for step in steps(page))
    sentences = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert [figure for figure in FIGURE.findall(sentences) if figure not in blocks] == []


def test_blocks_of_a_page() -> None:
    page = (
        "Save it as `a.txt`:\n\n```toml\nx = 1\n```\n\n"
        "<!-- not run: takes an hour -->\n```bash\nsleep 3600\n```\n\n"
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\n"
        "* In a list:\n\n  ```console\n  $ true\n  ```\n\n```text\nonly read\n```\n"
    )
    found = steps(page)
    assert [step.language for step in found] == ["toml", "bash", "python", "console", "text"]
    assert [step.runs for step in found] == [True, False, True, True, False]
    assert [step.line for step in found] == [4, 9, 13, 23, 27]
    assert (found[0].file, found[1].not_run, found[2].output) == ("a.txt", "takes an hour", "1\n")
    assert found[3].text == "$ true\n"


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(2)\n```\n\n```text\n3\n```\n",
        "```console\n$ echo 2\n3\n```\n",
        "```console\n$ echo 2 && false\n2\n```\n",
        "```console\n$ npu-run 2\n3\n```\n",
        "```bash\necho 2\nfalse\necho 3\n```\n",
    ],
)
def test_what_is_wrong_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match="2"):
        run_page(page, tmp_path)


def test_files_names_and_lines_go_from_block_to_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "Save it as `a.txt`:\n\n```text\nhello\n```\n\n```python\nx = open('a.txt').read()\n```\n\n"
        "```bash\ncat a.txt a.txt > b.txt\n```\n\n```console\n$ cat \\\n  b.txt\nhello\n...llo\n```"
        "\n\n```python\nprint(x, end='')\n```\n\n```text\nhello\n```\n"
    )
    assert run_page(page, tmp_path) == 5


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd \n", True),
        ("a\n...\nd\n", "a\nb\n", False),
        ("a ... d\n", "a b c d\n", True),
        ("a ... d\n", "a\nd\n", False),
        ("a\n", "a\nb\n", False),
        ("", "", True),
        ("", "a\n", False),
    ],
)
def test_agreement(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) == same


@pytest.mark.parametrize(
    ("shown", "printed", "made"),
    [
        ("1,024 cycles\n", "998 cycles\n", "998 cycles\n"),
        ("...\nx  10 us, ... s\n", "y\nx   9.5 us, in 3 s\n", "...\nx   9.5 us, ... s\n"),
        ("1 cycle\n", "2 apples\n", "1 cycle\n"),
        ("...\nconv 1\nsum 2\n", "conv 5\ncast\nconv 7\nsum 3\n", "...\nconv 7\nsum 3\n"),
    ],
)
def test_numbers_are_taken_over(shown: str, printed: str, made: str) -> None:
    assert with_numbers_of(shown, printed) == made


def test_refresh_writes_numbers_and_names_what_else_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAVINCI_CACHE", "")  # refresh sets it
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo 5 cycles\n4 cycles\n$ echo five\nfour\n```\n")
    (different,) = refresh(page)
    assert different == "page.md:2: $ echo five\nfive\n"
    assert page.read_text() == "```console\n$ echo 5 cycles\n5 cycles\n$ echo five\nfour\n```\n"
