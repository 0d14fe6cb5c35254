"""Launches that are repeated: random lists of launches compute the same with less memory."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from davinci.passes.ascend.host_function import Launch, Place, Storage
from davinci.passes.ascend.recomputation import recompute


def storage(kind: str, size: int) -> Storage:
    return Storage(kind, None, None, size, 0, 0, None)


def launch(name: str, inputs: list[Storage], outputs: list[Storage]) -> Launch:
    buffers = [(Place(each), None) for each in (*inputs, *outputs)]
    return Launch(name, buffers, None, (name,), [(name,)], len(outputs))


@st.composite
def lists(draw: st.DrawFn) -> list[Launch]:
    """Launches that read arguments and what others made; some change a value in place, some make
    two, and some write to the function's results."""
    made = [storage("argument", 8) for _ in range(2)]
    found = []
    for number in range(draw(st.integers(1, 14))):
        inputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique_by=id))
        how = draw(st.sampled_from(["new", "new", "new", "two", "in place", "result"]))
        outputs = [storage("output" if how == "result" else "arena", draw(st.integers(1, 40)))]
        if how == "two":
            outputs.append(storage("arena", 5))
        if how == "in place" and inputs[0].kind != "argument":
            outputs = [inputs[0]]
        found.append(launch(f"k{number}", inputs, outputs))
        made += [each for each in outputs if each not in made]
    kept = storage("output", 8)
    return [*found, launch("last", [s for s in made if s.kind == "arena"][-4:], [kept])]


@dataclass
class Run:
    """What launches compute, symbolically: of each storage the expression that it holds."""

    held: dict[Storage, object]
    results: list[object]
    peak: int


def run(launches: list[Launch]) -> Run:
    held: dict[Storage, object] = {}
    results: list[object] = []
    for each in launches:
        inputs = len(each.buffers) - each.outputs
        read = []
        for place, _ in each.buffers[:inputs]:
            if place.storage.kind == "argument":
                held.setdefault(place.storage, id(place.storage))
            read.append(held[place.storage])  # KeyError: read before it is written
        for at, (place, _) in enumerate(each.buffers[inputs:]):
            held[place.storage] = (each.kernel, at, *read)
            if place.storage.kind == "output":
                results.append(held[place.storage])
    times: dict[Storage, list[int]] = {}
    for number, each in enumerate(launches):
        for place, _ in each.buffers:
            if place.storage.kind == "arena":
                times.setdefault(place.storage, []).append(number)
    live = [
        sum(s.size for s, used in times.items() if used[0] <= number <= used[-1])
        for number in range(len(launches))
    ]
    return Run(held, results, max(live))


@given(lists(), st.integers(0, 120))
def test_repeated_launches_compute_the_same_in_less(launches: list[Launch], limit: int) -> None:
    before = run(launches)
    made = recompute(launches, limit, lambda each: 10.0)
    after = run(made.launches)
    assert after.results == before.results
    assert after.peak <= before.peak
    assert len(made.launches) == len(launches) + made.repeated
    assert made.cycles == 10.0 * made.repeated
    if before.peak <= limit:
        assert not made.repeated


@given(lists())
def test_what_nobody_can_price_is_not_repeated(launches: list[Launch]) -> None:
    assert recompute(launches, 0, lambda each: None).launches == launches


def test_a_chain_is_repeated_where_its_middle_is_not_kept() -> None:
    """`late` needs `b`, which comes of `a`, which comes of an argument: both are made again."""
    x, a, b, c, d = storage("argument", 8), *(storage("arena", n) for n in (30, 30, 50, 10))
    y = storage("output", 8)
    launches = [
        launch("first", [x], [a]),
        launch("second", [a], [b]),
        launch("third", [b], [c]),
        launch("large", [c], [d]),
        launch("late", [b, d], [y]),
    ]
    made = recompute(launches, 80, lambda each: 1.0)
    names = [each.kernel for each in made.launches]
    assert names == ["first", "second", "third", "large", "first", "second", "late"]
    assert run(made.launches).results == run(launches).results
    assert (run(launches).peak, run(made.launches).peak) == (90, 80)
