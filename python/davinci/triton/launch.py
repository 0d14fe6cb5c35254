"""Runs kernels of Triton, by the vendor's compilers or our passes, on the simulated 910B."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.compiler import compile
from davinci.errors import InputError
from davinci.frontends.hivm import Argument, Given
from davinci.runtime.executable import Executable
from davinci.triton import source as sources
from davinci.triton.fitting import what_fits
from davinci.triton.memory import ArgumentMemory, is_array, memories
from davinci.triton.source import ArrayArgument, KernelSource
from davinci.triton.toolchain import COMPILER, OURS, VENDOR, NoRoom, to_hivm, to_linalg
from davinci.triton.ways import WAYS

DIMENSIONS = 3
MOST_BYTES = 2 << 30
"""Bytes of the host's memory that executables hold together, at most, to run again."""

EXECUTABLE_BYTES = 80 << 20
"""Of the host's memory, what an executable holds beside simulated global memory: memories on the
chip, tables of instructions, compiled code; measured on kernels of 40 blocks."""

DEVICE_PRINT = '"hivm.hir.debug"'

Grid = int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]


@dataclass(frozen=True)
class LaunchReport:
    """What a launch left.

    Attributes:
        kernel: its name.
        grid: numbers of programs.
        compiler: who made it, "vendor" or "ours".
        executable: that ran it; `profile` and `launches` are those of the last launch with it.
        asm: the kernel at each step of its compilation, under Triton's names for them: "ttir",
            "ttadapter" and, as the vendor's compilers made it, "hivm".
        profile: the record of the run, as `npu-run --json` writes it.
    """

    kernel: str
    grid: tuple[int, ...]
    compiler: str
    executable: Executable
    asm: Mapping[str, str] = field(repr=False)
    profile: dict[str, Any] = field(repr=False)

    @property
    def hivm(self) -> str:
        """The kernel as the vendor's compilers made it, text of AscendNPU-IR.

        Raises:
            InputError: our passes made it.
        """
        if self.compiler != VENDOR:
            raise InputError(
                f"{self.kernel} has no text of AscendNPU-IR",
                found=f"{COMPILER}={self.compiler}",
                expected=f"{COMPILER}={VENDOR}",
            )
        return self.asm["hivm"]

    @property
    def cycles(self) -> int:
        """Cycles of the launch, from its first to its last instruction."""
        return int(self.profile["total_cycles"])

    @property
    def time_us(self) -> float:
        """Simulated microseconds, the launch itself included."""
        return float(self.profile["time_us"])

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page of HTML: table, timeline, verdict; see `Executable.report`."""
        self.executable.report(str(path))

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a timeline for Perfetto."""
        self.executable.trace(str(path))

    def what_if(self, question: str) -> list[dict[str, Any]]:
        """What the launch would gain by changes of the machine, see `Executable.what_if`."""
        return self.executable.what_if(question)


@dataclass(frozen=True)
class LastRun:
    """The launch that was simulated last. One more with the same bytes leaves the same, and takes
    as long: loops that measure launches need not wait for it.

    Attributes:
        executable: that ran it.
        inputs: what it was given, as the executable keeps it.
        outputs: what it left, in the executable's memory.
        overwritten: digests of what arrays held that it only stores to.
    """

    executable: Executable
    inputs: Mapping[str, npt.NDArray[Any]]
    outputs: Mapping[str, npt.NDArray[Any]]
    overwritten: Mapping[str, bytes]

    def repeated(
        self,
        executable: Executable,
        inputs: Mapping[str, npt.NDArray[Any]],
    ) -> set[str] | None:
        """Whether a launch of this program with these inputs leaves the bytes of the last one.
        Arrays that the kernel only stores to may be as the last one found them, or left them.

        Returns:
            Arrays that are already as it leaves them; None if it is another launch.
        """
        if executable is not self.executable:
            return None
        unread = self.overwritten
        left = {name for name in unread if same_bytes(self.outputs[name], inputs[name])}
        same = all(
            digest(inputs[name]) == unread[name]
            if name in unread
            else same_bytes(self.inputs[name], inputs[name])
            for name in self.inputs
            if name not in left
        )
        return left if same else None


