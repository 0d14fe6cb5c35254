"""Products that are added to something become one instruction, which writes over an operand.

    t = vmuls x by n, r = vadd t, y     ->  r = vaxpy y, x by n      in the place of y
    t = vmuls x by n, r = vsub y, t     ->  r = vaxpy y, x by -n     in the place of y
    t = vmul a, b,    r = vadd t, y     ->  r = vmadd a, b, y        in the place of a, or of b
    t = vmul a, b,    r = vadds t by n  ->  r = vmadd a, b, n        likewise, n in a filled buffer
    t = vmul a, b,    r = vadd t, y     ->  r = vmla y, a, b         in the place of y

The unit rounds products before it adds, so results keep their bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import replace

from davinci.machine import Machine
from davinci.operators.vector_program import TileStep, Value, joined
from davinci.schedule.vector.tile_program import MOVED, REDUCE, VIEW, TileProgram


def fuse_multiply_adds(
    program: TileProgram, machine: Machine, kept: Set[Value] = frozenset()
) -> None:
    """Fuses the products and sums of a program whose steps are all elementwise.

    Reductions split a program into phases, in which values are made again, and steps that are done
    together have their operands beside each other: such programs are left as they are.

    Args:
        kept: values that are not written over, and whose steps stay as they are: what lies beside
            others in one buffer cannot lie where an operand does.
    """
    apart = any(step.name == REDUCE or step.name in MOVED for step in program.steps)
    if not apart and not program.together:
        _Fusion(program, machine, kept).run()


def fuse_late_products(program: TileProgram, machine: Machine, kept: Set[Value]) -> None:
    """Fuses the products and sums of a program that is one chain of steps: of two products the one
    that is made later, so that the other is there when its factors are.

    Args:
        kept: values that are not written over, and whose steps stay as they are.
    """
    _Fusion(program, machine, kept, late=True).run()


class _Fusion:
    """Goes through the steps in order.

    Attributes:
        written_over: operands in whose place a result is already made.
        readers: how often steps read each value.
        kept: values that are not written over.
        late: whether of two products the one that is made later is fused.
    """

    def __init__(
        self,
        program: TileProgram,
        machine: Machine,
        kept: Set[Value] = frozenset(),
        late: bool = False,
    ) -> None:
        self.program, self.machine, self.late, self.fixed = program, machine, late, kept
        self.written_over = {step.sources[0] for step in program.steps if step.accumulates}
        constants = program.constants
        self.readers = Counter(v for step in program.steps for v in step.sources)
        self.kept = {*program.inputs, *constants, *program.outputs, *program.stores.values()}
        self.kept |= kept
        views = (step for step in program.steps if step.name == VIEW)
        self.kept.update(value for step in views for value in (*step.sources, step.result))

    def run(self) -> None:
        """Puts a fused instruction in the place of each sum that has a way to become one, and takes
        out the product that it multiplies by itself."""
        place = 0
        while place < len(self.program.steps):
            step = self.program.steps[place]
            found = next(self._ways(step, place), None)
            if found is not None:
                product, fused = found
                self.program.steps[place] = fused
                self.program.steps.remove(product)
                self.written_over.add(fused.sources[0])
                place -= 1
            place += 1

    def _ways(self, step: TileStep, place: int) -> Iterator[tuple[TileStep, TileStep]]:
        """The product that a sum may be fused with and the step that both become, best first."""
        if step.name not in ("vadd", "vsub", "vadds") or step.result in self.fixed:
            return
        for product in self._products(step, place):
            members = joined(step.members, product.members)
            other: Value | None = None
            if step.name != "vadds":
                other = next((v for v in step.sources if v != product.result), None)
                if other is None:
                    continue
            forms = list(_forms(step, product, other))
            if self.late:  # what is there early is written over first: a state's place, say
                forms.sort(key=lambda form: form[0] == "vmadd")
            for name, sources, scalar in forms:
                if self._may_lie(name, sources, step.result, place):
                    if name == "vmadd" and len(sources) == 2:
                        assert step.scalar is not None, "a sum with a number has one"
                        number = self.program.constant(step.result.dtype, step.scalar)
                        sources = (*sources, number)
                    yield (
                        product,
                        replace(step, name=name, sources=sources, scalar=scalar, members=members),
                    )

    def _products(self, step: TileStep, place: int) -> Iterator[TileStep]:
        """Products that a step adds and nothing else reads."""
        candidates = step.sources[1:] if step.name == "vsub" else step.sources
        earlier = {other.result: other for other in self.program.steps[:place]}
        if self.late:
            order = {value: number for number, value in enumerate(earlier)}
            candidates = tuple(sorted(candidates, key=lambda v: -order.get(v, -1)))
        for value in candidates:
            if self.readers[value] != 1 or value in self.kept:
                continue
            made = earlier.get(value)
            if made is not None and made.name in ("vmul", "vmuls"):
                yield made

    def _may_lie(self, name: str, sources: tuple[Value, ...], result: Value, place: int) -> bool:
        """Whether the machine has the instruction, and its result may lie where the first source
        does: nothing reads that later, and no other source is written over before."""
        forms = self.program.forms
        into, *others = sources
        if result.dtype not in self.machine.intrinsics.get(name, ()):
            return False
        if into in self.kept or into in others or self.written_over.intersection(sources):
            return False
        if into.dtype != result.dtype or forms[into] != forms[result]:
            return False
        if (into in self.program.packed) != (result in self.program.packed):
            return False
        if any(into in other.sources for other in self.program.steps[place + 1 :]):
            return False
        # Steps of another form may be done for every tile, and this one once before them.
        readers = (other for other in self.program.steps if into in other.sources)
        return all(forms[other.result] == forms[into] for other in readers)


def _forms(
    step: TileStep, product: TileStep, other: Value | None
) -> Iterator[tuple[str, tuple[Value, ...], float | None]]:
    """Names, sources and scalars of instructions that are a product and a sum; of a number that is
    added to a product of two values the array that holds it is still missing."""
    if product.name == "vmuls":
        if other is not None and product.scalar is not None:
            number = -product.scalar if step.name == "vsub" else product.scalar
            yield "vaxpy", (other, *product.sources), number
        return
    if step.name == "vsub":
        return
    added = () if other is None else (other,)
    for a, b in (product.sources, product.sources[::-1]):
        yield "vmadd", (a, b, *added), None
    if other is not None:
        yield "vmla", (other, *product.sources), None
