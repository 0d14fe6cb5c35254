"""Makes kernels for the scalar unit of functions on tensors, by upstream's passes.

    StableHLO -> scf and linalg on tensors -> buffers -> results as arguments -> loops of loads and
    stores

Booleans are bytes in GM, so arguments and results of type `i1` become `i8`, converted inside, and
unsigned integers are signless.
Temporaries become further arguments: GM buffers that the caller provides.
"""

from __future__ import annotations

from davinci.elements import scalar_attribute
from davinci.mlir import (
    Op,
    arith,
    func,
    function_type,
    ir,
    memref,
    operations,
    run_pipeline,
    symbols,
)
from davinci.passes import builder
from davinci.passes.ascend.kernel_facts import facts_of_function
from davinci.passes.ascend.kernel_outline import is_boolean, stored_tensor
from davinci.passes.pipeline.base import fail
from davinci.passes.stablehlo_to_scf import elements, lower_to_scf

TO_LINALG = (
    "inline,stablehlo-legalize-to-linalg,reconcile-unrealized-casts,canonicalize,cse,"
    "func.func(linalg-generalize-named-ops),linalg-fuse-elementwise-ops,"
    "canonicalize,cse"
)
IN_PLACE = "eliminate-empty-tensors"
"""Lets operations write to where their results go. Of a loop's carried values it takes those that
other operations still read, which bufferization then refuses."""
TO_BUFFERS = (
    "one-shot-bufferize{bufferize-function-boundaries=true "
    "function-boundary-type-conversion=identity-layout-map "
    "unknown-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{hoist-static-allocs=true modify-public-functions=true},"
    "canonicalize,cse"
)
TO_LOOPS = (
    "convert-linalg-to-loops,lower-affine,fold-memref-alias-ops,lower-affine,canonicalize,cse,"
    "loop-invariant-code-motion,symbol-dce"
)

FOLD_VIEWS = "fold-memref-alias-ops,lower-affine,canonicalize,cse"
"""Makes loads and stores of views those of whole buffers."""


def build_kernel(
    function: Op, kernels: Op, name: str, op_name: str
) -> tuple[list[ir.RankedTensorType], list[ir.Attribute]]:
    """Adds the kernel of `function` to the module `kernels`.

    Returns:
        The tensor types of the temporaries, which are the last arguments of the kernel, and the
        elements attributes of constants, which are arguments behind the operands.

    Raises:
        CompileError: upstream has no loops for an operation.
        MLIRError: one of upstream's passes fails.
    """
    facts = facts_of_function(op_name, function)
    scratch = ir.Module.create(function.location)
    copy = function.clone(ip=ir.InsertionPoint(scratch.body))
    del copy.attributes["sym_visibility"]
    copy.attributes["sym_name"] = ir.StringAttr.get(name)
    to_stored_types(copy)
    lower_to_scf(copy)
    run_pipeline(scratch.operation, TO_LINALG)
    require_loops(find(scratch, name))
    if make_scalars(find(scratch, name)):
        run_pipeline(scratch.operation, "canonicalize,cse")
    if not operations(find(scratch, name), "scf.while"):
        run_pipeline(scratch.operation, IN_PLACE)
    constants = constants_to_arguments(find(scratch, name))
    protect_arguments(find(scratch, name))
    run_pipeline(scratch.operation, TO_BUFFERS)
    run_pipeline(scratch.operation, TO_LOOPS)
    kernel = find(scratch, name)
    if expand_copies(kernel):
        run_pipeline(scratch.operation, FOLD_VIEWS)
        kernel = find(scratch, name)
    saturate_conversions(kernel)
    booleans_to_bytes(kernel)
    temporaries = allocations_to_arguments(kernel)
    moved = kernel.clone(ip=ir.InsertionPoint(kernels.regions[0].blocks[0]))
    moved.attributes["ascend.kernel"] = ir.UnitAttr.get()
    moved.attributes["ascend.op"] = ir.StringAttr.get(op_name)
    moved.attributes["ascend.unit"] = ir.StringAttr.get("scalar")
    facts.mark(moved)
    return temporaries, constants


