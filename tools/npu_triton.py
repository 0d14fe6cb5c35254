"""`npu-run FILE.py:KERNEL --grid N --args ...`: one launch of a kernel of Triton."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from davinci import errors
from davinci.tools.command import refuse_others

if TYPE_CHECKING:
    import numpy as np

    from davinci.job import JobResult
    from davinci.triton.launch import LaunchReport

MODEL = re.compile(r"(?P<file>.+\.py):(?P<kernel>[A-Za-z_]\w*)")
ARRAY = re.compile(r"(?P<element>[a-zA-Z]+\w*)\[(?P<shape>\d+(,\d+)*)\]")
TAKEN = frozenset(
    (
        *("model", "compiler", "grid", "args", "inputs", "seed", "instruction_limit", "timeline"),
        *("nodes", "outputs", "json", "trace", "report", "csv"),
    )
)
"""Options of npu-run that mean something for a kernel of Triton."""


@dataclass(frozen=True)
class ArrayOfText:
    """An array that --args describes."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def is_kernel(model: str) -> bool:
    """Whether an argument of npu-run names a kernel of Triton."""
    return MODEL.fullmatch(model) is not None


def require_options(options: Any, defaults: Any) -> None:
    """Raises an `InputError` for an option that means nothing for a kernel of Triton."""
    message = "not for kernels of Triton, which run as the vendor's compiler made them"
    expected = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(TAKEN - {"model"}))
    refuse_others(options, defaults, TAKEN, message, expected=expected)


def execute(
    options: Any,
    write: Callable[[JobResult], None],
    show: Callable[[dict[str, Any]], None],
) -> int:
    """Launches the kernel once; arrays of which nothing is given are random numbers."""
    from davinci import arrays, triton
    from davinci.job import JobResult
    from davinci.runtime.profiling import profile
    from davinci.tools.progress import Progress
    from davinci.triton.toolchain import tools

    found = MODEL.fullmatch(options.model)
    assert found is not None, "asked by the caller"
    sizes = grid_of(options.grid)
    given = arrays.load_npz(options.inputs) if options.inputs else {}
    with Progress() as progress:
        tools()  # says what to install
        progress("reading the kernel")
        kernel = kernel_of(Path(found["file"]), found["kernel"])
        values = arguments(options.args or [], given, options.seed)
        progress("compiling and simulating")
        drawn = any((options.trace, options.report, options.csv, options.json, options.nodes))
        with profile(options.timeline if drawn else "none"):
            report: LaunchReport = triton.run(kernel, sizes, compiler=options.compiler, **values)
        outputs = {name: value for name, value in values.items() if hasattr(value, "shape")}
        made = report.executable
        result = JobResult(made, outputs, made.profile, made.launches)
        progress("writing results")
        write(result)
    show(result.record)
    return errors.EXIT_OK


def grid_of(text: str | None) -> tuple[int, ...]:
    """The numbers of programs of `4` or `4,2`.

    Raises:
        InputError: none is given, or it is not of this form.
    """
    form = "one to three numbers of programs: --grid 4 or --grid 4,2"
    if text is None:
        raise errors.InputError("a kernel needs a grid", where="--grid", expected=form)
    if re.fullmatch(r"\d+(,\d+){0,2}", text) is None:
        raise errors.InputError("bad grid", where="--grid", found=repr(text), expected=form)
    return tuple(int(number) for number in text.split(","))


def kernel_of(file: Path, name: str) -> Any:
    """The kernel of a file of Python, which is run as a module of its name.

    Raises:
        InputError: no such file, one that fails, or no such kernel in it.
    """
    if not file.is_file():
        raise errors.InputError("no such file", where=str(file))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None, "files of Python have a loader"
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # of the user's own code, of any kind
        found = f"{type(error).__name__}: {error}"
        raise errors.InputError("the file cannot be run", where=str(file), found=found) from None
    finally:
        sys.path.pop(0)
    kernels = {key: value for key, value in vars(module).items() if hasattr(value, "fn")}
    if name not in kernels:
        raise errors.InputError(
            "no such kernel",
            where=str(file),
            found=name,
            expected=", ".join(kernels) or "a function with @triton.jit",
            hint=errors.did_you_mean(name, kernels),
        )
    return kernels[name]


def arguments(texts: Sequence[str], given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Arguments by name: `x=f32[4096]` is an array of random numbers, unless a file gives it, and
    `n=4096`, `eps=1e-5`, `CAUSAL=True` are numbers.

    Raises:
        InputError: one has another form, or an array of a file has another shape.
    """
    from davinci import arrays
    from davinci.element_types import DTYPES, dtype_of
    from davinci.narrow import NARROW

    specs: dict[str, ArrayOfText] = {}
    values: dict[str, Any] = dict(given)
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier() or not value:
            raise errors.InputError(
                "bad argument",
                where="--args",
                found=repr(text),
                expected="NAME=VALUE: x=f32[4096], n=4096, eps=1e-5, CAUSAL=True",
            )
        array = ARRAY.fullmatch(value)
        if array is None:
            values[name] = number_of(name, value)
            continue
        if array["element"] not in (*DTYPES, *NARROW):
            raise errors.InputError(
                f"argument {name}: no such element type",
                where="--args",
                found=array["element"],
                expected=", ".join((*DTYPES, *NARROW)),
            )
        shape = tuple(int(size) for size in array["shape"].split(","))
        specs[name] = ArrayOfText(name, shape, dtype_of(array["element"]))
        if name in given and (given[name].shape, given[name].dtype) != (shape, specs[name].dtype):
            raise errors.InputError(
                f"argument {name} is another array in the file",
                where="--inputs",
                found=f"{given[name].dtype}{list(given[name].shape)}",
                expected=value,
            )
    drawn = arrays.random_inputs([spec for n, spec in specs.items() if n not in given], seed)
    return {**values, **drawn}


def number_of(name: str, text: str) -> int | float | bool | None:
    """A number, a truth value or None, as Python spells it.

    Raises:
        InputError: none of these.
    """
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise errors.InputError(
        f"argument {name} is neither an array nor a number",
        where="--args",
        found=text,
        expected="f32[4096], 4096, 1e-5, True",
    )
