"""Layers of ResNet-50: bound, cycles, the form that was chosen and what others would have taken.

    python benchmarks/speed/convolution.py [--machine NAME] [--cores N] [--batch N]
                                           [--depthwise | --winograd] [LAYER ...]

A LAYER is CxHxW:OxK/S, channels and image, outputs, side of the kernel and stride; `/S` may be
missing. Each is followed by a ReLU and another convolution, so that its image stays in fractals;
cycles are those of its own kernel, simulated without data. Forms are estimated, without the ReLU:

    pixels     a 1x1 convolution: a product
    windows    load3d makes windows of the images in L1
    packed     pixels that windows step over become channels, then windows
    columns    windows are written to GM, then a product
    2x2, 4x4   a 3x3 convolution by tiles (Winograd); launches behind the first are counted

--depthwise has layers of MobileNet instead: a diagonal product on the cube, which is what is built,
beside the multiplications and additions that the vector unit would do in f32.

--winograd simulates 3x3 convolutions directly and by tiles, over channels and sizes: cycles of the
network less those of all else in it, launches apart, then with the machine's launches, one for a
direct one, and what the compiler takes by cost (`ascend-winograd`).
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

import davinci
from davinci import machine
from davinci.errors import InputError
from davinci.machine import Machine
from davinci.operators.conv import Geometry
from davinci.passes.ascend.ascend_winograd import FormChooser, following
from davinci.passes.ascend.winograd_forms import FORMS, KERNEL
from davinci.passes.ascend.winograd_tiles import Tiled, WindowsConvolution
from davinci.passes.stablehlo_to_ascend.convolution import Packing
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.epilogue import plain
from davinci.schedule.products.estimate import estimate
from davinci.schedule.products.image import Image
from davinci.schedule.products.product import Product, ProductOperand, ProductResult
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
WINOGRAD = (
    *("64x56x56:64x3", "128x28x28:128x3", "256x14x14:256x3", "512x7x7:512x3", "256x32x32:256x3"),
    *("256x56x56:256x3", "512x14x14:512x3", "512x28x28:512x3", "512x32x32:512x3"),
    *("1024x16x16:1024x3", "1024x32x32:1024x3"),
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
    batch: int = 1

    @staticmethod
    def of(text: str, depthwise: bool, batch: int = 1) -> Layer:
        found = re.fullmatch(r"(\d+)x(\d+)x(\d+):(\d+)x(\d+)(?:/(\d+))?", text)
        if not found:
            raise InputError("no layer", found=text, expected="CxHxW:OxK/S, as in 64x56x56:64x3")
        c, h, w, o, k = (int(n) for n in found.groups()[:5])
        return Layer(text, c, (h, w), o, k, int(found[6] or 1), c if depthwise else 1, batch)

    @property
    def geometry(self) -> Geometry:
        side, stride, pad = self.side, self.stride, self.side // 2
        return Geometry(self.image, (side, side), (stride, stride), (1, 1), (pad,) * 4)

    def model(self, before: int = 0) -> onnx.ModelProto:
        """The layer and a convolution behind it, and in front of it one of so many channels."""
        graph = OnnxGraph("layer", 0)
        shape = [self.batch, before or self.channels, *self.image]
        images = Images(graph, graph.input("x", TensorProto.FLOAT, shape), shape[1])
        if before:
            images = images.conv(self.channels, 1).relu()
        images = images.conv(self.outputs, self.side, self.stride, self.groups).relu()
        images = images.conv(16, 1)
        graph.output(images.value, "y", [self.batch, 16, *self.geometry.windows])
        return graph.model()

    def profile(self, name: str, cores: int, winograd: str, before: int = 0) -> dict[str, Any]:
        """Of the network, with a convolution of so many channels in front."""
        options = {"machine": name, "cores": cores, "winograd": winograd}
        built = davinci.compile(self.model(before), timing_only=True, **options)
        built.run({"x": np.zeros((self.batch, before or self.channels, *self.image), np.float32)})
        return built.profile

    def measured(self, name: str, cores: int) -> tuple[int, int]:
        """Cycles of the layer's kernel and its bound."""
        (kernel, *_) = convolutions(self.profile(name, cores, "none"))
        return kernel["cycles"], kernel["bound_cycles"]

    def by_tiles(self, name: str, cores: int) -> dict[str, tuple[int, int]]:
        """Cycles and launches of the layer, computed directly and by tiles."""
        direct = self.profile(name, cores, "none", FRACTAL_SIDE)
        kernel = max(convolutions(direct), key=lambda kernel: kernel["bound_cycles"])
        found = {"direct": (kernel["cycles"], 1)}
        others = direct["total_cycles"] - kernel["cycles"], launches(direct) - 1
        for form in FORMS:
            made = self.profile(name, cores, form.name, FRACTAL_SIDE)
            found[form.name] = (made["total_cycles"] - others[0], launches(made) - others[1])
        return found

    def chosen(self, found: Machine, cores: int) -> str:
        """The form of a 3x3 convolution that the compiler takes by cost."""
        lies = self.geometry
        direct = WindowsConvolution(
            self.batch, self.channels, self.outputs, lies.image, lies.kernel, pads=lies.pads
        )
        after = following((self.batch, math.prod(lies.windows), self.outputs))
        best = FormChooser(found, cores).least_of(direct.graph(), self.tiled(), after)
        return best.form.name if best else "direct"

    def tiled(self) -> list[Tiled]:
        """A 3x3 convolution by tiles of each form."""
        sizes = self.batch, self.channels, self.outputs
        return [Tiled.fitted(form, self.geometry, *sizes) for form in FORMS]

    def forms(self, found: Machine, cores: int) -> dict[str, float]:
        """Estimated cycles of each form, launches apart."""
        lies, packed = self.geometry, Packing.of(self.geometry, self.channels)
        windows = lies.windows[0] * lies.windows[1]
        if lies.pointwise:
            return {"pixels": self._product(windows, self.channels, None, found, cores)}
        k = ceil_div(self.channels, FRACTAL_SIDE) * lies.elements * FRACTAL_SIDE
        column_bytes = 2 * windows * self.channels * lies.elements
        moved = column_bytes / (found.gm.write_bytes_per_cycle * cores)
        launch = found.launch_cycles
        inner = self.channels * lies.elements
        forms = {
            "windows": self._product(windows, k, lies, found, cores),
            "columns": self._product(windows, inner, None, found, cores) + moved + launch,
        }
        if packed is not None:
            more = self.channels * self.stride**2
            k = ceil_div(more, FRACTAL_SIDE) * packed.geometry.elements * FRACTAL_SIDE
            forms["packed"] = self._product(windows, k, packed.geometry, found, cores)
        if (lies.kernel, lies.strides) == (KERNEL, (1, 1)):
            chooser = FormChooser(found, cores)
            for way in self.tiled():
                forms[way.form.name] = chooser.cycles(way.graphs, math.inf) - launch
        return forms

    def _product(
        self, windows: int, k: int, lies: Geometry | None, found: Machine, cores: int
    ) -> float:
        image = None
        if lies is not None:
            image = Image(lies, k // lies.elements // FRACTAL_SIDE)
        product = Product(
            self.batch,
            windows,
            k,
            self.outputs,
            ProductOperand(True, 2, False),
            ProductOperand(True, 2, True),
            ProductResult(True, 2),
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


def convolutions(profile: dict[str, Any]) -> list[dict[str, Any]]:
    """Kernels of a profile that compute them."""
    return [kernel for kernel in profile["kernels"] if kernel["op"].startswith("conv")]


def launches(profile: dict[str, Any]) -> int:
    return sum(kernel["launches"] for kernel in profile["kernels"])


def print_by_tiles(texts: Sequence[str], name: str, found: Machine, cores: int, batch: int) -> None:
    """The crossover of direct convolutions and ones by tiles."""
    launch = found.launch_cycles
    names = ["direct", *(form.name for form in FORMS)]
    print(f"{name}, {cores} cores, batch {batch}; a launch {launch:,} cycles")
    print(f"{'layer':24}" + "".join(f"{n:>12}" for n in names) + "  with launches, taken by cost")
    for text in texts:
        layer = Layer.of(text, False, batch)
        ways = layer.by_tiles(name, cores)
        alone = "".join(f"{cycles:12,}" for cycles, _ in ways.values())
        whole = "".join(f"{cycles + count * launch:12,}" for cycles, count in ways.values())
        print(f"{text:24}{alone}  {whole}  {layer.chosen(found, cores)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("layers", nargs="*", help="instead of those of ResNet-50")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--cores", type=int, default=0)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--depthwise", action="store_true")
    parser.add_argument("--winograd", action="store_true")
    options = parser.parse_args()
    found = machine.load(options.machine)
    cores = options.cores or found.cores
    if options.winograd:
        texts = options.layers or WINOGRAD
        print_by_tiles(texts, options.machine, found, cores, options.batch)
        return
    texts = options.layers or (DEPTHWISE if options.depthwise else LAYERS)
    print(f"{'layer':24}{'bound':>9}{'cycles':>9}{'ratio':>7}  form, estimates")
    for text in texts:
        layer = Layer.of(text, options.depthwise, options.batch)
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
