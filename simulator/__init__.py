"""The simulated machine. It knows nothing of MLIR: encoded instructions and bytes come in."""

from davinci.simulator.device import Device
from davinci.simulator.profile import LaunchProfile

__all__ = ["Device", "LaunchProfile"]
