"""Runs of ONNX models by onnxruntime, with values of the graph that are no outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import helper

from davinci.errors import InputError
from davinci.quantization.records import Array

QUIET = 3


class ModelRun:
    """A model that gives the values of chosen names.

    Quantized nodes are computed as they are written: what onnxruntime would fuse of them rounds in
    other places.
    """

    def __init__(self, model: onnx.ModelProto, names: Sequence[str]) -> None:
        import onnxruntime

        self.names = list(dict.fromkeys(names))
        given = onnx.ModelProto()
        given.CopyFrom(model)
        del given.graph.output[:]
        for name in self.names:
            given.graph.output.append(helper.make_empty_tensor_value_info(name))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = QUIET
        options.add_session_config_entry("session.disable_quant_qdq", "1")
        try:
            self.session: Any = onnxruntime.InferenceSession(
                given.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own exceptions have no common base
            raise InputError(f"onnxruntime cannot run the model: {error}") from None

    def __call__(self, sample: dict[str, Array]) -> dict[str, Array]:
        try:
            values = self.session.run(self.names, sample)
        except Exception as error:  # as above
            raise InputError(
                f"onnxruntime cannot run the model: {error}", where="the calibration data"
            ) from None
        return dict(zip(self.names, values, strict=True))
