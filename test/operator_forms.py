"""The cases of `operator_cases` as programs: an ascend operation, or what StableHLO has for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from davinci import frontends
from davinci.element_types import dtype_of
from davinci.mlir import make_context
from davinci.operators.conv import geometry
from davinci.reference import interpreter
from operator_cases import INVERSE, Array, Case, tensor_of
from support import run_text


def attribute_text(value: Any) -> str:
    """A Python value as an attribute."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
    if isinstance(value, float):
        return f"0x{np.float64(value).view(np.uint64):016X} : f64"
    return f"{value} : i64"


def attributes_text(case: Case) -> str:
    return ", ".join(
        name if value is True else f"{name} = {attribute_text(value)}"
        for name, value in case.attributes.items()
    )


def function(case: Case, body: str) -> str:
    """`@main` of the operands %0, %1, ... that returns %r."""
    types = [f"tensor<{tensor_of(x)}>" for x in case.inputs]
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(types))
    result = f"tensor<{case.result}>"
    return f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


def ascend_text(case: Case) -> str:
    types = ", ".join(f"tensor<{tensor_of(x)}>" for x in case.inputs)
    operands = ", ".join(f"%{i}" for i in range(len(case.inputs)))
    attributes = attributes_text(case)
    return function(
        case,
        f'%r = "ascend.{case.name}"({operands}) {{{attributes}}} : ({types}) -> '
        f"tensor<{case.result}>",
    )


def by_kernel(case: Case, machine: str = "ascend910") -> Array:
    """The result of the kernel that the compiler makes, on the simulator with all its checks."""
    (found,) = run_text(ascend_text(case), *case.inputs, cores=1, machine=machine)
    return found


SAME = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "pow": "power",
    "neg": "negate",
    "exp": "exponential",
    "round": "round_nearest_even",
    "round_away": "round_nearest_afz",
    "expm1": "exponential_minus_one",
    "log1p": "log_plus_one",
    "shift_right": "shift_right_arithmetic",
}
SAME |= {name: name for name in ("add", "and", "or", "xor", "abs", "sign", "log", "sqrt", "rsqrt")}
SAME |= {name: name for name in ("sine", "cosine", "tan", "cbrt", "atan2")}
SAME |= {name: name for name in ("tanh", "logistic", "floor", "ceil", "not")}
SAME |= {"count_leading_zeros": "count_leading_zeros"}
SAME |= {name: name for name in ("remainder", "shift_left", "shift_right_logical", "popcnt")}
"""Operations on values of one type, by the ascend operator."""

REDUCERS = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}
START = {"add": "0", "mul": "1"}
LIMITS = {
    ("max", "f32"): "0xFF800000",
    ("min", "f32"): "0x7F800000",
    ("max", "i32"): "-2147483648",
    ("min", "i32"): "2147483647",
}


def reduce_text(case: Case, operand: str, result: str) -> str:
    kind, element = case.attributes["kind"], case.result.element
    start = LIMITS.get((kind, element)) or START[kind] + (".0" if "f" in element else "")
    return (
        f"%c = stablehlo.constant dense<{start}> : tensor<{element}>\n"
        f"%r = stablehlo.reduce(%0 init: %c) applies stablehlo.{REDUCERS[kind]} across dimensions "
        f"= {case.attributes['dims']} : ({operand}, tensor<{element}>) -> {result}"
    )


def half_part_text(case: Case, operand: str, result: str) -> str:
    lines, x = [], "%0"
    for i in range(case.attributes["part"]):
        lines += [
            f"%h{i} = stablehlo.convert {x} : ({operand}) -> {result}",
            f"%w{i} = stablehlo.convert %h{i} : ({result}) -> {operand}",
            f"%d{i} = stablehlo.subtract {x}, %w{i} : {operand}",
        ]
        x = f"%d{i}"
    return "\n".join([*lines, f"%r = stablehlo.convert {x} : ({operand}) -> {result}"])


def slice_text(case: Case, operand: str, result: str) -> str:
    lists = (case.attributes[name] for name in ("starts", "limits", "strides"))
    ranges = ", ".join(":".join(map(str, bound)) for bound in zip(*lists, strict=True))
    return f"%r = stablehlo.slice %0 [{ranges}] : ({operand}) -> {result}"


