"""The page: what is in it, and in a real browser, that it is drawn."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine
from davinci.report.drawing import rooflines
from davinci.report.page import as_html, cores_at_work, models
from davinci.report.record import Kernel, ProgramFacts, bottleneck, build
from davinci.report.tables import COLUMNS
from davinci.simulator import LaunchProfile
from report_support import MTE2, V, busy_program, copy_in, dup, flag, launch

MACHINE = machine.load("ascend910")
SPLIT = Path(__file__).parents[2] / "examples" / "split_matmul_add.mlir"
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --enable-logging=stderr "
    "--virtual-time-budget=3000 --dump-dom"
)
FRAMES = "<script>requestAnimationFrame = (paint) => setTimeout(paint, 16);</script>"
"""A browser without a screen may leave frames out, timers not."""

SCREEN = (1400, 900)


@pytest.fixture(scope="module")
def launches() -> list[LaunchProfile]:
    first = launch("busy<k>", busy_program(), blocks=2)
    first.operators = tuple(f"/a<b>/Node_{i}" for i in range(20))
    return [first, launch("small", busy_program()[:3])]


@pytest.fixture(scope="module")
def page(launches: list[LaunchProfile]) -> str:
    kernels = {"busy<k>": Kernel("matmul", "cube", (4, 4)), "small": Kernel("add", "vector", (4,))}
    record = build(launches, ProgramFacts(kernels, 0, 0, 0), MACHINE, 32)
    return as_html(MACHINE, {"model": "</script><b>", **record}, launches)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    result: dict[str, Any] = json.loads(found[1])
    return result


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    assert not re.search(r"(src|href)=|url\(|@import|https?://", page)


def test_names_are_escaped(page: str) -> None:
    assert "<b>" not in page and "busy<k>" not in page
    assert "busy&lt;k&gt;" in page
    assert "/a&lt;b&gt;/Node_0, " in page and "/a<b>" not in page
    assert set(data_of(page)) == {"busy<k>", "small"}


def test_data(page: str, launches: list[LaunchProfile]) -> None:
    (kernel,) = data_of(page)["busy<k>"]
    mine = [row for row in launches[0].rows if row.block == 0]
    assert kernel["instructions"] == len(kernel["rows"]) == len(mine)
    assert kernel["lanes"] == ["SCALAR", "MTE1", "MTE2", "MTE3", "CUBE", "VECTOR"]
    assert kernel["path"][-1][1] == kernel["cycles"] == launches[0].per_block[0].cycles
    for pipe in kernel["waits"]:
        kinds, causes = pipe["kinds"], sum(cycles for _, _, cycles in pipe["causes"])
        assert sum(kinds.values()) == kernel["cycles"]
        assert kinds.get("run", 0) + causes + kinds.get("done", 0) == kernel["cycles"]
    assert sum(cycles for _, cycles in kernel["shares"]) == kernel["cycles"]
    causes = [cause[0] for pipe in kernel["waits"] for cause in pipe["causes"]]
    assert "flag from MTE2, event 0, set after copy_gm_to_ubuf" in causes
    assert "flag from MTE2 to VECTOR, event 0" in [step[2] for step in kernel["path"]]


def test_long_kernels_are_cut_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("davinci.report.timeline.MOST_OF_A_KERNEL", 5)
    profile = launch("k", busy_program())
    record = build([profile], ProgramFacts({"k": Kernel("k", "vector")}, 0, 0, 0), MACHINE, 32)
    (kernel,) = data_of(as_html(MACHINE, record, [profile]))["k"]
    assert len(kernel["rows"]) == 5 and kernel["instructions"] == len(profile.rows)


def test_no_kernel_stands_above_the_roofs() -> None:
    """32 cores that read what the L2 has are faster than global memory, not than the L2."""
    vector = [copy_in(), copy_in(), *flag(MTE2, V), dup(20)]
    launches = [launch("k", [copy_in()] * 8 + vector, blocks=32)]
    record = build(launches, ProgramFacts({"k": Kernel("k", "vector")}, 0, 0, 0), MACHINE, 32)
    (chart,) = rooflines(record)
    slopes = {line.text: line for line in chart.roofs if line.y1 != line.y2}
    assert set(slopes) == {"L2 bandwidth", "GM bandwidth"}
    roof, (point,) = slopes["L2 bandwidth"], chart.points
    part = (point.x - roof.x1) / (roof.x2 - roof.x1)
    assert point.y > roof.y1 + part * (roof.y2 - roof.y1), "pixels count downwards"


def test_a_run_without_timelines_has_a_page() -> None:
    profile = launch("k", busy_program(), timeline=False)
    record = build([profile], ProgramFacts({"k": Kernel("k", "vector")}, 0, 0, 0), MACHINE, 32)
    assert data_of(as_html(MACHINE, record, [profile])) == {}


@pytest.fixture(scope="module")
def split_page() -> str:
    """Of a kernel whose first block has programs on a cube core and two vector cores."""
    executable = davinci.compile(str(SPLIT), machine="ascend910b")
    inputs = {spec.name: np.ones(spec.shape, spec.dtype) for spec in executable.inputs}
    executable.run(inputs, timeline="first")
    return as_html(executable.machine, executable.profile, executable.launches)


def test_each_core_of_a_block_is_told_apart(split_page: str) -> None:
    cores = {kernel["core"]: kernel for kernel in data_of(split_page)["matmul"]}
    assert list(cores) == ["core 0 AIC", "core 0 AIV0", "core 0 AIV1"]
    assert "FIXP" in cores["core 0 AIC"]["lanes"] and "VECTOR" not in cores["core 0 AIC"]["lanes"]
    assert "VECTOR" in cores["core 0 AIV1"]["lanes"]


def test_shares_of_a_pipe_count_the_cores_that_have_it() -> None:
    """Of the three cores of each block only one has a cube; its share is that of this one."""
    executable = davinci.compile(str(SPLIT), machine="ascend910b")
    executable.run({x.name: np.ones(x.shape, x.dtype) for x in executable.inputs})
    (launch,), record = executable.launches, executable.profile
    for pipe, cores in (("PIPE_M", 2), ("PIPE_V", 4), ("PIPE_MTE2", 6)):
        share = launch.pipes[pipe] / (launch.cycles * cores)
        assert record["pipes"][pipe]["ratio"] == pytest.approx(share)
    assert record["limits"]["vector_repeats"] == 48


def test_a_wait_for_another_core_is_no_work(split_page: str) -> None:
    vector = data_of(split_page)["matmul"][1]
    scalar = next(pipe for pipe in vector["waits"] if pipe["lane"] == "SCALAR")
    assert "run" not in scalar["kinds"]
    assert scalar["causes"][0][0] == "flag from another core, event 0"
    assert "flag from another core, event 0" in [step[2] for step in vector["path"]]


class Elements(HTMLParser):
    """Counts the elements of a page and keeps the attributes of some."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [
            attributes
            for name, attributes in self.found
            if name == tag and wanted.items() <= attributes.items()
        ]


