"""The vector program of a loop's step in the form in which it is computed.

A step takes as long as its longest chain of instructions that wait for each other, and each of them
takes as long for the lanes of several gates as for those of one. Seven things shorten the chain:

    s = x + c,  z = -2 s     ->  y = -2 x,  z = y - 2 c          y before the product c is there
    z = y - c,  w = v - 2 d  ->  [z w] = [y v] + [c d] [-1 -2]   one vmla
    e = exp z,  f = exp w    ->  [e f] = exp [z w]
    q = 2 / d,  r = y (q - 1) -> z = 2 y,  r = z / d - y         y before d is there
    y = 1 / d,  z = 2 y       -> z = 2 / d,  y where it is subtracted is z / 2
    s' = f s + i (q - 1),  e = exp(-2 s')   ->  e = exp s' of a state s that is -2 times as large
    i = 1 / d,  f = 1 / e,  r = f s         ->  [i r] = [1 s] / [d e]
    t = a b,    r = t + u    ->  r = u + a b                     a vmadd or vmla

x is a slice, c and d are results of products of one left factor that are used alike: they lie
beside each other, and what is computed of them is one instruction as long as it is the same, or the
same with other numbers.

Whether results lie beside each other is a choice: all of them have to be there before the first
step on them begins.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from davinci.machine import Machine
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.loops.joined_results import join_results, steps_by_source
from davinci.schedule.loops.step_order import factors_first
from davinci.schedule.vector.multiply_adds import fuse_late_products
from davinci.schedule.vector.row_siblings import Beside
from davinci.schedule.vector.tile_program import TileProgram

if TYPE_CHECKING:
    from davinci.schedule.loops.group import LoopGroup, StepProduct


@dataclass(frozen=True)
class StepForm:
    """What the vector unit computes in a step.

    Attributes:
        rows: values that lie beside each other in one buffer.
        arrivals: products whose results come to the vector unit together, in the order in which
            they are multiplied.
        scaled: states that are kept as multiples of themselves, and by which number, a power of
            two.
    """

    program: TileProgram
    rows: tuple[Beside, ...]
    arrivals: tuple[tuple[StepProduct, ...], ...]
    scaled: Mapping[Value, float]


def step_form(group: LoopGroup, machine: Machine, joined: bool) -> StepForm:
    """The step of a loop in the form in which it is computed.

    Args:
        joined: whether results of products that are used alike lie beside each other.
    """
    program = group.program.copied()
    _scale_early(program, group, machine)
    scaled = scale_states(program, group.following)
    arrivals = [] if joined else [program.loads[product.c] for product in group.products]
    double_quotients(program, machine, arrivals)
    divide_factors(program, arrivals)
    rows: list[Beside] = []
    if joined:
        rows = join_results(program, group, machine)
    beside = {value for row in rows for value in row}
    multiply_numerators(program, beside | fixed_values(group, program))
    fuse_late_products(program, machine, beside | fixed_values(group, program))
    results = {program.loads[product.c] for product in group.products}
    factors = {program.stores[a] for a in group.lefts}
    program.steps = factors_first(program.steps, results, factors, program.together)
    used = {v for step in program.steps for v in step.sources} | set(program.stores.values())
    program.constants = {v: number for v, number in program.constants.items() if v in used}
    return StepForm(program, tuple(rows), tuple(_arrivals(group, rows)), scaled)


def fixed_values(group: LoopGroup, program: TileProgram) -> set[Value]:
    """The values of a program of a loop that are the same in all steps, but for those that a step
    computes another one in the place of."""
    fixed = {program.loads[n] for n in group.inputs("fixed")}
    fixed |= set(program.constants)
    added_to = {step.sources[0] for step in program.steps if step.accumulates}
    for step in program.steps:
        if fixed.issuperset(step.sources) and step.result not in added_to:
            fixed.add(step.result)
    return fixed


def _makers(program: TileProgram) -> dict[Value, TileStep]:
    """The step that computes each value."""
    return {step.result: step for step in program.steps}


def _scale_early(program: TileProgram, group: LoopGroup, machine: Machine) -> None:
    """Scales what is added to the result of a product before that is there, where the scale is a
    power of two, which loses no bit."""
    products = {program.loads[n] for n in group.inputs("product")}
    late = set(products)
    for step in program.steps:
        if not late.isdisjoint(step.sources):
            late.add(step.result)
    readers = steps_by_source(program)
    stored = set(program.stores.values())
    made = _makers(program)
    for step in list(program.steps):
        total = made.get(step.sources[0]) if step.name == "vmuls" else None
        if total is None or total.name != "vadd" or "vaxpy" not in machine.intrinsics:
            continue
        late_first = sorted(total.sources, key=lambda value: value not in products)
        c, x = late_first[0], late_first[-1]
        own = len(readers[total.result]) == 1 and total.result not in stored
        scale = step.scalar
        assert scale is not None, "vmuls has a scalar"
        if not own or not _is_power_of_two(scale) or c not in products or x in late:
            continue
        if {program.forms[c], program.forms[x]} != {program.forms[step.result]}:
            continue
        if step.result.dtype not in machine.intrinsics["vaxpy"] or x.dtype != step.result.dtype:
            continue
        scaled = program.made(x.dtype, program.forms[x])
        early = replace(total, name="vmuls", sources=(x,), scalar=scale, result=scaled)
        both = replace(step, name="vaxpy", sources=(scaled, c), scalar=scale)
        program.steps[program.steps.index(step)] = both
        program.steps[program.steps.index(total)] = early
    # What needs no product comes before what does.
    program.steps.sort(key=lambda step: not late.isdisjoint(step.sources))


def scale_states(program: TileProgram, following: Mapping[Value, Value]) -> dict[Value, float]:
    """Has states be multiples of themselves where the step reads them as such first, and computes
    them as s' = s f + a (q - 1), of a quotient q: their multiples, and by which number.

    Args:
        following: of each state the value that takes its place.
    """
    return {
        state: number
        for state, new in following.items()
        if (number := _scale_state(program, state, new)) is not None
    }


def _scale_state(program: TileProgram, state: Value, new: Value) -> float | None:
    """Keeps a state as its multiple by a power of two n, which is returned, where a step of this
    form reads its next value `new` only so; None, and nothing is changed, of other ones.

    s' = s f + a (q - 1) of q = c / d, read as n s', becomes t' = t f + a (n c / d - n) of t = n s.
    """
    readers, made = steps_by_source(program), _makers(program)
    multiple, kept = _only(readers, new), _only(readers, state)
    total = None if kept is None else _only(readers, kept.result)
    if multiple is None or kept is None or total is None or total.result != new:
        return None
    if (multiple.name, kept.name, total.name) != ("vmuls", "vmul", "vadd"):
        return None
    product = next((made[v] for v in total.sources if v in made and v != kept.result), None)
    if product is None or product.name != "vmul" or kept.sources.count(state) != 1:
        return None
    one_less = next((v for v in product.sources if _is_less(made.get(v))), None)
    found = None if one_less is None else _quotient_less_one(made, one_less)
    if found is None:
        return None
    less, quotient = found
    above, number = program.constants.get(quotient.sources[0]), multiple.scalar
    inner = (kept.result, product.result, less.result, quotient.result)
    stored = Counter(program.stores.values())
    lonely = all(len(readers[v]) == 1 and v not in stored for v in inner)
    once = stored[new] == 1 and multiple.result not in stored
    once = once and product.sources.count(less.result) == 1
    if not lonely or not once or above is None or number is None or not _is_power_of_two(number):
        return None
    larger = program.constant(quotient.result.dtype, above * number)
    steps = program.steps
    steps[steps.index(quotient)] = replace(quotient, sources=(larger, quotient.sources[1]))
    steps[steps.index(less)] = replace(less, scalar=-number)
    steps.remove(multiple)
    program.steps = [_reading(step, multiple.result, new) for step in steps]
    return number


def _depths(program: TileProgram, arrivals: Collection[Value] = ()) -> dict[Value, int]:
    """For each value, the number of steps in the longest chain of them that computes it.

    Args:
        arrivals: results of products that come one after the other, not together: the first step
            that reads one waits until those in front of it are done.
    """
    depths: dict[Value, int] = defaultdict(int)
    for step in program.steps:
        for value in step.sources:
            if value in arrivals and value not in depths:
                depths[value] = max(depths.values(), default=0)
        depths[step.result] = 1 + max((depths[v] for v in step.sources), default=0)
    return depths


def _only(readers: Mapping[Value, Sequence[TileStep]], value: Value) -> TileStep | None:
    """The only step that reads a value; None if there are none or more."""
    found = readers.get(value, ())
    return found[0] if len(found) == 1 else None


def _is_power_of_two(number: float) -> bool:
    """Whether multiplying by a number is exact, since it is a power of two."""
    return number != 0 and math.frexp(abs(number))[0] == 0.5


def _is_less(step: TileStep | None) -> bool:
    """Whether the operation that a value comes from, None if it has none, subtracts 1."""
    return step is not None and (step.name, step.scalar) == ("vadds", -1.0)


def _quotient_less_one(
    made: Mapping[Value, TileStep], value: Value
) -> tuple[TileStep, TileStep] | None:
    """The steps that compute a value as a quotient less 1: the subtraction and the division; None
    if it is something else."""
    less = made.get(value)
    quotient = made.get(less.sources[0]) if less is not None and _is_less(less) else None
    if less is None or quotient is None or quotient.name != "vdiv":
        return None
    return less, quotient


def _reading(step: TileStep, old: Value, new: Value) -> TileStep:
    """A step that reads another value in the place of one."""
    if old not in step.sources:
        return step
    return replace(step, sources=tuple(new if v == old else v for v in step.sources))


def double_quotients(
    program: TileProgram, machine: Machine, arrivals: Collection[Value] = ()
) -> None:
    """Has a quotient y = m / e that is only multiplied by n / d - 1 be n m / e: the product is that
    over d, less 1 / n of it. Where y takes fewer steps than d, its quotient waits for nothing.

    Args:
        arrivals: as of `_depths`.
    """
    for product in list(program.steps):
        readers, made = steps_by_source(program), _makers(program)
        places = {step.result: place for place, step in enumerate(program.steps)}
        if product.name != "vmul" or product.result.dtype not in machine.intrinsics.get(
            "vaxpy", ()
        ):
            continue
        if any(step.name in ("vadd", "vsub") for step in readers[product.result]):
            continue  # one instruction with the sum
        for value, y in (product.sources, product.sources[::-1]):
            found, factor = _quotient_less_one(made, value), made.get(y)
            if found is None or factor is None or factor.name not in ("vrec", "vdiv"):
                continue
            less, quotient = found
            n = program.constants.get(quotient.sources[0])
            m = 1.0 if factor.name == "vrec" else program.constants.get(factor.sources[0])
            inner = (y, value, quotient.result)
            stored = program.stores.values()
            lonely = all(len(readers[v]) == 1 and v not in stored for v in inner)
            places_of = {(program.forms[v], v in program.packed) for v in (*inner, product.result)}
            if n is None or m is None or not _is_power_of_two(n):
                continue
            depths = _depths(program, arrivals)
            early = depths[y] < depths[quotient.sources[1]]
            if not early or not lonely or len(places_of) > 1:
                continue
            number = program.constant(factor.result.dtype, n * m)
            numbers = replace(factor, name="vdiv", sources=(number, factor.sources[-1]))
            whole = replace(quotient, sources=(y, quotient.sources[1]))
            rest = replace(product, name="vaxpy", sources=(quotient.result, y), scalar=-1 / n)
            program.steps[places[y]] = numbers
            program.steps[places[quotient.result]] = whole
            program.steps[places[product.result]] = rest
            program.steps.remove(less)
            # The quotient may come before what it divides now.
            if places[y] > places[quotient.result]:
                program.steps.remove(whole)
                program.steps.insert(program.steps.index(rest), whole)
            break


def divide_factors(program: TileProgram, arrivals: Collection[Value] = ()) -> None:
    """Has products of a value with a reciprocal be quotients of the value, which is there before
    the divisor. A product that is added to something else than another product is one instruction
    with the sum, and stays.

    Args:
        arrivals: as of `_depths`.
    """
    for product in list(program.steps):
        if product.name != "vmul":
            continue
        readers, made = steps_by_source(program), _makers(program)
        depths = _depths(program, arrivals)
        total = _only(readers, product.result)
        if total is not None and total.name in ("vadd", "vsub"):
            others = [made.get(value) for value in total.sources if value != product.result]
            if not any(other is not None and other.name == "vmul" for other in others):
                continue
        for value, factor in (product.sources, product.sources[::-1]):
            quotient = made.get(value)
            if quotient is None or value in program.stores.values():
                continue
            *above, divisor = quotient.sources
            numbers = [program.constants.get(number) for number in above]
            if (quotient.name, numbers) not in (("vrec", []), ("vdiv", [1.0])):
                continue
            alike = {program.forms[v] for v in (factor, divisor, product.result)}
            early = depths.get(factor, 0) < depths.get(divisor, 0)
            if not early or len(readers[value]) > 1 or len(alike) > 1 or value == factor:
                continue
            whole = replace(quotient, name="vdiv", sources=(factor, divisor), result=product.result)
            program.steps[program.steps.index(quotient)] = whole
            program.steps.remove(product)
            break


def multiply_numerators(program: TileProgram, kept: Set[Value]) -> None:
    """Has products of a value with a quotient less one, tanh say, be quotients of multiples of the
    value, which are computed before the divisor is there. A product that is added to something is
    one instruction with the sum, and stays.

    Args:
        kept: values that stay as they are.
    """
    readers = steps_by_source(program)
    made = _makers(program)
    numbers = program.constants
    for product in list(program.steps):
        summed = any(step.name in ("vadd", "vsub") for step in readers[product.result])
        if product.name != "vmul" or summed or product.result in kept:
            continue
        for value, factor in (product.sources, product.sources[::-1]):
            found = _quotient_less_one(made, value)
            if found is None:
                continue
            less, quotient = found
            above = numbers.get(quotient.sources[0])
            own = all(len(readers[step.result]) == 1 for step in (less, quotient))
            alike = {program.forms[v] for v in (factor, quotient.result, product.result)}
            if above is None or not own or len(alike) > 1 or quotient.result in kept:
                continue
            divisor = made.get(quotient.sources[1])
            places = {step.result: place for place, step in enumerate(program.steps)}
            if divisor is None or places.get(factor, -1) >= places[divisor.result]:
                continue
            if less.result in program.stores.values() or quotient.result in program.stores.values():
                continue
            multiple = program.made(factor.dtype, program.forms[factor])
            early = replace(less, name="vmuls", sources=(factor,), scalar=above, result=multiple)
            whole = replace(quotient, sources=(multiple, divisor.result))
            rest = replace(product, name="vsub", sources=(quotient.result, factor))
            program.steps[places[quotient.result]] = whole
            program.steps[places[product.result]] = rest
            program.steps.remove(less)
            program.steps.insert(places[divisor.result], early)
            break


def _arrivals(group: LoopGroup, rows: Iterable[Beside]) -> Iterator[tuple[StepProduct, ...]]:
    """The products of a loop, those whose results lie beside each other together."""
    row_of = {value: row for row in rows for value in row}
    by_value = {group.program.loads[product.c]: product for product in group.products}
    done: set[Value] = set()
    for value, product in by_value.items():
        if value in done:
            continue
        row = row_of.get(value, (value,))
        done.update(row)
        yield tuple(by_value[other] for other in row) if len(row) > 1 else (product,)


def barriers_of(steps: Sequence[TileStep]) -> int:
    """How many barriers stand between steps, in front of each one that reads the result of another
    behind the last barrier; and one behind the last step."""
    count, fresh = 1, set[Value]()
    for step in steps:
        if not fresh.isdisjoint(step.sources):
            count, fresh = count + 1, set()
        fresh.add(step.result)
    return count
