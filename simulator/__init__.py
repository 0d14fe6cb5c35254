"""The simulated machine. It knows nothing of MLIR: encoded instructions and bytes come in."""

from davinci.simulator.core.device import Device
from davinci.simulator.core.launch import JoinedKernels, KernelCall
from davinci.simulator.core.processes import processors
from davinci.simulator.core.tables import Tables
from davinci.simulator.timing.profile import LaunchProfile

__all__ = ["Device", "JoinedKernels", "KernelCall", "LaunchProfile", "Tables", "processors"]
