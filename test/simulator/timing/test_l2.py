"""The L2, apart from the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine
from davinci.simulator import Device
from davinci.simulator.timing.l2 import DIRECT, L2, WRITTEN, LaunchTraffic, Touched
from encoded import encoded

MACHINE = machine.load("ascend910")
LINES = MACHINE.l2.bytes // 512


def stream(first: int, count: int, kind: int = 0) -> Touched:
    lines = np.arange(first, first + count)
    sizes = [0, 0, 0, 0]
    sizes[kind] = 512 * count
    return Touched(lines, np.full(count, kind, np.uint8), (sizes[0], sizes[1], sizes[2], sizes[3]))


def both(*streams: Touched) -> Touched:
    """One after the other."""
    sizes = np.sum([s.sizes for s in streams], axis=0).tolist()
    lines = np.concatenate([s.lines for s in streams])
    return Touched(lines, np.concatenate([s.kinds for s in streams]), tuple(sizes))


@pytest.fixture
def l2() -> L2:
    return L2(MACHINE, 1 << 28)


def pass_through(l2: L2, *blocks: Touched) -> LaunchTraffic:
    return l2.launch([blocks]).traffic


def test_what_was_read_is_there_until_it_is_pushed_out(l2: L2) -> None:
    assert pass_through(l2, stream(1, 100)).miss_rate == 1
    assert pass_through(l2, stream(1, 100)).miss_rate == 0
    assert pass_through(l2, stream(51, 100)).miss_rate == 0.5
    pass_through(l2, stream(1000, LINES))
    assert pass_through(l2, stream(1, 100)).miss_rate == 1
    l2.flush()
    assert pass_through(l2, stream(1000, 10)).miss_rate == 1


def test_lines_that_an_earlier_run_wrote_make_room(l2: L2) -> None:
    l2.flush(dirty_share=0.25)
    half = pass_through(l2, stream(1, LINES // 2, WRITTEN))
    assert half.written_back_bytes == LINES // 2 // 4 * 512
    rest = pass_through(l2, stream(LINES, LINES // 2))
    assert rest.read_back_bytes == rest.written_back_bytes == LINES // 2 // 4 * 512
    # Nothing is left of that run; what this one wrote goes next.
    assert pass_through(l2, stream(2 * LINES, LINES // 4)).written_back_bytes == LINES // 4 * 512
    l2.flush()
    assert pass_through(l2, stream(1, 100, WRITTEN)).written_back_bytes == 0


def test_the_next_launch_tells_what_earlier_runs_wrote(l2: L2) -> None:
    """Three of the four quarters that it touches it reads, one of these and the last it writes."""
    l2.flush(dirty_share=None)
    quarter = LINES // 4
    both_ways = both(stream(1, 3 * quarter), stream(2 * quarter + 1, 2 * quarter, WRITTEN))
    assert pass_through(l2, both_ways).written_back_bytes == LINES // 2 * 512
    assert pass_through(l2, stream(1, 4 * quarter)).written_back_bytes == 0


@pytest.mark.parametrize("shape", [(1024, 2048), (4096, 2048)])
def test_a_run_pays_for_what_runs_like_it_wrote(shape: tuple[int, int]) -> None:
    """All results go to the memory, now or in place of those of the run before, whether the L2 of
    8 MiB has room for them or not."""
    rows, columns = shape
    text = f"""
    func.func @main(%a: tensor<{rows}x{columns}xf16>) -> tensor<{rows}x{columns}xf16> {{
      %0 = stablehlo.abs %a : tensor<{rows}x{columns}xf16>
      return %0 : tensor<{rows}x{columns}xf16>
    }}
    """
    executable = davinci.compile(text, machine="ascend310", timing_only=True)
    executable.run()
    machine_ = executable.machine
    gm, size = machine_.gm, 2 * rows * columns
    least = size / machine_.cores * (1 / gm.read_bytes_per_cycle + 1 / gm.write_bytes_per_cycle)
    assert executable.profile["total_cycles"] == pytest.approx(least, rel=0.05)


def test_what_was_used_last_stays_longest(l2: L2) -> None:
    pass_through(l2, stream(1, LINES // 2))
    pass_through(l2, stream(LINES, LINES // 2))
    pass_through(l2, stream(1, LINES // 2))
    pass_through(l2, stream(2 * LINES, LINES // 2))
    assert pass_through(l2, stream(1, LINES // 2)).miss_rate == 0
    assert pass_through(l2, stream(LINES, LINES // 2)).miss_rate == 1


def test_what_does_not_fit_is_never_there(l2: L2) -> None:
    """Reading more than it holds again and again hits nothing, as on boards."""
    for _ in range(3):
        assert pass_through(l2, stream(1, LINES + LINES // 4)).miss_rate == 1


def test_what_was_written_is_read_from_the_l2(l2: L2) -> None:
    assert pass_through(l2, stream(1, 100, WRITTEN)).write_back_rate == 0
    assert pass_through(l2, stream(1, 100)).miss_rate == 0


def test_written_lines_go_to_memory_when_they_leave(l2: L2) -> None:
    pass_through(l2, stream(1, LINES, WRITTEN))
    again = pass_through(l2, stream(1 + LINES, LINES, WRITTEN))
    assert (again.filled_bytes, again.written_back_bytes) == (0, LINES * 512)
    # They are written once.
    assert pass_through(l2, stream(1 + 2 * LINES, 10)).written_back_bytes == 10 * 512
    assert pass_through(l2, stream(1, 10)).written_back_bytes == 10 * 512


def test_transfers_that_bypass_leave_the_l2_to_others(l2: L2) -> None:
    pass_through(l2, stream(1, LINES // 2, WRITTEN))
    past = pass_through(l2, stream(LINES, LINES, DIRECT))
    assert (past.filled_bytes, past.written_back_bytes, past.missing) == (LINES * 512, 0, 1)
    assert pass_through(l2, stream(1, LINES // 2)).miss_rate == 0
    assert pass_through(l2, stream(LINES, 100)).miss_rate == 1


def test_transfers_that_bypass_see_what_the_l2_has(l2: L2) -> None:
    pass_through(l2, stream(1, 100))
    assert pass_through(l2, stream(1, 100, DIRECT)).miss_rate == 0
    assert pass_through(l2, stream(1, 100, DIRECT | WRITTEN)).write_back_rate == 0
    # Written through to the memory where it is not there.
    assert pass_through(l2, stream(101, 100, DIRECT | WRITTEN)).write_back_rate == 1
    assert pass_through(l2, stream(101, 100)).miss_rate == 1


def test_short_rows_that_bypass_read_only_their_bytes(l2: L2) -> None:
    lines = np.arange(1, 101)
    kinds = np.full(100, DIRECT, np.uint8)
    assert pass_through(l2, Touched(lines, kinds, (0, 0, 12_800, 0))).filled_bytes == 12_800
    assert pass_through(l2, Touched(lines, 0 * kinds, (12_800, 0, 0, 0))).filled_bytes == 51_200


def test_blocks_share_what_they_read(l2: L2) -> None:
    assert pass_through(l2, *[stream(1, 100)] * 4).miss_rate == 0.25


def test_concurrent_blocks_push_each_other_out(l2: L2) -> None:
    """Each block reads its part twice; one part fits, all of them do not."""
    part = LINES // 4
    blocks = []
    for i in range(8):
        once = stream(1 + i * part, part)
        blocks.append(both(once, once))
    assert pass_through(l2, *blocks).miss_rate > 0.99
    l2.flush()
    assert l2.launch([[block] for block in blocks]).traffic.miss_rate == 0.5


def test_parts_of_a_launch(l2: L2) -> None:
    """Read twice: the first half misses, the second hits."""
    once = stream(1, LINES // 2)
    served = l2.launch([[both(once, once)]])
    (parts,) = served.rounds
    assert len(parts) == 32
    assert [part.miss_rate for part in parts] == [1] * 16 + [0] * 16
    assert sum(part.read_bytes for part in parts) == served.traffic.read_bytes


def test_what_takes_the_place_of_results_pays_for_them(l2: L2) -> None:
    pass_through(l2, stream(1, LINES, WRITTEN))
    reading = pass_through(l2, stream(1 + LINES, 100))
    assert (reading.read_back_bytes, reading.read_back_rate) == (100 * 512, 1)
    assert reading.write_back_rate == 0
    # Of both kinds, half each.
    mixed = both(stream(10_000_000 // 512 + LINES, 1), stream(2 * LINES, 1, WRITTEN))
    part = pass_through(l2, mixed, mixed)
    assert part.written_back_bytes == 2 * 512 and part.read_back_bytes == 512
    assert (part.read_back_rate, part.write_back_rate) == (0.5, 0.5)


def test_a_block_of_few_lines_has_few_parts(l2: L2) -> None:
    (parts,) = l2.launch([[stream(1, 3), stream(1, 2)]]).rounds
    assert len(parts) == 3 and sum(part.read_bytes for part in parts) == 5 * 512
    assert l2.launch([[stream(1, 0)]]).rounds == [[]]


def test_blocks_that_read_the_same_lines() -> None:
    l2 = L2(MACHINE, 1 << 28)
    apart = pass_through(l2, stream(1, 100), stream(101, 100))
    half = pass_through(l2, stream(1, 100), stream(51, 100))
    same = pass_through(l2, *[stream(1, 100)] * 4)
    assert [t.others for t in (apart, half, same)] == [0, 0.5, 3]


def ends(again: bool, before: bool = False) -> list[int]:
    """When each transfer ends of blocks that read parts of their own, `again` a second time;
    `before`: a launch has left results in all of the L2."""
    device = Device(MACHINE, 1 << 27, data=False)
    size, count = 16_384, 8
    places = [i * size for i in range(count)] * (1 + again)
    gm = device.allocate(MACHINE.cores * count * size)
    results = device.allocate(MACHINE.l2.bytes)

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        base = gm + block * count * size
        rows = [
            encoded("copy_gm_to_ubuf", dst=0, src=base + at, n_burst=1, len_burst=size // 32)
            for at in places
        ]
        core.consume(np.array(rows, dtype=np.uint64))

    def fill(arguments: Any, block: int, blocks: int, core: Any) -> None:
        share = MACHINE.l2.bytes // blocks
        rows = [
            encoded(
                "copy_ubuf_to_gm", src=0, dst=results + block * share + at, n_burst=1,
                len_burst=size // 32,
            )
            for at in range(0, share, size)
        ]  # fmt: skip
        core.consume(np.array(rows, dtype=np.uint64))

    if before:
        device.launch("fill", fill, [], blocks=MACHINE.cores)
    profile = device.launch("read", program, [], blocks=MACHINE.cores, timeline=True)
    return [row.end for row in profile.rows if row.block == 0]


def test_a_second_read_makes_the_first_one_no_faster() -> None:
    once, twice = ends(again=False), ends(again=True)
    assert twice[: len(once)] == once
    # 16 KB at a core's share of the memory, and then of the L2 or its port.
    steps = np.diff(twice)
    assert set(steps[:7]) == {512} and max(steps[8:]) < 200


def test_results_that_leave_take_time_from_what_comes() -> None:
    clean, dirty = ends(again=False), ends(again=False, before=True)
    assert set(np.diff(dirty)) == {1024}
    assert dirty[-1] - clean[-1] == pytest.approx(8 * 512, abs=2)
