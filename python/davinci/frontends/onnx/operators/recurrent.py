"""Recurrent layers: RNN, GRU and LSTM.

The product with the inputs is made for all steps at once; a step has the product with its state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.scan import scan
from davinci.frontends.onnx.tensor import Flowing, OnnxTensor, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

Activation = Callable[[OnnxTensor], OnnxTensor]
Cell = Callable[[list[OnnxTensor], OnnxTensor], list[OnnxTensor]]
"""From the states [batch, hidden] and the inputs' share of the gates [batch, gates * hidden] to the
next states, the first of which is the output."""

ACTIVATIONS: dict[str, tuple[float, float, Callable[[OnnxTensor, float, float], OnnxTensor]]] = {
    "relu": (0.0, 0.0, lambda x, a, b: ops.maximum(x, 0)),
    "tanh": (0.0, 0.0, lambda x, a, b: ops.tanh(x)),
    "sigmoid": (0.0, 0.0, lambda x, a, b: ops.sigmoid(x)),
    "affine": (1.0, 0.0, lambda x, a, b: x * a + b),
    "leakyrelu": (0.01, 0.0, lambda x, a, b: ops.where(ops.compare("GE", x, 0), x, x * a)),
    "thresholdedrelu": (1.0, 0.0, lambda x, a, b: ops.where(ops.compare("GT", x, a), x, 0)),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: ops.tanh(x * b) * a),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: ops.clip(x * a + b, 0, 1)),
    "elu": (1.0, 0.0, lambda x, a, b: ops.where(ops.compare("GE", x, 0), x, (ops.exp(x) - 1) * a)),
    "softsign": (0.0, 0.0, lambda x, a, b: x / (1 + ops.absolute(x))),
    "softplus": (0.0, 0.0, lambda x, a, b: ops.log(1 + ops.exp(x))),
}
"""Defaults of alpha and beta, and the function of x, alpha and beta."""

WITH_ALPHA = frozenset(
    {"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"}
)
WITH_BETA = frozenset({"affine", "scaledtanh", "hardsigmoid"})


class RecurrentLayer:
    """What the three layers have in common.

    Attributes:
        hidden: size of the state.
        directions: 1 or 2.
        clip: applied to what goes into an activation.
        apart: the first column of the gates whose bias of the state is not added to the inputs'; 0
            if there is none.
    """

    def __init__(self, node: NodeCall, gates: int, activations: Sequence[str]) -> None:
        self.node, self.gates, self.apart = node, gates, 0
        direction = node.attr("direction")
        self.backwards = {
            "forward": [False],
            "reverse": [True],
            "bidirectional": [False, True],
        }.get(direction) or node.refuse(f"direction {direction!r} is unknown")
        self.hidden = int(node.attr("hidden_size") or node.take(2).shape[-1])
        self._limit = node.attr("clip")
        self._activations = self._chosen(activations)

    def _chosen(self, default: Sequence[str]) -> list[list[Activation]]:
        """Activations by direction."""
        node, count = self.node, len(default)
        names = [str(name).lower() for name in node.attr("activations") or default]
        if len(names) != count * len(self.backwards):
            names = [name.lower() for name in default] * len(self.backwards)
        alphas, betas = (
            iter(node.attr("activation_alpha") or []),
            iter(node.attr("activation_beta") or []),
        )
        chosen: list[Activation] = []
        for name in names:
            if name not in ACTIVATIONS:
                node.refuse(f"activation {name!r} is unknown", ", ".join(ACTIVATIONS))
            alpha, beta, function = ACTIVATIONS[name]
            alpha = next(alphas, alpha) if name in WITH_ALPHA else alpha
            beta = next(betas, beta) if name in WITH_BETA else beta
            chosen.append(self._bound(function, alpha, beta))
        return [chosen[i : i + count] for i in range(0, len(chosen), count)]

    def _bound(
        self, function: Callable[[OnnxTensor, float, float], OnnxTensor], alpha: float, beta: float
    ) -> Activation:
        return lambda x: function(x, alpha, beta)

    def clipped(self, gate: OnnxTensor) -> OnnxTensor:
        """What goes into the activation of a gate; that of LSTM's memory is not clipped."""
        return gate if self._limit is None else ops.clip(gate, -self._limit, self._limit)

    def run(
        self,
        make_cell: Callable[[int, list[Activation]], Cell],
        states: Sequence[OnnxTensor | None],
    ) -> tuple[Flowing, ...]:
        """Y [steps, directions, batch, hidden] and the final states [directions, batch, hidden].

        Args:
            make_cell: the cell of a direction.
            states: initial ones [directions, batch, hidden], None for zeros.
        """
        node, swapped = self.node, bool(self.node.attr("layout"))
        x = ops.transpose(node.take(0), [1, 0, 2]) if swapped else node.take(0)
        shape = (x.shape[1], self.hidden)
        outputs, finals = [], []
        for direction, backwards in enumerate(self.backwards):
            start = [self._start(s, direction, shape, x, swapped) for s in states]
            cell = make_cell(direction, self._activations[direction])
            gates = self._projected(x, direction)
            final, (y,) = self._scanned(cell, start, gates, backwards)
            outputs.append(y)
            finals.append(final)
        y = ops.stack(outputs, 1)
        last = [ops.stack(parts, 1 if swapped else 0) for parts in zip(*finals, strict=True)]
        return (ops.transpose(y, [2, 0, 1, 3]) if swapped else y, *last)

    def _start(
        self,
        state: OnnxTensor | None,
        direction: int,
        shape: tuple[int, int],
        x: OnnxTensor,
        swapped: bool,
    ) -> OnnxTensor:
        if state is None:
            return ops.full(shape, x.dtype, 0)
        return ops.unstack(state, 1 if swapped else 0)[direction]

    def _projected(self, x: OnnxTensor, direction: int) -> OnnxTensor:
        """[steps, batch, gates * hidden]: the inputs' share of the gates, with its bias."""
        weights = ops.unstack(self.node.take(1), 0)[direction]
        steps, batch, size = x.shape
        rows = ops.reshape(x, [steps * batch, size])
        gates = ops.matmul(rows, ops.transpose(weights, [1, 0]))
        bias = self.bias(direction)
        if bias is not None:
            gates = gates + bias
        return ops.reshape(gates, [steps, batch, gates.shape[-1]])

    def bias(self, direction: int) -> OnnxTensor | None:
        """[gates * hidden] of the inputs, and of the state where that is added to the same."""
        found = self.biases(direction)
        if found is None:
            return None
        of_inputs, of_state = found
        if not self.apart:
            return of_inputs + of_state
        added = ops.cut_axis(of_state, 0, 0, self.apart)
        zeros = ops.full((self.gates * self.hidden - self.apart,), added.dtype, 0)
        return of_inputs + ops.concat([added, zeros], 0)

    def biases(self, direction: int) -> list[OnnxTensor] | None:
        """[gates * hidden] of the inputs and of the state."""
        found = self.node.optional(3)
        if found is None:
            return None
        size = self.gates * self.hidden
        return ops.split(ops.unstack(found, 0)[direction], 0, [size, size])

    def recurrence(self, direction: int) -> OnnxTensor:
        """[hidden, gates * hidden]."""
        return ops.transpose(ops.unstack(self.node.take(2), 0)[direction], [1, 0])

    def columns(self, first: int, last: int) -> tuple[int, int]:
        """Where gates begin and end."""
        return first * self.hidden, last * self.hidden

    def parts(self, gates: OnnxTensor) -> list[OnnxTensor]:
        """[batch, hidden] of each gate."""
        return ops.split(gates, 1, [self.hidden] * self.gates)

    def _scanned(
        self, cell: Cell, start: list[OnnxTensor], gates: OnnxTensor, backwards: bool
    ) -> tuple[list[OnnxTensor], list[OnnxTensor]]:
        """A sequence that is over keeps its states and gives zeros."""
        lengths = self.node.optional(4)

        def step(
            number: OnnxTensor, states: list[OnnxTensor], slices: list[OnnxTensor]
        ) -> tuple[list[OnnxTensor], list[OnnxTensor]]:
            following = cell(states, slices[0])
            if lengths is None:
                return following, following[:1]
            place = convert(number, lengths.dtype)
            runs = ops.compare("GT", ops.expand_dims(lengths, [1]), place)
            kept = [ops.where(runs, a, b) for a, b in zip(following, states, strict=True)]
            return kept, [ops.where(runs, following[0], 0)]

        return scan(step, start, [gates], gates.shape[0], backwards, kept=True)


