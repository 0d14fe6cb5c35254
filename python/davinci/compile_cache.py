"""A folder of saved executables, each under the digest of everything that it was compiled from.

That is the model as it was imported, with its weights; all options; all of the machine file; and
the version, of the compiler's sources and of MLIR. Files are written beside and renamed, so several
processes may share a folder and one that is killed leaves nothing half done; a file that is damaged
nevertheless is compiled again, with a warning. Nothing is ever removed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from davinci.errors import InputError
from davinci.machine import Machine
from davinci.runtime import saved
from davinci.runtime.executable import Executable
from davinci.version import compiler_version, mlir_version


class CacheWarning(UserWarning):
    """A cache did not do what it is for; what was compiled is right."""


def kept(
    folder: str | os.PathLike[str],
    module: Any,
    machine: Machine,
    options: Mapping[str, Any],
    build: Callable[[], Executable],
) -> Executable:
    """The executable from the cache, or from `build`, which is kept then.

    Its `details` say which: `cache` is "hit", "miss" or "damaged", the last two with ", not kept"
    where the folder cannot be written to.

    Args:
        folder: of the cache; it is made if there is none.
        module: the model as it was imported.
        machine: that it is compiled for.
        options: everything else that decides what is made of it.
        build: compiles `module`.

    Raises:
        InputError: the folder cannot be made.
        DavinciError: what `build` raises.
    """
    path = Path(folder) / f"{_digest(module, machine, options)}{saved.SUFFIX}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the cache's folder: {error.strerror}"
        raise InputError(message, where=str(folder)) from None
    state = "miss"
    if path.is_file():
        try:
            executable = saved.load(path)
        except InputError as error:
            state = "damaged"
            warnings.warn(f"{error.message}; compiled again: {path}", CacheWarning, stacklevel=3)
        else:
            executable.details["cache"] = "hit"
            return executable
    executable = build()
    try:
        executable.save(path)
    except InputError as error:
        state += ", not kept"
        warnings.warn(f"{error}; what was compiled is not kept", CacheWarning, stacklevel=3)
    executable.details["cache"] = state
    return executable


def _digest(module: Any, machine: Machine, options: Mapping[str, Any]) -> str:
    code = io.BytesIO()
    module.operation.write_bytecode(code)
    digest = hashlib.sha256(code.getbuffer())
    rest = (compiler_version(), mlir_version(), machine.model_dump(mode="json"), dict(options))
    digest.update(json.dumps(rest, sort_keys=True).encode())
    return digest.hexdigest()
