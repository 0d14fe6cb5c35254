"""What `gdp.compile` returns: a program with one executable for each shape of its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci import compiler
from davinci import machine as machines
from davinci.errors import InputError
from davinci.gdp.arrays import Array, input
from davinci.gdp.lowering import Specs, build
from davinci.gdp.masks import Ways
from davinci.mlir import make_context
from davinci.runtime.arguments import as_array, bind
from davinci.runtime.executable import Executable

Arrays = dict[str, npt.NDArray[Any]]

MACHINE = "ascend310"
"""The machine that the idea comes from: two AI cores, 8 W."""


@dataclass(frozen=True)
class ArrayGraph:
    """A program of symbolic arrays: inputs, and outputs by name."""

    inputs: Sequence[Array]
    outputs: Mapping[str, Array]

    @property
    def names(self) -> list[str]:
        return [x.name for x in self.inputs]


@dataclass
class Model:
    """A data-processing program that is compiled once for each shape of its inputs.

    Attributes:
        name: what reports call it.
        options: of `davinci.compile`.
        executables: by element types and shapes of the inputs.
    """

    name: str
    options: Mapping[str, Any]
    executables: dict[Any, Executable] = field(default_factory=dict)
    _graph: ArrayGraph | None = None
    _function: Callable[..., Any] | None = None
    _whole: Executable | None = None
    _lock: Any = field(default_factory=RLock)

    def prepared(self, inputs: Mapping[str, Any]) -> tuple[Executable, Arrays]:
        """The executable for the shapes of `inputs`, compiled if they are new, and the inputs as
        arrays that are the model's own.

        Raises:
            InputError: an input is missing or unknown, or the program does not take these shapes.
            CompileError: it cannot be compiled for them.
        """
        if self._whole is not None:
            executable = self._whole
        else:
            given = {name: as_array(x, f"input {name!r}") for name, x in inputs.items()}
            executable = self.executable({name: (x.dtype, x.shape) for name, x in given.items()})
        arrays = bind(executable.inputs, [inputs], {})
        copies = [np.array(x) for x in arrays]
        return executable, dict(zip(executable.input_names, copies, strict=True))

    def executable(self, specs: Specs) -> Executable:
        """The executable for these element types and shapes of the inputs, compiled once."""
        if self._whole is not None:
            return self._whole
        self._check_names(list(specs))
        key = tuple(sorted((name, str(dtype), shape) for name, (dtype, shape) in specs.items()))
        with self._lock:
            if key not in self.executables:
                graph = self._traced(specs)
                ways = self._ways()
                module = build(graph.inputs, graph.outputs, specs, make_context(), ways)
                made = compiler.compile(module, **self.options)
                made.details["model"] = self.name
                self.executables[key] = made
            return self.executables[key]

    def stablehlo(self, specs: Specs) -> str:
        """The program for these element types and shapes of the inputs as text of StableHLO."""
        graph = self._traced(specs)
        return str(build(graph.inputs, graph.outputs, specs, make_context(), self._ways()))

    def _ways(self) -> Ways | None:
        """Prices comparisons of neighbours; None where images are not rounded to f16."""
        machine = machines.load(self.options["machine"])
        if machine.split or self.options.get("precision") == "fp32":
            return None
        return Ways(machine, self.options.get("cores", 0))

    def _check_names(self, names: Sequence[str]) -> None:
        expected = self._graph.names if self._graph is not None else parameters(self._function)
        if sorted(names) != sorted(expected):
            raise InputError(
                "wrong input names",
                where=self.name,
                found=", ".join(names) or "none",
                expected=", ".join(expected),
            )

    def _traced(self, specs: Specs) -> ArrayGraph:
        """The program; a function is called with symbolic arrays of these shapes."""
        if self._graph is not None:
            for x in self._graph.inputs:
                dtype, shape = specs[x.name]
                if (np.dtype(dtype), len(shape)) != (x.dtype, x.ndim):
                    raise InputError(
                        "wrong element type or number of dimensions",
                        where=f"input {x.name!r} of {self.name}",
                        found=f"{dtype}{list(shape)}",
                        expected=f"{x.dtype}, {x.ndim} dimensions",
                    )
            return self._graph
        assert self._function is not None, "a model without a function is a graph"
        inputs = [
            input(name, specs[name][1], specs[name][0]) for name in parameters(self._function)
        ]
        return ArrayGraph(inputs, named(self._function(*inputs), self.name))


def parameters(function: Callable[..., Any] | None) -> list[str]:
    """The names of a function's arguments, which are those of its inputs."""
    assert function is not None, "only models of functions are asked"
    return list(inspect.signature(function).parameters)


