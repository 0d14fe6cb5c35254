"""Memory and time of whole networks by plan: the tables of `planning.py --networks`.

The first is that of "Memory and parallel execution of a network's graph" (2021), whose figures of
memory are printed beside ours. Steps are operators in floats, batch normalisations folded,
activations computed with what is in front of them, and every group of ResNeXt's convolutions is an
operator of its own. *base*: no two tensors share memory; *optimised*: one operator after the other,
placed greedily by size; *one group*, *two groups*: layers by longest distance, whose tensors
conflict. Times are simulated on ascend910 with our kernels, batch 1; `model` is what the source's
model of time gives for a plan, sums over stages of the longest kernel by estimate and of what it
takes to launch them, counted from the simulated time of the plan of least time.

The source's figures hold more than tensors: optimised, they are 4 to 15 times the most bytes that
are live at once in these graphs at the resolutions at which they were published, and no plan needs
more than these. Of ResNeXt and Xception what is more is about the bytes of the weights, so sums
with them are printed, too; its conversion of the graphs is not known.

The second table is that of "Static memory planning in MegEngine": networks at two batches, with
activations as operators of their own, as sums, planned, and planned where they overwrite what they
read.
"""

from __future__ import annotations

from typing import Any

from graph_memory import Vertices, groups_apart, weights_bytes, work_of
from timed import timed

from davinci import zoo
from davinci.planning import Work, faults, in_groups, layers, lowest, one_by_one, problem_of, run
from davinci.planning.steps import Stages

SOURCE = {
    "resnext50": (393.7, 108.8, 111.8, 108.8),
    "googlenet": (67.9, 42.4, 42.4, 42.4),
    "mobilenet-v2": (78.3, 30.3, 30.3, 30.3),
    "xception": (268.5, 113.2, 113.2, 113.2),
    "inception-v3": (198.1, 122.6, 122.6, 122.6),
}
"""MB of the source: base, optimised, one and two groups."""

NAMES = ("base", "optimised", "one group", "two groups")

PLANS = {"base": "sequential", "one group": "groups=1", "two groups": "groups=2", "best": "time"}
"""Plans of the compiler whose times are simulated; one after the other takes as long in any place,
so optimised is base."""

LEAST_SAVED = 0.72
"""The part of ResNeXt's memory that two groups save in the source."""

BATCHES = dict.fromkeys(("vgg16", "resnet50", "mobilenet-v2"), (1, 128))


def show_networks(times: bool) -> bool:
    """Prints the first table; says whether ResNeXt is as small and as fast as it should be."""
    print("network        plan            MB  with weights  source  off by     us   model")
    good = True
    for network, source in SOURCE.items():
        model = groups_apart(zoo.build(network).proto)
        weights = weights_bytes(zoo.find(network).sketch)
        work = work_of(model, Vertices(activations=False))
        heights = heights_of(work)
        took = times_of(model) if times else {}
        for name, height, theirs in zip(NAMES, heights, source, strict=True):
            whole = (height + weights) / 1e6
            time = "".join(f"{us:8,.0f}" for us in took.get(name, ()))
            off = whole / theirs - 1
            cells = f"{height / 1e6:8.1f}{whole:14.1f}{theirs:8.1f}{off:8.1%}"
            print(f"{network:15}{name:12}{cells}{time}".rstrip(), flush=True)
        order = lowest(work)
        how = "an exact search of orders" if order.exact else "a search of orders that was cut"
        print(f"{'':15}least there is {order.peak / 1e6:.1f} MB by {how}")
        if took:
            print(f"{'':15}plan of least time{took['best'][0]:12,.0f} us", flush=True)
        if network == "resnext50":
            saved = 1 - heights[3] / heights[0]
            good = saved >= LEAST_SAVED and (not took or took["two groups"][0] <= took["base"][0])
            print(f"{'':15}two groups save {saved:.1%} of the tensors' memory")
    return good


def show_batches() -> None:
    """Prints the second table."""
    print("network        batch         MB   planned  overwriting  least live")
    for network, batches in BATCHES.items():
        for batch in batches:
            model = zoo.find(f"{network},batch={batch}").sketch
            apart = work_of(model, Vertices())
            over = work_of(model, Vertices(overwrites=True))
            base, planned = heights_of(apart)[:2]
            least = heights_of(over)[1]
            cells = f"{base / 1e6:11,.1f}{planned / 1e6:10,.1f}{least / 1e6:13,.1f}"
            print(f"{network:15}{batch:5}{cells}{lowest(over).peak / 1e6:12,.1f}", flush=True)


def heights_of(work: Work) -> tuple[int, int, int, int]:
    """Bytes without sharing, optimised, by one and by two groups; plans are checked."""
    layered = layers(work)
    found = [sum(work.sizes)]
    for stages in (one_by_one(range(len(work.steps))), layered, in_groups(layered, 2)):
        found.append(height_of(work, stages))
    return found[0], found[1], found[2], found[3]


def height_of(work: Work, stages: Stages) -> int:
    problem = problem_of(work, stages)
    plan = run("greedy-by-size", problem)
    assert not faults(problem, plan.offsets)
    return plan.height


def times_of(model: Any) -> dict[str, list[float]]:
    """Microseconds of a network with its launches, simulated and, where a plan differs from that of
    least time, by the model of time; by names of `PLANS`."""
    records = {name: timed(model, plan=plan).profile for name, plan in PLANS.items()}
    best = records["best"]
    modelled = {
        point["plan"]: best["time_us"] + point["more_cycles"] / best["clock_mhz"]
        for point in best["memory"]["plans"]
    }
    return {
        name: [records[name]["time_us"], *([modelled[plan]] if plan in modelled else [])]
        for name, plan in PLANS.items()
    }
