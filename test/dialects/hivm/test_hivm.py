"""The hivm dialect: every instruction goes through text; every constraint has an invalid case."""

from __future__ import annotations

from typing import Any

import pytest

from davinci.dialects.base import alike_once
from davinci.dialects.hivm import ops as hivm
from davinci.isa import BY_NAME, INSTRUCTIONS, Pipe, Space
from davinci.mlir import MLIRError, func, ir, make_context

PROGRAM = [record for record in INSTRUCTIONS.values() if record.name not in hivm.PSEUDO]
POINTERS = ", ".join(f"%{space.name} : !llvm.ptr<{space.value}>" for space in Space)


@pytest.fixture(scope="module")
def context() -> Any:
    return make_context()


def parse(context: Any, body: str) -> Any:
    """A function with a pointer into each memory, `%i : i64` and `%j : i32`, around `body`."""
    with context:
        return ir.Module.parse(
            f"func.func @f({POINTERS}, %i : i64, %j : i32) {{\n{body}\nreturn\n}}"
        )


def instruction(record: Any, dynamic: bool) -> Any:
    """Builds an instruction with its largest legal fields, as constants or operands."""
    arguments = [ir.Type.parse(f"!llvm.ptr<{o.space.value}>") for o in record.operands]
    fields: dict[str, Any] = {f.name: f.limit for f in record.fields}
    if record.timing == "flag":
        fields["dst_pipe"] = Pipe.V.value
    if record.name == "fixpipe":
        fields |= {"nz2nd": 0, "n_size": 4064}
    if record.name == "fixpipe_to_l1":
        fields |= {"n_size": 4064}
    if record.name == "fixpipe_to_ub":  # two halves of columns
        fields |= {"n_size": 4064}
    if {"src_stride", "unit_flag"} <= fields.keys():
        fields |= {"m_size": 65520, "src_stride": 65520}
    if record.name.endswith("_align"):
        fields["len_burst"] = 2097148
    for name in {"k_extension", "m_extension", "k_start", "m_start"} & fields.keys():
        fields[name] &= ~15
    arguments += [ir.IntegerType.get_signless(64)] * len(fields) if dynamic else []
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("f", (arguments, []))
        block = function.add_entry_block()
    with ir.InsertionPoint(block):
        values = list(block.arguments)
        addresses = values[: len(record.operands)]
        if dynamic:
            fields = dict(zip(fields, values[len(addresses) :], strict=True))
        hivm.build(record.name, record.type, addresses, fields)
        func.ReturnOp([])
    return module


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("record", PROGRAM, ids=lambda r: r.mnemonic)
def test_round_trip(context: Any, record: Any, dynamic: bool) -> None:
    with context, ir.Location.unknown():
        module = instruction(record, dynamic)
        module.operation.verify()
        text = str(module)
        assert str(ir.Module.parse(text)) == text
        assert f'"hivm.{record.name}"(' in text


@pytest.mark.parametrize("record", PROGRAM, ids=lambda r: r.mnemonic)
def test_illegal_fields_are_refused(context: Any, record: Any) -> None:
    with context, ir.Location.unknown():
        for field in record.fields:
            bad = [v for v in (field.minimum - 1, field.limit + 1) if -(2**63) <= v < 2**63]
            for value in bad if field.width < 64 else []:
                module = instruction(record, dynamic=False)
                op = module.body.operations[0].body.blocks[0].operations[0]
                i64 = ir.IntegerType.get_signless(64)
                op.attributes[field.name] = ir.IntegerAttr.get(i64, value)
                with pytest.raises(MLIRError) as caught:
                    module.operation.verify()
                expected = f"field {field.name} is out of range; found {value}; expected"
                assert expected in str(caught.value)
                assert f"{field.minimum}..{field.limit}" in str(caught.value)


def test_every_instruction_but_the_pseudo_ones_is_an_operation() -> None:
    assert set(hivm.OPERATIONS) == set(BY_NAME) - set(hivm.PSEUDO)


