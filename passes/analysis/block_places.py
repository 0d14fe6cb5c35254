"""What each block of a kernel does to global memory, in order, without running the kernel.

The places of transfers are affine forms of the block's number, of loop variables and of what is
computed of them (`davinci.passes.analysis.accesses`), found once a kernel. For a block they are
evaluated: its number is known then, and loops are dimensions of strided boxes,

    copy y[32 * block + 4 * i] for i = 0 to 8    ->    of block 3: 96 + {0, 4, .., 28}

Where a place or a branch is not affine in the variable of a loop (quotients, minima, comparisons),
or where blocks wait for each other in a loop, its iterations are taken one by one. A place that
depends on data may be anywhere in its array, and then is not exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import space_name
from davinci.dialects.cce.effects import MEETINGS, effects_of
from davinci.errors import CompileError
from davinci.mlir import Op, ir, location_text
from davinci.passes.analysis.accesses import Accesses, Dims
from davinci.passes.analysis.affine import AffineForm, Forms
from davinci.passes.analysis.lifetimes import VIEWS

READ, WRITE, ADD, COUNT = ("reads", "writes", "adds to", "counts in")
"""Kinds of accesses to global memory, as messages name them."""

MOST_STEPS = 1 << 18
"""Most steps of a block, where iterations of loops are taken one by one."""

_WORD = (1 << 64) - 1

_COMPARE: Mapping[int, Callable[[int, int], bool]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
    6: lambda a, b: a & _WORD < b & _WORD,
    7: lambda a, b: a & _WORD <= b & _WORD,
    8: lambda a, b: a & _WORD > b & _WORD,
    9: lambda a, b: a & _WORD >= b & _WORD,
}
"""Comparisons by the number of the predicate of `arith.cmpi`."""

_FOLD: Mapping[str, Callable[..., int]] = {
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: (a & _WORD) // (b & _WORD),
    "arith.remui": lambda a, b: (a & _WORD) % (b & _WORD),
    "arith.ceildivui": lambda a, b: -(-(a & _WORD) // (b & _WORD)),
    "arith.minui": lambda a, b: min(a & _WORD, b & _WORD),
    "arith.maxui": lambda a, b: max(a & _WORD, b & _WORD),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b,
    "arith.shrui": lambda a, b: (a & _WORD) >> b,
    "arith.select": lambda condition, a, b: a if condition else b,
}
"""What operations on known numbers give."""

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.trunci", "arith.extsi", "arith.extui")


_FOLLOWED = VIEWS | {"memref.alloc", "memref.load", "memref.store", "scf.yield", "func.return"}
"""Operations without regions, besides those of arith, math and cce, whose effects are known."""


class NotProvable(Exception):
    """A kernel does something that cannot be followed without running it."""


@dataclass(frozen=True)
class GlobalAccess:
    """Bytes of global memory that a block touches between two of its meetings.

    Attributes:
        op: the operation that does.
        what: one of READ, WRITE, ADD and COUNT.
        memory: the array, an argument of the kernel.
        start: the first byte.
        dims: (count, stride in bytes), strides positive and larger than what is inside them.
        run: contiguous bytes.
        exact: whether all of the bytes are touched for certain.
    """

    op: Op
    what: str
    memory: ir.Value
    start: int
    dims: Dims
    run: int
    exact: bool


@dataclass(frozen=True)
class BlockMeeting:
    """A block says that it has come, and waits for others; or, if `reads`, looks at its counter.

    Attributes:
        op: `sync_cores`, `sync_and_copy` or `read_counter`.
        lines: the array of counters.
        number: that it posts and waits for, but for what it counts on from.
        relative: whether it counts on from its own counter, as `read_counter` found it; else from
            an argument of the kernel.
        own: lines in which it counts, and by how much that is higher than `number`.
        seen: lines that it waits for.
    """

    op: Op
    lines: ir.Value
    number: int
    relative: bool
    own: tuple[tuple[int, int], ...]
    seen: range
    reads: bool = False


BlockStep = GlobalAccess | BlockMeeting


@dataclass(frozen=True)
class _PlacedTransfer:
    """An operation's access to global memory, the block's number still a symbol."""

    op: Op
    what: str
    memory: ir.Value
    offset: AffineForm
    dims: Dims
    run: int


@dataclass(frozen=True)
class _Loop:
    op: Op
    body: list[_Node]
    meets: bool


@dataclass(frozen=True)
class _Branch:
    op: Op
    bodies: list[list[_Node]]
    meets: bool


_Node = _PlacedTransfer | _Loop | _Branch | Op


class _NeedsIterations(Exception):
    """Something is not affine in the variable of a loop."""

    def __init__(self, variable: ir.Value) -> None:
        super().__init__()
        self.variable = variable


class _DependsOnData(Exception):
    """A number is not known before the kernel runs."""


class KernelPlaces:
    """The accesses and meetings of a kernel.

    Attributes:
        meets: whether its blocks wait for each other.
        waits_first: whether all pipes have done their work before it does anything else.

    Raises:
        NotProvable: it has operations whose effects on other cores are not followed here.
    """

    def __init__(self, kernel: Op) -> None:
        self._forms = Forms()
        self._accesses = Accesses(self._forms, planned=False)
        block = kernel.regions[0].blocks[0]
        self._arguments = list(block.arguments)
        first = next((v.operation for v in block.operations if v.name.startswith("cce.")), None)
        self.waits_first = (
            first is not None
            and first.name == "cce.pipe_barrier"
            and attribute(first, "pipe") == "ALL"
        )
        self._body, self.meets = self._read(block)

    def argument(self, number: int) -> ir.Value:
        """An argument of the kernel."""
        return self._arguments[number]

    def _read(self, block: ir.Block) -> tuple[list[_Node], bool]:
        found: list[_Node] = []
        meets = False
        for view in block.operations:
            op = view.operation
            if op.name == "scf.for":
                self._forms.enter_loop(op)
                body, inside = self._read(op.regions[0].blocks[0])
                found += [_Loop(op, body, inside)] if body else []
                meets = meets or inside
            elif op.name == "scf.if":
                parts = [self._read(each.blocks[0]) for each in op.regions if len(each.blocks)]
                inside = any(each for _, each in parts)
                bodies = [body for body, _ in parts]
                found += [_Branch(op, bodies, inside)] if any(bodies) else []
                meets = meets or inside
            elif op.regions:
                raise NotProvable(f"{op.name} at {location_text(op.location)} is not followed")
            elif op.name in ("cce.set_core_flag", "cce.wait_core_flag"):
                raise NotProvable("its cores meet by flags")
            elif op.name in MEETINGS:
                found.append(op)
                meets = True
                if op.name == "cce.sync_and_copy":
                    found += self._transfers(op, READ, [op.operands[3]])
            else:
                found += self._transfers_of(op)
        return found, meets

    def _transfers_of(self, op: Op) -> Iterator[_PlacedTransfer]:
        if op.name not in _FOLLOWED and op.name.partition(".")[0] not in ("arith", "cce", "math"):
            raise NotProvable(f"{op.name} at {location_text(op.location)} is not followed")
        effects = effects_of(op)
        if effects is None:
            return
        yield from self._transfers(op, READ, effects.reads)
        yield from self._transfers(op, ADD if effects.adds else WRITE, effects.writes)

    def _transfers(
        self, op: Op, what: str, values: Sequence[ir.Value]
    ) -> Iterator[_PlacedTransfer]:
        for value in values:
            if space_name(value.type) != "GM":
                continue
            try:
                if op.name in ("memref.load", "memref.store"):
                    indices = list(op.operands)[1 if op.name == "memref.load" else 2 :]
                    access = self._accesses.of_element(value, indices, op)
                else:
                    access = self._accesses.of_view(value, op)
            except CompileError as error:
                raise NotProvable(str(error.message)) from None
            if isinstance(access.memory, str):
                raise NotProvable(f"it accesses {access.memory}, which is no argument")
            if access.run:
                yield _PlacedTransfer(
                    op, what, access.memory, access.offset, access.dims, access.run
                )

    def steps_of(
        self, block: int, blocks: int, arguments: Mapping[ir.Value, AffineForm] | None = None
    ) -> list[BlockStep]:
        """The accesses and meetings of a block, in the order in which it makes them.

        Args:
            block, blocks: its number, and how many there are.
            arguments: known scalar arguments of the kernel.

        Raises:
            NotProvable: how it meets others depends on data, or it takes more than MOST_STEPS.
        """
        values = _BlockValues(block, blocks, dict(arguments or {}))
        return _BlockWalk(values).walk(self._body, True)


@dataclass
class _BlockValues:
    """Numbers of a block as affine forms of those loop variables that are not known."""

    block: int
    blocks: int
    known: dict[ir.Value, AffineForm]
    _found: dict[ir.Value, AffineForm] = field(default_factory=dict)

    def with_variable(self, variable: ir.Value, form: AffineForm) -> _BlockValues:
        """The numbers of the block inside a loop whose variable is `form`."""
        return _BlockValues(self.block, self.blocks, {**self.known, variable: form})

    def of(self, value: ir.Value) -> AffineForm:
        """Raises `_NeedsIterations` or `_DependsOnData`."""
        if value in self.known:
            return self.known[value]
        if value not in self._found:
            self._found[value] = self._compute(value)
        return self._found[value]

    def form(self, form: AffineForm) -> AffineForm:
        """A form of SSA values, with these known."""
        found = AffineForm(form.constant)
        for value, coefficient in form.terms:
            found = found.plus(self.of(value).times(coefficient))
        return found

    def number(self, value: ir.Value) -> int:
        """A number that must be the same in all iterations of loops that are not unrolled."""
        return _constant(self.of(value))

    def _compute(self, value: ir.Value) -> AffineForm:
        if isinstance(value.owner, ir.Block):
            raise _DependsOnData
        op = value.owner
        if op.name == "cce.get_block_idx":
            return AffineForm(self.block)
        if op.name == "cce.get_block_num":
            return AffineForm(self.blocks)
        if op.name == "arith.constant":
            return AffineForm(int(ir.IntegerAttr(op.attributes["value"]).value))
        if op.name == "cce.read_counter":
            return AffineForm(0, ((value, 1),))
        if op.name in _CASTS:
            return self.of(op.operands[0])
        if op.name in ("arith.addi", "arith.subi"):
            left, right = (self.of(operand) for operand in op.operands)
            return left.plus(right.times(1 if op.name == "arith.addi" else -1))
        if op.name == "arith.muli":
            left, right = (self.of(operand) for operand in op.operands)
            if not right.terms:
                return left.times(right.constant)
            return right.times(_constant(left))
        if op.name == "arith.cmpi":
            numbers = [self.number(operand) for operand in op.operands]
            return AffineForm(int(_COMPARE[attribute(op, "predicate")](*numbers)))
        if op.name not in _FOLD:
            raise _DependsOnData
        return AffineForm(_FOLD[op.name](*(self.number(operand) for operand in op.operands)))


def _constant(form: AffineForm) -> int:
    for variable, _ in form.terms:
        if isinstance(variable.owner, ir.Block):
            raise _NeedsIterations(variable)
        raise _DependsOnData
    return form.constant


@dataclass
class _BlockWalk:
    """Follows a block through its kernel."""

    values: _BlockValues
    loops: dict[ir.Value, range] = field(default_factory=dict)

    def walk(self, nodes: Sequence[_Node], certain: bool) -> list[BlockStep]:
        found: list[BlockStep] = []
        for node in nodes:
            if isinstance(node, _PlacedTransfer):
                found.append(self._transfer(node, certain))
            elif isinstance(node, _Loop):
                found += self._loop(node, certain)
            elif isinstance(node, _Branch):
                found += self._branch(node, certain)
            else:
                found.append(self._meeting(node))
            if len(found) > MOST_STEPS:
                raise NotProvable(f"a block does more than {MOST_STEPS} steps")
        return found

    def _transfer(self, node: _PlacedTransfer, certain: bool) -> GlobalAccess:
        try:
            form = self.values.form(node.offset)
        except _DependsOnData:
            kind = node.memory.type
            size = math.prod(kind.shape) * kind.element_type.width // 8
            return GlobalAccess(node.op, node.what, node.memory, 0, (), size, False)
        start, dims = form.constant, list(node.dims)
        for variable, coefficient in form.terms:
            if variable not in self.loops:
                raise _NeedsIterations(variable)
            iterations = self.loops[variable]
            ends = iterations[0] * coefficient, iterations[-1] * coefficient
            start += min(ends)
            dims.append((len(iterations), abs(coefficient * iterations.step)))
        merged, run = merge_dims(dims, node.run)
        return GlobalAccess(node.op, node.what, node.memory, start, merged, run, certain)

    def _loop(self, node: _Loop, certain: bool) -> list[BlockStep]:
        variable = node.op.regions[0].blocks[0].arguments[0]
        try:
            start, stop, step = (self.values.number(each) for each in list(node.op.operands)[:3])
        except _DependsOnData:
            if node.meets:
                where = location_text(node.op.location)
                raise NotProvable(f"blocks meet in a loop that depends on data, {where}") from None
            return self.walk(node.body, False)
        iterations = range(start, stop, step)
        if not iterations:
            return []
        if not node.meets:
            values = self.values.with_variable(variable, AffineForm(0, ((variable, 1),)))
            inside = _BlockWalk(values, {**self.loops, variable: iterations})
            try:
                return inside.walk(node.body, certain)
            except _NeedsIterations as needed:
                if needed.variable != variable:
                    raise
        found: list[BlockStep] = []
        for number in iterations:
            values = self.values.with_variable(variable, AffineForm(number))
            found += _BlockWalk(values, self.loops).walk(node.body, certain)
            if len(found) > MOST_STEPS:
                raise NotProvable(f"a block does more than {MOST_STEPS} steps")
        return found

    def _branch(self, node: _Branch, certain: bool) -> list[BlockStep]:
        try:
            taken = bool(self.values.number(node.op.operands[0]))
        except _DependsOnData:
            if node.meets:
                where = location_text(node.op.location)
                raise NotProvable(f"blocks meet if data say so, {where}") from None
            return [step for body in node.bodies for step in self.walk(body, False)]
        if taken:
            return self.walk(node.bodies[0], certain)
        return self.walk(node.bodies[1], certain) if len(node.bodies) > 1 else []

    def _meeting(self, op: Op) -> BlockMeeting:
        lines = _lines_of(op.operands[0])
        own, early = attribute(op, "own", 0), attribute(op, "early")
        places = [(own, 0)] if early is None else [(early[0], early[1]), (own, 0)]
        counted = tuple((self.values.block + place, ahead) for place, ahead in places)
        first, count = attribute(op, "seen", (0, op.operands[0].type.shape[0]))
        seen = range(first, first + count)
        if op.name == "cce.read_counter":
            return BlockMeeting(op, lines, 0, True, counted, seen, reads=True)
        try:
            form = self.values.of(op.operands[1])
        except _DependsOnData:
            where = location_text(op.location)
            raise NotProvable(f"the number that blocks wait for is not known, {where}") from None
        if len(form.terms) != 1 or form.terms[0][1] != 1:
            where = location_text(op.location)
            raise NotProvable(f"the number of a meeting does not count on, {where}")
        ((base, _),) = form.terms
        relative = not isinstance(base.owner, ir.Block)
        return BlockMeeting(op, lines, form.constant, relative, counted, seen)


def _lines_of(value: ir.Value) -> ir.Value:
    """The array of counters, which is an argument as it is."""
    while not isinstance(value.owner, ir.Block):
        if value.owner.name != "memref.cast":
            raise NotProvable("counters are a part of an array")
        value = value.owner.operands[0]
    return value


def merge_dims(dims: Sequence[tuple[int, int]], run: int) -> tuple[Dims, int]:
    """Strided dimensions in order of their strides, those that leave no gaps part of the run."""
    merged: list[tuple[int, int]] = []
    for count, stride in sorted(dims, key=lambda each: each[1]):
        if count == 1 or not stride:
            continue
        if not merged and stride <= run:
            run += (count - 1) * stride
        elif merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * count, merged[-1][1])
        else:
            merged.append((count, stride))
    return tuple(merged), run
