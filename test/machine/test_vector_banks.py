"""Conflicts in UB against a model that goes through every cycle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from davinci.machine.tables import entry_of
from davinci.machine.vector_banks import BankLayout, OperandBlocks, bank_bits, repeats_cycles

GROUPS, ROWS = 16, 128
UB = BankLayout(GROUPS, GROUPS * ROWS)


def bank(block: int) -> tuple[int, int]:
    return block % GROUPS, block // (GROUPS * ROWS)


def accesses(operands: list[list[int]]) -> list[list[int]]:
    """Blocks of each cycle: one of a group; a source starts when its groups are free of others."""
    cycles: list[list[int]] = []
    until: dict[int, int] = {}
    for blocks in operands:
        mine: dict[int, int] = {}
        first = max([0, *(until.get(block % GROUPS, 0) for block in blocks)])
        for block in sorted(set(blocks)):
            cycle = mine.setdefault(block % GROUPS, first)
            mine[block % GROUPS] += 1
            cycles += [[] for _ in range(cycle + 1 - len(cycles))]
            cycles[cycle].append(block)
        until.update(mine)
    return cycles


def blocks_of(stream: OperandBlocks, repeat: int) -> list[int]:
    first = stream.block + repeat * stream.repeat_stride
    return [first + i * stream.block_stride for i in range(stream.per_repeat)]


def stepwise(
    reads: list[OperandBlocks], writes: list[OperandBlocks], repeats: int, each: int, depth: int
) -> int:
    """The same figure, a cycle at a time: who reads, who writes, whose turn it is."""
    to_read = [accesses([blocks_of(s, r) for s in reads]) for r in range(repeats)]
    to_write: list[tuple[int, list[int]]] = []
    narrow = max([0, *(s.per_repeat for s in writes)]) < max([0, *(s.per_repeat for s in reads)])
    begin, repeat, beat, cycle = 0, 0, 0, 0
    last, writer_had_its_turn = 0, False
    while repeat < repeats or to_write:
        reading = repeat < repeats and cycle >= begin and beat < len(to_read[repeat])
        writing = bool(to_write) and to_write[0][0] <= cycle
        if reading and writing:
            used = {bank(block) for block in to_read[repeat][beat]}
            if used & {bank(block) for block in to_write[0][1]}:
                reading, writing = writer_had_its_turn, not writer_had_its_turn
        writer_had_its_turn = writing and not reading and repeat < repeats and cycle >= begin
        if writing:
            to_write.pop(0)
            last = cycle + 1
        if reading:
            beat += 1
        cycle += 1
        if repeat < repeats and reading and beat == len(to_read[repeat]):
            out = accesses([blocks_of(s, repeat) for s in writes])
            if not narrow:
                to_write += [(cycle - 1 + depth + i, blocks) for i, blocks in enumerate(out)]
            begin = max(cycle, begin + each, begin + len(out))
            repeat, beat = repeat + 1, 0
    return max(begin, last - depth)


@st.composite
def streams(draw: st.DrawFn) -> OperandBlocks:
    half = draw(st.sampled_from([0, 1, 8, 3]))
    row = draw(st.integers(0, 3)) * GROUPS
    place = draw(st.integers(0, 2)) * GROUPS * ROWS + row + half
    return OperandBlocks(
        place,
        draw(st.sampled_from([4, 8])),
        draw(st.sampled_from([0, 1, 1, 1, 2, 16])),
        draw(st.sampled_from([1, 4, 8, 8, 8, 17])),
    )


@given(
    reads=st.lists(streams(), min_size=1, max_size=2),
    writes=st.lists(streams(), min_size=1, max_size=1),
    repeats=st.integers(1, 40),
    each=st.sampled_from([1, 2, 4, 7]),
    depth=st.integers(8, 24),
)
def test_as_cycle_by_cycle(
    reads: list[OperandBlocks], writes: list[OperandBlocks], repeats: int, each: int, depth: int
) -> None:
    found = repeats_cycles(tuple(reads), tuple(writes), repeats, each, depth, UB)
    assert found == stepwise(reads, writes, repeats, each, depth)


def test_conflicts_take_turns_at_worst() -> None:
    reads = (OperandBlocks(0, 8, 1, 8), OperandBlocks(GROUPS * ROWS + 8, 8, 1, 8))
    for depth in range(8, 30):
        cycles = repeats_cycles(reads, (OperandBlocks(1, 8, 1, 8),), 200, 1, depth, UB)
        assert cycles == 200 + 200 - depth


@given(address=st.integers(0, 6000).map(lambda n: 32 * n), span=st.integers(1, 70000))
def test_bits_of_an_address(address: int, span: int) -> None:
    """They name the banks of all its blocks, and no more of the address than that takes."""
    bits = bank_bits(address, span, UB)
    for offset in range(0, span, 32 * 37):
        assert bank(bits + offset // 32)[0] == bank(address // 32 + offset // 32)[0]
    crosses = address // 65536 != (address + span - 1) // 65536
    assert bits == address // 32 if crosses else bits % (GROUPS * ROWS) < GROUPS
    assert bits // (GROUPS * ROWS) == address // 65536


def test_rates_by_instruction_name_and_family() -> None:
    table = {"vdiv.f16": 8, "vdiv": 4, "vconv": 2}
    assert entry_of(table, "vdiv", "f16", 1) == 8
    assert entry_of(table, "vdiv", "f32", 1) == 4
    assert entry_of(table, "vconv_f162f32", "", 1) == 2
    assert entry_of(table, "vadd", "f32", 1) == 1
