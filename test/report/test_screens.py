"""Pictures of the page in a real browser, at a desk's width and at a phone's."""

from __future__ import annotations

import json
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from davinci import machine
from davinci.report.drawing import (
    Box,
    PlotLine,
    circle,
    crosses,
    overlap,
    places_of,
    roof_places,
    rooflines,
)
from davinci.report.page import as_html
from davinci.report.program import Kernel, ProgramFacts
from davinci.report.record import build
from davinci.tools import picture
from report_support import busy_program, launch

MACHINE = machine.load("ascend910")
DESK, PHONE = (1400, 900), (390, 844)
LABEL = "matmul 64x256x128 f16, add layer_norm and more"

in_browser = pytest.mark.skipif(
    picture.browser() is None, reason="needs chromium: apt-get install chromium"
)


def run(count: int = 8) -> tuple[dict[str, Any], list[Any]]:
    """Kernels that differ little, so that their points in the rooflines lie close together."""
    kernels, launches = {}, []
    for number in range(count):
        name = f"kernel_{number}"
        kernels[name] = Kernel("matmul", "cube", (4, 4), f"{LABEL} {number}", work={})
        launches.append(launch(name, busy_program() * (1 + number % 3), blocks=1 + number))
        nodes = (f"/encoder/layer.{number}/attention/MatMul_{number}", f"Add_{number}")
        launches[-1].operators = nodes
    record = build(launches, ProgramFacts(kernels, 0, 0, 0), MACHINE, 32)
    return {"model": "net.onnx", "precision": "mixed", **record}, launches


def pixels(png: bytes) -> tuple[int, int, bytes, set[bytes]]:
    """Width, height, the colour of the first pixel, and values of others, of a PNG of 8 bits a
    channel, not interlaced."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and kind in (2, 6)
    data, at = b"", 8
    while at < len(png):
        size, name = struct.unpack(">I4s", png[at : at + 8])
        data += png[at + 8 : at + 8 + size] if name == b"IDAT" else b""
        at += size + 12
    raw, each = zlib.decompress(data), 3 if kind == 2 else 4
    line = 1 + width * each
    starts = (i * line + 1 + k * each for i in range(0, height, 3) for k in range(width))
    found = {raw[start : start + 3] for start in starts}
    # In front of the first pixel there is nothing that a filter could add to it.
    return width, height, raw[1:4], found


@in_browser
@pytest.mark.parametrize(("size", "dark"), [(DESK, False), (DESK, True), (PHONE, True)])
def test_picture(size: tuple[int, int], dark: bool, tmp_path: Path) -> None:
    record, launches = run(3)
    page = tmp_path / "report.html"
    page.write_text(as_html(MACHINE, record, launches), encoding="utf-8")
    picture.take(page, tmp_path / "report.png", *size, dark)
    width, height, ground, colours = pixels((tmp_path / "report.png").read_bytes())
    assert (width, height) == (max(size[0], picture.LEAST_WINDOW), size[1])
    assert max(ground) < 64 if dark else min(ground) > 192, "the ground has the other brightness"
    assert len(colours) > 20, "the picture is empty"


FOUND = """
  const wide = (element) => element.scrollWidth > element.clientWidth + 1;
  const fields = [...document.querySelectorAll("button, select")];
  parent.postMessage(JSON.stringify({
    wide: document.scrollingElement.scrollWidth - innerWidth,
    kernels: wide(document.querySelector("#kernels").parentElement),
    broken: [...document.querySelectorAll("#kernels td")].filter(wide).length,
    large: fields.filter((field) => field.offsetWidth > innerWidth).length,
  }), "*");"""


def measured(page: str, size: tuple[int, int], folder: Path) -> dict[str, Any]:
    """What the script finds in a page that is shown in a frame of a size."""
    inner, outer = folder / "inner.html", folder / "outer.html"
    script = f"<script>{FOUND}</script></body>"
    inner.write_text(page.replace("</body>", script), encoding="utf-8")
    style = f"border:0;width:{size[0]}px;height:{size[1]}px"
    heard = "onmessage = (event) => { document.body.textContent = event.data; };"
    frame = f'<body><script>{heard}</script><iframe src="{inner.as_uri()}" style="{style}">'
    outer.write_text(f"{frame}</iframe></body>", encoding="utf-8")
    program = picture.browser()
    assert program is not None
    own = ["--dump-dom", "--window-size=1500,1000", f"--user-data-dir={folder / 'user'}"]
    command = [program, *picture.FLAGS.split(), *own, outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found: dict[str, Any] = json.loads(done.stdout.split("<body>")[1].split("</body>")[0])
    return found


@in_browser
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_nothing_is_clipped(size: tuple[int, int], tmp_path: Path) -> None:
    record, launches = run()
    for row in record["kernels"]:
        row["gm_read_bytes"] = row["gm_write_bytes"] = 458_630_000
        row["instructions"] = row["cycles"] = 3_309_120
        row["operators"] = [f"/encoder/attention/query/Add_{n:03d}" for n in range(253)]
        row["bottleneck"], row["unit"], row["bound_by"] = "latency, MTE2 63%", "vector", "memory"
    page = as_html(MACHINE, record, launches, baseline=run(5)[0])
    found = measured(page, size, tmp_path)
    assert found["wide"] <= 0, "the page scrolls sideways"
    assert found["broken"] == found["large"] == 0
    if size == DESK:
        assert not found["kernels"], "columns of the kernels table are cut off"


def test_names_in_rooflines_cover_nothing() -> None:
    record, _ = run()
    for chart in rooflines(record):
        boxes: list[Box] = []
        for number, roof in enumerate(chart.roofs):
            boxes += [box for label, box in roof_places(roof, number) if label == roof.label]
            circles = [circle(point) for point in chart.points]
            assert not any(overlap(box, other) for box in boxes for other in circles)
        assert len(boxes) == len(chart.roofs), "a limit has no name"
        for point in chart.points:
            if point.label is not None:
                boxes += [box for label, box in places_of(point) if label == point.label]
        assert boxes, "no point has a name"
        assert not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ((0, 30, 100, 10), True),
        ((0, 20, 100, 20), True),
        ((0, 31, 100, 31), False),
        ((0, 90, 100, 60), False),
        ((60, 20, 100, 20), False),
        ((0, 200, 100, 20), False),
    ],
)
def test_lines_through_names(line: tuple[int, int, int, int], found: bool) -> None:
    """A box from (40, 10) to (60, 30), and lines that pass through it or beside it."""
    assert crosses(PlotLine(*line), (40, 10, 60, 30)) == found


def test_a_comparison_is_part_of_the_page() -> None:
    before, launches = run(3)
    after = json.loads(json.dumps(before))
    after["kernels"][0]["cycles"] += 100
    text = as_html(MACHINE, after, launches, baseline=before)
    section = text.split('<section id="comparison">')[1].split("</section>")[0]
    assert 'class="slower"' in section and "+100" in section
    assert "2 kernels take the same cycles in both." in section
    assert '<section id="comparison">' not in as_html(MACHINE, after, launches)


@pytest.mark.parametrize("text", ["1400", "0x900", "axb", "-1x2"])
def test_bad_sizes(text: str) -> None:
    assert picture.main(["x.html", "y.png", "--size", text]) == 2
