"""The sections of a machine file about the host: launches, and the link to its memory."""

from __future__ import annotations

from typing import Annotated

import pydantic

from davinci.machine.section import Amount, Rate, Section


class LaunchSection(Section):
    """The times that pass before a kernel runs, in microseconds.

    Attributes:
        overhead_us: of a small kernel that the host launches; the compiler weighs launches with it.
        switch_us: from one task that is queued on the device to the next.
        head_us: of such a task besides that.
        head_of_all_cores_us: more of a kernel on all cores, in proportion on fewer.
        mixed_us: more of a kernel on cube and vector cores.
        all_cores_us_range: what `switch_us`, `head_us` and `head_of_all_cores_us` may come to
            together on this machine, the least first; reports give their times for each.
    """

    overhead_us: Amount
    switch_us: Amount
    head_us: Amount
    head_of_all_cores_us: Amount
    mixed_us: Amount
    all_cores_us_range: Annotated[list[Amount], pydantic.Field(min_length=1)]

    def us(self, share: float, by_host: bool) -> float:
        """Microseconds in front of a kernel on that share of all cores, of one kind."""
        begin = self.overhead_us if by_host else self.switch_us + self.head_us
        return begin + self.head_of_all_cores_us * share


class HostLink(Section):
    """The link over which the host brings bytes to global memory while kernels run.

    Attributes:
        gigabytes_per_second: of a long transfer, 10^9 bytes each.
        latency_us: until the first byte of a transfer arrives.
    """

    gigabytes_per_second: Rate
    latency_us: Amount

    def us(self, nbytes: int) -> float:
        """Microseconds of a transfer that has the link to itself."""
        return self.latency_us + nbytes / (self.gigabytes_per_second * 1e3)
