"""What of this compiler decides what it makes: its version, its sources, and its libraries'."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from functools import cache
from pathlib import Path

import davinci
from davinci.mlir import PACKAGE

SOURCES = (".py", ".toml")


@cache
def compiler_version() -> str:
    """`0.1.0+3f2a9c41d07b`: the version, and a digest of the package's own files.

    Between releases the version stays and the sources change, and with them encodings.
    """
    root = Path(davinci.__file__).parent
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root, followlinks=True):
        folders.sort()
        for name in sorted(files):
            if name.endswith(SOURCES):
                path = Path(folder) / name
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(path.read_bytes())
    return f"{davinci.__version__}+{digest.hexdigest()[:12]}"


@cache
def mlir_version() -> str:
    """`torch-mlir 20261001`: the package that MLIR's bindings come in."""
    name = PACKAGE.replace("_", "-")
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:  # a build of MLIR's own, on the path
        return name


@cache
def library_versions() -> tuple[str, ...]:
    """Versions of MLIR and of the libraries that import models and compute constants."""
    return (
        mlir_version(),
        *(f"{name} {importlib.metadata.version(name)}" for name in ("ml_dtypes", "numpy", "onnx")),
    )