def shown(page: str, folder: Path, size: tuple[int, int] = (1280, 2000)) -> str:
    """The elements of a page after its scripts have run; none may have failed."""
    file = folder / "report.html"
    file.write_text(page.replace("<head>", f"<head>{FRAMES}"), encoding="utf-8")
    assert BROWSER is not None
    window = "--window-size={},{}".format(*size)
    command = [BROWSER, *FLAGS.split(), window, f"--user-data-dir={folder / 'user'}", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return done.stdout


in_browser = pytest.mark.skipif(BROWSER is None, reason="needs chromium: apt-get install chromium")


@in_browser
@pytest.mark.parametrize(
    ("column", "clicks", "first"),
    [(0, 1, "busy<k>"), (0, 2, "small"), (5, 1, "small"), (5, 2, "busy<k>")],
)
def test_sorting(column: int, clicks: int, first: str, page: str, tmp_path: Path) -> None:
    """A click sorts names upwards and numbers downwards; by cycles they are sorted already."""
    click = f"document.querySelectorAll('#kernels th')[{column}].click();"
    text = shown(page.replace("</body>", f"<script>{click * clicks}</script></body>"), tmp_path)
    rows = [row for row in Elements(text).of("tr") if "data-kernel" in row]
    assert len(rows) == 2
    assert rows[0]["data-kernel"] == first


@in_browser
def test_every_column_sorts(page: str, tmp_path: Path) -> None:
    """Two clicks on a heading, or Enter and a click, give opposite orders of different values."""
    script = """
      const rows = () => [...document.querySelectorAll("#kernels tbody tr")];
      const found = [...document.querySelectorAll("#kernels th")].map((heading, column) => {
        const keys = () => rows().map((row) => row.cells[column].dataset.key).join("|");
        heading.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
        const once = [keys(), heading.ariaSort];
        heading.click();
        return [...once, keys(), heading.ariaSort];
      });
      document.body.dataset.found = JSON.stringify(found);"""
    text = shown(page.replace("</body>", f"<script>{script}</script></body>"), tmp_path)
    found = json.loads(Elements(text).of("body")[0]["data-found"] or "")
    assert len(found) == len(COLUMNS)
    for once, first, twice, second in found:
        assert {first, second} == {"ascending", "descending"}
        assert once.split("|") == twice.split("|")[::-1]


@in_browser
def test_keys_zoom_and_the_choice_of_a_core(split_page: str, tmp_path: Path) -> None:
    script = """
      const core = document.getElementById("core");
      const seen = [core.selectedOptions[0].textContent];
      core.value = 0;
      core.dispatchEvent(new Event("change"));
      seen.push(document.getElementById("drawn").textContent, view.join());
      for (const key of ["+", "+", "ArrowRight", "-", "Home"]) {
        canvas.dispatchEvent(new KeyboardEvent("keydown", {key}));
        seen.push(view.join());
      }
      canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, cancelable: true}));
      seen.push(view.join());
      document.body.dataset.seen = JSON.stringify(seen);"""
    text = shown(split_page.replace("</body>", f"<script>{script}</script></body>"), tmp_path)
    seen = json.loads(Elements(text).of("body")[0]["data-seen"] or "")
    assert seen[0] == "core 0 AIV0", "not the core that ends last"
    assert "on core 0 AIC:" in seen[1]
    *views, home, wheel = seen[2:]
    assert len({*views}) == len(views) == 5
    assert home == views[0] != wheel


@in_browser
def test_everything_is_drawn(page: str, tmp_path: Path) -> None:
    text = shown(page, tmp_path)
    elements = Elements(text)
    assert elements.of("html", **{"data-ready": "yes"}), "the script did not reach its end"
    assert len(elements.of("tr", **{"data-kernel": "busy<k>"})) == 1
    assert len(elements.of("circle")) == 2, "the roofline has no points"
    (canvas,) = elements.of("canvas", id="timeline")
    assert int(canvas["data-drawn"] or 0) > 10, "the timeline is empty"
    for table in ("waits", "path", "shares"):
        body = text.split(f'<table id="{table}"')[1].split("</table>")[0]
        assert body.count("<tr") > 3, f"table {table} is empty"
    assert "copy_gm_to_ubuf" in text
    assert len(elements.of("option")) == 3, "two kernels and a core"


@pytest.mark.parametrize(
    ("busy", "words"), [(79, "latency, V 79%"), (80, "V 80%"), (79.6, "V 80%")]
)
def test_bottleneck(busy: float, words: str) -> None:
    row = {"unit": "vector", "pipes": {"PIPE_V": busy}, "pipe_cycles": {"PIPE_V": 100}}
    assert bottleneck(row) == words


def network_page(count: int, overhead_us: float = 10.0) -> str:
    """Of a run of so many launches, of kernels of three units in layers of 40 launches."""
    model = launch("k", busy_program(), blocks=3, timeline=False)
    profiles, kernels = [], {}
    for i in range(count):
        name, layer = f"kernel_{i % 37}", i // 40
        unit = ("cube", "vector", "vector", "scalar")[i % 37 % 4]
        label = f"operator{i % 37} 1x128x768 -> 128x12x64x{i % 37} f32"
        kernels[name] = Kernel(f"operator{i % 37}", unit, (4,), label)
        node = f"/encoder/layer.{layer}/attention/self/Operator_{i}"
        profiles.append(replace(model, name=name, operators=(node,)))
    record = build(profiles, ProgramFacts(kernels, 0, 0, 0), MACHINE, 32)
    return as_html(MACHINE, {"model": "net.onnx", "precision": "mixed", **record}, profiles)


GEOMETRY = """
  const box = (element) => {
    const {left, top, right, bottom} = element.getBoundingClientRect();
    return {left, top: top + scrollY, right, bottom: bottom + scrollY};
  };
  const run = document.getElementById("run"), [x, y] = [box(run).left, box(run).top - scrollY];
  const pixels = run.getContext("2d").getImageData(0, 0, run.width, run.height).data;
  const colours = new Set();
  for (let i = 0; i < pixels.length; i += 4) colours.add(pixels.slice(i, i + 3).join());
  const at = x + 84 + (run.clientWidth - 84) * WHERE;
  run.dispatchEvent(new PointerEvent("pointermove", {clientX: at, clientY: y + 60}));
  document.body.dataset.found = JSON.stringify({
    wide: document.scrollingElement.scrollWidth,
    verdict: box(document.querySelector(".verdict")),
    sections: [...document.querySelectorAll("header, section")].filter((x) => !x.hidden).map(box),
    operators: box(document.querySelector("#groups .bars")),
    network: box(run),
    drawn: Number(run.dataset.drawn),
    colours: colours.size,
    hint: document.getElementById("launch").textContent,
    bars: [...document.querySelectorAll("#groups .name")].map((name) =>
      [box(name).right, box(name.nextElementSibling).left]),
  });"""


@in_browser
@pytest.mark.parametrize("count", [1, 1000])
def test_verdict_operators_and_the_run_are_on_the_first_two_screens(
    count: int, tmp_path: Path
) -> None:
    """In a window of 1400 x 900; and nothing covers anything else."""
    script = GEOMETRY.replace("WHERE", "0.99999")
    page = network_page(count).replace("</body>", f"<script>{script}</script></body>")
    found = json.loads(Elements(shown(page, tmp_path, SCREEN)).of("body")[0]["data-found"] or "")
    width, height = SCREEN
    assert found["wide"] <= width, "the page scrolls sideways"
    assert found["verdict"]["bottom"] < height / 2
    assert found["network"]["bottom"] < 2 * height
    assert found["operators"]["bottom"] < 2 * height
    for above, below in pairwise(found["sections"]):
        assert above["bottom"] <= below["top"] + 1, "sections overlap"
    for name, track in found["bars"]:
        assert name < track, "a name covers its bar"
    assert found["drawn"] == count and found["colours"] > 5
    lines = found["hint"].split("\n")
    number = int(lines[0].rpartition("_")[2])
    assert count - 3 <= number < count, "a launch at the right edge, a pixel or two away"
    assert lines[0].startswith(f"operator{number % 37} ")
    assert "cycles on the" in lines[1] and "of 32 cores at work" in lines[1]


def test_the_page_opens_with_the_verdict() -> None:
    page = network_page(1000)
    body = page.split("<body>")[1]
    places = [
        body.index(text)
        for text in ('class="verdict">Launches take', "what to try", 'id="run"', "Time by operator")
    ]
    assert places == sorted(places)
    assert "Give each launch more to do" in body
    assert "Time by layer" in body and ">6 others<" in body


def test_kernels_of_one_launch_are_drawn_on_their_own_cores() -> None:
    """Cores that no kernel of the launch takes are idle once, and not at work for one of them."""
    program, kernels = busy_program(), {}
    first, second = launch("a", program, blocks=20), launch("b", program * 2, blocks=8)
    second.begins_launch = False
    for number, (name, one) in enumerate((("a", first), ("b", second))):
        kernels[name] = Kernel("add", "vector", (4, 4), f"add {number}")
        one.operators = (f"Add_{number}",)
    record = build([first, second], ProgramFacts(kernels, 0, 0, 0), MACHINE, 32)
    parts = [cores_at_work(row, 1) for row in record["kernels"]]
    assert parts == pytest.approx([8, 20])
    assert sum(parts) <= record["cores"]


def test_the_heading_names_the_models_of_all_runs() -> None:
    runs = [{"model": name} for name in ("GraphModule", "/a/add.mlir", "GraphModule", None)]
    assert models({"model": "GraphModule, /a/add.mlir", "runs": runs}) == "GraphModule, add.mlir"
    assert models({"model": "/a/net.onnx"}) == "net.onnx"
    assert models({"model": ""}) == models({}) == "a program"


def test_a_run_of_nothing_has_a_page() -> None:
    record = build([], ProgramFacts({}, 0, 0, 0), MACHINE, 32)
    assert "Nothing was launched." in as_html(MACHINE, record, [])


@in_browser
def test_the_whole_run_zooms_and_chooses(page: str, tmp_path: Path) -> None:
    """A click on a launch chooses its kernel below; zooming in leaves launches out."""
    script = """
      const run = document.getElementById("run"), place = run.getBoundingClientRect();
      const seen = [run.dataset.drawn];
      const at = {clientX: place.right - 2, clientY: place.top + 60};
      run.dispatchEvent(new PointerEvent("click", at));
      seen.push(document.getElementById("choice").value);
      for (let i = 0; i < 30; i += 1) run.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
      const drawn = new MutationObserver(() => {
        document.body.dataset.seen = JSON.stringify([...seen, run.dataset.drawn]);
      });
      drawn.observe(run, {attributes: true, attributeFilter: ["data-drawn"]});"""
    text = shown(page.replace("</body>", f"<script>{script}</script></body>"), tmp_path)
    seen = json.loads(Elements(text).of("body")[0]["data-seen"] or "")
    assert seen[0] == "2" and seen[1] == "small" and int(seen[2]) < 2
