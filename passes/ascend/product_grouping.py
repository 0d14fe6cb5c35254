"""Which operators share the kernel of a product: those that read its result, and casts before it.

A reduction over windows of images takes what follows it in the same way (`schedule.pools.pool`).

A product takes what follows it as long as that is elementwise, of its result's shape and layout,
and needs nothing that is computed from the result elsewhere (`schedule.products.group`). The
kernel's vector unit has little else to do, and the result crosses GM once.

What follows may also reduce rows of the result, as softmax and layer norm do, where one kernel is
estimated to take less time than two (`schedule.products.followed`): whole rows are then computed on
in front of memory (`schedule.products.row_work`), or by vector cores that stand beside the cube
cores (`schedule.products.behind`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS
from davinci.operators.tensors import ND
from davinci.passes.analysis.group_graph import graph_of
from davinci.passes.ascend.layout_support import last_makers
from davinci.passes.ascend.tensor_ops import (
    CARRIED,
    OF_WINDOWS,
    ON_CUBE,
    POOL,
    SCALED_ON_LEAVING,
    defining_op,
    full_value,
    is_elementwise,
    read_once,
    readers_of,
    users_of,
)
from davinci.schedule.graph import Graph
from davinci.schedule.pools.group import read_pool
from davinci.schedule.products.followed import pays, rows_pay
from davinci.schedule.products.group import ProductGroup, read_group
from davinci.schedule.vector.space import NoSpace

MOST_OUTPUTS = 2
"""Values that leave a kernel."""

REDUCE = "ascend.reduce"


def product_groups(block: ir.Block, fuse: bool, chip: Machine, cores: int) -> list[list[Op]]:
    """For each product with followers or casts that join it, the operators in their order.

    A product alone is lowered on buffers; what windows of images go into, which says more than they
    show, is a group also then, and without `fuse`.

    Args:
        chip: the machine. Where its cubes have cores of their own, these do little on the way: what
            else follows a product is done by vector cores beside them, where that pays.
        cores: of it.
    """
    places: dict[Op, int] = {op.operation: place for place, op in enumerate(block.operations)}
    products = last_makers(block, ON_CUBE)
    waits = _last_products(block)
    grown = _grown_apart if chip.split else _grown_together
    taken: dict[Op, list[Op]] = {}
    found: list[list[Op]] = []
    for op in places:
        width = tensor_of(op.operands[0].type).bytes_each if op.name in ON_CUBE else 0
        if width or op.name == POOL:
            group: list[Op] = [op]
            if fuse:
                growing = partial(_Growing, op, places, taken, products)
                group = grown(growing, waits, chip, cores)
            # What is a number everywhere must lie in GM: a kernel of its own takes it from there.
            lies = all(full_value(value) is None for value in op.operands)
            if len(group) > 1 or ((op.name in OF_WINDOWS or width == 1) and lies):
                found.append(group)
                taken |= dict.fromkeys(group, group)
    return found


def _last_products(block: ir.Block) -> dict[Op, int]:
    """The place of the last product, or kernel that is there already, that each operator of a block
    is or depends on; -1 of one that depends on none."""
    found: dict[Op, int] = {}
    for place, operation in enumerate(block.operations):
        op = operation.operation
        if op.name in ON_CUBE or op.name == "func.call":
            found[op] = place
            continue
        makers = (defining_op(operand) for operand in op.operands)
        found[op] = max((found[op] for op in makers if op is not None), default=-1)
    return found


def _grown_apart(
    growing: Callable[..., _Growing], waits: dict[Op, int], chip: Machine, cores: int
) -> list[Op]:
    """The largest group of a product that pays on a machine whose cubes have cores of their own:
    with reductions of its rows, with elementwise operators only, or with what its cube core does.

    Args:
        growing: makes a group that grows, given how it is read and whether it takes reductions in.
        waits: places of the last products that operators depend on.
    """
    machine = machines.for_cube(chip)
    whole = growing(partial(read_group, machine=machine), reduces=True)
    group = whole.grown()
    if whole.pays(waits, chip, cores):
        return group
    if any(op.name == REDUCE for op in group):
        plain = growing(partial(read_group, machine=machine))
        group = plain.grown()
        if plain.pays(waits, chip, cores):
            return group
    return growing(partial(_read_alone, machine=machine)).grown()


def _grown_together(
    growing: Callable[..., _Growing], waits: dict[Op, int], chip: Machine, cores: int
) -> list[Op]:
    """The group of a product on cores that have both units: with reductions of its rows where that
    pays, else with the elementwise operators that follow it.

    Args:
        growing, waits: as of `_grown_apart`.
    """
    group = growing(partial(read_group, machine=None)).grown()
    if any(op.name == POOL for op in group):
        return group
    whole = growing(partial(read_group, machine=chip), reduces=True)
    reduced = any(op.name == REDUCE for op in whole.grown())
    return whole.grown() if reduced and whole.pays_in_rows(group, waits, chip, cores) else group


def _readers(value: ir.Value) -> list[Op]:
    """Operators that read a value, in whichever shape, or made wider."""
    users = readers_of(value)
    passed = [user for user in users if user.name == "ascend.reshape" or is_widening(user)]
    others = [user for user in users if user not in passed]
    return [*others, *(other for user in passed for other in _readers(user.results[0]))]


def _read_alone(graph: Graph, machine: Machine | None) -> ProductGroup:
    """A group in which nothing follows the product on other cores.

    Raises:
        NoSpace: it is none.
    """
    found = read_group(graph, machine)
    if found.behind is not None:
        raise NoSpace("what follows a product on other cores")
    return found


class _Growing:
    """A group that takes in operators one after the other.

    Args:
        reduces: whether reductions are taken in; then one value more leaves the group as long as it
            grows: of a layer norm what it normalises, that less its mean, and the square.
    """

    def __init__(
        self,
        product: Op,
        places: dict[Op, int],
        taken: dict[Op, list[Op]],
        products: dict[Op, int],
        read: Callable[[Graph], object],
        reduces: bool = False,
    ) -> None:
        self._places, self._taken, self._products = places, taken, products
        self._first = places[product]
        self._apart = self._wholly_before()
        self._ops = [product]
        self._read = read_pool if product.name == POOL else read
        self._reduces = reduces
        for operand in product.operands:
            if is_rounding(operand) and operand.owner.operation not in taken:
                self._try([operand.owner.operation])

    def grown(self) -> list[Op]:
        """The operators, in the order of the block."""
        grown = True
        while grown:
            grown = any(self._try(joining) for joining in self._followers())
        for op in reversed(self._ops):
            if self._left_to_readers(op) or self._left_to_products(op):
                self._ops.remove(op)
        return self._ops

    def pays(self, waits: dict[Op, int], chip: Machine, cores: int) -> bool:
        """Whether the group takes less time than its product and what follows it apart, if the
        latter is work for other cores: a kernel that computes on with its results takes that in for
        little."""
        group = self._ops
        if len(group) == 1 or group[0].name == POOL:
            return True
        outputs = outputs_of(group)
        graph, _ = graph_of(group, outputs)
        found = read_group(graph, machines.for_cube(chip))
        if found.behind is None:
            return True
        if self._computed_on(outputs, waits):
            return False
        return pays(found, graph, chip, cores, self._takes_argument())

    def pays_in_rows(
        self, plain: Sequence[Op], waits: dict[Op, int], chip: Machine, cores: int
    ) -> bool:
        """Whether the group, which reduces rows of its product, takes less time than two kernels.

        Args:
            plain: operators of the first of these, the others are those of the second one.
        """
        if self._computed_on(outputs_of(self._ops), waits):
            return False
        rest = [op for op in self._ops if op not in plain]
        whole, first, second = (
            graph_of(ops, outputs_of(ops))[0] for ops in (self._ops, plain, rest)
        )
        return rows_pay(whole, first, second, chip, cores)

    def _computed_on(self, outputs: Sequence[ir.Value], waits: dict[Op, int]) -> bool:
        """Whether the results are left to a kernel of the vector unit: one that waits for no later
        product computes on with them, or there are too many of them."""
        readers = (user for value in outputs for user in _readers(value) if user not in self._ops)
        now = (user for user in readers if waits[user] <= self._first)
        computed = any(is_elementwise(user) or user.name == REDUCE for user in now)
        return computed or len(outputs) > MOST_OUTPUTS

    def _takes_argument(self) -> bool:
        """Whether what follows the product takes an argument as large as the product's result."""
        (product,) = (op for op in self._ops if op.name in ON_CUBE)
        size = tensor_of(product.results[0].type).count
        others = (op for op in self._ops if op != product and product not in users_of(op))
        operands = (value for op in others for value in op.operands)
        return any(
            isinstance(value.owner, ir.Block) and tensor_of(value.type).count >= size
            for value in operands
        )

    def _left_to_products(self, op: Op) -> bool:
        """Whether an operator makes wider numbers of what leaves the kernel anyway, for what later
        products take in: there fewer bytes come, and less is done in all."""
        source = narrow_behind(op)
        maker = None if source is None else defining_op(source)
        if maker is None or maker not in self._ops:
            return False
        readers = users_of(maker)
        leaves = any(user not in self._ops and narrow_behind(user) is None for user in readers)
        users = users_of(op)
        return (
            leaves
            and bool(users)
            and all(
                user not in self._ops
                and (narrow_behind(user) is not None or self._goes_with_later(user, op))
                for user in users
            )
        )

    def _goes_with_later(self, user: Op, op: Op) -> bool:
        """Whether an operator also reads what a later product has made."""
        others = [defining_op(v) for v in user.operands if v != op.results[0]]
        numbers = [self._products.get(other, -1) for other in others if other is not None]
        last = max(numbers, default=-1)
        return is_elementwise(user) and last > self._first

    def _followers(self) -> list[list[Op]]:
        """Users of the group's results, each with the broadcasts that it reads."""
        users = {user for op in self._ops for user in users_of(op) if self._is_candidate(user)}
        return [[*self._carried(user), user] for user in self._sorted(users)]

    def _is_candidate(self, op: Op) -> bool:
        if op not in self._places or op in self._ops or op in self._taken:
            return False
        if op.name == REDUCE:
            return self._reduces
        record = OPERATORS.get(op.name.removeprefix("ascend."))
        return op.name in ("ascend.reshape", *SCALED_ON_LEAVING) or (
            record is not None and record.elementwise
        )

    def _left_to_readers(self, op: Op) -> bool:
        """Whether nothing is gained by an operator: only reductions read its result, which compute
        it themselves, and what it is made of has fewer bytes or leaves the kernel anyway."""
        makers = (defining_op(value) for value in op.operands)
        inside = [maker for maker in makers if maker is not None and maker in self._ops]
        leave = all(any(user not in self._ops for user in users_of(source)) for source in inside)
        return (
            bool(inside)
            and (leave or is_widening(op))
            and all(user.name == REDUCE and user not in self._ops for user in users_of(op))
        )

    def _carried(self, user: Op) -> list[Op]:
        """Broadcasts, reshapes and what makes wider numbers that only `user` needs."""
        found: list[Op] = []
        waiting = [defining_op(value) for value in user.operands]
        while waiting:
            owner = waiting.pop()
            if owner is None or not (owner.name in CARRIED or widens(owner)):
                continue
            op = owner.operation
            if op in self._ops or op in self._taken:
                continue
            if all(reader in (user, *found) for reader in users_of(op)):
                found.append(op)
                waiting += [defining_op(value) for value in op.operands]
        return found

    def _try(self, joining: list[Op]) -> bool:
        """Takes operators in if one kernel can hold them and none waits for another one's result
        that waits for this kernel."""
        ops = self._sorted({*self._ops, *joining})
        if self._depends(ops):
            return False
        outputs = outputs_of(ops)
        if len(outputs) > MOST_OUTPUTS + self._reduces:
            return False
        try:
            self._read(graph_of(ops, outputs)[0])
        except NoSpace:
            return False
        self._ops = ops
        return True

    def _depends(self, ops: Sequence[Op]) -> bool:
        """Whether the group reads what is computed from its results outside of it."""
        inside, seen = set(ops), set()
        waiting = [
            producer
            for op in ops
            for value in op.operands
            if (producer := defining_op(value)) is not None and producer not in inside
        ]
        while waiting:
            op = waiting.pop()
            together = self._taken.get(op, [op])  # other groups run as a whole
            if op in seen or self._places.get(together[-1], 0) < self._apart:
                continue
            seen.update(together)
            for value in (value for member in together for value in member.operands):
                producer = defining_op(value)
                if producer in inside:
                    return True
                if producer is not None:
                    waiting.append(producer)
        return False

    def _wholly_before(self) -> int:
        """A place in the block in front of which nothing waits for the product: no other group has
        operators on both sides of it."""
        ends = [(self._places[ops[-1]], self._places[ops[0]]) for ops in self._taken.values()]
        found = self._first
        for last, first in sorted(set(ends), reverse=True):
            if last < found:
                break
            found = min(found, first)
        return found

    def _sorted(self, ops: set[Op]) -> list[Op]:
        return sorted(ops, key=self._places.__getitem__)


