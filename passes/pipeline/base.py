"""What a pass is: a frozen dataclass whose fields are its command-line options.

    @register_pass
    @dataclass(frozen=True)
    class PlanMemoryPass(Pass):
        '''One-line summary shown by --help.

        Purpose, before -> after IR, what must hold.
        '''
        NAME = "plan-memory"
        machine: str = option("ascend910", "machine file the sizes come from")

        def run(self, op): ...

The pipeline text `plan-memory{machine=ascend310}` builds `PlanMemoryPass(machine="ascend310")`.
A pass reports failure by raising `davinci.errors.CompileError`, best through `fail(op, ...)`,
which takes the location from the operation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from davinci.errors import CompileError
from davinci.tables import Table

if TYPE_CHECKING:  # what passes there are is known without MLIR
    from davinci.mlir import Op

PASSES: Table[str, type[Pass]] = Table("a pass")


def option(
    default: int | str,
    help_text: str,
    choices: tuple[str, ...] = (),
    expected: Callable[[str], str] = lambda text: "",
) -> Any:
    """A pass option: a dataclass field with a default and a line for --help.

    Integers are sizes and counts, never negative. `choices` are the values a text may have, if only
    a few make sense; `expected` says of a text what it should be, if it is not that.
    """
    metadata = {"help": help_text, "choices": choices, "expected": expected}
    return dataclasses.field(default=default, metadata=metadata)


def accepted(field: dataclasses.Field[Any], value: object) -> str:
    """What the option `field` accepts, if `value` is not that; else ""."""
    choices = field.metadata["choices"]
    if not isinstance(value, type(field.default)):
        return f"a value of type {type(field.default).__name__}"
    if choices and value not in choices:
        return f"one of {', '.join(choices)}"
    if isinstance(value, int) and value < 0:
        return "0 or more"
    return str(field.metadata["expected"](value))


class Pass:
    """Base class of all passes written in Python."""

    NAME = ""
    ANCHOR = "builtin.module"

    def run(self, op: Op) -> None:
        """Transforms `op`, an `ir.Operation` of kind `ANCHOR`, in place."""
        raise NotImplementedError(f"{type(self).__name__}.run")


P = TypeVar("P", bound=type[Pass])


def register_pass(cls: P) -> P:
    """Makes a pass known to pipelines and to npu-opt under its `NAME`."""
    PASSES.register(cls.NAME)(cls)
    return cls


def fail(op: Op, message: str, *, found: str = "", expected: str = "", hint: str = "") -> NoReturn:
    """Raises a `CompileError` located at `op`."""
    from davinci.mlir import location_text

    raise CompileError(
        f"'{op.name}' op {message}",
        where=location_text(op.location),
        found=found,
        expected=expected,
        hint=hint,
    )
