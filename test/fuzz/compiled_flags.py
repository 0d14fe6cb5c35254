"""Mutants of compiled kernels whose cube and vector cores have flags for each other, as cce text.

    compiled kernel -> its text behind `insert-sync` -> one operation removed, moved or changed

`check-meetings` judges the text, the simulator runs what it becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import mock

import davinci
from davinci import compiler
from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import space_name
from davinci.errors import DeviceFault
from davinci.mlir import MLIRError, Op, arith, ir, make_context, operations, symbols
from davinci.passes.builder import as_attribute
from davinci.passes.cce.check_meetings import checked_launches
from davinci.passes.pipeline.pipelines import STAGES
from fuzz.core_flags import MACHINE, OTHER_PIPES, Judged
from fuzz.split_kernels import made

LOWERED = STAGES[: STAGES.index("cce-to-hivm")]
FLAGS = ("cce.set_core_flag", "cce.wait_core_flag")
MEETING = "cce.sync_cores"
MOVES = (-12, -4, -1, 1, 4, 12)
"""By how many operations one is moved."""

OF_CORES = ("between cores", "between blocks", "deadlock")
"""One of these is in what the simulator says of cores; all else is not what the pass is about."""

Change = Callable[[], None]


class CompiledFlags:
    """A compiled kernel by its text.

    Attributes:
        text: of its module, behind `insert-sync`.

    Args:
        name: of `split_kernels`.
    """

    def __init__(self, name: str) -> None:
        texts: list[str] = []
        lower = compiler.lower

        def keep(module: ir.Module, options: Any, *more: Any) -> None:
            lower(module, options, stages=LOWERED)
            texts.append(str(module))
            lower(module, options, stages=STAGES[len(LOWERED) :])

        with mock.patch.object(compiler, "lower", keep):
            _, self._inputs = made(name)
        self.text = texts[-1]

    def mutants(self) -> Iterator[tuple[str, str]]:
        """The text with each thing changed in turn, and the kind of the change, but for what is no
        program any more."""
        count = len(list(_changes(self._module())))
        for number in range(count):
            module = self._module()
            kind, change = list(_changes(module))[number]
            with ir.Location.unknown(module.context):
                change()
            try:
                module.operation.verify()
            except MLIRError:
                continue
            yield kind, str(module)

    def _module(self) -> ir.Module:
        with make_context() as context:
            return ir.Module.parse(self.text, context)

    def judge(self, text: str) -> Judged:
        """What is said of the text, or of a mutant's."""
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            main = dict(symbols(module.operation))["main"]
            launches = list(checked_launches(module.operation, main, machines.load(MACHINE)))
            said, left = (
                next((line for launch in launches for line in getattr(launch.verdict, name)), "")
                for name in ("faults", "open")
            )
        return Judged(said, left, _fault(text, self._inputs))


def _fault(text: str, inputs: Mapping[str, Any]) -> str:
    """Runs a text; what the simulator finds, or ""."""
    try:
        davinci.compile(text, machine=MACHINE).run(inputs)
    except DeviceFault as error:
        return str(error.message)
    return ""


def of_cores(judged: Judged) -> bool:
    """Whether the simulator found nothing, or something between cores."""
    return not judged.found or any(words in judged.found for words in OF_CORES)


def _changes(module: ir.Module) -> Iterator[tuple[str, Change]]:
    """Each change of a module: its kind, and what makes it."""
    for kernel in operations(module.operation, "func.func"):
        if "ascend.kernel" not in kernel.attributes:
            continue
        cube = attribute(kernel, "ascend.core", "aiv") == "aic"
        for op in operations(kernel, *FLAGS, MEETING):
            yield "flag", op.erase
            yield "flag", partial(_again, op)
            for by in MOVES:
                yield "order", partial(_move, op, by)
            if op.name != MEETING:
                yield from _of_flag(op, "AIC" if cube else "AIV")
        for op in operations(kernel, "memref.subview"):
            if space_name(op.operands[0].type) == "GM" and len(op.operands) > 1:
                yield "placement", partial(_shift, op)


def _of_flag(op: Op, kind: str) -> Iterator[tuple[str, Change]]:
    """Each change of what an operation says, on a core of that kind."""
    flag = attribute(op, "flag")
    for other in {0, 1, 2, 3} - {flag}:
        yield "number", partial(_put, op, "flag", other)
    if op.name == FLAGS[0]:
        for pipe in OTHER_PIPES[kind]:
            if pipe != attribute(op, "pipe"):
                yield "flag", partial(_put, op, "pipe", pipe)
        yield "core set", partial(_toggle, op)


def _put(op: Op, name: str, value: int | str) -> None:
    op.attributes[name] = as_attribute(value)


def _toggle(op: Op) -> None:
    """For all cores of a kind, not for the others of a group, or the other way."""
    if "of_all" in op.attributes:
        del op.attributes["of_all"]
    else:
        op.attributes["of_all"] = ir.UnitAttr.get(op.context)


def _again(op: Op) -> None:
    with ir.InsertionPoint(op):
        op.clone()


def _move(op: Op, by: int) -> None:
    """By so many operations of its block, as far as there are any."""
    around = [each.operation for each in ir.InsertionPoint(op).block.operations]
    place = next(i for i, each in enumerate(around) if each == op)
    target = around[min(max(place + by, 0), len(around) - 2)]
    if target != op:
        (op.move_before if by < 0 else op.move_after)(target)


def _shift(view: Op) -> None:
    """Another row, or whatever its first index that is not fixed counts."""
    with ir.InsertionPoint(view):
        kind = ir.IndexType.get(view.context)
        one = arith.ConstantOp(kind, ir.IntegerAttr.get(kind, 1)).result
        view.operands[1] = arith.AddIOp(view.operands[1], one).result
