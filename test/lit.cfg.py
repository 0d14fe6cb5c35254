"""Configuration of the lit suite: `lit test`, or as part of plain `pytest` (test_lit.py)."""

import os
import sys
from pathlib import Path

import lit.formats

ROOT = Path(__file__).parent.parent

config = config  # noqa: F821 - lit defines it
config.name = "davinci-mlir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
# Results of lit lie outside the source tree's test folder, where `Output` folders would spread.
config.test_exec_root = str(ROOT / "build" / "lit")

for variable in ("PYTHONPATH", "VIRTUAL_ENV", "HOME", "DAVINCI_DEBUG"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

# What was compiled before must not answer for what is tested.
config.environment["DAVINCI_CACHE"] = ""

# Checks are written against MLIR's own form; --round-trip says so.
config.substitutions += [
    (r"\bnpu-opt-short\b", f"{sys.executable} -m davinci.tools.npu_opt"),
    (r"\bnpu-opt\b", f"{sys.executable} -m davinci.tools.npu_opt --round-trip"),
    (r"\bnpu-run\b", f"{sys.executable} -m davinci.tools.npu_run"),
    (r"\bFileCheck\b", f"{sys.executable} -m filecheck"),
]
