"""Whether the addresses of an instruction are aligned, and what it touches is in its memories."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.simulator.core.forms import InstructionForm
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.problems import UnplacedFault


def check_bounds(form: InstructionForm, words: Sequence[int], memories: Sequence[Memory]) -> None:
    """Checks an instruction.

    Args:
        words: of its record.
        memories: by number of their space.

    Raises:
        Problem: an address is misaligned, or a region ends behind its memory.
    """
    for want in form.alignments:
        if words[want.word] % want.bytes:
            raise UnplacedFault(
                f"misaligned address of operand {want.name}",
                found=f"{want.space.name} {words[want.word]:#x}",
                expected=f"a multiple of {want.bytes}",
            )
    for port in (*form.reads, *form.writes):
        region = port.region
        memory = memories[port.space]
        base = words[port.word] + port.offset
        if base + region.high > memory.size and not region.empty:
            raise UnplacedFault(
                "out of bounds",
                found=f"{port.space.name} [{base + region.low:#x}, {base + region.high:#x})",
                expected=f"addresses below {memory.size:#x} (the size of {port.space.name})",
                hint="check the address, the repeat count and the strides",
            )
