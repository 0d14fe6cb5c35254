"""Runs scripts and tests that are written for an NPU and its PyTorch, on the CPU.

Kernels of Triton run on the simulated 910B; everything that PyTorch does on the device `npu` it
does on the CPU. `run_script` and `run_tests` are called in processes of their own.
"""

from __future__ import annotations

import functools
import gc
import importlib.machinery
import importlib.util
import json
import os
import random
import runpy
import signal
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from triton_page import NEWER_OPTIONS

NPU = "npu"


def on_cpu(value: Any) -> Any:
    """The CPU in place of the NPU."""
    if isinstance(value, str) and value.split(":")[0] == NPU:
        return "cpu"
    return value


def wrapped(tensor: torch.Tensor, value: Any) -> Any:
    """A number that is put into a tensor of integers, as the NPU converts it; the CPU refuses one
    that does not fit."""
    if isinstance(value, (int, float)) and not (tensor.is_floating_point() or tensor.is_complex()):
        return torch.tensor(value).to(tensor.dtype)
    return value


class OnCpu(TorchFunctionMode):
    """Functions of PyTorch with the CPU in place of the NPU, and what the CPU refuses of them and
    the NPU does not: numbers that do not fit a tensor they are put into, random integers of `rand`,
    comparisons of two types."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = {name: on_cpu(value) for name, value in (kwargs or {}).items()}
        args = tuple(map(on_cpu, args))
        if func is torch.Tensor.__setitem__:
            tensor, index, value = args
            args = tensor, index, wrapped(tensor, value)
        elif func is torch.isclose and args[0].dtype != args[1].dtype:
            wide = torch.promote_types(args[0].dtype, args[1].dtype)
            args = args[0].to(wide), args[1].to(wide), *args[2:]
        elif func is torch.rand and not named.get("dtype", torch.float32).is_floating_point:
            return func(*args, **{**named, "dtype": torch.float32}).to(named["dtype"])
        return func(*args, **named)


RENAMED = "triton.language.extra.cann"
"""What newer releases of triton-ascend call `triton.language.extra.ascend`."""

EXTENSION = (
    "compile_hint", "extract_slice", "flip", "gather", "get_element", "index_put",
    "index_select_simd", "insert_slice", "multibuffer", "parallel", "sort", "sync_block_all",
    "sync_block_set", "sync_block_wait",
)  # fmt: skip
"""Functions that newer releases have in a module `extension`, of those that this one has."""


class StandIn(types.ModuleType):
    """A module in place of one that is not here; what it has not been given does nothing, and
    modules that look for what Python itself puts into modules find nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=f"{self.__name__}.{name}")


def stand_in(name: str, **members: Any) -> types.ModuleType:
    """A module of that name with these members; others do nothing."""
    module = StandIn(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__path__ = []
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def renamed() -> None:
    """Puts the modules where newer releases of triton-ascend have them; functions that the
    installed one has not are missing."""
    import triton.language as tl
    from triton.language.extra.ascend import libdevice

    cann, extension = types.ModuleType(RENAMED), types.ModuleType(f"{RENAMED}.extension")
    for name in EXTENSION:
        for source in (libdevice, tl):
            if hasattr(source, name):
                setattr(extension, name, getattr(source, name))
    cann.__dict__.update(libdevice=libdevice, extension=extension, __path__=[])
    tl.extra.cann = cann
    sys.modules |= {
        RENAMED: cann,
        extension.__name__: extension,
        f"{RENAMED}.libdevice": libdevice,
    }


def figure_and_axes(*args: Any, **named: Any) -> tuple[MagicMock, MagicMock]:
    return MagicMock(), MagicMock()


def npu_fusion_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    heads: int,
    *,
    scale: float,
    input_layout: str,
    atten_mask: torch.Tensor | None = None,
    **named: Any,
) -> tuple[torch.Tensor]:
    """Attention as the NPU's PyTorch has it, of [batch, heads, length, depth] and without a mask,
    in f32."""
    if input_layout != "BNSD" or atten_mask is not None:
        raise NotImplementedError(f"attention of {input_layout} or with a mask on the CPU")
    wide = (each.detach().float() for each in (query, key, value))
    found = torch.nn.functional.scaled_dot_product_attention(*wide, scale=scale)
    return (found.to(query.dtype),)


