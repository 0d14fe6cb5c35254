"""Layers of ResNet-50: bound, cycles, the form that was chosen and what others would have taken.

    python benchmarks/speed/convolution.py [--machine NAME] [--cores N] [--depthwise] [LAYER ...]

A LAYER is CxHxW:OxK/S, channels and image, outputs, side of the kernel and stride; `/S` may be
missing. Each is followed by a ReLU and another convolution, so that its image stays in fractals;
cycles are those of its own kernel, simulated without data. Forms are estimated, without the ReLU:

    pixels     a 1x1 convolution: a product
    windows    load3d makes windows of the images in L1
    packed     pixels that windows step over become channels, then windows
    columns    windows are written to GM, then a product

--depthwise has layers of MobileNet instead: a diagonal product on the cube, which is what is built,
beside the multiplications and additions that the vector unit would do in f32.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

import davinci
from davinci import machine
from davinci.errors import InputError
from davinci.machine import Machine
from davinci.operators.conv import Geometry
from davinci.passes.stablehlo_to_ascend.convolution import Packing
from davinci.schedule.products.choice import Wanted, choose
from davinci.schedule.products.epilogue import plain
from davinci.schedule.products.estimate import estimate
from davinci.schedule.products.image import Image
from davinci.schedule.products.product import Operand, Product, Result
from davinci.units import FRACTAL_SIDE, REPEAT_BYTES, ceil_div
from davinci.zoo.graph import OnnxGraph
from davinci.zoo.layers import Images

LAYERS = (
    *("3x224x224:64x7/2", "64x56x56:64x1", "64x56x56:64x3", "64x56x56:256x1", "256x56x56:64x1"),
    *("256x56x56:128x1", "128x56x56:128x3/2", "256x56x56:512x1/2", "128x28x28:512x1"),
    *("512x28x28:128x1", "128x28x28:128x3", "512x28x28:256x1", "256x28x28:256x3/2"),
    *("512x28x28:1024x1/2", "256x14x14:1024x1", "1024x14x14:256x1", "256x14x14:256x3"),
    *("1024x14x14:512x1", "512x14x14:512x3/2", "1024x14x14:2048x1/2", "512x7x7:2048x1"),
    *("2048x7x7:512x1", "512x7x7:512x3"),
)
DEPTHWISE = ("32x112x112:32x3", "64x112x112:64x3/2", "256x28x28:256x3", "512x14x14:512x3")


@dataclass(frozen=True)
class Layer:
    """A convolution of an image, padded so that its size is that of the image by the stride."""

    text: str
    channels: int
    image: tuple[int, int]
    outputs: int
    side: int
    stride: int
    groups: int = 1

    @staticmethod
    def of(text: str, depthwise: bool) -> Layer:
        found = re.fullmatch(r"(\d+)x(\d+)x(\d+):(\d+)x(\d+)(?:/(\d+))?", text)
        if not found:
            raise InputError("no layer", found=text, expected="CxHxW:OxK/S, as in 64x56x56:64x3")
        c, h, w, o, k = (int(n) for n in found.groups()[:5])
        return Layer(text, c, (h, w), o, k, int(found[6] or 1), c if depthwise else 1)

    @property
    def geometry(self) -> Geometry:
        side, stride, pad = self.side, self.stride, self.side // 2
        return Geometry(self.image, (side, side), (stride, stride), (1, 1), (pad,) * 4)

    def model(self) -> onnx.ModelProto:
        graph = OnnxGraph("layer", 0)
        shape = [1, self.channels, *self.image]
        images = Images(graph, graph.input("x", TensorProto.FLOAT, shape), self.channels)
        images = images.conv(self.outputs, self.side, self.stride, self.groups).relu()
        images = images.conv(16, 1)
        graph.output(images.value, "y", [1, 16, *self.geometry.windows])
        return graph.model()

    def measured(self, name: str, cores: int) -> tuple[int, int]:
        """Cycles of the layer's kernel and its bound."""
        built = davinci.compile(self.model(), machine=name, cores=cores, timing_only=True)
        built.run({"x": np.zeros((1, self.channels, *self.image), np.float32)})
        (kernel, *_) = (k for k in built.profile["kernels"] if k["op"].startswith("conv"))
        return kernel["cycles"], kernel["bound_cycles"]

    def forms(self, found: Machine, cores: int) -> dict[str, float]:
        """Estimated cycles of each form, launches apart."""
        lies, packed = self.geometry, Packing.of(self.geometry, self.channels)
        windows = lies.windows[0] * lies.windows[1]
        if lies.pointwise:
            return {"pixels": self._product(windows, self.channels, None, found, cores)}
        k = ceil_div(self.channels, FRACTAL_SIDE) * lies.elements * FRACTAL_SIDE
        column_bytes = 2 * windows * self.channels * lies.elements
        moved = column_bytes / (found.gm.write_bytes_per_cycle * cores)
        launch = found.launch.overhead_us * found.clock_mhz
        inner = self.channels * lies.elements
        forms = {
            "windows": self._product(windows, k, lies, found, cores),
            "columns": self._product(windows, inner, None, found, cores) + moved + launch,
        }
        if packed is not None:
            more = self.channels * self.stride**2
            k = ceil_div(more, FRACTAL_SIDE) * packed.geometry.elements * FRACTAL_SIDE
            forms["packed"] = self._product(windows, k, packed.geometry, found, cores)
        return forms

    def _product(
        self, windows: int, k: int, lies: Geometry | None, found: Machine, cores: int
    ) -> float:
        image = None
        if lies is not None:
            image = Image(lies, k // lies.elements // FRACTAL_SIDE)
        product = Product(
            1,
            windows,
            k,
            self.outputs,
            Operand(True, 2, False),
            Operand(True, 2, True),
            Result(True, 2),
            plain("f16", nz=True),
            image,
            1,
        )
        return estimate(product, choose(product, found, cores, Wanted()), found, cores)

    def on_vector_unit(self, cores: int) -> float:
        """Cycles of multiplications and additions in f32, pixels by channels, and nothing else."""
        windows, elements = self.geometry.windows, self.geometry.elements
        planes = ceil_div(self.channels, FRACTAL_SIDE) * FRACTAL_SIDE
        each = ceil_div(windows[0] * windows[1] * planes * 4, REPEAT_BYTES)
        return each * (2 * elements - 1) / cores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layers", nargs="*", help="instead of those of ResNet-50")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--cores", type=int, default=0)
    parser.add_argument("--depthwise", action="store_true")
    options = parser.parse_args()
    found = machine.load(options.machine)
    cores = options.cores or found.cores
    texts = options.layers or (DEPTHWISE if options.depthwise else LAYERS)
    print(f"{'layer':24}{'bound':>9}{'cycles':>9}{'ratio':>7}  form, estimates")
    for text in texts:
        layer = Layer.of(text, options.depthwise)
        cycles, bound = layer.measured(options.machine, cores)
        if options.depthwise:
            forms = {"diagonal": float(cycles), "vector": layer.on_vector_unit(cores)}
            chosen = "diagonal"
        else:
            forms = layer.forms(found, cores)
            chosen = next(form for form in ("packed", "pixels", "windows") if form in forms)
        others = ", ".join(f"{name} {each:,.0f}" for name, each in forms.items())
        print(
            f"{text:24}{bound:9,}{cycles:9,}{cycles / bound:7.2f}  {chosen}: {others}", flush=True
        )


if __name__ == "__main__":
    main()
