"""When buffers hold something: between values, in loops and branches, for parts of a buffer."""

from __future__ import annotations

from davinci.mlir import ir, make_context
from davinci.passes.analysis.kernels import kernels
from davinci.passes.analysis.lifetimes import lifetimes

TYPES = """
!gm = memref<64xf32>
!ub = memref<64xf32, #cce.space<"UB">>
!low = memref<32xf32, strided<[1]>, #cce.space<"UB">>
!high = memref<32xf32, strided<[1], offset: 32>, #cce.space<"UB">>
!rows = memref<4x8xf32, strided<[16, 1]>, #cce.space<"UB">>
!moved = memref<32xf32, strided<[1], offset: ?>, #cce.space<"UB">>
"""
ROWS = """%rows = memref.reinterpret_cast %b0 to
  offset: [0], sizes: [4, 8], strides: [16, 1] : !ub to !rows"""
LOAD, STORE = '"cce.copy"(%g, {}) : (!gm, !ub) -> ()', '"cce.copy"({}, %g) : (!ub, !gm) -> ()'


def meet(*lines: str, buffers: int = 2) -> list[tuple[int, int]]:
    """Which of the buffers %b0, %b1, ... cannot share a place."""
    text = "\n".join(
        [
            TYPES,
            "func.func @k(%g: !gm, %yes: i1) attributes {ascend.kernel} {",
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            "%c4 = arith.constant 4 : index",
            "%f = arith.constant 0.0 : f32",
            *(f"%b{i} = memref.alloc() : !ub" for i in range(buffers)),
            *lines,
            "return }",
        ]
    )
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        found = lifetimes(kernels(module.operation)[0])
        lives = [buffer.live for buffer in found]
    pairs = [(i, j) for i in range(len(lives)) for j in range(i)]
    return [(j, i) for i, j in pairs if lives[i] & lives[j]]


def load(buffer: str) -> str:
    return LOAD.format(buffer)


def store(buffer: str) -> str:
    return STORE.format(buffer)


def test_one_after_the_other() -> None:
    assert meet(load("%b0"), store("%b0"), load("%b1"), store("%b1")) == []
    assert meet(load("%b0"), load("%b1"), store("%b0"), store("%b1")) == [(0, 1)]


def test_source_and_destination_of_one_operation() -> None:
    assert meet(load("%b0"), '"cce.vexp"(%b0, %b1) : (!ub, !ub) -> ()', store("%b1")) == [(0, 1)]


def test_another_buffer_between_two_values() -> None:
    twice = [load("%b0"), store("%b0")]
    assert meet(*twice, load("%b1"), store("%b1"), *twice) == []


def test_a_value_written_in_parts() -> None:
    halves = [
        "%low = memref.subview %b0[0] [32] [1] : !ub to !low",
        "%high = memref.subview %b0[32] [32] [1] : !ub to !high",
    ]
    fill = '"cce.vector_dup"(%f, {0}) : (f32, !{1}) -> ()'
    low, high = fill.format("%low", "low"), fill.format("%high", "high")
    other, keep = [load("%b1"), store("%b1")], [load("%b0"), store("%b0")]
    assert meet(*halves, *keep, *other, low, high, store("%b0")) == []
    assert meet(*halves, *keep, *other, low, store("%b0")) == [(0, 1)]
    assert meet(*halves, low, *other, high, store("%b0")) == [(0, 1)]


def test_rows_with_gaps() -> None:
    write = '"cce.vector_dup"(%f, %rows) : (f32, !rows) -> ()'
    read = '"cce.vabs"(%rows, %rows) : (!rows, !rows) -> ()'
    other = [load("%b1"), store("%b1")]
    assert meet(ROWS, write, read, *other, write, read) == []
    assert meet(ROWS, load("%b0"), *other, write, store("%b0")) == [(0, 1)]  # the gaps are read


def test_a_fill_of_some_lanes_keeps_the_others() -> None:
    lanes = (
        '"cce.vector_dup"(%f, %rows) {first_lane = 2 : i64, lanes = 3 : i64} : (f32, !rows) -> ()'
    )
    read = '"cce.vabs"(%rows, %rows) : (!rows, !rows) -> ()'
    other = [load("%b1"), store("%b1")]
    assert meet(ROWS, load("%b0"), *other, lanes, read) == [(0, 1)]


def test_a_place_that_is_not_known() -> None:
    moved = "%moved = memref.subview %b0[%i] [32] [1] : !ub to !moved"
    loop = ["scf.for %i = %c0 to %c4 step %c1 {", moved]
    write = '"cce.vector_dup"(%f, %moved) : (f32, !moved) -> ()'
    other = [load("%b1"), store("%b1")]
    assert meet(load("%b0"), *other, *loop, write, "}", store("%b0")) == [(0, 1)]


def test_values_of_an_iteration() -> None:
    """Two buffers in front of a loop, each written before it is read in every iteration."""
    loop = ["scf.for %i = %c0 to %c4 step %c1 {"]
    body = [load("%b0"), store("%b0"), load("%b1"), store("%b1")]
    assert meet(*loop, *body, "}") == []
    assert meet(*loop, *body, "}", *loop, *body, "}") == []
    assert meet(*loop, *body, "}", store("%b0")) == [(0, 1)]
    assert meet(load("%b0"), *loop, store("%b0"), *body[2:], "}") == [(0, 1)]


def test_what_a_loop_carries() -> None:
    loop = "scf.for %i = %c0 to %c4 step %c1 {"
    grow = '"cce.vadd"(%b0, %b1, %b0) : (!ub, !ub, !ub) -> ()'
    later = [load("%b2"), store("%b2")]
    found = meet(load("%b0"), loop, load("%b1"), grow, *later, "}", store("%b0"), buffers=3)
    assert found == [(0, 1), (0, 2)]


def test_branches() -> None:
    write, other = load("%b0"), [load("%b1"), store("%b1")]
    both = ["scf.if %yes {", write, "} else {", write, "}"]
    assert meet(load("%b0"), store("%b0"), *other, *both, store("%b0")) == []
    one = ["scf.if %yes {", write, "}"]
    assert meet(load("%b0"), *other, *one, store("%b0")) == [(0, 1)]
    inside = ["scf.if %yes {", load("%b0"), store("%b0"), "} else {", *other, "}"]
    assert meet(*inside) == []
