"""Buffers on the simulator: results in the right places, shared memory never in use twice."""

from __future__ import annotations

import numpy as np

from support import compile_text, run_text


def random_program(seed: int) -> tuple[str, list[np.ndarray], list[np.ndarray]]:
    """A straight line of additions and maxima; its inputs and expected outputs."""
    random = np.random.default_rng(seed)
    shapes = [(5,), (40,), (7, 19)]
    values: list[tuple[str, np.ndarray]] = []
    for number, shape in enumerate(shapes):
        values.append((f"%x{number}", random.integers(-9, 9, shape).astype(np.float32)))
    inputs = [value for _, value in values]
    lines = []
    for number in range(25):
        name, a = values[random.integers(max(0, len(values) - 6), len(values))]
        other, b = values[random.choice([i for i, v in enumerate(values) if v[1].shape == a.shape])]
        op, function = [("add", np.add), ("max", np.maximum), ("sub", np.subtract)][number % 3]
        kind = tensor(a)
        lines.append(f'%v{number} = "ascend.{op}"({name}, {other}) : ({kind}, {kind}) -> {kind}')
        values.append((f"%v{number}", function(a, b)))
    results = [values[i] for i in random.integers(0, len(values), 4)]
    arguments = ", ".join(f"%x{i}: {tensor(a)}" for i, a in enumerate(inputs))
    types = ", ".join(tensor(value) for _, value in results)
    names = ", ".join(name for name, _ in results)
    body = "\n".join([*lines, f"return {names} : {types}"])
    text = f"func.func @main({arguments}) -> ({types}) {{\n{body}\n}}"
    return text, inputs, [value for _, value in results]


def tensor(array: np.ndarray) -> str:
    return f"tensor<{'x'.join(map(str, array.shape))}xf32>"


def test_random_programs() -> None:
    for seed in range(4):
        text, inputs, expected = random_program(seed)
        for found, wanted in zip(run_text(text, *inputs), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_results_that_nothing_computes() -> None:
    text = """
    !v = tensor<5xf32>
    !e = tensor<0x3xf32>
    func.func @main(%x: !v, %e: !e) -> (!v, !v, !v, !v, tensor<1x5xf32>, !e) {
      %c = "ascend.full"() {value = 1.0 : f32} : () -> tensor<5xf32>
      %0 = "ascend.neg"(%x) : (tensor<5xf32>) -> tensor<5xf32>
      %1 = "ascend.reshape"(%x) : (tensor<5xf32>) -> tensor<1x5xf32>
      return %0, %0, %x, %c, %1, %e : !v, !v, !v, !v, tensor<1x5xf32>, !e
    }
    """
    x = np.arange(5, dtype=np.float32)
    found = run_text(text, x, np.zeros((0, 3), np.float32))
    wanted = [-x, -x, x, np.ones_like(x), x[None], np.zeros((0, 3), np.float32)]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_arena_is_reported() -> None:
    text, inputs, _ = random_program(0)
    executable = compile_text(text, fusion="none")
    executable.run(dict(zip(executable.input_names, inputs, strict=True)))
    memory = executable.profile["memory"]
    assert 0 < memory["arena_bytes"] < memory["arena_unplanned_bytes"]
