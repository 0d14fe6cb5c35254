"""A tensor compiler for DaVinci-style matrix NPUs and a simulator for its machine code.

executable = davinci.compile("model.onnx", machine="ascend910")
outputs = executable.run({"x": x})
executable.profile
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from davinci.compiler import compile
    from davinci.errors import CheckFailed, CompileError, DavinciError, DeviceFault, InputError
    from davinci.kernels import UserKernel, kernel_from
    from davinci.quantization import Quantized, quantize
    from davinci.runtime.executable import Executable
    from davinci.runtime.profiling import Profile, profile
    from davinci.runtime.saved import load
    from davinci.tuning import tune

__version__ = "0.1.0"
__all__ = [
    "CheckFailed",
    "CompileError",
    "DavinciError",
    "DeviceFault",
    "Executable",
    "InputError",
    "Profile",
    "Quantized",
    "UserKernel",
    "compile",
    "kernel_from",
    "load",
    "profile",
    "quantize",
    "tune",
]

_HOMES = {
    "compile": "davinci.compiler",
    "Executable": "davinci.runtime.executable",
    "load": "davinci.runtime.saved",
    "tune": "davinci.tuning.tuner",
    **dict.fromkeys(("UserKernel", "kernel_from"), "davinci.kernels"),
    **dict.fromkeys(("profile", "Profile"), "davinci.runtime.profiling"),
    **dict.fromkeys(("quantize", "Quantized"), "davinci.quantization.quantizer"),
    **dict.fromkeys(
        ("CheckFailed", "CompileError", "DavinciError", "DeviceFault", "InputError"),
        "davinci.errors",
    ),
}
"""Where the names live. Importing the compiler takes a while, which --help should not."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