def named(outputs: Any, where: str) -> dict[str, Array]:
    """Results of a program by name: `out0`, `out1`, .. unless they are a dictionary.

    Raises:
        InputError: there are none, or one is no symbolic array.
    """
    if isinstance(outputs, Mapping):
        found = dict(outputs)
    else:
        listed = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        found = {f"out{number}": x for number, x in enumerate(listed)}
    wrong = {name: x for name, x in found.items() if not isinstance(x, Array)}
    if wrong or not found:
        name, value = next(iter(wrong.items()), ("", None))
        raise InputError(
            "an output that is no symbolic array" if wrong else "no outputs",
            where=where,
            found=f"{name}: {type(value).__name__}" if wrong else "",
            expected="arrays computed from gdp.input or from the function's arguments",
        )
    return found


def compile(
    program: Any, outputs: Any = None, *, machine: str = MACHINE, name: str = "", **options: Any
) -> Model:
    """Prepares a data-processing program to run on a simulated NPU.

    Args:
        program: the inputs of symbolic arrays (`gdp.input`) from which `outputs` are computed; or a
            function of arrays, traced for each shape it is run with; or, without outputs, any model
            that `davinci.compile` takes: a path or text of ONNX or StableHLO.
        outputs: symbolic arrays: one, a list (`out0`, `out1`, ..), or a dictionary by name.
        machine: name or path of a machine file.
        name: what reports call the program.
        options: of `davinci.compile`: precision, cores, rewrites, cache, ...

    Raises:
        InputError: an input that outputs need is not listed, or is listed twice.
        CompileError: the program cannot be compiled. One of symbolic arrays is compiled at once for
            the shapes of its inputs, a function when shapes are known.
    """
    given = {"machine": machine, **options}
    if outputs is None:
        if inspect.isfunction(program):
            return Model(name or program.__name__, given, _function=program)
        if isinstance(program, (Array, list, tuple)):
            raise InputError(
                "no outputs", where="gdp.compile", expected="gdp.compile([inputs], [outputs])"
            )
        made = compiler.compile(program, **given)
        return Model(name or compiler.model_name(program), given, _whole=made)
    inputs = [program] if isinstance(program, Array) else list(program)
    label = name or "gdp"
    graph = ArrayGraph(inputs, named(outputs, label))
    check_inputs(graph, label)
    model = Model(label, given, _graph=graph)
    model.executable({x.name: (x.dtype, x.shape) for x in inputs})
    return model


def check_inputs(graph: ArrayGraph, where: str) -> None:
    """Raises an `InputError` unless inputs are inputs, of different names, and all that are
    needed."""
    for x in graph.inputs:
        if not isinstance(x, Array) or not x.name:
            raise InputError(
                "not an input", where=where, found=repr(x), expected="what gdp.input returned"
            )
    twice = [x.name for x in graph.inputs if graph.names.count(x.name) > 1]
    if twice:
        raise InputError("two inputs of one name", where=where, found=repr(twice[0]))
    seen, waiting = set(graph.inputs), list(graph.outputs.values())
    while waiting:
        array = waiting.pop()
        if array in seen:
            continue
        seen.add(array)
        waiting.extend(array.operands)
        if array.name:
            raise InputError(
                "an input that outputs need is not listed",
                where=where,
                found=repr(array),
                expected=f"it among {graph.names}",
            )
