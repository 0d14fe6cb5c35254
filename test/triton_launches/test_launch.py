"""Launches of Triton: arguments, the driver, reports, and errors that name the line of Python."""

from __future__ import annotations

import inspect
import os
import tracemalloc
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton", reason="needs pip install '.[triton]'")
pytest.importorskip("ascendnpuir", reason="needs pip install '.[triton]'")

import triton

import davinci.triton
import triton_kernels as kernels
from davinci.errors import CompileError, DeviceFault, InputError
from davinci.runtime.executable import Executable
from davinci.triton import toolchain
from davinci.triton.launch import LaunchReport, text_key


def line_of(kernel: triton.JITFunction, text: str) -> int:
    """The number of the line of a kernel that has `text`."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


def launch_add(n: int = 300, **options: object) -> np.ndarray:
    x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    davinci.triton.run(kernels.add, (-(-n // 128),), x, x, out, n, BLOCK=128, **options)
    return out


def test_the_launch_that_people_know(tmp_path: Path) -> None:
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    with davinci.triton.active():
        kernels.add[(3,)](x, x, out, 300, BLOCK=128, num_warps=4)
    np.testing.assert_array_equal(out, 2 * x)
    assert davinci.triton.last.kernel == "add"
    assert davinci.triton.last.cycles > 0
    davinci.triton.last.report(tmp_path / "k.html")
    assert "add" in (tmp_path / "k.html").read_text()


def test_a_grid_may_be_a_function_of_the_parameters() -> None:
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    report = davinci.triton.run(
        kernels.add,
        lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),),
        x,
        x,
        out,
        300,
        BLOCK=128,
    )
    assert report.grid == (3,)
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize("options", [{}, {"force_simt_template": True}])
def test_autotuners_choose_by_simulated_time(options: dict[str, bool]) -> None:
    x, out = np.arange(3000, dtype=np.float32), np.zeros(3000, np.float32)
    configs = [triton.Config({"BLOCK": block}, **options) for block in (64, 1024)]
    restore = davinci.triton.activate()  # autotuners ask for the driver when they are made
    try:
        tuned = triton.autotune(configs, key=["n"])(kernels.add)
    finally:
        restore()

    def launched() -> None:
        davinci.triton.run(tuned, lambda meta: (triton.cdiv(3000, meta["BLOCK"]),), x, x, out, 3000)

    if options:
        with pytest.raises(InputError, match="force_simt_template=True; expected"):
            launched()
        return
    launched()
    np.testing.assert_array_equal(out, 2 * x)
    times = {
        block: davinci.triton.run(
            kernels.add, (triton.cdiv(3000, block),), x, x, out, 3000, BLOCK=block
        ).time_us
        for block in (64, 1024)
    }
    assert tuned.best_config.kwargs["BLOCK"] == min(times, key=lambda block: times[block])


def test_what_is_only_timed_computes_nothing() -> None:
    x, out = np.arange(3000, dtype=np.float32), np.zeros(3000, np.float32)
    timed = davinci.triton.launch.time(kernels.add, (3,), x, x, out, 3000, BLOCK=1024)
    assert not out.any()
    assert timed.cycles == davinci.triton.run(kernels.add, (3,), x, x, out, 3000, BLOCK=1024).cycles
    np.testing.assert_array_equal(out, 2 * x)
    out[:] = 0
    with davinci.triton.active():
        restored = triton.autotune([triton.Config({"BLOCK": 512})] * 2, key=["n"])(kernels.add)
        seen: list[bool] = []
        restored.pre_hook = lambda kwargs, reset_only=False: seen.append(out.any())
        restored[(6,)](x, x, out, 3000)
    assert seen == [False, False, False]
    np.testing.assert_array_equal(out, 2 * x)


def test_what_is_lost_without_data_is_timed_with_them() -> None:
    x, out = np.ones(64, np.int32), np.zeros(64, np.int32)
    with pytest.raises(DeviceFault, match="integer division by zero"):
        davinci.triton.launch.time(kernels.shares, (1,), x, out, 640, BLOCK=64)
    configs = [triton.Config({"BLOCK": 64}, multibuffer=on) for on in (True, False)]
    with davinci.triton.active():
        tuned = triton.autotune(configs, key=["n"])(kernels.shares)
        tuned[(1,)](x, out, 640)
    assert (out == 10).all()
    assert all(0 < times[0] < 1 for times in tuned.configs_timings.values())


def test_a_launch_that_would_leave_the_same_is_not_simulated_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[int] = []
    run = Executable.run_in_memory

    def counted(self: Executable, *args: Any) -> Any:
        runs.append(1)
        return run(self, *args)

    monkeypatch.setattr(Executable, "run_in_memory", counted)
    x, out = np.arange(301, dtype=np.float32), np.zeros(301, np.float32)

    def times(kernel: Any, *args: Any) -> int:
        runs.clear()
        davinci.triton.run(kernel, (3,), *args, BLOCK=128)
        return len(runs)

    add = x, x, out, 301
    assert [times(kernels.add, *add) for _ in range(3)] == [1, 0, 0]
    out[300] = 7
    assert [times(kernels.add, *add) for _ in range(2)] == [1, 0]
    np.testing.assert_array_equal(out, 2 * x)
    x[300] = -1
    assert [times(kernels.add, *add) for _ in range(2)] == [1, 0]
    assert out[300] == -2
    in_place = x, x, x, 301
    assert [times(kernels.add, *in_place) for _ in range(2)] == [1, 1]
    assert x[300] == -4
    sums = np.zeros(128, np.float32)
    given = np.ones(384, np.float32)
    assert [times(kernels.add_up, given, sums, 384) for _ in range(2)] == [1, 1]
    assert (sums == 6).all()


def test_tensors() -> None:
    torch = pytest.importorskip("torch", reason="needs pip install '.[torch]'")
    x = torch.arange(300, dtype=torch.float32)
    out = torch.zeros(300)
    davinci.triton.run(kernels.add, 3, x, x, out, 300, BLOCK=128)
    assert torch.equal(out, 2 * x)


def test_views_are_where_they_are_in_memory() -> None:
    whole = np.arange(40, dtype=np.float32).reshape(4, 10)
    part = whole[:, 2:7]
    davinci.triton.run(kernels.softmax, (1,), part, part, 4, 5, 10, BLOCK=16)
    assert whole[0, 0] == 0 and whole[0, 7] == 7
    np.testing.assert_allclose(part.sum(1), np.ones(4), rtol=1e-6)


def test_in_place() -> None:
    x = np.arange(300, dtype=np.float32)
    davinci.triton.run(kernels.add, (3,), x, x, x, 300, BLOCK=128)
    np.testing.assert_array_equal(x, 2 * np.arange(300))


def test_other_sizes_take_the_same_executable() -> None:
    x, out = np.ones(300, np.float32), np.zeros(300, np.float32)
    first = davinci.triton.run(kernels.add, (3,), x, x, out, 300, BLOCK=128)
    second = davinci.triton.run(kernels.add, (3,), x, x, out, 259, BLOCK=128)
    assert first.executable is second.executable


def test_options_of_the_compiler_count() -> None:
    x = np.ones(600, np.float32)
    cycles = {
        buffers: davinci.triton.run(
            kernels.persistent_copy, (1,), x, np.zeros_like(x), 600, BLOCK=128, multibuffer=buffers
        ).cycles
        for buffers in (True, False)
    }
    assert cycles[True] < cycles[False]


def test_faults_name_the_line_of_python() -> None:
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    with pytest.raises(DeviceFault) as raised:
        davinci.triton.run(kernels.add, (8,), x, x, out, 1000, BLOCK=128)
    line = line_of(kernels.add, "tl.load(x")
    assert f"triton_kernels.py:{line}" in str(raised.value)


def test_what_is_not_supported_names_the_line_of_python() -> None:
    arrays, out = np.zeros(2, np.int64), np.zeros(64, np.float32)
    with pytest.raises(
        CompileError, match=r"triton_kernels\.py:\d+.*that the program loads \(1x\)"
    ):
        davinci.triton.run(kernels.of_pointers, (1,), arrays, out, BLOCK=64)


def test_who_launches_a_kernel_that_prints_is_warned_that_it_does_not() -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    with pytest.warns(UserWarning, match="printed: tl.device_print prints nothing"):
        davinci.triton.run(kernels.printed, (1,), x, out, BLOCK=64)
    np.testing.assert_array_equal(out, 2 * x)


def test_the_scalar_unit_loads_bf16_by_its_bits() -> None:
    bits = np.random.default_rng(3).standard_normal(40).astype(np.float32)
    x = bits.astype(ml_dtypes.bfloat16)
    places, out = np.array([7, 39, 0], np.int32), np.zeros(3, np.float32)
    davinci.triton.run(kernels.picked, (1,), x, places, out, 3)
    np.testing.assert_array_equal(out, 2 * x[places].astype(np.float32))


def test_a_report_has_the_kernel_at_each_step_of_its_compilation() -> None:
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    report = davinci.triton.run(kernels.add, (1,), x, x, out, 100, BLOCK=128)
    assert list(report.asm) == ["ttir", "ttadapter", "hivm"]
    assert "tt.load" in report.asm["ttir"]
    assert "memref.copy" in report.asm["ttadapter"] and "tt.load" not in report.asm["ttadapter"]
    assert report.hivm == report.asm["hivm"] and "hivm.hir.vadd" in report.hivm


def test_sorts_rows() -> None:
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    out = np.zeros_like(x)
    davinci.triton.run(kernels.sorted_rows, (3,), x, out, BLOCK=64)
    np.testing.assert_array_equal(out, np.sort(x, axis=-1))


def test_no_room_in_ub() -> None:
    x = np.ones(1 << 17, np.float32)
    with pytest.raises(
        CompileError,
        match=r"no room.*UB.*; found [\d,]+ bytes; live.*; expected at most 196,608; BLOCK=16384",
    ):
        davinci.triton.run(kernels.add, (1,), x, x, np.zeros_like(x), 1 << 17, BLOCK=1 << 17)


def test_errors_of_triton_itself() -> None:
    @triton.jit
    def wrong(x):
        y = x + missing  # noqa: F821
        return y

    with pytest.raises(CompileError, match=r"Triton does not compile wrong"):
        davinci.triton.run(wrong, (1,), np.ones(4, np.float32))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((1,), {}, "missing a required argument"),
        ((1, 2, 3, 4), {"BLOCK": 128, "BLOC": 1}, "no such parameter.*did you mean 'BLOCK'"),
        (("x", 2, 3, 4), {"BLOCK": 128}, "neither an array nor a number"),
    ],
)
def test_wrong_arguments(arguments: tuple[object], options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        davinci.triton.run(kernels.add, (1,), *arguments, **options)


def test_a_bad_grid() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(InputError, match="bad grid"):
        davinci.triton.run(kernels.add, (1, 1, 1, 1), x, x, x, 4, BLOCK=16)


def test_another_version_of_the_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(toolchain.VERSIONS, "ascendnpu-ir", "9.9")
    with pytest.raises(
        InputError, match=r"another version of ascendnpu-ir; found 1.2.0; expected 9"
    ):
        toolchain.tools()


def test_a_program_that_dies(tmp_path: Path) -> None:
    program = tmp_path / "dies"
    program.write_text("#!/bin/sh\nkill -SEGV $$\n")
    program.chmod(0o755)
    with pytest.raises(CompileError, match=r"died.*signal 11"):
        toolchain.run([str(program)], "the compiler")
    with pytest.raises(CompileError, match="cannot be run"):
        toolchain.run([str(tmp_path / "none")], "the compiler")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"size": 32}, {"size": 64}, False),
        ({"n": 32}, {"n": 64}, True),
        ({"n": 32}, {"n": 33}, False),
        ({"n": 2}, {"n": True}, False),
        ({"n": "left"}, {"n": "right"}, False),
        ({"n": 0.5}, {"n": 0.25}, True),
    ],
)
def test_what_a_text_is_kept_for(first: dict[str, Any], second: dict[str, Any], same: bool) -> None:
    """Constants count by value, whole numbers by what Triton looks at."""
    params = [
        SimpleNamespace(name="size", is_constexpr=True),
        SimpleNamespace(name="n", is_constexpr=False),
    ]
    kernel = SimpleNamespace(cache_key="kernel", params=params)
    assert (text_key(kernel, first) == text_key(kernel, second)) == same


def test_the_same_launch_is_not_simulated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever measures launches repeats them; one with other bytes is another one."""
    x, out = np.arange(200, dtype=np.float32), np.zeros(200, np.float32)
    ran: list[int] = []
    run = Executable.run_in_memory

    def counted(self: Executable, *args: Any) -> Any:
        ran.append(1)
        return run(self, *args)

    monkeypatch.setattr(Executable, "run_in_memory", counted)

    def launched() -> int:
        out[:] = 0
        report = davinci.triton.run(kernels.persistent_copy, (1,), x, out, 200, BLOCK=64)
        np.testing.assert_array_equal(out, 2 * x)
        return report.cycles

    cycles = launched()
    assert launched() == cycles
    assert len(ran) == 1
    x[7] = -0.0
    launched()
    x[7] = 0.0
    launched()
    assert len(ran) == 3


