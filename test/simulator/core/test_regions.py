"""Regions against sets of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.isa import Access, Space
from davinci.simulator.core.regions import Region


def random_access(rng: Any, address: int) -> Access:
    dims = tuple((int(rng.integers(1, 4)), 4 * int(rng.integers(0, 8))) for _ in range(2))
    run = int(rng.integers(1, 4))
    shape = (*(count for count, _ in dims), run)
    mask = rng.integers(0, 2, shape).astype(bool) if rng.integers(2) else None
    return Access(Space.UB, address, dims, run, np.dtype(np.float32), mask)


def bytes_of(access: Access) -> set[int]:
    mask = np.ones(access.shape, bool) if access.mask is None else access.mask
    found: set[int] = set()
    for index in zip(*np.nonzero(mask), strict=True):
        start = access.address + int(np.dot(index, access.strides))
        found |= set(range(start, start + 4))
    return found


def test_runs_and_overlaps() -> None:
    rng = np.random.default_rng(3)
    for _ in range(2000):
        a, b = random_access(rng, 256), random_access(rng, 256 + int(rng.integers(-40, 40)))
        first, second = Region(a), Region(b)
        sets = bytes_of(a), bytes_of(b)
        for region, access, touched in ((first, a, sets[0]), (second, b, sets[1])):
            assert region.empty == (not touched)
            if touched:
                starts, lengths = region.runs
                runs = zip(starts.tolist(), lengths.tolist(), strict=True)
                covered = {access.address + s + i for s, n in runs for i in range(n)}
                assert covered == touched
                assert access.address + region.low == min(touched)
                assert access.address + region.high == max(touched) + 1
        common = first.overlaps(a.address, second, b.address)
        shared = sets[0] & sets[1]
        assert (common is not None) == bool(shared)
        if common is not None:
            assert set(range(*common)) <= shared
