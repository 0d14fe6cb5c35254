"""ONNX's backend interface (https://onnx.ai/onnx/api/backend.html) over the simulated machine.

    import davinci.onnx_backend as backend
    outputs = backend.run_model(model, [x, y])
    prepared = backend.prepare(model, "NPU:ascend310", precision="fp16")
    outputs = prepared.run([x, y])

A device is `NPU:` and the name of a machine; `NPU` and `CPU`, ONNX's default, stand for the
ascend910, which the host simulates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, shape_inference
from onnx.backend.base import Backend, BackendRep, namedtupledict

from davinci import machine as machines
from davinci.compiler import compile
from davinci.errors import InputError
from davinci.runtime.executable import Executable

DEVICES = {"CPU": "ascend910", "NPU": "ascend910"}
PREFIX = "NPU:"


class Prepared(BackendRep):
    """A compiled model.

    Attributes:
        executable: what runs.
    """

    def __init__(self, executable: Executable) -> None:
        self.executable = executable

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs as a named tuple.

        Args:
            inputs: arrays in the order of the graph's inputs, or by name.
            kwargs: of `Executable.run`.
        """
        given = [inputs] if isinstance(inputs, dict) else list(inputs)
        outputs = self.executable.run(*given, **kwargs)
        named: tuple[Any, ...] = namedtupledict("Outputs", list(outputs))(*outputs.values())
        return named


class DavinciBackend(Backend):
    """Compiles models for a machine and runs them there."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Compiles a model.

        Args:
            model: to compile.
            device: where it will run.
            kwargs: options of `davinci.compile`.

        Raises:
            InputError: no such device, or the model cannot be read.
            CompileError: the model cannot be compiled.
        """
        return Prepared(compile(model, **{"machine": machine_of(device), **kwargs}))

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Compiles a model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs a node as a model of its own, with the newest operators of the installed ONNX."""
        values = list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
        arrays = dict(zip(filter(None, node.input), map(np.asarray, values), strict=True))
        typed = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in arrays.items()
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], node.op_type or "node", typed, results)
        model = shape_inference.infer_shapes(helper.make_model(graph), data_prop=True)
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a machine."""
        name = DEVICES.get(device, device.removeprefix(PREFIX))
        named = device in DEVICES or device.startswith(PREFIX)
        return named and name in machines.names()


def machine_of(device: str) -> str:
    """The machine of a device.

    Raises:
        InputError: there is no such device.
    """
    if not DavinciBackend.supports_device(device):
        expected = [*DEVICES, *(PREFIX + n for n in machines.names())]
        expected = [name for name in expected if DavinciBackend.supports_device(name)]
        raise InputError(
            "no such device", where="device", found=repr(device), expected=", ".join(expected)
        )
    return DEVICES.get(device, device.removeprefix(PREFIX))


prepare = DavinciBackend.prepare
run_model = DavinciBackend.run_model
run_node = DavinciBackend.run_node
supports_device = DavinciBackend.supports_device