def prepare() -> None:
    """Puts stand-ins where a script expects the NPU."""
    import davinci.triton

    torch.npu = stand_in(  # type: ignore[attr-defined]
        "torch.npu",
        is_available=lambda: True,
        current_device=lambda: 0,
        device_count=lambda: 1,
        synchronize=lambda *args: None,
        current_stream=lambda *args: types.SimpleNamespace(npu_stream=0, synchronize=lambda: None),
    )
    stand_in(
        "torch_npu",
        npu=torch.npu,  # type: ignore[attr-defined]
        npu_fusion_attention=npu_fusion_attention,
        __version__="2.7",
    )
    for name in ("testing", "testing.testcase", "testing.common_utils"):
        stand_in(f"torch_npu.{name}")
    if importlib.util.find_spec("matplotlib") is None:  # figures are not looked at
        stand_in("matplotlib", pyplot=stand_in("matplotlib.pyplot", subplots=figure_and_axes))
    # It keeps launches for the next call, and asks what they return how to repeat them.
    stand_in("triton.runtime.libentry", libentry=lambda: lambda kernel: kernel)
    renamed()
    torch.Tensor.npu = lambda tensor, *args, **named: tensor  # type: ignore[attr-defined]
    ready_to_fork()
    davinci.triton.activate()
    launches_noted_without_newer_options()


def ready_to_fork() -> None:
    """Compiles and runs a kernel and compares its array, so that processes forked from this one
    find modules loaded and functions of the simulator compiled, which takes longer than most
    kernels of tests; what is loaded is no work for their garbage collector."""
    from warm_up_kernel import doubled

    import davinci.triton

    ones = torch.ones(100)
    davinci.triton.run(doubled, 2, ones, 100, length=64)
    torch.testing.assert_close(ones, torch.full((100,), 2.0))
    gc.collect()
    gc.freeze()


LAUNCH_SECONDS: list[float] = []
"""Of each launch of the test or script that runs, seconds of the processor, compilation included;
what PyTorch computes beside launches is not in them."""


def noted_launches() -> dict[str, float]:
    """How many launches there were since the last call, their seconds, and the slowest one's."""
    found = {
        "launches": len(LAUNCH_SECONDS),
        "launch_seconds": sum(LAUNCH_SECONDS),
        "slowest_launch": max(LAUNCH_SECONDS, default=0.0),
    }
    LAUNCH_SECONDS.clear()
    return found


def launches_noted_without_newer_options() -> None:
    """Launches take newer options, drop them, and are noted in `LAUNCH_SECONDS`."""
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def launched(kernel: Any, *args: Any, **named: Any) -> Any:
        dropped = [name for name in NEWER_OPTIONS if name not in kernel.arg_names]
        begin = processor_seconds()
        try:
            return run(kernel, *args, **{n: v for n, v in named.items() if n not in dropped})
        finally:
            LAUNCH_SECONDS.append(processor_seconds() - begin)

    JITFunction.run = launched


