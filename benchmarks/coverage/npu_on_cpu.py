"""Runs a script, or tests, that are written for an NPU and its PyTorch, on the CPU.

Kernels of Triton run on the simulated 910B; everything that PyTorch does on the device `npu` it
does on the CPU.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import runpy
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

NPU = "npu"


def on_cpu(value: Any) -> Any:
    """The CPU in place of the NPU."""
    if isinstance(value, str) and value.split(":")[0] == NPU:
        return "cpu"
    return value


class OnCpu(TorchFunctionMode):
    """Functions of PyTorch with the CPU in place of the NPU."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = {name: on_cpu(value) for name, value in (kwargs or {}).items()}
        return func(*map(on_cpu, args), **named)


RENAMED = "triton.language.extra.cann"
"""What newer releases of triton-ascend call `triton.language.extra.ascend`."""

EXTENSION = (
    "compile_hint", "extract_slice", "flip", "gather", "get_element", "index_put",
    "index_select_simd", "insert_slice", "multibuffer", "parallel", "sort", "sync_block_all",
    "sync_block_set", "sync_block_wait",
)  # fmt: skip
"""Functions that newer releases have in a module `extension`, of those that this one has."""


def nothing(name: str) -> Callable[..., None]:
    """A function that does nothing, in place of one of the NPU's PyTorch; modules that look for
    what Python itself puts into modules find nothing."""
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *args, **named: None


def stand_in(name: str, **members: Any) -> types.ModuleType:
    """A module of that name with these members; others are functions that do nothing."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(members)
    module.__dict__["__getattr__"] = nothing
    sys.modules[name] = module
    return module


def renamed() -> None:
    """Puts the modules where newer releases of triton-ascend have them; functions that the
    installed one has not are missing."""
    import triton.language as tl
    from triton.language.extra.ascend import libdevice

    cann, extension = types.ModuleType(RENAMED), types.ModuleType(f"{RENAMED}.extension")
    for name in EXTENSION:
        for source in (libdevice, tl):
            if hasattr(source, name):
                setattr(extension, name, getattr(source, name))
    cann.__dict__.update(libdevice=libdevice, extension=extension, __path__=[])
    tl.extra.cann = cann
    sys.modules |= {
        RENAMED: cann,
        extension.__name__: extension,
        f"{RENAMED}.libdevice": libdevice,
    }


def prepare() -> None:
    """Puts stand-ins where a script expects the NPU."""
    import davinci.triton

    torch.npu = stand_in(  # type: ignore[attr-defined]
        "torch.npu",
        is_available=lambda: True,
        current_device=lambda: 0,
        device_count=lambda: 1,
        synchronize=lambda *args: None,
        current_stream=lambda *args: types.SimpleNamespace(npu_stream=0, synchronize=lambda: None),
    )
    stand_in("torch_npu", npu=torch.npu)  # type: ignore[attr-defined]
    for name in ("testing", "testing.testcase", "testing.common_utils"):
        stand_in(f"torch_npu.{name}")
    # It keeps launches for the next call, and asks what they return how to repeat them.
    stand_in("triton.runtime.libentry", libentry=lambda: lambda kernel: kernel)
    renamed()
    torch.Tensor.npu = lambda tensor, *args, **named: tensor  # type: ignore[attr-defined]
    davinci.triton.activate()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("script", help="file to run")
    path = parser.parse_args().script
    prepare()
    with open(path) as file:
        text = file.read()
    sys.argv = [path]
    with OnCpu():
        if "pytest" in text and "def test_" in text:
            import pytest

            return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", path]))
        runpy.run_path(path, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
