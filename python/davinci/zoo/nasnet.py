"""NASNet-A and PNASNet-5: cells that a search found, each of five sums of two branches.

Zoph, Vasudevan, Shlens and Le, "Learning Transferable Architectures for Scalable Image
Recognition" (2018), figure 4 and appendix A.4; Liu et al., "Progressive Neural Architecture Search"
(2018), figure 1. Batch norms are folded, and what helps only training is left out: the second
classifier and paths that are dropped.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from davinci.zoo.graph import require
from davinci.zoo.layers import ImageNetwork, Images


@dataclass(frozen=True)
class _Cells(ImageNetwork):
    """What both networks share: three stages of cells behind two cells that shrink the images.

    Attributes:
        filters: channels of a branch of the cells of the first stage.
        stem: channels of the first convolution.
        cells: of each stage that leave images as large as they are.
    """

    filters: int = 44
    stem: int = 32
    cells: int = 4

    def layers(self, images: Images) -> str:
        message = "parameter 'filters' must be at least 4"
        require(type(self).__name__.lower(), self.filters >= 4, message, self.filters)
        before = now = images.conv(self.stem, 3, 2, padded=False)
        for number, part in enumerate((4, 2)):
            with images.graph.scope(f"stem{number}"):
                before, now = now, self.shrinking(now, before, self.filters // part)
        now = self.stages(before, now)
        return now.relu().classified(self.classes)

    def shrinking(self, now: Images, before: Images, filters: int) -> Images:
        """A cell that halves the sides of images, of the last two cells' results."""
        raise NotImplementedError

    def stages(self, before: Images, now: Images) -> Images:
        """The three stages, from the results of the two cells before them."""
        raise NotImplementedError


@dataclass(frozen=True)
class NasnetA(_Cells):
    """NASNet-A, by default the mobile one (4 @ 1056); the large one is 6 @ 4032.

    Parameters besides: cells of a stage, channels of a branch in the first one and of the first
    convolution; whether the first cell of a stage sees, beside the cell that shrinks the images,
    the one two before that instead of the one before it (skip, as the large network does).
    """

    skip: int = 0

    def shrinking(self, now: Images, before: Images, filters: int) -> Images:
        before, now = sized(before, now, filters), squeezed(now, filters)
        first = separable(now, filters, 5, 2).plus(separable(before, filters, 7, 2))
        second = now.pool("Max", 3, 2, 1).plus(separable(before, filters, 7, 2))
        third = now.pool("Average", 3, 2, 1).plus(separable(before, filters, 5, 2))
        fourth = first.pool("Average", 3, 1, 1).plus(second)
        last = separable(first, filters, 3).plus(now.pool("Max", 3, 2, 1))
        return second.beside(third, fourth, last)

    def keeping(self, now: Images, before: Images, filters: int) -> Images:
        """A cell that leaves images as large as they are."""
        before, now = sized(before, now, filters), squeezed(now, filters)
        return before.beside(
            separable(now, filters, 5).plus(separable(before, filters, 3)),
            separable(before, filters, 5).plus(separable(before, filters, 3)),
            now.pool("Average", 3, 1, 1).plus(before),
            before.pool("Average", 3, 1, 1).plus(before.pool("Average", 3, 1, 1)),
            separable(now, filters, 3).plus(now),
        )

    def stages(self, before: Images, now: Images) -> Images:
        for stage, times in enumerate((1, 2, 4)):
            filters = times * self.filters
            if stage:
                with now.graph.scope(f"reduction{stage}"):
                    made = self.shrinking(now, before, filters)
                before, now = (before if self.skip else now), made
            for number in range(self.cells):
                with now.graph.scope(f"stage{stage}.{number}"):
                    before, now = now, self.keeping(now, before, filters)
        return now


@dataclass(frozen=True)
class Pnasnet5(_Cells):
    """PNASNet-5, by default the mobile one; every cell is of one kind.

    Parameters besides: as those of NASNet-A; cells of a stage include, from the second stage on,
    the one that shrinks the images.
    """

    filters: int = 54
    cells: int = 3

    def shrinking(self, now: Images, before: Images, filters: int) -> Images:
        return self.cell(now, before, filters, 2)

    def cell(self, now: Images, before: Images, filters: int, stride: int) -> Images:
        """A cell with a stride of 1 or 2."""
        before, now = sized(before, now, filters), squeezed(now, filters)
        pooled = functools.partial(Images.pool, kind="Max", kernel=3, pad=1)
        third = separable(now, filters, 5, stride).plus(separable(now, filters, 3, stride))
        kept = now if stride == 1 else now.relu().conv(filters, 1, stride)
        narrow = pooled(before, stride=stride)
        if narrow.channels != filters:
            narrow = narrow.conv(filters, 1)
        return (
            separable(before, filters, 5, stride)
            .plus(narrow)
            .beside(
                separable(now, filters, 7, stride).plus(pooled(now, stride=stride)),
                third,
                separable(third, filters, 3).plus(pooled(now, stride=stride)),
                separable(before, filters, 3, stride).plus(kept),
            )
        )

    def stages(self, before: Images, now: Images) -> Images:
        for stage, times in enumerate((1, 2, 4)):
            for number in range(self.cells):
                with now.graph.scope(f"stage{stage}.{number}"):
                    stride = 2 if stage and not number else 1
                    made = self.cell(now, before, times * self.filters, stride)
                before, now = now, made
        return now


def squeezed(images: Images, filters: int) -> Images:
    """Images reduced, or widened, to the number of channels of a cell's branches."""
    return images.relu().conv(filters, 1)


def sized(before: Images, now: Images, filters: int) -> Images:
    """The images of the cell before the last one as a cell takes them: as large as those of the
    last one, and with as many channels as its branches; the first cell takes them as they are."""
    if before is now:
        return before
    if before.halvings == now.halvings:
        return before if before.channels == filters else squeezed(before, filters)
    images = before.relu()
    # Every second pixel, and those one further along both sides.
    moved = images.then("Pad", images.graph.constant([0, 0, -1, -1, 0, 0, 1, 1]))
    return images.conv(filters // 2, 1, 2).beside(moved.conv(filters - filters // 2, 1, 2))


def separable(images: Images, channels: int, kernel: int, stride: int = 1) -> Images:
    """Twice: each channel convolved alone, then all of a pixel."""
    given = images.channels
    images = images.relu().conv(given, kernel, stride, groups=given).conv(channels, 1)
    return images.relu().conv(channels, kernel, groups=channels).conv(channels, 1)
