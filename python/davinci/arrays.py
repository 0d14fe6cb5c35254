"""Inputs and outputs as files, and random inputs."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from davinci.errors import InputError
from davinci.files import write_atomically
from davinci.narrow import is_float

Arrays = dict[str, npt.NDArray[Any]]


class SpecLike(Protocol):
    """Name, shape and element type of an input."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...


def load_npz(path: str) -> Arrays:
    """Reads the arrays of an `.npz` file by name.

    Raises:
        InputError: no such file, or not an `.npz` file of plain arrays.
    """
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise InputError("not an .npz file", where=path, hint="write it with numpy.savez")
        with file:
            found = {name: file[name] for name in file.files}
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", where=path) from None
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if not zipfile.is_zipfile(path):  # NumPy takes it for pickled objects and offers to load it
            raise InputError(
                "not an .npz file", where=path, hint="numpy.savez writes one"
            ) from None
        raise InputError(f"not an .npz file: {error}", where=path) from None
    for name, array in found.items():
        if not isinstance(array, np.ndarray):  # a member that is no .npy file comes as bytes
            raise InputError("not an array", where=path, found=repr(name), expected=".npy files")
    return found


def save_npz(path: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Writes the arrays to an `.npz` file, complete or not at all."""
    buffer = io.BytesIO()
    # Not numpy.savez, which takes names as keyword arguments, and "file" is one of its own.
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    write_atomically(Path(path), buffer.getvalue())


def random_inputs(specs: Iterable[SpecLike], seed: int) -> Arrays:
    """Arrays for each input, the same for the same seed.

    Floats are normally distributed. Integers are 0 or 1, which suits masks, and indices into any
    table with two rows.
    """
    rng = np.random.default_rng(seed)
    result: Arrays = {}
    for spec in specs:
        if is_float(spec.dtype):
            result[spec.name] = rng.standard_normal(spec.shape).astype(spec.dtype)
        else:
            result[spec.name] = rng.integers(0, 2, spec.shape).astype(spec.dtype)
    return result
