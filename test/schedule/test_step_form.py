"""The form in which a loop's step is computed: what lies beside each other, and what is fused."""

from __future__ import annotations

from davinci.machine import load
from davinci.operators import Tensor
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.graph import Graph, Node
from davinci.schedule.loops.choice import schedules_of
from davinci.schedule.loops.group import LoopGroup, Role, read_loop
from davinci.schedule.loops.schedule import layout_of
from davinci.schedule.loops.step_form import barriers_of, divide_factors, multiply_numerators
from davinci.schedule.vector.tile_program import TileProgram

CHIP = load("ascend910")


def gates(*functions: str, width: int = 64) -> LoopGroup:
    """h = f0(x0 + h R0) + f1(x1 + h R1) + ..: gates that differ in what is computed of them."""
    graph = Graph()
    h = graph.add(Tensor((1, width), "f32"))
    half = graph.add(Tensor((1, width), "f16"))
    graph.nodes.append(Node("cast", (h,), half))
    roles, inputs, total = [Role("state", 0, state=0)], [h], None
    for number, function in enumerate(functions):
        r = graph.add(Tensor((width, width), "f16", "nz"))
        x, c, s, y, t = (graph.add(Tensor((1, width), "f32")) for _ in range(5))
        graph.nodes += [
            Node("matmul", (half, r), c, {"transpose_b": True}),
            Node("add", (x, c), s),
            Node(function, (s,), y),
        ]
        if total is not None:
            graph.nodes.append(Node("mul", (total, y), t))
        total = y if total is None else t
        inputs += [r, x]
        roles += [Role("fixed", 1 + 2 * number), Role("slice", 2 + 2 * number)]
    assert total is not None
    used = {v for node in graph.nodes for v in (*node.values, node.result)}
    for number in range(len(graph.arrays)):
        if number not in used:
            graph.nodes.append(Node("copy", (h,), number))
    graph.inputs, graph.outputs = inputs, [total]
    last = len(functions) * 2 + 1
    return read_loop(graph, 10, roles, (Role("state", last, state=0),))


def names(group: LoopGroup, joined: bool) -> list[str]:
    """Names of the instructions of a step, those that are one once."""
    form = group.form(CHIP, joined)
    layout = layout_of(group, schedules_of([group], CHIP, 1)[0], 1, CHIP)
    together = form.program.together
    first = {v for row in together.values() for v in row[1:]}
    return [
        step.name
        for step in form.program.steps
        if not layout.once(step.result) and step.result not in first and step.name != "expand"
    ]


def test_equal_gates_are_one_instruction() -> None:
    group = gates("logistic", "logistic", "logistic")
    apart, joined = names(group, False), names(group, True)
    assert apart.count("vexp") == 3 and joined.count("vexp") == 1
    assert joined.count("vaxpy") == 1 and joined.count("vrec") == 1
    assert [len(part) for part in group.form(CHIP, True).arrivals] == [3]
    assert [len(part) for part in group.form(CHIP, False).arrivals] == [1, 1, 1]


def test_gates_that_differ_in_numbers_take_arrays_of_them() -> None:
    """exp(-s) and exp(-2 s), 1 / (1 + e) and 2 / (1 + e)."""
    joined = names(gates("logistic", "tanh"), True)
    assert [joined.count(name) for name in ("vmla", "vexp", "vdiv", "vrec")] == [1, 1, 1, 0]


def test_gates_whose_inputs_are_not_scaled_stay_apart() -> None:
    """What comes from global memory lies by itself, and so does a sum with it."""
    group = gates("exp", "sqrt")
    form = group.form(CHIP, True)
    assert not form.rows and [len(part) for part in form.arrivals] == [1, 1]


def test_inputs_are_scaled_before_the_product_is_there() -> None:
    group = gates("logistic")
    steps = group.form(CHIP, False).program.steps
    product = group.program.loads[group.products[0].c]
    (reader,) = (step for step in steps if product in step.sources)
    assert (reader.name, reader.scalar) == ("vaxpy", -1.0)
    assert not group.form(CHIP, True).rows


