"""Where to cut a network between two devices: every point tried, for latency and for energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.errors import CompileError
from davinci.placement.costs import LayerCost
from davinci.placement.devices import DeviceLink
from davinci.placement.layers import LayeredNetwork
from davinci.placement.problem import NEVER


@dataclass(frozen=True)
class NetworkCut:
    """A network whose first layers run here and the others there.

    Attributes:
        here: how many layers run on the first device; 0 for none, all of them for no split.
        last: name of the last layer that runs here; "input" where there is none.
        moved_bytes: that cross the link: the input, or what layers here make and others read there.
        here_seconds: of the layers here.
        link_seconds: of the move; 0 where nothing is moved.
        there_seconds: of the layers there.
        joules: of the first device and of the link; None where power is not known. What the second
            device takes is not counted, as in the source, where that is a server.
    """

    here: int
    last: str
    moved_bytes: int
    here_seconds: float
    link_seconds: float
    there_seconds: float
    joules: float | None

    @property
    def seconds(self) -> float:
        """From the input to the output."""
        return self.here_seconds + self.link_seconds + self.there_seconds


def crossing(network: LayeredNetwork, here: int) -> list[str]:
    """Names of the values that cross a cut behind the first `here` layers.

    Those are what one side makes and the other reads, and the caller's inputs that are read there.
    """
    names = []
    for name, readers in network.readers.items():
        producer = network.makers.get(name, -1)
        if producer < here and any(reader >= here for reader in readers):
            names.append(name)
    return names


def splits(
    here_costs: Sequence[LayerCost],
    there_costs: Sequence[LayerCost],
    network: LayeredNetwork,
    link: DeviceLink,
) -> list[NetworkCut]:
    """Every way to cut a network, from all layers there to all of them here."""
    count = len(network.layers)
    powered = all(cost.joules is not None or cost.reason for cost in here_costs)
    found = []
    for here in range(count + 1):
        moved = network.bytes_of(crossing(network, here)) if here < count else 0
        link_seconds = link.seconds(moved) if here < count else 0.0
        energy = sum(cost.joules or 0.0 for cost in here_costs[:here]) + link.watts * link_seconds
        found.append(
            NetworkCut(
                here,
                network.layers[here - 1].name if here else "input",
                moved,
                sum(cost.seconds for cost in here_costs[:here]),
                link_seconds,
                sum(cost.seconds for cost in there_costs[here:]),
                energy if powered else None,
            )
        )
    return found


def best_split(tried: Sequence[NetworkCut], objective: str) -> NetworkCut:
    """The cut of the least latency or energy that both devices can run.

    Args:
        tried: the cuts.
        objective: "latency" or "energy".

    Raises:
        CompileError: there is none.
    """
    able = [split for split in tried if split.seconds != NEVER]
    if not able:
        raise CompileError(
            "no cut can run", where="npu-split", hint="npu-profile says which layers cannot run"
        )
    if objective == "energy":
        return min(able, key=lambda split: (split.joules or 0.0, split.seconds))
    return min(able, key=lambda split: split.seconds)
