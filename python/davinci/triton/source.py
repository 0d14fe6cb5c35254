"""From a `@triton.jit` function and the arguments of a launch to text in Triton's dialect."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.errors import CompileError, InputError, did_you_mean
from davinci.triton.toolchain import COMPILER, COMPILERS, OPTIONS, TARGET, VENDOR

ALIGNED = 1 << 9
"""An address of which Triton assumes what it does of any buffer: those of devices are multiples of
512."""

POINTERS = {
    "bool": "*i1", "int8": "*i8", "int16": "*i16", "int32": "*i32", "int64": "*i64",
    "uint8": "*u8", "uint16": "*u16", "uint32": "*u32", "uint64": "*u64",
    "float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32",
}  # fmt: skip
"""Triton's types of buffers, by element types."""

GPU_OPTIONS = (
    "num_warps", "num_ctas", "num_stages", "maxnreg", "stream", "debug", "warmup",
    "num_buffers_warp_spec", "num_consumer_groups", "reg_dec_producer", "reg_inc_consumer",
)  # fmt: skip
"""Options of a launch that mean nothing here: triton-ascend ignores them too."""

OFF_OPTIONS = ("force_simt_template", "enable_linearize")
"""Options that every `triton.Config` of triton-ascend hands on, off unless its author says so; on,
they choose passes that are not run here."""


class ArrayArgument:
    """What Triton sees of an array: an element type and an address."""

    def __init__(self, dtype: np.dtype[Any], offset: int) -> None:
        self.dtype, self._offset = dtype, offset

    def data_ptr(self) -> int:
        return ALIGNED + self._offset


@dataclass(frozen=True)
class KernelSource:
    """A kernel for types and constants of arguments.

    Attributes:
        name: of the function.
        ttir: its text in Triton's dialect.
        arguments: names of the parameters that are arguments of the compiled kernel, in order.
        options: of the compilers.
    """

    name: str
    ttir: str
    arguments: tuple[str, ...]
    options: Mapping[str, object]


def bound(kernel: Any, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all parameters, and the options of the compilers under their names.

    Raises:
        InputError: a parameter has no value, two, or there is none of that name; or an option is
            on that is not supported.
    """
    signature = inspect.signature(kernel.fn)
    names = list(signature.parameters)
    known = [*names, COMPILER, *OPTIONS, *GPU_OPTIONS, *OFF_OPTIONS]
    for name in named:
        if name not in known:
            raise InputError(
                f"{kernel.fn.__name__} has no such parameter",
                found=name,
                expected=", ".join(names),
                hint=did_you_mean(name, known),
            )
        if name in OFF_OPTIONS and name not in names and named[name]:
            raise InputError(
                f"{kernel.fn.__name__}: an option that is not supported",
                found=f"{name}={named[name]}",
                expected=f"{name}=False",
            )
    own = {name: value for name, value in named.items() if name in names}
    if COMPILER not in own and named.get(COMPILER, VENDOR) not in COMPILERS:
        raise InputError(
            f"{kernel.fn.__name__}: no such compiler",
            found=f"{COMPILER}={named[COMPILER]}",
            expected=" or ".join(COMPILERS),
        )
    try:
        given = signature.bind(*args, **own)
    except TypeError as error:
        raise InputError(f"{kernel.fn.__name__}: {error}", expected=str(signature)) from None
    given.apply_defaults()
    chosen = (COMPILER, *OPTIONS)
    options = {name: value for name, value in named.items() if name in chosen}
    return {**given.arguments, **options}


def kind_of(value: Any, parameter: Any) -> str:
    """Triton's type of an argument.

    Raises:
        InputError: there is none.
    """
    if parameter.annotation_type:
        return str(parameter.annotation_type)
    if isinstance(value, ArrayArgument):
        name = str(value.dtype)
        if name not in POINTERS:
            raise InputError(
                f"argument {parameter.name}: no such element type in Triton",
                found=name,
                expected=", ".join(POINTERS),
            )
        return POINTERS[name]
    if value is None:
        return "*i8"
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        if -(1 << 31) <= value < 1 << 31:
            return "i32"
        return "u64" if value >= 1 << 63 else "i64"
    if isinstance(value, float):
        return "fp32"
    raise InputError(
        f"argument {parameter.name} is neither an array nor a number", found=type(value).__name__
    )


def source_of(kernel: Any, values: Mapping[str, Any]) -> KernelSource:
    """Builds the text of a kernel.

    Args:
        kernel: a `triton.JITFunction`.
        values: of its parameters; arrays are `Buffer`s. Others are options of the compilers.

    Raises:
        CompileError: Triton does not compile the function; with its file and line.
    """
    from triton._C.libtriton import ir
    from triton.backends.ascend.compiler import AscendAttrsDescriptor, AscendBackend, make_ttir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.errors import CompilationError

    params = kernel.params
    in_order = [values[param.name] for param in params]
    signature = {
        param.name: kind_of(values[param.name], param) for param in params if not param.is_constexpr
    }
    attributes = AscendAttrsDescriptor(params, in_order)
    folded = attributes.get_constants()
    constants = {
        param.name: value
        for param, value in zip(params, in_order, strict=True)
        if param.is_constexpr or param.num in folded or value is None
    }
    backend = AscendBackend(GPUTarget("npu", TARGET, 0))
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(kernel, signature, constants, attributes)
    codegen, modules = backend.get_codegen_implementation(), backend.get_module_map()
    name = kernel.fn.__name__
    try:
        module = make_ttir(source.make_ir(options, codegen, modules, context), {}, options)
    except CompilationError as error:
        raise CompileError(
            f"Triton does not compile {name}: {last_line(error)}", where=place_of(kernel, error)
        ) from None
    except Exception as error:  # whatever the code that a kernel runs while it is compiled raises
        raise CompileError(f"Triton does not compile {name}: {error}", where=name) from None
    arguments = tuple(param for param in signature if param not in constants)
    own = {key: value for key, value in values.items() if key in (COMPILER, *OPTIONS)}
    return KernelSource(name, str(module), arguments, own)


def last_line(error: Exception) -> str:
    """What an error of Triton says at its end; it begins with a listing."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__


def place_of(kernel: Any, error: Any) -> str:
    """File and line of an error of Triton, which counts lines from the function on."""
    code = kernel.fn.__code__
    node = getattr(error, "node", None)
    line = getattr(node, "lineno", None)
    first = kernel.starting_line_number if hasattr(kernel, "starting_line_number") else None
    begin = first if first is not None else code.co_firstlineno
    return f"{code.co_filename}:{begin + line - 1 if line else begin}"
