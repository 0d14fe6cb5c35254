"""What this project uses of MLIR's `ir` module; the bindings come without types.

The type of a value, its owner (an operation or a block), and an attribute of an operation come as
their own class, whatever it is: `Any`. A constructor says more, `ir.MemRefType(value.type)`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, overload

import numpy.typing as npt

_T = TypeVar("_T")
_Self = TypeVar("_Self")

class MLIRError(Exception):
    message: str
    error_diagnostics: list[DiagnosticInfo]

class DiagnosticInfo:
    message: str
    location: Location
    severity: DiagnosticSeverity
    notes: list[DiagnosticInfo]

class DiagnosticSeverity(Enum):
    ERROR = 0
    WARNING = 1
    NOTE = 2
    REMARK = 3

class _Scope:
    """What `with` makes current."""

    def __enter__(self: _Self) -> _Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

class Context(_Scope):
    allow_unregistered_dialects: bool
    current: Context
    def __init__(self, load_on_create_dialects: Sequence[str] | None = None) -> None: ...
    def enable_multithreading(self, enable: bool, /) -> None: ...
    def attach_diagnostic_handler(self, handler: Callable[[Any], bool], /) -> Any: ...
    def is_registered_operation(self, name: str, /) -> bool: ...
    def load_all_available_dialects(self) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class Location(_Scope):
    context: Context
    current: Location
    @staticmethod
    def unknown(context: Context | None = ...) -> Location: ...
    @staticmethod
    def name(
        name: str, child: Location | None = ..., context: Context | None = ...
    ) -> Location: ...
    @staticmethod
    def fused(
        locations: Sequence[Location],
        metadata: Attribute | None = ...,
        context: Context | None = ...,
    ) -> Location: ...
    @staticmethod
    def file(filename: str, line: int, col: int, context: Context | None = ...) -> Location: ...
    def emit_error(self, message: str) -> None: ...

class NameLoc(Location):
    name_str: str
    child_loc: Location
    def __init__(self, location: Location, /) -> None: ...

class FusedLoc(Location):
    locations: list[Location]
    metadata: Attribute | None
    def __init__(self, location: Location, /) -> None: ...

class FileLineColLoc(Location):
    filename: str
    start_line: int
    start_col: int
    def __init__(self, location: Location, /) -> None: ...

class CallSiteLoc(Location):
    callee: Location
    caller: Location
    def __init__(self, location: Location, /) -> None: ...

# Attributes

class Attribute:
    type: Any
    context: Context
    def __init__(self, attribute: Attribute, /) -> None: ...
    def maybe_downcast(self) -> Attribute: ...
    @staticmethod
    def parse(text: str, context: Context | None = ...) -> Attribute: ...

class NamedAttribute:
    name: str
    attr: Attribute

class StringAttr(Attribute):
    value: str
    @staticmethod
    def get(value: str, context: Context | None = ...) -> StringAttr: ...

class IntegerAttr(Attribute):
    value: int
    @staticmethod
    def get(type: Type, value: int) -> IntegerAttr: ...

class BoolAttr(Attribute):
    value: bool
    @staticmethod
    def get(value: bool, context: Context | None = ...) -> BoolAttr: ...

class FloatAttr(Attribute):
    value: float
    @staticmethod
    def get(type: Type, value: float, loc: Location | None = ...) -> FloatAttr: ...

class UnitAttr(Attribute):
    @staticmethod
    def get(context: Context | None = ...) -> UnitAttr: ...

class TypeAttr(Attribute):
    value: Type
    @staticmethod
    def get(value: Type, context: Context | None = ...) -> TypeAttr: ...

class FlatSymbolRefAttr(Attribute):
    value: str
    @staticmethod
    def get(value: str, context: Context | None = ...) -> FlatSymbolRefAttr: ...

class SymbolRefAttr(Attribute):
    value: list[str]
    @staticmethod
    def get(symbols: Sequence[str], context: Context | None = ...) -> SymbolRefAttr: ...

class ArrayAttr(Attribute):
    @staticmethod
    def get(attributes: Sequence[Attribute], context: Context | None = ...) -> ArrayAttr: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Attribute: ...
    def __iter__(self) -> Iterator[Attribute]: ...

class DictAttr(Attribute):
    @staticmethod
    def get(value: Mapping[str, Attribute] = ..., context: Context | None = ...) -> DictAttr: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Attribute: ...
    def __iter__(self) -> Iterator[NamedAttribute]: ...

class _DenseArrayAttr(Attribute, Generic[_T]):
    @classmethod
    def get(cls: type[_Self], values: Sequence[_T], context: Context | None = ...) -> _Self: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> _T: ...
    def __iter__(self) -> Iterator[_T]: ...

class DenseI64ArrayAttr(_DenseArrayAttr[int]): ...
class DenseI32ArrayAttr(_DenseArrayAttr[int]): ...
class DenseBoolArrayAttr(_DenseArrayAttr[bool]): ...

class DenseElementsAttr(Attribute):
    is_splat: bool
    @staticmethod
    def get(
        array: Any,
        signless: bool = ...,
        type: Type | None = ...,
        shape: Sequence[int] | None = ...,
        context: Context | None = ...,
    ) -> DenseElementsAttr: ...
    @staticmethod
    def get_splat(shaped_type: Type, element_attr: Attribute) -> DenseElementsAttr: ...
    def get_splat_value(self) -> Attribute: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class DenseIntElementsAttr(DenseElementsAttr):
    def __getitem__(self, index: int, /) -> int: ...
    def __iter__(self) -> Iterator[int]: ...

class DenseFPElementsAttr(DenseElementsAttr):
    def __getitem__(self, index: int, /) -> float: ...
    def __iter__(self) -> Iterator[float]: ...

class DenseResourceElementsAttr(Attribute):
    @staticmethod
    def get_from_buffer(
        array: npt.NDArray[Any],
        name: str,
        type: Type,
        alignment: int | None = ...,
        is_mutable: bool = ...,
        context: Context | None = ...,
    ) -> DenseResourceElementsAttr: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class StridedLayoutAttr(Attribute):
    offset: int
    strides: list[int]
    @staticmethod
    def get(
        offset: int, strides: Sequence[int], context: Context | None = ...
    ) -> StridedLayoutAttr: ...

class AffineMap:
    @staticmethod
    def get_identity(n_dims: int, context: Context | None = ...) -> AffineMap: ...

class DynamicAttr(Attribute):
    attr_name: str
    params: list[Attribute]
    @staticmethod
    def lookup_typeid(full_name: str, context: Context | None = ...) -> TypeID: ...

class TypeID: ...

# Types

class Type:
    context: Context
    def __init__(self, type: Type, /) -> None: ...
    @staticmethod
    def parse(text: str, context: Context | None = ...) -> Type: ...

class DynamicType(Type):
    @staticmethod
    def lookup_typeid(full_name: str, context: Context | None = ...) -> TypeID: ...

class IndexType(Type):
    @staticmethod
    def get(context: Context | None = ...) -> IndexType: ...

class _Number(Type):
    """What most arrays hold; those of complex numbers and indices have no width."""

    width: int

class IntegerType(_Number):
    is_signed: bool
    is_unsigned: bool
    is_signless: bool
    @staticmethod
    def get_signless(width: int, context: Context | None = ...) -> IntegerType: ...
    @staticmethod
    def get_signed(width: int, context: Context | None = ...) -> IntegerType: ...
    @staticmethod
    def get_unsigned(width: int, context: Context | None = ...) -> IntegerType: ...

class FloatType(_Number): ...

class _Float(FloatType):
    @classmethod
    def get(cls: type[_Self], context: Context | None = ...) -> _Self: ...

class F16Type(_Float): ...
class BF16Type(_Float): ...
class F32Type(_Float): ...
class F64Type(_Float): ...

class ComplexType(Type):
    element_type: _Number
    @staticmethod
    def get(element_type: Type) -> ComplexType: ...

class ShapedType(Type):
    element_type: _Number
    rank: int
    shape: list[int]
    has_rank: bool
    has_static_shape: bool
    def is_dynamic_dim(self, dim: int, /) -> bool: ...
    def get_dim_size(self, dim: int, /) -> int: ...
    @staticmethod
    def get_dynamic_size() -> int: ...
    @staticmethod
    def get_dynamic_stride_or_offset() -> int: ...

class RankedTensorType(ShapedType):
    encoding: Attribute | None
    @staticmethod
    def get(
        shape: Sequence[int],
        element_type: Type,
        encoding: Attribute | None = ...,
        loc: Location | None = ...,
    ) -> RankedTensorType: ...

class UnrankedTensorType(ShapedType): ...

class MemRefType(ShapedType):
    layout: Attribute
    memory_space: Attribute | None
    @staticmethod
    def get(
        shape: Sequence[int],
        element_type: Type,
        layout: Attribute | None = ...,
        memory_space: Attribute | None = ...,
        loc: Location | None = ...,
    ) -> MemRefType: ...
    def get_strides_and_offset(self) -> tuple[list[int], int]: ...

class FunctionType(Type):
    inputs: list[Type]
    results: list[Type]
    @staticmethod
    def get(
        inputs: Sequence[Type], results: Sequence[Type], context: Context | None = ...
    ) -> FunctionType: ...

class TupleType(Type): ...

# Values and operations

class Value:
    type: Any
    owner: Any
    context: Context
    location: Location
    uses: Iterator[OpOperand]
    def __init__(self, value: Value, /) -> None: ...
    def get_name(self, use_local_scope: bool = ...) -> str: ...
    def set_type(self, type: Type) -> None: ...
    def replace_all_uses_with(self, value: Value, /) -> None: ...
    def replace_all_uses_except(self, value: Value, exceptions: Any, /) -> None: ...

class OpResult(Value):
    result_number: int

class BlockArgument(Value):
    arg_number: int

class OpOperand:
    owner: Operation
    operand_number: int

class OpAttributeMap:
    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def __setitem__(self, name: str, value: Attribute, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    @overload
    def get(self, name: str, /) -> Any: ...
    @overload
    def get(self, name: str, default: _T, /) -> Any | _T: ...
    def keys(self) -> list[str]: ...
    def values(self) -> list[Attribute]: ...
    def items(self) -> list[tuple[str, Attribute]]: ...

class _List(Sequence[_T]):
    """A list that lives in the IR."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_T]: ...
    @overload
    def __getitem__(self, index: int, /) -> _T: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[_T]: ...