def processor_seconds() -> float:
    """Of this process and of those that it has started and waited for: the vendor's compilers."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def run_script(path: Path, note: Callable[[dict[str, Any]], None]) -> None:
    """Runs a script to its end and notes what it raises."""
    begin = processor_seconds()
    note({"begin": path.name})
    error = None
    sys.argv = [str(path)]
    with OnCpu():
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            error = end if end.code else None
        except BaseException as raised:
            error = raised
    seconds = processor_seconds() - begin
    note({"end": path.name, "seconds": seconds, **noted_launches(), **described(error)})


def described(error: BaseException | None) -> dict[str, Any]:
    """An exception as its type, its message, and the modules that it went through."""
    if error is None:
        return {"error": None}
    frames, step = [], error.__traceback__
    while step is not None:
        frames.append(step.tb_frame.f_globals.get("__name__", ""))
        step = step.tb_next
    return {"error": type(error).__name__, "message": str(error)[:4000], "frames": frames}


class OutOfTime(BaseException):
    """A test takes too long."""


@dataclass(frozen=True)
class Cases:
    """Which cases of tests run, and how.

    Attributes:
        count: how many of a test, from the first to the last at equal distances.
        seconds: of the processor that a case may take, without the vendor's compilers.
        only: those that run; None for all.
        checks: the simulated machine looks for races.
    """

    count: int
    seconds: int
    only: frozenset[str] | None = None
    checks: bool = True


class Noted:
    """A plugin of pytest that runs some cases of each test and notes what they raise.

    Attributes:
        cases: which of them.
        skip: cases that ran before, in a process that died.
    """

    def __init__(
        self, note: Callable[[dict[str, Any]], None], cases: Cases, skip: set[str]
    ) -> None:
        self.note, self.cases, self.skip = note, cases, skip
        self.errors: dict[str, BaseException] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        tests: dict[Any, list[Any]] = defaultdict(list)
        for item in items:
            tests[getattr(item, "originalname", item.name)].append(item)
        kept = []
        for found in tests.values():
            count = min(self.cases.count, len(found))
            kept += [found[i * (len(found) - 1) // max(1, count - 1)] for i in range(count)]
        only = self.cases.only
        items[:] = [
            item
            for item in kept
            if item.nodeid not in self.skip and (only is None or item.nodeid in only)
        ]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            text = str(report.longrepr)
            last = [line[2:].strip() for line in text.splitlines() if line.startswith("E ")]
            message = last[-1] if last else text[-300:]
            name = message.split(":")[0]
            self.note({"end": "", "test": "", "seconds": 0, "error": name, "message": message})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        test = getattr(item, "originalname", item.name)
        self.note({"begin": item.nodeid, "test": test})
        begin = processor_seconds()
        self.errors.pop(item.nodeid, None)
        self.outcome = "passed"
        signal.setitimer(signal.ITIMER_PROF, self.cases.seconds)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = processor_seconds() - begin
            record = {"end": item.nodeid, "test": test, "seconds": seconds, **noted_launches()}
            error = self.errors.get(item.nodeid)
            self.note({**record, "outcome": self.outcome, **described(error)})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        if report.outcome != "passed" and self.outcome == "passed":
            self.outcome = report.outcome
            if call.excinfo is not None:
                self.errors[item.nodeid] = call.excinfo.value
        return report


def run_tests(
    path: Path, note: Callable[[dict[str, Any]], None], cases: Cases, skip: set[str]
) -> None:
    """Runs some cases of each test in a file and notes what they raise."""

    def alarm(*args: Any) -> None:
        raise OutOfTime

    signal.signal(signal.SIGPROF, alarm)
    with OnCpu():
        # Of the plugins that are installed, tests use a fixture of xdist; loading all takes longer.
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        options = ["-q", "-p", "no:cacheprovider", "-p", "xdist", "-n", "0", "--no-header"]
        pytest.main([*options, str(path)], plugins=[Noted(note, cases, skip)])


def is_script(path: Path) -> bool:
    """Whether a file runs by itself, and is not for pytest."""
    text = path.read_text()
    return not (path.name.startswith("test_") or "@pytest.mark.parametrize" in text)


@contextmanager
def unchecked() -> Iterator[None]:
    """Inside, the simulated machine looks neither for races nor for bytes that nobody wrote."""
    import davinci.triton.launch as launching

    without = functools.partial(launching.compile, checks=False)  # type: ignore[attr-defined]
    fresh = launching.CompiledKernels()
    with mock.patch.multiple(launching, compile=without, COMPILED=fresh):
        yield


def run(path: Path, notes: Path, cases: Cases, skip: set[str]) -> None:
    """Runs a file as what it is, and writes what it notes as lines of JSON. Its random numbers are
    the same in every run: tolerances of some files are less than what rounding may make of others.
    """
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    with nullcontext() if cases.checks else unchecked(), notes.open("a") as file:

        def note(record: dict[str, Any]) -> None:
            file.write(json.dumps(record) + "\n")
            file.flush()

        if is_script(path):
            run_script(path, note)
        else:
            run_tests(path, note, cases, skip)
