"""Small kernels of each kind that the compiler makes for the 910B, many with a program for the cube
cores and one for the vector cores."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import davinci
from attention_support import Attention
from davinci import zoo
from davinci.passes.ascend import product_grouping
from fused_texts import FusedCase, exponential_product, product_swish
from fused_texts import attention as fused_attention
from fuzz.group_kernels import GroupModel, group_models

MACHINE, CORES = "ascend910b", 2

Ready = tuple[davinci.Executable, dict[str, Any]]
"""An executable, and its inputs by name."""

ATTENTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "attention": (1, {"rows": 40, "keys": 100}),
    "attention-blocks": (2, {"rows": 40, "keys": 60}),
    "attention-f32": (1, {"rows": 40, "keys": 60, "result": "f32"}),
    "attention-mask": (1, {"rows": 40, "keys": 60, "mask": "key"}),
    "attention-few-rows": (2, {"rows": 4, "keys": 300, "heads": 1}),
    "attention-causal": (
        1,
        {"rows": 150, "keys": 150, "heads": 1, "mask": "causal", "flags": True, "known": True},
    ),
    "attention-rings": (1, {"rows": 300, "keys": 1200, "heads": 1}),
}
"""Cores and sizes."""

CHOICES: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    "product-split-k": ((17, 96, 40), {"form": "split", "parts": 2}),
    "product-laid-out": ((257, 100, 130), {"form": "laid-out", "factors": "b"}),
    "product-stream-k": ((83, 96, 40), {"form": "stream-k", "rows": 48, "parts": 2}),
}
"""Sizes of products, and how they are computed on two cores."""

PRODUCT = """
func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16>
  return %0 : tensor<{m}x{n}xf16>
}}
"""


RINGS = ("attention-rings",)
"""Kernels in which the rings of all memories go round several times."""

OTHERS = tuple(name for name in ATTENTIONS if name not in RINGS)

STREAMED = "product-stream-k-followed"
"""A product of `FOLLOWED` whose last rows have their k split."""

FOLLOWED = {
    "product-followed": """
func.func @main(%a: tensor<133x48xf16>, %b: tensor<48x288xf16>) -> tensor<133x288xf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<133x48xf16>, tensor<48x288xf16>) -> tensor<133x288xf16>
  %1 = stablehlo.tanh %0 : tensor<133x288xf16>
  return %1 : tensor<133x288xf16>
}
""",
    "product-and-softmax": """
func.func @main(%a: tensor<133x48xf16>, %b: tensor<48x104xf16>) -> tensor<133x104xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<133x48xf16>, tensor<48x104xf16>) -> tensor<133x104xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %least) applies stablehlo.maximum across dimensions = [1]
    : (tensor<133x104xf32>, tensor<f32>) -> tensor<133xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<133xf32>) -> tensor<133x104xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<133x104xf32>
  %4 = stablehlo.exponential %3 : tensor<133x104xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<133x104xf32>, tensor<f32>) -> tensor<133xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<133xf32>) -> tensor<133x104xf32>
  %7 = stablehlo.divide %4, %6 : tensor<133x104xf32>
  return %7 : tensor<133x104xf32>
}
""",
    "products-of-bytes-followed": """
