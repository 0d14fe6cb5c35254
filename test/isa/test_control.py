"""Flags, barriers, the vector mask and the summary of scalar accesses."""

import numpy as np
import pytest

from davinci.isa import INSTRUCTIONS, Pipe, Registers, Space


def test_pipe_of_flags_and_barriers():
    flag = {"src_pipe": Pipe.MTE2, "dst_pipe": Pipe.V, "event": 0}
    assert INSTRUCTIONS["set_flag"].pipe_of(flag) is Pipe.MTE2
    assert INSTRUCTIONS["wait_flag"].pipe_of(flag) is Pipe.V
    assert INSTRUCTIONS["pipe_barrier"].pipe_of({"pipe": Pipe.ALL}) is Pipe.ALL
    assert INSTRUCTIONS["vadd.f32"].pipe_of({}) is Pipe.V


def test_set_vector_mask(bench):
    bench.run("set_vector_mask", low=2**63 | 1, high=2)
    assert (bench.registers.mask_low, bench.registers.mask_high) == (2**63 | 1, 2)
    count, mask = bench.registers.lanes(128)
    assert count == 128
    assert np.flatnonzero(mask).tolist() == [0, 63, 65]


@pytest.mark.parametrize("count", [64, 128])
@pytest.mark.parametrize("active", [0, 1, 63, 64, 65, 128])
def test_lanes_of_a_prefix(count, active):
    bits = 2**active - 1
    registers = Registers(mask_low=bits & (2**64 - 1), mask_high=bits >> 64)
    assert registers.lanes(count) == (min(active, count), None)


def test_high_half_of_the_mask_is_ignored_by_64_lanes():
    assert Registers(mask_low=3, mask_high=1).lanes(64) == (2, None)


def test_scalar_access_bounds_what_was_touched():
    record = INSTRUCTIONS["scalar_access"]
    values = {"loads": 3, "load_low": 64, "load_high": 96, "space": Space.GM}
    values |= {"stores": 0, "store_low": 0, "store_high": 0}
    reads, writes = record.accesses(values, Registers())
    assert [(a.space, a.address, a.size_bytes) for a in reads] == [(Space.GM, 64, 32)]
    assert list(writes) == []