DUP = '"hivm.vector_dup"(%UB) {type = "f32", dst_blk_stride = 1, dst_rep_stride = 8, '
DUP_TYPE = "(!llvm.ptr<6>) -> ()"
FLAG = '"hivm.set_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        # C1
        (
            f"{DUP.replace('f32', 'bf16')} repeat = 1, value = 0}} : {DUP_TYPE}",
            "attribute type; found 'bf16'; expected 'f16', 'f32', 's16', 's32'",
        ),
        (
            '"hivm.vector_dup"(%UB) {repeat = 1} : (!llvm.ptr<6>) -> ()',
            "attribute type; found ''; expected 'f16', 'f32', 's16', 's32'",
        ),
        (FLAG.replace("{", '{type = "f32", '), "attribute type; found 'f32'; expected none"),
        (FLAG.replace("{", "{type = 3, "), "attribute type; found 3 : i64; expected a string"),
        # C2
        (
            f"{DUP} repeats = 1, value = 0}} : {DUP_TYPE}",
            "vector_dup.f32 has no field 'repeats'; did you mean 'repeat'?",
        ),
        (
            f'{DUP} dynamic = ["repeats"], value = 0}} : {DUP_TYPE}',
            "vector_dup.f32 has no field 'repeats'; did you mean 'repeat'?",
        ),
        (
            f'{DUP} dynamic = ["repeat", "repeat"], value = 0}} : {DUP_TYPE}',
            "attribute dynamic names a field twice; found 'repeat'",
        ),
        (
            f"{DUP} dynamic = [1], value = 0}} : {DUP_TYPE}",
            "attribute dynamic; found [1]; expected an array of field names",
        ),
        # C3
        (f"{DUP} value = 0}} : {DUP_TYPE}", "field repeat is missing; expected 0..255"),
        (
            f'{DUP} repeat = 1, dynamic = ["repeat"], value = 0}} : {DUP_TYPE}',
            "field repeat is given twice; found an attribute and an operand; expected one",
        ),
        (
            f"{DUP} repeat = 1 : i32, value = 0}} : {DUP_TYPE}",
            "field repeat; found 1 : i32; expected an i64 attribute",
        ),
        (
            f'{DUP} repeat = "x", value = 0}} : {DUP_TYPE}',
            'field repeat; found "x"; expected an i64 attribute',
        ),
        # C4
        (
            f"{DUP} repeat = 256, value = 0}} : {DUP_TYPE}",
            "field repeat is out of range; found 256; expected 0..255",
        ),
        (
            FLAG.replace("dst_pipe = 1", "dst_pipe = 4"),
            "a flag needs two pipes: found MTE2 twice, expected pipe_barrier inside one pipe",
        ),
        (
            "%c = arith.constant 300 : i64\n"
            f'{DUP} dynamic = ["repeat"], value = 0}} : (!llvm.ptr<6>, i64) -> ()'.replace(
                "(%UB)", "(%UB, %c)"
            ),
            "field repeat is out of range; found 300; expected 0..255",
        ),
        # C5
        (
            f'{DUP} dynamic = ["repeat"], value = 0}} : {DUP_TYPE}',
            "number of operands; found 1; expected 2 (dst, repeat)",
        ),
        (
            f"{DUP} repeat = 1, value = 0}} : {DUP_TYPE}".replace("(%UB)", "(%UB, %i)").replace(
                DUP_TYPE, "(!llvm.ptr<6>, i64) -> ()"
            ),
            "number of operands; found 2; expected 1 (dst)",
        ),
        # C6
        (
            f"{DUP} repeat = 1, value = 0}} : (!llvm.ptr<1>) -> ()".replace("%UB", "%GM"),
            "address dst; found !llvm.ptr<1> (GM); expected !llvm.ptr<6> (UB)",
        ),
        (
            f"{DUP} repeat = 1, value = 0}} : (i64) -> ()".replace("%UB", "%i"),
            "address dst; found i64; expected !llvm.ptr<6> (UB)",
        ),
        (
            f'{DUP} dynamic = ["repeat"], value = 0}} : (!llvm.ptr<6>, i32) -> ()'.replace(
                "(%UB)", "(%UB, %j)"
            ),
            "type of the dynamic field repeat; found i32; expected i64",
        ),
        # ld, st: C1, C2
        (
            '%v = "hivm.ld"(%L1) : (!llvm.ptr<2>) -> f32',
            "address; found !llvm.ptr<2> (L1); expected !llvm.ptr<1> (GM) or !llvm.ptr<6> (UB)",
        ),
        (
            '%v = "hivm.ld"(%GM) : (!llvm.ptr<1>) -> index',
            "type of the result; found index; expected i8, i16, i32, i64, f16, f32, f64",
        ),
        ('"hivm.st"(%L0C, %i) : (!llvm.ptr<5>, i64) -> ()', "address; found !llvm.ptr<5> (L0C)"),
        (
            '"hivm.st"(%GM, %UB) : (!llvm.ptr<1>, !llvm.ptr<6>) -> ()',
            "type of the value; found !llvm.ptr<6>",
        ),
        # get_block_idx, get_block_num, get_sub_block_idx: C1
        ('%v = "hivm.get_block_idx"() : () -> index', "type of the result; found index"),
        ('%v = "hivm.get_block_num"() : () -> i32', "type of the result; found i32; expected i64"),
        ('%v = "hivm.get_sub_block_idx"() : () -> i8', "type of the result; found i8"),
    ],
)
def test_invalid(context: Any, body: str, message: str) -> None:
    with pytest.raises(MLIRError) as caught:
        parse(context, body)
    assert message in str(caught.value)
    assert '"-":' in str(caught.value), "the location of the operation is not given"


