"""Operations of the three dialects with one thing wrong: texts made from a legal operation.

`variants(operation)` yields the generic text of a module with that operation after one change of
its operands, results, attributes, regions or successors. A few changes leave it legal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from davinci.mlir import operations

UB = '#cce.space<"UB">'

TYPES = [
    "f32",
    "index",
    "i1",
    "none",
    "tuple<>",
    "complex<f32>",
    "vector<4xf32>",
    "!llvm.ptr",
    "!llvm.ptr<99>",
    "!llvm.struct<(i32)>",
    "tensor<f32>",
    "tensor<*xf32>",
    "tensor<?x4xf32>",
    "tensor<0xbf16>",
    "tensor<4xcomplex<f32>>",
    "tensor<2x!llvm.ptr>",
    "tensor<4xindex>",
    "tensor<2x2x2x2x2x2x2x2xi4>",
    "tensor<9223372036854775807x9223372036854775807xf32>",
    "memref<f32>",
    "memref<*xf32>",
    "memref<?xf32>",
    f"memref<f16, {UB}>",
    f"memref<0x16xf16, {UB}>",
    f"memref<?x16xf16, {UB}>",
    f"memref<*xf16, {UB}>",
    f"memref<8xf32, strided<[?], offset: ?>, {UB}>",
    f"memref<8xf32, strided<[-1], offset: 7>, {UB}>",
    "memref<8x8xf32, affine_map<(i, j) -> (i + j mod 2)>>",
    'memref<8xf32, "UB">',
    "memref<8xf32, 6>",
    "memref<8xf32, #cce.space<1 : i32>>",
    'memref<8xf32, #cce.space<"GM">>',
    f"memref<8xcomplex<f32>, {UB}>",
    f"memref<8xindex, {UB}>",
    f"memref<8x!llvm.ptr, {UB}>",
    f"memref<2x2x2x2x2x2x2x2x2xf32, {UB}>",
]
"""What operands and results are replaced with."""

VALUES = [
    "unit",
    "true",
    "-1 : i64",
    "1 : i1",
    "7 : i32",
    "9223372036854775807 : i64",
    "18446744073709551617 : i128",
    "1.5 : f32",
    "0x7FC00000 : f32",
    '"x"',
    '""',
    "@f",
    "f32",
    "[]",
    '["repeat", 1]',
    '["repeat", "repeat"]',
    "{}",
    "array<i64>",
    "array<i64: -1, 3000000000>",
    "array<i32: 0>",
    "array<i1: true>",
    "array<f32: 1.0>",
    "dense<1> : tensor<i32>",
    "dense<1.0> : tensor<2xf16>",
    "dense<> : tensor<0xi64>",
    "dense_resource<absent> : tensor<4xf32>",
    "sparse<[[0]], [1.0]> : tensor<4xf32>",
    "affine_map<(i) -> (i)>",
    'loc("a":1:1)',
    '#cce.space<"UB">',
    "#cce.space<1.0>",
]
"""What attributes are replaced with."""

SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")
"""Attributes that MLIR reads the groups of optional operands and results from."""


@dataclass(frozen=True)
class Operation:
    """The generic form of an operation whose operands are arguments of its function."""

    name: str
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    region: str = ""
    successor: str = ""

    def text(self, properties: bool = False) -> str:
        """A module with a kernel that holds the operation."""
        arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(self.operands))
        operands = ", ".join(f"%a{i}" for i in range(len(self.operands)))
        entries = [k if v == "unit" else f"{k} = {v}" for k, v in self.attributes.items()]
        attributes = f"{{{', '.join(entries)}}}"
        results = ", ".join(f"%r{i}" for i in range(len(self.results)))
        equals = f"{results} = " if results else ""
        attributes = f"<{attributes}>" if properties else attributes
        return (
            f"func.func @f({arguments}) attributes {{ascend.kernel}} {{\n"
            f'  {equals}"{self.name}"({operands}){self.successor}{self.region} {attributes} : '
            f"({', '.join(self.operands)}) -> ({', '.join(self.results)})\n  return\n"
            f"{'^bb1: return' if self.successor else ''}}}\n"
        )


def variants(op: Operation) -> Iterator[str]:
    """Texts of `op` with one change each."""
    yield op.text()
    yield op.text(properties=True)
    yield replace(op, operands=()).text()
    yield replace(op, operands=(), results=(), attributes={}).text()
    yield replace(op, region=" ({})").text()
    yield replace(op, region=' ({\n^bb0(%q: i32): "cce.vadd"() : () -> ()\n})').text()
    yield replace(op, successor="[^bb1]").text()
    yield from (replace(op, operands=types).text() for types in changed(op.operands))
    yield from (replace(op, results=types).text() for types in changed(op.results))
    for name in (*op.attributes, *SEGMENTS, "unknown", "dynamic", "type", "value", "arg_attrs"):
        rest = {k: v for k, v in op.attributes.items() if k != name}
        yield replace(op, attributes=rest).text()
        yield from (replace(op, attributes={**rest, name: value}).text() for value in VALUES)


def changed(types: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The list with one entry less, more, or of another type."""
    yield (*types, "i64")
    yield (*types, *types[-1:], *types[-1:])
    for at in range(len(types)):
        head, tail = types[:at], types[at + 1 :]
        yield (*head, *tail)
        yield from ((*head, other, *tail) for other in TYPES)


def operations_of(root: Any) -> list[Operation]:
    """Every operation of the three dialects at or below an MLIR operation."""
    return [
        Operation(
            op.name,
            tuple(str(value.type) for value in op.operands),
            tuple(str(value.type) for value in op.results),
            {name: str(op.attributes[name]) for name in op.attributes},
        )
        for op in operations(root, "ascend", "cce", "hivm")
    ]
