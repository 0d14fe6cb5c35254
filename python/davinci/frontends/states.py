"""States of a model: inputs that take the value of an output from one call to the next.

An output of `@main` that is the next value of an input has the attribute `ascend.state`, the number
of that input; both have one type. `ascend-bufferize` gives both one buffer where it can. What a
state holds at first is in the module's attribute `ascend.initial`, zeros where nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.dialects.base import as_attribute
from davinci.elements import to_attribute
from davinci.errors import InputError, did_you_mean
from davinci.mlir import function_type, ir, symbol_name

STATE = "ascend.state"
INITIAL = "ascend.initial"
DONATED = "tf.aliasing_output"
"""What JAX marks a donated argument with: the number of the result that takes its place."""

NEXT_OF = (
    ("past_key_values", "present"),
    ("past_key_values", "present_key_values"),
    ("past", "present"),
)
"""How names begin in ONNX exports of language models: of inputs that hold keys and values of the
tokens so far, and of the outputs that hold them with the new ones."""


@dataclass(frozen=True)
class MainValue:
    """An argument or result of `@main`.

    Attributes:
        successor: number of the result that takes the place of a donated argument of JAX.
    """

    number: int
    name: str
    type: Any
    successor: int | None = None

    def __str__(self) -> str:
        return f"{self.name!r}: {self.type}"


def mark_states(module: ir.Module, given: Mapping[str, str] | None, where: str) -> None:
    """Marks outputs of `@main` that are the next values of inputs.

    Args:
        given: names of outputs by those of inputs; None: caches by the names that exports give
            them and donated arguments of JAX, where the types are equal, beside what is marked.
        where: what messages call the model.

    Raises:
        InputError: there is no such input or output, one is named twice, or types differ.
    """
    main = main_of(module)
    if main is None:
        if given:
            raise InputError("no function that states could belong to", where=where)
        return
    inputs, outputs = values_of(main, "arg"), values_of(main, "res")
    pairs = dict(recognised(inputs, outputs) if given is None else checked(given, inputs, outputs))
    with module.context:
        marks = list(main.attributes["res_attrs"]) if "res_attrs" in main.attributes else []
        dictionaries = [{m.name: m.attr for m in one} for one in marks] or [{} for _ in outputs]
        taken = {ir.IntegerAttr(found[STATE]).value for found in dictionaries if STATE in found}
        for output, number in pairs.items():
            if given is not None or (STATE not in dictionaries[output] and number not in taken):
                dictionaries[output][STATE] = as_attribute(number)
        if any(STATE in found for found in dictionaries):
            main.attributes["res_attrs"] = ir.ArrayAttr.get(
                [ir.DictAttr.get(found) for found in dictionaries]
            )


def set_initial(module: ir.Module, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Says what states hold at first, by the names of their inputs."""
    if not arrays:
        return
    found: dict[str, Any] = {}
    with module.context, ir.Location.unknown():
        for value in values_of(main_of(module), "arg"):
            if value.name in arrays:
                array = np.ascontiguousarray(arrays[value.name])
                found[value.name] = to_attribute(array, value.type.element_type)
        module.operation.attributes[INITIAL] = ir.DictAttr.get(found)


def main_of(module: ir.Module) -> Any:
    """The function that a run starts with, None if there is none."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and symbol_name(op) == "main":
            return op if op.regions[0].blocks else None
    return None


def values_of(main: Any, side: str) -> list[MainValue]:
    """The arguments ("arg") or results ("res") of a function on tensors."""
    kind = function_type(main)
    types = kind.inputs if side == "arg" else kind.results
    default = "arg" if side == "arg" else "out"
    key = f"{side}_attrs"
    marks = list(main.attributes[key]) if key in main.attributes else [{}] * len(types)
    found = []
    for number, (one, type_) in enumerate(zip(marks, types, strict=True)):
        names = {m.name: m.attr for m in one}
        text = names.get("ascend.name")
        name = ir.StringAttr(text).value if text is not None else f"{default}{number}"
        donated = names.get(DONATED)
        successor = None if donated is None else ir.IntegerAttr(donated).value
        found.append(MainValue(number, name, type_, successor))
    return found


def recognised(inputs: list[MainValue], outputs: list[MainValue]) -> Iterator[tuple[int, int]]:
    """Numbers of outputs and of inputs that are one cache, by their names, and of arguments
    that JAX donates."""
    by_name = {value.name: value for value in outputs}
    for value in inputs:
        if value.successor is not None and outputs[value.successor].type == value.type:
            yield value.successor, value.number
            continue
        for before, after in NEXT_OF:
            if not value.name.startswith(before):
                continue
            found = by_name.get(after + value.name.removeprefix(before))
            if found is not None and found.type == value.type:
                yield found.number, value.number
                break


def checked(
    given: Mapping[str, str], inputs: list[MainValue], outputs: list[MainValue]
) -> Iterator[tuple[int, int]]:
    """Numbers of outputs and of inputs of given pairs.

    Raises:
        InputError: as `mark_states`.
    """
    sides = ({v.name: v for v in inputs}, {v.name: v for v in outputs})
    for name, output in given.items():
        place = f"state {name}={output}"
        for kind, key, known in zip(("input", "output"), (name, output), sides, strict=True):
            if key not in known:
                raise InputError(
                    f"no such {kind}",
                    where=place,
                    found=repr(key),
                    expected=", ".join(known) or "none",
                    hint=did_you_mean(str(key), list(known)),
                )
        if list(given.values()).count(output) > 1:
            raise InputError("an output is the next value of several inputs", where=place)
        before, after = sides[0][name], sides[1][output]
        if before.type != after.type:
            raise InputError(
                "an input and its next value have different types",
                where=place,
                found=f"{before} and {after}",
                expected="one shape and element type",
                hint="a cache of the longest length, whose rows are written at a position that is "
                "an input, keeps its shape; one that grows by concatenation does not",
            )
        yield after.number, before.number
