"""The tables of a machine file that describe memories: those on the chip, global memory and its
cache."""

from __future__ import annotations

from davinci.machine.section import (
    Amount,
    BufferBytes,
    Cycles,
    MemoryBytes,
    Positive,
    Rate,
    Section,
)


class OnChipMemory(Section):
    """An on-chip memory.

    Attributes:
        bytes: capacity.
        align_bytes: what addresses of instructions are multiples of, unless their operand says
            otherwise.
    """

    bytes: BufferBytes
    align_bytes: Positive


class OnChipMemories(Section):
    """The on-chip memories; of a split machine each is in the cores that list it. VREG are the
    vector registers, L0A_MX and L0B_MX hold scales, BT biases, FB what fixpipe multiplies by, where
    instructions name them."""

    L1: OnChipMemory
    L0A: OnChipMemory
    L0B: OnChipMemory
    L0C: OnChipMemory
    UB: OnChipMemory
    VREG: OnChipMemory | None = None
    L0A_MX: OnChipMemory | None = None
    L0B_MX: OnChipMemory | None = None
    BT: OnChipMemory | None = None
    FB: OnChipMemory | None = None

    def of(self, space: str) -> OnChipMemory | None:
        """The memory of that name, None if no core has one."""
        found: OnChipMemory | None = getattr(self, space)
        return found


class GlobalMemorySection(Section):
    """Global memory.

    Attributes:
        bytes: capacity.
        align_bytes: what addresses of instructions are multiples of.
        read_bytes_per_cycle, write_bytes_per_cycle: the share of each of the machine's `cores` with
            all at work; fewer cores share the same total.
        line_bytes: what a core asks for at a time; requests are cut where lines end.
        same_line_percent: how much longer a read takes for each other core that reads the same line
            at the time.
        same_line_request_cycles: of a request of each of those cores: a line serves one after the
            other; 0: that of a core is faster in any case.
        idle_credit_cycles: for how long a core may catch up on what it did not use of its share.
    """

    bytes: MemoryBytes
    align_bytes: Positive
    read_bytes_per_cycle: Rate
    write_bytes_per_cycle: Rate
    line_bytes: Positive
    same_line_percent: Amount
    same_line_request_cycles: Amount = 0.0
    idle_credit_cycles: Cycles


class L2Section(Section):
    """The cache before global memory.

    Attributes:
        bytes: capacity.
        read_bytes_per_cycle, write_bytes_per_cycle: as of global memory.
        separate_writes: reads and writes have a share each; else they count against one.
        bypass_offset_bytes: transfers whose address in global memory has this added bypass it;
            none on a machine where they cannot.
    """

    bytes: MemoryBytes
    read_bytes_per_cycle: Rate
    write_bytes_per_cycle: Rate
    separate_writes: bool = False
    bypass_offset_bytes: MemoryBytes | None = None
