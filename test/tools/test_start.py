"""Modules that a command loads before it answers: unlike seconds, the same on any machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "torch_mlir", "mlir", "onnx", "onnxruntime", "torch", "jax", "pydantic", "rich")
"""Libraries that no text about the commands needs."""

MOST_MODULES = 25
"""Of this package; all of it is more than 500."""


def loaded(command: str, *arguments: str) -> list[str]:
    """The modules that a process has loaded after a command of ours."""
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, sep='\\n', file=sys.stderr))\n"
        f"from davinci.tools.{command} import main\n"
        f"main({list(arguments)!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    "command",
    [("npu_run", "--help"), ("npu_opt", "--help"), ("npu_opt", "--list-passes")],
    ids=" ".join,
)
def test_help_loads_next_to_nothing(command: tuple[str, ...]) -> None:
    modules = loaded(*command)
    assert not {name.partition(".")[0] for name in modules} & set(HEAVY)
    assert len([name for name in modules if name.startswith("davinci")]) <= MOST_MODULES


def test_a_run_loads_what_it_uses() -> None:
    """Neither references nor reports, nor what quantizes and tunes, unless they are asked for."""
    unused = ("onnxruntime", "jinja2", "torch", "jax", "optuna", "distributed")
    ours = ("davinci.quantization", "davinci.tuning", "davinci.report.page")
    modules = loaded("npu_run", "zoo:mlp,features=16,hidden=16,batch=1", "--timing-only")
    assert not {name.partition(".")[0] for name in modules} & set(unused)
    assert not [name for name in modules if name.startswith(ours)]
