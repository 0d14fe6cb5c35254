"""Makes kernels of single ascend ops and shares them between equal ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import python_value
from davinci.errors import CompileError
from davinci.mlir import func, ir, location_text, symbol_name
from davinci.operators import OPERATORS, Call
from davinci.passes import builder
from davinci.passes.ascend.kernel_facts import Facts, facts_of


@dataclass(frozen=True)
class Full:
    """An operand that is the same value everywhere: a constant of the kernel, not a buffer."""

    value: Any
    type: Any


@dataclass(frozen=True)
class KernelOp:
    """An ascend op in memref form, from which a kernel can be made.

    Attributes:
        name: the operator, e.g. `add`.
        operands: for each operand the memref type of its GM buffer, or a `Full`.
        results: memref types of the outputs.
        attributes: names and attributes of the operation.
    """

    name: str
    operands: tuple[Any, ...]
    results: tuple[Any, ...]
    attributes: tuple[tuple[str, Any], ...] = ()

    @property
    def facts(self) -> Facts:
        """What reports say of its kernel; constants of the kernel are no operands."""
        buffers = (x for x in self.operands if not isinstance(x, Full))
        operands, results = (tuple(map(tensor_of, x)) for x in (buffers, self.results))
        attributes = {name: python_value(attr) for name, attr in self.attributes}
        return facts_of(self.name, Call(operands, results, attributes, buffers=True))

    @property
    def symbol(self) -> str:
        """A readable name, e.g. `reduce_add_f32_128x1`."""
        parts = [self.name]
        for key, value in self.attributes:
            if key in ("kind", "predicate"):
                parts.append(ir.StringAttr(value).value.lower())
        parts.append(str(self.results[0].element_type))
        parts += ["x".join(map(str, self.results[0].shape))] if self.results[0].shape else []
        return "_".join(parts)


class KernelTable:
    """The module `@kernels` of `root` and the kernels outlined into it."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._module = next((op for name, op in symbols(root) if name == "kernels"), None)
        self._kernels = dict(symbols(self._module)) if self._module else {}
        self._outlined: dict[KernelOp, str] = {}

    def outlined(self, op: KernelOp, location: Any) -> str:
        """Name of the kernel that computes `op`, made now if there is no equal one yet."""
        if op not in self._outlined:
            self._outlined[op] = unique(op.symbol, self._kernels)
            self._build(self._outlined[op], op, location)
        return self._outlined[op]

    def prepared(self, caller: Any) -> str:
        """Name of the kernel that a `func.call` means, which must be there already."""
        callee = str(ir.SymbolRefAttr(caller.attributes["callee"]).value[-1])
        found = self._kernels.get(callee)
        if found is None or "ascend.kernel" not in found.attributes:
            raise CompileError(
                "'func.call' op calls a function that is not a kernel on memrefs",
                where=location_text(caller.location),
                found=f"@{callee}",
                expected="a function with ascend.kernel in module @kernels",
                hint="run ascend-outline-scalar before ascend-bufferize",
            )
        return callee

    def _build(self, symbol: str, op: KernelOp, location: Any) -> None:
        if self._module is None:
            self._module = _create_module(self._root)
        buffers = [x for x in op.operands if not isinstance(x, Full)]
        with ir.InsertionPoint(self._module.regions[0].blocks[0]), location:
            kernel = func.FuncOp(symbol, ([*buffers, *op.results], []))
            kernel.attributes["ascend.kernel"] = ir.UnitAttr.get()
            kernel.attributes["ascend.op"] = ir.StringAttr.get(op.name)
            kernel.attributes["ascend.unit"] = ir.StringAttr.get(OPERATORS[op.name].unit)
            op.facts.mark(kernel)
            block = kernel.add_entry_block([location] * (len(buffers) + len(op.results)))
        self._kernels[symbol] = kernel.operation
        arguments = iter(block.arguments)
        with ir.InsertionPoint(block), location:
            values = [_full(x) if isinstance(x, Full) else next(arguments) for x in op.operands]
            builder.op(f"ascend.{op.name}", [*values, *arguments], [], **dict(op.attributes))
            func.ReturnOp([])


def stored_tensor(tensor_type: Any) -> Any:
    """The tensor type of what a buffer holds: booleans are bytes, unsigned integers signless."""
    tensor = ir.RankedTensorType(tensor_type)
    if not is_boolean(tensor) and not is_unsigned(tensor):
        return tensor
    width = 8 if is_boolean(tensor) else tensor.element_type.width
    return ir.RankedTensorType.get(tensor.shape, ir.IntegerType.get_signless(width))


def memref_of(tensor_type: Any) -> Any:
    """The GM buffer type of a static tensor type: the array of its layout."""
    shape = tensor_of(tensor_type).stored_shape
    return ir.MemRefType.get(list(shape), stored_tensor(tensor_type).element_type)


def is_boolean(shaped_type: Any) -> bool:
    return str(shaped_type.element_type) == "i1"


def is_unsigned(shaped_type: Any) -> bool:
    return str(shaped_type.element_type).startswith("ui")


def symbols(module: Any) -> list[tuple[str, Any]]:
    """Names and operations of the symbols directly in `module`."""
    operations = [op.operation for op in module.regions[0].blocks[0].operations]
    return [(symbol_name(op), op) for op in operations if "sym_name" in op.attributes]


def unique(base: str, taken: dict[str, Any]) -> str:
    """`base`, or `base_1`, `base_2`, ... if it is taken."""
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _full(full: Full) -> Any:
    """An `ascend.full` with a memref result, for use inside a kernel."""
    result = memref_of(full.type)
    value = full.value
    if value.type != result.element_type:
        number = int(bool(value.value)) if is_boolean(full.type) else int(value.value)
        half = 1 << (result.element_type.width - 1)
        value = ir.IntegerAttr.get(result.element_type, (number + half) % (2 * half) - half)
    return builder.op("ascend.full", [], [result], value=value).result


def kernels_module(root: Any) -> Any:
    """The module `@kernels` of `root`, made now if there is none."""
    return dict(symbols(root)).get("kernels") or _create_module(root)


def _create_module(root: Any) -> Any:
    with ir.InsertionPoint(root.regions[0].blocks[0]), ir.Location.unknown():
        module = ir.Operation.create("builtin.module", regions=1)
    module.regions[0].blocks.append()
    module.attributes["sym_name"] = ir.StringAttr.get("kernels")
    return module
