"""Names that cannot be found do not stop a compilation."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from davinci.for_readers import NamingWarning
from davinci.passes.ascend import group_names, kernel_facts
from support import run_text

CHAIN = """
func.func @main(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %0 = stablehlo.exponential %x : tensor<4x32xf32>
  %1 = stablehlo.add %0, %x : tensor<4x32xf32>
  return %1 : tensor<4x32xf32>
}
"""


def broken(*_: object) -> None:
    raise IndexError("no such operand")


@pytest.mark.filterwarnings("default::davinci.for_readers.NamingWarning")
@pytest.mark.parametrize(
    ("room", "name"), [(group_names, "softmax"), (group_names, "traffic"), (kernel_facts, "by")]
)
def test_a_name_that_fails_is_a_warning(
    room: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "softmax":
        monkeypatch.setitem(group_names.PATTERNS, name, broken)
    else:
        monkeypatch.setattr(room, name, broken)
    x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(4, 32)
    with pytest.warns(NamingWarning, match="IndexError: no such operand"):
        (found,) = run_text(CHAIN, x, cores=1)
    np.testing.assert_allclose(found, np.exp(x) + x, rtol=1e-5)
