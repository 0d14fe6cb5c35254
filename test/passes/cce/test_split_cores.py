"""Kernels of one program with work for cube and vector unit, on machines of both kinds: the numbers
of `split-cores`, and that what it makes is proven."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci.frontends import own_kernels
from davinci.mlir import ir, make_context, operations, symbol_name
from davinci.passes.cce.split_cores import SplitCoresPass
from davinci.passes.cce.unit_programs import UNSHARED
from fused_texts import FusedCase, attention, exponential_product, product_swish

EXAMPLE = Path(__file__).parents[3] / "examples" / "matmul_swish.mlir"
SPLIT = "ascend910b"
TOLERANCE = 4e-3
"""Weights of attention are f16, whose last bit at 1 is 1e-3, as are what they are computed of."""

CASES = {
    "swish": product_swish(),
    "swish of one tile": product_swish(rows=64, blocks=1),
    "swish of a tail alone": product_swish(rows=50, blocks=1),
    "swish, last rows in no whole fractal": product_swish(rows=242, blocks=3),
    "swish, one column of fractals": product_swish(rows=130, n=16, k=16, slots=3),
    "swish, more blocks than tiles": product_swish(rows=128, blocks=5),
    "exponentials": exponential_product(),
    "exponentials, one fractal": exponential_product(tiles=7, m=1, k=1, n=1, blocks=2),
    "attention": attention(),
    "attention, a row of fractals": attention(rows=1),
    "attention on cores": attention(tiles=7, rows=3, keys=2, depth=1, blocks=3),
}


def checked(case: FusedCase, machine: str) -> davinci.Executable:
    """The kernel, launched once, with what is proven of it."""
    program = own_kernels.alone(own_kernels.read(case.lines), make_context())
    return davinci.compile(program, machine=machine, check_launches=True)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("machine", ["ascend910", SPLIT])
def test_numbers(name: str, machine: str) -> None:
    """The same text on both kinds of machines; on the split one its cores are proven not to wait
    for each other forever, nor to race."""
    case = CASES[name]
    executable = checked(case, machine)
    (found,) = executable.run(*case.inputs).values()
    np.testing.assert_allclose(found, case.wanted, atol=TOLERANCE, rtol=TOLERANCE)
    (line,) = executable.details["checked_launches"]
    assert line.endswith(": proven")
    (launch,) = executable.launches
    assert launch.cores == launch.blocks * (3 if machine == SPLIT else 1)


def split(case: FusedCase) -> dict[str, object]:
    """Why vector cores share no work, by the names of the programs that are made."""
    module = own_kernels.alone(own_kernels.read(case.lines), make_context())
    with module.context, ir.Location.unknown():
        SplitCoresPass(machine=SPLIT).run(module.operation)
        assert module.operation.verify()
    made = [op for op in operations(module.operation, "func.func") if op.regions[0].blocks]
    return {symbol_name(op): UNSHARED in op.attributes for op in made}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_halved(name: str) -> None:
    found = split(CASES[name])
    assert any(key.endswith("_vector") for key in found)
    assert not any(found.values())


GATHER = """
      %flat = memref.cast %t_y : UB<64x16x4x1xf32> to UB<64x16x4x1xf32>
      %all = memref.collapse_shape %flat [[0, 1, 2, 3]] : UB<64x16x4x1xf32> into UB<4096xf32>
      %places = memref.alloc() : UB<4096xi32>
      %zero = arith.constant 0 : i32
      cce.vector_dup %zero, %places : i32, UB<4096xi32>
      %gathered = memref.alloc() : UB<4096xf32>
      cce.vgather %places, %all, %gathered : UB<4096xi32>, UB<4096xf32>, UB<4096xf32>
      cce.vadd %all, %gathered, %all : UB<4096xf32>, UB<4096xf32>, UB<4096xf32>
""".replace("64x16x4x1", "4x4x16x16")


SCALAR = """
      %first = memref.load %t_y[%c0, %c0, %c0, %c0] : UB<4x4x16x16xf32>
      cce.vadds %t_y, %first, %t_y : UB<4x4x16x16xf32>, f32, UB<4x4x16x16xf32>
"""


@pytest.mark.parametrize(("added", "unshared"), [(GATHER, False), (SCALAR, True)])
def test_one_element_of_all(added: str, unshared: bool) -> None:
    """The first exponent is added to all. Where a gather does that, both cores make all exponents,
    and each takes its half on from there; where the scalar unit loads it, one core does all."""
    case = product_swish(rows=64, blocks=1)
    line = next(row for row in case.lines.splitlines() if "cce.vexp" in row)
    text = case.lines.replace(line, added + line)
    x = logits(case)
    moved = FusedCase(text, case.inputs, x / (1 + np.exp(-(x + x[0, 0]))))
    assert split(moved)["product_swish_vector"] == unshared
    for machine in ("ascend910", SPLIT) if unshared else (SPLIT,):  # the 910 has no gather
        (found,) = checked(moved, machine).run(*case.inputs).values()
        np.testing.assert_allclose(found, moved.wanted, atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize(("machine", "cycles"), [("ascend910", 6465), (SPLIT, 5538)])
def test_example(machine: str, cycles: int) -> None:
    """The figures of docs/kernels.md."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((128, 64), (64, 128)))
    bias = random.standard_normal(128).astype(np.float32)
    kernel = davinci.kernel_from(EXAMPLE, machine=machine)
    x = a.astype(np.float32) @ b.astype(np.float32) + bias
    np.testing.assert_allclose(kernel(a, b, bias), x / (1 + np.exp(-x)), atol=1e-4)
    assert kernel.executable.profile["total_cycles"] == cycles


def logits(case: FusedCase) -> np.ndarray:
    """What the product of a case of `product_swish` gives: its factors come in fractals."""
    a, b = (x.transpose(1, 2, 0, 3).reshape(x.shape[1] * 16, -1) for x in case.inputs[:2])
    return np.asarray(a.astype(np.float32) @ b.astype(np.float32) + case.inputs[2])


def test_more_crossings_than_flags() -> None:
    crossing = "    cce.copy_l0c %c, %t : L0C<1x1x16x16xf32>, UB<1x1x16x16xf32>\n"
    text = f"""
func.func @many(%x: memref<1x1x16x16xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c = memref.alloc() : L0C<1x1x16x16xf32>
  %t = memref.alloc() : UB<1x1x16x16xf32>
  scf.for %i = %c0 to %c8 step %c1 {{
{crossing * 8}    cce.copy %t, %x : UB<1x1x16x16xf32>, memref<1x1x16x16xf32>
  }}
  return
}}"""
    with pytest.raises(davinci.CompileError, match=r"8 operations by which tiles cross.*15 flags"):
        _ = davinci.kernel_from(text, machine=SPLIT).executable
