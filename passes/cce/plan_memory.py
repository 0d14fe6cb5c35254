"""plan-memory: gives every on-chip buffer of a kernel its address.

before:
    %a = memref.alloc() : memref<64x64xf16, #cce.space<"UB">>
    %b = memref.alloc() : memref<64x64xf16, #cce.space<"UB">>
after:
    %a = memref.alloc() {cce.address = 0 : i64} : memref<64x64xf16, #cce.space<"UB">>
    %b = memref.alloc() {cce.address = 8192 : i64} : memref<64x64xf16, #cce.space<"UB">>

Each memory is planned by itself, with its capacity and alignment from the machine file. Buffers
share bytes only where they must, because two buffers in the same place cannot be worked on at the
same time: first every buffer gets its own place; if that does not fit, buffers of different
top-level statements of the kernel may share; only if that does not fit either, any two whose
lifetimes are disjoint may. Buffers that have an address keep it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci import machine as machines
from davinci.errors import CompileError
from davinci.machine import OnChipMemory as Memory
from davinci.mlir import location_text, symbol_name
from davinci.passes import builder
from davinci.passes.analysis.kernels import kernels
from davinci.passes.analysis.lifetimes import Buffer, lifetimes
from davinci.passes.analysis.packing import Item, pack
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.units import round_up


@register_pass
@dataclass(frozen=True)
class PlanMemoryPass(Pass):
    """Give every on-chip buffer an address (cce.address)."""

    NAME = "plan-memory"

    machine: str = option("ascend910", "machine file that gives capacities and alignments")

    def run(self, op: Any) -> None:
        machine = machines.load(self.machine)
        for kernel in kernels(op):
            by_space: dict[str, list[Buffer]] = {}
            for buffer in lifetimes(kernel):
                by_space.setdefault(buffer.space, []).append(buffer)
            for space, buffers in by_space.items():
                _plan(kernel, buffers, machine.buffer(space))


def _plan(kernel: Any, buffers: list[Buffer], memory: Memory) -> None:
    """Sets the addresses of all buffers of one memory."""
    for sharing in (_never, _between_statements, _freely):
        items = [_item(buffer, memory, *sharing(buffer)) for buffer in buffers]
        if pack(items, memory.align_bytes) <= memory.bytes:
            break
    else:
        _overflow(kernel, buffers, items, memory)
    for buffer, item in zip(buffers, items, strict=True):
        buffer.alloc.attributes["cce.address"] = builder.as_attribute(item.offset)


def _never(buffer: Buffer) -> tuple[int, int]:
    return 0, 0


def _between_statements(buffer: Buffer) -> tuple[int, int]:
    return buffer.outer_lifetime


def _freely(buffer: Buffer) -> tuple[int, int]:
    return buffer.lifetime


def _item(buffer: Buffer, memory: Memory, first: int, last: int) -> Item:
    attributes = buffer.alloc.attributes
    fixed = attributes["cce.address"].value if "cce.address" in attributes else -1
    return Item(round_up(buffer.size_bytes, memory.align_bytes), first, last, fixed)


def _overflow(kernel: Any, buffers: list[Buffer], items: list[Item], memory: Memory) -> None:
    """Raises the error that lists the buffers alive when most bytes are in use."""

    def alive(time: int) -> list[int]:
        return [i for i, item in enumerate(items) if item.first <= time <= item.last]

    def live_bytes(time: int) -> int:
        return sum(items[i].size for i in alive(time))

    peak = max((item.first for item in items), key=live_bytes)
    rows = [f"{'bytes':>10}  buffer"]
    for i in sorted(alive(peak), key=lambda i: -items[i].size):
        alloc = buffers[i].alloc
        rows.append(f"{items[i].size:>10}  {alloc.result.type} at {location_text(alloc.location)}")
    rows.append(f"{live_bytes(peak):>10}  in all, of {memory.bytes}")
    end = max(item.end for item in items)
    raise CompileError(
        f"the buffers of kernel @{symbol_name(kernel)} do not fit {buffers[0].space}",
        where=location_text(kernel.location),
        found=f"{live_bytes(peak)} bytes alive at once, {end} with gaps between buffers",
        expected=f"at most {memory.bytes} bytes",
        hint="use smaller tiles; alive at the peak:\n" + "\n".join(rows),
    )
