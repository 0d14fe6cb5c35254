"""A tensor compiler for DaVinci-style matrix NPUs and a simulator for its machine code.

executable = davinci.compile("model.onnx", machine="ascend910")
outputs = executable.run({"x": x})
executable.profile
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["compile"]


def __getattr__(name: str) -> Any:
    # Importing the compiler takes a while, which the command lines' --help should not.
    if name == "compile":
        from davinci.compiler import compile

        return compile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
