"""Kernels of the 910B: cube and vector cores with programs of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci.errors import CompileError, DeviceFault

EXAMPLES = Path(__file__).parent.parent / "examples"
ADD = (EXAMPLES / "split_vector_add.mlir").read_text()
MATMUL_ADD = (EXAMPLES / "split_matmul_add.mlir").read_text()
SET = '"hivm.ffts_cross_core_sync"() {pipe = 10, mode = 2, flag = 0} : () -> ()'
WAIT = '"hivm.wait_flag_dev"() {flag = 0} : () -> ()'


def add_inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(96000, dtype=np.float32) for name in "xy"}


def matmul_inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = {"a": (128, 64), "b": (64, 32)}
    arrays = {k: rng.standard_normal(s).astype(np.float16) for k, s in shapes.items()}
    return {**arrays, "d": rng.standard_normal((128, 32), dtype=np.float32)}


def run_matmul(text: str) -> np.ndarray:
    return davinci.compile(text, machine="ascend910b").run(matmul_inputs())["out"]


def test_vector_add_on_48_cores() -> None:
    arrays = add_inputs()
    executable = davinci.compile(ADD, machine="ascend910b")
    np.testing.assert_array_equal(executable.run(arrays)["z"], arrays["x"] + arrays["y"])
    (launch,) = executable.launches
    assert (launch.blocks, launch.cores, len(launch.per_block)) == (48, 48, 48)
    assert {block.core for block in launch.per_block} == {i for i in range(72) if i % 3}


def test_matmul_and_add_on_cube_and_vector_cores() -> None:
    arrays = matmul_inputs()
    expected = arrays["a"].astype(np.float32) @ arrays["b"].astype(np.float32) + arrays["d"]
    np.testing.assert_allclose(run_matmul(MATMUL_ADD), expected, rtol=1e-5, atol=1e-5)


def test_profile_counts_both_kinds_of_cores() -> None:
    executable = davinci.compile(MATMUL_ADD, machine="ascend910b")
    executable.run(matmul_inputs())
    (launch,) = executable.launches
    assert (launch.cores, launch.macs) == (6, 128 * 64 * 32)
    assert launch.pipes["PIPE_FIX"] > 0 and launch.pipes["PIPE_V"] > 0
    (row,) = executable.profile["kernels"]
    assert row["op"] == "matmul" and row["launches"] == 1


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ((SET, WAIT), "race between cores: AIV 0 of block 0 reads .* AIC of block 0 writes"),
        ((SET,), "deadlock: .* AIV 0 of block 0 waits at .* for flag 0, which nobody has set"),
        ((WAIT,), "flags between cores left set .* flag 0 on AIV 0 of block 0"),
    ],
    ids=["race", "deadlock", "left set"],
)
def test_flags_between_cores_are_checked(left_out: tuple[str, ...], message: str) -> None:
    text = MATMUL_ADD
    for part in left_out:
        assert part in text
        text = text.replace(part, "")
    with pytest.raises(DeviceFault, match=f"(?s){message}"):
        run_matmul(text)


def test_flag_of_the_wrong_pipe_is_a_race() -> None:
    """PIPE_M is done before PIPE_FIX has written anything."""
    with pytest.raises(DeviceFault, match="race between cores"):
        run_matmul(MATMUL_ADD.replace("{pipe = 10, mode", "{pipe = 2, mode"))


@pytest.mark.parametrize(
    ("text", "machine", "message"),
    [
        (MATMUL_ADD, "ascend910", "is not for the cores of ascend910"),
        (ADD.replace('ascend.core = "aiv", ', ""), "ascend910b", "expected ascend.core = .aic."),
        (ADD.replace('"aiv"', '"aic"'), "ascend910b", "needs UB, which a cube core"),
        (ADD.replace('ascend.core = "aiv", ', ""), "ascend910", "has no instruction copy_gm_to"),
        (MATMUL_ADD.replace("f162f32", "f162f16"), "ascend910b", "no mad of type f162f16"),
        (
            MATMUL_ADD.replace("src_pipe = 2, dst_pipe = 10", "src_pipe = 1, dst_pipe = 10", 1),
            "ascend910b",
            "set_flag names PIPE_V, which a cube core",
        ),
        (MATMUL_ADD.replace("::@add]", "::@matmul]"), "ascend910b", "two kernels for one kind"),
    ],
)
def test_what_a_core_has_not_is_a_compile_error(text: str, machine: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        davinci.compile(text, machine=machine)