def gather_text(case: Case, table: str, indices: str, result: str) -> str:
    rank = len(case.inputs[0].shape)
    sizes = attribute_text([1, *case.inputs[0].shape[1:]])
    number, wrapping = "%1", ""
    if case.attributes.get("wrap"):
        number, truths = "%at", indices.replace("i32", "i1")
        wrapping = f"""%zero = stablehlo.constant dense<0> : {indices}
          %size = stablehlo.constant dense<{len(case.inputs[0])}> : {indices}
          %end = stablehlo.add %1, %size : {indices}
          %negative = stablehlo.compare LT, %1, %zero : ({indices}, {indices}) -> {truths}
          %at = stablehlo.select %negative, %end, %1 : {truths}, {indices}
          """
    return (
        f'{wrapping}%r = "stablehlo.gather"(%0, {number}) {{dimension_numbers = #stablehlo.gather<'
        f"offset_dims = {list(range(1, rank))}, collapsed_slice_dims = [0], start_index_map = [0], "
        f"index_vector_dim = 1>, slice_sizes = {sizes}}} : ({table}, {indices}) -> {result}"
    )


def product_text(case: Case, a: str, b: str, result: str) -> str:
    batch = case.result.rank - 2
    turned_a, turned_b = (case.attributes.get(f"transpose_{side}", False) for side in "ab")
    inner = (batch + (not turned_a), batch + bool(turned_b))
    batching = "batching_dims = [0] x [0], " if batch else ""
    return (
        f"%r = stablehlo.dot_general %0, %1, {batching}contracting_dims = [{inner[0]}] x "
        f"[{inner[1]}] : ({a}, {b}) -> {result}"
    )


def conv_text(case: Case, x: str, w: str, result: str) -> str:
    """Images and weights taken apart: blocks of channels, and the channels of each; several groups
    are whole blocks in images that are padded, and in a result that is cut."""
    given = case.attributes
    batch, _, channels = case.inputs[0].shape
    groups, rows, each = case.inputs[1].shape
    (kh, kw), (height, width) = given["kernel"], given["image"]
    blocks, kind = rows // kh // kw // 16, "f16"
    lies = geometry(given)
    down, across = lies.windows
    inner = channels if groups == 1 else blocks * 16
    given_image = f"tensor<{batch}x{height}x{width}x{channels}x{kind}>"
    image = f"tensor<{batch}x{height}x{width}x{groups * inner}x{kind}>"
    high = f"low = [0, 0, 0, 0], high = [0, 0, 0, {groups * inner - channels}]"
    split = f"tensor<{groups}x{blocks}x{kh}x{kw}x16x{each}x{kind}>"
    turned = f"tensor<{kh}x{kw}x{blocks}x16x{groups}x{each}x{kind}>"
    whole = f"tensor<{kh}x{kw}x{blocks * 16}x{groups * each}x{kind}>"
    weights = f"tensor<{kh}x{kw}x{inner}x{groups * each}x{kind}>"
    made = f"tensor<{batch}x{down}x{across}x{groups * each}xf32>"
    outputs = case.result.shape[2]
    cut = f"tensor<{batch}x{down}x{across}x{outputs}xf32>"
    top, bottom, left, right = given["pads"]
    window = f"stride = {given['strides']}, pad = [[{top}, {bottom}], [{left}, {right}]], "
    window += f"rhs_dilate = {given['dilations']}"
    limits = f"[0:{kh}, 0:{kw}, 0:{inner}, 0:{groups * each}]"
    parts = f"[0:{batch}, 0:{down}, 0:{across}, 0:{outputs}]"
    return f"""%x0 = stablehlo.reshape %0 : ({x}) -> {given_image}
    %zero = stablehlo.constant dense<0.0> : tensor<{kind}>
    %x = stablehlo.pad %x0, %zero, {high}, interior = [0, 0, 0, 0]
      : ({given_image}, tensor<{kind}>) -> {image}
    %w0 = stablehlo.reshape %1 : ({w}) -> {split}
    %w1 = stablehlo.transpose %w0, dims = [2, 3, 1, 4, 0, 5] : ({split}) -> {turned}
    %w2 = stablehlo.reshape %w1 : ({turned}) -> {whole}
    %w = stablehlo.slice %w2 {limits} : ({whole}) -> {weights}
    %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{{window}}} {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
      : ({image}, {weights}) -> {made}
    %y0 = stablehlo.slice %y {parts} : ({made}) -> {cut}
    %r = stablehlo.reshape %y0 : ({cut}) -> {result}"""