def same_bytes(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Whether arrays of one type and size have the same bytes, NaNs and signs of zeros too."""
    pair = [array.reshape(-1).view(np.uint8) for array in (one, other)]
    words = pair[0].size // 8 * 8
    first, second = [array[:words].view(np.uint64) for array in pair]
    return np.array_equal(first, second) and np.array_equal(pair[0][words:], pair[1][words:])


def digest(array: npt.NDArray[Any]) -> bytes:
    """Tells the bytes of an array from others."""
    return sha256(array.reshape(-1).view(np.uint8).data).digest()


@dataclass(frozen=True)
class MadeKernel:
    """A kernel as the vendor's compilers made it, or as our passes take it.

    Attributes:
        asm: its texts, see `LaunchReport`.
        arguments: names of the parameters that are its arguments, in order.
        compiler: who compiles it, see `toolchain.COMPILERS`.
    """

    asm: Mapping[str, str]
    arguments: Sequence[str]
    compiler: str = VENDOR

    @property
    def text(self) -> str:
        """The last of its texts, of which an executable is made."""
        return self.asm[WAYS[self.compiler].step]


def made_of(source: KernelSource) -> MadeKernel:
    """Compiles a kernel by the vendor's compilers, as far as they are asked to.

    Raises:
        CompileError: one of them refuses it.
    """
    compiler = str(source.options.get(COMPILER, VENDOR))
    if compiler == OURS:
        adapted = {"ttir": source.ttir, "ttadapter": to_linalg(source.ttir)}
        return MadeKernel(adapted, source.arguments, compiler)
    texts = to_hivm(source.ttir, source.options)
    if DEVICE_PRINT in texts.hivm:
        warnings.warn(f"{source.name}: tl.device_print prints nothing here", stacklevel=2)
    asm = {"ttir": source.ttir, "ttadapter": texts.ttadapter, "hivm": texts.hivm}
    return MadeKernel(asm, source.arguments)


class CompiledKernels:
    """The compiled kernels of the process, by their keys, and the launch that ran last.

    Attributes:
        made: kernels of Triton, by what decides on their texts.
        arguments: that callers give, by the name and the text of a kernel.
        executables: by texts and shapes.
    """

    def __init__(self) -> None:
        self.made: dict[Hashable, MadeKernel] = {}
        self.arguments: dict[tuple[str, str], Sequence[Argument]] = {}
        self.executables: dict[Hashable, Executable] = {}
        self.last: LastRun | None = None

    def executable(self, key: Hashable, make: Callable[[], Executable]) -> Executable:
        """The executable of that key, made if there is none. Where all but this one hold more than
        `MOST_BYTES`, those that were not asked for longest go until the others hold half of it."""
        found = self.executables.pop(key, None) or make()
        held = sum(map(host_bytes, self.executables.values()))
        if held > MOST_BYTES:
            while 2 * held > MOST_BYTES and self.executables:
                held -= host_bytes(self.executables.pop(next(iter(self.executables))))
        self.executables[key] = found
        return found


def host_bytes(executable: Executable) -> int:
    """Bytes of the host's memory that an executable holds, about."""
    return executable.memory_bytes + EXECUTABLE_BYTES


COMPILED = CompiledKernels()


def run(kernel: Any, grid: Grid, *args: Any, **named: Any) -> LaunchReport:
    """Runs a kernel once.

    Args:
        kernel: a function with `@triton.jit`.
        grid: one to three numbers of programs, or a function of the parameters that gives them.
        args: arguments: NumPy arrays, PyTorch tensors on the CPU, numbers. What the kernel stores
            is in the arrays afterwards.
        named: arguments by name, constants (`tl.constexpr`), options of the vendor's compiler,
            `multibuffer=False` for example, and `compiler="ours"`, by which our passes compile
            what the vendor's adapter makes.

    Returns:
        The report: cycles, profile, and what writes pages of them.

    Raises:
        InputError: the extra is not installed, or arguments do not fit.
        CompileError: a compiler refuses the kernel; with the line of Python.
        DeviceFault: the simulated machine found a fault: a race, memory out of bounds, a deadlock.
    """
    return launched(*compiled(kernel, grid, args, named))


def time(kernel: Any, grid: Grid, *args: Any, **named: Any) -> LaunchReport:
    """As `run`, without data and checks: arrays stay as they are, and the scalar unit sees zeros
    for what the kernel computes."""
    return launched(*compiled(kernel, grid, args, named), timing_only=True)


def compiled(
    kernel: Any, grid: Grid, args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[BoundLaunch, MadeKernel]:
    """A launch, and what the vendor's compilers make of its kernel, unless they made it before;
    see `run`."""
    call = bound_launch(kernel, grid, args, named)
    key = text_key(kernel, call.given)
    if key not in COMPILED.made:
        source = sources.source_of(kernel, call.given)
        try:
            COMPILED.made[key] = made_of(source)
        except NoRoom as error:
            raise error.with_hint(what_fits(kernel, call.given, error)) from None
    return call, COMPILED.made[key]


@dataclass(frozen=True)
class BoundLaunch:
    """A launch whose arguments have their parameters.

    Attributes:
        name: of the kernel.
        sizes: numbers of programs.
        given: what Triton sees of each parameter, and options of the compilers.
        scalars: values of parameters that are no arrays.
        memory: of those that are.
    """

    name: str
    sizes: tuple[int, ...]
    given: Mapping[str, Any]
    scalars: Mapping[str, Any]
    memory: Mapping[str, ArgumentMemory]


def bound_launch(
    kernel: Any, grid: Grid, args: Sequence[Any], named: Mapping[str, Any]
) -> BoundLaunch:
    """Gives arguments to their parameters; see `run`.

    Raises:
        InputError: they do not fit.
    """
    values = sources.bound(kernel, args, named)
    sizes = sizes_of(grid, values)
    arrays = {name: value for name, value in values.items() if is_array(value)}
    scalars = {name: as_scalar(value) for name, value in values.items() if name not in arrays}
    buffers = {name: ArrayArgument(np.dtype(kind_of(arrays[name])), 0) for name in arrays}
    return BoundLaunch(kernel.fn.__name__, sizes, {**scalars, **buffers}, scalars, memories(arrays))


def kind_of(value: Any) -> Any:
    """The element type of an array or tensor."""
    name = str(value.dtype).removeprefix("torch.")
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return name


def as_scalar(value: Any) -> Any:
    """NumPy's and PyTorch's numbers as Python's, and what `tl.constexpr` holds; anything else as
    it is."""
    if type(value).__name__ == "constexpr":
        return value.value
    if isinstance(value, np.generic) or (hasattr(value, "item") and not getattr(value, "shape", 1)):
        return value.item()
    return value


def sizes_of(grid: Grid, values: Mapping[str, Any]) -> tuple[int, ...]:
    """The numbers of programs.

    Raises:
        InputError: there are none, or more than three.
    """
    found = grid(dict(values)) if callable(grid) else grid
    sizes = (found,) if isinstance(found, (int, np.integer)) else tuple(found)
    if not 1 <= len(sizes) <= DIMENSIONS or any(int(n) < 0 for n in sizes):
        raise InputError("bad grid", found=str(found), expected="one to three numbers of programs")
    return tuple(int(n) for n in sizes)


def text_key(kernel: Any, given: Mapping[str, Any]) -> Any:
    """What decides on the text of a kernel: its code, types, constants, what Triton looks at."""
    parts: list[Any] = [kernel.cache_key]
    constants = {param.name for param in kernel.params if param.is_constexpr}
    for name, value in given.items():
        if isinstance(value, ArrayArgument):
            parts.append((name, str(value.dtype), value.data_ptr() % 16))
        elif name in constants or not isinstance(value, (int, float)) or isinstance(value, bool):
            parts.append((name, repr(value)))
        elif isinstance(value, int):
            wide = -(1 << 31) <= value < 1 << 31
            parts.append((name, "int", value == 1, value % 16 == 0, wide))
        else:
            parts.append((name, "float"))
    return tuple(parts)


def launched(call: BoundLaunch, made: MadeKernel, timing_only: bool = False) -> LaunchReport:
    """Compiles the launch of a kernel for these arrays, or finds it compiled, and runs it.

    Args:
        timing_only: no data are computed and nothing is checked; arrays stay as they are.
    """
    name, sizes, memory = call.name, call.sizes, call.memory
    text, names, way = made.text, made.arguments, WAYS[made.compiler]
    taken = arguments_taken(made, name)
    given = []
    for number, argument in enumerate(names):
        if argument in memory:
            mine = memory[argument]
            same = names.index(mine.same) if mine.same in names else None
            given.append(Given(argument, mine.flat.shape, mine.element, same))
        else:
            given.append(Given(argument, None, taken[number].element))
    key = (text, sizes, tuple(given), timing_only)

    def make() -> Executable:
        module = way.module(text, sizes, given, name)
        built = compile(module, machine=way.machine, timing_only=timing_only)
        built.details |= {"model": name}
        return built

    executable = COMPILED.executable(key, make)
    inputs = {}
    for each in given:
        if each.same is not None:
            continue
        if each.shape is not None:
            inputs[each.name] = memory[each.name].flat
        else:
            kind = executable_dtype(executable, each.name)
            inputs[each.name] = np.asarray(call.scalars[each.name]).astype(kind)
    read = read_too(given, taken)
    given_back = {name for name, array in inputs.items() if array.shape} - read
    if timing_only:
        executable.run_in_memory(inputs, given_back)
        return LaunchReport(name, sizes, made.compiler, executable, made.asm, executable.profile)
    last = COMPILED.last
    left = None if last is None else last.repeated(executable, inputs)
    if last is None or left is None:
        COMPILED.last = None
        stored = {output.name for output in executable.outputs}
        overwritten = {name: digest(inputs[name]) for name in stored - read}
        outputs, kept = executable.run_in_memory(inputs, given_back)
        last = COMPILED.last = LastRun(executable, kept, outputs, overwritten)
    for output, array in last.outputs.items():
        if left is None or output not in left:
            np.copyto(memory[output].flat, array)
    return LaunchReport(name, sizes, made.compiler, executable, made.asm, executable.profile)


def read_too(given: Sequence[Given], taken: Sequence[Argument]) -> set[str]:
    """Arrays that a kernel stores to and also reads, by whichever of its arguments."""
    pairs = list(zip(given, taken, strict=False))
    names = {g: g.name if g.same is None else given[g.same].name for g in given}
    read = {names[g] for g, argument in pairs if argument.read}
    return {names[g] for g, argument in pairs if argument.written} & read


def arguments_taken(made: MadeKernel, name: str) -> Sequence[Argument]:
    """The arguments that callers give to a kernel."""
    key = name, made.text
    if key not in COMPILED.arguments:
        COMPILED.arguments[key] = WAYS[made.compiler].arguments(made.text, name)
    return COMPILED.arguments[key]


def executable_dtype(executable: Executable, name: str) -> Any:
    """The element type of an input."""
    return next(spec.dtype for spec in executable.inputs if spec.name == name)
