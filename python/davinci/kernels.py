"""Kernels of one's own, written as text of `cce`: called with arrays, and by operators of models.

swiglu = davinci.kernel_from("swiglu.mlir")
out = swiglu(x, gate)
davinci.compile("model.onnx", kernels=[swiglu])
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from davinci import compiler
from davinci.frontends import own_kernels
from davinci.mlir import make_context

if TYPE_CHECKING:
    from davinci.runtime.executable import Executable


class UserKernel:
    """A kernel that can be called with arrays.

    Attributes:
        own: its text, name and arguments.
        machine: name or path of the machine file that calls run on.
    """

    def __init__(self, own: own_kernels.OwnKernel, machine: str) -> None:
        self.own, self.machine = own, machine

    @property
    def name(self) -> str:
        return self.own.name

    @cached_property
    def executable(self) -> Executable:
        """What calls run: `profile`, `report` and `trace` tell of the last one."""
        module = own_kernels.alone(self.own, make_context())
        made = compiler.compile(module, machine=self.machine)
        made.details["model"] = self.own.where
        return made

    def __call__(self, *arrays: npt.ArrayLike, **named: Any) -> Any:
        """Runs the kernel on the simulated machine.

        Args:
            arrays: the kernel's inputs in order, of its shapes and element types.
            named: inputs by the names that `ascend.name` gives them.

        Returns:
            The output, or a tuple of them where there are several.

        Raises:
            InputError: arrays of other shapes or types.
            CompileError: the text cannot be compiled: buffers that do not fit, for example.
            DeviceFault: a race, unwritten bytes, memory out of bounds.
        """
        found = self.executable.run(*arrays, **named)
        outputs = tuple(found[argument.name] for argument in self.own.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        takes = ", ".join(f"{a.name}: {a.type}" for a in self.own.arguments)
        return f"<kernel {self.name}({takes}) for {self.machine}>"


def kernel_from(
    source: str | os.PathLike[str], name: str = "", machine: str = "ascend910"
) -> UserKernel:
    """A kernel from its text.

    The text is a function of MLIR on arrays in GM, inputs and outputs, whose body copies tiles
    and computes on them by operations of `cce`. Addresses of buffers, flags and barriers may be
    left out (docs/kernels.md). It runs on as many cores as its attribute `ascend.blocks` says.

    Args:
        source: MLIR text, or the path of a file.
        name: of the function, where the text has several.
        machine: name of a machine file of the package, or the path of another one.

    Raises:
        InputError: no such file, text that is not MLIR, no kernel in it, or one whose arguments are
            no arrays of known sizes in GM.
    """
    return UserKernel(own_kernels.read(own_kernels.source_of(source), name), machine)
