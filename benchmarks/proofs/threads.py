"""Executables and the compiler in several threads: same bytes, and no first compile that fails.

    python benchmarks/proofs/threads.py [--runs 200] [--processes 50] [--threads 8]

Two threads share an executable and run it with inputs of their own; every output must have the
bytes of the same run alone. Then fresh processes make their first compiles in several threads at
once, of StableHLO and of ONNX in turn; each process compares the outputs of all its threads.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

MODELS = ("stablehlo", "onnx", "both")

TEXT = """
func.func @main(%x: tensor<16x64xf32>, %y: tensor<64x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
     : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.exponential %0 : tensor<16x16xf32>
  %2 = stablehlo.reduce_precision %1, format = e5m10 : tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}"""


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """The results of `work(0)`, ... in threads that begin at the same time; errors are results."""
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
    return results


def shared_runs(runs: int) -> int:
    """How many of `runs` in each of two threads gave other bytes than alone."""
    import numpy as np

    import davinci

    executable = davinci.compile(TEXT)
    rng = np.random.default_rng(7)
    shapes = [spec.shape for spec in executable.inputs]
    inputs = [[rng.standard_normal(s, np.float32) for s in shapes] for _ in range(2)]
    alone = [executable.run(*arrays)["out0"].tobytes() for arrays in inputs]

    def work(number: int) -> int:
        found = (executable.run(*inputs[number])["out0"].tobytes() for _ in range(runs))
        return sum(data != alone[number] for data in found)

    results = together(2, work)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return sum(results)


def first_compiles(threads: int, models: str) -> int:
    """In this process, which has compiled nothing: 0 if all threads agree, 1 otherwise."""

    def work(number: int) -> bytes:
        import numpy as np

        import davinci

        if models == "onnx" or (models == "both" and number % 2):
            from davinci import zoo

            network = zoo.build("mlp")
            outputs = davinci.compile(network.proto).run(network.inputs(0))
        else:
            ones = np.full((16, 64), 1 / 64, np.float32)
            outputs = davinci.compile(TEXT).run(ones, ones.T.copy())
        return b"".join(array.tobytes() for array in outputs.values())

    results = together(threads, work)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in errors:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return int(bool(errors) or len(set(results)) > (2 if models == "both" else 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--processes", type=int, default=50)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--first", choices=MODELS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        return first_compiles(options.threads, options.first)
    wrong = shared_runs(options.runs) if options.runs else 0
    print(
        f"runs        2 threads x {options.runs}, {wrong} with other bytes than alone", flush=True
    )
    failed = 0
    for number in range(options.processes):
        models = MODELS[number % len(MODELS)]
        command = [sys.executable, __file__, "--first", models, "--threads", str(options.threads)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failed += 1
            print(f"process {number} ({models}): {done.returncode}: {done.stderr[-500:]}")
    print(f"compiles    {options.processes} processes x {options.threads} threads, {failed} failed")
    return int(bool(wrong or failed))


if __name__ == "__main__":
    sys.exit(main())
