"""Problems as CSV files of the form of MiniMalloc's benchmarks: id, lower, upper, size."""

from __future__ import annotations

import csv
from pathlib import Path

from davinci.errors import InputError
from davinci.planning.problem import Buffer, Problem

COLUMNS = ("id", "lower", "upper", "size")


def load(path: str) -> Problem:
    """The problem of a file.

    Raises:
        InputError: there is no such file, columns are missing, or a line makes no sense.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text in UTF-8"
        raise InputError(f"cannot read the problem: {reason}", where=path) from None
    rows = csv.DictReader(text.splitlines())
    names = [name.strip() for name in rows.fieldnames or ()]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise InputError(
            f"there is no column {missing[0]}",
            where=f"{path}:1",
            found=",".join(names) or "an empty file",
            expected=",".join(COLUMNS),
        )
    rows.fieldnames = names
    buffers = []
    for row in rows:
        where = f"{path}:{rows.line_num}"
        lower, upper, size = (_number(row, name, where) for name in COLUMNS[1:])
        if lower >= upper:
            message = "a buffer lives for no time"
            raise InputError(
                message, where=where, found=f"{lower} to {upper}", expected="upper > lower"
            )
        if size < 0:
            raise InputError(
                "a size is negative", where=where, found=str(size), expected="0 or more"
            )
        buffers.append(Buffer(size, lower, upper, (row["id"] or "").strip()))
    return Problem(tuple(buffers))


def _number(row: dict[str, str | None], name: str, where: str) -> int:
    text = row[name]
    try:
        return int(text or "")
    except ValueError:
        message = f"{name} is no whole number"
        raise InputError(message, where=where, found=repr(text or ""), expected="digits") from None