@operator("RNN")
def lower_rnn(node: NodeCall) -> tuple[Flowing, ...]:
    """H' = f(X W + H R + bias)."""
    layer = RecurrentLayer(node, 1, ["Tanh"])

    def make_cell(direction: int, activations: list[Activation]) -> Cell:
        r = layer.recurrence(direction)

        def cell(states: list[OnnxTensor], gates: OnnxTensor) -> list[OnnxTensor]:
            return [activations[0](layer.clipped(gates + ops.matmul(states[0], r)))]

        return cell

    return layer.run(make_cell, [node.optional(5)])


@operator("GRU")
def lower_gru(node: NodeCall) -> tuple[Flowing, ...]:
    """Gates z, r, h: H' = (1 - z) h + z H."""
    layer = RecurrentLayer(node, 3, ["Sigmoid", "Tanh"])
    after_product = node.attr("linear_before_reset")
    if after_product:
        layer.apart = 2 * layer.hidden

    def make_cell(direction: int, activations: list[Activation]) -> Cell:
        weights, biases = layer.recurrence(direction), layer.biases(direction)
        f, g = activations
        bias = 0 if biases is None else ops.cut_axis(biases[1], 0, *layer.columns(2, 3))
        of_gates = ops.cut_axis(weights, 1, *layer.columns(0, 2))
        of_state = ops.cut_axis(weights, 1, *layer.columns(2, 3))

        def cell(states: list[OnnxTensor], gates: OnnxTensor) -> list[OnnxTensor]:
            (h,) = states
            xz, xr, xh = layer.parts(gates)
            hz, hr = ops.split(ops.matmul(h, of_gates), 1, [layer.hidden] * 2)
            z, r = f(layer.clipped(xz + hz)), f(layer.clipped(xr + hr))
            if after_product:
                gate = xh + r * (ops.matmul(h, of_state) + bias)
            else:
                gate = xh + ops.matmul(r * h, of_state)
            return [(1 - z) * g(layer.clipped(gate)) + z * h]

        return cell

    return layer.run(make_cell, [node.optional(5)])


