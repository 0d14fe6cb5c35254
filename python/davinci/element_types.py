"""NumPy types of the element types that kernels hold, by their text: `f32`, `i1`, `ui8`."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.narrow import NARROW

DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    **{f"{s}i{n}": f"int{n}" for s in ("", "s") for n in (8, 16, 32, 64)},
    **{f"ui{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}
"""Those that NumPy has itself."""


def dtype_of(element: str) -> np.dtype[Any]:
    """The type of arrays of an element type; KeyError for one that arrays cannot have."""
    return NARROW[element].dtype if element in NARROW else np.dtype(DTYPES[element])
