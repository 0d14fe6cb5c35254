from collections.abc import Sequence

from torch_mlir.ir import FlatSymbolRefAttr, MemRefType, OpResult, OpView, Type, Value

class _Made(OpView):
    """An operation with one result."""

    result: OpResult

class AllocOp(_Made):
    def __init__(
        self,
        memref: Type,
        dynamic_sizes: Sequence[Value],
        symbol_operands: Sequence[Value],
        *,
        alignment: int | None = ...,
    ) -> None: ...

class SubViewOp(_Made):
    def __init__(
        self,
        result: MemRefType,
        source: Value,
        offsets: Sequence[Value],
        sizes: Sequence[Value],
        strides: Sequence[Value],
        static_offsets: Sequence[int],
        static_sizes: Sequence[int],
        static_strides: Sequence[int],
    ) -> None: ...

class ReinterpretCastOp(_Made):
    def __init__(
        self,
        result: Type,
        source: Value,
        offsets: Sequence[Value],
        sizes: Sequence[Value],
        strides: Sequence[Value],
        static_offsets: Sequence[int],
        static_sizes: Sequence[int],
        static_strides: Sequence[int],
    ) -> None: ...

class CollapseShapeOp(_Made):
    def __init__(
        self, result: Type, src: Value, reassociation: Sequence[Sequence[int]]
    ) -> None: ...

class ExpandShapeOp(_Made):
    def __init__(
        self,
        result: Type,
        src: Value,
        reassociation: Sequence[Sequence[int]],
        output_shape: Sequence[Value],
        static_output_shape: Sequence[int],
    ) -> None: ...

class ViewOp(_Made):
    def __init__(
        self, result: Type, source: Value, byte_shift: Value, sizes: Sequence[Value]
    ) -> None: ...

class LoadOp(_Made):
    def __init__(self, memref: Value, indices: Sequence[Value]) -> None: ...

class StoreOp(OpView):
    def __init__(self, value: Value, memref: Value, indices: Sequence[Value]) -> None: ...

class GetGlobalOp(_Made):
    def __init__(self, result: Type, name: str | FlatSymbolRefAttr) -> None: ...