def find(module: ir.Module, name: str) -> ir.Operation:
    """The function `name`, which upstream's passes replace by new operations."""
    return dict(symbols(module.operation))[name]


def require_loops(function: Op) -> None:
    """Fails at an operation that `TO_LINALG` left as it was; bufferization would not name it."""
    for op in operations(function, "stablehlo")[-1:]:  # the owner of a region comes last
        types = ", ".join(str(value.type) for value in op.operands)
        attributes = [f"{name} = {op.attributes[name]}" for name in op.attributes]
        fail(
            op,
            "is not supported in this form: no unit has a kernel for it, and upstream MLIR has no "
            "loops for it",
            found=", ".join([f"operands ({types})", *attributes]),
            hint="replace it in the model",
        )


def make_scalars(function: Op) -> bool:
    """Computes on scalars what linalg computes on tensors of rank 0; says whether it found any."""
    found = [
        op
        for op in operations(function, "linalg.generic")
        if not any(v.type.rank for v in op.results) and not any(tensor_rank(v) for v in op.operands)
    ]
    for op in found:
        with op.location, ir.InsertionPoint(op):
            scalars = [elements.extract(v) if is_tensor(v) else v for v in op.operands]
            values = elements.inline(op.regions[0].blocks[0], scalars)
            for old, value in zip(op.results, values, strict=True):
                old.replace_all_uses_with(elements.rank_zero(value, old.type))
        op.erase()
    return bool(found)


def tensor_rank(value: ir.Value) -> int:
    return int(value.type.rank) if isinstance(value.type, ir.RankedTensorType) else 0


def is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def to_stored_types(function: Op) -> None:
    """Changes arguments and results of a function on tensors to the types that buffers have.

    Booleans become bytes by a conversion; unsigned integers, signless ones of the same bits.
    """
    old = function_type(function)
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    with function.location:
        for argument in block.arguments:
            stored, used = stored_tensor(argument.type), argument.type
            if stored != used:
                uses = list(argument.uses)
                argument.set_type(stored)
                with ir.InsertionPoint.at_block_begin(block):
                    converted = stored_as(argument, used)
                for use in uses:
                    use.owner.operands[use.operand_number] = converted
        with ir.InsertionPoint(terminator):
            for i, value in enumerate(terminator.operands):
                if stored_tensor(value.type) != value.type:
                    terminator.operands[i] = stored_as(value, stored_tensor(value.type))
    new = ir.FunctionType.get(
        [stored_tensor(t) for t in old.inputs], [stored_tensor(t) for t in old.results]
    )
    function.attributes["function_type"] = ir.TypeAttr.get(new)


def stored_as(value: ir.Value, wanted: ir.RankedTensorType) -> ir.Value:
    """`value` between the type of a tensor and that of its buffer."""
    boolean = is_boolean(value.type) or is_boolean(wanted)
    name = "stablehlo.convert" if boolean else "builtin.unrealized_conversion_cast"
    return builder.op(name, [value], [wanted]).result


def constants_to_arguments(function: Op) -> list[ir.Attribute]:
    """Makes arguments of the constant tensors of a function; returns their values."""
    block = function.regions[0].blocks[0]
    found = []
    for op in operations(function, "arith.constant"):
        if isinstance(op.result.type, ir.RankedTensorType):
            found.append(op.attributes["value"])
            op.result.replace_all_uses_with(block.add_argument(op.result.type, op.location))
            op.erase()
    old = function_type(function)
    with function.location:
        types = ir.FunctionType.get([a.type for a in block.arguments], list(old.results))
        function.attributes["function_type"] = ir.TypeAttr.get(types)
    return found


def protect_arguments(function: Op) -> None:
    """Keeps upstream from computing in place in the arguments, which others may read later."""
    with function.location:
        read_only = ir.DictAttr.get({"bufferization.writable": ir.BoolAttr.get(False)})
        count = len(function.regions[0].blocks[0].arguments)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([read_only] * count)


def expand_copies(kernel: Op) -> bool:
    """Replaces `memref.copy` by loops of loads and stores; says whether there was any."""
    copies = operations(kernel, "memref.copy")
    for op in copies:
        source, target = op.operands
        with op.location, ir.InsertionPoint(op):
            copy_elements(source, target, list(ir.MemRefType(source.type).shape), [])
        op.erase()
    return bool(copies)


