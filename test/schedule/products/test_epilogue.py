"""Epilogues of products, as plain data."""

from __future__ import annotations

from davinci.operators.vector_program import Value, VectorProgram
from davinci.schedule.products.epilogue import Epilogue, Extra
from davinci.schedule.products.extras import added_by_cube


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
    (number,) = end.program.constants
    assert isinstance(number, Value)


def test_the_cube_adds_a_matrix_and_then_a_row() -> None:
    """Each addition takes the extra that it names, whichever of them is listed first."""
    program = VectorProgram()
    sums, row, matrix = program.input("f32"), program.input("f32"), program.input("f16")
    program.serving = (7,)
    both = program.add(sums, program.convert(matrix, "f32"))
    program.serving = (8,)
    program.output(program.convert(program.add(both, row), "f16"))
    extras = [Extra(row, True, False), Extra(matrix, False, False, finite=True)]
    found = added_by_cube(program, sums, extras, nz=True)
    assert found is not None
    left, marked = found
    assert [step.name for step in left.steps] == ["vconv"]
    assert [(x.column, x.matrix, x.members) for x in marked] == [
        (True, False, (8,)),
        (False, True, (7,)),
    ]


def residual(ratio: float, nz: bool = True) -> Epilogue:
    """Bytes times a number are added to sums, which become bytes."""
    program = VectorProgram()
    sums, given = program.input("f16"), program.input("s8")
    scaled = program.mul(program.convert(given, "f16"), ratio)
    program.output(program.convert(program.add(sums, scaled), "s8"))
    return Epilogue.of(program, sums, [Extra(given, False, False)], nz)


def rounded(pairs: bool) -> Epilogue:
    """Sums become bytes, and nothing else is done."""
    program = VectorProgram()
    sums = program.input("f16")
    program.output(program.convert(sums, "s8"))
    return Epilogue.of(program, sums, [], True, pairs=pairs)


def test_pairs_of_few_columns() -> None:
    end = residual(0.5)
    assert end.of_parts(4) is end
    assert names(end) == [("vconv", "f16"), ("vmuls", "f16"), ("vadd", "f16"), ("vconv", "s8")]


def test_rows_are_not_apart() -> None:
    end = residual(0.5, nz=False)
    assert end.of_parts(8) is end


def test_many_columns_lie_apart() -> None:
    """What is scaled is added to sums where they lie; a conversion walks columns."""
    end = residual(0.5).of_parts(8)
    assert names(end) == [("vconv", "f16"), ("vaxpy", "f16"), ("vconv", "s8")]
    added = end.program.steps[1]
    assert added.sources[0] == end.sums and added.scalar == 0.5
    assert added.result not in end.slots()
    assert end.of_column(3) == (3 * 16 + 2) * 16
    assert {end.lanes(value) for value in end.program.outputs} == {32}
    assert end.operands(end.program.steps[-1], 8, 3) == (
        [4, 48, 2, 16],
        [[2 * 800, 16, 800, 1], [2 * 800, 32, 16, 1]],
    )


def test_nothing_is_copied_where_columns_lie_apart() -> None:
    end = rounded(pairs=False)
    assert names(end) == [("vadds", "f16"), ("vconv", "s8")]
    assert names(end.of_parts(4)) == [("vconv", "s8")]
    assert end.of_parts(2) is end


def test_maxima_come_in_pairs() -> None:
    end = rounded(pairs=True)
    assert names(end) == [("vconv", "s8")] and end.lanes(end.sums) == 32


def test_sums_that_are_read_again_are_not_added_to() -> None:
    program = VectorProgram()
    sums, given = program.input("f16"), program.input("f16")
    made = program.add(sums, program.mul(given, 2.0))
    program.output(program.convert(program.max(made, sums), "s8"))
    end = Epilogue.of(program, sums, [Extra(given, False, False)], True)
    assert "vaxpy" not in [name for name, _ in names(end.of_parts(8))]