def is_widening(op: Op) -> bool:
    """Whether an operation is a cast of what has fewer bytes."""
    if op.name != "ascend.cast":
        return False
    source, made = (tensor_of(value.type) for value in (op.operands[0], op.results[0]))
    return source.bytes_each < made.bytes_each


def widens(op: Op) -> bool:
    """Whether an operator makes numbers of more bytes."""
    return narrow_behind(op) is not None


def narrow_behind(op: Op) -> ir.Value | None:
    """What an operator makes numbers of more bytes of; None if it does not."""
    return op.operands[0] if is_widening(op) else bytes_behind(op)


def bytes_behind(op: Op) -> ir.Value | None:
    """The bytes that an operator, and those in front of it, make wider numbers of, combined with
    nothing but numbers that are the same everywhere; None if it does not."""
    while is_elementwise(op):
        arrays = [value for value in op.operands if full_value(value) is None]
        if len(arrays) != 1 or tensor_of(op.results[0].type).bytes_each == 1:
            return None
        if tensor_of(arrays[0].type).element == "i8":
            return arrays[0]
        owner = defining_op(arrays[0])
        if owner is None:
            return None
        op = owner
    return None


def is_rounding(value: ir.Value) -> bool:
    """Whether a value is rows of f32 rounded to f16 for one user, and what makes those cannot round
    them: it would bring half the bytes."""
    op = defining_op(value)
    if op is None or op.name != "ascend.cast" or not read_once(value):
        return False
    source = tensor_of(op.operands[0].type)
    maker = defining_op(op.operands[0])
    while maker is not None and maker.name == "ascend.reshape":
        maker = defining_op(maker.operands[0])
    computed = maker is not None and is_elementwise(maker)
    return source.element == "f32" and source.layout == ND and not computed


def outputs_of(ops: Sequence[Op]) -> list[ir.Value]:
    """Results that operators outside need."""
    inside = set(ops)

    return [op.results[0] for op in ops if any(user not in inside for user in users_of(op))]
