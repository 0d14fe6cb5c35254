"""The two ways from a kernel of Triton to an executable: the vendor's compilers, and our passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from davinci import machine as machines
from davinci.frontends import hivm, linalg
from davinci.frontends.hivm import Argument, Given
from davinci.mlir import ir, make_context
from davinci.triton.toolchain import OURS, VENDOR

MACHINE = "ascend910b"


@dataclass(frozen=True)
class CompilerWay:
    """How a text of a kernel becomes a module that `davinci.compile` takes.

    Attributes:
        step: the text that it takes, by its name in `LaunchReport.asm`.
        arguments: those that callers give, of a text and a name for messages.
        module: the module that launches a kernel, of its text, the numbers of programs, the
            arguments, and a name for messages.
        machine: that the kernel is for.
    """

    step: str
    arguments: Callable[[str, str], Sequence[Argument]]
    module: Callable[[str, Sequence[int], Sequence[Given], str], ir.Module]
    machine: str = MACHINE


def vendor_arguments(text: str, name: str) -> Sequence[Argument]:
    return hivm.kernels_of(hivm.parse(text, make_context(), name))[0].given


def vendor_module(
    text: str, grid: Sequence[int], arguments: Sequence[Given], name: str
) -> ir.Module:
    return hivm.launch(text, grid, arguments, where=name)


def our_module(text: str, grid: Sequence[int], arguments: Sequence[Given], name: str) -> ir.Module:
    """The module of a kernel by our passes; all vector cores of the machine share its programs."""
    machine = machines.load(MACHINE)
    blocks = machine.cores * machine.core_types["AIV"].count
    return linalg.launch(text, grid, arguments, blocks, where=name)


WAYS: Mapping[str, CompilerWay] = {
    VENDOR: CompilerWay("hivm", vendor_arguments, vendor_module),
    OURS: CompilerWay("ttadapter", linalg.parameters_of, our_module),
}
"""By the values of the option `compiler`."""
