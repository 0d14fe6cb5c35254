"""ascend-cut-chains: computes chains of operators in parts where a memory limit asks for it.

before, for a limit that %g, the wide value of a transformer's layer, does not fit:
    %h = "ascend.matmul"(%x, %w) : (tensor<128x768xf16>, tensor<768x3072xf16>) -> ..
    %g = "ascend.gelu"(%h) : (tensor<128x3072xf32>) -> tensor<128x3072xf32>
    %c = "ascend.cast"(%g) : (tensor<128x3072xf32>) -> tensor<128x3072xf16>
    %y = "ascend.matmul"(%c, %v) : (tensor<128x3072xf16>, tensor<3072x768xf16>) -> ..
after:
    %x0 = "ascend.slice"(%x) {starts = array<i64: 0, 0>, limits = array<i64: 64, 768>, ..}
    (the four operators on 64 rows)
    %x1 = "ascend.slice"(%x) {starts = array<i64: 64, 0>, limits = array<i64: 128, 768>, ..}
    (the four operators on 64 rows)
    %y = "ascend.concat"(%y0, %y1) {dim = 0 : i64} : (tensor<64x768xf32>, tensor<64x768xf32>) -> ..

The arena is planned on a copy of the module first, by the passes behind this one and with all the
remedies of `davinci.passes.ascend.memory_limit`. Where that does not fit, chains are cut around the
launches at which too much is live (`cut_choice`; `chain_cuts` says what a part of a chain is) and
the arena is planned again, with more parts and other chains, until it fits or nothing is left to
cut. Without a limit, or where nothing helps, the module stays as it is. What was tried is left in
attributes of the module, for `ascend-bufferize`, which reports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci import machine as machines
from davinci.mlir import Op, ir, symbols
from davinci.passes.ascend.ascend_bufferize import PlannedHost
from davinci.passes.ascend.chain_cuts import Cut
from davinci.passes.ascend.cut_choice import ArenaProfile, CutChooser
from davinci.passes.ascend.memory_limit import CUT, CUTS_LIMIT, Cuts, Remedy
from davinci.passes.ascend.tensor_ops import erase_unused
from davinci.passes.pipeline import memory_limits, pipelines, plans, rewrites
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipeline_text import ROOT

MOST_TRIALS = 12
"""Times that the arena is planned with cuts."""


@register_pass
@dataclass(frozen=True)
class AscendCutChainsPass(Pass):
    """Compute chains of operators in parts where a memory limit asks for it."""

    NAME = "ascend-cut-chains"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    cores: int = option(0, "most cores of a launch; 0: all cores of the machine")
    precision: str = option("mixed", "as passes behind this one have it", pipelines.PRECISIONS)
    fusion: str = option("all", "which operators share a kernel", pipelines.FUSION)
    rewrites: str = option("all", pipelines.REWRITES_HELP, expected=rewrites.expected)
    plan: str = option("sequential", "which kernels share a launch", expected=plans.expected)
    memory_limit: str = option("", pipelines.LIMIT_HELP, expected=memory_limits.expected)
    weights: str = option(pipelines.RESIDENT, pipelines.WEIGHTS_HELP, pipelines.WEIGHTS)

    def run(self, op: Op) -> None:
        function = dict(symbols(op)).get("main")
        if not self.memory_limit or function is None or "ascend.entry" in function.attributes:
            return
        if CUTS_LIMIT in op.attributes:
            return  # it has run
        operations = list_of(function)
        host = self._host(op, ())
        limit = memory_limits.bytes_of(self.memory_limit, host.planned.placed.height)
        found = host.lowest()
        tried: list[Remedy] = []
        cuts: list[Cut] = []
        if found.placed.height > limit and not (fitted := host.fit(limit)).holds:
            tried += fitted.remedies
            cuts = self._cuts(op, CutChooser(operations, ArenaProfile.of(found), limit), tried)
        apply(op, operations, cuts, limit, tried)

    def _cuts(self, root: Op, chooser: CutChooser, tried: list[Remedy]) -> list[Cut]:
        """Cuts with which the arena fits; none if there are no such. What others gave is added to
        `tried`."""
        profile = chooser.profile
        for _ in range(MOST_TRIALS):
            cuts = chooser.more(profile)
            if not cuts:
                break
            found = self._host(root, cuts).lowest()
            if found.placed.height <= chooser.limit:
                return cuts
            parts = tuple(sorted(len(cut.ranges) for cut in cuts))
            tried.append(Remedy(CUT, found.placed.height, None, 0, parts))
            profile = ArenaProfile.of(found)
        return []

    def _host(self, root: Op, cuts: Sequence[Cut]) -> PlannedHost:
        """@main as it is with cuts, made by the passes behind this one from a copy of the module,
        whose operators have their numbers for names."""
        from davinci.passes.pipeline import runner

        machine = machines.load(self.machine)
        copy = root.clone(ip=False).operation
        operations = list_of(dict(symbols(copy))["main"])
        for number, each in enumerate(operations):
            each.location = ir.Location.name(str(number))
        apply(copy, operations, cuts)
        names = ("machine", "cores", "precision", "fusion", "rewrites")
        options = pipelines.Options(**{name: getattr(self, name) for name in names})
        text = f"{ROOT}({','.join(pipelines.to_kernels(options))})"
        runner.run(copy, text, runner.AT_THE_END)
        function = dict(symbols(copy))["main"]
        cores = self.cores or machine.cores
        return PlannedHost(copy, function, machine, cores, self.plan, self.weights)


def apply(
    root: Op,
    operations: Sequence[Op],
    cuts: Sequence[Cut],
    limit: int = 0,
    tried: Sequence[Remedy] = (),
) -> None:
    """Makes cuts of the operations of @main, and leaves word of that."""
    block = operations[0].block
    for cut in cuts:
        cut.apply(operations)
    erase_unused(block)
    Cuts(limit, tuple(tried), tuple(len(cut.ranges) for cut in cuts)).mark(root)


def list_of(function: Op) -> list[Op]:
    """The operations of a function, in order."""
    return [operation.operation for operation in function.regions[0].blocks[0].operations]
