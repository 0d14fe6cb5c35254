"""Small kernels of each kind in which cube and vector cores of the 910B run their own programs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import davinci
from attention_support import Attention

MACHINE = "ascend910b"

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
}
"""Cores and sizes."""

CHOICES: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    "product-split-k": ((17, 96, 40), {"form": "split", "parts": 2}),
    "product-laid-out": ((257, 100, 130), {"form": "laid-out", "factors": "b"}),
}
"""Sizes of products, and how they are computed on two cores."""

PRODUCT = """
func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16>
  return %0 : tensor<{m}x{n}xf16>
}}
"""


KERNELS = (*ATTENTIONS, *CHOICES)


def made(name: str) -> Ready:
    """The kernel of that name."""
    return attention(*ATTENTIONS[name]) if name in ATTENTIONS else product(*CHOICES[name])


def attention(cores: int, sizes: dict[str, Any]) -> Ready:
    given = Attention(depth=16, **sizes)
    executable = davinci.compile(given.text(), machine=MACHINE, cores=cores, launches="many")
    arrays = (data for _, data in given.arguments)
    return executable, dict(zip(executable.input_names, arrays, strict=True))


def product(size: tuple[int, int, int], choice: dict[str, Any], cores: int = 2) -> Ready:
    m, k, n = size
    text, options = PRODUCT.format(m=m, k=k, n=n), {"machine": MACHINE, "cores": cores}
    data = json.loads(davinci.compile(text, **options).schedules())
    for kernel in data["kernels"]:
        kernel["choices"] = [{"cores": cores, "choice": choice}]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "schedules.json"
        file.write_text(json.dumps(data))
        executable = davinci.compile(text, schedules=str(file), **options)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n))]
    return executable, dict(zip(executable.input_names, arrays, strict=True))
