"""Compiles a network once, saves it, and runs the file in a process of its own."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import davinci
from davinci import zoo

network = zoo.build("mlp")
executable = davinci.compile(network.proto, machine="ascend310")
inputs = network.inputs(0)
outputs = executable.run(inputs)

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "mlp.davinci"
    executable.save(file)
    loaded = davinci.load(file).run(inputs)
    errors = [np.abs(loaded[name] - outputs[name]).max() for name in outputs]
    print(f"largest error {max(errors):.2g}")

    print(f"{file.stat().st_size:,} bytes")
    command = [sys.executable, "-m", "davinci.tools.npu_run", str(file)]
    print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
