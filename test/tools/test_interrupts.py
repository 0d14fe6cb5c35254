"""Ctrl-C: status 130, one word on stderr, no files, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bad_files import kernel


def take_interrupts() -> None:
    """In the child: a shell that starts the tests in the background makes them ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("seconds", [0.4, 1.2])
def test_interrupt(seconds: float, tmp_path: Path) -> None:
    """While modules are imported, and while a network is compiled: no traceback, no files."""
    results = ["--outputs", str(tmp_path / "o.npz"), "--json", str(tmp_path / "r.json")]
    command = [sys.executable, "-m", "davinci.tools.npu_run", "zoo:bert,layers=4", *results]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=take_interrupts
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_interrupt_of_several_processes() -> None:
    """Each holds an end of stderr: that it can be read to its end says that all are gone."""
    program = """
import os, sys, time
from davinci.simulator.core import processes
from davinci.tools import npu_run

first = os.getpid()
def finish(order, launch):
    if os.getpid() == first:
        print("running", flush=True)
    time.sleep(600)
processes.SharedProgress.finish = finish
sys.exit(npu_run.main(["zoo:mlp", "--processes", "3"]))
"""
    ends: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    ends["preexec_fn"] = take_interrupts
    with subprocess.Popen([sys.executable, "-c", program], text=True, **ends) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")


def test_interrupt_in_an_endless_kernel(tmp_path: Path) -> None:
    """The main thread is in native code, which does not come back."""
    loop = "llvm.br ^l\n^l:\nllvm.br ^l\n^end:"
    (tmp_path / "k.mlir").write_text(kernel(loop))
    program = """
import sys
from davinci.runtime import jit
from davinci.tools import npu_run

run = jit.KernelLibrary.run
def reported(*args):
    print("running", flush=True)
    run(*args)
jit.KernelLibrary.run = reported
sys.exit(npu_run.main(["k.mlir", "--json", "r.json"]))
"""
    command = [sys.executable, "-c", program]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    how["preexec_fn"] = take_interrupts
    with subprocess.Popen(command, cwd=tmp_path, **how) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["k.mlir"]


def test_interrupt_while_a_file_is_written(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from davinci import files
from davinci.tools.command import guarded

@guarded
def main(argv):
    os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGINT)
    files.write_atomically(argv[0], b"data")
    return 0

sys.exit(main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "o.npz")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=take_interrupts
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_interrupt_while_the_interpreter_runs(tmp_path: Path) -> None:
    """It runs in a process of its own, in native code, and its program may be endless."""
    program = """
import subprocess, sys
import numpy as np
from davinci.reference import interpreter
from davinci import mlir
from davinci.tools.command import guarded

ENDLESS = '''
func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%i = %x) : tensor<i32>
    cond { %t = stablehlo.constant dense<true> : tensor<i1>  stablehlo.return %t : tensor<i1> }
    do { stablehlo.return %i : tensor<i32> }
  return %0 : tensor<i32>
}
'''

class Reported(subprocess.Popen):
    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        print(self.pid, flush=True)

subprocess.Popen = Reported

@guarded
def main(argv):
    with mlir.make_context():
        interpreter.reference(mlir.ir.Module.parse(ENDLESS), {"x": np.int32(0)}, ["y"])
    return 0

sys.exit(main([]))
"""
    command = [sys.executable, "-c", program]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    how |= {"preexec_fn": take_interrupts, "env": os.environ | {"TMPDIR": str(tmp_path)}}
    with subprocess.Popen(command, **how) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        time.sleep(2)  # it has begun
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []
    for _ in range(100):
        if not is_running(child):
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the interpreter still runs")


def is_running(process: int) -> bool:
    """Whether there is such a process, of somebody who may signal it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that ended stays listed until its new parent asks for its status.
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().split()[2] != "Z"
