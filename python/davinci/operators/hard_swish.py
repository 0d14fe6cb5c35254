"""The activation of MobileNet v3 (Howard et al., Searching for MobileNetV3, 2019, section 5.2)."""

from __future__ import annotations

import numpy as np

from davinci.operators.core import FLOATS, REAL, elementwise
from davinci.operators.formulas import limited
from davinci.operators.vector_program import Value, VectorProgram


@elementwise(values=lambda a: a * (np.clip(a + 3, 0, 6) * (1 / 6)), types=FLOATS, constraints=REAL)
def hard_swish(p: VectorProgram, a: Value) -> Value:
    """a min(max(a + 3, 0), 6) / 6."""
    return p.mul(a, p.mul(limited(p, p.add(a, 3.0), 0.0, 6.0), 1 / 6))
