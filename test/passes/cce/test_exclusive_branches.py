"""Branches of which each block enters one at most are synchronised one by one."""

from __future__ import annotations

import pytest

from davinci.mlir import ir, kernels_module, make_context, symbols
from davinci.passes.cce.sync_program import Leaf, exclusive_branches
from davinci.passes.cce.sync_trace import Trace
from davinci.passes.pipeline import runner

UB = 'memref<256xf32, #cce.space<"UB">>'

BRANCH = """
  %i{n} = arith.subi %block, %c{first} : index
  %t{n} = arith.cmpi {predicate}, %i{n}, %c{count} : index
  scf.if %t{n} {{
    scf.for %j = %c0 to %c5 step %c1 {{
      "cce.copy"(%x, %a) : (memref<256xf32>, UB) -> ()
      "cce.vexp"(%a, %b) : (UB, UB) -> ()
      "cce.copy"(%b, %x) : (UB, memref<256xf32>) -> ()
    }}
  }}
"""


def kernel_text(blocks: list[tuple[int, int]], predicate: str = "ult", between: str = "") -> str:
    """A kernel with a branch for each first block and number of blocks."""
    branches = [
        BRANCH.format(n=n, first=first, count=count, predicate=predicate)
        for n, (first, count) in enumerate(blocks)
    ]
    constants = "".join(f"  %c{n} = arith.constant {n} : index\n" for n in range(20))
    text = f"""module {{ module @kernels {{
func.func @k(%x: memref<256xf32>) attributes {{ascend.kernel}} {{
{constants}  %a = memref.alloc() {{cce.address = 0 : i64}} : UB
  %b = memref.alloc() {{cce.address = 1024 : i64}} : UB
  %block = "cce.get_block_idx"() : () -> index
{between.join(branches)}
  return }} }} }}"""
    return text.replace("UB", UB).replace(f'<"{UB}">', '<"UB">')


def count_of_branches(text: str) -> int:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        ((_, kernel),) = symbols(kernels_module(module.operation))
        return len(exclusive_branches(kernel))


@pytest.mark.parametrize(
    ("blocks", "predicate", "between", "found"),
    [
        ([(0, 3), (3, 1), (4, 2)], "ult", "", 3),
        ([(0, 3), (2, 1)], "ult", "", 0),  # block 2 enters both
        ([(0, 3), (3, 1)], "ule", "", 0),
        ([(0, 3), (3, 1)], "ult", '"cce.vexp"(%a, %b) : (UB, UB) -> ()', 0),  # of all blocks
    ],
)
def test_which_branches(
    blocks: list[tuple[int, int]], predicate: str, between: str, found: int
) -> None:
    assert count_of_branches(kernel_text(blocks, predicate, between)) == found


def work(branches: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[str]]:
    """Operations that are run on paper to synchronise so many branches, and the flags set."""
    count, leaf = 0, Trace._leaf

    def counted(trace: Trace, node: Leaf) -> None:
        nonlocal count
        count += 1
        leaf(trace, node)

    with make_context(), ir.Location.unknown(), monkeypatch.context() as patch:
        patch.setattr(Trace, "_leaf", counted)
        module = ir.Module.parse(kernel_text([(n, 1) for n in range(branches)]))
        runner.run(module.operation, "builtin.module(insert-sync)")
        lines = str(module).splitlines()
    return count, [line.strip() for line in lines if "set_flag" in line]


def test_work_grows_with_the_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with their square: none is traced again for what another one lacks."""
    one, flags = work(1, monkeypatch)
    assert one > 0 and flags
    assert work(8, monkeypatch) == (8 * one, 8 * flags)
