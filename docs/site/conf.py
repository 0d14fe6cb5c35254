"""Configuration of the documentation site, for Sphinx:

    sphinx-build -W --keep-going -c docs/site . build/site

The source folder is the repository itself, so that pages link to each other as they do on GitHub.
The home page is `docs/README.md`, and the sidebar is what that page lists: a section is a group, a
link at the start of a list item is a page. A page that is not listed, and a link to a page, a
heading or a file that is not there, are warnings, which `-W` makes errors.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

SITE = Path(__file__).parent
ROOT = SITE.parent.parent
sys.path[:0] = [str(SITE), str(ROOT / "python")]

from mlir_lexer import MlirLexer  # noqa: E402

import davinci  # noqa: E402

project = "davinci-mlir"
version = release = davinci.__version__
project_copyright = ""

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/README"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md"]
templates_path = ["templates"]
highlight_language = "text"
default_role = "code"
smartquotes_action = "D"  # dashes, but quotes as they are
toc_object_entries_show_parents = "hide"

myst_heading_anchors = 6

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["torch"]
napoleon_attr_annotations = False
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = "davinci-mlir"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_additional_pages = {"index": "to_home.html"}

SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
PAGE = re.compile(r"^[*-] \[([^\]]+)\]\(([^):#]+\.md)\)", re.MULTILINE)

ARRAY = re.compile(r"[~\w.]*ndarray\[tuple\[[^\]]*\], [~\w.]*dtype\[[^\]]*\]\]")


def navigation(home: str) -> str:
    """The hidden tables of contents that the home page's own lists amount to."""
    _, *parts = SECTION.split(home)
    tables = []
    for caption, text in zip(parts[::2], parts[1::2], strict=True):
        pages = [f"{title} <{page}>" for title, page in PAGE.findall(text)]
        if pages:
            lines = ["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""]
            tables.append("\n".join(lines))
    return "\n".join(tables)


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        source[0] += "\n" + navigation(source[0])


def unlink_folders(app: Sphinx, page: nodes.document) -> None:
    """Links to folders of the repository, which only GitHub shows, become plain text."""
    here = Path(page["source"]).parent
    for link in list(page.findall(addnodes.pending_xref)):
        if link.get("reftype") == "myst" and (here / link["reftarget"]).is_dir():
            link.replace_self(link.children)


def tidy_signature(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    arguments: str | None,
    result: str | None,
) -> tuple[str | None, str | None]:
    """Classes whose objects functions return are shown without the arguments of their constructor,
    records, which users may make, with them; arrays without their type parameters."""
    if what == "class" and not dataclasses.is_dataclass(obj):
        return "", None
    return arguments, result and ARRAY.sub("numpy.ndarray", result)


def setup(app: Sphinx) -> None:
    app.add_lexer("mlir", MlirLexer)
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", unlink_folders)
    app.connect("autodoc-process-signature", tidy_signature)
