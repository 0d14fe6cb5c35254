from collections.abc import Sequence

from torch_mlir.ir import Block, BlockArgument, BlockArgumentList, OpView, Type, Value

class ForOp(OpView):
    body: Block
    induction_variable: BlockArgument
    inner_iter_args: BlockArgumentList
    def __init__(
        self, lower_bound: Value, upper_bound: Value, step: Value, iter_args: Sequence[Value] = ...
    ) -> None: ...

class IfOp(OpView):
    then_block: Block
    else_block: Block
    def __init__(
        self, condition: Value, results_: Sequence[Type] = ..., *, has_else: bool = ...
    ) -> None: ...

class YieldOp(OpView):
    def __init__(self, results: Sequence[Value]) -> None: ...