def relu_text(case: Case, operand: str, result: str) -> str:
    zero = "0.0" if "f" in case.result.element else "0"
    constant = f"%c = stablehlo.constant dense<{zero}> : {operand}"
    return f"{constant}\n%r = stablehlo.maximum %0, %c : {operand}"


def hard_swish_text(case: Case, operand: str, result: str) -> str:
    return f"""%three = stablehlo.constant dense<3.0> : {operand}
    %zero = stablehlo.constant dense<0.0> : {operand}
    %six = stablehlo.constant dense<6.0> : {operand}
    %sixth = stablehlo.constant dense<{1 / 6}> : {operand}
    %above = stablehlo.add %0, %three : {operand}
    %gate = stablehlo.clamp %zero, %above, %six : {operand}
    %part = stablehlo.multiply %gate, %sixth : {operand}
    %r = stablehlo.multiply %0, %part : {operand}"""


def quantize_text(case: Case, operand: str, result: str) -> str:
    limits = np.iinfo(np.int8 if case.result.element == "i8" else np.uint8)
    return f"""%zero = stablehlo.constant dense<{case.attributes["zero"]}.0> : {operand}
    %low = stablehlo.constant dense<{limits.min}.0> : {operand}
    %high = stablehlo.constant dense<{limits.max}.0> : {operand}
    %whole = stablehlo.round_nearest_even %0 : {operand}
    %moved = stablehlo.add %whole, %zero : {operand}
    %above = stablehlo.maximum %moved, %low : {operand}
    %within = stablehlo.minimum %above, %high : {operand}
    %r = stablehlo.convert %within : ({operand}) -> {result}"""


def gelu_text(case: Case, operand: str, result: str) -> str:
    return f"""%root = stablehlo.constant dense<{0.5**0.5}> : {operand}
    %one = stablehlo.constant dense<1.0> : {operand}
    %half = stablehlo.constant dense<0.5> : {operand}
    %scaled = stablehlo.multiply %0, %root : {operand}
    %erf = stablehlo.custom_call @mhlo.erf(%scaled) : ({operand}) -> {result}
    %normal = stablehlo.add %erf, %one : {operand}
    %part = stablehlo.multiply %0, %half : {operand}
    %r = stablehlo.multiply %part, %normal : {operand}"""


def chlo_text(case: Case, operand: str, result: str) -> str:
    return f"%r = chlo.{case.name} %0 : {operand} -> {result}"


DOUBLES = {
    "double_add": "add",
    "double_mul": "multiply",
    "double_div": "divide",
    "double_sqrt": "sqrt",
    "double_floor": "floor",
    "double_round": "round_nearest_afz",
    "double_round_even": "round_nearest_even",
    "double_to_half": "convert",
    "double_from_long": "convert",
    "double_from_single": "convert",
    "double_to_long": "convert",
    "double_to_single": "convert",
}
"""What operators on the bits of f64 mean on the numbers."""


def doubles_text(case: Case, *types: str) -> str:
    """On bits, of which an integer or an f32 that is converted is none."""
    *operands, result = types
    double = result.replace("f32", "f64").replace("f16", "f64").replace("i64", "f64")
    bits = "double_from" not in case.name
    lines = [f"%b{i} = stablehlo.bitcast_convert %{i} : ({t}) -> {double}"
             for i, t in enumerate(operands) if bits]  # fmt: skip
    names = [f"%b{i}" if bits else f"%{i}" for i in range(len(operands))]
    given = ", ".join([double] * len(operands) if bits else operands)
    made = result if "double_to" in case.name else double
    lines.append(f'%n = "stablehlo.{DOUBLES[case.name]}"({", ".join(names)}) : ({given}) -> {made}')
    return "\n".join([*lines, f"%r = stablehlo.bitcast_convert %n : ({made}) -> {result}"])


