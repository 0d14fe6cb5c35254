"""The 16 x 16 transpose and its address registers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from davinci.isa import Space


def set_rows(bench, va, addresses):
    """Puts 16 byte addresses into two VA registers."""
    for i in range(4):
        blocks = {f"address{j}": addresses[4 * i + j] // 32 for j in range(4)}
        bench.run("set_va_reg", va=va + i // 2, half=i % 2, **blocks)


@given(
    order=st.permutations(range(16)),
    step=st.integers(1, 4),
    repeat=st.integers(0, 4),
    even=st.booleans(),
)
def test_transpose(make_bench, order, step, repeat, even):
    bench = make_bench()
    order = range(16) if even else order
    stride = 16 * step + 1
    src_rows = [i * 32 * step for i in order]
    dst_rows = [0x10000 + i * 32 * step for i in range(16)]
    set_rows(bench, 0, dst_rows)
    set_rows(bench, 4, src_rows)
    expected = bench.memory[Space.UB].copy()
    words = expected.view(np.uint16)
    source = words.copy()
    for t in range(repeat):
        for i in range(16):
            for j in range(16):
                read, write = src_rows[j] + 32 * stride * t, dst_rows[i] + 32 * stride * t
                words[write // 2 + j] = source[read // 2 + i]
    bench.registers.mask_low = 0  # the mask has no effect
    bench.run(
        "scatter_vnchwconv.b16",
        dst_va0=0,
        dst_va1=1,
        src_va0=4,
        src_va1=5,
        dst_stride=stride,
        src_stride=stride,
        repeat=repeat,
    )
    assert np.array_equal(bench.memory[Space.UB], expected)


def test_strides_of_one_repeat_are_ignored(bench):
    set_rows(bench, 0, [0x8000 + 32 * i for i in range(16)])
    set_rows(bench, 2, [32 * i for i in range(16)])
    vas = {"dst_va0": 0, "dst_va1": 1, "src_va0": 2, "src_va1": 3}
    bench.run("scatter_vnchwconv.b16", **vas, dst_stride=0xFFFF, src_stride=0xFFFF, repeat=1)
    source = bench.get(Space.UB, 0, (16, 16), np.uint16)
    assert np.array_equal(bench.get(Space.UB, 0x8000, (16, 16), np.uint16), source.T)


def test_a_half_leaves_the_other_alone(bench):
    set_rows(bench, 6, [32 * i for i in range(16)])
    bench.run("set_va_reg", va=7, half=1, address0=1, address1=2, address2=3, address3=0xFFFF)
    assert bench.registers.va[6].tolist() == [32 * i for i in range(8)]
    assert bench.registers.va[7].tolist() == [256, 288, 320, 352, 32, 64, 96, 0xFFFF * 32]
