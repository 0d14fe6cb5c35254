"""A compiled module, ready to run: the host's launch list over a simulated device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from davinci.errors import InputError
from davinci.files import check_writable, write_atomically
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.report import Record, build, describe
from davinci.report.launching import LAUNCHING
from davinci.report.program import Kernel
from davinci.runtime.arguments import Array, bind
from davinci.runtime.host import HostProgram
from davinci.schedule.choices import of_data
from davinci.schedule.schedule_file import KernelChoices, text_of
from davinci.simulator import LaunchProfile

TimelineChoice = Literal["none", "first", "all"]
TIMELINES: tuple[TimelineChoice, ...] = ("none", "first", "all")
"""From the least to the most that a run keeps."""


@dataclass(frozen=True)
class Run:
    """One run that came to its end.

    Attributes:
        launches: the profile of each.
        simulate_seconds: that it took.
        inputs: copies of what it was given, in order.
        timeline: which rows `launches` has.
    """

    launches: list[LaunchProfile] = field(default_factory=list)
    simulate_seconds: float = 0.0
    inputs: tuple[Array, ...] | None = None
    timeline: TimelineChoice = "none"


class Executable:
    """A module at the llvm level with its host function, on a simulated device.

    There is one device, so threads that call `run` at the same time take turns. `launches`,
    `simulate_seconds`, `profile` and what is written from them are of the last run of the thread
    that asks; in a thread that has run nothing, of the last run in any.

    Attributes:
        machine: it runs on.
        cores: that kernels may use, for the report.
        checks, data: whether races and unwritten bytes are looked for, and data computed.
        inputs, outputs: what `run` takes and returns, in the order of the host's arguments.
        launching: how kernels are launched, for times: as one graph "queued" on the device, or each
            by the "host".
        processes: of the host that compute data, 1 unless it is changed. More are made by `fork`,
            for what the blocks of a launch compute apart from each other; then no other thread of
            the program may compile or simulate during a run.
        details: what the compiler adds to the record: model, precision, compile_seconds.
    """

    def __init__(
        self,
        module: ir.Module,
        machine: Machine,
        cores: int = 0,
        checks: bool = True,
        data: bool = True,
        constants: Mapping[str, Array] | None = None,
    ) -> None:
        """Compiles the kernels of `module` and places its buffers.

        Args:
            module: an `ir.Module` whose kernels are lowered to LLVM.
            machine: what to simulate.
            cores: most cores a kernel uses; 0: all of the machine.
            checks: check for unwritten bytes and races.
            data: compute data. Without it `run` finds times only and returns no outputs; a scalar
                program still sees inputs and constants, and zeros for what kernels compute.
            constants: the bytes of the module's constants, where it was saved without them.

        Raises:
            CompileError: there is no host function, or the module is not fully lowered.
        """
        self.machine, self.cores = machine, cores or machine.cores
        self.checks, self.data = checks, data
        self.launching = LAUNCHING[0]
        self.processes = 1
        self.details: Record = {}
        with module.context, ir.Location.unknown():
            self._facts = describe(module)
            host = HostProgram(module, machine, checks, data, constants)
        self.inputs, self.outputs = host.inputs, host.outputs
        self._host = host
        self._lock = threading.Lock()
        self._latest = Run()
        self._of_thread = threading.local()

    @property
    def input_names(self) -> list[str]:
        return [spec.name for spec in self.inputs]

    @property
    def output_names(self) -> list[str]:
        return [spec.name for spec in self.outputs]

    def run(
        self, /, *arrays: Any, timeline: TimelineChoice = "none", **named: Any
    ) -> dict[str, Array]:
        """Runs the program on the device; threads take turns.

        `run({"x": x, "y": y})`, `run(x, y)`, `run(x, y=y)`. An array is anything that NumPy takes,
        PyTorch tensors on the CPU and JAX arrays too, of the very shape and element type of its
        input; Python's numbers and lists take the type.

        Args:
            arrays: one mapping by name, or inputs in the order of `inputs`.
            timeline: keep one row an instruction in `launches`, "all" of them or those of the
                "first" launch of each kernel and its first block.
            named: inputs by name. One that is called `timeline` is given in a mapping.

        Returns:
            The outputs by name, in the order of `outputs`; none without data.

        Raises:
            InputError: an input is missing, unknown, or has another shape or type.
            DeviceFault: the simulated machine found a fault.
        """
        if timeline not in TIMELINES:
            raise InputError(
                "bad value", where="timeline", found=repr(timeline), expected=", ".join(TIMELINES)
            )
        return self._run(bind(self.inputs, arrays, named), timeline)

    def _run(self, arrays: list[Array], timeline: TimelineChoice) -> dict[str, Array]:
        kept = tuple(np.array(array) for array in arrays)
        with self._lock:
            start = time.perf_counter()
            launches = self._host.execute(kept, timeline, self.processes)
            results = self._host.results()
            run = Run(launches, time.perf_counter() - start, kept, timeline)
            self._latest = self._of_thread.run = run
        return results

    @property
    def instruction_limit(self) -> int:
        """How many instructions a block may issue; more are a fault. Each takes up to 100 bytes."""
        return self._host.device.most_instructions

    @instruction_limit.setter
    def instruction_limit(self, most: int) -> None:
        if most < 1:
            raise InputError(
                "bad value", where="instruction_limit", found=str(most), expected="1 or more"
            )
        self._host.device.most_instructions = most

    @property
    def _last(self) -> Run:
        run: Run = getattr(self._of_thread, "run", self._latest)
        return run

    @property
    def has_run(self) -> bool:
        """Whether there is a last run."""
        return self._last.inputs is not None

    @property
    def launches(self) -> list[LaunchProfile]:
        """The profile of each launch of the last run."""
        return self._last.launches

    @property
    def simulate_seconds(self) -> float:
        """That the last run took."""
        return self._last.simulate_seconds

    @property
    def profile(self) -> Record:
        """The record of the last run, as `--json` writes it."""
        return self._record(self._last)

    def _record(self, run: Run) -> Record:
        record = build(run.launches, self._facts, self.machine, self.cores, self.launching)
        return {**self.details, **record, "simulate_seconds": run.simulate_seconds}

    def what_if(self, question: str) -> list[Record]:
        """What the last run would have gained by changes of the machine, the largest first; see
        `davinci.report.what_if`.

        Args:
            question: changes, separated by commas, or "all".

        Raises:
            InputError: nothing has run yet, or a change cannot be made.
        """
        from davinci.report.what_if import answers

        return answers(self.machine, self._drawn("none").launches, question, self.launching)

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """What is known of the kernels, by name."""
        return self._facts.kernels

    def schedules(self) -> str:
        """How the kernels are computed, as the text of a file that `compile` takes: a user may
        change it. Kernels of the last run have their cycles in it."""
        rows = {row["name"]: row for row in self.profile["kernels"]} if self.has_run else {}
        known = (
            KernelChoices(
                kernel.key,
                name,
                rows[name]["cycles"] // rows[name]["launches"] if name in rows else 0,
                of_data(kernel.choices),
            )
            for name, kernel in self.kernels.items()
            if kernel.choices
        )
        return text_of(self.machine.name, list(known))

    def save(self, path: str | Path) -> None:
        """Writes a file that `davinci.load` and `npu-run` take; see `davinci.runtime.saved`.

        Raises:
            InputError: the file cannot be written.
        """
        from davinci.runtime import saved

        saved.save(self, path)

    def image(self) -> tuple[bytes, dict[str, Array]]:
        """The module without its constants as bytecode, and the bytes of the constants by name."""
        with self._lock:
            return self._host.code, self._host.constants()

    def report(self, path: str | Path, timeline: TimelineChoice = "first") -> None:
        """Writes the last run as a page.

        A run that kept fewer rows than `timeline` is made again, with the same inputs.

        Raises:
            InputError: nothing has run yet, or the file cannot be written.
        """
        from davinci.report.page import as_html

        self._write(
            path, timeline, lambda run: as_html(self.machine, self._record(run), run.launches)
        )

    def trace(self, path: str | Path, timeline: TimelineChoice = "first") -> None:
        """Writes a timeline of the last run for Perfetto, as `report` does its page."""
        from davinci.report.trace import trace_json

        self._write(
            path, timeline, lambda run: trace_json(self.machine, run.launches, self.launching)
        )

    def csv(self, folder: str | Path, timeline: TimelineChoice = "first") -> None:
        """Writes CSV files of the last run, named as the vendor's profiler names them."""
        from davinci.report.csv_files import make_folder, write_csv

        make_folder(str(folder))
        run = self._drawn(timeline)
        write_csv(str(folder), self.machine, self._record(run), run.launches)

    def _write(
        self, path: str | Path, timeline: TimelineChoice, text: Callable[[Run], str]
    ) -> None:
        check_writable(path)
        write_atomically(path, text(self._drawn(timeline)).encode())

    def _drawn(self, timeline: TimelineChoice) -> Run:
        """The last run with at least the rows of `timeline`."""
        run = self._last
        if run.inputs is None:
            raise InputError(
                "nothing has run yet",
                where=str(self.details.get("model", "")),
                hint="call run first",
            )
        if TIMELINES.index(run.timeline) < TIMELINES.index(timeline):
            self._run(list(run.inputs), timeline)
            run = self._last
        return run

    def __repr__(self) -> str:
        from davinci.runtime.view import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from davinci.runtime.view import as_html

        return as_html(self)
