"""Builds a small ONNX network, runs it on the simulated NPU, and prints where the cycles went."""

import numpy as np
import onnx.parser

import davinci

NETWORK = """
<ir_version: 9, opset_import: ["" : 17]>
own (float[32, 64] x, float[64, 64] w) => (float[32, 64] y)
{
    product = MatMul(x, w)
    y = Softmax <axis = -1> (product)
}
"""

rng = np.random.default_rng(0)
x = rng.standard_normal((32, 64), dtype=np.float32)
w = rng.standard_normal((64, 64), dtype=np.float32)

executable = davinci.compile(onnx.parser.parse_model(NETWORK), machine="ascend310")
y = executable.run({"x": x, "w": w})["y"]

exponentials = np.exp(x @ w - (x @ w).max(axis=-1, keepdims=True))
expected = exponentials / exponentials.sum(axis=-1, keepdims=True)
print(f"largest error {np.abs(y - expected).max():.2g}")

for kernel in executable.profile["kernels"]:
    print(f"{kernel['name']:35} {kernel['unit']:7} {kernel['cycles']:6} cycles")