def test_mixed_static_and_dynamic_fields(context: Any) -> None:
    body = f'{DUP} dynamic = ["value", "repeat"]}} : (!llvm.ptr<6>, i64, i64) -> ()'
    parse(context, body.replace("(%UB)", "(%UB, %i, %i)")).operation.verify()


def test_foreign_attributes_are_left_alone(context: Any) -> None:
    parse(context, FLAG.replace("{", '{my.note = "x", ')).operation.verify()


def test_fields_of_a_whole_word_may_have_the_sign_bit(context: Any) -> None:
    parse(context, '"hivm.set_vector_mask"() {low = -1, high = 0} : () -> ()')
    with context, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            op = hivm.build("set_vector_mask", "", [], {"low": 2**64 - 1, "high": 2**63})
        assert op.attributes["low"].value == -1
        assert op.attributes["high"].value == -(2**63)


@pytest.mark.parametrize(
    ("name", "dtype", "fields", "message"),
    [
        ("vaddd", "f32", {}, "no instruction 'vaddd' of type 'f32'"),
        ("vadd", "s8", {}, "no instruction 'vadd' of type 's8'"),
        ("pipe_barrier", "", {"pip": 1}, "found fields"),
    ],
)
def test_build_refuses_unknown_names(
    context: Any, name: str, dtype: str, fields: dict[str, int], message: str
) -> None:
    with context, ir.Location.unknown(), pytest.raises(ValueError, match=message):
        hivm.build(name, dtype, [], fields)


def test_what_is_alike_is_checked_once_and_nothing_else_left_out(context: Any) -> None:
    barrier = '"hivm.pipe_barrier"() {{pipe = {0} : i64}} : () -> ()'.format
    moved = '"hivm.pipe_barrier"(%{0}) {{dynamic = ["pipe"]}} : (i64) -> ()'.format
    constant = "%{0} = arith.constant {1} : i64".format
    good = [barrier(1), barrier(1), constant("c", 1), moved("c"), moved("i")]
    with context, alike_once():
        assert parse(context, "\n".join(good)).operation.verify()
        for bad in (barrier(99), constant("d", 99) + "\n" + moved("d")):
            for _ in range(2):
                with pytest.raises(MLIRError, match="out of range"):
                    parse(context, "\n".join([*good, bad]))
