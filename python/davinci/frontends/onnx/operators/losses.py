"""Losses, and what trains: dropout and the steps of optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.operators.normalization import log_softmax, per_channel
from davinci.frontends.onnx.tensor import OnnxTensor, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

TRAINING = "ai.onnx.preview.training"


@operator("NegativeLogLikelihoodLoss")
def lower_likelihood_loss(node: NodeCall) -> OnnxTensor:
    return _likelihood_loss(node, node.take(0))


@operator("SoftmaxCrossEntropyLoss")
def lower_cross_entropy_loss(node: NodeCall) -> tuple[OnnxTensor, ...]:
    likelihood = log_softmax(node.take(0), 1)
    loss = _likelihood_loss(node, likelihood)
    return (loss, likelihood) if node.wants(1) else (loss,)


def _likelihood_loss(node: NodeCall, likelihood: OnnxTensor) -> OnnxTensor:
    """-likelihood[n, target[n, ..], ..] * weight[target[n, ..]], reduced.

    The class is chosen by comparing all, since a mask is what the vector unit is good at.
    """
    labels, weight = ops.expand_dims(node.take(1), [1]), node.optional(2)
    ignored, reduction = node.attr("ignore_index"), node.attr("reduction")
    classes = ops.iota(labels.dtype, likelihood.shape, 1)
    chosen = ops.compare("EQ", classes, labels)
    if ignored is not None:
        chosen = chosen & ops.compare("NE", labels, ignored)
    factor = per_channel(weight, likelihood.rank) if weight is not None else None
    weighted = likelihood if factor is None else likelihood * factor
    loss = -ops.reduce("add", ops.where(chosen, weighted, 0), [1])
    if reduction == "none":
        return loss
    everything = list(range(loss.rank))
    total = ops.reduce("add", loss, everything)
    if reduction == "sum":
        return total
    if factor is None and ignored is None:
        return total / loss.count
    one = ops.full((), likelihood.dtype, 1)
    weights = ops.where(chosen, one if factor is None else factor, 0)
    return total / ops.reduce("add", weights, [0, *range(1, likelihood.rank)])


@operator("Dropout")
def lower_dropout(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """The input; in training only where nothing is dropped."""
    node.ignore("consumed_inputs", "seed")
    x = node.take(0)
    if node.version < 7 and not node.attr("is_test"):
        node.refuse("dropout draws random numbers in training", "is_test 1")
    node.ignore("ratio", 1)
    if node.version >= 12 and node.known(2) and (not node.has(1) or node.known(1)):
        node.refuse("dropout draws random numbers in training", "training_mode false, or ratio 0")
    if not node.wants(1):
        return (x,)
    return x, ops.full(x.shape, x.dtype if node.version < 10 else np.bool_, 1)


RANDOM = (
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"),
    *("RandomUniform", "RandomUniformLike"),
)


@operator(*RANDOM)
def lower_random(node: NodeCall) -> OnnxTensor:
    node.refuse("random numbers, which no other run would reproduce", "numbers as an input")


# Steps of optimizers: learning rate, number of steps, then tensors, gradients and states in turn.


def _groups(node: NodeCall, kinds: int) -> tuple[OnnxTensor, OnnxTensor, list[list[OnnxTensor]]]:
    """Learning rate, steps, and for each optimized tensor one operand of each kind."""
    rate, steps, values = node.take(0), node.take(1), node.tensors(2)
    count = len(values) // kinds
    return rate, steps, [values[i::count] for i in range(count)]


def _by_kind(groups: list[tuple[OnnxTensor, ...]]) -> tuple[OnnxTensor, ...]:
    """Results of all tensors, sorted by kind."""
    return tuple(value for kind in zip(*groups, strict=True) for value in kind)


@operator("Adagrad", domain=TRAINING)
def lower_adagrad(node: NodeCall) -> tuple[OnnxTensor, ...]:
    rate, steps, groups = _groups(node, 3)
    decay, norm = node.attr("decay_factor"), node.attr("norm_coefficient")
    epsilon = node.attr("epsilon")
    step = rate / (1 + convert(steps, rate.dtype) * decay)

    def updated(x: OnnxTensor, gradient: OnnxTensor, squares: OnnxTensor) -> tuple[OnnxTensor, ...]:
        slope = norm * x + gradient
        summed = squares + slope * slope
        return x - step * slope / (ops.sqrt(summed) + epsilon), summed

    return _by_kind([updated(*group) for group in groups])


@operator("Momentum", domain=TRAINING)
def lower_momentum(node: NodeCall) -> tuple[OnnxTensor, ...]:
    rate, steps, groups = _groups(node, 3)
    alpha, beta, norm = node.attr("alpha"), node.attr("beta"), node.attr("norm_coefficient")
    mode = node.attr("mode")
    if mode not in ("standard", "nesterov"):
        node.refuse(f"mode {mode!r}", "standard or nesterov")
    later = ops.where(ops.compare("GT", steps, 0), ops.full((), rate.dtype, beta), 1)

    def updated(x: OnnxTensor, gradient: OnnxTensor, speed: OnnxTensor) -> tuple[OnnxTensor, ...]:
        slope = norm * x + gradient
        faster = alpha * speed + later * slope
        return x - rate * (slope + alpha * faster if mode == "nesterov" else faster), faster

    return _by_kind([updated(*group) for group in groups])


@operator("Adam", domain=TRAINING)
def lower_adam(node: NodeCall) -> tuple[OnnxTensor, ...]:
    rate, steps, groups = _groups(node, 4)
    alpha, beta, epsilon = node.attr("alpha"), node.attr("beta"), node.attr("epsilon")
    norm, norm_post = node.attr("norm_coefficient"), node.attr("norm_coefficient_post")
    count = convert(steps, rate.dtype)

    def decayed(factor: float) -> OnnxTensor:
        return ops.power(ops.full((), rate.dtype, factor), count)

    corrected = rate * ops.sqrt(1 - decayed(beta)) / (1 - decayed(alpha))
    step = ops.where(ops.compare("GT", steps, 0), corrected, rate)

    def updated(
        x: OnnxTensor, gradient: OnnxTensor, mean: OnnxTensor, square: OnnxTensor
    ) -> tuple[OnnxTensor, ...]:
        slope = norm * x + gradient
        mean = alpha * mean + (1 - alpha) * slope
        square = beta * square + (1 - beta) * (slope * slope)
        moved = x - step * mean / (ops.sqrt(square) + epsilon)
        return (1 - norm_post) * moved, mean, square

    return _by_kind([updated(*group) for group in groups])
