"""What reports say of the kernel of a group: a name from what it holds, a label, and its work.

    reduce max, sub, exp, reduce add, div of [128, 512]     softmax
                                                            "softmax 128x512 f32"
    add, (operators of a normalisation, two vectors), cast  add_layer_norm
    matmul, scale, softmax, matmul                          attention
                                                            "attention 12x512x64 f16, 512 keys"
    matmul, add, gelu                                       matmul_add_gelu
                                                            "matmul 512x3072x768 f16, add gelu"

Models spell softmax and normalisations out; they are found by how the values depend on each other,
not by the order of operators. This is for names only: schedules are made from the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import tensor_of
from davinci.for_readers import for_readers
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS, Call
from davinci.operators.products import PRODUCTS
from davinci.operators.work import OperatorWork, traffic
from davinci.passes.ascend.kernel_facts import KernelFacts, by, facts_of, kernel_name
from davinci.passes.ascend.tensor_ops import ON_CUBE
from davinci.schedule.graph import Graph, Node, Operand

UNSEEN = frozenset(
    {"broadcast", "reshape", "cast", "relayout", "fractalize", "defractalize", "slice"}
)
"""Operators that a name leaves out, unless there is nothing else."""

NAMED = 4
"""Parts that a name has at most."""

MORE = ("and", "more")

ATTENTION = "attention"


@for_readers(lambda graph: ["group"])
def parts_of(graph: Graph) -> list[str]:
    """Names of what a group computes, each once, in order."""
    found = {id(member): ATTENTION for member in attention(graph)}
    for node in graph.nodes:
        for name, pattern in PATTERNS.items():
            members = pattern(graph, node)
            if members and not any(id(member) in found for member in members):
                found |= {id(member): name for member in members}
        if normalisation := scaled(graph, node, found):
            found[id(node)] = normalisation
    names = [
        found.get(id(node), kernel_name(node.name, graph.arrays[node.result]))
        for node in graph.nodes
    ]
    seen = [name for name in names if name not in UNSEEN] or names
    return list(dict.fromkeys(seen))


def scaled(graph: Graph, node: Node, found: Mapping[int, str]) -> str:
    """The normalisation whose result `node` scales by an input, or, scaled, adds one to; or none.

    Args:
        found: what operators belong to, by identity.
    """
    values = Values(graph)
    before = {"mul": ("mul", "div"), "add": ("mul",)}.get(node.name, ())
    sources = [values.source(value) for value in node.values]
    if len(sources) != 2 or None not in sources:
        return ""
    source = next((source for source in sources if source is not None), None)
    if source is None or source.name not in before:
        return ""
    name = found.get(id(source), "")
    return name if name.endswith("_norm") else ""


def shortened(parts: Sequence[str]) -> list[str]:
    """The parts of a name, or where they are more than `NAMED`, those that say most in their
    order."""
    if len(parts) <= NAMED:
        return list(parts)
    ranked = sorted(range(len(parts)), key=lambda i: (parts[i] not in TELLING, i))
    return [*(parts[i] for i in sorted(ranked[:NAMED])), *MORE]


ON_THE_WAY = frozenset({"ascend.add", "ascend.cast", "ascend.relu"})
"""What the vector unit need not do behind a product: the cube adds, copies out of L0C round."""


@for_readers(lambda ops, inputs, outputs, parts: KernelFacts(" ".join(parts), OperatorWork()))
def facts_of_group(
    ops: Sequence[Op], inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], parts: Sequence[str]
) -> KernelFacts:
    """Label and work of a group: the work of its operators, the traffic of what crosses its border.
    Of an input that operators only read in part (the table of a gather) no more than these do.

    Args:
        ops: its operations, in order.
        inputs, outputs: values that cross.
        parts: of its name.
    """
    known = [(op, facts_of(op.name.removeprefix("ascend."), call_of(op.opview))) for op in ops]
    if len(known) == 1:
        return known[0][1]
    call = Call(tuple(tensor_of(v.type) for v in inputs), tuple(tensor_of(v.type) for v in outputs))
    works = [facts.work for _, facts in known]
    bits = max((work.factor_bits for work in works if work.macs), default=16)
    macs = sum(work.macs for work in works)
    repeats = sum(
        facts.work.vector_repeats for op, facts in known if not (macs and op.name in ON_THE_WAY)
    )
    read, written = traffic(call)
    read -= sum(_unread(value, ops) for value in inputs)
    work = OperatorWork(macs, bits, repeats, read, written)
    products = [f.label for op, f in known if op.name in ON_CUBE]
    if ATTENTION in parts:
        products = [_attention_label([op for op in ops if op.name in ON_CUBE])]
    if products:
        others = [part for part in parts if part != ATTENTION and f"ascend.{part}" not in ON_CUBE]
        return KernelFacts(", ".join(filter(None, [*products, " ".join(shortened(others))])), work)
    result = call.outputs[-1]
    return KernelFacts(f"{' '.join(shortened(parts))} {by(result.shape)} {result.element}", work)


def _unread(value: ir.Value, ops: Sequence[Op]) -> int:
    """Bytes of an input that no operator reads."""
    size, needed = tensor_of(value.type).size_bytes, 0
    for op in ops:
        for number, operand in enumerate(op.operands):
            if operand == value:
                in_part = number == 0 and OPERATORS[op.name.removeprefix("ascend.")].reads_in_part
                needed += tensor_of(op.results[0].type).size_bytes if in_part else size
    return max(size - needed, 0) if needed else 0


def _attention_label(products: Sequence[Op]) -> str:
    """Shape of the result, type of the factors, and the keys."""
    queries = tensor_of(products[0].operands[0].type)
    scores, result = (tensor_of(op.results[0].type) for op in products)
    return f"{ATTENTION} {by(result.shape)} {queries.element}, {scores.shape[-1]} keys"


def attention(graph: Graph) -> list[Node]:
    """What leads to the second of two products, of which it takes the first."""
    products = [node for node in graph.nodes if node.name in PRODUCTS]
    if len(products) != 2:
        return []
    needed = {products[1].result}
    for node in reversed(graph.nodes):
        if node.result in needed:
            needed.update(node.values)
    if products[0].result not in needed:
        return []
    return [node for node in graph.nodes if node.result in needed]


def softmax(graph: Graph, node: Node) -> list[Node]:
    """`exp(z) / sum(exp(z))`, with z = x - max(x) if the maximum is here too; the quotient may be a
    product with 1 / sum(exp(z))."""
    values = Values(graph)
    if node.name not in ("div", "mul"):
        return []
    exp, total = (values.source(operand) for operand in node.operands)
    ending = [node]
    if node.name == "mul":
        ending += [total] if is_a(total, "div") else []
        total = values.source(ending[-1].operands[1])
    if not is_a(exp, "exp") or not is_reduce(total, "add"):
        return []
    if values.read_by(total) is not exp:
        return []
    difference = values.read_by(exp)
    if is_a(difference, "sub"):
        largest = values.source(difference.operands[1])
        if is_reduce(largest, "max"):
            return [*ending, exp, total, difference, largest]
    return [*ending, exp, total]


def layer_norm(graph: Graph, node: Node) -> list[Node]:
    """`d / sqrt(mean(d d) + epsilon)` with d = x - mean(x)."""
    return next((found for found, centred in normalised(graph, node) if centred), [])


def rms_norm(graph: Graph, node: Node) -> list[Node]:
    """`x / sqrt(mean(x x) + epsilon)`."""
    return next((found for found, centred in normalised(graph, node) if not centred), [])


def normalised(graph: Graph, node: Node) -> Iterator[tuple[list[Node], bool]]:
    """The operators of a normalisation that `node` ends, and whether it takes the mean off."""
    values = Values(graph)
    if node.name not in ("div", "mul"):
        return
    pairs = [node.operands] if node.name == "div" else [node.operands, node.operands[::-1]]
    for data, scale in pairs:
        deviation = values.chain(values.source(scale), ROOT)
        square = values.read_by(deviation[-1]) if deviation else None
        if not deviation or not is_a(square, "mul"):
            continue
        if square.operands[0] != square.operands[1] or square.operands[0] != data:
            continue
        found = [node, square, *deviation]
        centred = values.source(data)
        if is_a(centred, "sub"):
            mean = values.chain(values.source(centred.operands[1]), MEAN)
            if mean:
                yield [*found, centred, *mean], True
                continue
        yield found, False


ROOT = frozenset({"sqrt", "rsqrt", "add", "div", "mul", "rec"})
"""Operators between the sum of squares and the factor of a normalisation."""

MEAN = frozenset({"div", "mul"})
"""Operators between a sum and a mean."""


class Values:
    """What the values of a graph come from, broadcasts, reshapes and casts aside."""

    def __init__(self, graph: Graph) -> None:
        self._made = {node.result: node for node in graph.nodes}

    def source(self, value: Operand) -> Node | None:
        """The operator that computed a value; None if it is an input or a number."""
        node = self._made.get(value) if isinstance(value, int) else None
        while node is not None and node.name in UNSEEN:
            node = self._made.get(node.values[0]) if node.values else None
        return node

    def read_by(self, node: Node | None) -> Node | None:
        """The operator that computed the first array that `node` reads."""
        return self.source(node.values[0]) if node is not None and node.values else None

    def chain(self, node: Node | None, between: frozenset[str]) -> list[Node]:
        """From `node` back to a sum, over operators of one array; empty if there is none."""
        found: list[Node] = []
        while node is not None and node.name in between and len(node.values) == 1:
            found.append(node)
            node = self.read_by(node)
        return [*found, node] if node is not None and is_reduce(node, "add") else []


def is_a(node: Node | None, name: str) -> TypeGuard[Node]:
    return node is not None and node.name == name


def is_reduce(node: Node | None, kind: str) -> TypeGuard[Node]:
    return node is not None and node.name == "reduce" and node.attributes["kind"] == kind


PATTERNS: dict[str, Callable[[Graph, Node], list[Node]]] = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
}

TELLING = frozenset(
    {*PATTERNS, *PRODUCTS, ATTENTION, "conv", "gelu", "reduce", "gather", "transpose", "concat"}
)
"""Parts that say most of what a kernel is for."""
