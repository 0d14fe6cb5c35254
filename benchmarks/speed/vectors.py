"""How fast the vector unit's kernels are: operators of rows, each alone in a network.

    python benchmarks/speed/vectors.py [--machine NAME] [--cores N]

Printed are launches and cycles of all kernels without fusion and with it, simulated without data,
and the least that the machine's limits allow the fused ones. Networks are ONNX, in f32; a softmax
of 16 rows of 32,768 does not fit UB row by row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from math import sqrt
from typing import Any

from onnx import TensorProto
from timed import timed

from davinci.zoo.graph import OnnxGraph

Rows = Callable[[OnnxGraph, str, tuple[int, int]], str]


def layer_norm(graph: OnnxGraph, x: str, shape: tuple[int, int]) -> str:
    scale, bias = (graph.weight(name, shape[1], mean=1.0) for name in ("scale", "bias"))
    return graph.node("LayerNormalization", x, scale, bias, axis=-1)


def residual_layer_norm(graph: OnnxGraph, x: str, shape: tuple[int, int]) -> str:
    """Of the sum of two arrays and a bias."""
    biased = graph.node("Add", x, graph.weight("before", shape[1]))
    other = graph.input("other", TensorProto.FLOAT, shape)
    return layer_norm(graph, graph.node("Add", biased, other), shape)


def softmax(graph: OnnxGraph, x: str, shape: tuple[int, int]) -> str:
    return graph.node("Softmax", x, axis=-1)


def gelu(graph: OnnxGraph, x: str, shape: tuple[int, int]) -> str:
    """By the error function."""
    erf = graph.node("Erf", graph.node("Mul", x, graph.scalar(sqrt(0.5))))
    half = graph.node("Mul", x, graph.scalar(0.5))
    return graph.node("Mul", half, graph.node("Add", erf, graph.scalar(1.0)))


CASES: tuple[tuple[Rows, tuple[int, int]], ...] = (
    (layer_norm, (512, 768)),
    (residual_layer_norm, (512, 768)),
    (softmax, (6144, 512)),
    (gelu, (512, 3072)),
    (softmax, (16, 32768)),
)


def model_of(make: Rows, shape: tuple[int, int]) -> Any:
    graph = OnnxGraph(make.__name__, seed=0)
    made = make(graph, graph.input("x", TensorProto.FLOAT, shape), shape)
    graph.output(made, "y", shape)
    return graph.model()


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--cores", type=int, default=0, help="0: all of the machine")
    options = parser.parse_args()
    line = "{:<20} {:>12} {:>10} {:>10} {:>10} {:>10} {:>8}"
    print(line.format("operator", "shape", "launches", "cycles", "launches", "cycles", "limit"))
    for make, shape in CASES:
        cells = [make.__name__, "{} x {}".format(*shape)]
        for fusion in ("none", "all"):
            profile = timed(
                model_of(make, shape), machine=options.machine, cores=options.cores, fusion=fusion
            ).profile
            cells += [f"{profile['ops']['total']}", f"{profile['total_cycles']:,}"]
        print(line.format(*cells, f"{profile['bound_cycles']:,}"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
