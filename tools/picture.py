"""Takes a picture of the report of a run in a headless Chromium.

python -m davinci.tools.picture zoo:bert-tiny docs/report.png
python -m davinci.tools.picture report.html phone.png --size 390x844 --dark
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from davinci import errors
from davinci.tools import npu_run
from davinci.tools.command import Parser, guarded

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --hide-scrollbars "
    "--virtual-time-budget=3000"
)
DARK = "--force-dark-mode"
"""Has pages find that their reader prefers dark colours."""

LEAST_WINDOW = 500
"""Pixels below which Chromium makes no window: a narrower page is a frame in one."""

TIMEOUT_SECONDS = 120


def browser() -> str | None:
    """The path of Chromium, if there is one."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def take(page: Path, picture: Path, width: int, height: int, dark: bool = False) -> None:
    """Writes a PNG of a page in a window of that many pixels.

    Args:
        page: HTML.
        picture: to be written.
        width, height: of the window, in pixels.
        dark: whether the reader prefers dark colours.

    Raises:
        InputError: there is no Chromium, or it made no picture.
    """
    program = browser()
    if program is None:
        raise errors.InputError(
            "no browser", expected=" or ".join(BROWSERS), hint="apt-get install chromium"
        )
    with tempfile.TemporaryDirectory() as folder:
        shown = page.resolve()
        if width < LEAST_WINDOW:
            shown = Path(folder) / "frame.html"
            style = f"border:0;width:{width}px;height:{height}px"
            shown.write_text(
                f'<body style="margin:0"><iframe src="{page.resolve().as_uri()}" '
                f'style="{style}"></iframe>',
                encoding="utf-8",
            )
        made = Path(folder) / "picture.png"
        window = f"--window-size={max(width, LEAST_WINDOW)},{height}"
        own = [f"--user-data-dir={folder}/user", f"--screenshot={made}"]
        colours = [DARK] if dark else []
        command = [program, *FLAGS.split(), *colours, window, *own, shown.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        if done.returncode or not made.exists():
            last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise errors.InputError("the browser made no picture", found=last[0])
        shutil.copyfile(made, picture)


def size_of(text: str) -> tuple[int, int]:
    """`1400x900` as two numbers."""
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise errors.InputError("bad size", where="--size", found=text, expected="1400x900")
    return int(width), int(height)


@guarded
def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="picture", usage="python -m davinci.tools.picture MODEL F.png [options]")
    parser.add_argument("model", metavar="MODEL", help="what npu-run takes, or a page of --report")
    parser.add_argument("picture", metavar="F.png")
    parser.add_argument("--size", default="1400x900", metavar="WxH", help="of the window")
    parser.add_argument("--dark", action="store_true", help="for a reader who prefers dark colours")
    options = parser.parse_args(argv)
    width, height = size_of(options.size)
    if options.model.endswith(".html"):
        take(Path(options.model), Path(options.picture), width, height, options.dark)
        return errors.EXIT_OK
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        code = npu_run.main([options.model, "--timing-only", "--report", str(page)])
        if code == errors.EXIT_OK:
            take(page, Path(options.picture), width, height, options.dark)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