class OpOperandList(_List[Value]):
    def __setitem__(self, index: int, value: Value, /) -> None: ...

class OpResultList(_List[OpResult]):
    types: list[Type]

class BlockArgumentList(_List[BlockArgument]):
    types: list[Type]

class WalkOrder(Enum):
    PRE_ORDER = 0
    POST_ORDER = 1

class WalkResult(Enum):
    ADVANCE = 0
    INTERRUPT = 1
    SKIP = 2

class _OperationBase:
    name: str
    context: Context
    location: Location
    attributes: OpAttributeMap
    operands: OpOperandList
    results: OpResultList
    regions: _List[Region]
    successors: _List[Block]
    result: OpResult
    parent: Operation | None
    block: Block
    operation: Operation
    opview: OpView
    def erase(self) -> None: ...
    def detach_from_parent(self) -> OpView: ...
    def clone(self, ip: InsertionPoint | Literal[False] | None = ...) -> OpView: ...
    def verify(self) -> bool: ...
    def move_before(self, other: _OperationBase, /) -> None: ...
    def move_after(self, other: _OperationBase, /) -> None: ...
    def is_before_in_block(self, other: _OperationBase, /) -> bool: ...
    def emit_error(self, message: str) -> None: ...
    def walk(
        self, callback: Callable[[Operation], WalkResult], walk_order: WalkOrder = ...
    ) -> None: ...
    def get_asm(self, **options: Any) -> Any: ...
    def print(self, **options: Any) -> None: ...
    def write_bytecode(self, file: Any, desired_version: int | None = ...) -> None: ...

