"""Which accesses can touch the same bytes: against a count of all bytes over all iterations."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.mlir import ir, make_context
from davinci.passes.analysis.accesses import FORWARD, Accesses, ByteAccess
from davinci.passes.analysis.affine import AffineForm, Forms

TWO_LOOPS = """
func.func @k(%x: memref<4096xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {n} : index
  %m = arith.constant {m} : index
  scf.for %i = %c0 to %n step %c1 {{
    scf.for %j = %c0 to %m step %c1 {{
      "test.here"() : () -> ()
    }}
  }}
  return
}
"""


class Nest:
    """Two loops of n and m iterations, and accesses whose offsets depend on their variables."""

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m
        text = TWO_LOOPS.replace("{n}", str(n)).replace("{m}", str(m))
        self.module = ir.Module.parse(text.replace("{{", "{").replace("}}", "}"))
        kernel = self.module.body.operations[0]
        self.argument = kernel.regions[0].blocks[0].arguments[0]
        outer = next(
            op.operation
            for op in kernel.regions[0].blocks[0].operations
            if op.operation.name == "scf.for"
        )
        inner = outer.regions[0].blocks[0].operations[0].operation
        self.loops = [outer, inner]
        self.forms = Forms()
        for loop in self.loops:
            self.forms.enter_loop(loop)
        self.variables = [loop.regions[0].blocks[0].arguments[0] for loop in self.loops]

    def access(self, offset: int, i: int, j: int, dims: tuple[Any, ...], run: int) -> ByteAccess:
        terms = tuple((v, c) for v, c in zip(self.variables, (i, j), strict=True) if c)
        return ByteAccess(self.argument, AffineForm(offset, terms), dims, run, 0, None)

    def touched(self, access: ByteAccess, i: int, j: int) -> set[int]:
        coefficients = [dict(access.offset.terms).get(v, 0) for v in self.variables]
        base = access.offset.constant + coefficients[0] * i + coefficients[1] * j
        starts = product(*(range(0, count * stride, stride) for count, stride in access.dims))
        return {base + sum(start) + byte for start in starts for byte in range(access.run)}

    def really_overlap(self, first: ByteAccess, second: ByteAccess, carrier: int) -> bool:
        for i, j in product(range(self.n), range(self.m)):
            for k, m in product(range(self.n), range(self.m)):
                related = {FORWARD: (i, j) == (k, m), 0: i < k, 1: i == k and j < m}[carrier]
                if related and self.touched(first, i, j) & self.touched(second, k, m):
                    return True
        return False


COEFFICIENTS = st.sampled_from([0, 1, 4, 8, 12, 16, 32, 48])
DIMS = st.sampled_from([(), ((2, 16),), ((3, 48),), ((2, 8), (2, 32)), ((3, 24), (2, 88))])


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(COEFFICIENTS, COEFFICIENTS),
    st.tuples(COEFFICIENTS, COEFFICIENTS),
    st.booleans(),
    st.tuples(st.sampled_from([0, 4, 8, 16, 64]), st.sampled_from([0, 8, 32, 200])),
    st.tuples(DIMS, DIMS),
    st.tuples(st.sampled_from([4, 8, 16]), st.sampled_from([4, 8, 16])),
    st.sampled_from([FORWARD, 0, 1]),
)
def test_never_misses_an_overlap(
    trips: tuple[int, int],
    first: tuple[int, int],
    second: tuple[int, int],
    same: bool,
    offsets: tuple[int, int],
    dims: tuple[Any, Any],
    runs: tuple[int, int],
    carrier: int,
) -> None:
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        nest = Nest(*trips)
        a = nest.access(offsets[0], *first, dims[0], runs[0])
        b = nest.access(offsets[1], *(first if same else second), dims[0 if same else 1], runs[1])
        if not Accesses(nest.forms).may_overlap(a, b, carrier, nest.loops):
            assert not nest.really_overlap(a, b, carrier)


@pytest.mark.parametrize(
    ("coefficients", "dims", "run", "carrier"),
    [
        ((0, 64), (), 64, 1),  # tiles along the inner loop
        ((192, 64), (), 64, 0),  # and along both
        ((256, 16), ((4, 64),), 16, 1),  # columns of a matrix of 64 columns
        ((256, 16), ((4, 64),), 16, 0),  # rows of blocks of it
    ],
)
def test_tiles_are_seen_to_be_disjoint(
    coefficients: tuple[int, int], dims: tuple[Any, ...], run: int, carrier: int
) -> None:
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        nest = Nest(3, 3)
        tile = nest.access(0, *coefficients, dims, run)
        assert not Accesses(nest.forms).may_overlap(tile, tile, carrier, nest.loops)
        assert Accesses(nest.forms).may_overlap(tile, tile, FORWARD, nest.loops)


@pytest.mark.parametrize(("width", "met"), [(12, False), (16, False), (20, True)])
def test_columns_beside_each_other_are_disjoint(width: int, met: bool) -> None:
    """The first columns of rows of 48 bytes, so many, and the others from the 16th on."""
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        nest = Nest(3, 3)
        first = nest.access(0, 0, 96, ((4, 48),), width)
        others = nest.access(16, 0, 96, ((4, 48),), 32)
        for carrier in (FORWARD, 1):
            assert Accesses(nest.forms).may_overlap(first, others, carrier, nest.loops) is met


@pytest.mark.parametrize(("place", "met"), [(64, False), (144, False), (56, True), (150, True)])
def test_rows_in_planes_are_disjoint_from_what_lies_between(place: int, met: bool) -> None:
    """Three rows of 16 bytes, every 24, in two planes of 152: strides that are no multiples."""
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        nest = Nest(3, 3)
        rows = nest.access(0, 0, 0, ((3, 24), (2, 152)), 16)
        gaps = nest.access(16, 0, 0, ((3, 24), (2, 152)), 8)
        others = nest.access(place, 0, 0, ((2, 152),), 8)
        overlap = Accesses(nest.forms).may_overlap
        assert not overlap(rows, gaps, FORWARD, nest.loops)
        assert overlap(rows, others, FORWARD, nest.loops) is met
