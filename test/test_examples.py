"""The examples run as they are, and the hand-written kernels are checked as they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci.errors import DeviceFault
from davinci.tools import npu_opt, npu_run

EXAMPLES = Path(__file__).parent.parent / "examples"

FLAGS = re.compile(r'^ *"\w+\.(?:set|wait)_flag".*\n', re.MULTILINE)
BARRIER = re.compile(r'^ *"\w+\.pipe_barrier".*\n', re.MULTILINE)

NEEDED = {
    "decode": ("torch", "onnxscript", "transformers"),
    "torch_compile": ("torch", "onnxscript"),
    "torch_export": ("torch", "onnxscript"),
    "jax_function": ("jax",),
}
"""Optional libraries of scripts."""

HAND_WRITTEN = ("hand_written", "hand_written_matmul")


def inputs(name: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    if name == "hand_written":
        return {name: rng.standard_normal(1024, dtype=np.float32) for name in "xy"}
    shapes = {"a": (32, 64), "b": (64, 32)}
    return {n: rng.standard_normal(s, dtype=np.float32).astype("f2") for n, s in shapes.items()}


def source(name: str) -> str:
    return (EXAMPLES / f"{name}.mlir").read_text()


def synchronisation() -> list[object]:
    """Each hand-written kernel without one pair of flags, or without its barrier."""
    found: list[object] = []
    for name in HAND_WRITTEN:
        text = source(name)
        flags = list(FLAGS.finditer(text))
        for i, (first, last) in enumerate(zip(flags[::2], flags[1::2], strict=True)):
            without = text[: first.start()] + text[last.end() :]
            found.append(pytest.param(name, without, id=f"{name}-flags{i}"))
        if BARRIER.search(text):
            found.append(pytest.param(name, BARRIER.sub("", text), id=f"{name}-barrier"))
    return found


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_script(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process, which has the libraries loaded that a script needs."""
    for library in NEEDED.get(path.stem, ()):
        pytest.importorskip(library)
    runpy.run_path(str(path), run_name="__main__")
    assert float(capsys.readouterr().out.split()[2]) < 0.01


def test_hand_written_kernel() -> None:
    arrays = inputs("hand_written")
    out = davinci.compile(EXAMPLES / "hand_written.mlir").run(arrays)["z"]
    np.testing.assert_array_equal(out, np.maximum(arrays["x"] + arrays["y"], 0))


def test_hand_written_matmul() -> None:
    arrays = inputs("hand_written_matmul")
    out = davinci.compile(EXAMPLES / "hand_written_matmul.mlir").run(arrays)["c"]
    a, b = (arrays[name].astype(np.float64) for name in "ab")
    # 64 products of numbers below 5, each sum rounded to fp32.
    np.testing.assert_allclose(out, a @ b, rtol=0, atol=64 * 5 * 5 * 2.0**-24)


@pytest.mark.parametrize(("name", "text"), synchronisation())
def test_kernel_needs_all_its_synchronisation(name: str, text: str) -> None:
    with pytest.raises(DeviceFault):
        davinci.compile(text).run(inputs(name))


@pytest.mark.parametrize(
    ("name", "pipelines", "unit"),
    [
        ("hand_written", ["--hivm-to-llvm"], "PIPE_V"),
        ("hand_written_matmul", ["--cce-to-hivm", "--hivm-to-llvm"], "PIPE_M"),
    ],
)
def test_hand_written_kernel_is_profiled_and_listed(
    name: str, pipelines: list[str], unit: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(EXAMPLES / f"{name}.mlir")
    assert npu_run.main([path]) == 0
    assert " limit " in capfd.readouterr().out
    assert npu_opt.main([path, *pipelines, "--npu-to-asm"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert any(re.match(rf"[0-9a-f]{{6}} +{unit} .*{name}\.mlir:\d+", line) for line in lines)
