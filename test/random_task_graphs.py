"""Random graphs of tasks for tests and proofs."""

from __future__ import annotations

import random

from davinci.placement import NEVER, MovedTensor, PlacementProblem, PlacementTask


def random_problem(rng: random.Random, tasks: int, devices: int) -> PlacementProblem:
    """A graph whose times are small whole numbers, 0 among them; one of ten tasks cannot run on a
    device."""

    def seconds() -> tuple[float, ...]:
        drawn = [float(rng.randint(0, 20)) if rng.random() > 0.1 else NEVER for _ in range(devices)]
        if min(drawn) == NEVER:
            drawn[rng.randrange(devices)] = float(rng.randint(1, 20))
        return tuple(drawn)

    def moves() -> tuple[tuple[float, ...], ...]:
        return tuple(
            tuple(0.0 if a == b else float(rng.randint(0, 10)) for b in range(devices))
            for a in range(devices)
        )

    made = [PlacementTask(f"t{i}", seconds()) for i in range(tasks)]
    tensors = []
    for producer in range(tasks):
        consumers = tuple(j for j in range(producer + 1, tasks) if rng.random() < 0.3)
        if consumers:
            tensors.append(MovedTensor(producer, consumers, moves()))
    return PlacementProblem(tuple(f"d{i}" for i in range(devices)), tuple(made), tuple(tensors))
