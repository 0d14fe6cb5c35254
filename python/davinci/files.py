"""Writing of result files: complete or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from davinci.errors import InputError


def check_writable(path: str | Path) -> None:
    """Raises an `InputError` if a file at `path` could not be written, before any work is done."""
    folder = Path(path).parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError("cannot write: no such folder, or not a writable one", where=str(path))


def write_atomically(path: str | Path, data: bytes) -> None:
    """Writes `data` to a temporary file beside `path` and renames it.

    Raises:
        InputError: the place cannot be written to.
    """
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            # mkstemp makes files private; a result file gets what any new file would.
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", where=str(path)) from None
