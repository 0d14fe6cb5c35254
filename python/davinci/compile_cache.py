"""A folder of saved executables, each under the digest of everything that it was compiled from.

That is the model, all options, all of the machine file, and the versions of the compiler's sources
and of the libraries that it computes with. A model is known by its bytes or its name where that is
possible (`frontends.identity`), so that a second run imports nothing; else by what was imported.

Files are written beside and renamed, so several processes may share a folder and one that is killed
leaves nothing half done; a file that is damaged nevertheless is compiled again, with a warning. A
folder holds at most `MOST_BYTES`: the executables that were used longest ago are removed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from davinci.errors import InputError
from davinci.machine import Machine
from davinci.runtime import saved
from davinci.runtime.executable import Executable
from davinci.version import compiler_version, library_versions

MOST_BYTES = 4 << 30
"""Bytes that all executables of one folder may take; those of the networks of the zoo take up to
0.6 GB."""

VARIABLE = "DAVINCI_CACHE"
"""Environment variable with the folder that commands use; empty: none."""

ENTRY = re.compile(rf"[0-9a-f]{{64}}{re.escape(saved.SUFFIX)}")
UNFINISHED = re.compile(rf"\.{ENTRY.pattern}\..+")
"""Names of the cache's own files, complete ones and those that are being written."""

CALLER = 5
"""Stack level, from `kept`, of who has called `davinci.compile`, which has two decorators."""

ABANDONED_SECONDS = 24 * 3600
"""After which an unfinished file is left over from a process that was killed."""


class CacheWarning(UserWarning):
    """A cache did not do what it is for; what was compiled is right."""


def default_folder() -> Path | None:
    """The folder that commands use unless they are told otherwise; None: they keep nothing.

    That is `$DAVINCI_CACHE`, else `davinci-mlir` where the platform keeps caches of a user.
    """
    given = os.environ.get(VARIABLE)
    if given is not None:
        return Path(given) if given else None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "davinci-mlir"


def key(model: Sequence[str], machine: Machine, options: Mapping[str, Any]) -> str:
    """The digest of everything that decides an executable.

    Args:
        model: what decides the imported model, see `frontends.identity` and `identity_of_module`.
        machine: that it is compiled for.
        options: everything else that decides what is made of it.
    """
    rest = (compiler_version(), library_versions(), machine.model_dump(mode="json"), dict(options))
    return hashlib.sha256(json.dumps((list(model), *rest), sort_keys=True).encode()).hexdigest()


def kept(
    folder: str | os.PathLike[str] | None, name: str, build: Callable[[], Executable]
) -> Executable:
    """The executable from the cache, or from `build`, which is kept then.

    Its `details` say which: `cache` is "hit", "miss" or "damaged", the last two with ", not kept"
    where the folder cannot be written to.

    Args:
        folder: of the cache, made if there is none; None for the default one, if there is one.
        name: of the executable, see `key`.
        build: compiles the model.

    Raises:
        InputError: a folder that was given cannot be made.
        DavinciError: what `build` raises.
    """
    place = default_folder() if folder is None else Path(folder)
    if place is None:
        return build()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the cache's folder: {error.strerror}"
        if folder is not None:
            raise InputError(message, where=str(folder)) from None
        warnings.warn(f"{message}: {place}", CacheWarning, CALLER)
    path = place / f"{name}{saved.SUFFIX}"
    state = "miss"
    if path.is_file():
        try:
            executable = saved.load(path)
        except InputError as error:
            if path.is_file():  # another process may have removed it
                state = "damaged"
                warnings.warn(f"{error.message}; compiled again: {path}", CacheWarning, CALLER)
        else:
            with suppress(OSError):  # a folder that others have filled
                os.utime(path)
            executable.details["cache"] = "hit"
            return executable
    executable = build()
    try:
        executable.save(path)
    except InputError as error:
        state += ", not kept"
        warnings.warn(f"{error}; what was compiled is not kept", CacheWarning, CALLER)
    else:
        trim(place, MOST_BYTES, path)
    executable.details["cache"] = state
    return executable


def trim(folder: Path, most_bytes: int, newest: Path) -> None:
    """Removes the executables that were used longest ago until the others take `most_bytes`.

    Other files of the folder stay, and so does `newest`, whatever it takes.
    """
    found = []
    with suppress(OSError):
        for file in os.scandir(folder):
            with suppress(FileNotFoundError):  # other processes remove files, too
                if UNFINISHED.fullmatch(file.name):
                    if time.time() - file.stat().st_mtime > ABANDONED_SECONDS:
                        os.unlink(file)
                elif ENTRY.fullmatch(file.name) and file.name != newest.name:
                    found.append((file.stat().st_mtime, file.stat().st_size, file.path))
        room = most_bytes - newest.stat().st_size
        for _, size, path in sorted(found, reverse=True):
            room -= size
            if room < 0:
                Path(path).unlink(missing_ok=True)


def identity_of_module(module: Any) -> list[str]:
    """What decides an imported module: all of its operations, constants and places."""
    code = io.BytesIO()
    module.operation.write_bytecode(code)
    return ["module", hashlib.sha256(code.getbuffer()).hexdigest()]
