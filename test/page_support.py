"""Runs what a page of the documentation shows, and compares what it prints.

The blocks of a page are run in their order and in one folder, as a reader would:

* a `python` block is executed, all of a page in one namespace; a `text` block right behind it is
  what it prints;
* a `console` block has commands behind `$ `, for the shell, each with what it prints. A command
  whose output begins with `error: ` fails, the others do not;
* a `bash` block is a script that must succeed;
* a block of any language behind a paragraph that ends with "Save it as `NAME`:" is that file;
* other blocks are only read.

In outputs a line `...` stands for any lines, and `...` within a line for any text. Comments, which
readers do not see, say what is different: `<!-- not run: REASON -->` in front of a block, and
`<!-- needs: torch, jax -->` anywhere on a page that needs optional packages.

`python test/page_support.py PAGE.md` runs a page and writes the numbers that it printed into it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

from markdown_it import MarkdownIt

from davinci import simulator
from davinci.tools import npu_opt, npu_plan, npu_profile, npu_run, npu_split

RUN = ("python", "console", "bash")
NOT_RUN = re.compile(r"<!--\s*not run:\s*(.*?)\s*-->", re.DOTALL)
NEEDS = re.compile(r"<!--\s*needs:\s*([\w, ]+?)\s*-->")
SAVED = re.compile(r"[Ss]ave it as `([^`]+)`:\s*$")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
TOOLS = {
    "npu-run": npu_run.main,
    "npu-opt": npu_opt.main,
    "npu-plan": npu_plan.main,
    "npu-profile": npu_profile.main,
    "npu-split": npu_split.main,
}
SHELL_ONLY = re.compile(r"[|&;<>$*?`#\n]")


@dataclass(frozen=True)
class Step:
    """A block of a page.

    Attributes:
        language: what stands behind the fence.
        line: the number of the block's first line of text, from 1.
        file: the name that the paragraph in front of it says to save it as, or "".
        output: what the `text` block right behind a `python` block shows, or None.
        not_run: the reason not to run it, or "".
    """

    language: str
    text: str
    line: int
    file: str = ""
    output: str | None = None
    not_run: str = ""

    @property
    def runs(self) -> bool:
        return not self.not_run and (bool(self.file) or self.language in RUN)


def steps(page: str) -> list[Step]:
    """The blocks of a page, outputs of `python` blocks put to these."""
    found: list[Step] = []
    before = ""
    after_block = False
    for token in MarkdownIt("commonmark").parse(page):
        if token.type in ("inline", "html_block"):
            before, after_block = token.content, False
        elif token.type == "fence":
            language = token.info.strip()
            if language == "text" and after_block and found[-1].language == "python":
                found[-1] = replace(found[-1], output=token.content)
                continue
            assert token.map is not None
            saved, reason = SAVED.search(before), NOT_RUN.search(before)
            file = saved[1] if saved else ""
            why = reason[1] if reason else ""
            found.append(Step(language, token.content, token.map[0] + 2, file, None, why))
            before, after_block = "", True
    return found


def missing_packages(page: str) -> list[str]:
    """The optional packages that a page needs and that are not installed."""
    names = ",".join(NEEDS.findall(page)).split(",")
    return [name.strip() for name in names if name.strip() and find_spec(name.strip()) is None]


def agrees(shown: str, printed: str) -> bool:
    """Whether `printed` is what is shown, `...` standing for any lines or any text of a line;
    spaces at ends of lines do not count."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
        for line in lines
    )
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None


def with_numbers_of(shown: str, printed: str) -> str:
    """What is shown, with the numbers that were printed; unchanged where more is different."""
    lines = shown.splitlines()
    pattern = "".join(r"(?:.*\n)*?" if x.strip() == "..." else _numbers(x) + "\n" for x in lines)
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    found = re.fullmatch(pattern, text)
    if found is None:
        return shown
    pieces = iter(found.groups())
    made = (
        line if line.strip() == "..." else "...".join(next(pieces) for _ in line.split("..."))
        for line in lines
    )
    return "".join(f"{line}\n" for line in made)


def _numbers(line: str) -> str:
    """A pattern of lines that differ from this one in numbers and spaces between columns, with a
    group for each piece around `...`."""
    pieces = [NUMBER.sub("0", re.sub(r"  +", "  ", p)) for p in line.rstrip().split("...")]
    escaped = [re.escape(piece).replace("0", NUMBER.pattern) for piece in pieces]
    flexible = [piece.replace(r"\ \ ", " +") for piece in escaped]
    return ".*".join(f"({piece})" for piece in flexible)


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a `console` block, each with the output shown behind it."""
    parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", block, flags=re.MULTILINE)
    assert not parts[0].strip(), f"no command in front of {parts[0]!r}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def run_command(command: str, folder: Path) -> tuple[str, int]:
    """What a command prints, and its exit code. The project's own commands run in this process,
    which has them loaded, as long as they need no shell. Beside JAX, whose threads do not live in
    copies of this process, npu-run starts none."""
    words = shlex.split(command)
    if words and words[0] in TOOLS and not SHELL_ONLY.search(command.replace("\\\n", "")):
        out = io.StringIO()
        count = (lambda: 1) if "jax" in sys.modules else simulator.processors
        one = patch.object(simulator, "processors", count)
        with one, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = TOOLS[words[0]](words[1:])
        return out.getvalue(), code
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout, done.returncode


def outputs(
    page: Path, folder: Path, passed: Callable[[Step], None] = lambda step: None
) -> Iterator[tuple[str, str, str]]:
    """Runs a page's blocks in `folder`, which must be the working directory.

    Args:
        passed: told each block that was run or written, after it.

    Yields:
        Place, what is shown and what was printed, of all that shows an output.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in steps(page.read_text()):
        if not step.runs:
            continue
        place = f"{page.name}:{step.line}"
        if step.file:
            (folder / step.file).write_text(step.text)
        elif step.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                # Lines of tracebacks are those of the page.
                exec(compile("\n" * (step.line - 1) + step.text, str(page), "exec"), names)
            if step.output is not None:
                yield place, step.output, out.getvalue()
        elif step.language == "console":
            for command, shown in commands(step.text):
                printed, code = run_command(command, folder)
                failed = printed.startswith("error: ")
                right = (code != 0) == failed == shown.startswith("error: ")
                assert right, f"{place}: exit code {code}\n$ {command}\n{printed}"
                yield f"{place}: $ {command}", shown, printed
        else:
            printed, code = run_command(step.text, folder)
            assert code == 0, f"{place}: exit code {code}\n{printed}"
        passed(step)


def run_page(page: Path, folder: Path) -> int:
    """Runs a page's blocks in `folder`, which must be the working directory, and compares.

    Returns:
        How many blocks were run or written.
    """
    done: list[Step] = []
    for place, shown, printed in outputs(page, folder, done.append):
        assert agrees(shown, printed), f"{place}\n{printed}"
    return len(done)


def refresh(page: Path) -> list[str]:
    """Runs a page in a new folder and writes the numbers that were printed into it.

    Returns:
        The places where more than numbers is different, with what was printed.
    """
    text, different = page.read_text(), []
    page = page.resolve()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        os.environ["DAVINCI_CACHE"] = cache
        os.chdir(folder)
        for place, shown, printed in outputs(page, Path(folder)):
            made = with_numbers_of(shown, printed)
            text = text.replace(shown, made, 1)
            if not agrees(made, printed):
                different.append(f"{place}\n{printed}")
        os.chdir(here)
    page.write_text(text)
    return different


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print("\n".join(refresh(Path(name))))
