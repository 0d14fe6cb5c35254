from collections.abc import Sequence

from torch_mlir.ir import OpResult, OpView, Type, Value

class ExtractOp(OpView):
    result: OpResult
    def __init__(self, tensor: Value, indices: Sequence[Value]) -> None: ...

class InsertOp(OpView):
    result: OpResult
    def __init__(self, scalar: Value, dest: Value, indices: Sequence[Value]) -> None: ...

class FromElementsOp(OpView):
    result: OpResult
    def __init__(self, result: Type, elements: Sequence[Value]) -> None: ...
