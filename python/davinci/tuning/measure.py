"""Measures a way to compute a kernel: it is compiled and simulated, without data."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from davinci import machine as machines
from davinci.dialects.base import as_attribute
from davinci.errors import InputError
from davinci.mlir import ir, make_context
from davinci.passes.analysis.kernels import kernels
from davinci.passes.pipeline import pipelines, runner
from davinci.runtime.executable import Executable

STAGES = pipelines.STAGES[pipelines.STAGES.index("ascend-to-cce") :]


@dataclass(frozen=True)
class TuningTarget:
    """A machine and a number of cores, for a process that may be on another computer.

    Attributes:
        machine: name of a machine file of the package, or the text of another one.
    """

    machine: str
    cores: int


def target_of(machine: str, cores: int) -> TuningTarget:
    """The target of a machine, by name or path.

    Raises:
        InputError: a machine file that cannot be read.
    """
    if not machine.endswith(".toml"):
        return TuningTarget(machine, cores)
    try:
        return TuningTarget(Path(machine).read_text(encoding="utf-8"), cores)
    except OSError as error:
        raise InputError("cannot read", where=machine, found=error.strerror or "") from None


def measure(text: str, choices: Any, target: TuningTarget) -> int:
    """Cycles of a launch of the kernel in `text` that is computed as `choices` say.

    Raises:
        CompileError: it cannot be computed so.
        DeviceFault: the simulator found a fault.
    """
    if "\n" not in target.machine:
        return _measured(text, choices, target.machine, target.cores)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.toml"
        path.write_text(target.machine, encoding="utf-8")
        return _measured(text, choices, str(path), target.cores)


def _measured(text: str, choices: Any, machine: str, cores: int) -> int:
    with make_context() as context, ir.Location.unknown():
        module = ir.Module.parse(text, context)
        (kernel,) = kernels(module.operation)
        kernel.attributes["ascend.choices"] = as_attribute(choices)
    options = pipelines.Options(machine=machine, cores=cores)
    for stage in STAGES:
        runner.run(module.operation, pipelines.text(stage, options), runner.AT_THE_END)
    executable = Executable(module, machines.load(machine), cores, checks=False, data=False)
    executable.run({spec.name: np.zeros(spec.shape, spec.dtype) for spec in executable.inputs})
    return sum(launch.cycles for launch in executable.launches)
