"""Post-training quantization: an ONNX model of floats becomes a QDQ model of 8-bit products.

    made = davinci.quantize("model.onnx", "calibration.npz", method="kl", accuracy=0.999)
    onnx.save(made.model, "model-int8.onnx")
    davinci.compile(made.model)

`layers` finds the products that have weights, `calibration` sees what their operands are for the
user's data, `ranges` and `weights` choose scales, `comparison` measures each layer beside its twin
of integers, `write` makes the model, and `quantizer` leaves in floats what a bound asks for.
"""

from __future__ import annotations

from davinci.quantization.quantizer import Quantized, quantize
from davinci.quantization.ranges import METHODS
from davinci.quantization.records import LayerError, Report

__all__ = ["METHODS", "LayerError", "Quantized", "Report", "quantize"]
