"""Symbolic arrays: what data-processing programs compute with before there are numbers.

    img = gdp.input("img", (3, 1080, 1920), np.float16)
    gray = 0.299 * img[0] + 0.587 * img[1] + 0.114 * img[2]

An `Array` records the operation that makes it and its operands, and knows its shape and element
type at once, so that a mistake is reported at the user's line that makes it. The functions that
operations consist of are those which lowerings of ONNX operators are written in
(`davinci.frontends.onnx.ops`): on an empty module they find shapes, on the program's module they
build StableHLO (`davinci.gdp.lowering`). The same record is built again for inputs of other shapes.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.errors import InputError
from davinci.frontends.onnx import ops
from davinci.frontends.onnx.tensor import OnnxTensor, Refused, constant, convert
from davinci.mlir import func, ir, make_context

PACKAGE = str(Path(__file__).parent)

Number = bool | int | float

Operand = "Array | Number | npt.NDArray[Any]"
"""What operators of arrays take: numbers have the element type of the array beside them."""

Compute = Callable[..., OnnxTensor]
"""Builds the result of an operation from its operands, with NumPy's shapes."""

_TRACING = RLock()
"""Held while operations are built: one MLIR context serves all inference of shapes."""


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def caller() -> SourceLine:
    """The innermost line of the call stack that is not part of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


class Array:
    """A symbolic array of static shape; operators follow NumPy's broadcasting.

    Attributes:
        name: of an input; "" for what is computed.
        dtype: NumPy element type.
        shape: sizes of its dimensions.
        place: the user's line that made it, for messages and reports.
        operands: arrays that it is computed from.
        compute: makes it of its operands; None for an input.
        terms: of sums, their arrays and numbers, each with a factor; empty for all else.
    """

    __array_ufunc__ = None  # NumPy's arrays and scalars leave operators to this class

    def __init__(
        self,
        dtype: npt.DTypeLike,
        shape: Sequence[int],
        place: SourceLine,
        operands: Sequence[Array] = (),
        compute: Compute | None = None,
        name: str = "",
    ) -> None:
        self.dtype, self.shape = np.dtype(dtype), tuple(shape)
        self.place, self.operands, self.compute, self.name = place, tuple(operands), compute, name
        self.terms: tuple[tuple[Array | float, float], ...] = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"{self.name + ': ' if self.name else ''}{self.dtype}{list(self.shape)}"

    def __bool__(self) -> bool:
        raise InputError(
            "the truth of a symbolic array is not known when the program is built",
            where=str(caller()),
            found=repr(self),
            hint="gdp.where(condition, a, b) chooses element by element",
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, key: Any) -> Array:
        from davinci.gdp.indexing import item

        return item(self, key)

    def __add__(self, other: Any) -> Array:
        return total(of(operator.add, self, other), (self, 1), (other, 1))

    def __radd__(self, other: Any) -> Array:
        return total(of(operator.add, other, self), (other, 1), (self, 1))

    def __sub__(self, other: Any) -> Array:
        return total(of(operator.sub, self, other), (self, 1), (other, -1))

    def __rsub__(self, other: Any) -> Array:
        return total(of(operator.sub, other, self), (other, 1), (self, -1))

    def __mul__(self, other: Any) -> Array:
        return scaled(of(operator.mul, self, other), self, other)

    def __rmul__(self, other: Any) -> Array:
        return scaled(of(operator.mul, other, self), self, other)

    def __truediv__(self, other: Any) -> Array:
        return of(divide, self, other)

    def __rtruediv__(self, other: Any) -> Array:
        return of(divide, other, self)

    def __and__(self, other: Any) -> Array:
        return of(operator.and_, self, other)

    def __rand__(self, other: Any) -> Array:
        return of(operator.and_, other, self)

    def __or__(self, other: Any) -> Array:
        return of(operator.or_, self, other)

    def __ror__(self, other: Any) -> Array:
        return of(operator.or_, other, self)

    def __xor__(self, other: Any) -> Array:
        return of(operator.xor, self, other)

    def __neg__(self) -> Array:
        return scaled(of(operator.neg, self), self, -1)

    def __invert__(self) -> Array:
        return of(operator.invert, self)

    def __abs__(self) -> Array:
        return of(ops.absolute, self)

    def __lt__(self, other: Any) -> Array:
        return compared("LT", self, other)

    def __le__(self, other: Any) -> Array:
        return compared("LE", self, other)

    def __gt__(self, other: Any) -> Array:
        return compared("GT", self, other)

    def __ge__(self, other: Any) -> Array:
        return compared("GE", self, other)

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        return compared("EQ", self, other)

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return compared("NE", self, other)

    __hash__ = object.__hash__

    def astype(self, dtype: npt.DTypeLike) -> Array:
        """The elements in another type; of floats integers take the whole part, booleans "not
        zero"."""
        kind = dtype_of(dtype)
        if kind == self.dtype:
            return self
        return of(lambda x: ops.as_bool(x) if kind == ops.BOOL else convert(x, kind), self)

    def reshape(self, *shape: int) -> Array:
        """The same elements, row-major; one size may be -1, what is left."""
        return of(lambda x: ops.reshape(x, whole_shape(shape, x.count)), self)

    def transpose(self, *order: int) -> Array:
        """Dimension i of the result is dimension order[i]; reversed without an order."""
        return of(lambda x: ops.transpose(x, order or range(x.rank)[::-1]), self)