@operator("LSTM")
def lower_lstm(node: NodeCall) -> tuple[Flowing, ...]:
    """Gates i, o, f, c with peepholes P of i, o and f."""
    layer = RecurrentLayer(node, 4, ["Sigmoid", "Tanh", "Tanh"])
    coupled = node.attr("input_forget")
    peepholes = node.optional(7)

    def make_cell(direction: int, activations: list[Activation]) -> Cell:
        weights = layer.recurrence(direction)
        f, g, h = activations
        p: Sequence[OnnxTensor | int] = [0, 0, 0]
        if peepholes is not None:
            p = ops.split(ops.unstack(peepholes, 0)[direction], 0, [layer.hidden] * 3)

        def cell(states: list[OnnxTensor], gates: OnnxTensor) -> list[OnnxTensor]:
            before, memory = states
            total = gates + ops.matmul(before, weights)
            i, o, forget, c = layer.parts(total)
            i = f(layer.clipped(peeped(i, p[0], memory)))
            kept = 1 - i if coupled else f(layer.clipped(peeped(forget, p[2], memory)))
            memory = kept * memory + i * g(layer.clipped(c))
            return [f(layer.clipped(peeped(o, p[1], memory))) * h(memory), memory]

        return cell

    return layer.run(make_cell, [node.optional(5), node.optional(6)])


def peeped(gate: OnnxTensor, peephole: OnnxTensor | int, memory: OnnxTensor) -> OnnxTensor:
    return gate + peephole * memory if isinstance(peephole, OnnxTensor) else gate
