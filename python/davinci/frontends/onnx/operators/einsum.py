"""Einsum: sums of products over named dimensions, pair by pair as products of matrices."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, broadcast

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

Labels = tuple[str, ...]
"""A name for each dimension: a letter, or `.0`, `.1` for those of an ellipsis, from the last."""


@operator("Einsum")
def lower_einsum(node: NodeCall) -> OnnxTensor:
    tensors = node.tensors()
    inputs, output = parse(node.attr("equation"), [t.rank for t in tensors])
    sizes = sizes_of(tensors, inputs)
    terms = [single(*diagonal(t, labels), sizes) for t, labels in zip(tensors, inputs, strict=True)]
    while len(terms) > 1:
        a, b, *rest = terms
        wanted = {*output, *(label for _, labels in rest for label in labels)}
        terms = [product(summed(*a, wanted | {*b[1]}), summed(*b, wanted | {*a[1]}), wanted), *rest]
    result, labels = summed(*terms[0], {*output})
    missing = [label for label in output if label not in labels]
    result = ops.expand_dims(result, range(len(missing)))
    labels = (*missing, *labels)
    result = ops.transpose(result, [labels.index(label) for label in output])
    return broadcast(result, [sizes[label] for label in output])


def parse(equation: str, ranks: list[int]) -> tuple[list[Labels], Labels]:
    """Labels of the operands and of the result; without `->` those that occur once, sorted."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise BadNode(f"equation {equation!r} has {len(terms)} terms for {len(ranks)} operands")
    inputs = [spelt_out(term, rank, equation) for term, rank in zip(terms, ranks, strict=True)]
    dots = max((sum(label[0] == "." for label in labels) for labels in inputs), default=0)
    ellipsis = tuple(f".{i}" for i in reversed(range(dots)))
    if arrow:
        head, found, tail = right.partition("...")
        output = (*head, *(ellipsis if found else ()), *tail)
    else:
        counts = Counter(label for labels in inputs for label in labels if label[0] != ".")
        output = (*ellipsis, *sorted(label for label, n in counts.items() if n == 1))
    unknown = [label for label in output if all(label not in labels for labels in inputs)]
    if unknown or len(set(output)) != len(output):
        raise BadNode(f"the result of equation {equation!r} names {unknown or 'a dimension twice'}")
    return inputs, output


def spelt_out(term: str, rank: int, equation: str) -> Labels:
    head, found, tail = term.partition("...")
    rest = rank - len(head) - len(tail)
    if rest < 0 or (rest and not found):
        raise BadNode(
            f"term {term!r} of equation {equation!r} does not fit an operand of rank {rank}"
        )
    return (*head, *(f".{i}" for i in reversed(range(rest))), *tail)


def sizes_of(tensors: list[OnnxTensor], inputs: list[Labels]) -> dict[str, int]:
    """Size of each dimension; one of size 1 is repeated to what others have."""
    sizes: dict[str, int] = {}
    for tensor, labels in zip(tensors, inputs, strict=True):
        for label, size in zip(labels, tensor.shape, strict=True):
            known = sizes.get(label, 1)
            if 1 not in (known, size) and known != size:
                raise BadNode(f"dimension {label!r} has sizes {known} and {size}")
            sizes[label] = size if known == 1 else known
    return sizes


def diagonal(x: OnnxTensor, labels: Labels) -> tuple[OnnxTensor, Labels]:
    """The diagonal of dimensions that share a label: every (n + 1)th element of n * n."""
    for label in labels:
        places = [i for i, other in enumerate(labels) if other == label]
        if len(places) == 1:
            continue
        first, second = places[:2]
        if x.shape[first] != x.shape[second]:
            raise BadNode(f"dimension {label!r} has sizes {x.shape[first]} and {x.shape[second]}")
        rest = [i for i in range(x.rank) if i not in (first, second)]
        n = x.shape[first]
        kept = [x.shape[i] for i in rest]
        flat = ops.reshape(ops.transpose(x, [*rest, first, second]), [*kept, n * n])
        taken = ops.cut_axis(flat, -1, 0, n * n, n + 1)
        return diagonal(taken, (*(labels[i] for i in rest), label))
    return x, labels


def single(x: OnnxTensor, labels: Labels, sizes: dict[str, int]) -> tuple[OnnxTensor, Labels]:
    """Without dimensions of size 1 that others repeat."""
    gone = [i for i, label in enumerate(labels) if x.shape[i] == 1 != sizes[label]]
    kept = tuple(label for i, label in enumerate(labels) if i not in gone)
    return ops.squeeze(x, gone), kept


def summed(x: OnnxTensor, labels: Labels, wanted: set[str]) -> tuple[OnnxTensor, Labels]:
    """Without the dimensions that nothing else has."""
    gone = [i for i, label in enumerate(labels) if label not in wanted]
    return ops.reduce("add", x, gone), tuple(label for label in labels if label in wanted)


def product(
    a: tuple[OnnxTensor, Labels], b: tuple[OnnxTensor, Labels], wanted: set[str]
) -> tuple[OnnxTensor, Labels]:
    """The product of two terms, summed over common dimensions that are not wanted any more."""
    (x, left), (y, right) = a, b
    common = [label for label in left if label in right]
    batch = [label for label in common if label in wanted]
    inner = [label for label in common if label not in wanted]
    made = ops.dot_general(
        x,
        y,
        ([left.index(n) for n in inner], [right.index(n) for n in inner]),
        ([left.index(n) for n in batch], [right.index(n) for n in batch]),
    )
    free = [n for n in (*left, *right) if n not in common]
    return made, (*batch, *free)