def test_results_that_one_step_reads_stay_in_fractals() -> None:
    group = gates("logistic", "logistic")
    layout = layout_of(group, schedules_of([group], CHIP, 1)[0], 1, CHIP)
    assert layout.direct == {group.program.loads[product.c] for product in group.products}


def test_what_a_tanh_is_multiplied_by_is_a_part_of_its_quotient() -> None:
    """Where it is there before the divisor; a product that is added to something stays."""
    program, kinds = TileProgram(lane=0), ("f32", (0,))
    x, y = (program.load(*kinds) for _ in range(2))

    def tanh(value: Value) -> Value:
        e = program.unary("vexp", program.mul(value, -2.0))
        return program.add(program.div(2.0, program.add(e, 1.0)), -1.0)

    late = tanh(x)
    program.stores = {
        0: program.store(program.mul(late, program.unary("vln", late)), (0,)),
        1: program.store(program.mul(y, tanh(y)), (0,)),
        2: program.store(program.add(program.mul(x, tanh(program.mul(x, y))), y), (0,)),
    }
    multiply_numerators(program, set())
    found = [step.name for step in program.steps]
    assert (found.count("vsub"), found.count("vdiv")) == (1, 3)
    (less,) = (step for step in program.steps if step.name == "vsub")
    assert program.stores[1] == less.result and less.sources[1] == y


def lstm_cell(stored: bool = False) -> LoopGroup:
    """c = a(s) c + b(s) tanh(u(s)), h = o(s) tanh(c), s of x and h; c of all steps is stored, too,
    or only kept."""
    width, graph = 64, Graph()
    h, c = (graph.add(Tensor((1, width), "f32")) for _ in range(2))
    half = graph.add(Tensor((1, width), "f16"))
    graph.nodes.append(Node("cast", (h,), half))
    roles, inputs, made = [Role("state", 0, state=0), Role("state", 1, state=1)], [h, c], []

    def node(name: str, *values: int) -> int:
        result = graph.add(Tensor((1, width), "f32"))
        graph.nodes.append(Node(name, values, result))
        return result

    for number, function in enumerate(("logistic", "logistic", "tanh", "logistic")):
        r, x = graph.add(Tensor((width, width), "f16", "nz")), graph.add(Tensor((1, width), "f32"))
        product = graph.add(Tensor((1, width), "f32"))
        graph.nodes.append(Node("matmul", (half, r), product, {"transpose_b": True}))
        made.append(node(function, node("add", x, product)))
        inputs += [r, x]
        roles += [Role("fixed", 2 + 2 * number), Role("slice", 3 + 2 * number)]
    new = node("add", node("mul", made[0], c), node("mul", made[1], made[2]))
    row = node("mul", made[3], node("tanh", new))
    graph.inputs, graph.outputs = inputs, [row, new]
    outputs = [Role("state", 10, state=0), Role("state", 11, state=1)]
    if stored:
        graph.outputs.append(new)
        outputs.append(Role("slice", 12))
    return read_loop(graph, 10, roles, tuple(outputs))


def test_a_state_that_is_read_as_a_multiple_is_kept_as_one() -> None:
    """Minus twice the cell, whose exponential the step takes; not where all cells are stored."""
    group = lstm_cell()
    form = group.form(CHIP, True)
    assert form.scaled == {group.program.loads[1]: -2.0}
    following = form.program.stores[group.outputs("state")[1]]
    (reader,) = (step for step in form.program.steps if following in step.sources)
    assert reader.name == "vexp"
    assert not lstm_cell(stored=True).form(CHIP, True).scaled


