from collections.abc import Sequence

from torch_mlir.ir import Attribute, FlatSymbolRefAttr, OpResult, OpView, Type, Value

class PointerType(Type):
    address_space: int
    @staticmethod
    def get(address_space: int | None = ...) -> PointerType: ...

class CallOp(OpView):
    def __init__(
        self,
        result: Type | None,
        callee_operands: Sequence[Value],
        op_bundle_operands: Sequence[Value],
        op_bundle_sizes: Sequence[int],
        *,
        callee: FlatSymbolRefAttr | str | None = ...,
    ) -> None: ...

class GEPOp(OpView):
    result: OpResult
    def __init__(
        self,
        res: Type,
        base: Value,
        dynamic_indices: Sequence[Value],
        raw_constant_indices: Attribute,
        elem_type: Type,
        no_wrap_flags: Attribute | int,
    ) -> None: ...

class IntToPtrOp(OpView):
    result: OpResult
    def __init__(self, res: Type, arg: Value) -> None: ...

class FunctionType(Type):
    return_type: Type
    def __init__(self, cast_from_type: Type) -> None: ...
