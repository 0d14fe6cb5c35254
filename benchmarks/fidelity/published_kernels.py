"""Kernels of libraries that others have timed on an Ascend 310 and a 910A (docs/hardware.md d),
beside ours.

No source of the measured kernels is public; ours are what this compiler makes of the same operator
on the machine `ascend310` or `ascend910`, launches left out. So a row compares compiler and
simulator together with another compiler on a board: what only moves its operands holds the memory,
the others say what a library's kernel leaves undone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from published import SEEN, Row, evidence
from timed import timed

GROUP_310, GROUP_910 = "kernels of a library on the 310", "kernels of a library on the 910A"
MATRIX = (1024, 2048)
HALF, BOOL = TensorProto.FLOAT16, TensorProto.BOOL
RATE = "gm.read_bytes_per_cycle, gm.write_bytes_per_cycle of the 310"

TRANSPOSE = (
    "why the library's transpose takes three times the memory's time: 8.4 MB in 0.59 ms are 14 "
    "GB/s. Its publication names addresses that the scalar unit computes for small pieces; ours "
    "transposes blocks of 16 x 16 in the vector unit"
)
SUM = (
    "what the library's sum does besides reading: 4.2 MB are 0.105 ms at 40 GB/s, half of what it "
    "takes. Its publication has it sum f16 as f32, by a tree inside the unit; ours adds rows first"
)
VECTOR = (
    "what the library's product of one row does: 2.1 MB of weights in 1.218 ms are 1.7 GB/s, a "
    "thirtieth of what the memory gives, and half as long again as 1,024 rows by the same "
    "weights. Its publication says that the row is padded to a matrix for the cube. That ours has "
    "weights as fractals is not it: with rows it takes as long (below)"
)
PRODUCT = (
    "why the library's product reaches 2.7 TFLOPS of 11. That ours has the second factor as "
    "fractals is not it: with rows it takes as long (below). But fractals of both made in front of "
    "it as slowly as the library transposes, 14 GB/s, take 0.59 ms, with ours 0.84 in all"
)

STREAM = (
    "why the library's product streams 10 bytes a cycle and core: the rate is the same for weights "
    "of 15 MB, which the L2 holds, and of 3.8 GB, so neither memory nor launches set it but what a "
    "core does with weights that lie in rows. Ours lie as fractals and pass at the memory's rate, "
    "of which no other measurement on a 910 is public; as rows they take a fifth more (below), so "
    "rows alone are not it"
)

DECODE = (
    "what the kernel does besides reading: 4.2 MB of keys and values in 257 us are 16 GB/s on 30 "
    "cores, 3.4 on one, 2 and 0.4 % of what the memory gives, so it is what a core does with them. "
    "Its publication has keys and values come as rows and become fractals in L1, values turned "
    "round, scores cross global memory to become rows, and a softmax row by row; here scores cross "
    "global memory, too, between three kernels, so that is not it. More cores help both alike: 4.8 "
    "times as fast there, 4.4 here"
)


@dataclass(frozen=True)
class Kernel:
    """A measured kernel.

    Attributes:
        name: what it is called here.
        operator: of ONNX.
        shapes: of its operands, f16.
        measured_us: on the AI cores.
        missing: what explains the difference, if it is large.
        cores: on how many cores; 0: on all.
        rows: the second factor of a product comes as rows, not as a constant.
    """

    name: str
    operator: str
    shapes: tuple[tuple[int, ...], ...]
    measured_us: float
    missing: str = ""
    cores: int = 0
    rows: bool = False


PRODUCTS = ((1, 1024), (1024, 1024)), ((1024, 1024), (1024, 1024))

ON_310 = (
    Kernel("transpose", "Transpose", (MATRIX,), 590, TRANSPOSE),
    Kernel("abs", "Abs", (MATRIX,), 210),
    Kernel("add", "Add", (MATRIX, MATRIX), 300),
    Kernel("max", "Max", (MATRIX, MATRIX), 300),
    Kernel("compare", "Greater", (MATRIX, MATRIX), 260),
    Kernel("sum of rows", "ReduceSum", (MATRIX,), 210, SUM),
    Kernel("1 x 1024 by 1024 x 1024", "MatMul", PRODUCTS[0], 1218, VECTOR),
    Kernel("1024 x 1024 by 1024 x 1024", "MatMul", PRODUCTS[1], 800, PRODUCT),
)

ATTENTION = "attention"
HEADS_OF_KEYS = (1, 6, 256), (1, 4097, 256), (1, 4097, 256)
"""Of a decode step: six heads of queries that share their keys and values, as published."""

ON_910 = (
    Kernel("1 x 5120 by 5120 x 5860, 60 MB", "MatMul", ((1, 5120), (5120, 5860)), 200, STREAM),
    Kernel("decode attention, 4,097 keys", ATTENTION, HEADS_OF_KEYS, 257, DECODE, 30),
    Kernel("decode attention, 4,097 keys, one core", ATTENTION, HEADS_OF_KEYS, 1225, DECODE, 1),
)
"""60 MB at 300 GB/s; how they are divided into rows and columns is not published. Attention has the
30 cores that its publication says are usable."""


def model(
    operator: str, shapes: tuple[tuple[int, ...], ...], rows: bool = False
) -> onnx.ModelProto:
    """A model of one operator of f16; the second factor of a product is a constant, as weights
    are, unless it comes as `rows`. Attention takes several operators of ONNX."""
    if operator == ATTENTION:
        return attention(*shapes)
    inputs = [
        helper.make_tensor_value_info(f"x{number}", HALF, shape)
        for number, shape in enumerate(shapes)
    ]
    constants = []
    if operator == "MatMul" and not rows:
        weights = np.zeros(shapes[1], dtype=np.float16)
        constants.append(numpy_helper.from_array(weights, inputs.pop().name))
    names = [f"x{number}" for number in range(len(shapes))]
    attributes = {}
    if operator == "ReduceSum":
        constants.append(numpy_helper.from_array(np.array([1], dtype=np.int64), "axes"))
        names.append("axes")
        attributes["keepdims"] = 0
    node = helper.make_node(operator, names, ["y"], **attributes)
    kind = BOOL if operator == "Greater" else HALF
    output = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph([node], "kernel", inputs, [output], constants)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def attention(*shapes: tuple[int, ...]) -> onnx.ModelProto:
    """softmax(q k^T / sqrt(size)) v of queries, keys and values of these shapes."""
    named = dict(zip("qkv", shapes, strict=True))
    inputs = [helper.make_tensor_value_info(name, HALF, shape) for name, shape in named.items()]
    scale = numpy_helper.from_array(np.array(shapes[0][-1] ** -0.5, dtype=np.float16), "scale")
    nodes = [
        helper.make_node("Transpose", ["k"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "turned"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "v"], ["y"]),
    ]
    output = helper.make_tensor_value_info("y", HALF, None)
    graph = helper.make_graph(nodes, "attention", inputs, [output], [scale])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def on_310() -> Iterator[Row]:
    """Table 5-1 of the thesis."""
    for kernel in ON_310:
        key = evidence(RATE) if kernel.name in ("abs", "add") else SEEN
        yield row(GROUP_310, kernel, "ascend310", key)


def on_910() -> Iterator[Row]:
    """The performance notes of an inference engine."""
    for kernel in ON_910:
        yield row(GROUP_910, kernel, "ascend910", SEEN)


def row(group: str, kernel: Kernel, machine: str, key: str) -> Row:
    """A kernel beside ours."""
    made = model(kernel.operator, kernel.shapes, kernel.rows)
    record = timed(made, machine=machine, precision="fp16", cores=kernel.cores).profile
    found = record["total_cycles"] / record["clock_mhz"]
    return Row(group, kernel.name, "us", kernel.measured_us, found, 0.15, kernel.missing, key)
