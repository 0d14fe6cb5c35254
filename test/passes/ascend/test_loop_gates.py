"""Gates of loops whose operands the cube computes: which are, and what becomes of the others."""

from __future__ import annotations

from davinci.operators import Tensor
from davinci.passes.ascend.loop_gates import GateForms
from davinci.schedule.graph import Graph, Node, Scalar

ROW = Tensor((1, 32), "f32")


class Step(Graph):
    """A step that is put together operator by operator."""

    def node(self, name: str, *operands: int | Scalar) -> int:
        result = self.add(ROW)
        self.nodes.append(Node(name, operands, result))
        return result

    def given(self) -> int:
        self.inputs.append(self.add(ROW))
        return self.inputs[-1]

    def text(self) -> list[tuple[object, ...]]:
        """The operators, without the numbers of their results."""
        return [(node.name, *node.operands) for node in self.nodes]


def forms_of(step: Step, rows: int, state: int, fits: bool = True) -> GateForms:
    """The gates of a step with a product of rows and one of a state, which may add any input."""
    given = set(step.inputs) - {rows, state}
    forms = GateForms(
        step, {rows: True, state: False}, lambda *_: fits, lambda _, x, __: x in given
    )
    forms.rewrite()
    return forms


def test_factors_are_scaled_and_the_bias_is_added_by_the_product_of_rows() -> None:
    """tanh of the sum of all three is computed of the exponential of what the cube gives."""
    step = Step()
    rows, bias, state = (step.given() for _ in range(3))
    step.outputs = [step.node("tanh", step.node("add", step.node("add", rows, bias), state))]
    forms = forms_of(step, rows, state)
    assert (forms.scales, forms.added) == ({rows: -2.0, state: -2.0}, {rows: bias})
    (names, exp) = ([name for name, *_ in step.text()], step.nodes[1])
    assert names == ["add", "exp", "add", "div", "add"]
    assert step.nodes[0].operands == (rows, state) and exp.operands == (step.nodes[0].result,)
    assert step.nodes[-1].result == step.outputs[0]
    assert step.text()[2:] == [
        ("add", exp.result, Scalar(1.0)),
        ("div", Scalar(2.0), step.nodes[2].result),
        ("add", step.nodes[3].result, Scalar(-1.0)),
    ]


def test_a_product_with_another_gate_scales_the_sum_in_it() -> None:
    """GRU: x W + b + r (h R + c), where only the product of rows adds what is known."""
    step = Step()
    rows, bias, state, other, gate = (step.given() for _ in range(5))
    inner = step.node("mul", gate, step.node("add", state, other))
    step.outputs = [step.node("logistic", step.node("add", step.node("add", rows, bias), inner))]
    forms = forms_of(step, rows, state)
    assert (forms.scales, forms.added) == ({rows: -1.0, state: -1.0}, {rows: bias})
    assert ("mul", other, Scalar(-1.0)) in step.text()
    assert [name for name, *_ in step.text()].count("mul") == 2


def test_what_others_read_or_does_not_fit_is_left() -> None:
    """A sum that is an output, a product that is read twice, factors that f16 would not hold."""

    def step_of(shared: bool, stored: bool) -> tuple[Step, int, int]:
        step = Step()
        rows, bias, state = (step.given() for _ in range(3))
        total = step.node("add", step.node("add", rows, bias), state)
        step.outputs = [step.node("logistic", total)]
        step.outputs += [step.node("exp", state), step.node("exp", rows)] if shared else []
        step.outputs += [total] if stored else []
        return step, rows, state

    for shared, stored, fits in ((True, False, True), (False, True, True), (False, False, False)):
        step, rows, state = step_of(shared, stored)
        before = step.text()
        forms = forms_of(step, rows, state, fits)
        assert not forms.scales and not forms.added and step.text() == before
