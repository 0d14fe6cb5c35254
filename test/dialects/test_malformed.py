"""Malformed operations of the three dialects are one message with a place, never an exception.

Every operation is spoiled in all the ways of `malformed.variants`, of which a sample is tried; what
is still legal goes through the whole pipeline, in a kernel and in the host's function.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from davinci import diagnostics
from davinci.dialects.ascend import Ascend
from davinci.dialects.cce.ops import Cce
from davinci.dialects.hivm import ops as hivm
from davinci.frontends.marks import check_marks
from davinci.isa import BY_NAME
from davinci.mlir import ir, make_context
from davinci.operators import OPERATORS
from davinci.operators.constraints import integers_only
from davinci.passes.pipeline import runner
from legal_operations import ASCEND, CCE, memref, typed, ub
from malformed import Operation, variants

SAMPLE = 40
"""Variants of an operation that are parsed; a run over all of them takes two minutes."""

SCALAR = [
    Operation("hivm.ld", ("!llvm.ptr<1>",), ("f32",)),
    Operation("hivm.st", ("!llvm.ptr<1>", "f32")),
    *(Operation(f"hivm.get_{n}", (), ("i64",)) for n in ("block_idx", "block_num")),
    Operation("hivm.get_sub_block_idx", (), ("i64",)),
    *(
        Operation(f"cce.get_{n}", (), ("index",))
        for n in ("block_idx", "block_num", "sub_block_idx")
    ),
    Operation("cce.read_counter", (memref("4x8", "i32"), ub("5x8", "i32")), ("i32",)),
]


def instruction(name: str) -> Operation:
    """An instruction with its smallest fields and the first of its types."""
    record = next(iter(BY_NAME[name].values()))
    kind = {"type": f'"{record.type}"'} if record.type else {}
    fields = {f.name: f"{f.minimum} : i64" for f in record.fields}
    if record.timing == "flag":
        fields["dst_pipe"] = "1 : i64"  # another than src_pipe
    return Operation(
        f"hivm.{name}",
        tuple(f"!llvm.ptr<{operand.space.value}>" for operand in record.operands),
        (),
        {**kind, **fields},
    )


def pairs(attributes: str) -> dict[str, str]:
    """`a = 1, b` as a dictionary; values hold commas only inside brackets."""
    with make_context():
        parsed = ir.DictAttr(ir.Attribute.parse(f"{{{attributes.strip(' {}')}}}"))
        return {entry.name: str(entry.attr) for entry in parsed}


def tensor_operation(case: str) -> Operation:
    """`add(4xf32, 4xf32) -> 4xf32`; `~` before the arrow makes it the form on buffers."""
    head, result = (part.strip() for part in case.split("->"))
    name, rest = head.rstrip("~ ").split("(", 1)
    inside, attributes = rest.split(")", 1)
    kinds = [*filter(None, map(str.strip, inside.split(",")))]
    if head.endswith("~"):
        types = tuple(typed("memref", kind) for kind in [*kinds, result])
        return Operation(f"ascend.{name}", types, (), pairs(attributes))
    types = tuple(typed("tensor", kind) for kind in kinds)
    return Operation(f"ascend.{name}", types, (typed("tensor", result),), pairs(attributes))


def legal() -> list[Operation]:
    """One operation of each name and form, and with and without layouts."""
    spelt_out = {case.partition("(")[0] for case in ASCEND}
    plain = []
    for record in OPERATORS.values():
        kind = "4xi32" if integers_only in record.constraints else "4xf32"
        if record.elementwise and record.name not in spelt_out:
            operands = ", ".join([kind] * len(record.operands))
            plain.append(f"{record.name}({operands}) -> {kind}")
    found = [
        *(Operation(f"cce.{name}", tuple(types), (), pairs(text)) for name, types, text in CCE),
        *map(tensor_operation, [*ASCEND, *plain]),
        *map(instruction, hivm.OPERATIONS),
        *SCALAR,
    ]
    return list({name_of(op): op for op in found}.values())


def name_of(op: Operation) -> str:
    layout = "-layouts" if "ascend.layout" in "".join((*op.operands, *op.results)) else ""
    return f"{op.name}-{'tensors' if op.results else 'buffers'}{layout}"


LEGAL = legal()


def outcome(text: str, context: Any, pipeline: str = "") -> list[Any]:
    """The errors that npu-opt would print."""
    with context, ir.Location.unknown(), diagnostics.collected(context) as found:
        module = ir.Module.parse(text)
        check_marks(module)
        if pipeline:
            runner.run(module.operation, pipeline)
    return [d for d in found if d.severity == "error"]


@pytest.fixture(scope="module")
def context() -> Any:
    return make_context()


@pytest.mark.parametrize("op", LEGAL, ids=name_of)
def test_one_message_each(op: Operation, context: Any) -> None:
    texts = list(variants(op))
    chosen = random.Random(name_of(op)).sample(texts[1:], SAMPLE)
    for text in chosen:
        errors = outcome(text, context)
        assert len(errors) <= 1, text
        assert all(error.line for error in errors), f"{errors}\n{text}"
    assert outcome(texts[0], context) == []


@pytest.mark.parametrize("place", ["kernel", "host"])
@pytest.mark.parametrize("op", [op for op in LEGAL if "hivm" not in op.name], ids=name_of)
def test_lowering_ends_well_or_with_one_message(op: Operation, place: str) -> None:
    text = op.text()
    if place == "host":
        text = text.replace("@f", "@main").replace(" attributes {ascend.kernel}", "")
    assert len(outcome(text, make_context(), "builtin.module(npu-pipeline)")) <= 1


def test_every_operation_is_tried() -> None:
    names = {op.name for op in LEGAL}
    defined = {op.OPERATION_NAME for cls in (Ascend, Cce, hivm.Hivm) for op in cls.operations}
    assert defined == names
