"""Products on the simulator: numbers in all layouts, elements read from GM, synchronisation."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

import davinci
from davinci.errors import CompileError, DeviceFault
from davinci.machine import Machine
from davinci.passes.ascend_to_cce import groups
from davinci.passes.ascend_to_cce.products import group as product_group
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.legality import require_legal
from davinci.schedule.products.product import Product, ProductSchedule, Tile
from davinci.schedule.products.refined import ways_along_k
from kernel_support import lowered_text, run_cce_text, run_kernel
from pairs import all_pairs, in_turn
from product_support import Case, drawn_schedules

TEXT = """
func.func @main(%a: tensor<768x1024xf16>, %b: tensor<1024x96xf16>) -> tensor<768x96xf16> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<768x1024xf16>, tensor<1024x96xf16>) -> tensor<768x96xf16>
  return %c : tensor<768x96xf16>
}
"""

FLAG = re.compile(r'"cce\.(set_flag|wait_flag)"\(\) (\{[^}]*\})')


def test_the_sum_does_not_depend_on_how_the_product_is_cut() -> None:
    """On any number of cores and with any tile the bits are the same."""
    case = Case(129, 129, 257)
    ways: list[dict[str, object]] = [
        {"cores": 32},
        {"cores": 3, "k": 16},
        {"cores": 1, "k": 112},
        {"cores": 2, "matmul_strategy": "is"},
        {"cores": 2, "matmul_strategy": "ws"},
    ]
    first = run_kernel(case.text(), case.inputs(), cores=1).outputs[0]
    for way in ways:
        found = run_kernel(case.text(), case.inputs(), **way).outputs[0]
        np.testing.assert_array_equal(found, first, err_msg=str(way))


SHAPES = [
    (1, 1, 1),
    (15, 17, 16),
    (17, 1, 15),
    (1, 33, 768),
    (97, 103, 101),
    (128, 128, 64),
    (64, 48, 1024),
    (4096, 16, 16),
    (16, 4096, 48),
    (16, 16, 4096),
]


@pytest.mark.parametrize(("shape", "cores"), in_turn(SHAPES, [1, 32]), ids=str)
def test_fractals(shape: tuple[int, int, int], cores: int) -> None:
    Case(*shape).check(cores=cores)


@pytest.mark.parametrize(("shape", "cores"), in_turn(SHAPES, [32, 1]), ids=str)
def test_rows(shape: tuple[int, int, int], cores: int) -> None:
    Case(*shape, layouts="rrr", result="f16").check(cores=cores)


LAYOUTS = ["".join(letters) for letters in itertools.product("nr", repeat=3)]
TURNED = ["", "a", "b", "ab"]
RAGGED = [(1, 100, 17), (16, 15, 257), (48, 257, 1), (100, 17, 48), (257, 1, 100), (17, 48, 15)]


@pytest.mark.parametrize(
    ("layouts", "turned"),
    [("".join(letters), turned) for *letters, turned in all_pairs("nr", "nr", "nr", TURNED)],
)
def test_layouts(layouts: str, turned: str) -> None:
    """Each operand in rows or fractals, as it is or transposed, and sizes that end anywhere."""
    first = LAYOUTS.index(layouts) + TURNED.index(turned)
    for number in range(first, first + 2):
        shape, result = RAGGED[number % len(RAGGED)], ("f16", "f32")[number // 2 % 2]
        case = Case(*shape, batch=number % 3, layouts=layouts, turned=turned, result=result)
        case.check(cores=(1, 5, 32)[number % 3])


@pytest.mark.parametrize(
    ("n", "result"), [(1, "f16"), (3, "f32"), (13, "f16"), (17, "f32"), (45, "f16"), (1, "f32")]
)
def test_ragged_rows(n: int, result: str) -> None:
    """Narrow operands and results whose rows are no whole blocks, several hundred of them."""
    case = Case(301, n, 11, layouts="rrr", result=result)
    case.check(cores=3)
    replace(case, turned="ab", batch=3).check(cores=2)
    replace(case, layouts="rnr", k=37, m=45, batch=2).check(cores=1)


@pytest.mark.parametrize("machine", ["ascend310", "ascend910"])
def test_larger_than_a_buffer(machine: str) -> None:
    Case(100, 700, 1100, layouts="rrr", result="f16").check(machine=machine, cores=2)
    Case(300, 200, 1000, layouts="nrn", result="f32").check(machine=machine, cores=2)


def test_a_loop_over_k() -> None:
    """More steps than are written out, the last ones of another size."""
    Case(64, 64, 16 * 401 + 3, layouts="rrr").check(cores=1, m=64, n=64, k=32)
    Case(64, 64, 16 * 401 + 3, layouts="nnn").check(cores=1, m=64, n=64, k=32)


@pytest.mark.parametrize(
    ("strategy", "result", "cores"), all_pairs(["os", "is", "ws"], ["f32", "f16"], [1, 5])
)
def test_tiles_that_do_not_divide(strategy: str, result: str, cores: int) -> None:
    """7 x 9 x 5 fractals in tiles of 3 x 4 x 2."""
    options = {"cores": cores, "matmul_strategy": strategy, "m": 48, "n": 64, "k": 32}
    Case(112, 144, 80, result=result).check(**options)
    Case(112, 144, 80, result=result, layouts="rrr", turned="ab").check(**options)


@pytest.mark.parametrize("strategy", ["os", "is", "ws"])
def test_batches(strategy: str) -> None:
    run = Case(40, 24, 64, batch=5).check(cores=4, matmul_strategy=strategy, core_choice="all")
    assert run.profile.blocks >= 3


@pytest.mark.parametrize("shape", [(0, 16, 16), (16, 0, 16), (16, 16, 0)], ids=str)
@pytest.mark.parametrize("layouts", ["nnn", "rrr"])
def test_empty(shape: tuple[int, int, int], layouts: str) -> None:
    """Without anything to sum up the result is zero."""
    Case(*shape, layouts=layouts).check()


@pytest.mark.parametrize(
    ("strategy", "m", "n", "k"),
    [("is", 64, 32, 64), ("is", 64, 128, 128), ("ws", 32, 64, 64), ("ws", 512, 64, 16)],
)
def test_elements_read(strategy: str, m: int, n: int, k: int) -> None:
    """Counted by the simulator: what stays is read once, the other at most once for each tile."""
    whole_m, whole_n, whole_k = 512, 384, 192
    case = Case(whole_m, whole_n, whole_k)
    run = case.check(cores=1, matmul_strategy=strategy, m=m, n=n, k=k)
    macs = whole_m * whole_n * whole_k
    formula = {
        "is": whole_m * whole_k + macs // m,
        "ws": whole_k * whole_n + macs // n,
    }[strategy]
    assert run.profile.gm_read_bytes <= 2 * formula
    assert run.profile.gm_write_bytes == 4 * whole_m * whole_n
    assert run.profile.macs == macs


def test_blocks() -> None:
    """Small products occupy the cores, too."""
    every = {"core_choice": "all"}
    assert Case(128, 768, 768).check(**every).profile.blocks >= 24
    assert Case(128, 768, 768, layouts="rrr").check(**every).profile.blocks >= 24
    assert Case(128, 128, 64, batch=40).check(**every).profile.blocks >= 20


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_random_schedules(seed: int) -> None:
    """Any legal schedule gives the same numbers (benchmarks/proofs/product_schedules.py)."""
    random = np.random.default_rng(seed)
    with drawn_schedules(random) as given:
        Case.drawn(random).check(cores=int(random.choice([1, 5, 32])))
    assert given


@pytest.mark.parametrize("way", range(3))
def test_k_back_and_forth_and_from_other_places(way: int) -> None:
    """Cores whose rows become fractals on their way to L1 take k as their schedule says."""
    random = np.random.default_rng(way)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((768, 1024), (1024, 96)))

    def chosen(product: Product, machine: Machine, cores: int, wanted: Wanted) -> ProductSchedule:
        best = choose(product, machine, cores, wanted)
        smaller = replace(
            best,
            share=replace(best.share, m=24, n=6),
            tile=Tile(8, 4, 6),
            part=(6, 8),
            turning=False,
            starts=1,
        )
        pieces = (replace(p, k=16, slots=2) for p in (smaller.a, smaller.b))
        (of_a, of_b) = pieces
        smaller = replace(
            smaller,
            a=replace(of_a, other=8, rows=8),
            b=replace(of_b, other=6, rows=16, together=16),
        )
        found = list(ways_along_k(product, smaller, several=True))[way]
        require_legal(product, found, machine)
        return found

    # Its cores do not meet.
    whole = patch.object(groups, "met_of", lambda *_: None)
    with patch.object(product_group, "choose", chosen), whole:
        made = davinci.compile(TEXT, machine="ascend910b", cores=2)
    (found,) = made.run(a, b).values()
    (kernel,) = made.profile["kernels"]
    assert ("back and forth" in kernel["schedule"]) == (way != 0)
    assert ("places on" in kernel["schedule"]) == (way != 1)
    np.testing.assert_allclose(found, np.float64(a) @ np.float64(b), rtol=2.0**-10, atol=0.05)


def test_strategy_without_a_legal_tile() -> None:
    """256 rows of A with all of k do not fit L1."""
    case = Case(256, 512, 4096)
    with pytest.raises(CompileError, match="no tile") as error:
        run_kernel(case.text(), case.inputs(), matmul_strategy="is", m=256)
    assert "matmul-strategy=os" in str(error.value)


def test_8_bit_operands_are_refused() -> None:
    text = """
    func.func @product(%a: memref<16x32xi8>, %b: memref<32x16xi8>, %c: memref<16x16xi32>)
        attributes {ascend.kernel, ascend.op = "matmul", ascend.unit = "cube"} {
      %x = bufferization.to_tensor %a restrict : memref<16x32xi8> to tensor<16x32xi8>
      %y = bufferization.to_tensor %b restrict : memref<32x16xi8> to tensor<32x16xi8>
      %z = "ascend.matmul"(%x, %y) : (tensor<16x32xi8>, tensor<32x16xi8>) -> tensor<16x16xi32>
      bufferization.materialize_in_destination %z in restrict writable %c
        : (tensor<16x16xi32>, memref<16x16xi32>) -> ()
      return
    }"""
    with pytest.raises(CompileError, match="load2d transposes 16-bit fractals only"):
        lowered_text(text, "convert-ascend-to-cce")


@pytest.mark.parametrize("layouts", ["nnn", "rrr"])
def test_without_any_one_pair_of_flags(layouts: str) -> None:
    """Removing one set_flag and one wait_flag of the same event, any of them, is a fault."""
    case = Case(96, 64, 64, layouts=layouts, result="f16")
    inputs = case.inputs()
    text = lowered_text(case.text(), "ascend-to-cce{cores=1 m=32 n=64 k=32}")
    lines = text.splitlines()
    flags: dict[str, dict[str, list[int]]] = {}
    for number, line in enumerate(lines):
        if found := FLAG.search(line):
            event = flags.setdefault(found[2], {"set_flag": [], "wait_flag": []})
            event[found[1]].append(number)
    pairs = [(s, w) for e in flags.values() for s in e["set_flag"] for w in e["wait_flag"]]
    assert len(pairs) > 10
    run_cce_text(text, inputs)
    for pair in pairs:
        broken = "\n".join(line for number, line in enumerate(lines) if number not in pair)
        with pytest.raises(DeviceFault):
            run_cce_text(broken, inputs)
            pytest.fail(f"nothing is found without lines {pair}:\n{text}")
