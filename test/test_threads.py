"""Executables and the compiler in several threads: the same bytes, nothing mixed up."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import davinci
from davinci.passes.pipeline import registry
from davinci.simulator.core.host_threads import one_thread

PROOF = Path(__file__).parent.parent / "benchmarks" / "proofs" / "threads.py"
"""The same with large numbers, as a command."""

PRODUCT = """
func.func @main(%x: tensor<16x64xf32>, %y: tensor<64x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
     : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.exponential %0 : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}"""


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """The results of `work(0)`, ... in threads that begin at the same time."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_runs_of_one_executable_take_turns() -> None:
    exe = davinci.compile(PRODUCT)
    rng = np.random.default_rng(0)
    inputs = [
        (rng.standard_normal((16, 64), np.float32), rng.standard_normal((64, 16), np.float32))
        for _ in range(2)
    ]
    alone = [exe.run(*arrays)["out0"].tobytes() for arrays in inputs]

    def work(number: int) -> set[bytes]:
        return {exe.run(*inputs[number])["out0"].tobytes() for _ in range(20)}

    assert together(2, work) == [{alone[0]}, {alone[1]}]


def test_a_thread_sees_its_own_run() -> None:
    exe = davinci.compile(PRODUCT)
    x, y = np.ones((16, 64), np.float32), np.ones((64, 16), np.float32)
    exe.run(x, y)
    own = exe.launches
    seen: list[Any] = []

    def work(_: int) -> None:
        seen.append(exe.launches)  # has run nothing: the last one of any thread
        exe.run(x, y, timeline="all")
        seen.append(exe.launches)
        exe.run(x, y)

    together(1, work)
    assert seen[0] is own and exe.launches is own
    assert seen[1] is not own and all(launch.rows for launch in seen[1])
    assert not any(launch.rows for launch in own)


def blas_threads() -> list[int]:
    """Threads of NumPy's library; SciPy brings its own, which no simulation asks."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return [pool["num_threads"] for pool in pools if "numpy" in pool["filepath"]]


@pytest.mark.skipif(not blas_threads(), reason="NumPy without a library whose threads are known")
def test_linear_algebra_gets_its_threads_back() -> None:
    before = blas_threads()
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


@pytest.mark.parametrize("models", ["stablehlo", "both"])
def test_first_compiles_of_a_process_in_several_threads(models: str) -> None:
    command = [sys.executable, str(PROOF), "--first", models, "--threads", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_pass_is_found_when_its_module_is_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is registered in the middle of it; another thread that asks must wait for the rest."""
    imported: list[str] = []
    assert registry.find("plan-memory")
    monkeypatch.setattr(registry.importlib, "import_module", imported.append)
    registry.find("plan-memory")
    assert [name.rpartition(".")[2] for name in imported] == ["plan_memory"]
