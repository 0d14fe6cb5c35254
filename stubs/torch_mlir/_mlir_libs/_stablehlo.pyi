from collections.abc import Sequence

from torch_mlir.ir import Attribute, Context, DenseElementsAttr, Module

def register_dialect(context: Context, /) -> None: ...
def register_stablehlo_passes() -> None: ...
def get_current_version() -> str: ...
def deserialize_portable_artifact(context: Context, artifact: bytes, /) -> Module: ...
def eval_module(
    module: Module, arguments: Sequence[DenseElementsAttr], /
) -> list[DenseElementsAttr]: ...

class DotDimensionNumbers(Attribute):
    lhs_batching_dimensions: list[int]
    rhs_batching_dimensions: list[int]
    lhs_contracting_dimensions: list[int]
    rhs_contracting_dimensions: list[int]

class GatherDimensionNumbers(Attribute):
    offset_dims: list[int]
    collapsed_slice_dims: list[int]
    operand_batching_dims: list[int]
    start_indices_batching_dims: list[int]
    start_index_map: list[int]
    index_vector_dim: int

class ScatterDimensionNumbers(Attribute):
    update_window_dims: list[int]
    inserted_window_dims: list[int]
    input_batching_dims: list[int]
    scatter_indices_batching_dims: list[int]
    scattered_dims_to_operand_dims: list[int]
    index_vector_dim: int

class ConvDimensionNumbers(Attribute):
    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: list[int]
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: list[int]
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: list[int]
