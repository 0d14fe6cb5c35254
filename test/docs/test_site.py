"""The documentation site builds without a warning, loads nothing from elsewhere, and fits a desk's
and a phone's width."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import davinci
from davinci import planning
from davinci.tools import picture

pytest.importorskip("furo", reason="the site needs davinci-mlir[docs]")

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING"))]
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']([^"']+)["']"""
    r"""|<link\b[^>]*\bhref=["']([^"']+)["']|url\(\s*["']?([^)"']+)|@import\s+["']([^"']+)"""
)
"""What a browser loads by itself when it opens a page or a style sheet."""


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Builds the site of the pages in `source`: warnings, broken links and pages without a place in
    it are errors. CI has no step of its own for that."""
    options = ["-q", "-W", "--keep-going", "-c", str(ROOT / "docs" / "site")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(out)]
    return subprocess.run(command, capture_output=True, text=True)


def loaded_from_elsewhere(text: str) -> list[str]:
    """Addresses with a host among those that a page or a style sheet loads."""
    found = ["".join(groups) for groups in LOADED.findall(text)]
    return [address for address in found if re.match(r"(https?:)?//", address)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    made = build(ROOT, out)
    assert made.returncode == 0, made.stderr
    return out


def test_every_page_is_there(site: Path) -> None:
    for page in PAGES:
        assert (site / page.relative_to(ROOT).with_suffix(".html")).is_file()
    assert "url=docs/README.html" in (site / "index.html").read_text()


def test_home_page_is_the_sidebar(site: Path) -> None:
    home = (ROOT / "docs" / "README.md").read_text()
    sidebar = (site / "docs" / "README.html").read_text().partition('<div class="sidebar-tree">')[2]
    sidebar = sidebar.partition("</aside>")[0]
    assert re.findall(r'caption-text">([^<]+)<', sidebar) == re.findall(r"^## (.+)", home, re.M)


def test_api_has_everything_public(site: Path) -> None:
    page = (site / "docs" / "api.html").read_text()
    public = [f"davinci.{name}" for name in davinci.__all__]
    called = [name for name in planning.__all__ if callable(getattr(planning, name))]
    public += [f"davinci.planning.{name}" for name in called]
    public += ["davinci.Executable.run", "davinci.machine.load", "davinci.zoo.build"]
    assert [name for name in public if f'id="{name}"' not in page] == []
    assert "torch.export.ExportedProgram" in page  # of a docstring
    assert "&lt;function" not in page and "ForwardRef" not in page


def test_search_is_local(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    assert '"docs/reports"' in index and "fractal" in index


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    texts = [path for kind in ("*.html", "*.css") for path in site.rglob(kind)]
    assert len(texts) > len(PAGES)
    assert {p.name: loaded_from_elsewhere(p.read_text()) for p in texts} == {
        p.name: [] for p in texts
    }


@pytest.mark.parametrize(
    "text",
    [
        '<script defer src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/x.css">',
        "@font-face { src: url(https://cdn.example/x.woff2) }",
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(text: str) -> None:
    assert loaded_from_elsewhere(text) != []


HOME = "# Documentation\n\n## Begin\n\n* [A page](page.md): is here\n"


@pytest.mark.parametrize(
    ("page", "others", "message"),
    [
        ("# A page\n\n[Nothing](nothing.md)\n", {}, "nothing.md"),
        ("# A page\n\n[No heading](#no-heading)\n", {}, "no-heading"),
        ("# A page\n\n[No heading](README.md#no-heading)\n", {}, "no-heading"),
        ("# A page\n", {"more.md": "# Not listed\n"}, "more.md"),
    ],
    ids=["page", "heading", "heading of another page", "page without a place"],
)
def test_what_is_broken_is_an_error(
    page: str, others: dict[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in {"README.md": HOME, "page.md": page, **others}.items():
        (tmp_path / "docs" / name).write_text(text)
    made = build(tmp_path, tmp_path / "out")
    assert made.returncode == 1
    assert message in made.stderr


TELL = """<script>addEventListener("load", () => {
  parent.postMessage(document.scrollingElement.scrollWidth > innerWidth, "*");
});</script>"""
SHOW = """<body><script>
const pages = %s, wide = [], frame = document.createElement("iframe");
frame.style = "border: 0; width: %dpx; height: 900px";
onmessage = (event) => {
  wide.push(event.data);
  frame.src = pages[wide.length] ?? "about:blank";
  if (wide.length == pages.length) document.body.textContent = JSON.stringify(wide);
};
frame.src = pages[0];
document.body.append(frame);
</script></body>"""
"""Shows one page after the other in a frame of a width, and then what their scripts told."""


@pytest.mark.skipif(picture.browser() is None, reason="needs chromium: apt-get install chromium")
@pytest.mark.parametrize("width", [1400, 390])
def test_no_page_is_wider_than_its_window(width: int, site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    (copy / "wide.html").write_text('<body><p style="width: 2000px">wide</p></body>')
    pages = [*sorted((copy / "docs").glob("*.html")), copy / "README.html", copy / "wide.html"]
    for page in pages:
        page.write_text(page.read_text().replace("</body>", f"{TELL}</body>"))
    outer = tmp_path / "outer.html"
    outer.write_text(SHOW % (json.dumps([page.as_uri() for page in pages]), width))
    own = ["--dump-dom", "--window-size=1500,1000", f"--user-data-dir={tmp_path / 'user'}"]
    flags = [flag for flag in picture.FLAGS.split() if "budget" not in flag]
    command = [str(picture.browser()), *flags, "--virtual-time-budget=60000", *own, outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    wide = json.loads(done.stdout.partition("<body>")[2].partition("</body>")[0])
    assert [page.name for page, too in zip(pages, wide, strict=True) if too] == ["wide.html"]
