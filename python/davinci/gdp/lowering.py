"""Symbolic arrays become a module of StableHLO with `@main`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from davinci.frontends.onnx.tensor import Tensor
from davinci.gdp.arrays import Array, guarded
from davinci.gdp.indexing import Border, Neighbour, padded
from davinci.mlir import func, ir

Specs = Mapping[str, tuple[Any, tuple[int, ...]]]
"""Element type and shape of each input by name."""


def build(
    inputs: Sequence[Array], outputs: Mapping[str, Array], specs: Specs, context: ir.Context
) -> ir.Module:
    """The module that computes `outputs` of `inputs` of given shapes.

    Raises:
        InputError: operands do not fit at these shapes; the message names the user's line.
    """
    with context, ir.Location.name("gdp"):
        module = ir.Module.create()
        given = [Tensor(*specs[x.name]) for x in inputs]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([x.type for x in given], []))
        block = main.add_entry_block([location(x) for x in inputs])
        built = Builder()
        for x, tensor, value in zip(inputs, given, block.arguments, strict=True):
            built.tensors[x] = Tensor(tensor.dtype, tensor.shape, value)
        with ir.InsertionPoint(block):
            order = ordered(list(outputs.values()), built.tensors)
            built.note_reaches(order)
            for array in order:
                built.add(array)
            results = [built.tensors[x] for x in outputs.values()]
            func.ReturnOp([x.value for x in results])
        types = ir.FunctionType.get([x.type for x in given], [x.type for x in results])
        main.attributes["function_type"] = ir.TypeAttr.get(types)
        main.attributes["arg_attrs"] = named([x.name for x in inputs])
        main.attributes["res_attrs"] = named(list(outputs))
    return module


def named(names: Sequence[str]) -> ir.Attribute:
    """The names of arguments or results, as the compiler reads them."""
    return ir.ArrayAttr.get(
        [ir.DictAttr.get({"ascend.name": ir.StringAttr.get(name)}) for name in names]
    )


def location(array: Array) -> ir.Location:
    """The user's line, which reports name; inputs have their own names."""
    return ir.Location.name(array.name or str(array.place))


def ordered(outputs: Sequence[Array], known: Mapping[Array, Tensor]) -> list[Array]:
    """All arrays that outputs are computed from, operands first; without recursion, for programs
    may be long chains."""
    order: dict[Array, None] = {}
    waiting = list(outputs)[::-1]
    while waiting:
        array = waiting[-1]
        missing = [x for x in array.operands if x not in order and x not in known]
        if array in order or array in known:
            waiting.pop()
        elif missing:
            waiting.extend(missing[::-1])
        else:
            order[waiting.pop()] = None
    return list(order)


class Builder:
    """Builds arrays at the current insertion point.

    Attributes:
        tensors: what has been built.
    """

    def __init__(self) -> None:
        self.tensors: dict[Array, Tensor] = {}
        self._reaches: dict[tuple[Array, Border, int], list[int]] = {}
        self._padded: dict[tuple[Array, Border, int], Tensor] = {}

    def note_reaches(self, arrays: Sequence[Array]) -> None:
        """Finds how far the neighbours of each array reach, so that it is padded once."""
        for array in arrays:
            if isinstance(array, Neighbour):
                found = self._reaches.setdefault(key_of(array), [0] * len(array.offsets))
                found[:] = map(max, found, map(abs, array.offsets))

    def add(self, array: Array) -> None:
        """Builds an array whose operands have been."""
        tensors = [self.tensors[x] for x in array.operands]
        with location(array):
            if isinstance(array, Neighbour):
                (x,) = tensors
                made = guarded(
                    lambda t: self._neighbour(array, t), [x], array.operands, array.place
                )
            else:
                assert array.compute is not None, "all others are inputs, which are known"
                made = guarded(array.compute, tensors, array.operands, array.place)
        self.tensors[array] = made

    def _neighbour(self, array: Neighbour, x: Tensor) -> Tensor:
        key = key_of(array)
        if key not in self._padded:
            self._padded[key] = padded(x, array.border, self._reaches[key])
        return array.cut(self._padded[key], x, self._reaches[key])


def key_of(array: Neighbour) -> tuple[Array, Border, int]:
    """Equal for neighbours that are parts of one padded array."""
    return array.operands[0], array.border, len(array.offsets)