class Compared(Array):
    """A comparison, which may be made in another way than by its operands.

    Attributes:
        direction: as StableHLO has it, GT for example.
        sides: what is compared, arrays or numbers.
    """

    def __init__(self, made: Array, direction: str, sides: tuple[Any, Any]) -> None:
        super().__init__(made.dtype, made.shape, made.place, made.operands, made.compute)
        self.direction, self.sides = direction, sides


def compared(direction: str, a: Any, b: Any) -> Array:
    made = of(lambda x, y: ops.compare(direction, x, y), a, b)
    return Compared(made, direction, (a, b))


def total(made: Array, *terms: tuple[Any, float]) -> Array:
    """An array that is the sum of arrays of its shape and numbers, with factors, which it
    remembers."""
    if all(isinstance(x, (int, float)) or same_shape(x, made) for x, _ in terms):
        made.terms = terms
    return made


def same_shape(operand: Any, made: Array) -> bool:
    return isinstance(operand, Array) and operand.shape == made.shape


def scaled(made: Array, array: Array, factor: Any) -> Array:
    """An array times a number, which it remembers."""
    return total(made, (array, float(factor))) if isinstance(factor, (int, float)) else made


def divide(a: Any, b: Any) -> OnnxTensor:
    """A quotient of floats; integers are refused, for NumPy makes floats of them."""
    kind = next(x.dtype for x in (a, b) if isinstance(x, OnnxTensor))
    if not any(isinstance(x, OnnxTensor) and x.is_float for x in (a, b)):
        raise Refused(f"a quotient of {kind}", "floats: x.astype(np.float32) makes them")
    made: OnnxTensor = operator.truediv(a, b)
    return made


def dtype_of(given: npt.DTypeLike) -> np.dtype[Any]:
    """The element type that a caller names.

    Raises:
        InputError: there are no tensors of that type.
    """
    try:
        kind = np.dtype(given)
        probe = OnnxTensor(kind, ())
        with context(), ir.Location.unknown():
            probe.type  # noqa: B018  refused if no tensor has such elements
    except (TypeError, Refused) as error:
        expected = error.expected if isinstance(error, Refused) else ""
        raise InputError(
            "no element type of arrays",
            where=str(caller()),
            found=repr(given),
            expected=expected or "a NumPy type, np.float16 for example",
        ) from None
    return kind


def whole_shape(shape: Sequence[int], count: int) -> list[int]:
    """A shape with its -1 replaced by the size that is left of `count` elements."""
    others = int(np.prod([size for size in shape if size != -1], dtype=np.int64))
    return [count // max(1, others) if size == -1 else size for size in shape]


def input(name: str, shape: Sequence[int], dtype: npt.DTypeLike = np.float16) -> Array:
    """An array that a run is given by `name`.

    Raises:
        InputError: the shape is not made of sizes, or there are no tensors of that type.
    """
    sizes = tuple(shape)
    if not all(isinstance(size, (int, np.integer)) and size >= 0 for size in sizes):
        raise InputError(
            "not a shape", where=f"input {name!r}", found=repr(shape), expected="sizes, 0 or more"
        )
    return Array(dtype_of(dtype), sizes, caller(), name=name)


def of(compute: Compute, *operands: Any) -> Array:
    """The array that `compute` makes of operands; numbers among them stay numbers.

    Raises:
        InputError: the operands do not fit; the message names the user's line.
    """
    place = caller()
    arrays = [as_array(x, place) for x in operands if not isinstance(x, (bool, int, float))]
    numbers = [x if isinstance(x, (bool, int, float)) else None for x in operands]

    def filled(*tensors: OnnxTensor) -> OnnxTensor:
        given = iter(tensors)
        return compute(*(next(given) if number is None else number for number in numbers))

    dtype, shape = inferred(filled, arrays, place)
    return Array(dtype, shape, place, arrays, filled)


def as_array(value: Any, place: SourceLine) -> Array:
    """An operand as a symbolic array: NumPy's arrays and scalars are constants."""
    if isinstance(value, Array):
        return value
    if not isinstance(value, (np.ndarray, np.generic)):
        raise InputError(
            "not an operand",
            where=str(place),
            found=type(value).__name__,
            expected="a symbolic array, a NumPy array or a number",
        )
    known = np.asarray(value)
    return Array(dtype_of(known.dtype), known.shape, place, (), lambda: constant(known))


@cache
def context() -> ir.Context:
    """The MLIR context in which shapes are inferred."""
    return make_context()


def inferred(
    compute: Compute, operands: Sequence[Array], place: SourceLine
) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Element type and shape of what `compute` makes, found by building it in a module of its own.

    Raises:
        InputError: the operands do not fit.
    """
    with _TRACING, context(), ir.Location.unknown():
        module = ir.Module.create()
        kinds = [OnnxTensor(x.dtype, x.shape).type for x in operands]
        with ir.InsertionPoint(module.body):
            block = func.FuncOp("main", (kinds, [])).add_entry_block()
        with ir.InsertionPoint(block):
            tensors = [
                OnnxTensor(x.dtype, x.shape, value)
                for x, value in zip(operands, block.arguments, strict=True)
            ]
            made = guarded(compute, tensors, operands, place)
        return made.dtype, made.shape


def guarded(
    compute: Compute, tensors: Sequence[OnnxTensor], operands: Sequence[Array], place: SourceLine
) -> OnnxTensor:
    """What `compute` makes; operands that do not fit are the fault of the line at `place`."""
    try:
        return compute(*tensors)
    except Refused as refused:
        raise InputError(
            refused.message,
            where=str(place),
            found=" and ".join(map(repr, operands)),
            expected=refused.expected,
        ) from None
