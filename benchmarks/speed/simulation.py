"""Speed of simulation: a loop written by hand, a network, and one matmul next to SCALE-Sim 3.

    python benchmarks/speed/simulation.py [--without-scale-sim] [--python VENV/bin/python]
                                          [--network zoo:bert-base,seq=512] [--save F | --against F]

The loop (`loop_kernel`) and the network are simulated without data in a process of their own, so
that memory is theirs: instructions a second of the first run, with the compilation of the
simulator's own functions, and of a second one; bytes that the process grew by an instruction. The
network is simulated with data too, by one process and by one a processor, and run by `npu-run`:
those last two are seconds of a clock. `--save` writes the figures, `--against` prints the ratio to
those of another commit of instructions a second, as commits issue different programs for a network
(kernels that share a launch have instructions for their cores to meet); beside it how many
instructions each has and the ratio of whole times. Where a network is short, what a run takes
besides its instructions counts: only the loop is one program in all commits.

C[512, 768] = A[512, 768] x B[768, 768] runs on the simulated machine, with data and all checks.
SCALE-Sim (a cycle-level simulator of systolic arrays, without data) gets the same product on an
array of the cube's size. Other times are those of the processor, so that other load makes little
difference. SCALE-Sim has a virtual environment of its own because its release needs NumPy
below 2.4: made in a temporary folder, unless --python names an interpreter with scalesim 3.0.0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np
from loop_kernel import text
from matmul_strategies import TEXT, K, M, N

import davinci
from davinci.simulator import processors

MACS = M * N * K
REPEATS = 3
REQUIREMENTS = ("scalesim==3.0.0", "numpy<2.4")

SCALE_SIM_CONFIG = """
[general]
run_name = cube
[architecture_presets]
ArrayHeight = 16
ArrayWidth = 16
IfmapSramSzkB = 64
FilterSramSzkB = 64
OfmapSramSzkB = 256
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = os
ReadRequestBuffer = 128
WriteRequestBuffer = 128
[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
SparseRep = ellpack_block
OptimizedMapping = false
BlockSize = 8
RandomNumberGeneratorSeed = 40
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""

SCALE_SIM_RUN = """
import time
from scalesim.scale_sim import scalesim
simulator = scalesim(save_disk_space=True, verbose=False, config="cube.cfg",
                     topology="matmul.csv", layout="layout.csv", input_type_gemm=True)
start = time.process_time()
simulator.run_scale(top_path="results")
print("SECONDS", time.process_time() - start)
"""


def simulate_here() -> tuple[float, int]:
    """Best of a few runs: seconds of simulation, and instructions executed."""
    executable = davinci.compile(TEXT, machine="ascend910")
    rng = np.random.default_rng(0)
    inputs = {
        "arg0": rng.standard_normal((N // 16, M // 16, 16, 16)).astype(np.float16),
        "arg1": rng.standard_normal((K // 16, N // 16, 16, 16)).astype(np.float16),
    }
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        executable.run(inputs)
        seconds.append(time.process_time() - start)
    return min(seconds), sum(k["instructions"] for k in executable.profile["kernels"])


TURNS = 200_000
"""Of the loop."""

MEASURE = """
import json, resource, sys, time
import davinci
from davinci.arrays import random_inputs
from davinci.job import make, open_source

def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

model, timing_only, processes = sys.argv[1], sys.argv[2] == "times", int(sys.argv[3])
now = time.process_time if processes == 1 else time.perf_counter
start = now()
executable = make(open_source(model), lambda text: None, timing_only=timing_only)
compiled = now() - start
executable.processes = processes
inputs = random_inputs(executable.inputs, 0)
before, seconds = grown(), []
for _ in range(2 if timing_only else 1):
    start = now()
    executable.run(inputs)
    seconds.append(now() - start)
count = sum(kernel["instructions"] for kernel in executable.profile["kernels"])
print(json.dumps({"instructions": count, "compile_seconds": compiled, "seconds": seconds,
                  "bytes_each": (grown() - before) / count,
                  "cycles": executable.profile["total_cycles"]}))
"""


def measured(model: str, what: str, processes: int = 1) -> dict[str, Any]:
    """Figures of a model in a process of its own, without data ("times") or with it ("data")."""
    command = [sys.executable, "-c", MEASURE, model, what, str(processes)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def show_speed(name: str, found: dict[str, Any]) -> None:
    each = "  ".join(f"{found['instructions'] / s / 1e3:,.0f}" for s in found["seconds"])
    print(
        f"{name:<28} {found['instructions']:>11,} instructions  {min(found['seconds']):7.2f} s  "
        f"{each} thousand a second  {found['bytes_each']:6.0f} bytes each"
    )


def compared(name: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    """A line: instructions a second of a commit over those of another one."""
    seconds = min(before["seconds"]) / min(now["seconds"])
    each = seconds * now["instructions"] / before["instructions"]
    return (
        f"{name}: an instruction {each:.2f} times as fast as before (in all {seconds:.2f} times, "
        f"{before['instructions']:,} -> {now['instructions']:,} instructions)"
    )


def simulate_there(python: str) -> float:
    """Seconds that SCALE-Sim's own run takes, without its start-up."""
    with tempfile.TemporaryDirectory() as folder:
        if not python:
            venv.create(Path(folder, "venv"), with_pip=True)
            python = str(Path(folder, "venv", "bin", "python"))
            subprocess.run([python, "-m", "pip", "install", "-q", *REQUIREMENTS], check=True)
        Path(folder, "cube.cfg").write_text(SCALE_SIM_CONFIG)
        Path(folder, "matmul.csv").write_text(f"Layer, M, N, K,\nmatmul, {M}, {K}, {N},\n")
        Path(folder, "layout.csv").write_text("header,\nmatmul," + "1," * 20 + "\n")
        run = subprocess.run(
            [python, "-c", SCALE_SIM_RUN], cwd=folder, capture_output=True, text=True, check=False
        )
        lines = [line for line in run.stdout.splitlines() if line.startswith("SECONDS")]
        if not lines:
            sys.exit(f"SCALE-Sim failed: {run.stderr.strip().splitlines()[-1:]}")
        return float(lines[0].split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--without-scale-sim", action="store_true", help="measure only this one")
    parser.add_argument("--python", default="", help="an interpreter that has scalesim 3.0.0")
    parser.add_argument("--network", default="", help="as npu-run takes it")
    parser.add_argument("--save", help="a file for the figures")
    parser.add_argument("--against", help="such a file")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "loop.mlir")
        path.write_text(text(TURNS))
        figures["loop, times only"] = measured(str(path), "times")
    if arguments.network:
        network = arguments.network
        figures[f"{network}, times only"] = measured(network, "times")
        figures[f"{network}, with data"] = measured(network, "data")
        processes = processors()
        if processes > 1:
            figures[f"{network}, {processes} processes"] = measured(network, "data", processes)
    for name, found in figures.items():
        show_speed(name, found)
    if arguments.network:
        command = [sys.executable, "-m", "davinci.tools.npu_run", arguments.network, "--no-cache"]
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        print(f"npu-run {arguments.network}: {time.perf_counter() - start:.1f} s in all")
    if arguments.save:
        Path(arguments.save).write_text(json.dumps(figures, indent=1))
    if arguments.against:
        for name, before in json.loads(Path(arguments.against).read_text()).items():
            if name in figures:
                print(compared(name, before, figures[name]))
    seconds, instructions = simulate_here()
    print(
        f"davinci     {seconds:9.3f} s  {MACS / seconds / 1e6:10.2f} million MACs/s  "
        f"{instructions / seconds / 1e3:.1f} thousand instructions/s  (data and checks)"
    )
    if arguments.without_scale_sim:
        return
    other = simulate_there(arguments.python)
    print(f"SCALE-Sim 3 {other:9.3f} s  {MACS / other / 1e6:10.2f} million MACs/s  (no data)")
    print(f"ratio       {other / seconds:9.0f}")


if __name__ == "__main__":
    main()