def test_a_launch_copies_no_array_that_it_need_not() -> None:
    x, out = np.ones(1 << 20, np.float32), np.zeros(1 << 20, np.float32)

    def launched() -> LaunchReport:
        return davinci.triton.run(kernels.add, (128,), x, x, out, x.size, BLOCK=8192)

    launched()
    x[3] = 5
    tracemalloc.start()
    try:
        report = launched()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * out.nbytes  # The log of the time lines is two of them.
    assert out[3] == 10
    cycles = report.cycles
    report.trace(os.devnull)  # Runs again, with what the device's memory has of the inputs.
    assert report.cycles == cycles
    assert launched().cycles == cycles
    np.testing.assert_array_equal(out, 2 * x)


def test_executables_that_hold_much_memory_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def launched(count: int) -> Any:
        x, out = np.ones(count, np.float32), np.zeros(count, np.float32)
        report = davinci.triton.run(kernels.add, 4, x, x, out, count, BLOCK=1024)
        return weakref.ref(report.executable)

    fresh = davinci.triton.launch.CompiledKernels()
    monkeypatch.setattr(davinci.triton.launch, "COMPILED", fresh)
    first = launched(1000)
    memory = weakref.ref(first()._host.device.cores)
    most = davinci.triton.launch.host_bytes(first())
    monkeypatch.setattr(davinci.triton.launch, "MOST_BYTES", most)
    second = launched(2000)
    assert first() is not None
    third = launched(3000)
    assert (first(), memory(), second()) == (None, None, None)
    assert third() is not None