def test_a_gate_that_a_late_tanh_is_multiplied_by_comes_twice_as_large() -> None:
    """2 / (1 + e) costs what 1 / (1 + e) does; the tanh of a gate is there as early as others."""
    steps = lstm_cell().form(CHIP, True).program.steps
    (row,) = (step for step in steps if step.name == "vaxpy")
    quotient, gate = row.sources
    assert row.scalar == -0.5
    assert [s.sources[0] for s in steps if s.result == quotient] == [gate]
    assert not [step for step in steps if (step.name, step.scalar) == ("vmuls", 2.0)]


def test_the_cell_is_divided_with_the_gates() -> None:
    """f c = c / (1 + e): the cell lies beside the numbers that are divided for other gates, and is
    brought there while the cores still wait; without other gates beside it is divided itself."""
    group = lstm_cell()
    cell = group.program.loads[1]
    joined, apart = (group.form(CHIP, together).program.steps for together in (True, False))
    for steps in (joined, apart):
        assert not [step for step in steps if step.name == "vmul"]
    (copy,) = (step for step in joined if cell in step.sources)
    assert (copy.name, copy.scalar) == ("vmuls", 1.0)
    places = {step.result: place for place, step in enumerate(joined)}
    (gate,) = (step for step in joined if copy.result in step.sources)
    products = {group.program.loads[product.c] for product in group.products}
    first = min(place for place, s in enumerate(joined) if products.intersection(s.sources))
    cast = max(place for place, s in enumerate(joined) if s.name == "vconv")
    assert gate.name == "vdiv" and cast < places[copy.result] < first
    (quotient,) = (step for step in apart if cell in step.sources)
    assert quotient.name == "vdiv"


def test_what_is_late_shared_or_summed_is_multiplied() -> None:
    """A value that is no earlier than the divisor, a quotient that others read, and a product that
    a sum takes in stay products."""
    program, kinds = TileProgram(lane=0), ("f32", (0,))
    x, y, z = (program.load(*kinds) for _ in range(3))

    def logistic(value: Value) -> Value:
        e = program.unary("vexp", program.mul(value, -1.0))
        return program.unary("vrec", program.add(e, 1.0))

    def root(value: Value) -> Value:
        return program.unary("vsqrt", program.unary("vabs", value))

    shared = logistic(x)
    values = [
        program.mul(logistic(y), z),
        program.mul(shared, y),
        program.add(program.mul(logistic(z), x), y),
        program.mul(logistic(program.add(x, y)), root(root(program.add(y, z)))),
    ]
    values[1] = program.add(values[1], root(shared))
    program.stores = {number: program.store(value, (0,)) for number, value in enumerate(values)}
    divide_factors(program)
    divided = [step for step in program.steps if step.name == "vdiv"]
    assert [(step.result, step.sources[0]) for step in divided] == [(values[0], z)]


def test_barriers_stand_between_steps_that_wait() -> None:
    """One serves all steps that are ready with it, and one ends the step."""
    x, y, a, b, c = (Value(n, "f32") for n in range(5))
    first, other = TileStep("vexp", (x,), None, a, {}), TileStep("vexp", (y,), None, b, {})
    last = TileStep("vadd", (a, b), None, c, {})
    assert barriers_of([first, other]) == 1
    assert barriers_of([first, other, last]) == 2
    assert barriers_of([first, TileStep("vabs", (a,), None, b, {}), last]) == 3


def test_a_gate_that_comes_last_divides_what_is_there_before() -> None:
    """h = o tanh(c): with results one after the other the tanh is there before the gate, and is
    divided by 1 + e; the chain behind the last product has one quotient."""
    group = lstm_cell()
    steps = group.form(CHIP, False).program.steps
    last = group.program.loads[group.products[-1].c]
    made = {last}
    for step in steps:
        if made.intersection(step.sources):
            made.add(step.result)
    behind = [step.name for step in steps if step.result in made]
    assert behind.count("vdiv") == 1 and "vaxpy" not in behind[1:]
