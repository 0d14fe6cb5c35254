"""Texts of kernels in the form that multi-buffer leaves: tiles of a loop, unrolled and interleaved.

A tile is loaded, goes through a chain of vector operations each of which reads what the one before
has written, and is stored. Tiles begin one after the other, so that two chains alternate; loads
come two tiles early. Buffers are used again in turn.
"""

from __future__ import annotations

ELEMENTS = 256
"""Of a tile."""

CHAIN = ("vmul", "vadd", "vexp", "vsub", "vmul", "vmax")
LEAVES = len(CHAIN) + 2
"""Operations of a tile."""

UB = f'memref<{ELEMENTS}xf32, #cce.space<"UB">>'


def tiles_text(tiles: int, loop: bool = False, slots: int = 3, lag: int = 3) -> str:
    """A kernel of `tiles` tiles in straight line.

    Args:
        loop: whether that is the body of a loop whose trip count is not known.
        slots: buffers that loads take in turn; the chain's own are two.
        lag: operations of a chain before the next one begins.
    """
    size = tiles * ELEMENTS
    shape = f"memref<{8 * size}xf32>" if loop else f"memref<{size}xf32>"
    lines = [f"func.func @k(%x: {shape}, %y: {shape}) attributes {{ascend.kernel}} {{"]
    for name, count in (("a", slots), ("b", 2)):
        lines += [f"  %{name}{i} = memref.alloc() : {UB}" for i in range(count)]
    if loop:
        lines += [
            "  %c0 = arith.constant 0 : index",
            "  %c1 = arith.constant 1 : index",
            f"  %size = arith.constant {size} : index",
            '  %n = "cce.get_block_num"() : () -> index',
            "  scf.for %i = %c0 to %n step %c1 {",
            "  %start = arith.muli %i, %size : index",
        ]
    steps = [
        (tile * lag - 2 * lag if i == 0 else tile * lag + i, tile, i)
        for tile in range(tiles)
        for i in range(LEAVES)
    ]
    for _, tile, i in sorted(steps):
        lines += _step(tile, i, loop, slots, shape)
    return "\n".join([*lines, *(["  }"] if loop else []), "  return", "}"])


def _step(tile: int, i: int, loop: bool, slots: int, shape: str) -> list[str]:
    """The lines of operation `i` of a tile."""
    a, b = f"%a{tile % slots}", f"%b{tile % 2}"
    if 0 < i < LEAVES - 1:
        name = CHAIN[i - 1]
        operands = [a, b] if name == "vexp" else [a, a if i == 1 else b, b]
        return [
            f'  "cce.{name}"({", ".join(operands)}) : ({", ".join([UB] * len(operands))}) -> ()'
        ]
    buffer, view = ("%x", f"%l{tile}") if i == 0 else ("%y", f"%s{tile}")
    offset = str(tile * ELEMENTS)
    kind = f"memref<{ELEMENTS}xf32, strided<[1], offset: {'?' if loop else offset}>>"
    lines = []
    if loop:
        place = f"{view}_place"
        lines.append(f"  {view}_offset = arith.constant {offset} : index")
        lines.append(f"  {place} = arith.addi %start, {view}_offset : index")
        offset = place
    lines.append(
        f"  {view} = memref.subview {buffer}[{offset}] [{ELEMENTS}] [1] : {shape} to {kind}"
    )
    operands = (view, a) if i == 0 else (b, view)
    kinds = (kind, UB) if i == 0 else (UB, kind)
    lines.append(f'  "cce.copy"({", ".join(operands)}) : ({", ".join(kinds)}) -> ()')
    return lines
