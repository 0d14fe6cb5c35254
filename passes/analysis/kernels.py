"""The kernels of a module."""

from __future__ import annotations

from collections.abc import Iterator

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import space_name
from davinci.machine import Machine
from davinci.mlir import Op, ir, operations, parent_of, symbol_name, symbols
from davinci.operators import products

PRODUCTS = tuple(f"ascend.{name}" for name in products.PRODUCTS)

LOOP = "scf.for"
"""The operation that, in a kernel on tensors, is a loop whose steps all run on the cores."""

CORES = "ascend.cores"
"""Of a kernel that shares launches: the number of cores that it is made for."""


CORE = "ascend.core"
"""Of a kernel for a split machine: the kind of core that runs it."""

UNIT = "ascend.unit"
"""Of a kernel: the unit that does its work, "cube", "vector" or "scalar"."""


BLOCKS = "ascend.blocks"
"""An attribute of a kernel and of its calls: the number of blocks that share its work."""

MEETING = "ascend.meeting"
"""Of a call of a kernel in which all cores of a launch wait for each other: the calls behind it are
another phase of the launch before it. It is the number of the argument that the host raises from
meeting to meeting, -1 if there is none: cores of a split machine meet by flags."""

MEETS = "ascend.meets"
"""Of a kernel in which all cores of a kind meet by flags: blocks behind those that have work only
meet, so that a launch may have more."""

PHASES = "ascend.phases"
"""Of a kernel of several phases: `key` and `choices` of the kernels that they were."""

LAUNCHED_ALONE = "ascend.launched_alone"
"""Of a module whose kernels take less time with a launch each than as phases of one."""

PAST_L2 = "ascend.past_l2"
"""Attribute of a call: numbers of its operands that the kernel reads past the L2."""

STREAMED = "ascend.streamed"
"""Of globals that are not in global memory: the host brings them to the arena for the launch that
reads them."""

STAGE = "ascend.stage"
"""Of calls of kernels: those of one stage that follow each other share a launch, or a phase of one,
but for kernels whose scalar unit stores to memory or loads what kernels write."""


def kernel_around(op: Op) -> Op:
    """The function that an operation is in, or is."""
    while op.name != "func.func":
        op = parent_of(op)
    return op


def seen_by(kernel: Op, machine: Machine) -> Machine:
    """The machine as a kernel sees it: on a split one the cores that run it."""
    return machines.for_cube(machine) if runs_on_cube(kernel) else machines.for_vector(machine)


def runs_on_cube(kernel: Op) -> bool:
    """Whether on a split machine cube cores run a kernel, or this program of it."""
    core = attribute(kernel, CORE, "")
    kind = core or attribute(kernel, UNIT, "vector")
    return kind in ("aic", "cube")


def takes_both(kernel: Op, machine: Machine) -> bool:
    """Whether a kernel whose operators are not lowered yet becomes a program for each of two kinds
    of cores: on a split machine attention, which alone holds several products, and loops around
    products."""
    count = len(operations(kernel, *PRODUCTS))
    return machine.split and (count > 1 or (count == 1 and bool(operations(kernel, LOOP))))


def kernels(root: Op) -> list[Op]:
    """The functions with `ascend.kernel` below `root`, whatever they are nested in, in order."""
    found: list[Op] = []

    def visit(op: Op) -> ir.WalkResult:
        if op.name == "func.func":
            if "ascend.kernel" in op.attributes:
                found.append(op)
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def known_kernels(root: Op) -> dict[str, ir.Operation]:
    """The functions of the module `@kernels` by their names; none where there is no such module."""
    module = dict(symbols(root)).get("kernels")
    return {} if module is None else dict(symbols(module))


def scalar_accesses(kernel: Op) -> Iterator[tuple[bool, ir.Value]]:
    """Arrays in global memory that the scalar unit accesses, each with whether it loads."""
    for access in operations(kernel, "memref.load", "memref.store"):
        load = access.name == "memref.load"
        array = access.operands[0 if load else 1]
        if space_name(array.type) == "GM":
            yield load, array


def launched_programs(root: Op) -> dict[str, list[str]]:
    """Names of kernels, the programs of two kinds of cores or only one, by the names of the
    declarations that stand for them in the host's part."""
    found: dict[str, list[str]] = {}
    for function in operations(root, "func.func"):
        launch = function.attributes.get("ascend.launch", None)
        if launch is not None:
            parts = list(launch) if isinstance(launch, ir.ArrayAttr) else [launch]
            found[symbol_name(function)] = [ir.SymbolRefAttr(part).value[-1] for part in parts]
    return found


def launched_kernels(root: Op) -> dict[str, str]:
    """As `launched_programs`, of which a report knows two by the first one."""
    return {name: programs[0] for name, programs in launched_programs(root).items()}