def dequantize_text(case: Case, sums: str, scales: str, digits: str, result: str) -> str:
    (m, n), count = case.result.shape, case.inputs[2].shape[1]
    weights = ", ".join("1" if i % 32 == 0 else "127" for i in range(count))
    f32, i32 = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}xi32>"
    return f"""%w = stablehlo.constant dense<[{weights}]> : tensor<{count}xi32>
    %d = stablehlo.convert %2 : ({digits}) -> tensor<{n}x{count}xi32>
    %c = stablehlo.dot_general %d, %w, contracting_dims = [1] x [0] :
      (tensor<{n}x{count}xi32>, tensor<{count}xi32>) -> tensor<{n}xi32>
    %cs = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<{n}xi32>) -> {i32}
    %t = stablehlo.add %0, %cs : {i32}
    %f = stablehlo.convert %t : ({i32}) -> {f32}
    %s = stablehlo.convert %1 : ({scales}) -> tensor<{n}xf32>
    %ss = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<{n}xf32>) -> {f32}
    %p = stablehlo.multiply %f, %ss : {f32}
    %r = stablehlo.convert %p : ({f32}) -> {result}"""


def pool_text(case: Case, x: str, result: str) -> str:
    """Images with their pixels in rows; f16 is added in f32."""
    given, (batch, _, channels) = case.attributes, case.inputs[0].shape
    element = tensor_of(case.inputs[0]).element
    wide = "f32" if given["kind"] == "add" else element
    image = "x".join(map(str, (batch, *given["image"], channels)))
    made = "x".join(map(str, (batch, *geometry(given).windows, channels)))
    name, start = {
        "add": ("add", "0.0"),
        "max": ("maximum", {"f16": "0xFC00", "f32": "0xFF800000"}[wide]),
        "min": ("minimum", {"f16": "0x7C00", "f32": "0x7F800000"}[wide]),
    }[given["kind"]]
    top, bottom, left, right = given["pads"]

    def along(name: str) -> str:
        return f"array<i64: 1, {', '.join(map(str, given[name]))}, 1>"

    pads = f"[[0, 0], [{top}, {bottom}], [{left}, {right}], [0, 0]]"
    return f"""%x0 = stablehlo.reshape %0 : ({x}) -> tensor<{image}x{element}>
    %x = stablehlo.convert %x0 : (tensor<{image}x{element}>) -> tensor<{image}x{wide}>
    %z = stablehlo.constant dense<{start}> : tensor<{wide}>
    %y = "stablehlo.reduce_window"(%x, %z) ({{
    ^bb0(%a: tensor<{wide}>, %b: tensor<{wide}>):
      %c = stablehlo.{name} %a, %b : tensor<{wide}>
      stablehlo.return %c : tensor<{wide}>
    }}) {{window_dimensions = {along("kernel")}, window_strides = {along("strides")},
      window_dilations = {along("dilations")}, padding = dense<{pads}> : tensor<4x2xi64>}}
      : (tensor<{image}x{wide}>, tensor<{wide}>) -> tensor<{made}x{wide}>
    %n = stablehlo.convert %y : (tensor<{made}x{wide}>) -> tensor<{made}x{element}>
    %r = stablehlo.reshape %n : (tensor<{made}x{element}>) -> {result}"""


def brain(shaped: str) -> str:
    """A tensor type of bf16 instead of i16 or f32."""
    return shaped.replace("i16", "bf16").replace("f32", "bf16")


