"""A compiled module, ready to run: the host's launch list over a simulated device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from davinci.arrays import random_inputs
from davinci.errors import InputError, did_you_mean
from davinci.files import check_writable, write_atomically
from davinci.garbage import rare_search
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.report import ProgramFacts, Record, build, describe
from davinci.report.launching import LAUNCHING
from davinci.report.program import Kernel
from davinci.report.value_range import outside_ranges
from davinci.runtime import profiling
from davinci.runtime.arguments import Array, bind, fitting, signature
from davinci.runtime.host import HostProgram
from davinci.schedule.choices import of_data
from davinci.schedule.schedule_file import KernelChoices, text_of
from davinci.simulator import LaunchProfile

TimelineChoice = Literal["none", "first", "all"]
TIMELINES: tuple[TimelineChoice, ...] = ("none", "first", "all")
"""From the least to the most that a run keeps."""


@dataclass(frozen=True)
class FinishedRun:
    """One run that came to its end.

    Attributes:
        launches: the profile of each.
        simulate_seconds: that it took.
        inputs: copies of what it was given, in order, or what the device's memory has of it.
        outside: inputs that left their ranges, see `davinci.report.value_range`.
        timeline: which rows `launches` has.
    """

    launches: list[LaunchProfile] = field(default_factory=list)
    simulate_seconds: float = 0.0
    inputs: tuple[Array, ...] | None = None
    timeline: TimelineChoice = "none"
    outside: Sequence[Record] = ()


def check_timeline(timeline: str) -> None:
    """Raises an `InputError` unless there is such a choice of rows."""
    if timeline not in TIMELINES:
        raise InputError(
            "bad value", where="timeline", found=repr(timeline), expected=", ".join(TIMELINES)
        )


class Executable:
    """A compiled model on a simulated device; `davinci.compile` and `davinci.load` return one.

    There is one device, so threads that call `run` at the same time take turns. `launches`,
    `simulate_seconds`, `profile` and what is written from them are of the last run of the thread
    that asks; in a thread that has run nothing, of the last run in any.

    Attributes:
        machine: The machine that is simulated.
        cores: The largest number of cores that a kernel may use.
        checks: Whether the simulator looks for races and for reads of bytes that nobody wrote.
        data: Whether data are computed; without them `run` finds times only.
        inputs: What `run` takes, with `name`, `shape` and `dtype`, in the order of the model.
        outputs: What `run` returns, in the same form.
        launching: How kernels are launched, which decides the time in front of each: "queued" on
            the device as one graph, or each by the "host".
        states: Inputs that outputs are the next values of, with `input`, `output` and `in_place`.
        processes: The number of processes of the host that compute data, 1 unless it is changed.
            Others are made by `fork`, so no other thread of the program may compile or simulate
            during a run.
        poison: Whether bytes of the arena that no value needs are filled with 0xFF before each
            launch, to see that none of them reaches a result; False unless it is changed.
        details: What the compiler adds to the record: model, precision, compile_seconds.
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
        self.poison = False
        self.details: Record = {}
        with module.context, ir.Location.unknown():
            self._facts = describe(module)
            host = HostProgram(module, machine, checks, data, constants)
        self.inputs, self.outputs, self.states = host.inputs, host.outputs, host.states
        self._host = host
        self._lock = threading.Lock()
        self._stepping = threading.Lock()
        self._state: dict[str, Array] = {}
        self.reset()
        self._latest = FinishedRun()
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

        Inputs are given as `run({"x": x, "y": y})`, `run(x, y)` or `run(x, y=y)`. An array is
        anything that NumPy takes, PyTorch tensors on the CPU and JAX arrays too, of exactly the
        shape and element type of its input; Python's numbers and lists are converted to the type.
        An executable without data may be run without inputs: random ones are made.

        Args:
            arrays: one mapping by name, or inputs in the order of `inputs`.
            timeline: which instructions leave a row in the profiles of `launches`: "none", those
                of the "first" launch of each kernel and its first block, or "all".
            named: inputs by name. One that is called `timeline` is given in a mapping.

        Returns:
            The outputs by name, in the order of `outputs`; none without data.

        Raises:
            InputError: an input is missing, unknown, or has another shape or type.
            DeviceFault: the simulated machine found a fault.
        """
        check_timeline(timeline)
        if not (self.data or arrays or named):
            arrays = (random_inputs(self.inputs, seed=0),)
        given = bind(self.inputs, arrays, named, self._host.initial)
        return self._run(given, timeline)

    def step(
        self, /, *arrays: Any, timeline: TimelineChoice = "none", **named: Any
    ) -> dict[str, Array]:
        """Runs the program with its states as the last step left them, and keeps the new ones.

        Inputs are given as to `run`, without those that are states, and outputs are returned
        without their next values: `state` has them. If the run fails, states stay as they were.
        Steps of several threads take turns, but are steps of the same states.

        Args:
            arrays, timeline, named: as of `run`.

        Raises:
            InputError: the model has no states, or an input does not fit.
            DeviceFault: the simulated machine found a fault.
        """
        check_timeline(timeline)
        if not self.states:
            raise InputError(
                "the model has no state",
                where="step",
                hint='name inputs and their next values: davinci.compile(.., state={"past": '
                '"present"}); run needs none',
            )
        kept = {state.input.name for state in self.states}
        others = [spec for spec in self.inputs if spec.name not in kept]
        if not (self.data or arrays or named):
            arrays = (random_inputs(others, seed=0),)
        given = dict(zip((s.name for s in others), bind(others, arrays, named), strict=True))
        with self._stepping:
            full = [{**given, **self._state}[spec.name] for spec in self.inputs]
            results = self._run(full, timeline)
            for state in self.states:
                found = results.pop(state.output.name, None)
                if found is not None:
                    self._state[state.input.name] = found
        return results

    def reset(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Gives states the values that they begin with: those given by name, else those of the
        model, else zeros.

        Raises:
            InputError: there is no such state, or an array does not fit it.
        """
        specs = {state.input.name: state.input for state in self.states}
        found = {name: array for name, array in self._host.initial.items() if name in specs}
        for name, value in {**(values or {}), **named}.items():
            if name not in specs:
                raise InputError(
                    "no such state",
                    where="reset",
                    found=repr(name),
                    expected=signature(list(specs.values())),
                    hint=did_you_mean(str(name), list(specs)),
                )
            found[name] = fitting(value, specs[name], list(specs.values()))
        with self._stepping:
            self._state = {
                name: np.array(found[name]) if name in found else np.zeros(spec.shape, spec.dtype)
                for name, spec in specs.items()
            }

    @property
    def state(self) -> dict[str, Array]:
        """Copies of what states hold, by the names of their inputs."""
        with self._stepping:
            return {name: array.copy() for name, array in self._state.items()}

    def run_in_memory(
        self, inputs: Mapping[str, Any], given_back: Collection[str]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """As `run`, without copies of large arrays: what it returns lies in the device's memory,
        and is what the next run makes of it.

        Args:
            inputs: by name.
            given_back: arrays of the inputs in whose place a report that needs another run gives
                it what the memory holds behind this one: the same where no launch writes.

        Returns:
            The outputs, and the inputs as they are kept.

        Raises:
            InputError, DeviceFault: as of `run`.
        """
        given = bind(self.inputs, (inputs,), {}, self._host.initial)
        results = self._run(given, "none", given_back)
        return results, dict(zip(self.input_names, self._last.inputs or (), strict=True))

    @property
    def memory_bytes(self) -> int:
        """Bytes of the simulated global memory."""
        return self._host.device.gm_bytes

    def _run(
        self,
        arrays: list[Array],
        timeline: TimelineChoice,
        given_back: Collection[str] | None = None,
    ) -> dict[str, Array]:
        """Runs the program; `given_back`: see `run_in_memory`, None to keep and return copies."""
        profiles = profiling.watching()
        wanted = (timeline, *(each.timeline for each in profiles))
        timeline = max(wanted, key=TIMELINES.index)
        lent = {spec.name for spec in self.inputs if spec.name in (given_back or ())}
        inputs = list(zip(self.inputs, arrays, strict=True))
        kept = tuple(array if spec.name in lent else np.array(array) for spec, array in inputs)
        with self._lock, rare_search():
            start = time.perf_counter()
            launches = self._host.execute(kept, timeline, self.processes, self.poison)
            results = self._host.results(in_memory=given_back is not None)
            outside = self._outside(kept)
            kept = tuple(
                self._host.input_in_memory(spec) if spec.name in lent else array
                for spec, array in zip(self.inputs, kept, strict=True)
            )
            run = FinishedRun(launches, time.perf_counter() - start, kept, timeline, outside)
            self._latest = self._of_thread.run = run
        if launches:
            launches[0].begins_run = True
        profiling.note(profiles, self, launches, run.simulate_seconds)
        return results

    def _outside(self, arrays: Sequence[Array]) -> list[Record]:
        """Inputs that are not in the ranges that the program was compiled for."""
        named = dict(zip(self.input_names, arrays, strict=True))
        return outside_ranges(named, self.details.get("input_ranges", []))

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
    def _last(self) -> FinishedRun:
        run: FinishedRun = getattr(self._of_thread, "run", self._latest)
        return run

    @property
    def has_run(self) -> bool:
        """True once `run` has come to an end, so that there is something to report."""
        return self._last.inputs is not None

    @property
    def launches(self) -> list[LaunchProfile]:
        """The profile of each launch of the last run."""
        return self._last.launches

    @property
    def simulate_seconds(self) -> float:
        """Seconds of the host that the last run took to simulate."""
        return self._last.simulate_seconds

    @property
    def profile(self) -> Record:
        """The record of the last run, a dictionary with the keys that `npu-run --json` writes."""
        return self._record(self._last)

    def _record(self, run: FinishedRun) -> Record:
        record = build(run.launches, self._facts, self.machine, self.cores, self.launching)
        if "input_ranges" in self.details:
            record["range"]["inputs"] = list(run.outside)
        if self.states:
            record["state"] = [
                {
                    "input": state.input.name,
                    "output": state.output.name,
                    "bytes": state.input.nbytes,
                    "in_place": state.in_place,
                }
                for state in self.states
            ]
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
    def facts(self) -> ProgramFacts:
        """Facts about kernels and memory that the module's attributes hold."""
        return self._facts

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """The kernels by name, with label, operators, unit and schedule of each."""
        return self._facts.kernels

    def schedules(self) -> str:
        """The schedules of all kernels as JSON text: written to a file, and changed if wanted,
        `davinci.compile` takes it as `schedules`. After a run it has the cycles of each kernel."""
        rows = {row["name"]: row for row in self.profile["kernels"]} if self.has_run else {}
        known = (
            KernelChoices(
                key,
                name,
                rows[name]["cycles"] // rows[name]["launches"] if name in rows else 0,
                of_data(choices),
            )
            for name, kernel in self.kernels.items()
            for key, choices in kernel.decided
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
        """Writes the last run as a page of HTML, as `npu-run --report` does.

        A run that kept fewer rows than `timeline` is made again, with the same inputs.

        Raises:
            InputError: nothing has run yet, or the file cannot be written.
        """
        from davinci.report.page import as_html

        self._write(
            path, timeline, lambda run: as_html(self.machine, self._record(run), run.launches)
        )

    def trace(self, path: str | Path, timeline: TimelineChoice = "first") -> None:
        """Writes a timeline of the last run for Perfetto; arguments and errors as of `report`."""
        from davinci.report.trace import trace_json

        self._write(
            path,
            timeline,
            lambda run: trace_json(self.machine, run.launches, self.launching, self._facts),
        )

    def csv(self, folder: str | Path, timeline: TimelineChoice = "first") -> None:
        """Writes CSV files of the last run, named as the vendor's profiler names them."""
        from davinci.report.csv_files import make_folder, write_csv

        make_folder(str(folder))
        run = self._drawn(timeline)
        write_csv(str(folder), self.machine, self._record(run), run.launches)

    def _write(
        self, path: str | Path, timeline: TimelineChoice, text: Callable[[FinishedRun], str]
    ) -> None:
        check_writable(path)
        write_atomically(path, text(self._drawn(timeline)).encode())

    def _drawn(self, timeline: TimelineChoice) -> FinishedRun:
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
