"""Executables as files: compiled once, run wherever the same version is installed.

A file is a zip archive. `manifest.json` says what it is, who wrote it, for which machine, and the
SHA-256 of every other member: `module.mlirbc`, the module at the llvm level as MLIR bytecode, and
the bytes of each constant. Kernels become native code when a file is loaded, on any host; they are
checked as those of any other module are (`device_code`), and nothing else in a file is executed.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pydantic

from davinci.errors import DavinciError, InputError
from davinci.files import check_writable, write_atomically
from davinci.machine import Machine
from davinci.mlir import MLIRError, ir, make_context
from davinci.runtime.arguments import Array
from davinci.runtime.executable import Executable
from davinci.version import compiler_version, mlir_version

SUFFIX = ".davinci"
KIND, FORMAT_VERSION = "davinci executable", 1
MANIFEST, MODULE = "manifest.json", "module.mlirbc"
COMPILE_AGAIN = "compile the model again with this version"


class Manifest(pydantic.BaseModel):
    """The header of a saved file, as JSON.

    Attributes:
        kind, format_version, compiler_version, mlir_version: who can load it.
        machine: all of the machine file, a user's own too.
        cores, checks, data, details: of the `Executable`.
        inputs, outputs: element type and shape by name, for readers.
        constants: the member that has the bytes, by the constant's name.
        sha256: of every other member of the archive.
    """

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    kind: str = KIND
    format_version: int = FORMAT_VERSION
    compiler_version: str = pydantic.Field(default_factory=compiler_version)
    mlir_version: str = pydantic.Field(default_factory=mlir_version)
    machine: Machine
    cores: int
    checks: bool
    data: bool
    details: dict[str, Any]
    inputs: dict[str, str]
    outputs: dict[str, str]
    constants: dict[str, str]
    sha256: dict[str, str]


def save(executable: Executable, path: str | Path) -> None:
    """Writes an executable to a file, complete or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    check_writable(path)
    code, constants = executable.image()
    names = {name: f"constants/{number}" for number, name in enumerate(constants)}
    members = {MODULE: np.frombuffer(code, np.uint8)}
    members |= {names[name]: array for name, array in constants.items()}
    manifest = Manifest(
        machine=executable.machine,
        cores=executable.cores,
        checks=executable.checks,
        data=executable.data,
        details=executable.details,
        inputs={spec.name: str(spec) for spec in executable.inputs},
        outputs={spec.name: str(spec) for spec in executable.outputs},
        constants=names,
        sha256={name: hashlib.sha256(array.data).hexdigest() for name, array in members.items()},
    )

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(MANIFEST, manifest.model_dump_json(indent=2), zipfile.ZIP_DEFLATED)
            for name, array in members.items():
                packing = zipfile.ZIP_DEFLATED if name == MODULE else zipfile.ZIP_STORED
                archive.writestr(name, array.tobytes(), packing)

    write_atomically(path, write)


def load(path: str | Path, timing_only: bool = False) -> Executable:
    """Returns the executable that a file holds.

    Args:
        timing_only: leave out data, as of `davinci.compile`; what was saved without stays so.

    Raises:
        InputError: no such file, one of another kind or version, or a damaged one.
    """
    where = str(path)
    manifest, members = _read(Path(path), where)
    try:
        module = ir.Module.parse(members[MODULE].tobytes(), make_context())
        executable = Executable(
            module,
            manifest.machine,
            manifest.cores,
            manifest.checks,
            manifest.data and not timing_only,
            {name: members[member] for name, member in manifest.constants.items()},
        )
    except (MLIRError, DavinciError, KeyError) as error:
        # The file is as it was written, so what was written is wrong.
        raise _damaged(where, error) from None
    executable.details = manifest.details
    if timing_only:
        executable.details["timing_only"] = True
    return executable


def _read(path: Path, where: str) -> tuple[Manifest, Mapping[str, Array]]:
    """The manifest and the members it lists, checked against it."""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise _foreign(where, "another kind of file, or part of one")
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                manifest = _manifest(archive, where)
                members = {
                    name: np.frombuffer(archive.read(name), np.uint8) for name in manifest.sha256
                }
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", where=where) from None
    except InputError:
        raise
    except Exception as error:  # a damaged archive breaks zipfile in many ways
        raise _damaged(where, error) from None
    for name, array in members.items():
        if hashlib.sha256(array.data).hexdigest() != manifest.sha256[name]:
            raise _damaged(where, ValueError(f"{name} is not what was written"))
    return manifest, members


def _manifest(archive: zipfile.ZipFile, where: str) -> Manifest:
    """The manifest, if it is of a file that this version can load."""
    if MANIFEST not in archive.namelist():
        raise _foreign(where, f"an archive without {MANIFEST}")
    text = archive.read(MANIFEST)
    manifest = json.loads(text)
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise _foreign(where, f"a {MANIFEST} of another kind")
    for key, own in (
        ("format_version", FORMAT_VERSION),
        ("compiler_version", compiler_version()),
        ("mlir_version", mlir_version()),
    ):
        if manifest.get(key) != own:
            raise InputError(
                "saved by another version",
                where=where,
                found=f"{key} {manifest.get(key)}",
                expected=str(own),
                hint=COMPILE_AGAIN,
            )
    return Manifest.model_validate_json(text)


def _foreign(where: str, found: str) -> InputError:
    hint = "Executable.save and npu-run --save write them"
    return InputError("not a saved executable", where=where, found=found, hint=hint)


def _damaged(where: str, error: Exception) -> InputError:
    found = str(error).partition("\n")[0] or type(error).__name__
    return InputError("damaged", where=where, found=found, hint=COMPILE_AGAIN)