FORMS: dict[str, Callable[..., str]] = {
    "clamp": lambda case, *types: f"%r = stablehlo.clamp %0, %1, %2 : {types[-1]}",
    "compare": lambda case, a, b, r: (
        f"%r = stablehlo.compare {case.attributes['predicate']}, %0, %1 : ({a}, {b}) -> {r}"
    ),
    "select": lambda case, c, a, b, r: f"%r = stablehlo.select %0, %1, %2 : {c}, {r}",
    "bitcast": lambda case, a, r: f"%r = stablehlo.bitcast_convert %0 : ({a}) -> {r}",
    "reinterpret": lambda case, a, r: f"%r = stablehlo.bitcast_convert %0 : ({a}) -> {r}",
    "from_bfloat": lambda case, a, r: (
        f"%b = stablehlo.bitcast_convert %0 : ({a}) -> {brain(a)}\n"
        f"%r = stablehlo.convert %b : ({brain(a)}) -> {r}"
    ),
    "to_bfloat": lambda case, a, r: (
        f"%b = stablehlo.convert %0 : ({a}) -> {brain(a)}\n"
        f"%r = stablehlo.bitcast_convert %b : ({brain(a)}) -> {r}"
    ),
    "cast": lambda case, a, r: f"%r = stablehlo.convert %0 : ({a}) -> {r}",
    "erf": lambda case, a, r: f"%r = stablehlo.custom_call @mhlo.erf(%0) : ({a}) -> {r}",
    **dict.fromkeys(INVERSE, chlo_text),
    **dict.fromkeys(DOUBLES, doubles_text),
    "relu": relu_text,
    "half_part": half_part_text,
    "hard_swish": hard_swish_text,
    "gelu": gelu_text,
    "quantize": quantize_text,
    "reduce": reduce_text,
    "broadcast": lambda case, a, r: (
        f"%r = stablehlo.broadcast_in_dim %0, dims = {case.attributes['dims']} : ({a}) -> {r}"
    ),
    "reshape": lambda case, a, r: f"%r = stablehlo.reshape %0 : ({a}) -> {r}",
    "transpose": lambda case, a, r: (
        f"%r = stablehlo.transpose %0, dims = {case.attributes['permutation']} : ({a}) -> {r}"
    ),
    "slice": slice_text,
    "concat": lambda case, a, b, r: (
        f"%r = stablehlo.concatenate %0, %1, dim = {case.attributes['dim']} : ({a}, {b}) -> {r}"
    ),
    "pad": lambda case, a, b, r: (
        f"%r = stablehlo.pad %0, %1, low = {case.attributes['low']}, high = "
        f"{case.attributes['high']}, interior = {case.attributes['interior']} : ({a}, {b}) -> {r}"
    ),
    "iota": lambda case, r: f"%r = stablehlo.iota dim = {case.attributes['dim']} : {r}",
    "full": lambda case, r: f"%r = stablehlo.constant dense<{case.attributes['value']}> : {r}",
    "gather": gather_text,
    "matmul": product_text,
    "batch_matmul": product_text,
    "conv": conv_text,
    "dequantize": dequantize_text,
    "pool": pool_text,
}
"""The body of a program, from a case and its types."""


def stablehlo_text(case: Case) -> str:
    """A program that means the case; "" if StableHLO has no operation for it."""
    types = [f"tensor<{x}>" for x in (*map(tensor_of, case.inputs), case.result)]
    if case.name in SAME:
        operands = ", ".join(f"%{i}" for i in range(len(case.inputs)))
        return function(case, f"%r = stablehlo.{SAME[case.name]} {operands} : {types[-1]}")
    form = FORMS.get(case.name)
    return function(case, form(case, *types)) if form else ""


def by_stablehlo(case: Case) -> Array:
    """The result by StableHLO's reference interpreter."""
    module = frontends.load(stablehlo_text(case), make_context())
    with module.context:
        interpreter.prepare(module)
        inputs = {str(i): x for i, x in enumerate(case.inputs)}
        return interpreter.evaluate(module, inputs, ["r"])["r"]


ZEROS = ("max", "min", "relu", "clamp")
"""Operators that return either zero of operands that are zeros of both signs."""


def defined(case: Case, found: Array, wanted: Array) -> Array | bool:
    """Where StableHLO's result is the only one: conversions to integers inside their range, what
    it spells out gives no inf * 0, and which of two zeros is no matter."""
    if case.name == "gelu":
        return ~np.isneginf(case.inputs[0])
    if case.name in ZEROS:
        return (found != 0) | (wanted != 0)
    if case.name in DOUBLES and case.name != "double_to_long":
        bits = case.result.element == "i64"
        return ~np.isnan(wanted.view(np.float64) if bits else wanted)
    if case.name == "double_to_long":
        whole = np.trunc(case.inputs[0].view(np.float64))
        return (whole >= -(2.0**63)) & (whole < 2.0**63)
    if case.name != "cast" or case.result.element not in ("i64", "i32", "i16", "i8"):
        return True
    limits = np.iinfo(dtype_of(case.result.element))
    with np.errstate(all="ignore"):
        whole = np.trunc(case.inputs[0].astype(np.float64))
        return (whole >= limits.min) & (whole <= limits.max)
