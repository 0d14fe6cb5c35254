"""What npu-run prints."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from davinci import machine
from davinci.machine.host import LaunchSection
from davinci.report.names import LONGEST, percent, shortened, tail
from davinci.report.program import Kernel, ProgramFacts
from davinci.report.record import build
from davinci.report.tables import print_tables, quantized_text, scalar_summary, speed_summary
from report_support import busy_program, launch

MACHINE = machine.load("ascend910")


def record(unit: str = "vector") -> dict[str, Any]:
    """Of a launch that has no overhead, so that all of its time is the kernel's."""
    profile = launch("sin_0", busy_program(), timeline=False)
    profile.operators = ("/a/b[0]/Sin", "/c/Sin")
    kernels = {"sin_0": Kernel("sin", unit, (4,), "sin 8x64 f32")}
    names = [name for name in LaunchSection.model_fields if name.endswith("_us")]
    free = MACHINE.launch.model_copy(update={**dict.fromkeys(names, 0), "all_cores_us_range": [0]})
    free_machine = MACHINE.model_copy(update={"launch": free})
    return build([profile], ProgramFacts(kernels, 0, 0, 0), free_machine, 32)


def printed(record: dict[str, Any], width: int = 200) -> str:
    text = io.StringIO()
    print_tables(record, Console(file=text, width=width, highlight=False), 20)
    return text.getvalue()


def test_speed() -> None:
    kernels = [{"instructions": 3000, "macs": 5_000_000}, {"instructions": 1000, "macs": 0}]
    found = {"simulate_seconds": 2.0, "kernels": kernels}
    assert speed_summary(found) == "2,000 instructions and 2.5 million MACs a second"


def test_kernels_say_what_they_compute_and_for_which_nodes() -> None:
    line = next(x for x in printed(record()).splitlines() if "sin 8x64 f32" in x)
    assert "/a/b[0]/Sin +1" in line, "brackets are no markup"
    assert "sin_0" not in line


def test_a_kernel_shows_its_schedule_and_what_holds_its_busiest_pipe() -> None:
    found = record()
    found["kernels"][0]["schedule"] = "i0: 8 of 4 x 8 [ragged]; 4 cores, 2 slots"
    text = printed(found, width=240)
    assert "i0: 8 of 4 x 8 [ragged]; 4 cores" in text
    assert "barriers 1" in text or "flags" in text


def test_idle_cores_and_the_verdict_are_shown() -> None:
    text = printed(record())
    assert "idle 97 % of the kernels' time; at least half of the 32 in 100 % of it" in text
    assert "verdict" in text and "Cores idle" not in text
    assert "half of the cores idle in 100 % of the kernels' time" in text.lower()


def test_scalar_kernels_that_take_most_of_the_time_are_warned_of() -> None:
    assert "warning" not in printed(record("vector"))
    text = " ".join(printed(record("scalar")).split())
    assert "warning: 1 operator on the scalar unit, which loads and stores single" in text
    assert "takes 100 % of the time: sin 8x64 f32 (/a/b[0]/Sin +1) 100 %." in text
    assert "Replace what the vector unit has no kernel for" in text


def test_scalar_kernels_of_one_label_are_one() -> None:
    row = {"unit": "scalar", "label": "add 8 i64", "launches": 2}
    rows = [row, row, row | {"unit": "cube"}, *({**row, "label": f"{i}"} for i in range(7))]
    assert scalar_summary({"kernels": rows}).startswith("add 8 i64 x4, 0 x2, ")
    assert scalar_summary({"kernels": rows}).endswith("2 more")
    assert scalar_summary({"kernels": []}) == "none"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["Add_1"], "Add_1"),
        (["Add_1", "Add_2", "Add_3"], "Add_1 +2"),
        (["/bert/encoder/layer.10/attention/self/query/MatMul"], "…/self/query/MatMul"),
        (["x" * 50], "…" + "x" * (LONGEST - 1)),
    ],
)
def test_shortened(names: list[str], text: str) -> None:
    assert shortened(names) == text


def test_tail_is_never_longer() -> None:
    name = "/bert/encoder/layer.10/attention/self/query/MatMul"
    assert all(len(tail(name, longest)) <= longest for longest in range(2, 60))


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (0.001, "< 1 %"), (0.805, "80 %"), (1, "100 %")]
)
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(("after", "said"), [(60.0, "instead of"), (90.0, "slower than")])
def test_a_quantized_network_is_held_against_floats(after: float, said: str) -> None:
    quantization = {"layers": [], "method": "kl", "cosine": 1.0, "output_db": 60.0, "samples": 2}
    text = quantized_text(quantization | {"time_us": after, "floats_time_us": 70.0})
    assert text.endswith(f"; {after:.1f} us, {said} 70.0 us of the model of floats")
    assert "us" not in quantized_text(quantization).split()
