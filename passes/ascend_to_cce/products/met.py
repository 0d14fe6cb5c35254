"""Products whose cores meet: which way is chosen, and who builds it.

split k      partial products of all of C                `split_k`
laid out     A or B in fractals first                    `laid_out`
stream-K     k split of the last rows of C only          `stream_k`
"""

from __future__ import annotations

from davinci.mlir import Op, symbol_name
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.products.laid_out import build_beside, build_laid_out
from davinci.passes.ascend_to_cce.products.paired import GmBuffers
from davinci.passes.ascend_to_cce.products.product import wanted
from davinci.passes.ascend_to_cce.products.split_k import BuildPart, build_split
from davinci.passes.ascend_to_cce.products.stream_k import build_stream_k
from davinci.schedule.choices import Choices
from davinci.schedule.graph import Graph
from davinci.schedule.meetings import LaunchPrice
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.group import ProductGroup
from davinci.schedule.products.laid_out import (
    GAIN,
    LaidOutProduct,
    given_laid_out,
    laid_out_beside,
    laid_out_of,
)
from davinci.schedule.products.split_k import SplitCores, SplitProduct, given_split, split_of
from davinci.schedule.products.stream_k import StreamKProduct, given_stream_k, stream_k_of

MetProduct = SplitProduct | LaidOutProduct | StreamKProduct
"""A product whose cores meet."""


def weighs(target: Target) -> bool:
    """Whether other ways to compute a product are weighed than one on all cores: not where all are
    asked for, but for its vector cores, which have nothing else to do."""
    return not target.all_cores or target.adders is not None


def met_of(
    group: ProductGroup, graph: Graph, target: Target, kernel: Op, given: Choices | None
) -> MetProduct | None:
    """How a product is computed whose cores meet: as it was given, or where that takes less time
    than its kernel as it was weighed; None if a user says another way.

    Raises:
        NoSpace: it cannot be computed as it was given.
    """
    machine, cores, product = target.machine, target.cores, group.product
    split_cores = SplitCores(machine, target.adders)
    if given is not None:
        found: MetProduct | None = given_split(given, group, graph, split_cores, cores)
        found = found or given_stream_k(given, group, graph, split_cores, cores)
        if found is not None or group.behind is not None:
            return found
        return given_laid_out(given, product, split_cores, cores)
    asked = wanted(target)
    if asked != Wanted() or not weighs(target):
        return None
    weighed, price = target.counts[symbol_name(kernel)], LaunchPrice(machine, target.phases)
    least = weighed.total
    if target.all_cores:
        of_all = weighed.tried[cores]
        least = of_all.cycles + price.cycles(min(cores, of_all.blocks))
    best: MetProduct | None = split_of(group, graph, split_cores, cores, asked, price, least)
    if product.direct and product.end.matrices:
        return best
    if best is not None:
        least = best.cycles + price.cycles(cores)
    if target.adders is None:
        return laid_out_of(product, machine, cores, asked, price, least) or best
    if group.behind is None:  # else vector cores are at that
        laid_out = laid_out_beside(product, split_cores, cores, asked, price, least)
        if laid_out is not None:
            best, least = laid_out, laid_out.cycles * GAIN + price.cycles(cores)
    return stream_k_of(group, graph, split_cores, cores, asked, price, least) or best


def build_met(
    met: MetProduct,
    group: ProductGroup,
    graph: Graph,
    gm: GmBuffers,
    kernel: Op,
    target: Target,
    build_part: BuildPart,
) -> int:
    """Builds the kernel of a product whose cores meet; returns how many blocks share it.

    Args:
        gm: buffers of the group's inputs and outputs, by number.
    """
    if isinstance(met, StreamKProduct):
        return build_stream_k(met, gm, kernel, target, build_part)
    if isinstance(met, SplitProduct):
        return build_split(met, group, graph, gm, kernel, target, build_part)
    build = build_beside if met.layers else build_laid_out
    return build(met, group, graph, gm, kernel, target)