def copy_elements(
    source: ir.Value, target: ir.Value, shape: list[int], indices: list[ir.Value]
) -> None:
    if len(indices) == len(shape):
        memref.StoreOp(memref.LoadOp(source, indices).result, target, indices)
        return
    with builder.for_loop(0, shape[len(indices)]) as index:
        copy_elements(source, target, shape, [*indices, index])


def saturate_conversions(kernel: Op) -> None:
    """Gives conversions of floats to integers a result for every number.

    What is out of range becomes the nearest integer and NaN zero; upstream leaves both undefined.
    """
    for op in operations(kernel, "arith.fptosi", "arith.fptoui"):
        number, kind = op.operands[0], op.result.type
        signed = op.name == "arith.fptosi"
        bits = kind.width - signed
        low = -(1 << bits) if signed else 0
        uses = list(op.result.uses)
        result = op.result
        with op.location, ir.InsertionPoint.after(op):
            for predicate, bound, integer in (
                (arith.CmpFPredicate.OGE, 2.0**bits, (1 << bits) - 1 if signed else -1),
                (arith.CmpFPredicate.OLE, float(low), low),
                (arith.CmpFPredicate.UNO, 0.0, 0),
            ):
                limit = arith.ConstantOp(number.type, ir.FloatAttr.get(number.type, bound)).result
                holds = arith.CmpFOp(predicate, number, limit).result
                value = arith.ConstantOp(kind, scalar_attribute(integer, kind)).result
                result = arith.SelectOp(holds, value, result).result
        for use in uses:
            use.owner.operands[use.operand_number] = result


def access_bytes(booleans: ir.Value, buffer: ir.Value) -> None:
    """Makes the loads and stores of a buffer of `i1` ones of `buffer`, which holds bytes."""
    byte = ir.IntegerType.get_signless(8)
    for use in list(booleans.uses):
        op = use.owner.operation
        with op.location, ir.InsertionPoint(op):
            if op.name == "memref.load":
                loaded = memref.LoadOp(buffer, list(op.operands)[1:]).result
                op.result.replace_all_uses_with(arith.TruncIOp(op.result.type, loaded).result)
            elif op.name == "memref.store":
                value, _, *indices = op.operands
                memref.StoreOp(arith.ExtUIOp(byte, value).result, buffer, indices)
            else:
                fail(op, "on a buffer of booleans", expected="loads and stores")
        op.erase()


def booleans_to_bytes(kernel: Op) -> None:
    """Makes arguments of bytes of those of booleans, which are constants."""
    for argument in kernel.regions[0].blocks[0].arguments:
        kind = ir.MemRefType(argument.type)
        if is_boolean(kind):
            stored = ir.MemRefType.get(kind.shape, ir.IntegerType.get_signless(8))
            argument.set_type(stored)
            access_bytes(argument, argument)


def allocations_to_arguments(kernel: Op) -> list[ir.RankedTensorType]:
    """Makes arguments of the temporaries of `kernel`; returns their types as tensors."""
    for op in operations(kernel, "memref.dealloc"):
        op.erase()
    block = kernel.regions[0].blocks[0]
    temporaries = []
    for op in operations(kernel, "memref.alloc", "memref.alloca"):
        temporary = ir.MemRefType(op.result.type)
        element = temporary.element_type
        if str(element) == "i1":
            element = ir.IntegerType.get_signless(8)
            temporary = ir.MemRefType.get(temporary.shape, element)
            argument = block.add_argument(temporary, op.location)
            access_bytes(op.result, argument)
        else:
            argument = block.add_argument(temporary, op.location)
            op.result.replace_all_uses_with(argument)
        op.erase()
        temporaries.append(ir.RankedTensorType.get(temporary.shape, element))
    types = [argument.type for argument in block.arguments]
    with kernel.location:
        kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    for key in ("arg_attrs", "res_attrs"):
        if key in kernel.attributes:
            del kernel.attributes[key]
    assert isinstance(kernel.opview, func.FuncOp), "kernels are functions"
    return temporaries