class Operation(_OperationBase):
    @staticmethod
    def create(
        name: str,
        results: Sequence[Type] | None = ...,
        operands: Sequence[Value] | None = ...,
        attributes: Mapping[str, Attribute] | None = ...,
        successors: Sequence[Block] | None = ...,
        regions: int = ...,
        loc: Location | None = ...,
        ip: InsertionPoint | None = ...,
        infer_type: bool = ...,
    ) -> Operation: ...
    @staticmethod
    def parse(text: str, *, source_name: str = ..., context: Context | None = ...) -> OpView: ...

class OpView(_OperationBase):
    def __init__(self, operation: Operation, /) -> None: ...

class Region:
    blocks: BlockList
    owner: OpView
    def __iter__(self) -> Iterator[Block]: ...

class BlockList(_List[Block]):
    def append(self, *arguments: Type, arg_locs: Sequence[Location] | None = ...) -> Block: ...

class OperationList(_List[OpView]): ...

class Block:
    owner: OpView
    region: Region
    arguments: BlockArgumentList
    operations: OperationList
    @staticmethod
    def create_at_start(
        parent: Region,
        arg_types: Sequence[Type] = ...,
        arg_locs: Sequence[Location] | None = ...,
    ) -> Block: ...
    def create_after(self, *arguments: Type, arg_locs: Any = ...) -> Block: ...
    def create_before(self, *arguments: Type, arg_locs: Any = ...) -> Block: ...
    def append_to(self, region: Region, /) -> None: ...
    def append(self, operation: _OperationBase, /) -> None: ...
    def add_argument(self, type: Type, loc: Location) -> BlockArgument: ...
    def erase_argument(self, index: int, /) -> None: ...
    def __iter__(self) -> Iterator[OpView]: ...

class InsertionPoint(_Scope):
    block: Block
    ref_operation: Operation | None
    current: InsertionPoint
    def __init__(self, place: Block | _OperationBase, /) -> None: ...
    @staticmethod
    def at_block_begin(block: Block) -> InsertionPoint: ...
    @staticmethod
    def at_block_terminator(block: Block) -> InsertionPoint: ...
    @staticmethod
    def after(operation: _OperationBase) -> InsertionPoint: ...
    def insert(self, operation: _OperationBase, /) -> None: ...

class Module:
    context: Context
    operation: Operation
    body: Block
    @staticmethod
    def parse(text: str | bytes, context: Context | None = ...) -> Module: ...
    @staticmethod
    def parseFile(path: str, context: Context | None = ...) -> Module: ...  # noqa: N802 - MLIR's
    @staticmethod
    def create(loc: Location | None = ...) -> Module: ...

class SymbolTable:
    def __init__(self, operation: _OperationBase, /) -> None: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> OpView: ...
    def erase(self, operation: _OperationBase, /) -> None: ...
    def insert(self, operation: _OperationBase, /) -> StringAttr: ...