func.func @main(%a: tensor<2x70x64xi8>, %q: tensor<2x176xf32>, %r: tensor<2x70xf32>)
    -> tensor<2x70x176xf32> {
  %b = stablehlo.constant dense<WEIGHTS> : tensor<2x64x176xi8>
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<2x70x64xi8>, tensor<2x64x176xi8>) -> tensor<2x70x176xi32>
  %1 = stablehlo.convert %0 : (tensor<2x70x176xi32>) -> tensor<2x70x176xf32>
  %2 = stablehlo.broadcast_in_dim %q, dims = [0, 2] : (tensor<2x176xf32>) -> tensor<2x70x176xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<2x70x176xf32>
  %4 = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<2x70xf32>) -> tensor<2x70x176xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<2x70x176xf32>
  return %5 : tensor<2x70x176xf32>
}
""".replace("WEIGHTS", str((np.arange(2 * 64 * 176) % 251 - 125).reshape(2, 64, 176).tolist())),
}
"""Products whose parts vector cores take out of a ring, more of them than it has places."""

TEXTS: dict[str, Callable[[], FusedCase]] = {
    "text-product-swish": partial(product_swish, rows=114, k=32, n=32, tile=32, blocks=1),
    "text-product-of-exponentials": partial(exponential_product, m=1, k=1, n=1),
    "text-attention": partial(fused_attention, tiles=3, keys=2, depth=1),
}
"""Kernels that are given as text of one program."""

RECURRENT = {
    "loop, lanes shared by cores": "lstm,steps=4,batch=1,features=16,hidden=256",
    "loop, halves of rows": "gru,steps=4,batch=6,features=16,hidden=32",
}
"""Networks of the zoo whose loops cube and vector cores compute: weights that no L1 holds, of a
state of one row; and rows that the vector cores of a block share."""

KERNELS = (*OTHERS, *CHOICES, *FOLLOWED, STREAMED, *RECURRENT, *TEXTS)

KINDS: dict[str, tuple[str, ...]] = {
    "attention": (*OTHERS, "attention_of_heads", "attention_by_blocks"),
    "product, k shared by cores": ("product-split-k", "product_by_parts_of_k"),
    "product, B laid out first": ("product-laid-out",),
    "product, k of its last rows shared": ("product-stream-k", STREAMED),
    "product, what follows beside it": tuple(FOLLOWED),
    "text of one program": tuple(TEXTS),
    "product with epilogue": (
        "product_with_epilogue",
        "product_with_ragged_rows",
        "product_in_fractals",
        "vector_by_matrix",
    ),
    "product of bytes, requantised": ("products_of_bytes",),
    "convolution": (
        "strided_convolution",
        "convolution_with_residual",
        "residual_that_the_cube_adds",
        "convolution_of_each_channel",
        "convolutions_joined",
        "convolutions_of_bytes",
    ),
    "windows": ("maxima_of_windows", "averages_of_windows"),
    "vector cores alone": (
        "softmax",
        "layer_norm",
        "gelu_with_bias",
        "rotary_embedding",
        "statistics_of_columns",
        "side_by_side",
    ),
    "rows shared by cores that meet": ("softmax_in_phases", "norm_in_phases"),
    "added in memory": ("ragged rows added in memory",),
    "scattered to rows of cores": ("rows that a core owns", "elements that a core owns"),
    "sort": (
        "sorted rows",
        "rows with their places",
        "the first of rows",
        "a row sorted in eighths",
    ),
    "recurrent loop": ("loop with two states", "loops side by side", *RECURRENT),
}
"""Names of kernels by kind, of `KERNELS` and of `group_models`: those that can run in any order.
Elements that the scalar unit lays into rows, which are added in memory then, are not among them:
streams do not tell what it stores, and sums of anything else depend on their order."""


def made(name: str) -> Ready:
    """The kernel of that name."""
    if name in ATTENTIONS:
        return attention(*ATTENTIONS[name])
    if name in TEXTS:
        return given(TEXTS[name]())
    if name == STREAMED:
        choice = {"form": "stream-k", "rows": 64, "parts": 2}
        return followed(FOLLOWED["product-followed"], CORES, choice)
    if name in FOLLOWED:
        return followed(FOLLOWED[name])
    if name in RECURRENT:
        return recurrent(RECURRENT[name])
    return product(*CHOICES[name]) if name in CHOICES else network(group_models()[name])


def given(case: FusedCase) -> Ready:
    """A kernel of one program, as it is given."""
    executable = davinci.kernel_from(case.lines, machine=MACHINE).executable
    return executable, dict(zip(executable.input_names, case.inputs, strict=True))


def network(model: GroupModel) -> Ready:
    """As phases of as few launches as it can be, all on the same cores."""
    options = {"cores": CORES, "core_choice": "all", "launches": "joined"}
    executable = davinci.compile(model.proto, machine=MACHINE, **options)
    arrays = model.arguments.values()
    return executable, dict(zip(executable.input_names, arrays, strict=True))


def recurrent(text: str) -> Ready:
    """A launch for each kernel, so that the mutants are those of the loop."""
    model = zoo.build(text)
    executable = davinci.compile(model.proto, machine=MACHINE, cores=CORES, launches="many")
    inputs = model.inputs()
    return executable, {name: inputs[name] for name in executable.input_names}


def attention(cores: int, sizes: dict[str, Any]) -> Ready:
    given = Attention(depth=16, **sizes)
    executable = davinci.compile(given.text(), machine=MACHINE, cores=cores, launches="many")
    arrays = (data for _, data in given.arguments)
    return executable, dict(zip(executable.input_names, arrays, strict=True))


def product(size: tuple[int, int, int], choice: dict[str, Any], cores: int = CORES) -> Ready:
    m, k, n = size
    executable = compiled(PRODUCT.format(m=m, k=k, n=n), cores, choice)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n))]
    return executable, dict(zip(executable.input_names, arrays, strict=True))


def compiled(text: str, cores: int, choice: dict[str, Any] | None) -> davinci.Executable:
    """A program whose kernels are computed as a choice says, if there is one."""
    options: dict[str, Any] = {"machine": MACHINE, "cores": cores}
    executable = davinci.compile(text, **options)
    if choice is None:
        return executable
    data = json.loads(executable.schedules())
    for kernel in data["kernels"]:
        kernel["choices"] = [{"cores": cores, "choice": choice}]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "schedules.json"
        file.write_text(json.dumps(data))
        return davinci.compile(text, schedules=str(file), **options)


def followed(text: str, cores: int = 1, choice: dict[str, Any] | None = None) -> Ready:
    """Beside it whatever the estimates say."""
    with mock.patch.object(product_grouping, "pays", return_value=True):
        executable = compiled(text, cores, choice)
    random = np.random.default_rng(0)
    arrays = (
        random.standard_normal(given.shape).astype(given.dtype)
        if given.dtype.kind == "f"
        else random.integers(-128, 128, given.shape, given.dtype)
        for given in executable.inputs
    )
    return executable, dict(zip(executable.input_names, arrays, strict=True))
