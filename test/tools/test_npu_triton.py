"""`npu-run FILE.py:KERNEL`: its words, and a launch where the extra is installed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from davinci.errors import InputError
from davinci.tools import npu_run, npu_triton

KERNELS = """
import triton
import triton.language as tl

@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
"""


def test_what_names_a_kernel() -> None:
    assert npu_triton.is_kernel("a/b.py:softmax")
    assert not any(npu_triton.is_kernel(m) for m in ("zoo:mlp", "net.onnx", "a.py", "a.py:1", ""))


def test_grids() -> None:
    assert npu_triton.grid_of("4") == (4,)
    assert npu_triton.grid_of("4,2,1") == (4, 2, 1)
    for bad in (None, "", "4x2", "1,2,3,4", "-1"):
        with pytest.raises(InputError, match="--grid"):
            npu_triton.grid_of(bad)


def test_arguments() -> None:
    given = {"y": np.ones((2, 3), np.float16)}
    words = ["x=f32[4]", "y=f16[2,3]", "m=bf16[8]", "n=7", "eps=1e-5", "CAUSAL=True", "none=None"]
    found = npu_triton.arguments(words, given, 0)
    assert found["x"].shape == (4,) and found["x"].dtype == np.float32
    assert found["y"] is given["y"] and str(found["m"].dtype) == "bfloat16"
    assert (found["n"], found["eps"], found["CAUSAL"], found["none"]) == (7, 1e-5, True, None)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("x", "bad argument; found 'x'"),
        ("x=f33[4]", "no such element type; found f33"),
        ("x=abc", "neither an array nor a number"),
        ("y=f32[2,3]", r"another array in the file; found float16\[2, 3\]; expected f32\[2,3\]"),
    ],
)
def test_bad_arguments(word: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        npu_triton.arguments([word], {"y": np.ones((2, 3), np.float16)}, 0)


def test_options_for_other_models_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert npu_run.main(["zoo:mlp", "--grid", "3"]) == 2
    assert "--grid is for a kernel of Triton" in capsys.readouterr().err
    assert npu_run.main(["k.py:f", "--grid", "3", "--machine", "ascend910"]) == 2
    assert "--machine: not for kernels of Triton" in capsys.readouterr().err


def test_a_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("triton")
    (tmp_path / "own_kernels_of_triton.py").write_text(KERNELS)
    model = f"{tmp_path / 'own_kernels_of_triton.py'}:double"
    np.savez(tmp_path / "in.npz", x=np.arange(100, dtype=np.float32))
    files = ["--inputs", "in.npz", "--outputs", "out.npz", "--json", "r.json"]
    files = [str(tmp_path / word) if "." in word else word for word in files]
    words = ["--args", "x=f32[100]", "out=f32[100]", "n=100", "BLOCK=64"]
    assert npu_run.main([model, "--grid", "2", *words, *files]) == 0
    found = np.load(tmp_path / "out.npz")
    np.testing.assert_array_equal(found["out"], 2 * found["x"])
    assert json.loads((tmp_path / "r.json").read_text())["kernels"][0]["blocks"] == 2
    assert npu_run.main([model.replace("double", "doubl"), "--grid", "2"]) == 2
    assert "did you mean 'double'?" in capsys.readouterr().err
