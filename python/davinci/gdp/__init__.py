"""Image and data processing as tensor programs on a simulated NPU (GDPNPU).

    from davinci import gdp

    def edges(img):
        i, j = gdp.indices()
        return gdp.where(img[i, j] > img[i - 1, j], 1.0, 0.0).astype(img.dtype)

    model = gdp.compile(edges)                          # or gdp.compile([img], [out]) of symbols
    task = gdp.run_async(model, {"img": image}, profile=True)
    gdp.sync()
    task.result()["out0"], task.profile

Programs are functions of symbolic arrays, with NumPy's names where they mean the same; ONNX and
StableHLO are taken as well. A model is compiled once for each shape of its inputs.
"""

from davinci.gdp.arrays import Array, input
from davinci.gdp.functions import (
    abs,
    all,
    any,
    argmax,
    argmin,
    clip,
    concatenate,
    convolve,
    exp,
    filter2d,
    floor,
    log,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    power,
    round,
    sqrt,
    stack,
    std,
    sum,
    tanh,
    var,
    where,
)
from davinci.gdp.indexing import RULES, border, indices
from davinci.gdp.models import Model, compile
from davinci.gdp.queue import Task, run_async, sync

__all__ = [
    "RULES",
    "Array",
    "Model",
    "Task",
    "abs",
    "all",
    "any",
    "argmax",
    "argmin",
    "border",
    "clip",
    "compile",
    "concatenate",
    "convolve",
    "exp",
    "filter2d",
    "floor",
    "indices",
    "input",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "power",
    "round",
    "run_async",
    "sqrt",
    "stack",
    "std",
    "sum",
    "sync",
    "tanh",
    "var",
    "where",
]
