from collections.abc import Sequence

from torch_mlir.ir import Block, BlockArgumentList, FunctionType, Location, OpView, Value

class FuncOp(OpView):
    type: FunctionType
    entry_block: Block
    arguments: BlockArgumentList
    def __init__(
        self,
        name: str,
        type: FunctionType | tuple[Sequence[object], Sequence[object]],
        *,
        visibility: str | None = ...,
    ) -> None: ...
    def add_entry_block(self, arg_locs: Sequence[Location] | None = ...) -> Block: ...

class ReturnOp(OpView):
    def __init__(self, operands: Sequence[Value]) -> None: ...
