"""A node of an ONNX graph as its lowering sees it.

A node keeps account of what its lowering has asked for: an attribute, input or output that was
given and never asked for is refused, so that nothing a model says is silently left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from davinci.frontends.onnx.tensor import Array, BadNode, Flowing, OnnxTensor, Refused

MAIN_DOMAINS = ("", "ai.onnx")

NEWEST = 1 << 30
"""A version of operator sets that none is newer than."""

_MISSING = object()


class OnnxNode:
    """One node with its operands.

    Attributes:
        op_type, domain, name: of the ONNX node.
        version: of the operator set that the model imports for the domain.
        proto: the node itself.
        outputs: names of the results, "" where one is left out.
        input_names: names that messages use, of an operator without a schema.
    """

    def __init__(
        self, proto: onnx.NodeProto, operands: Sequence[Flowing], version: int, name: str
    ) -> None:
        self.proto, self.version, self.name = proto, version, name
        self.op_type = proto.op_type
        self.domain = "" if proto.domain in MAIN_DOMAINS else proto.domain
        self.outputs = list(proto.output)
        self.input_names: list[str] = []
        self._operands = list(operands)
        self._attributes = {a.name: a for a in proto.attribute}
        self._asked: set[str] = set()
        self._taken: set[int] = set()

    # Operands.

    @property
    def count(self) -> int:
        """Number of operands given, those in between that are left out included."""
        return len(self._operands)

    def has(self, number: int) -> bool:
        """Whether operand `number` is given."""
        return number < self.count and self._operands[number] is not None

    def take(self, number: int) -> OnnxTensor:
        """Operand `number`, which must be given and a tensor."""
        found = self.optional(number)
        if found is None:
            raise Refused(f"{self._input_label(number)} is missing")
        return found

    def optional(self, number: int) -> OnnxTensor | None:
        """Operand `number`, None if it is left out."""
        found = self.flowing(number)
        if isinstance(found, list):
            raise Refused(f"{self._input_label(number)} is a sequence", "a tensor")
        return found

    def flowing(self, number: int) -> Flowing:
        """Operand `number`, tensor or sequence."""
        self._taken.add(number)
        return self._operands[number] if number < self.count else None

    def tensors(self, first: int = 0) -> list[OnnxTensor]:
        """The operands from number `first` on, none of which may be left out."""
        return [self.take(i) for i in range(first, self.count)]

    def known(self, number: int) -> Array | None:
        """Values of an operand that must be known when the network is compiled; None if left out.

        Raises:
            Refused: it is computed from inputs.
        """
        found = self.optional(number)
        if found is None:
            return None
        if found.known is None:
            label = self._input_label(number)
            raise Refused(f"{label} is computed while the network runs", "a constant")
        return found.known

    def constant(self, number: int) -> Array:
        """Values of an operand that must be given, and known when the network is compiled.

        Raises:
            Refused: it is left out, or computed from inputs.
        """
        self.take(number)
        found = self.known(number)
        assert found is not None, "`take` refuses operands that are left out"
        return found

    def constant_integers(self, attribute: str, number: int) -> list[int]:
        """As `integers`, of what must be given.

        Raises:
            Refused: it is left out, or computed from inputs.
        """
        found = self.integers(attribute, number)
        return found if found is not None else [int(x) for x in np.ravel(self.constant(number))]

    def integers(self, attribute: str, number: int) -> list[int] | None:
        """Integers that are an attribute in old operator sets and input `number` in newer ones."""
        if attribute in self._attributes:
            return [int(value) for value in np.ravel(self.attr(attribute))]
        found = self.known(number)
        return None if found is None else [int(value) for value in np.ravel(found)]

    def ignore(self, *names: str | int) -> None:
        """Says of attributes (by name) and operands (by number) that they change nothing."""
        self._asked.update(name for name in names if isinstance(name, str))
        self._taken.update(name for name in names if isinstance(name, int))

    # Attributes.

    def attr(self, name: str, default: Any = _MISSING) -> Any:
        """An attribute, or its default: the one of ONNX's schema if none is given here.

        Texts are `str`, tensors arrays, graphs `onnx.GraphProto`. Without any default a missing
        attribute is None.
        """
        self._asked.add(name)
        if name in self._attributes:
            return _value(self._attributes[name])
        return self._default(name) if default is _MISSING else default

    def given(self, name: str) -> bool:
        """Whether an attribute is there."""
        self._asked.add(name)
        return name in self._attributes

    def wants(self, number: int) -> bool:
        """Whether output `number` is used."""
        return number < len(self.outputs) and self.outputs[number] != ""

    def dtype(self, name: str = "to", default: Any = _MISSING) -> np.dtype[Any]:
        """The NumPy type that an attribute names by the number of `TensorProto.DataType`."""
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.attr(name, default)))

    @cached_property
    def schema(self) -> Any:
        """ONNX's definition of the operator in this version; None if it has none.

        One that onnxruntime put into an older operator set than ONNX's has that of the newest.
        """
        for version in (self.version, NEWEST):
            try:
                return onnx.defs.get_schema(self.op_type, version, self.domain)
            except onnx.defs.SchemaError:
                continue
        return None

    def check_types(self) -> None:
        """Holds the operands against the schema, of this version or of the newest.

        Raises:
            Invalid: an element type that the operator does not take, or two that must agree.
        """
        if self.schema is None:
            return
        newest = onnx.defs.get_schema(self.op_type, domain=self.domain)
        kinds: dict[str, np.dtype[Any]] = {}
        for number, operand in enumerate(self._operands):
            if not isinstance(operand, OnnxTensor):
                continue
            formal = _formal(self.schema, number)
            allowed = formal.types | getattr(_formal(newest, number), "types", set())
            if (kind := type_string(operand.dtype)) not in allowed:
                message = f"{self._input_label(number)} is {kind}"
                raise BadNode(message, ", ".join(sorted(allowed)))
            first = kinds.setdefault(formal.type_str, operand.dtype)
            if formal.is_homogeneous and first != operand.dtype:
                message = f"{self._input_label(number)} is {kind}"
                raise BadNode(message, f"{type_string(first)}, as an input before it")

    def _default(self, name: str) -> Any:
        known = self.schema.attributes if self.schema is not None else {}
        if name not in known or not known[name].default_value.name:
            return None
        return _value(known[name].default_value)

    # Account.

    def refuse(self, message: str, expected: str = "") -> NoReturn:
        raise Refused(message, expected)

    def check_all_asked(self, results: int) -> None:
        """Refuses what was given and never asked for.

        Args:
            results: number of outputs that the lowering made.
        """
        for name, attribute in self._attributes.items():
            if name not in self._asked and not _equal(_value(attribute), self._default(name)):
                raise Refused(f"attribute {name!r} is not supported")
        for number in range(self.count):
            if number not in self._taken and self._operands[number] is not None:
                raise Refused(f"{self._input_label(number)} is not supported")
        for number in range(results, len(self.outputs)):
            if self.outputs[number]:
                raise Refused(f"output {number} ({self.outputs[number]!r}) is not supported")

    def _input_label(self, number: int) -> str:
        schema = self.schema
        names = self.input_names if schema is None else [formal.name for formal in schema.inputs]
        name = names[min(number, len(names) - 1)] if names else ""
        return f"input {number} ({name})" if name else f"input {number}"


def type_string(dtype: Any) -> str:
    """`tensor(float)`, as schemas name types."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"


def _formal(schema: Any, number: int) -> Any:
    """The formal input that operand `number` is one of; None if there is none."""
    return schema.inputs[min(number, len(schema.inputs) - 1)] if schema.inputs else None


def _value(attribute: AttributeProto) -> Any:
    """An attribute's value: bytes are text, tensors arrays."""
    value = helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.STRING:
        return value.decode(errors="replace")
    if attribute.type == AttributeProto.STRINGS:
        return [item.decode(errors="replace") for item in value]
    if attribute.type == AttributeProto.TENSOR:
        return numpy_helper.to_array(value)
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return b is not None and np.array_equal(a, b)
    return bool(a == b)
