"""Writing of result files: complete or not at all; temporary files and folders."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from davinci.errors import InputError

TEMPORARIES: set[str] = set()
"""Files being written and folders in use, for a process that ends at once to remove."""


def remove_temporaries() -> None:
    """Removes what is unfinished, from any thread, before the process ends at once."""
    for path in list(TEMPORARIES):  # the main thread may be changing it
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for files between processes."""
    with tempfile.TemporaryDirectory(prefix="davinci.") as name:
        TEMPORARIES.add(name)
        try:
            yield Path(name)
        finally:
            TEMPORARIES.discard(name)


def check_writable(path: str | Path) -> None:
    """Raises an `InputError` if a file at `path` could not be written, before any work is done."""
    if not str(path) or Path(path).is_dir():
        found = "a folder" if str(path) else "an empty name"
        raise InputError("cannot write", where=str(path), found=found, expected="a file name")
    if is_device(path) and os.access(path, os.W_OK):
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError("cannot write: no such folder, or not a writable one", where=str(path))


def is_device(path: str | Path) -> bool:
    """Whether `path` is a device or pipe, which takes data and must not be replaced by a file."""
    return os.path.exists(path) and not os.path.isfile(path)


def check_distinct(results: Iterable[str], sources: Iterable[str]) -> None:
    """Raises an `InputError` if two results would be one file, or one would replace a source."""
    seen = {os.path.realpath(path) for path in sources}
    for path in results:
        place = os.path.realpath(path)
        if place in seen:
            message = "a result would replace another file of this run"
            raise InputError(message, where=path, hint="give each result a name of its own")
        seen.add(place)


def write_atomically(path: str | Path, data: bytes | Callable[[BinaryIO], None]) -> None:
    """Writes `data` to a temporary file beside `path` and renames it.

    A link stays one, and its file is replaced; a device or pipe gets the data itself.

    Args:
        path: of the result.
        data: all of it, or what writes it to an open file.

    Raises:
        InputError: the place cannot be written to.
    """
    target = Path(os.path.realpath(path))
    try:
        if is_device(path):
            with open(path, "wb") as file:
                _put(file, data)
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        TEMPORARIES.add(temporary)
        try:
            with os.fdopen(handle, "wb") as file:
                _put(file, data)
            # mkstemp makes files private; a result file gets what any new file would.
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
        finally:
            TEMPORARIES.discard(temporary)
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", where=str(path)) from None


def write_json(path: str | Path, record: Any) -> None:
    """Writes data as indented JSON, whole or not at all."""
    write_atomically(path, (json.dumps(record, indent=2) + "\n").encode())


def _put(file: BinaryIO, data: bytes | Callable[[BinaryIO], None]) -> None:
    if callable(data):
        data(file)
    else:
        file.write(data)
