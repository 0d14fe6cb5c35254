"""What the schedule of a reduction over windows reads off its windows."""

from __future__ import annotations

import pytest

from davinci.operators.conv import Geometry
from davinci.schedule.pools.pool import Pool
from davinci.schedule.products.epilogue import plain


@pytest.mark.parametrize(
    ("width", "kernel", "stride", "dilation", "pads", "columns"),
    [
        (10, 3, 2, 1, (0, 0), 9),
        (10, 2, 1, 1, (0, 0), 10),
        (10, 3, 2, 2, (1, 2), 13),
        (7, 7, 1, 1, (0, 0), 7),
    ],
)
def test_columns_that_windows_reach(
    width: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], columns: int
) -> None:
    """From the first column of the first window to the last one of the last, with padding."""
    geometry = Geometry(
        (width, width),
        (kernel, kernel),
        (stride, stride),
        (dilation, dilation),
        (0, 0, *pads),
    )
    pool = Pool(geometry, "max", 1, 16, "f16", plain("f16", True))
    assert pool.columns == columns
