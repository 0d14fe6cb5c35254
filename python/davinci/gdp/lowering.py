"""Symbolic arrays become a module of StableHLO with `@main`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from davinci.frontends.onnx.tensor import OnnxTensor
from davinci.gdp.arrays import Array, Compared, Compute, guarded
from davinci.gdp.indexing import Border, Neighbour, padded
from davinci.gdp.masks import Taps, Ways, convolution_of
from davinci.mlir import func, ir

Specs = Mapping[str, tuple[Any, tuple[int, ...]]]
"""Element type and shape of each input by name."""


def build(
    inputs: Sequence[Array],
    outputs: Mapping[str, Array],
    specs: Specs,
    context: ir.Context,
    ways: Ways | None = None,
) -> ir.Module:
    """The module that computes `outputs` of `inputs` of given shapes.

    Args:
        ways: says which comparisons of neighbours are by convolutions; None: none of them.

    Raises:
        InputError: operands do not fit at these shapes; the message names the user's line.
    """
    with context, ir.Location.name("gdp"):
        module = ir.Module.create()
        given = [OnnxTensor(*specs[x.name]) for x in inputs]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([x.type for x in given], []))
        block = main.add_entry_block([location(x) for x in inputs])
        built = Builder(ways)
        for x, tensor, value in zip(inputs, given, block.arguments, strict=True):
            built.tensors[x] = OnnxTensor(tensor.dtype, tensor.shape, value)
        with ir.InsertionPoint(block):
            order = ordered(list(outputs.values()), built.tensors)
            order = built.noted(order, list(outputs.values()))
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


def ordered(
    outputs: Sequence[Array],
    known: Mapping[Array, OnnxTensor],
    operands_of: Callable[[Array], Sequence[Array]] = lambda array: array.operands,
) -> list[Array]:
    """All arrays that outputs are computed from, operands first; without recursion, for programs
    may be long chains."""
    order: dict[Array, None] = {}
    waiting = list(outputs)[::-1]
    while waiting:
        array = waiting[-1]
        missing = [x for x in operands_of(array) if x not in order and x not in known]
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

    def __init__(self, ways: Ways | None) -> None:
        self.tensors: dict[Array, OnnxTensor] = {}
        self._ways = ways
        self._convolutions: dict[Array, Taps] = {}
        self._reaches: dict[PadKey, list[int]] = {}
        self._padded: dict[PadKey, OnnxTensor] = {}

    def noted(self, arrays: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
        """The arrays that are built, in order: chooses which comparisons are by convolutions, and
        finds how far the neighbours of each array reach, so that it is padded once."""
        asked: dict[Array, dict[Array, Taps]] = {}
        for array in arrays if self._ways is not None else ():
            if isinstance(array, Compared) and (taps := Taps.of(array)) is not None:
                asked.setdefault(taps.source, {})[array] = taps
        for comparisons in asked.values():
            assert self._ways is not None, "else nothing is asked"
            if self._ways.by_convolution(list(comparisons.values())):
                self._convolutions |= comparisons
        kept = list(arrays)
        if self._convolutions:
            kept = ordered(outputs, self.tensors, self._operands)
        for array in kept:
            if isinstance(array, Neighbour):
                found = self._reaches.setdefault(key_of(array), [0] * len(array.offsets))
                found[:] = map(max, found, map(abs, array.offsets))
        return kept

    def _operands(self, array: Array) -> Sequence[Array]:
        taps = self._convolutions.get(array)
        return array.operands if taps is None else (taps.source,)

    def add(self, array: Array) -> None:
        """Builds an array whose operands have been."""
        operands = self._operands(array)
        tensors = [self.tensors[x] for x in operands]
        with location(array):
            self.tensors[array] = guarded(self._rule(array), tensors, operands, array.place)

    def _rule(self, array: Array) -> Compute:
        if (taps := self._convolutions.get(array)) is not None:
            assert isinstance(array, Compared), "comparisons only are asked about"
            direction = array.direction
            return lambda x: convolution_of(taps, direction, x)
        if isinstance(array, Neighbour):
            return lambda x: self._neighbour(array, x)
        assert array.compute is not None, "all others are inputs, which are known"
        return array.compute

    def _neighbour(self, array: Neighbour, x: OnnxTensor) -> OnnxTensor:
        key = key_of(array)
        if key not in self._padded:
            self._padded[key] = padded(x, array.border, self._reaches[key])
        return array.cut(self._padded[key], x)


PadKey = tuple[Array, Border, int]


def key_of(array: Neighbour) -> PadKey:
    """Equal for neighbours that are parts of one padded array."""
    return array.operands[0], array.border, len(array.offsets)
