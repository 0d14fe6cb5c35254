"""Epilogues of products, as plain data."""

from __future__ import annotations

from davinci.operators.vector_program import Value, VectorProgram
from davinci.schedule.products.epilogue import Epilogue, Extra


def epilogue(activated: bool, divisor: float = 0.0, wide: bool = False) -> Epilogue:
    """A row is added, then perhaps a relu and a division by a number, and all is rounded."""
    program = VectorProgram()
    sums = program.input("f32")
    row = program.input("f32")
    made = program.add(sums, row)
    made = program.unary("vrelu", made) if activated else made
    made = program.div(made, divisor) if divisor else made
    program.output(program.convert(made, "f16"))
    if wide:
        program.output(made)
    return Epilogue.of(program, sums, [Extra(row, True, False)], True, cube=True)


def names(end: Epilogue) -> list[tuple[str, str]]:
    return [(step.name, step.result.dtype) for step in end.program.steps]


def test_roundings_come_before_a_relu() -> None:
    """So that the cube may add the row, and sums leave L0C as f16."""
    end = epilogue(activated=True)
    assert names(end) == [("vrelu", "f16")]
    assert end.columns == 1 and end.sums.dtype == "f16"


def test_a_relu_that_is_read_wide_stays() -> None:
    end = epilogue(activated=True, wide=True)
    assert names(end) == [("vadd", "f32"), ("vrelu", "f32"), ("vconv", "f16")]
    assert end.columns == 0


def test_quotients_that_are_rounded_are_products() -> None:
    end = epilogue(activated=False, divisor=9.0)
    assert names(end) == [("vadd", "f32"), ("vmuls", "f32"), ("vconv", "f16")]
    assert end.program.steps[1].scalar == 1 / 9 and not end.program.constants


def test_other_quotients_stay() -> None:
    end = epilogue(activated=False, divisor=9.0, wide=True)
    assert ("vdiv", "f32") in names(end)
    (number,) = end.program.constants.values()
    assert isinstance(number, Value)
