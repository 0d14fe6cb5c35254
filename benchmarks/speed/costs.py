"""The cost model: estimated against simulated cycles of the kernels of networks of the zoo.

    python benchmarks/speed/costs.py [network ...] [--large] [--machine NAME] [--cores N]

A kernel's estimate is that by which its schedule was chosen, on as many cores as it takes in a
launch of its own; simulated are its launches, one after the other, without data, on average. The
table has the kinds of kernels, `off` being |estimate / simulated - 1|; the list behind it those
that are furthest off. Kernels of the scalar unit have no estimates, and are counted. --large takes
all networks of the zoo as they are, and hours.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from timed import timed

from davinci import frontends, machine, zoo
from davinci.compiler import lower
from davinci.machine import Machine
from davinci.mlir import make_context, symbol_name
from davinci.passes.analysis.kernels import kernels
from davinci.passes.analysis.loop_graph import loop_graph_of, loops_of
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.groups import group_of, is_group
from davinci.passes.ascend_to_cce.joined_cores import seen
from davinci.passes.pipeline import pipelines
from davinci.passes.pipeline.plans import SEQUENTIAL
from davinci.schedule.graph import Graph
from davinci.schedule.kernel_cores import cores_of, cores_of_loops, weigher_of
from davinci.schedule.loops.choice import schedules_of
from davinci.schedule.moves.choice import MovePlan
from davinci.schedule.moves.fractal_moves import IMPROVED
from davinci.schedule.pools.group import is_pool
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.group import is_product, read_group
from davinci.schedule.products.play import played
from davinci.schedule.side_by_side import partings_of, plans_of

SMALL = (
    "mlp",
    "bert-tiny",
    "bert,layers=1,hidden=256,heads=4,seq=64",
    "lstm",
    "gru",
    "resnet18,resolution=64",
)
SCALAR = "scalar unit"
WORST = 20


@dataclass(frozen=True)
class Kernel:
    """A kernel with its kind and cycles."""

    network: str
    name: str
    kind: str
    estimated: float
    simulated: float

    @property
    def off(self) -> float:
        return abs(self.estimated / self.simulated - 1)


def estimate_of(graph: Graph, target: Target) -> tuple[str, float]:
    """The kind of a group, and its estimated cycles on the cores that it takes by itself, of those
    that run it (`target`)."""
    described, cores = target.machine, target.cores
    taken = cores_of(graph, described, cores, adders=target.adders).cores
    kind = kind_of(graph, described, cores)
    if kind in ("product", "convolution"):
        product = read_group(graph, described).product
        chosen = choose(product, described, taken, Wanted())
        return kind, played(product, chosen, described, taken)
    found = weigher_of(graph, described, taken, Wanted(), IMPROVED)(taken, math.inf)
    assert found is not None, "a limit without one"
    return kind, found.cycles


def kind_of(graph: Graph, described: Machine, cores: int) -> str:
    """What a group is lowered as."""
    if any(map(is_pool, graph.nodes)):
        return "pool"
    products = sum(map(is_product, graph.nodes))
    if products == 1:
        return "product" if read_group(graph, described).product.image is None else "convolution"
    if products:
        return "attention"
    plans = [each.plan for each in plans_of(partings_of(graph), described, cores)]
    return "moves" if any(isinstance(plan, MovePlan) for plan in plans) else "vector"


def estimates(
    spec: str, name: str, described: Machine, cores: int
) -> Iterator[tuple[str, str, float]]:
    """Name, kind and estimated cycles of each kernel of a network."""
    module = frontends.load(zoo.build(spec).proto, make_context(), None)
    stages = pipelines.STAGES[: pipelines.STAGES.index("ascend-to-cce")]
    lower(module, pipelines.Options(name, cores, plan=SEQUENTIAL), lambda text: None, stages)
    for function in kernels(module.operation):
        target = seen(function, Target(described, cores))
        if loops := loops_of(function):
            groups = [loop_graph_of(function, loop).group() for loop in loops]
            taken = cores_of_loops(groups, target.machine, target.cores).cores
            ways = schedules_of(groups, target.machine, taken)
            yield symbol_name(function), "loop", max(way.cycles for way in ways)
        elif is_group(function):
            kind, estimated = estimate_of(group_of(function, target.machine).graph, target)
            yield symbol_name(function), kind, estimated
        else:
            yield symbol_name(function), SCALAR, 0


def measured(spec: str, name: str, cores: int) -> Iterator[Kernel]:
    """The kernels of a network."""
    described, model = machine.load(name), zoo.build(spec)
    executable = timed(model.proto, machine=name, cores=cores, plan=SEQUENTIAL)
    found = {kernel["name"]: kernel for kernel in executable.profile["kernels"]}
    for kernel, kind, cycles in estimates(spec, name, described, cores):
        launches = found[kernel]["launches"]
        yield Kernel(spec, kernel, kind, cycles, found[kernel]["cycles"] / launches)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--cores", type=int, default=0)
    options = parser.parse_args()
    cores = options.cores or machine.load(options.machine).cores
    networks = options.networks or (zoo.NETWORKS if options.large else SMALL)
    found = [each for spec in networks for each in measured(spec, options.machine, cores)]
    weighed = [each for each in found if each.kind != SCALAR]
    titles = f"{'kernels':>8}{'off, median':>13}{'at worst':>10}{'simulated':>12}{'estimated':>12}"
    print(f"{'':14}{titles}")
    for kind in (*sorted({each.kind for each in weighed}), ""):
        some = [each for each in weighed if kind in ("", each.kind)]
        off = [each.off for each in some]
        print(
            f"{kind or 'all':14}{len(some):8}{median(off):13.1%}{max(off):10.1%}"
            f"{sum(each.simulated for each in some):12,.0f}"
            f"{sum(each.estimated for each in some):12,.0f}"
        )
    print(f"of the scalar unit: {len(found) - len(weighed)} kernels")
    for each in sorted(weighed, key=lambda each: -each.off)[:WORST]:
        print(
            f"{each.off:7.0%}{each.estimated:10,.0f} of {each.simulated:10,.0f}  "
            f"{each.name} in {each.network}"
        )


if __name__ == "__main__":
    main()
