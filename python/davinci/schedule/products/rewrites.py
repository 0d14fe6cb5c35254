"""Rewrites of programs for parts of C, into cheaper ones that do the same."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from davinci.operators.vector_program import TileStep, Value, VectorProgram, joined

UNCHANGED = -0.0
"""What changes no number by addition."""

BYTE = "s8"


def is_rounding(step: TileStep) -> bool:
    conversion = (step.name, step.sources[0].dtype, step.result.dtype)
    return conversion == ("vconv", "f32", "f16") and step.attributes.get("round") in (None, "none")


def is_widening(step: TileStep) -> bool:
    return (step.name, step.sources[0].dtype, step.result.dtype) == ("vconv", "f16", "f32")


def copied(source: Value, result: Value, members: tuple[int, ...] = ()) -> TileStep:
    """result = source."""
    if source.dtype in ("f16", "f32"):
        return TileStep("vadds", (source,), UNCHANGED, result, {}, members)
    return TileStep("vmax", (source, source), None, result, {}, members)


def in_pairs(program: VectorProgram, given: Sequence[Value]) -> VectorProgram:
    """The program with copies of what is given where bytes are made of it: the copies lie in pairs.

    vconv f16 -> s8, an output   ->   vadds f16, vconv f16 -> s8
    """
    numbers = itertools.count(1 + max((v.number for v in values_of(program)), default=0))
    steps = []
    for step in program.steps:
        leaves = step.result.dtype == BYTE and step.result in program.outputs
        if leaves and step.sources[0] in given:
            copy = Value(next(numbers), step.sources[0].dtype)
            steps.append(copied(step.sources[0], copy, step.members))
            step = with_source(step, step.sources[0], copy)
        steps.append(step)
    return replace(program, steps=steps)


MONOTONE = frozenset({"vrelu"})
"""Steps that give the same of rounded numbers as rounding gives of their results."""


def rounded_early(program: VectorProgram) -> VectorProgram:
    """The program with roundings in front of what may as well be done to rounded numbers.

    vrelu f32, vconv f32 -> f16   ->   vconv f32 -> f16, vrelu f16
    """
    steps, made = list(program.steps), {step.result: step for step in program.steps}
    uses = Counter(value for step in steps for value in step.sources)
    uses.update(program.outputs)
    numbers = itertools.count(1 + max(value.number for value in values_of(program)))
    for rounding in filter(is_rounding, program.steps):
        before = made.get(rounding.sources[0])
        if before is None or before.name not in MONOTONE or uses[before.result] > 1:
            continue
        half = Value(next(numbers), rounding.result.dtype)
        steps[steps.index(before)] = replace(rounding, sources=before.sources, result=half)
        steps[steps.index(rounding)] = replace(before, sources=(half,), result=rounding.result)
    return replace(program, steps=steps)


def inverted(program: VectorProgram) -> VectorProgram:
    """The program with products for quotients by a number that are rounded to f16 and nothing else.

    vdiv f32 by n, vconv f32 -> f16   ->   vmuls f32 by 1 / n, vconv f32 -> f16

    A product is an ulp of f32 off at most, a thousandth of what rounding takes.
    """
    rounded = {step.sources[0] for step in program.steps if is_rounding(step)}
    uses = Counter(value for step in program.steps for value in step.sources)
    uses.update(program.outputs)

    def cheaper(step: TileStep) -> TileStep:
        legal = step.name == "vdiv" and step.result in rounded and uses[step.result] == 1
        if not legal or (number := program.constants.get(step.sources[1], 0.0)) == 0:
            return step
        return replace(step, name="vmuls", sources=step.sources[:1], scalar=1 / number)

    steps = [cheaper(step) for step in program.steps]
    read = {value for step in steps for value in step.sources}
    constants = {value: number for value, number in program.constants.items() if value in read}
    return replace(program, steps=steps, constants=constants)


def multiply_added(program: VectorProgram, kept: Collection[Value]) -> VectorProgram:
    """The program with products by a number that are added to what is read no more added there.

    t = vmuls x by n, r = vadd t, y   ->   r = vaxpy y, x by n, in the place of y

    Args:
        kept: values that are not written over.
    """
    held = {*kept, *program.outputs, *program.constants}
    steps = list(program.steps)
    for place, added in enumerate(program.steps):
        if added.name != "vadd" or added.result in program.outputs:
            continue
        for product, other in (added.sources, added.sources[::-1]):
            made = next((step for step in steps if step.result == product), None)
            if made is None or made.name != "vmuls" or made.sources[0] == other:
                continue
            read_again = any(other in step.sources for step in program.steps[place + 1 :])
            if other in held or read_again or only_user(product, program) is None:
                continue
            steps[steps.index(added)] = replace(
                added,
                name="vaxpy",
                sources=(other, *made.sources),
                scalar=made.scalar,
                members=joined(added.members, made.members),
            )
            steps.remove(made)
            break
    return replace(program, steps=steps)


def only_user(value: Value, program: VectorProgram) -> TileStep | None:
    """The step that reads a value, if nobody else needs it."""
    users = [step for step in program.steps for source in step.sources if source == value]
    return users[0] if len(users) == 1 and value not in program.outputs else None


def without(
    program: VectorProgram, steps: Sequence[TileStep], result: Value, instead: Value
) -> VectorProgram:
    """The program without steps, and one value instead of their result."""
    kept = [with_source(step, result, instead) for step in program.steps if step not in steps]
    outputs = [instead if value == result else value for value in program.outputs]
    return replace(program, steps=kept, outputs=outputs)


def begun(program: VectorProgram, step: TileStep) -> VectorProgram:
    """The program without a step that is applied to the sums of the product, its first input: the
    cube, or the way out of L0C, does that already, so what comes first is the step's result."""
    steps = [other for other in program.steps if other is not step]
    taken = joined(program.taken, step.members)
    return replace(program, steps=steps, inputs=[step.result, *program.inputs[1:]], taken=taken)


def values_of(program: VectorProgram) -> list[Value]:
    results = [step.result for step in program.steps]
    return [*program.inputs, *program.constants, *results]


def with_source(step: TileStep, old: Value, new: Value) -> TileStep:
    return replace(step, sources=tuple(new if v == old else v for v in step.sources))
